"""`linkstream serve`: start, settings and end."""

from __future__ import annotations

import http.client
import json
import os
import signal
import sys
from urllib.parse import urlsplit

import pytest

from cli.command import begin, json_lines, refused, run, shown
from linkstream.service import running, tokens
from linkstream.store import Store

BEYOND = ("--host", "0.0.0.0", "--port", "0")


def ask(url, method, path, body=None):
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
    headers = {"Content-Type": "application/json"} if body is not None else {}
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


STOPPED = "Stopped. What was acknowledged is kept.\n"


def started(process):
    line = process.stdout.readline()
    assert line, process.communicate(timeout=60)
    return json.loads(line)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["TERM", "INT"])
def test_serve_prints_its_address_and_ends_cleanly(tmp_path, number):
    with begin("serve", "stores", "--port", "0", cwd=tmp_path) as process:
        try:
            told = started(process)
            assert told["pid"] == process.pid
            made = {"preset": "ge2e-windows"}
            assert ask(told["url"], "PUT", "/v1/namespaces/people", made)[0] == 201
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, out, err) == (0, "", STOPPED)
    with Store.open(tmp_path / "stores" / "people.links") as store:
        assert store.n_vectors == 0


def test_the_demo_removes_its_folder_at_the_end(tmp_path):
    (tmp_path / "tmp").mkdir()
    place = os.environ | {"TMPDIR": str(tmp_path / "tmp")}
    with begin("serve", "--demo", "--port", "0", cwd=tmp_path, env=place) as process:
        try:
            url, vectors = started(process)["url"], 0
            while vectors <= 120:  # then it goes on by itself
                _, found = ask(url, "GET", "/v1/namespaces")
                vectors = sum(each["vectors"] or 0 for each in found["namespaces"])
            assert [path.name[:15] for path in (tmp_path / "tmp").iterdir()] == ["linkstream-demo"]
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, err) == (0, STOPPED)
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.fixture
def pretended(monkeypatch):
    """Report readiness and the settings without serving."""
    seen = []

    def serve(settings, *, ready):
        seen.append(settings)
        ready("http://127.0.0.1:7777/")

    monkeypatch.setattr(running, "serve", serve)
    return seen


def test_serve_prints_the_dashboard_address_and_how_to_make_a_token(tmp_path, pretended):
    told = shown("serve", "my stores", cwd=tmp_path)
    assert "The page: http://127.0.0.1:7777/" in told
    assert "linkstream token create 'my stores' --scope '*=admin'" in told
    assert "Every program on this machine may call it" in told
    assert pretended[0].data.name == "my stores"
    (tmp_path / "my stores").mkdir()
    tokens.create(tmp_path / "my stores" / "tokens.json", {"*": "admin"})
    assert "Callers need a token" in shown("serve", "my stores", cwd=tmp_path)


def test_flags_become_settings(tmp_path, pretended):
    words = ("--host", "localhost", "--port", "5", "--token-file", "t.json", "--images", "i")
    more = ("--allowed-host", "a.example.org", "--allowed-host", "b.example.org")
    others = ("--set", "body_max=8MiB", "--set", "stop-seconds=3")
    assert run("serve", "stores", *words, *more, *others, cwd=tmp_path).returncode == 0
    (settings,) = pretended
    assert (settings.host, settings.port, str(settings.tokens)) == ("localhost", 5, "t.json")
    assert settings.allowed_hosts == ("a.example.org", "b.example.org")
    assert (settings.body_max, settings.stop_seconds, settings.demo) == (8 << 20, 3.0, False)


def test_the_folder_can_come_from_a_variable_or_a_file(tmp_path, pretended, monkeypatch):
    (tmp_path / "service.toml").write_text('[service]\ndata = "stores"\nport = 9\n')
    assert run("serve", "--config", "service.toml", cwd=tmp_path).returncode == 0
    monkeypatch.setenv("LINKSTREAM_DATA", "others")
    assert run("serve", "--config", "service.toml", cwd=tmp_path).returncode == 0
    assert [settings.data.name for settings in pretended] == ["stores", "others"]
    assert pretended[1].port == 9


def test_the_demo_does_not_use_the_folder_of_the_settings(tmp_path, pretended, monkeypatch):
    monkeypatch.setenv("LINKSTREAM_DATA", "mine")
    assert run("serve", "--demo", cwd=tmp_path).returncode == 0
    assert pretended[0].data.name.startswith("linkstream-demo-")
    assert run("serve", "given", "--demo", cwd=tmp_path).returncode == 0
    assert pretended[1].data.name == "given"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "no data folder"),
        (("stores", *BEYOND), "token create stores"),
        (("stores", "--set", "prot=1"), "Did you mean --port?"),
        (("stores", "--set", "port"), "NAME=VALUE"),
        (("stores", "--set", "body_max=much"), "body_max = 'much'"),
        (("stores", "--port", "70000"), "port = 70000"),
        (("stores", "--config", "none.toml"), "none.toml"),
        (("stores", "--token-file", "none.json"), "none.json"),
        (("stores", "--images", "none"), "images: "),
        (("a/b",), "data: "),
    ],
)
def test_invalid_settings_are_refused_in_one_line_and_create_nothing(tmp_path, words, told):
    assert told in refused(run("serve", *words, cwd=tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_check_prints_the_settings_and_changes_nothing(tmp_path):
    (record,) = json_lines(run("serve", "stores", "--check", cwd=tmp_path).stdout)
    assert record == {
        "data": "stores",
        "addresses": ["127.0.0.1"],
        "port": 7777,
        "tokens": False,
    }
    assert "only this machine can call it" in " ".join(
        shown("serve", "x", "--check", cwd=tmp_path).split()
    )
    assert refused(run("serve", "stores", "--check", *BEYOND, cwd=tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_missing_extra_has_its_own_exit_code(tmp_path, monkeypatch):
    for name in list(sys.modules):
        if name.startswith(("uvicorn", "linkstream.service.server")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    done = run("serve", "stores", "--port", "0", cwd=tmp_path)
    assert "linkstream[service]" in refused(done, code=3)
