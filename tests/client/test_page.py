"""docs/client.md: its code runs against a service, and prints what the page shows."""

from __future__ import annotations

import contextlib
import io
import re
from itertools import pairwise
from pathlib import Path

from linkstream.client import Client, Retries
from linkstream.client.endpoint import CONNECT, READ, STATUSES

PAGE = (Path(__file__).resolve().parents[2] / "docs/client.md").read_text("utf-8")
ADDRESS = "http://127.0.0.1:7777"
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, flags=re.M | re.S)


def test_the_examples_print_the_output_on_the_page(service):
    with Client(service) as client:
        assert "people" not in [each.name for each in client.namespaces()]
    known = {}
    with contextlib.ExitStack() as held:
        for (language, code), (following, shown) in pairwise([*BLOCKS, ("", "")]):
            if language != "py":
                continue
            printed = io.StringIO()
            here = code.replace(ADDRESS, service.rstrip("/"))
            with contextlib.redirect_stdout(printed):
                exec(compile(here, "docs/client.md", "exec"), known)
            held.callback(known["people"].close)
            assert printed.getvalue() == (shown if following == "text" else "")
    assert len([language for language, _ in BLOCKS if language == "py"]) >= 6


def test_the_numbers_on_the_page_are_those_of_the_code():
    retries = Retries()
    words = " ".join(PAGE.split())
    assert f"up to {retries.attempts} times within {retries.seconds:g} seconds" in words
    assert f"grow from {retries.first:g} to {retries.longest:g} seconds" in words
    assert f"has {CONNECT:g} seconds to be made, an answer {READ:g} to come" in words
    assert ", ".join(map(str, STATUSES[:-1])) + f" or {STATUSES[-1]}" in words
