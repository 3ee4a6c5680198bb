"""Events as plain values, both ways; the page that documents them one by one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from linkstream import Links
from linkstream.engine import event_values, events
from linkstream.engine.event_values import numbers_of
from linkstream.errors import ArgumentError
from streams import KINDS, make

PAGE = Path(__file__).resolve().parents[2] / "docs/events.md"


@pytest.mark.parametrize("kind", KINDS)
def test_every_event_survives_json(kind):
    stream = make(kind, 0)
    links = Links(*stream.thresholds, heal="settle")
    links.add_many(stream.vectors)
    for event in links.events():
        assert event_values.from_dict(json.loads(json.dumps(event.to_dict()))) == event


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"kind": "evaporated", "sequence": 0, "vector": 0},
        {"kind": "joined", "sequence": 0, "vector": 0, "subcluster": 0},
        {"kind": "joined", "sequence": 0, "vector": 0, "subcluster": 0, "cluster": "0"},
        {"kind": "joined", "sequence": 0, "vector": 0, "subcluster": 0, "cluster": 0, "x": 1},
        {"kind": "joined", "version": 2, "sequence": 0, "vector": 0, "subcluster": 0, "cluster": 0},
    ],
)
def test_what_is_no_event_is_refused(values):
    with pytest.raises(ArgumentError):
        event_values.from_dict(values)


def test_the_page_documents_every_kind_with_its_fields():
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \|", PAGE.read_text("utf-8"), flags=re.M)
    documented = {kind: re.findall(r"`(\w+)`", names) for kind, names in rows}
    real = {event.kind: numbers_of(event) for event in events.CLASSES}
    assert documented == real
