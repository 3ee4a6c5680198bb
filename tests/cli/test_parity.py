"""Every verb of the table has a command, with the parameters and the defaults of the verb."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields

import numpy as np
import pytest

from cli.command import json_lines, run
from linkstream.cli import stores
from linkstream.cli.app import COMMANDS, function_of
from linkstream.cli.options import as_command
from linkstream.clusterer.verbs import VERBS
from linkstream.errors import ArgumentError
from linkstream.store import Store

# Verbs without a command, and why.
WITHOUT_COMMAND = {
    "add_group": "A file does not say which of its vectors were seen together.",
}
# Verbs whose command has another name.
OTHER_COMMANDS = {
    **dict.fromkeys(("add", "add_many"), "cluster"),
    "same": "merge",
    "different": "split",
    "rename": "name",
    "remove": "forget",
}
VERB_COMMANDS = {verb: OTHER_COMMANDS.get(verb, verb) for verb in VERBS.keys() - WITHOUT_COMMAND}
# Fields that a command names differently: the parameter, and its default. A flag has the opposite
# meaning of a field that is true by default.
RENAMED = {
    ("add", "x"): ("file", inspect.Parameter.empty),
    ("add_many", "X"): ("file", inspect.Parameter.empty),
    ("enrol", "X"): ("file", inspect.Parameter.empty),
    ("enrol", "locked"): ("drift", False),
    ("ignore", "on"): ("off", False),
    ("judge", "right"): ("wrong", False),
}
# Fields with another default than the verb, and why.
OTHER_DEFAULTS = {
    ("same", "a"): "Without arguments, merge shows suggestions.",
    ("same", "b"): "Without arguments, merge shows suggestions.",
    ("same", "of"): "merge is a word for clusters.",
    ("different", "b"): "With one cluster, split shows its weakest links.",
    ("name", "name"): "--clear takes the place of a name.",
    ("rename", "name"): "--clear takes the place of a name.",
    ("retract", "correction"): "Without arguments, retract lists the corrections.",
    ("forget", "cluster"): "--vector takes the place of a cluster.",
    ("remove", "vector"): "A cluster takes the place of --vector.",
}
# Fields that no option sets, and why.
WITHOUT_OPTION = {
    ("add", "weight"): "A file has no weights.",
    ("add", "group"): "A file does not say which of its vectors were seen together.",
    ("add_many", "weight"): "A file has no weights.",
    ("add_many", "group"): "A file does not say which of its vectors were seen together.",
    ("remove", "x"): "A store made on the command line keeps its vectors.",
    ("remove", "cluster"): "A store made on the command line tracks its vectors.",
    ("remove", "weight"): "A store made on the command line tracks its vectors.",
    ("settle", "thresholds"): "A store has its own thresholds.",
}
FIELDS = [(name, each) for name in sorted(VERB_COMMANDS) for each in fields(VERBS[name])]


def parameters_of(verb):
    return inspect.signature(as_command(function_of(VERB_COMMANDS[verb]))).parameters


def test_every_verb_has_a_command():
    assert {*OTHER_COMMANDS, *WITHOUT_COMMAND} <= set(VERBS)
    assert set(VERB_COMMANDS.values()) <= set(COMMANDS)


@pytest.mark.parametrize(("verb", "field"), FIELDS, ids=lambda x: x if type(x) is str else x.name)
def test_every_field_of_a_verb_has_a_parameter_with_the_same_default(verb, field):
    parameters, place = parameters_of(verb), (verb, field.name)
    if place in WITHOUT_OPTION:
        assert field.default is not MISSING  # else the command could not build the verb
        return
    required = field.default is MISSING
    default = inspect.Parameter.empty if required else field.default
    name, expected = RENAMED.get(place, (field.name, default))
    if place in OTHER_DEFAULTS:
        assert parameters[name].default != expected
    else:
        assert parameters[name].default == expected


def test_the_exceptions_name_fields_that_exist():
    known = {(name, each.name) for name, each in FIELDS}
    assert {*RENAMED, *OTHER_DEFAULTS, *WITHOUT_OPTION} <= known


def test_a_verb_is_performed_with_its_defaults_and_unknown_names_are_refused(tmp_path):
    with Store.open(tmp_path / "x.links", preset="ge2e", granularity="sessions") as store:
        ids = stores.perform(store, "add_many", X=np.eye(3, 256))
        np.testing.assert_array_equal(ids, [0, 1, 2])
        stores.perform(store, "same", a=0, b=2)
        assert store.labels()[2] == store.labels()[0]
        with pytest.raises(ArgumentError, match="unknown"):
            stores.perform(store, "same", one=0, other=2)


def test_an_ignored_cluster_is_left_out_of_suggestions_until_it_is_included_again(folder):
    def suggested():
        lines = json_lines(run("merge", "people.links", "--limit", 500, cwd=folder).stdout)
        return {cluster for line in lines for cluster in line["clusters"]}

    before = suggested()
    assert 6 in before
    assert run("ignore", "people.links", 6, cwd=folder).returncode == 0
    assert 6 not in suggested()
    assert run("ignore", "people.links", 6, "--off", cwd=folder).returncode == 0
    assert suggested() == before
