"""Both clients have every verb of the table, with the parameters and return types of `Links`."""

import inspect

import pytest

import parity
from linkstream import Links
from linkstream.client import AsyncClient, Client
from linkstream.clusterer.verbs import VERBS
from linkstream.store import Store


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_verb_of_a_client_is_that_of_links(kind, verb):
    assert parity.differences_of_method("Client", verb, getattr(kind, verb, None)) == []
    assert next(iter(inspect.signature(getattr(kind, verb)).parameters)) == "self"


@pytest.mark.parametrize(
    "name",
    ["predict", "predict_proba", "resolve_many", "explain_pair", "labels", "state_hash"],
)
def test_a_read_of_a_client_has_the_documentation_of_links(name):
    assert inspect.getdoc(getattr(Client, name)) == inspect.getdoc(getattr(Links, name))


@pytest.mark.parametrize("kind", [Store, Client, AsyncClient])
def test_predict_proba_has_the_parameters_and_the_return_type_of_links(kind):
    ours, theirs = (inspect.signature(each.predict_proba) for each in (Links, kind))
    assert list(ours.parameters.values()) == list(theirs.parameters.values())
    assert ours.return_annotation == theirs.return_annotation


def test_every_surface_has_the_confidence():
    for kind in (Links, Store, Client):
        assert isinstance(kind.confidence, property)
        assert "why they may be unknown" in kind.confidence.__doc__
