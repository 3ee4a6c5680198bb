"""Namespaces: made over HTTP, with the words of `Store.open`."""

from __future__ import annotations

import re
from typing import Any

from linkstream.client.asking import JSON, Request, Steps, encoded, verb
from linkstream.errors import ArgumentError
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


def check_name(name: object) -> str:
    """The name of a namespace, or ArgumentError."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ArgumentError(
            f"namespace {name!r:.80}",
            expected="1 to 63 of a to z, 0 to 9, _ and -, the first a letter or a digit",
            remedy="Name it after what its vectors are of, such as 'people'.",
        )
    return name


class Making:
    """The side of a client that makes namespaces."""

    @verb
    def create(
        self,
        thresholds: Thresholds | None = None,
        *,
        preset: str | None = None,
        space: Space | None = None,
        evidence: str | None = None,
        heal: str | None = None,
        track_vectors: bool | None = None,
        keep_vectors: bool | None = None,
        max_subclusters: int | None = None,
        max_idle: int | None = None,
        min_size: int | None = None,
    ) -> Steps[bool]:
        """Make the namespace; False where it is there already, made with the same.

        Needs a token of scope admin. Made otherwise before: ExistsError.

        Args:
            thresholds: the three thresholds; or:
            preset: the encoder that they belong to, as of `Links.preset`.
            space: the space of the vectors, as of `Links`; so are all options below.
            evidence: "nearest" or "cluster".
            heal: "join" or "settle".
            track_vectors: whether vectors are known by number.
            keep_vectors: whether vectors can be had again by number.
            max_subclusters: a bound on memory.
            max_idle: another.
            min_size: vectors that a cluster without a name needs to be more than pending.
        """
        options = {
            "space": None if space is None else _plain(space),
            "evidence": evidence,
            "heal": heal,
            "track_vectors": track_vectors,
            "keep_vectors": keep_vectors,
            "max_subclusters": max_subclusters,
            "max_idle": max_idle,
            "min_size": min_size,
        }
        said = _wanted(thresholds, preset)
        said |= {name: value for name, value in options.items() if value is not None}
        answer = yield Request("PUT", "", headers={"Content-Type": JSON}, body=encoded(said))
        return answer.status == 201


def _plain(space: Space) -> dict[str, Any]:
    if space.mean is not None:
        return {"model": space.model, "mean": space.mean.tolist()}
    known = {} if space.dimension is None else {"dimension": space.dimension}
    return {"model": space.model, "mean": None, **known}


def _wanted(thresholds: Thresholds | None, preset: str | None) -> dict[str, Any]:
    if (thresholds is None) == (preset is None):
        raise ArgumentError(
            f"thresholds={thresholds!r} and preset={preset!r}",
            expected="one of them",
            remedy="Thresholds belong to an encoder: take a preset, or tune.",
        )
    if preset is not None:
        return {"preset": preset}
    if not isinstance(thresholds, Thresholds):
        raise ArgumentError(
            f"thresholds of type {type(thresholds).__name__}",
            expected="linkstream.Thresholds",
            remedy="Build them with Thresholds(cluster_similarity, ...).",
        )
    names = ("cluster_similarity", "subcluster_similarity", "pair_similarity_max")
    return {"thresholds": {name: getattr(thresholds, name) for name in names}}
