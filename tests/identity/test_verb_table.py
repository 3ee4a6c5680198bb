"""The table of verbs: the same signatures as `Links`, the same journal arguments as the store."""

import inspect
import json
from dataclasses import fields

import numpy as np
import pytest

from linkstream import Links, Thresholds
from linkstream.clusterer.verbs import VERBS, AddGroup, Remove, Same, Settle
from linkstream.errors import ArgumentError
from linkstream.store import replaying, write_requests

X = np.eye(4, dtype=np.float32)[:3]
ARRAYS = {"Vector", "Vectors", "Weights", "VectorOrNumber"}


def annotation_of(each):
    parts = ["npt.ArrayLike" if part in ARRAYS else part for part in each.type.split(" | ")]
    return " | ".join(parts)


def test_the_table_has_every_verb_of_the_journal():
    assert sorted(VERBS) == sorted(replaying.VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_has_the_parameters_of_the_method_of_links(verb):
    parameters = list(inspect.signature(getattr(Links, verb)).parameters.values())[1:]
    told = [(p.name, p.kind is p.KEYWORD_ONLY, p.annotation) for p in parameters]
    assert [(f.name, f.kw_only, annotation_of(f)) for f in fields(VERBS[verb])] == told
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    assert {f.name: f.default for f in fields(VERBS[verb]) if f.name in defaults} == defaults
    required = [p.name for p in parameters if p.name not in defaults]
    assert VERBS[verb].json_schema()["required"] == required


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_returns_what_the_method_of_links_returns(verb):
    function = inspect.signature(VERBS[verb].function)
    assert function.return_annotation == inspect.signature(getattr(Links, verb)).return_annotation


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_means_what_the_method_of_links_says(verb):
    assert VERBS[verb].meaning() == inspect.getdoc(getattr(Links, verb)).splitlines()[0]
    assert list(VERBS[verb].parameter_docs()) == [each.name for each in fields(VERBS[verb])]


@pytest.mark.parametrize("verb", VERBS)
def test_the_schema_of_a_verb_is_json_and_describes_every_parameter(verb):
    schema = json.loads(json.dumps(VERBS[verb].json_schema()))
    assert list(schema["properties"]) == [each.name for each in fields(VERBS[verb])]
    assert all(each["description"] for each in schema["properties"].values())


CALLS = {
    "add": ({"x": X[0]}, write_requests.add_request("add", X[0], 1.0, None, None, None)),
    "add with options": (
        {"x": X[0], "weight": 0, "group": "photo"},
        write_requests.add_request("add", X[0], 0, "photo", None, None),
    ),
    "add_many": (
        {"X": X, "weight": [1, 0.5, 1]},
        write_requests.add_request("add_many", X, [1, 0.5, 1], None, None, None),
    ),
    "add_group": (
        {"X": X, "group": "photo"},
        write_requests.add_request("add_group", X, 1.0, "photo", None, None),
    ),
    "enrol": ({"name": "Ann", "X": X}, write_requests.enrol_request("Ann", X, True, None)),
    "same": (
        {"a": 1, "b": 2},
        write_requests.verb_request("same", {"a": 1, "b": 2, "of": "vectors"}, None),
    ),
    "name": (
        {"cluster": 0, "name": "Ann"},
        write_requests.verb_request("name", {"cluster": 0, "name": "Ann", "claim": False}, None),
    ),
    "rename": (
        {"cluster": 0, "name": None},
        write_requests.verb_request("rename", {"cluster": 0, "name": None}, None),
    ),
    "remove": ({"vector": np.int64(3)}, write_requests.remove_request(3, None, None, None, None)),
    "remove by coordinates": (
        {"vector": X[0], "cluster": 2, "weight": 1.0},
        write_requests.remove_request(X[0], None, 2, 1.0, None),
    ),
    "undo": ({}, write_requests.undo_request(None, False, None)),
    "settle": ({"apply": True}, write_requests.verb_request("settle", {}, None)),
}


@pytest.mark.parametrize("call", CALLS)
def test_the_journal_stores_the_same_arguments_as_before(call):
    arguments, ticket = CALLS[call]
    verb = VERBS[call.split()[0]].parse(arguments)
    assert json.dumps(verb.journal_arguments(), sort_keys=True) == json.dumps(
        ticket.arguments, sort_keys=True
    )
    assert (verb.vectors is None) == (ticket.rows is None)
    again = type(verb).from_journal(ticket.arguments, ticket.rows)
    assert json.dumps(again.journal_arguments(), sort_keys=True) == json.dumps(
        ticket.arguments, sort_keys=True
    )


def test_performing_a_verb_is_calling_the_method():
    one, two = Links(0.7, 0.6, 0.9), Links(0.7, 0.6, 0.9)
    for verb, arguments in [
        ("add_many", {"X": X}),
        ("add_group", {"X": X[:2], "group": "photo"}),
        ("same", {"a": 0, "b": 1}),
        ("name", {"cluster": 0, "name": "Ann"}),
        ("remove", {"vector": 2}),
        ("undo", {}),
        ("settle", {"apply": True}),
    ]:
        answer = VERBS[verb].parse(arguments).perform(one.core)
        expected = getattr(two, verb)(**arguments)
        assert str(answer) == str(expected)
    assert one.state_hash() == two.state_hash()


def test_json_goes_there_and_back():
    verb = AddGroup(X, group="photo", weight=np.array([1.0, 0.5, 1.0]))
    told = json.loads(json.dumps(verb.to_json()))
    assert AddGroup.parse(told).to_json() == told
    settle = Settle(thresholds=Thresholds(0.7, 0.6, 0.9)).to_json()
    assert settle["thresholds"]["cluster_similarity"] == 0.7


@pytest.mark.parametrize("arguments", [{"a": 1}, {"a": 1, "b": 2, "c": 3}])
def test_missing_and_unknown_arguments_are_refused(arguments):
    with pytest.raises(ArgumentError, match="arguments of same"):
        Same.parse(arguments)


def test_a_removal_by_number_and_coordinates_keeps_both():
    verb = Remove.from_journal({"vector": 3}, X[:1])
    assert (verb.vector, verb.x.tolist()) == (3, X[0].tolist())
