"""The bodies of the HTTP routes have the parameters, defaults and texts of the table of verbs."""

from __future__ import annotations

import pytest

import parity
from linkstream.clusterer.verbs import VERBS
from linkstream.service import schemas
from linkstream.service.routing import inline
from service.server import MADE_WITH

# Names that HTTP has for fields, by verb. Vectors have names of their own in all bodies.
NAMES = {
    "add": {"vector": "x"},
    "add_many": {"vectors": "X", "weights": "weight"},
    "add_group": {"vectors": "X", "weights": "weight"},
    "enrol": {"vectors": "X"},
}


def body(verb):
    """Return the schema of a body with the names of the table."""
    schema, names = inline(schemas.BODIES[verb]), NAMES.get(verb, {})
    properties = {names.get(name, name): each for name, each in schema["properties"].items()}
    required = [names.get(name, name) for name in schema.get("required", [])]
    if "weights" in names:
        assert properties["weight"].pop("default") is None  # null: full weight for all
        properties["weight"]["default"] = 1.0
    return {**schema, "properties": properties, "required": required}


@pytest.mark.parametrize("verb", VERBS)
def test_the_body_of_a_verb_is_that_of_the_table(verb):
    schema = body(verb)
    assert parity.differences_of_schema("HTTP", verb, schema) == []
    assert schema["description"] == VERBS[verb].meaning()


def test_a_group_is_named_by_group_and_by_its_old_name_key(service):
    rows = [[1.0, 0.0, 0.0], [0.99, 0.1, 0.0]]
    for number, (place, name) in enumerate([(p, n) for p in "bq" for n in ("group", "key")]):
        path = f"/v1/namespaces/g{number}"
        assert service.put(path, MADE_WITH).status == 201
        for row in rows:
            more, query = ({name: "photo"}, "") if place == "b" else ({}, f"?{name}=photo")
            answer = service.post(f"{path}/groups{query}", {"vectors": [row], **more})
            assert answer.status == 200, answer.body
        assert service.get(f"{path}/labels").json["labels"] == [0, 1]
    both = {"vectors": rows[:1], "group": "photo", "key": "photo"}
    assert service.post(f"{path}/groups", both).status == 400
