"""river: `LinksRiver`, a clusterer for streams of dictionaries, arrays or frames."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.adapters import making
from linkstream.clusterer import Links
from linkstream.engine import door
from linkstream.errors import ArgumentError, MissingExtraError, VectorError
from linkstream.identity.healing import Healing
from linkstream.space import Space

try:
    from river import base
except ImportError as missing:
    raise MissingExtraError("river", extra="river", purpose="The river model") from missing

Names = tuple[Hashable, ...]
Floats = npt.NDArray[np.float32]


class LinksRiver(base.Clusterer):
    """Links as a river clusterer: `learn_one`, `predict_one`, `learn_many`, `predict_many`.

    A vector is a dictionary of features, as river's streams have them, or an array. The features of
    the first vector learnt, in its order, are those of all that follow: a feature that is missing
    or new is an error, for a vector of an encoder has all its coordinates. Arrays are read in
    that order too; where an array came first, its features are 0, 1, 2, ….

    Thresholds have no defaults, for they belong to an encoder: give the three, or a preset, or a
    preset and those that should differ from it.

    Args:
        cluster_similarity, subcluster_similarity, pair_similarity_max: as those of `Links`.
        preset: name of a preset (docs/tuning.md): its thresholds, space, evidence and healing.
        space, evidence, heal: as those of `Links`. None: the preset's, if there is one;
            `heal=False`: none, whatever the preset says.
        track_vectors: as that of `Links`, but False by default: memory then grows with the
            subclusters, not with the stream.
        min_size, max_subclusters, max_idle, keep_vectors, engine, threads: as those of `Links`.

    Attributes:
        links: the clusterer itself: to name, correct, explain, save.

    >>> model = LinksRiver(0.7, 0.6, 0.9)
    >>> model.learn_one({"a": 1.0, "b": 0.0, "c": 0.1})
    >>> model.learn_one({"b": 1.0, "a": 0.0, "c": 0.0})
    >>> model.predict_one({"a": 0.9, "b": 0.1, "c": 0.0}), model.predict_one([0.0, 0.0, 1.0])
    (0, -1)
    """

    def __init__(
        self,
        cluster_similarity: float | None = None,
        subcluster_similarity: float | None = None,
        pair_similarity_max: float | None = None,
        *,
        preset: str | None = None,
        space: Space | None = None,
        evidence: str | None = None,
        heal: Healing | str | bool | None = None,
        track_vectors: bool = False,
        min_size: int = 1,
        max_subclusters: int | None = None,
        max_idle: int | None = None,
        keep_vectors: bool | None = None,
        engine: str = "auto",
        threads: int | None = None,
    ) -> None:
        self.cluster_similarity = cluster_similarity
        self.subcluster_similarity = subcluster_similarity
        self.pair_similarity_max = pair_similarity_max
        self.preset = preset
        self.space = space
        self.evidence = evidence
        self.heal = heal
        self.track_vectors = track_vectors
        self.min_size = min_size
        self.max_subclusters = max_subclusters
        self.max_idle = max_idle
        self.keep_vectors = keep_vectors
        self.engine = engine
        self.threads = threads
        self.links: Links = making.links(self._get_params())
        self._features: Names | None = None

    def learn_one(self, x: Mapping[Hashable, Any] | npt.ArrayLike) -> None:
        """Cluster one vector."""
        names, values = self._vector(x)
        self.links.add(values)
        self._features = names

    def predict_one(self, x: Mapping[Hashable, Any] | npt.ArrayLike) -> int:
        """The ID that a vector would be given, changing nothing; −1 where it would be new."""
        return int(self.links.predict(self._vector(x)[1][np.newaxis])[0])

    def learn_many(self, X: Any) -> None:
        """Cluster vectors in their order: a frame, an array of rows, or a list of dictionaries.

        The outcome is that of `learn_one` on each; if one is not usable, none is learnt.
        """
        names, rows = self._block(X)
        if len(rows):
            self.links.add_many(rows)
            self._features = names

    def predict_many(self, X: Any) -> npt.NDArray[np.int64]:
        """`predict_one` of each vector, as an array."""
        return self.links.predict(self._block(X)[1])

    def _vector(self, x: Any) -> tuple[Names, Floats]:
        """The features and the coordinates of one vector, in the order of the features."""
        names = self._names(tuple(x)) if isinstance(x, Mapping) else None
        values = x if names is None else [x[name] for name in names]
        row = door.vector(values, dimension=None)[0]  # the clusterer checks the dimension
        return names or self._places(len(row)), row

    def _block(self, X: Any) -> tuple[Names, Floats]:
        """The features and the rows of a batch."""
        if not hasattr(X, "__len__"):
            raise VectorError(
                f"vectors in a {type(X).__name__}",
                expected="a frame, an array of rows, or a list of dictionaries",
                remedy="Collect a lazy frame or a generator first.",
            )
        names, values = self._named(X) if len(X) else ((), [])
        rows = door.vectors(values, dimension=None if len(X) else self.links.dimension)
        return names or self._places(rows.shape[1]), rows

    def _named(self, X: Any) -> tuple[Names, Any]:
        """The features of a batch, none where they have no names, and its rows as they come."""
        if hasattr(X, "columns"):  # a frame of pandas or polars, or a table of pyarrow
            names = self._names(tuple(getattr(X, "column_names", X.columns)))
            return names, np.column_stack([np.asarray(X[name]) for name in names])
        if isinstance(X, Sequence) and isinstance(X[0], Mapping):
            names = self._names(tuple(X[0]))
            for x in X:
                _check_same(names, tuple(x))
            return names, [[x[name] for name in names] for x in X]
        return (), X

    def _names(self, seen: Names) -> Names:
        """The features in the order of the first vector; VectorError where these are others."""
        names = seen if self._features is None else self._features
        _check_same(names, seen)
        return names

    def _places(self, dimension: int) -> Names:
        """The features of vectors that come without names."""
        return self._features or tuple(range(dimension))

    def clone(
        self, new_params: dict[str, Any] | None = None, include_attributes: bool = False
    ) -> LinksRiver:
        """A model with the same parameters; with `include_attributes`, all that was learnt too.

        Raises:
            ArgumentError: new parameters and what was learnt under the old ones.
        """
        if new_params and include_attributes:
            raise ArgumentError(
                f"new {', '.join(new_params)} for a clone of what was learnt",
                expected="the parameters that the vectors were learnt with",
                remedy="Leave include_attributes out, and learn the vectors again.",
            )
        copied: LinksRiver = super().clone(new_params, include_attributes)
        return copied

    # A pickle holds our own snapshot (plain arrays, checksummed) and no object of an engine.

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"links": self.links.to_bytes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        options = {"engine": state["engine"], "threads": state["threads"]}
        vars(self).update(state, links=Links.from_bytes(state["links"], **options))

    # What river asks of its models

    @property
    def _raw_memory_usage(self) -> int:
        """River's figure, which is that of Python's objects, and what the engine holds."""
        links = self.links
        arrays = sum(array.nbytes for array in links.state().arrays().values())
        kept = 4 * (links.dimension or 0) * links.n_vectors if links.keep_vectors else 0
        return super()._raw_memory_usage + arrays + kept

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield dict(zip(making.NAMES, (0.7, 0.6, 0.9), strict=True))

    def _unit_test_skips(self) -> set[str]:
        # A vector of an encoder has all its coordinates, always: one with fewer or more comes from
        # elsewhere, and is refused rather than filled up with zeros, which would turn it.
        return {
            "check_emerging_features",
            "check_disappearing_features",
            "check_radically_disappearing_features",
        }


def _check_same(names: Names, seen: Names) -> None:
    """Raise VectorError unless the features seen are these, in any order."""
    known, here = set(names), set(seen)
    if here == known and len(seen) == len(known):
        return
    wrong = {
        "missing": [name for name in names if name not in here],
        "new": [name for name in seen if name not in known],
        "there twice": [name for name in here if seen.count(name) > 1],
    }
    parts = [
        f"{', '.join(map(repr, these[:3]))}{f' and {len(these) - 3} more' * bool(these[3:])} {word}"
        for word, these in wrong.items()
        if these
    ]
    raise VectorError(
        f"features with {'; '.join(parts)}",
        expected=f"the {len(known)} features of the first vector, each once",
        remedy="Give every vector all its coordinates under the same names.",
    )
