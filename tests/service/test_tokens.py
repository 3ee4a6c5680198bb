"""Tokens: only valid ones are accepted, whatever happens to the file."""

from __future__ import annotations

import hashlib
import os
import stat
import threading

import pytest

from linkstream.errors import ArgumentError
from linkstream.service import tokenfile, tokens
from linkstream.service.tokens import Grant, Tokens

NOW = 1_800_000_000.0


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tokens.json"


@pytest.fixture
def at_once(monkeypatch):
    """Check the file at every call."""
    monkeypatch.setattr(tokens, "CHECK_SECONDS", 0.0)


def made(path, scopes=None, **options):
    return tokens.create(path, scopes or {"*": "admin"}, **options)


# Scopes


@pytest.mark.parametrize("given", tokenfile.SCOPES)
def test_a_scope_includes_the_lower_ones(given):
    grant = Grant({"door": given})
    allowed = [scope for scope in tokenfile.SCOPES if grant.allows(scope, "door")]
    assert allowed == list(tokenfile.SCOPES[: tokenfile.SCOPES.index(given) + 1])


def test_the_scope_of_a_namespace_does_not_extend_to_others_or_the_service():
    grant = Grant({"door": "admin"})
    assert not grant.allows("read", "doors")
    assert not grant.allows("read", None)
    assert not grant.allows("read", "*")
    assert grant.namespaces == {"door"}


def test_a_star_covers_all_namespaces_and_the_higher_scope_counts():
    grant = Grant({"*": "read", "door": "write"})
    assert grant.allows("read", "any")
    assert grant.allows("read", None)
    assert grant.allows("write", "door")
    assert not grant.allows("write", "any")
    assert grant.namespaces is None


def test_an_unknown_scope_allows_nothing():
    with pytest.raises(ValueError, match="tuple"):
        Grant({"*": "admin"}).allows("owner", "door")


# Who gets in


def test_without_a_file_no_token_is_needed(path):
    found = Tokens.load(path)
    assert not found.any
    assert found.grant(None).allows("admin", None)
    assert not path.exists()


def test_only_the_secret_gets_the_scopes(path):
    token, secret = made(path, {"door": "write"})
    found = Tokens.load(path)
    assert found.any
    grant = found.grant(secret)
    assert (grant.scopes, grant.token.id) == ({"door": "write"}, token.id)
    flipped = secret[:-1] + ("A" if secret[-1] != "A" else "B")
    for other in (
        None,
        "",
        secret[:-1],
        secret + "A",
        secret + "\n",
        flipped,
        secret.upper(),
        f"lsk_{token.id}_",
        f"lsk_{'0' * 12}_{secret[17:]}",
        token.sha256,
        f"lsk_{token.id}_{token.sha256[:43]}",
        "lsk_" + "é" * 56,
        "\ud800" * 60,
        "x" * 1_000_000,
    ):
        assert found.grant(other) is None, other


def test_a_secret_of_one_token_under_the_id_of_another_is_wrong(path):
    (first, one), (second, _) = made(path), made(path)
    assert Tokens.load(path).grant(one.replace(first.id, second.id)) is None


def test_hashes_are_compared_in_constant_time_even_for_unknown_ids(path, monkeypatch):
    _, secret = made(path)
    compared = []
    monkeypatch.setattr(
        tokens.hmac, "compare_digest", lambda a, b: compared.append((a, b)) or False
    )
    found = Tokens.load(path)
    assert found.grant(secret) is None
    assert found.grant(f"lsk_{'0' * 12}_{secret[17:]}") is None
    assert [len(a) == len(b) == 64 for a, b in compared] == [True, True]


def test_an_expired_token_is_refused_and_does_not_open_the_service(path):
    _, secret = made(path, seconds=60, now=NOW)
    time = [NOW]
    found = Tokens.load(path, clock=lambda: time[0])
    grant = found.grant(secret)
    time[0] = NOW + 59
    assert found.grant(secret) is not None
    assert found.holds(grant)
    time[0] = NOW + 60
    assert found.grant(secret) is None
    assert not found.holds(grant)
    assert found.any
    assert found.live() == []
    assert found.grant(None) is None


# The file


def test_the_file_has_no_secret_and_only_its_owner_reads_it(path):
    before = os.umask(0)
    try:
        token, secret = made(path)
    finally:
        os.umask(before)
    text = path.read_text()
    assert secret not in text
    assert secret.rpartition(token.id)[2][1:] not in text
    assert hashlib.sha256(secret.encode()).hexdigest() in text
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert secret not in repr(token)
    assert token.sha256 not in repr(token)
    assert os.listdir(path.parent) == ["tokens.json"]


