"""Settings of the clusterers of a stream, and how a checkpoint with other settings is refused.

A key keeps the settings that it began with. A stream that is started again with other settings
would use them for new keys only (docs/choices.md, "A checkpoint keeps its settings"). So the
settings are part of the schema of the state: Spark writes that schema into the checkpoint and,
when a query starts, compares it with the new one. Spark shows names and compares types: by place
in its own encoding of the state, by name in Avro. So the schema has fields whose names say the
settings, and fields of fixed names whose types are a digest of them.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from pyspark.sql.types import ArrayType, BooleanType, DataType, DoubleType, StringType, StructType

from linkstream.clusterer import Links
from linkstream.errors import ArgumentError
from linkstream.store import about

# A digit of the digest is one of these in 0, 1 or 2 arrays: types of which none is read as another.
LEAVES = (BooleanType(), StringType(), DoubleType())
NESTED = 3
DIGITS = 14  # of base 9: 44 bits
HEADING = "linkstream_settings"
SHOWN = 60  # characters of a setting in the name of a field
# In a fixed order and without what a later version may add: checkpoints outlive versions.
NAMES = (
    "cluster_similarity",
    "subcluster_similarity",
    "pair_similarity_max",
    "model",
    "mean",
    "evidence",
    "heal",
    "max_subclusters",
    "max_idle",
    "min_size",
    "track_vectors",
    "keep_vectors",
)

Settings = dict[str, str]


def settings_of(links: Links) -> Settings:
    """Return what decides the answers of a clusterer, as text by name."""
    there = about.of(links, keep=links.keep_vectors)
    plain: dict[str, Any] = {**there, **there["thresholds"], **there["space"]}
    return {name: _text(plain[name]) for name in NAMES}


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True) if isinstance(value, dict) else repr(value)


def schema_of(settings: Settings) -> StructType:
    """Return a schema for Spark to compare: other settings, other types.

    Names have letters that every encoding of the state allows.
    """
    schema = StructType().add(HEADING, BooleanType())
    for name, value in settings.items():
        legal = re.sub(r"\W+", "_", f"{name}_{value}", flags=re.ASCII).strip("_")
        schema = schema.add(legal[:SHOWN], BooleanType())
    number = int.from_bytes(hashlib.sha256(json.dumps(settings).encode()).digest(), "big")
    for place in range(DIGITS):
        number, digit = divmod(number, NESTED * len(LEAVES))
        schema = schema.add(f"digest_{place}", _digit(digit))
    return schema


def _digit(digit: int) -> DataType:
    depth, leaf = divmod(digit, len(LEAVES))
    kind: DataType = LEAVES[leaf]
    for _ in range(depth):
        kind = ArrayType(kind)
    return kind


def check_settings(asked: Settings, links: Links, key: Any) -> None:
    """Raise ArgumentError if the clusterer that a checkpoint holds for a key has other settings."""
    held = settings_of(links)
    if held == asked:
        return
    name = next(name for name in asked if held.get(name) != asked[name])
    raise ArgumentError(
        f"{name}={asked[name]} for key {key}, which the checkpoint holds with {name}={held[name]}",
        expected="the settings that the stream was begun with",
        remedy="Start with those settings; for others begin a new checkpoint.",
    )
