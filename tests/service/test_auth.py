"""Authorization: every route of the OpenAPI with every kind of token and namespace."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

from linkstream.errors import ArgumentError
from linkstream.service import tokens
from linkstream.service.running import serve
from linkstream.service.settings import Settings
from service.calling import Stream, head, raw_answers
from service.routes import ROUTES, STREAMS, shape
from service.server import MADE_WITH, ThreadService
from store.operations import vectors

LEVELS = ("read", "write", "admin")
X = vectors(np.random.default_rng(1), 12)


@pytest.fixture(scope="module")
def secrets(tmp_path_factory):
    """Return a token file, and the secrets by name."""
    path = tmp_path_factory.mktemp("tokens") / "tokens.json"
    found = {"path": path}
    for scope in LEVELS:
        found[scope] = tokens.create(path, {"mine": scope})[1]
        found[f"{scope} on all"] = tokens.create(path, {"*": scope})[1]
        found[f"{scope} elsewhere"] = tokens.create(path, {"other": scope})[1]
        found[f"{scope} that ended"] = tokens.create(
            path, {"*": scope}, seconds=60.0, now=time.time() - 3_600.0
        )[1]
    return found


@pytest.fixture(scope="module")
def guarded(secrets, tmp_path_factory):
    """Run a service with tokens and two namespaces with vectors."""
    folder = tmp_path_factory.mktemp("guarded")
    images = folder / "images"
    images.mkdir()
    with ThreadService(folder / "data", tokens=secrets["path"], images=images) as held:
        for name in ("mine", "other"):
            path = held.namespace(name, token=secrets["admin on all"])
            answer = held.post(f"{path}/vectors", X, token=secrets["write on all"])
            assert answer.status == 200
        yield held


def asked(service, route, namespace, *, token=None, **headers):
    """Return the answer of a route; of a stream only its beginning."""
    target = route.target(namespace)
    if route in STREAMS:
        with Stream(service.port, target, token=token) as stream:
            return stream.status
    return service.call(route.method, target, route.body, token=token, headers=headers).status


def test_the_routes_agree_with_openapi(guarded):
    told = guarded.get("/openapi.json").json["paths"]
    known = {(route.method, shape(route.path)) for route in ROUTES}
    found = {(method.upper(), shape(path)) for path, methods in told.items() for method in methods}
    assert found >= known - {("GET", "/openapi.json"), ("GET", "/metrics")}
    assert found <= known


def test_openapi_names_the_scope_of_each_route(guarded):
    document = guarded.get("/openapi.json").json
    scopes = {
        (method.upper(), shape(path)): what
        for path, methods in document["paths"].items()
        for method, what in methods.items()
    }
    schemes = document["components"]["securitySchemes"]
    (name,) = [name for name, one in schemes.items() if one.get("scheme", "").lower() == "bearer"]
    for route in ROUTES:
        what = scopes.get((route.method, shape(route.path)))
        if what is None:
            continue
        needs = any(name in one for one in what.get("security", []))
        assert needs == (route.scope != "none"), route.name
        assert what.get("x-scope") == {"all": "read"}.get(route.scope, route.scope), route.name


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_only_open_routes_answer_without_a_valid_token(guarded, secrets, route):
    wanted = 200 if route.scope == "none" else 401
    assert asked(guarded, route, "mine") == wanted
    good = secrets["admin on all"]
    other = tokens.create(secrets["path"].with_name("elsewhere.json"), {"*": "admin"})[1]
    for bad in ("x", other, good[:-1], good + "A", good[:17] + other[17:]):
        assert asked(guarded, route, "mine", token=bad) == wanted, bad
    for scope in LEVELS:
        assert asked(guarded, route, "mine", token=secrets[f"{scope} that ended"]) == wanted
    assert asked(guarded, route, "never-made") == wanted


def allowed(scope, level, *, here, everywhere):
    """Return whether a token of a level may call a route of a scope."""
    if scope in ("none", "any"):
        return True
    if scope == "all":
        return everywhere
    return here and LEVELS.index(level) >= LEVELS.index(scope)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_a_token_allows_exactly_its_scope(guarded, secrets, route, level):
    # Everything that may change something is asked about where it is not allowed, first.
    where = {
        f"{level} elsewhere": {"here": False, "everywhere": False},
        level: {"here": True, "everywhere": False},
        f"{level} on all": {"here": True, "everywhere": True},
    }
    for name, reach in where.items():
        status = asked(guarded, route, "mine", token=secrets[name])
        if allowed(route.scope, level, **reach):
            assert status not in (401, 403), (name, status)
        else:
            assert status == 403, (name, status)


def test_a_refused_caller_cannot_tell_whether_a_namespace_exists(guarded, secrets):
    for route in ROUTES:
        if "{namespace}" not in route.path or route in STREAMS:
            continue
        there, not_there = (
            guarded.call(route.method, route.target(name), route.body, token=secrets["admin"])
            for name in ("other", "nobody")
        )
        assert there.status == not_there.status == 403
        assert there.body.replace(b"other", b"nobody") == not_there.body, route.name


def test_lists_contain_only_readable_namespaces(guarded, secrets):
    names = lambda token: {  # noqa: E731
        one["name"] for one in guarded.get("/v1/namespaces", token=token).json["namespaces"]
    }
    assert names(secrets["read"]) == {"mine"}
    assert names(secrets["admin elsewhere"]) == {"other"}
    assert names(secrets["read on all"]) == {"mine", "other"}
    assert guarded.get("/v1/whoami", token=secrets["write"]).json == {
        "scopes": {"mine": "write"},
        "tokens": True,
    }
    health = guarded.get("/healthz").body
    assert b"mine" not in health
    assert b"other" not in health


def test_making_a_namespace_needs_the_scope_admin(guarded, secrets):
    assert guarded.put("/v1/namespaces/fresh", MADE_WITH, token=secrets["admin"]).status == 403
    assert (
        guarded.put("/v1/namespaces/fresh", MADE_WITH, token=secrets["write on all"]).status == 403
    )
    assert not (guarded.data / "fresh.links").exists()


HEADERS = {
    "Basic": "Basic YTpi",
    "nothing after Bearer": "Bearer",
    "nothing but a space": "Bearer ",
    "two": "Bearer {good} {good}",
    "quotes": 'Bearer "{good}"',
    "no scheme": "{good}",
    "another scheme": "Token {good}",
    "noise": "Bearer \xff\xfe\x80",
    "very long": "Bearer " + "a" * 30_000,
    "a comma": "Bearer x, Bearer {good}",
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_invalid_authorization_headers_are_refused(guarded, secrets, header):
    value = header.replace("{good}", secrets["read"])
    answers = raw_answers(guarded.port, head("GET", "/v1/whoami", authorization=value))
    assert [answer.status for answer in answers] in ([401], [400], [431]), answers


def test_the_word_bearer_is_case_insensitive(guarded, secrets):
    for word in ("Bearer", "bearer", "BEARER"):
        headers = {"Authorization": f"{word} {secrets['read']}"}
        assert guarded.get("/v1/whoami", headers=headers).status == 200


def test_a_token_outside_the_header_is_ignored(guarded, secrets):
    good = secrets["admin on all"]
    for query in (f"token={good}", f"access_token={good}", f"authorization=Bearer%20{good}"):
        assert guarded.get(f"/v1/whoami?{query}").status == 401
    for name in ("Cookie", "X-Authorization", "Proxy-Authorization"):
        assert guarded.get("/v1/whoami", headers={name: f"Bearer {good}"}).status == 401


def test_two_authorization_headers_are_refused(guarded, secrets):
    lines = head("GET", "/v1/namespaces/mine").decode()[:-2]
    for first, second in (("lsk_bad", secrets["read"]), (secrets["read"], "lsk_bad")):
        text = f"{lines}authorization: Bearer {first}\r\nauthorization: Bearer {second}\r\n\r\n"
        (answer,) = raw_answers(guarded.port, text.encode())
        assert answer.status in (200, 400, 401)


def test_the_token_is_checked_before_the_body_is_read(guarded):
    for body in (b"[" * 100_000, bytes(40 << 20)):
        headers = {"Content-Type": "application/json"}
        request = head("POST", "/v1/namespaces/mine/vectors", length=len(body), **headers)
        answer = raw_answers(guarded.port, request + body[:1_000])[0]
        assert answer.status == 401


def test_unknown_methods_are_refused(guarded, secrets):
    for method in ("OPTIONS", "TRACE", "DELETE", "PATCH", "PROPFIND"):
        for token in (None, secrets["admin on all"]):
            more = {} if token is None else {"authorization": f"Bearer {token}"}
            for path in ("/v1/namespaces/mine", "/v1/namespaces/mine/vectors"):
                (answer,) = raw_answers(guarded.port, head(method, path, **more))
                assert answer.status in (400, 401, 403, 404, 405), (method, answer)
    assert guarded.get("/v1/namespaces/mine", token=secrets["read"]).status == 200


# While it runs


@pytest.fixture
def _soon(monkeypatch):
    """Let the service check the token file often."""
    monkeypatch.setattr(tokens, "CHECK_SECONDS", 0.02)


@pytest.mark.usefixtures("_soon")
def test_a_token_can_be_made_and_revoked_while_the_service_runs(tmp_path):
    path = tmp_path / "tokens.json"
    first, secret = tokens.create(path, {"*": "admin"})
    with ThreadService(tmp_path / "data", tokens=path) as service:
        assert service.get("/v1/whoami", token=secret).status == 200
        second, fresh = tokens.create(path, {"*": "read"})
        time.sleep(5 * tokens.CHECK_SECONDS)
        assert service.get("/v1/whoami", token=fresh).status == 200
        assert service.get("/v1/whoami", token=secret).status == 200
        tokens.revoke(path, first.id)
        time.sleep(5 * tokens.CHECK_SECONDS)
        assert service.get("/v1/whoami", token=secret).status == 401
        assert service.get("/v1/whoami", token=fresh).status == 200
        tokens.revoke(path, second.id)
        time.sleep(5 * tokens.CHECK_SECONDS)
        for token in (None, secret, fresh):
            assert service.get("/v1/whoami", token=token).status == 401


@pytest.mark.usefixtures("_soon")
@pytest.mark.parametrize("harm", ["gone", "damaged", "empty", "a folder"])
def test_calls_are_refused_if_the_token_file_is_missing_or_damaged(tmp_path, harm):
    path = tmp_path / "tokens.json"
    tokens.create(path, {"*": "admin"})
    with ThreadService(tmp_path / "data", tokens=path) as service:
        path.unlink()
        if harm == "a folder":
            path.mkdir()
        elif harm != "gone":
            path.write_text("" if harm == "empty" else json.dumps({"tokens": "all"}))
        time.sleep(5 * tokens.CHECK_SECONDS)
        for route in ROUTES:
            if route.scope != "none":
                assert asked(service, route, "mine") == 401


@pytest.mark.usefixtures("_soon")
def test_a_stream_ends_when_its_token_is_revoked_or_expires(tmp_path):
    path = tmp_path / "tokens.json"
    _, admin = tokens.create(path, {"*": "admin"})
    token, secret = tokens.create(path, {"mine": "read"})
    with ThreadService(tmp_path / "data", tokens=path) as service:
        mine = service.namespace("mine", token=admin)
        service.post(f"{mine}/vectors", X[:3], token=admin)
        with Stream(service.port, f"{mine}/events/stream?since=0", token=secret) as stream:
            assert len(stream.take(3)) == 3
            tokens.revoke(path, token.id)
            time.sleep(5 * tokens.CHECK_SECONDS)
            service.post(f"{mine}/vectors", X[3:6], token=admin)
            late = time.monotonic()
            assert list(stream) == []
            assert time.monotonic() - late < 30.0


# Beyond loopback


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", "0", ""])
def test_the_service_does_not_listen_beyond_loopback_without_a_token(tmp_path, host):
    with pytest.raises(ArgumentError):
        serve(Settings(data=tmp_path / "data", host=host, port=0), ready=_must_not)


def test_the_service_does_not_listen_beyond_loopback_with_expired_tokens(tmp_path):
    path = tmp_path / "tokens.json"
    tokens.create(path, {"*": "admin"}, seconds=60.0, now=time.time() - 3_600.0)
    with pytest.raises(ArgumentError):
        serve(
            Settings(data=tmp_path / "data", host="0.0.0.0", port=0, tokens=path), ready=_must_not
        )


def _must_not(url):
    raise AssertionError(f"it listens at {url}")
