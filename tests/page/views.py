"""The views of the page, as app.js lists them."""

from __future__ import annotations

import re

from linkstream.service.assets import assets

_ENTRY = re.compile(r'\{ path: "([a-z]+)", title: "([^"]+)"')


def views() -> dict[str, str]:
    """Return the titles of all views by their paths, in the order of the tabs."""
    script = assets("linkstream.service", "dashboard")["app.js"].body.decode()
    table = script[script.index("const VIEWS = [") :]
    return dict(_ENTRY.findall(table[: table.index("\n];")]))
