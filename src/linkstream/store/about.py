"""About a store: what it was made with, in words that other programs read."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any

from linkstream.clusterer import Links
from linkstream.engine.contract import RULES
from linkstream.errors import ArgumentError, StoreError
from linkstream.paper.thresholds import Thresholds
from linkstream.presets import preset as preset_of
from linkstream.presets import presets
from linkstream.space import Space
from linkstream.store import file, snapshots
from linkstream.store.file import damaged, distrusted, intact, sealed, size_of
from linkstream.store.model import Model

About = dict[str, Any]


def of(links: Links, *, keep: bool) -> About:
    """What decides answers, as plain values."""
    return {
        "rules": RULES,
        "thresholds": asdict(links.thresholds),
        "space": _space(links.space),
        "evidence": links.evidence,
        "heal": links.healing.to_dict() if links.healing else None,
        "track_vectors": links.track_vectors,
        "keep_vectors": keep,
        "max_subclusters": links.limits.max_subclusters,
        "max_idle": links.limits.max_idle,
        "min_size": links.min_size,
    }


def _space(space: Space) -> About:
    """Model tag and digest of the mean; the dimension where it does not follow from a mean."""
    if space.mean is not None:
        mean = hashlib.sha256(space.mean.astype("<f8").tobytes()).hexdigest()
        return {"model": space.model, "mean": mean}
    known = {} if space.dimension is None else {"dimension": space.dimension}
    return {"model": space.model, "mean": None, **known}


def figures(model: Model) -> About:
    """What a store holds."""
    links = model.links
    made = snapshots.every(model.connection, model.path)
    size, log = size_of(model.path)
    return {
        "path": str(model.path),
        "format": file.FORMAT,
        "bytes": size,
        "log_bytes": log,
        "dimension": links.dimension,
        "vectors": links.n_vectors,
        "subclusters": links.n_subclusters,
        "clusters": links.n_clusters,
        "operations": model.number,
        "events": model.n_events,
        "snapshots": [each.operation for each in made],
        "undo_from": made[0].operation,
    }


def wanted(
    thresholds: Thresholds | None, preset: str | None, options: dict[str, Any]
) -> Links | None:
    """The clusterer that the caller's words describe; None where they give no thresholds."""
    if thresholds is not None and preset is not None:
        raise ArgumentError(
            f"thresholds and preset={preset!r}", expected="one of them", remedy="Leave one out."
        )
    if preset is not None:
        chosen = preset_of(preset)
        return Links.from_thresholds(chosen.thresholds, **{**chosen.options, **options})
    if thresholds is None:
        return None
    if not isinstance(thresholds, Thresholds):
        raise ArgumentError(
            f"thresholds of type {type(thresholds).__name__}",
            expected="linkstream.Thresholds",
            remedy="Build them with Thresholds(cluster_similarity, ...).",
        )
    return Links.from_thresholds(thresholds, **options)


def check_wanted(
    path: Path,
    about: About,
    thresholds: Thresholds | None,
    preset: str | None,
    options: dict[str, Any],
) -> None:
    """ArgumentError where the caller asks for another store than the one that is there."""
    there = Thresholds(**about["thresholds"])
    asked = wanted(thresholds, preset, options) or Links.from_thresholds(there, **options)
    described = of(asked, keep=asked.keep_vectors)
    names = {"thresholds", *options}
    if preset is not None:
        names |= preset_of(preset).options.keys()
    for name in sorted(names & described.keys()):
        if not _same(described[name], about[name]):
            seen = f"{name}={_shown(described[name])} for {path}, which has {_shown(about[name])}"
            if preset is not None and name not in options:
                seen = f"preset {preset!r} for {path}, which was made with {_maker(about)}"
            raise ArgumentError(
                seen,
                expected="what the store was made with",
                remedy="Leave it out to open the store as it is, or make a new one.",
            )


def _same(asked: Any, there: Any) -> bool:
    if not (isinstance(asked, dict) and isinstance(there, dict)):
        return bool(asked == there)
    # A space may leave its dimension open, as one of an older version does even with a preset.
    open_ = {"dimension"} & (asked.keys() ^ there.keys())
    return all(asked.get(name) == there.get(name) for name in {*asked, *there} - open_)


def _maker(about: About) -> str:
    """Return what a store was made with, as its maker would say it."""
    model = about["space"]["model"]
    known = model in presets()
    return f"preset {model!r}" if known else f"thresholds {_shown(about['thresholds'])}"


def _shown(value: Any) -> str:
    """Return an option as the caller gives it."""
    if isinstance(value, dict) and "mode" in value:  # healing
        return repr(value["mode"])
    if isinstance(value, dict) and "cluster_similarity" in value:
        return repr(astuple(Thresholds(**value)))
    return repr(value)


def write(connection: sqlite3.Connection, about: About, version: str) -> None:
    """Put it into a new store."""
    row = sealed("meta", 1, json.dumps({"linkstream": version, **about}, sort_keys=True))
    connection.execute("INSERT INTO meta VALUES (?, ?, ?)", row)


def read(connection: sqlite3.Connection, path: Path) -> About:
    """What `write` wrote, checked; StoreError where newer rules decided."""
    row = connection.execute("SELECT number, body, crc FROM meta").fetchone()
    if not intact("meta", row):
        raise damaged(path, "the description of the store is missing or damaged")
    with distrusted(path, "the description of the store"):
        about: About = json.loads(row[1])
        rules, _ = int(about["rules"]), Thresholds(**about["thresholds"])
        if type(about["keep_vectors"]) is not bool:
            raise TypeError("keep_vectors is neither yes nor no")
    if rules > RULES:
        raise StoreError(
            f"{path}: decided by rules of version {rules}",
            expected=f"version {RULES} or older",
            remedy="Upgrade linkstream to open it.",
        )
    return about


def check_same(path: Path, about: About, links: Links, *, keep: bool) -> None:
    """DamagedStoreError unless the clusterer is of the kind that the store says it has."""
    for name, value in of(links, keep=keep).items():
        if about.get(name) != value:
            raise damaged(path, f"{name} is {value!r} in a snapshot and {about.get(name)!r} beside")
