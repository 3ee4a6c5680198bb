"""The values of a verb as JSON has them, and the JSON schema of a field."""

from __future__ import annotations

from dataclasses import MISSING, Field, asdict
from typing import Any

import numpy as np

from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space

_NUMBERS = {"type": "array", "items": {"type": "number"}}
_REFERENCES = {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]}}
_SCHEMAS: dict[str, dict[str, Any]] = {
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "str": {"type": "string"},
    "bool": {"type": "boolean"},
    "None": {"type": "null"},
    "Thresholds": {"type": "object"},
    "Space": {"type": "object"},
    "Vector": _NUMBERS,
    "Vectors": {"type": "array", "items": _NUMBERS},
    "Weights": {"anyOf": [{"type": "number"}, _NUMBERS]},
    "VectorNumber": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    "VectorNumbers": {"anyOf": [{"type": "integer"}, {"type": "string"}, _REFERENCES]},
    "AnyCluster": {"type": "integer", "minimum": -1},
    "ClusterOrNew": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    "VectorOrNumber": {"anyOf": [{"type": "integer"}, {"type": "string"}, _REFERENCES, _NUMBERS]},
}


def plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if value is None or type(value) in (int, float, str, bool):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, Space):
        mean = None if value.mean is None else value.mean.tolist()
        return {"mean": mean, "model": value.model, "dimension": value.dimension}
    return asdict(value) if isinstance(value, Thresholds) else value


def schema(each: Field[Any], description: str) -> dict[str, Any]:
    """Return the JSON schema of a field."""
    options = [_SCHEMAS[name] for name in str(each.type).split(" | ")]
    found = dict(options[0]) if len(options) == 1 else {"anyOf": options}
    default = {} if each.default is MISSING else {"default": plain(each.default)}
    return {**found, **default, "description": description}
