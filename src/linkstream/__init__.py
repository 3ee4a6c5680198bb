"""linkstream clusters embeddings as they arrive, with Links: each vector gets an ID at once."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from linkstream.clusterer import Cluster, Links
    from linkstream.engine.contract import Decision
    from linkstream.paper.thresholds import Thresholds
    from linkstream.space import Space

__all__ = ["Cluster", "Decision", "Links", "Space", "Thresholds"]
__version__ = "0.1.0"

# Where the public names live. They are imported when they are first used: the command line must
# be able to catch Ctrl-C before NumPy is imported, which takes most of its start.
_HOMES = {
    "Cluster": "linkstream.clusterer",
    "Links": "linkstream.clusterer",
    "Decision": "linkstream.engine.contract",
    "Thresholds": "linkstream.paper.thresholds",
    "Space": "linkstream.space",
}


def __getattr__(name: str) -> Any:
    """Import a public name, or a module of the package, when it is first used."""
    home = _HOMES.get(name)
    if home is not None:
        value = getattr(importlib.import_module(home), name)
        globals()[name] = value
        return value
    if not name.startswith("_"):
        try:
            return importlib.import_module(f"linkstream.{name}")
        except ModuleNotFoundError as missing:
            if missing.name != f"linkstream.{name}":
                raise
    raise AttributeError(f"module 'linkstream' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
