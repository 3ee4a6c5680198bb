"""A damaged token file: all calls are refused, and the reason is reported."""

from __future__ import annotations

import json
import logging
import os

import pytest

from linkstream.errors import ArgumentError
from linkstream.service import tokenfile, tokens
from linkstream.service.tokens import Tokens


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tokens.json"


@pytest.fixture
def at_once(monkeypatch):
    """Check the file at every call."""
    monkeypatch.setattr(tokens, "CHECK_SECONDS", 0.0)


def made(path):
    return tokens.create(path, {"*": "admin"})


def changed(path, change):
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


DAMAGE = {
    "gone": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "no tokens": lambda path: path.write_text("{}"),
    "a list": lambda path: path.write_text("[]"),
    "null": lambda path: path.write_text("null"),
    "no text": lambda path: path.write_bytes(b"\xff\xfe" + path.read_bytes()),
    "deep": lambda path: path.write_text("[" * 200_000),
    "a long number": lambda path: path.write_text('{"version": ' + "9" * 10_000 + "}"),
    "NaN": lambda path: path.write_text('{"version": NaN}'),
    "large": lambda path: path.write_bytes(b" " * (tokenfile.BYTES_MAX + 1)),
    "a key twice": lambda path: path.write_text(
        path.read_text().replace('"tokens": [', '"tokens": [], "tokens": [')
    ),
    "a newer version": lambda path: changed(path, lambda d: d.update(version=2)),
    "true as version": lambda path: changed(path, lambda d: d.update(version=True)),
    "an unknown field": lambda path: changed(path, lambda d: d["tokens"][0].update(only="local")),
    "an unknown scope": lambda path: changed(
        path, lambda d: d["tokens"][0].update(scopes={"*": "root"})
    ),
    "no scope": lambda path: changed(path, lambda d: d["tokens"][0].update(scopes={})),
    "a list as scopes": lambda path: changed(path, lambda d: d["tokens"][0].update(scopes=["*"])),
    "a short hash": lambda path: changed(path, lambda d: d["tokens"][0].update(sha256="")),
    "no hash": lambda path: changed(path, lambda d: d["tokens"][0].update(sha256=None)),
    "an odd ID": lambda path: changed(path, lambda d: d["tokens"][0].update(id="../..")),
    "an odd end": lambda path: changed(path, lambda d: d["tokens"][0].update(expires="soon")),
    "an end in numbers": lambda path: changed(path, lambda d: d["tokens"][0].update(expires=5)),
    "an ID twice": lambda path: changed(path, lambda d: d["tokens"].append(d["tokens"][0])),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "a link to nowhere": lambda path: (path.unlink(), path.symlink_to("nowhere")),
    "a link to itself": lambda path: (path.unlink(), path.symlink_to("tokens.json")),
    "written by others": lambda path: path.chmod(0o622),
}


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("kind", DAMAGE)
def test_a_changed_token_file_admits_no_one(path, kind, caplog):
    _, secret = made(path)
    found = Tokens.load(path)
    grant = found.grant(secret)
    with caplog.at_level(logging.ERROR):
        DAMAGE[kind](path)
        for _ in range(3):
            assert found.grant(secret) is None
        assert found.grant(None) is None
        assert found.any
        assert not found.holds(grant)
    assert len(caplog.records) == (kind != "gone")  # told once, not at each request
    assert secret not in caplog.text


@pytest.mark.parametrize("kind", [kind for kind in DAMAGE if kind != "gone"])
def test_an_unusable_token_file_is_reported_and_left_unchanged(path, kind):
    made(path)
    DAMAGE[kind](path)
    before = path.read_bytes() if path.is_file() else None
    for attempt in (lambda: Tokens.load(path), lambda: made(path)):
        with pytest.raises(ArgumentError, match="all calls are refused") as caught:
            attempt()
        assert str(path) in caught.value.seen
    assert before is None or path.read_bytes() == before


@pytest.mark.usefixtures("at_once")
def test_a_restored_token_file_is_used_again(path):
    _, secret = made(path)
    whole = path.read_bytes()
    found = Tokens.load(path)
    path.write_bytes(whole[:-20])
    assert found.grant(secret) is None
    path.write_bytes(whole)
    assert found.grant(secret)