def test_secrets_are_long_and_unique(path):
    secrets = [made(path)[1] for _ in range(20)]
    assert len(set(secrets)) == 20
    assert {len(secret) for secret in secrets} == {4 + 12 + 1 + 43}
    found = Tokens.load(path)
    assert all(found.grant(secret) for secret in secrets)


def test_a_failed_write_leaves_the_file_unchanged(path, monkeypatch):
    _, secret = made(path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        made(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["tokens.json"]
    assert Tokens.load(path).grant(secret)


def test_concurrent_changes_lose_nothing(path):
    threads = [threading.Thread(target=made, args=(path,)) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tokenfile.read(path)) == 12


@pytest.mark.parametrize("scopes", [{}, {"*": "owner"}, {"A": "read"}, {"../x": "read"}, {"a": 1}])
def test_invalid_scopes_are_refused_and_nothing_is_written(path, scopes):
    with pytest.raises(ArgumentError):
        tokens.create(path, scopes)
    assert not path.exists()


def test_a_label_is_any_text_up_to_a_limit(path):
    label = "<b>\u202e\x1b[2J\n日本"
    assert made(path, label=label)[0].label == label
    assert tokenfile.read(path)[0].label == label
    for wrong in ("x" * 201, "\ud800"):
        with pytest.raises(ArgumentError, match="label"):
            made(path, label=wrong)


# Rotation and revocation


def test_both_tokens_work_during_the_overlap_of_a_rotation(path):
    old, old_secret = made(path, {"door": "write"}, label="door", now=NOW)
    new, new_secret, ending = tokens.rotate(path, old.id, overlap=3_600, now=NOW)
    assert (new.scopes, new.label, new.expires) == ({"door": "write"}, "door", None)
    assert (ending.id, ending.expires) == (old.id, NOW + 3_600)
    time = [NOW + 3_599]
    found = Tokens.load(path, clock=lambda: time[0])
    assert found.grant(old_secret)
    assert found.grant(new_secret)
    time[0] = NOW + 3_600
    assert found.grant(old_secret) is None
    assert found.grant(new_secret)


def test_rotating_extends_no_token(path):
    old, _ = made(path, seconds=100, now=NOW)
    new, _, ending = tokens.rotate(path, old.id, overlap=3_600, now=NOW + 50)
    assert ending.expires == NOW + 100
    assert new.expires == NOW + 50 + 100


def test_a_token_is_revoked_by_id_or_by_secret(path):
    (first, _), (second, secret) = made(path), made(path)
    assert tokens.revoke(path, first.id) == (first, 1)
    assert tokens.revoke(path, secret) == (second, 0)
    with pytest.raises(ArgumentError, match="token list"):
        tokens.revoke(path, first.id)


# While a service runs


@pytest.mark.usefixtures("at_once")
def test_changes_of_the_file_take_effect(path):
    token, secret = made(path)
    found = Tokens.load(path)
    grant = found.grant(secret)
    _, other = made(path)
    assert found.grant(other)
    tokens.revoke(path, token.id)
    assert found.grant(secret) is None
    assert not found.holds(grant)
    assert found.grant(other)


def test_the_file_is_checked_once_a_second(path, monkeypatch):
    _, secret = made(path)
    found = Tokens.load(path)
    looks = []
    real = tokenfile.mark
    monkeypatch.setattr(tokenfile, "mark", lambda path: looks.append(1) or real(path))
    for _ in range(1_000):
        found.grant(secret)
    assert len(looks) <= 5  # once a second


@pytest.mark.usefixtures("at_once")
def test_the_first_token_closes_an_open_service(path):
    found = Tokens.load(path)
    grant = found.grant(None)
    _, secret = made(path)
    assert found.any
    assert found.grant(None) is None
    assert not found.holds(grant)
    assert found.grant(secret)


@pytest.mark.usefixtures("at_once")
def test_revoking_the_last_token_does_not_open_the_service(path):
    token, secret = made(path)
    found = Tokens.load(path)
    tokens.revoke(path, token.id)
    for each in (found, Tokens.load(path)):
        assert each.any
        assert each.grant(None) is None
        assert each.grant(secret) is None


def test_a_symbolic_link_to_the_file_is_followed(path, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    path.symlink_to(tmp_path / "elsewhere" / "tokens.json")
    with pytest.raises(ArgumentError):  # it leads nowhere yet
        Tokens.load(path)
    _, secret = made(tmp_path / "elsewhere" / "tokens.json")
    assert Tokens.load(path).grant(secret)
    made(path)
    assert path.is_symlink()
    assert len(tokenfile.read(path)) == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_written_by_root_belongs_to_the_owner_of_the_folder(path):
    os.chown(path.parent, 12_345, 12_346)
    made(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (12_345, 12_346)
    os.chown(path, 23_456, 23_457)
    made(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (23_456, 23_457)


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(ArgumentError, match="Make it first"):
        made(tmp_path / "none" / "tokens.json")
