"""The description of a store: the thresholds and options that it was made with, as JSON."""

from __future__ import annotations

import base64
import hashlib
import json
import sqlite3
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any

import numpy as np

from linkstream import __version__
from linkstream.clusterer import Links
from linkstream.confidence import Model as Confidence
from linkstream.engine.contract import RULES
from linkstream.errors import ArgumentError, LinkstreamError, StoreError
from linkstream.identity.disagreements import Disagreement
from linkstream.identity.settling import Healing
from linkstream.paper.thresholds import Thresholds
from linkstream.presets import check_no_granularity, describe
from linkstream.presets import preset as preset_of
from linkstream.space import Space
from linkstream.store import file, search_index, snapshots
from linkstream.store.file import damaged, distrusted, intact, sealed, size_of
from linkstream.store.model import Model

About = dict[str, Any]
Disagreements = tuple[int, tuple[Disagreement, ...]]
_SEARCH = "search"  # whether there is a search index; missing in stores of earlier builds
_MIGRATION = "migration"  # space, thresholds and number of the migration that is under way
_MIGRATIONS = "migrations"  # how many there were
_DISAGREEMENTS = "disagreements"  # of the last migration, and the event of its rebuild
_REBUILD = "rebuild_thresholds"  # missing if a store was made without
_CONFIDENCE = "confidence"  # missing if a store was made without
_MEAN = "mean"  # the mean of the space in base64; `space` has only its digest
Wanted = tuple[Thresholds | None, str | None, dict[str, Any]]  # thresholds, preset, options


def of(links: Links, *, keep: bool) -> About:
    """Return the settings that decide the answers of a clusterer, as plain values."""
    return {
        "rules": RULES,
        **rebuilt(links),
        "evidence": links.evidence,
        "heal": links.healing.to_dict() if links.healing else None,
        "track_vectors": links.track_vectors,
        "keep_vectors": keep,
        "max_subclusters": links.limits.max_subclusters,
        "max_idle": links.limits.max_idle,
        "min_size": links.min_size,
        **_of_rebuilds(links),
        **_confidence(links),
    }


def _confidence(links: Links) -> About:
    """Return the model of confidence that a clusterer was made with, if there is one."""
    model = links.confidence.given_model
    return {} if model is None else {_CONFIDENCE: model.to_plain()}


def _of_rebuilds(links: Links) -> About:
    """Return the thresholds of rebuilds that a clusterer was made with, if there are any."""
    own = links.core.rebuild_thresholds
    return {} if own is None else {_REBUILD: asdict(own.rebuild)}


def rebuilt(links: Links) -> About:
    """Return the present values of the settings that a rebuild may have changed."""
    return {"thresholds": asdict(links.thresholds), "space": _space(links.space)}


def _space(space: Space) -> About:
    """Return the model tag and the digest of the mean, or the dimension if there is no mean."""
    if space.mean is not None:
        mean = hashlib.sha256(space.mean.astype("<f8").tobytes()).hexdigest()
        return {"model": space.model, "mean": mean}
    known = {} if space.dimension is None else {"dimension": space.dimension}
    return {"model": space.model, "mean": None, **known}


def counts(model: Model) -> About:
    """Return how many vectors, clusters, operations and events a store holds."""
    links = model.links
    return {
        "dimension": links.dimension,
        "vectors": links.n_vectors,
        "subclusters": links.n_subclusters,
        "clusters": links.n_clusters,
        "operations": model.number,
        "events": model.n_events,
    }


def figures(model: Model) -> About:
    """Return `counts` with the path, the sizes and the snapshots of a store."""
    made, links = snapshots.every(model.connection, model.path), model.links
    size, log = size_of(model.path)
    return {
        "path": str(model.path),
        "format": file.FORMAT,
        "bytes": size,
        "log_bytes": log,
        **counts(model),
        "snapshots": [each.operation for each in made],
        "undo_from": made[0].operation,
        "policy": links.policy.to_dict(),
        "held": len(links.core.up_to_date_ledger().held),
    }


