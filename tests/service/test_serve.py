"""Serving: addresses, start and stop."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import stat
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from linkstream.errors import ArgumentError, MissingExtraError, StoreError
from linkstream.service import running, tokens
from linkstream.service.sessions import Sessions
from linkstream.service.settings import Settings
from linkstream.store import Store
from loopback import own_address

MADE_WITH = {
    "thresholds": {
        "cluster_similarity": 0.7,
        "subcluster_similarity": 0.6,
        "pair_similarity_max": 0.9,
    }
}


def settings_of(tmp_path, **options):
    return Settings(data=tmp_path / "data", **{"port": 0} | options)


def call(url, method, path, body=None, token=None):
    """Return the status and the body of an answer."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    if body is not None:
        headers["Content-Type"] = "application/json"
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def has_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def pretend(monkeypatch, *answers):
    """Make host names resolve to these addresses, in turn."""
    left = list(answers)

    def found(host, port, **_):
        addresses = left.pop(0)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", found)


# Where it may listen


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "127.1", "localhost", "::1", "[::1]"])
def test_loopback_needs_no_token(tmp_path, host):
    if ":" in host and not has_ipv6():
        pytest.skip("no IPv6 here")
    addresses = [name[0] for _, name in running.check(settings_of(tmp_path, host=host))]
    assert addresses
    assert all(map(running.is_loopback, addresses))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "0", "192.0.2.1", "::ffff:192.0.2.1"])
def test_a_host_beyond_loopback_needs_a_token(tmp_path, host):
    settings = settings_of(tmp_path, host=host)
    for attempt in (running.check, running.serve):
        with pytest.raises(ArgumentError, match="token create"):
            attempt(settings)
    assert not settings.data.exists()


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1.example.org", "localhost", "", "1270.0.0.1", "::ffff:10.0.0.1", "fe80::1"],
)
def test_addresses_that_resemble_loopback_are_not_loopback(address):
    assert not running.is_loopback(address)


def test_a_name_with_another_address_is_not_loopback(tmp_path, monkeypatch):
    pretend(monkeypatch, ["127.0.0.1", "192.0.2.7"])
    with pytest.raises(ArgumentError, match="other machines can reach"):
        running.check(settings_of(tmp_path, host="localhost"))


def test_the_service_listens_at_the_addresses_it_checked(tmp_path, monkeypatch):
    pretend(monkeypatch, ["127.0.0.1"], ["0.0.0.0"])
    sockets = running.prepare(settings_of(tmp_path, host="box"))
    try:
        assert [one.getsockname()[0] for one in sockets] == ["127.0.0.1"]
    finally:
        for one in sockets:
            one.close()


def test_the_service_listens_anywhere_with_a_valid_token(tmp_path):
    settings = settings_of(tmp_path, host="0.0.0.0")
    settings.data.mkdir()
    token, secret = tokens.create(settings.token_file, {"*": "read"})
    with running.background(settings) as url:
        assert urlsplit(url).hostname == "127.0.0.1"  # which a browser can go to
        assert call(url, "GET", "/v1/namespaces")[0] == 401
        assert call(url, "GET", "/v1/namespaces", token=secret)[0] == 200
    tokens.revoke(settings.token_file, token.id)
    with pytest.raises(ArgumentError, match="no valid token"):
        running.check(settings)


def test_an_expired_token_does_not_count(tmp_path):
    settings = settings_of(tmp_path, host="0.0.0.0")
    settings.data.mkdir()
    tokens.create(settings.token_file, {"*": "admin"}, seconds=60, now=1_000_000_000.0)
    with pytest.raises(ArgumentError, match="no valid token"):
        running.check(settings)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_damaged_token_file_prevents_the_start(tmp_path, host):
    settings = settings_of(tmp_path, host=host)
    settings.data.mkdir()
    settings.token_file.write_text("{")
    settings.token_file.chmod(0o600)
    with pytest.raises(ArgumentError, match="all calls are refused"):
        running.serve(settings)


def test_a_configured_token_file_must_exist(tmp_path):
    with pytest.raises(ArgumentError, match="would be open"):
        running.check(settings_of(tmp_path, tokens=tmp_path / "misspelt.json"))


def test_a_port_in_use_is_refused(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ArgumentError, match=rf"port {port} at 127\.0\.0\.1 is in use.*--port"):
            running.serve(settings_of(tmp_path, port=port))


@pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")
def test_a_port_in_use_at_one_of_two_addresses_is_refused(tmp_path):
    address = own_address()
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as other:
        port = other.getsockname()[1]
        names = [(address, port), ("::1", port, 0, 0)]
        families = [socket.AF_INET, socket.AF_INET6]
        settings = settings_of(tmp_path, port=port)
        with pytest.raises(ArgumentError, match="at ::1 is in use"):
            running._listening(settings, list(zip(families, names, strict=True)))
        socket.create_server((address, port)).close()  # the first socket was closed


def test_a_host_of_another_machine_is_refused(tmp_path):
    settings = settings_of(tmp_path, host="192.0.2.1")
    settings.data.mkdir()
    tokens.create(settings.token_file, {"*": "admin"})
    with pytest.raises(ArgumentError, match="not an address of this machine"):
        running.serve(settings)


