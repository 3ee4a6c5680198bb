"""`linkstream token`: make, list, revoke."""

from __future__ import annotations

import json
import shlex
import stat
import subprocess
import sys
import time

import pytest
import typer

from cli.command import json_lines, refused, run, run_on_a_terminal, shown
from linkstream.cli import token as commands
from linkstream.service.tokens import Tokens

NAMES = ("create", "list", "revoke")


def created(cwd, *words):
    done = run("token", "create", "stores", *words, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return json.loads(done.stdout)


def listed(cwd):
    return json_lines(run("token", "list", "stores", cwd=cwd).stdout)


def opens(cwd, secret):
    return Tokens.load(cwd / "stores" / "tokens.json").grant(secret)


@pytest.mark.parametrize("name", NAMES)
def test_every_help_has_an_example_that_runs(tmp_path, name):
    done = run("token", name, "--help", cwd=tmp_path)
    assert done.returncode == 0
    text = typer.main.get_command(commands.group).commands[name].help
    words = shlex.split(text.partition("Example: linkstream ")[2])
    assert words[:2] == ["token", name]
    made = created(tmp_path, "--scope", "people=read")
    words = [made["id"] if word == "0a1b2c3d4e5f" else word for word in words]
    done = run(*words, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_token_without_arguments_shows_its_help(tmp_path):
    done = run("token", cwd=tmp_path)
    assert all(name in done.stdout + done.stderr for name in NAMES)


def test_a_secret_is_printed_once_and_grants_its_scopes(tmp_path):
    made = created(tmp_path, "--scope", "people=read", "--scope", "door=write", "--label", "door")
    assert opens(tmp_path, made["secret"]).scopes == {"people": "read", "door": "write"}
    (found,) = listed(tmp_path)
    assert found == {name: value for name, value in made.items() if name != "secret"} | {
        "works": True
    }
    path = tmp_path / "stores" / "tokens.json"
    assert made["secret"] not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_secret_is_one_line_on_a_narrow_terminal(tmp_path):
    code, seen = run_on_a_terminal(
        *("token", "create", "stores", "--scope", "people=write"), cwd=tmp_path
    )
    assert code == 0
    secret = seen.splitlines()[0]
    assert opens(tmp_path, secret)
    assert "\x1b" not in secret


def test_an_expiry_date_is_stored(tmp_path):
    made = created(tmp_path, "--scope", "*=admin", "--expires", "2d")
    ends = Tokens.load(tmp_path / "stores" / "tokens.json").live()[0].expires
    assert abs(ends - time.time() - 2 * 86_400) < 600
    assert made["expires"].endswith("Z")


def test_after_a_rotation_both_tokens_are_valid_during_the_overlap(tmp_path):
    old = created(tmp_path, "--scope", "people=write", "--label", "door")
    new = created(tmp_path, "--rotate", old["id"], "--overlap", "1h")
    assert (new["scopes"], new["label"]) == (old["scopes"], old["label"])
    assert new["rotates"]["id"] == old["id"]
    assert opens(tmp_path, old["secret"])
    assert opens(tmp_path, new["secret"])
    assert [each["expires"] is None for each in listed(tmp_path)] == [False, True]
    last = created(tmp_path, "--rotate", new["id"], "--overlap", "0s")
    assert opens(tmp_path, new["secret"]) is None
    assert opens(tmp_path, last["secret"])


def test_revoking_the_last_token_does_not_open_the_service(tmp_path):
    made = created(tmp_path, "--scope", "people=read")
    done = run("token", "revoke", "stores", made["id"], cwd=tmp_path)
    assert json.loads(done.stdout) == {"id": made["id"], "label": "", "left": 0}
    assert listed(tmp_path) == []
    assert opens(tmp_path, made["secret"]) is None
    assert opens(tmp_path, None) is None
    other = created(tmp_path, "--scope", "people=read")
    told = " ".join(shown("token", "revoke", "stores", other["secret"], cwd=tmp_path).split())
    assert "Every call is refused now" in told
    assert other["secret"] not in told


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--scope", "people"),
        ("--scope", "people=owner"),
        ("--scope", "People=read"),
        ("--scope", "../x=read"),
        ("--scope", "=read"),
        ("--scope", "people=read", "--scope", "people=admin"),
        ("--scope", "people=read", "--expires", "soon"),
        ("--scope", "people=read", "--expires", "0d"),
        ("--scope", "people=read", "--expires", "-1d"),
        ("--scope", "people=read", "--expires", "999999d9"),
        ("--scope", "people=read", "--overlap", "1h"),
        ("--scope", "people=read", "--label", "x" * 201),
        ("--scope", "people=read", "--token-file", "none/tokens.json"),
    ],
)
def test_invalid_options_are_refused_and_create_nothing(tmp_path, words):
    refused(run("token", "create", "stores", *words, cwd=tmp_path))
    assert not (tmp_path / "stores" / "tokens.json").exists()


def test_rotating_an_unknown_token_or_other_scopes_is_refused(tmp_path):
    made = created(tmp_path, "--scope", "people=read")
    before = (tmp_path / "stores" / "tokens.json").read_bytes()
    for words in (
        ("--rotate", "0a1b2c3d4e5f"),
        ("--rotate", made["id"], "--scope", "people=admin"),
        ("--rotate", made["id"], "--label", "x"),
        ("--rotate", made["id"], "--overlap", "long"),
    ):
        refused(run("token", "create", "stores", *words, cwd=tmp_path))
    assert (tmp_path / "stores" / "tokens.json").read_bytes() == before


def test_token_and_serve_use_the_same_file_with_the_same_settings(tmp_path):
    (tmp_path / "service.toml").write_text('[service]\ntokens = "keys.json"\n')
    done = run(
        *("token", "create", "stores", "--scope", "people=read", "--config", "service.toml"),
        cwd=tmp_path,
    )
    assert done.returncode == 0
    assert (tmp_path / "keys.json").exists()
    assert not (tmp_path / "stores" / "tokens.json").exists()
    found = run("token", "list", "stores", "--token-file", "keys.json", cwd=tmp_path)
    assert len(json_lines(found.stdout)) == 1


def test_a_damaged_file_is_reported_and_not_changed(tmp_path):
    created(tmp_path, "--scope", "people=read")
    path = tmp_path / "stores" / "tokens.json"
    path.write_text("{")
    for words in (("list", "stores"), ("create", "stores", "--scope", "a=read")):
        assert "all calls are refused" in refused(run("token", *words, cwd=tmp_path))
    assert path.read_text() == "{"


def test_control_characters_of_a_label_are_escaped(tmp_path):
    created(tmp_path, "--scope", "people=read", "--label", "\x1b[2J[red]\u202eAnn\n")
    told = shown("token", "list", "stores", cwd=tmp_path)
    assert "\\x1b[2J[red]\\u202eAnn" in told


def test_an_empty_list_of_tokens_is_reported(tmp_path):
    assert shown("token", "list", "stores", cwd=tmp_path) == "No token."


def test_token_imports_nothing_of_the_web_server(tmp_path):
    words = (
        "import sys; sys.modules |= dict.fromkeys(('fastapi', 'starlette', 'uvicorn'))\n"
        "from linkstream.cli import main\n"
        "sys.argv = ['linkstream', 'token', 'create', 'stores', '--scope', 'people=read']\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["secret"].startswith("lsk_")