def wanted(
    thresholds: Thresholds | None, preset: str | None, options: dict[str, Any]
) -> Links | None:
    """Return an empty clusterer with these options; None without thresholds and preset.

    The option "granularity" belongs to the preset.
    """
    if thresholds is not None and preset is not None:
        raise ArgumentError(
            f"thresholds and preset={preset!r}",
            expected="one of them",
            remedy="Pass either thresholds= or preset=, not both.",
        )
    if preset is not None:
        return Links.preset(preset, **options)
    check_no_granularity(options.get("granularity"))
    if thresholds is None:
        return None
    if not isinstance(thresholds, Thresholds):
        raise ArgumentError(
            f"thresholds of type {type(thresholds).__name__}",
            expected="linkstream.Thresholds",
            remedy="Build them with Thresholds(cluster_similarity, ...).",
        )
    return Links.from_thresholds(thresholds, **options)


def check_wanted(path: Path, about: About, asked: Wanted) -> None:
    """Raise ArgumentError if a store was made with other thresholds or options."""
    _, preset, options = asked
    made_with = Thresholds(**about["thresholds"])
    links = wanted(*asked) or Links.from_thresholds(made_with, **options)
    described = of(links, keep=links.keep_vectors)
    names = {"thresholds", *options}
    if preset is not None:
        names |= preset_of(preset).options.keys()
        wish = describe(links.space.model, links.thresholds)
    if "mode" in options:
        names |= {"evidence", "heal"}
    for name in sorted(names & described.keys()):
        there = about.get(name)
        if not _same(described[name], there):
            seen = f"{name}={_shown(described[name])} for {path}, which has {_shown(there)}"
            if preset is not None and name not in options:
                seen = f"{wish} for {path}, which was made with {_maker(about)}"
            raise ArgumentError(
                seen,
                expected="the options that the store was made with",
                remedy="Leave it out to open the store as it is, or make a new one.",
            )


def other_search(path: Path, *, asked: bool) -> ArgumentError:
    """Return the error for search=True or False where the store has it otherwise."""
    return ArgumentError(
        f"search {asked} for {path}, which has search {not asked}",
        expected="the setting that the store has",
        remedy="Leave it out, or change it with set_search() on a store opened for writing.",
    )


def _same(asked: Any, there: Any) -> bool:
    if not (isinstance(asked, dict) and isinstance(there, dict)):
        return bool(asked == there)
    # A space may have no dimension: older versions wrote none, even with a preset.
    open_ = {"dimension"} & (asked.keys() ^ there.keys())
    return all(asked.get(name) == there.get(name) for name in {*asked, *there} - open_)


def _maker(about: About) -> str:
    """Return the preset or the thresholds of a store, for an error message."""
    return describe(about["space"]["model"], Thresholds(**about["thresholds"]))


def _shown(value: Any) -> str:
    """Return an option as the caller would write it."""
    if isinstance(value, dict) and "mode" in value:  # healing
        return repr(value["mode"])
    if isinstance(value, dict) and "identities" in value:
        return f"a model of {value['identities']} identities"
    if isinstance(value, dict) and "cluster_similarity" in value:
        return repr(astuple(Thresholds(**value)))
    return repr(value)


def write(
    connection: sqlite3.Connection, links: Links, *, keep: bool, search: bool = False
) -> None:
    """Write the description of a clusterer into a new store."""
    body = {"linkstream": __version__, _SEARCH: search, **of(links, keep=keep)}
    if links.space.mean is not None:  # for a repair without snapshots
        raw = links.space.mean.astype("<f8").tobytes()
        body[_MEAN] = base64.b64encode(raw).decode()
    _write_body(connection, body)


def _write_body(connection: sqlite3.Connection, body: About) -> None:
    row = sealed("meta", 1, json.dumps(body, sort_keys=True))
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", row)


def set_search(connection: sqlite3.Connection, path: Path, *, on: bool) -> None:
    """Write whether a store has a search index; the caller commits."""
    _write_body(connection, {**_body(connection, path), _SEARCH: on})


def read(connection: sqlite3.Connection, path: Path) -> About:
    """Return the description; raise StoreError if a newer version decides differently."""
    about = _body(connection, path)
    for name in (_MEAN, _MIGRATION, _MIGRATIONS, _DISAGREEMENTS):
        about.pop(name, None)
    return about


def migration(connection: sqlite3.Connection, path: Path) -> About | None:
    """Return space, thresholds and number of the migration that is under way, if any."""
    found: About | None = _body(connection, path).get(_MIGRATION)
    return found