def test_an_unknown_host_name_is_refused(tmp_path):
    with pytest.raises(ArgumentError, match="has no address"):
        running.check(settings_of(tmp_path, host="no-such-host.invalid"))


def test_the_data_folder_is_made_private(tmp_path):
    with running.background(settings_of(tmp_path)):
        assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700


def test_invalid_folders_are_refused_before_anything_is_opened(tmp_path):
    (tmp_path / "file").write_text("")
    for options in ({"data": tmp_path / "file"}, {"data": tmp_path / "a" / "b"}):
        with pytest.raises(ArgumentError, match="data: "):
            running.serve(Settings(port=0, **options))
    with pytest.raises(ArgumentError, match="images: "):
        running.serve(settings_of(tmp_path, images=tmp_path / "none"))


# How it begins and ends


def test_vectors_are_in_the_store_after_the_service_stops(tmp_path):
    settings = settings_of(tmp_path)
    with running.background(settings) as url:
        assert call(url, "GET", "/healthz")[0] == 200
        assert call(url, "PUT", "/v1/namespaces/people", MADE_WITH)[0] == 201
        body = {"vectors": [[1.0, 0.0], [0.0, 1.0]]}
        assert call(url, "POST", "/v1/namespaces/people/vectors", body)[1]["ids"] == [0, 1]
    with Store.open(settings.data / "people.links") as store:
        assert store.n_vectors == 2


@pytest.mark.parametrize("host", ["localhost", "::1"])
def test_the_reported_address_works(tmp_path, host):
    if host == "::1" and not has_ipv6():
        pytest.skip("no IPv6 here")
    with running.background(settings_of(tmp_path, host=host)) as url:
        assert call(url, "GET", "/healthz")[0] == 200


def test_a_token_revoked_while_the_service_runs_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tokens, "CHECK_SECONDS", 0.0)
    settings = settings_of(tmp_path)
    with running.background(settings) as url:
        assert call(url, "GET", "/v1/namespaces")[0] == 200
        token, secret = tokens.create(settings.token_file, {"*": "read"})
        assert call(url, "GET", "/v1/namespaces")[0] == 401
        assert call(url, "GET", "/v1/namespaces", token=secret)[0] == 200
        assert call(url, "PUT", "/v1/namespaces/people", MADE_WITH, token=secret)[0] == 403
        tokens.revoke(settings.token_file, token.id)
        assert call(url, "GET", "/v1/namespaces", token=secret)[0] == 401
        settings.token_file.unlink()
        assert call(url, "GET", "/v1/namespaces")[0] == 401


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["TERM", "INT"])
def test_a_signal_stops_the_service_and_the_signal_handlers_are_restored(tmp_path, number):
    before = signal.getsignal(number)
    answers = []

    def ready(url):
        def use_and_stop():
            answers.append(call(url, "PUT", "/v1/namespaces/people", MADE_WITH)[0])
            os.kill(os.getpid(), number)

        threading.Thread(target=use_and_stop).start()

    running.serve(settings_of(tmp_path), ready=ready)  # returns: it was no failure
    assert answers == [201]
    assert signal.getsignal(number) is before
    with Store.open(tmp_path / "data" / "people.links"):  # nobody holds it any more
        pass


def test_a_failing_ready_callback_stops_the_service(tmp_path):
    def ready(_):
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        running.serve(settings_of(tmp_path), ready=ready)


def test_an_application_that_does_not_start_raises_store_error(tmp_path):
    class Failing(Sessions):
        async def start(self):
            raise OSError("the disk is gone")

    settings = settings_of(tmp_path)
    server = running.server(settings, sessions=Failing(settings))
    with socket.create_server(("127.0.0.1", 0)) as listening, pytest.raises(StoreError):
        server.run_on([listening])


def test_forwarded_headers_are_ignored(tmp_path):
    config = running.server(settings_of(tmp_path)).config
    assert not config.proxy_headers
    assert config.ws_protocol_class is None if config.loaded else config.ws == "none"


@pytest.mark.parametrize("module", ["uvicorn", "fastapi"])
def test_a_missing_extra_is_named(tmp_path, monkeypatch, module):
    ours = ("linkstream.service.app", "linkstream.service.server", "linkstream.service.routes")
    for name in list(sys.modules):
        if name.split(".")[0] == module or name.startswith(ours):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"linkstream\[service\]"):
        running.server(settings_of(tmp_path))


# What the page on security says

SECURITY = (Path(__file__).parents[2] / "docs" / "security.md").read_text("utf-8")


def test_the_security_page_lists_every_route_under_its_scope(tmp_path):
    paths = running.server(settings_of(tmp_path)).config.app.openapi()["paths"]
    scopes = {
        f"{method.upper()} {path.replace('/v1/namespaces/{namespace}', 'N')}": about["x-scope"]
        for path, methods in paths.items()
        for method, about in methods.items()
    }
    told = {
        route: scope
        for scope, row in re.findall(r"^\| (none|any|read|write|admin) \| (.*) \|$", SECURITY, re.M)
        for route in re.findall(r"`([^`]+)`", row)
    }
    assert told == scopes


def test_the_settings_on_the_security_page_are_valid(tmp_path):
    (tmp_path / "service.toml").write_text(re.search(r"```toml\n(.*?)```", SECURITY, re.S)[1])
    assert Settings.load(tmp_path / "service.toml", {}).body_max == 32 << 20
