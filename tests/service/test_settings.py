"""Settings: sources and their precedence; wrong values are refused before anything runs."""

from __future__ import annotations

import sys
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest

from linkstream.errors import ArgumentError, MissingExtraError
from linkstream.service.settings import Settings


def load(config=None, environment=None, **flags):
    return Settings.load(config, environment or {}, {"data": "stores"} | flags)


def written(tmp_path, text):
    path = tmp_path / "service.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refused(*arguments, **options):
    with pytest.raises(ArgumentError) as caught:
        load(*arguments, **options)
    assert all((caught.value.seen, caught.value.expected, caught.value.remedy))
    return str(caught.value)


# Sources


def test_the_default_host_is_loopback():
    settings = load()
    assert (settings.host, settings.port, settings.allowed_hosts) == ("127.0.0.1", 7777, ())
    assert settings.token_file == Path("stores") / "tokens.json"
    assert not settings.open_metrics


def test_flags_override_variables_and_variables_override_the_file(tmp_path):
    path = written(tmp_path, "[service]\nport = 1\nrows_max = 1\nname_max = 1\n")
    variables = {"LINKSTREAM_PORT": "2", "LINKSTREAM_ROWS_MAX": "2"}
    settings = load(path, variables, port=3)
    assert (settings.port, settings.rows_max, settings.name_max) == (3, 2, 1)


def test_a_flag_of_none_is_ignored():
    assert load(None, {"LINKSTREAM_PORT": "2"}, port=None).port == 2


def test_the_file_can_be_named_by_a_variable(tmp_path):
    path = written(tmp_path, "[service]\nport = 9\n")
    assert load(None, {"LINKSTREAM_CONFIG": str(path)}).port == 9


def test_paths_in_a_file_start_at_its_folder(tmp_path):
    path = written(tmp_path, '[service]\ndata = "stores"\nimages = "/srv/images"\n')
    settings = Settings.load(path, {})
    assert (settings.data, settings.images) == (tmp_path / "stores", Path("/srv/images"))


def test_every_setting_can_come_from_a_variable():
    values = {
        "data": "x",
        "host": "::1",
        "allowed_hosts": "A.example.org, b.example.org",
        "tokens": "t.json",
        "images": "i",
        "threads": "all",
        "engine": "reference",
        "open_metrics": "yes",
        "demo": "off",
    }
    for field in fields(Settings):
        values.setdefault(field.name, "7")
    settings = Settings.load(None, {f"LINKSTREAM_{k.upper()}": v for k, v in values.items()})
    assert settings.allowed_hosts == ("a.example.org", "b.example.org")
    assert (settings.threads, settings.open_metrics, settings.demo) == (None, True, False)
    assert (settings.body_max, settings.idle_seconds) == (7, 7.0)


def test_an_empty_variable_is_ignored():
    assert load(None, {"LINKSTREAM_PORT": ""}).port == 7777


def test_variables_of_kubernetes_are_ignored():
    others = {
        "LINKSTREAM_PORT": "tcp://10.0.0.1:7777",
        "LINKSTREAM_PORT_7777_TCP_ADDR": "10.0.0.1",
        "LINKSTREAM_SERVICE_HOST": "10.0.0.1",
        "LINKSTREAM_SERVICE_PORT_HTTP": "7777",
        "LINKSTREAM_TOKEN": "lsk_x",
        "LINKSTREAM_KERNEL": "portable",
    }
    assert load(None, others) == load()


@pytest.mark.parametrize(
    ("said", "meant"), [("32MiB", 32 << 20), ("1 gib", 1 << 30), ("5", 5), (5, 5), ("2KiB", 2048)]
)
def test_bytes_may_have_units(said, meant):
    assert load(body_max=said).body_max == meant


# Refusals


def test_an_unknown_name_is_refused_with_a_suggestion(tmp_path):
    path = written(tmp_path, "[service]\nprot = 1\n")
    assert "Did you mean port?" in refused(path)
    assert "LINKSTREAM_BODY_MAX" in refused(None, {"LINKSTREAM_BODYMAX": "1"})
    assert "--host" in refused(hots="x")


def test_a_missing_data_folder_is_refused():
    with pytest.raises(ArgumentError, match="no data folder"):
        Settings.load(None, {})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", -1),
        ("port", 65_536),
        ("port", True),
        ("port", 7777.0),
        ("port", "0x10"),
        ("port", "٣"),
        ("host", ""),
        ("host", "http://127.0.0.1"),
        ("host", "a b"),
        ("host", "a\nb"),
        ("host", 1),
        ("data", ""),
        ("data", "a\0b"),
        ("tokens", 5),
        ("allowed_hosts", "*"),
        ("allowed_hosts", ["http://x"]),
        ("allowed_hosts", ["x:80"]),
        ("allowed_hosts", [1]),
        ("allowed_hosts", {"x": 1}),
        ("body_max", 0),
        ("body_max", "32 MB"),
        ("body_max", "-1"),
        ("body_max", "9" * 5_000),
        ("rows_max", "1MiB"),
        ("rows_max", [1]),
        ("receive_seconds", 0),
        ("receive_seconds", "nan"),
        ("receive_seconds", float("inf")),
        ("receive_seconds", True),
        ("receive_seconds", 10**400),
        ("threads", 0),
        ("threads", "some"),
        ("engine", "gpu"),
        ("engine", ["auto"]),
        ("open_metrics", "maybe"),
        ("open_metrics", 1),
    ],
)
def test_an_invalid_value_is_refused_by_name(name, value):
    assert refused(**{name: value}).startswith(f"{name} = ")


@pytest.mark.parametrize(
    "text",
    [
        "port = 1",
        "service = 3",
        "[[service]]\nport = 1",
        "[service]\nport = ",
        "[service]\nport = 1\nport = 2",
        b"[service]\nhost = '\xff'",
        b"\x00",
        "[service]\nx = " + "[" * 100_000,
    ],
)
def test_an_invalid_file_is_refused(tmp_path, text):
    assert "service.toml" in refused(written(tmp_path, text))


def test_other_tables_of_a_file_are_ignored(tmp_path):
    assert load(written(tmp_path, "[other]\nx = 1\n[service]\nport = 5\n")).port == 5


def test_a_missing_file_is_refused(tmp_path):
    assert "No such file" in refused(tmp_path / "none.toml")
    assert "service" in refused(tmp_path)


def test_settings_are_immutable():
    with pytest.raises(FrozenInstanceError):
        load().port = 5


@pytest.mark.skipif(sys.version_info < (3, 11), reason="there it is tomli, which the extra has")
def test_a_missing_toml_package_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tomllib", None)
    with pytest.raises(MissingExtraError, match=r"linkstream\[service\]"):
        load(written(tmp_path, "[service]\n"))