def begin_migration(connection: sqlite3.Connection, path: Path, target: About) -> None:
    """Write that a migration is under way; the caller commits."""
    body = _body(connection, path)
    number = body.get(_MIGRATIONS, 0) + 1
    begun = {_MIGRATIONS: number, _MIGRATION: {**target, "number": number}}
    _write_body(connection, {**body, **begun})


def disagreements(connection: sqlite3.Connection, path: Path) -> Disagreements:
    """Return the event of the rebuild that ended the last migration, and its disagreements."""
    found = _body(connection, path).get(_DISAGREEMENTS, {"event": -1, "found": []})
    with distrusted(path, "the disagreements of a migration"):
        return int(found["event"]), tuple(map(Disagreement.from_dict, found["found"]))


def set_disagreements(connection: sqlite3.Connection, path: Path, given: Disagreements) -> None:
    """Write the disagreements of a migration that ends; the caller commits."""
    found = {"event": given[0], "found": [each.to_dict() for each in given[1]]}
    _write_body(connection, {**_body(connection, path), _DISAGREEMENTS: found})


def end_migration(connection: sqlite3.Connection, path: Path) -> None:
    """Write that no migration is under way; the caller commits."""
    body = _body(connection, path)
    del body[_MIGRATION]
    _write_body(connection, body)


def check_search(connection: sqlite3.Connection, path: Path, about: About) -> None:
    """Raise DamagedStoreError unless there is a search index if the description says so."""
    if search_index.exists(connection) != about[_SEARCH]:
        raise damaged(path, f"search is {about[_SEARCH]} in the description, not in the tables")


def empty(connection: sqlite3.Connection, path: Path) -> Links | None:
    """Return the empty clusterer that a description defines; None if it does not define one."""
    about = _body(connection, path)
    try:
        links = _begun(about)
    except (LinkstreamError, TypeError, ValueError, LookupError):
        return None
    made = of(links, keep=about["keep_vectors"])
    return links if all(about.get(name) == value for name, value in made.items()) else None


def _begun(about: About) -> Links:
    return Links.from_thresholds(
        Thresholds(**about["thresholds"]),
        space=_described_space(about),
        evidence=about["evidence"],
        heal=Healing.read(about["heal"]),
        track_vectors=about["track_vectors"],
        max_subclusters=about["max_subclusters"],
        max_idle=about["max_idle"],
        min_size=about["min_size"],
        rebuild_thresholds=Thresholds(**about[_REBUILD]) if _REBUILD in about else None,
        confidence=Confidence.from_plain(about[_CONFIDENCE]) if _CONFIDENCE in about else None,
    )


def _described_space(about: About) -> Space:
    """Return the space; the mean is in the description, or that of a preset."""
    model, dimension = about["space"]["model"], about["space"].get("dimension")
    if about["space"]["mean"] is None:
        return Space(None, model, dimension)
    if _MEAN in about:
        return Space(np.frombuffer(base64.b64decode(about[_MEAN]), dtype="<f8"), model)
    space = preset_of(model).options["space"]  # earlier builds wrote no mean
    return space if isinstance(space, Space) else Space(None, model)


def _body(connection: sqlite3.Connection, path: Path) -> About:
    row = connection.execute("SELECT number, body, crc FROM meta").fetchone()
    if not intact("meta", row):
        raise damaged(path, "the description of the store is missing or damaged")
    with distrusted(path, "the description of the store"):
        about: About = json.loads(row[1])
        rules, _ = int(about["rules"]), Thresholds(**about["thresholds"])
        about.setdefault(_SEARCH, False)
        if not all(type(about[name]) is bool for name in ("keep_vectors", _SEARCH)):
            raise TypeError("keep_vectors or search is no boolean")
    if rules > RULES:
        raise StoreError(
            f"{path}: a store whose decisions follow rules of version {rules}",
            expected=f"version {RULES} or older",
            remedy="Upgrade linkstream to open the store.",
        )
    return about


def check_same(path: Path, about: About, links: Links, *, keep: bool) -> None:
    """Raise DamagedStoreError if a clusterer does not match the description.

    A rebuild may have changed some; the description has those of the beginning.
    """
    changed = rebuilt(links)
    for name, value in of(links, keep=keep).items():
        if about.get(name) != value and name not in changed:
            raise damaged(
                path,
                f"{name} is {value!r} in a snapshot and {about.get(name)!r} in the description",
            )
