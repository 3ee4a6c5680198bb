"""docs/http-api.md lists exactly the routes of the service, with their scopes; its examples run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from service.routes import shape
from service.server import ThreadService

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/http-api.md").read_text("utf-8")
N = "/v1/namespaces/{namespace}"
ROWS = {
    (method, shape(path.replace("…", N))): (scope, words)
    for method, path, scope, words in re.findall(
        r"^\| `([A-Z]+) (\S+)` \| (\w+) \| (.*) \|$", PAGE, flags=re.M
    )
}
LINES = [
    (line, told)
    for block in re.findall(r"^```console\n(.*?)^```$", PAGE, flags=re.M | re.S)
    # Continued lines are indented by two spaces.
    for line, told in re.findall(r"^\$ (.*(?:\n  .*)*)\n((?:(?!\$ ).*\n?)*)", block, flags=re.M)
]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with ThreadService(tmp_path_factory.mktemp("docs") / "data") as held:
        yield held


@pytest.fixture(scope="module")
def operations(service):
    paths = service.get("/openapi.json").json["paths"]
    return {
        (method.upper(), shape(path)): what
        for path, methods in paths.items()
        for method, what in methods.items()
    }


def test_the_page_has_every_route_and_no_other(operations):
    assert set(ROWS) == set(operations)


def test_the_page_says_the_scope_of_every_route(operations):
    told = {route: scope for route, (scope, _) in ROWS.items()}
    assert told == {route: what["x-scope"] for route, what in operations.items()}


def test_the_page_names_what_can_be_asked_for_in_a_query(operations):
    for route, what in operations.items():
        for parameter in what.get("parameters", []):
            if parameter["in"] == "query":
                name = parameter["name"]
                assert re.search(rf"`{name}[`=]", ROWS[route][1]), (route, name)


def test_the_page_names_what_a_body_may_say(operations, service):
    parts = service.get("/openapi.json").json.get("components", {}).get("schemas", {})
    for route, what in operations.items():
        content = what.get("requestBody", {}).get("content", {})
        schema = content.get("application/json", {}).get("schema", {})
        schema = parts.get(schema.get("$ref", "").rpartition("/")[2], schema)
        if "octet-stream" in str(list(content)):
            continue  # bodies of vectors have a section of their own
        for name in schema.get("properties", {}):
            assert f"`{name}`" in ROWS[route][1], (route, name)


def test_the_page_names_every_kind_of_error_that_the_service_has():
    source = ROOT / "src" / "linkstream" / "service"
    code = "\n".join(path.read_text("utf-8") for path in source.rglob("*.py"))
    kinds = set(re.findall(r'(?:Refusal|_later)\(\s*\d{3},\s*"([a-z-]+)"', code))
    assert len(kinds) > 10
    rules = PAGE.partition("## Rules for all routes")[2].partition("## Bodies")[0]
    assert {kind for kind in kinds if f"`{kind}`" not in rules} == set()


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_the_examples_do_what_the_page_shows(service, tmp_path):
    place = f"127.0.0.1:{service.port}"
    words = [line.replace("127.0.0.1:7777", place) for line, _ in LINES]
    assert len(words) >= 10
    script = "".join(f"{line}\nprintf '\\n\\036\\n'\n" for line in words)
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ,
        cwd=tmp_path,  # an example writes a file
    )
    seen = done.stdout.split("\n\036\n")[:-1]
    assert done.stderr == ""
    for (line, told), answer in zip(LINES, seen, strict=True):
        assert matches(answer, told), f"{line}\n{answer}"


def matches(seen, told):
    """Return whether an output matches the page; line breaks are ignored, … is any text."""
    parts = re.sub(r"\s", "", told).split("…")
    pattern = ".*".join(map(re.escape, parts))
    return re.fullmatch(pattern, re.sub(r"\s", "", seen)) is not None
