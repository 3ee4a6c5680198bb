"""Every verb of the table has the same parameters, defaults and return type on every surface."""

import pytest

import parity
from linkstream import Links
from linkstream.clusterer.verbs import VERBS
from linkstream.store import Store

SURFACES = {"Links": Links, "Store": Store}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("surface", SURFACES)
def test_a_verb_is_the_same_on_every_surface(surface, verb):
    method = getattr(SURFACES[surface], verb, None)
    assert parity.differences_of_method(surface, verb, method) == []


def test_differences_are_found():
    def same(self, a: int, b: int = 1, *, of: str = "vectors") -> int:
        """Join."""
        return a

    def move(self, vector, target): ...

    found = "\n".join(parity.differences_of_method("Links", "same", same))
    for words in ("default=1", "returns int, not None", "a has no text", "does not say: Declare"):
        assert words in found
    assert "['vector', 'target'], not" in str(parity.differences_of_method("Links", "move", move))
    assert parity.differences_of_method("Links", "move", None) == ["Links has no method move"]
    assert parity.differences_of_schema("HTTP", "retract", VERBS["retract"].json_schema()) == []
    assert parity.differences_of_schema("HTTP", "move", VERBS["same"].json_schema())
    options = {"cluster": parity.REQUIRED, "on": True}
    assert parity.differences_of_options("command line", "ignore", options) == []
    assert parity.differences_of_options("command line", "ignore", {**options, "on": False})


def test_the_lists_of_differences_name_verbs():
    for listed in (parity.EXTRAS, parity.LEFT_OUT):
        for verbs in listed.values():
            assert set(verbs) <= {parity.ANY_VERB, *VERBS}
