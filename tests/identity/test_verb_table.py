"""The table of verbs: the same signatures as `Links`, the same journal arguments as the store."""

import inspect
import json
from dataclasses import asdict, fields

import numpy as np
import pytest

import parity
from linkstream import Links, Thresholds
from linkstream.clusterer.verbs import VERBS, AddGroup, Remove, Same, Settle
from linkstream.errors import ArgumentError
from linkstream.store.write_requests import request_of

X = np.eye(4, dtype=np.float32)[:3]
ARRAYS = {"Vector", "Vectors", "Weights", "VectorOrNumber"}


def annotation_of(each):
    kinds = {**dict.fromkeys(ARRAYS, "npt.ArrayLike"), "VectorNumber": "int"}
    kinds |= {"ClusterOrNew": "int | None", "AnyCluster": "int"}
    kinds["VectorNumbers"] = "int | Sequence[int]"
    parts = [kinds.get(part, part) for part in each.type.split(" | ")]
    return " | ".join(parts)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_has_the_parameters_of_the_method_of_links(verb):
    parameters = list(inspect.signature(getattr(Links, verb)).parameters.values())[1:]
    own = parity.EXTRAS["Links"].get(verb, {})
    parameters = [each for each in parameters if each.name not in own]
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


T = Thresholds(0.7, 0.6, 0.9)
CALLS = {  # the arguments of a call, those that the journal stores, and the number of vectors
    "add": ({"x": X[0]}, {}, 1),
    "add with options": (
        {"x": X[0], "weight": 0, "group": "photo"},
        {"weight": 0.0, "group": "photo"},
        1,
    ),
    "add_many": ({"X": X, "weight": [1, 0.5, 1]}, {"weight": [1.0, 0.5, 1.0]}, 3),
    "add_many of full weight": ({"X": X, "weight": np.ones(3)}, {}, 3),
    "add_many of nothing": ({"X": []}, {}, 0),
    "add_group": ({"X": X, "group": "photo"}, {"key": "photo"}, 3),
    "enrol": ({"name": "Ann", "X": X}, {"name": "Ann", "locked": True}, 3),
    "same": ({"a": 1, "b": 2}, {"a": 1, "b": 2, "of": "vectors"}, 0),
    "different": ({"a": 1, "b": 2, "of": "clusters"}, {"a": 1, "b": 2, "of": "clusters"}, 0),
    "move": ({"vector": 1, "cluster": np.int64(2)}, {"vector": 1, "cluster": 2}, 0),
    "move of several": (
        {"vector": np.array([1, 3]), "cluster": -1},
        {"vector": [1, 3], "cluster": -1},
        0,
    ),
    "remove of several": ({"vector": (1, np.int64(3))}, {"vector": [1, 3]}, 0),
    "accept": (
        {"probability": 0.95},
        {"probability": 0.95, "new": None, "unsure": "hold", "weight": 0.5},
        0,
    ),
    "assign": ({"vector": 1, "cluster": -1}, {"vector": 1, "cluster": -1}, 0),
    "retract": ({"correction": 1}, {"correction": 1}, 0),
    "name": ({"cluster": 0, "name": "Ann"}, {"cluster": 0, "name": "Ann", "claim": False}, 0),
    "rename": ({"cluster": 0, "name": None}, {"cluster": 0, "name": None}, 0),
    "ignore": ({"cluster": 0}, {"cluster": 0, "on": True}, 0),
    "judge": ({"vector": 3, "right": True}, {"vector": 3, "right": True}, 0),
    "remove": ({"vector": np.int64(3)}, {"vector": 3}, 0),
    "remove by number and coordinates": ({"vector": 3, "x": X[0]}, {"vector": 3}, 1),
    "remove by coordinates": (
        {"vector": X[0], "cluster": 2, "weight": 1.0},
        {"cluster": 2, "weight": 1.0},
        1,
    ),
    "forget": ({"cluster": 1}, {"cluster": 1}, 0),
    "undo": ({}, {"to": None}, 0),
    "redo": ({}, {}, 0),
    "settle": ({"apply": True}, {}, 0),
    "rebuild": ({"apply": True}, {}, 0),
    "rebuild with thresholds": ({"apply": True, "thresholds": T}, {"thresholds": asdict(T)}, 0),
    "settle with thresholds": ({"apply": True, "thresholds": T}, {"thresholds": asdict(T)}, 0),
}


def test_every_verb_is_journalled_here():
    assert {call.split()[0] for call in CALLS} == set(VERBS)


@pytest.mark.parametrize("call", CALLS)
def test_the_journal_stores_the_arguments_of_format_1(call):
    arguments, stored, n_rows = CALLS[call]
    request = request_of(VERBS[call.split()[0]].parse(arguments))
    assert request.arguments == stored
    assert json.dumps(request.arguments, sort_keys=True) == json.dumps(stored, sort_keys=True)
    assert (0 if request.rows is None else len(request.rows)) == n_rows
    again = VERBS[request.verb].from_journal(request.arguments, request.rows)
    assert request_of(again).arguments == stored


@pytest.mark.parametrize("weight", [[1.0, 1.0], 2, "much", None])
def test_weights_that_do_not_fit_are_refused_before_they_are_journalled(weight):
    with pytest.raises(ArgumentError, match="weight="):
        request_of(VERBS["add_many"].parse({"X": X, "weight": weight}))


@pytest.mark.parametrize("thresholds", [0.7, {"cluster_similarity": 0.7}])
def test_thresholds_of_another_type_are_refused(thresholds):
    with pytest.raises(ArgumentError, match="thresholds of type"):
        Settle(thresholds=thresholds)


def test_performing_a_verb_equals_calling_the_method():
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


def test_arguments_survive_json():
    verb = AddGroup(X, group="photo", weight=np.array([1.0, 0.5, 1.0]))
    told = json.loads(json.dumps(verb.to_json()))
    assert AddGroup.parse(told).to_json() == told
    settle = Settle(thresholds=Thresholds(0.7, 0.6, 0.9)).to_json()
    assert settle["thresholds"]["cluster_similarity"] == 0.7
    assert Settle.parse(settle).thresholds == Thresholds(0.7, 0.6, 0.9)


@pytest.mark.parametrize("arguments", [{"a": 1}, {"a": 1, "b": 2, "c": 3}])
def test_missing_and_unknown_arguments_are_refused(arguments):
    with pytest.raises(ArgumentError, match="arguments of same"):
        Same.parse(arguments)


def test_a_removal_by_number_and_coordinates_keeps_both():
    verb = Remove.from_journal({"vector": 3}, X[:1])
    assert (verb.vector, verb.x.tolist()) == (3, X[0].tolist())
