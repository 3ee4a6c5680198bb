"""`LinksRiver`, a river clusterer for streams of dictionaries, arrays or frames."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.adapters.parameters import THRESHOLDS, make_links, store_parameters
from linkstream.clusterer import Links
from linkstream.confidence import Model
from linkstream.engine import door
from linkstream.errors import ArgumentError, MissingExtraError, VectorError
from linkstream.identity.settling import Healing
from linkstream.space import Space

try:
    from river import base
except ImportError as missing:
    raise MissingExtraError("river", extra="river", purpose="The river model") from missing

Names = tuple[Hashable, ...]
Floats = npt.NDArray[np.float32]


class LinksRiver(base.Clusterer):
    """Links as a river clusterer: `learn_one`, `predict_one`, `learn_many`, `predict_many`.

    A vector is a dictionary of features, as in river's streams, or an array. The first vector
    determines the features and their order: a missing or new feature raises VectorError, since an
    encoder always returns all coordinates. Arrays are read in the same order; if an array comes
    first, its features are 0, 1, 2, ….

    Thresholds belong to an encoder and have no defaults: give the three, or a preset, or a preset
    and the thresholds that differ from it.

    Args:
        cluster_similarity: threshold T_c, as for `Links`.
        subcluster_similarity: threshold T_s, as for `Links`.
        pair_similarity_max: threshold T_p, as for `Links`.
        preset: name of a preset (docs/tuning.md): its thresholds, space, evidence and healing.
        granularity: level of the preset, such as "topics", or a number from 0 (coarse) to 1
            (fine). None takes the default level.
        space: as for `Links`. None takes that of the preset, if there is one.
        mode: as for `Links`. None takes evidence and healing of the preset, if there is one.
        evidence: as for `Links`. None takes that of the preset, if there is one.
        heal: as for `Links`. None takes that of the preset, if there is one; False means no
            healing even with a preset.
        track_vectors: as for `Links`, but False by default, so that memory grows with the
            subclusters and not with the stream.
        min_size: as for `Links`.
        max_subclusters: as for `Links`.
        max_idle: as for `Links`.
        keep_vectors: as for `Links`.
        confidence: as for `Links`; `predict_proba_one` tells nothing without it.
        engine: as for `Links`.
        threads: as for `Links`.

    Attributes:
        links: the clusterer, to name, correct, explain and save.

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
        granularity: str | float | None = None,
        space: Space | None = None,
        mode: str | None = None,
        evidence: str | None = None,
        heal: Healing | str | bool | None = None,
        track_vectors: bool = False,
        min_size: int = 1,
        max_subclusters: int | None = None,
        max_idle: int | None = None,
        keep_vectors: bool | None = None,
        confidence: Model | None = None,
        engine: str = "auto",
        threads: int | None = None,
    ) -> None:
        store_parameters(self, locals())
        self.links: Links = make_links(self._get_params())
        self._features: Names | None = None

    def learn_one(self, x: Mapping[Hashable, Any] | npt.ArrayLike) -> None:
        """Cluster one vector.

        Args:
            x: a dictionary of features, or an array.
        """
        names, values = self._vector(x)
        self.links.add(values)
        self._features = names

    def predict_one(self, x: Mapping[Hashable, Any] | npt.ArrayLike) -> int:
        """Return the ID that a vector would get, or −1 for a new cluster; change nothing.

        Args:
            x: a dictionary of features, or an array.
        """
        return int(self.links.predict(self._vector(x)[1][np.newaxis])[0])

    def predict_proba_one(self, x: Mapping[Hashable, Any] | npt.ArrayLike) -> dict[int, float]:
        """Return how probably a vector belongs to its best clusters, and −1 for a new one.

        Probabilities sum to 1; the dictionary is empty if they are unknown
        (`links.confidence.why`). Nothing changes.

        Args:
            x: a dictionary of features, or an array.
        """
        return self.links.predict_proba(self._vector(x)[1][np.newaxis])[0]

    def learn_many(self, X: Any) -> None:
        """Cluster vectors in their order, as `learn_one` does; if one is unusable, add none.

        Args:
            X: a frame, an array of rows, or a list of dictionaries.
        """
        names, rows = self._block(X)
        if len(rows):
            self.links.add_many(rows)
            self._features = names

    def predict_many(self, X: Any) -> npt.NDArray[np.int64]:
        """Return `predict_one` of each vector as an array.

        Args:
            X: a frame, an array of rows, or a list of dictionaries.
        """
        return self.links.predict(self._block(X)[1])

    def _vector(self, x: Any) -> tuple[Names, Floats]:
        """Return the features and the coordinates of one vector, in the order of the features."""
        names = self._names(tuple(x)) if isinstance(x, Mapping) else None
        values = x if names is None else [x[name] for name in names]
        row = door.vector(values, dimension=None)[0]  # the clusterer checks the dimension
        return names or self._default_names(len(row)), row

    def _block(self, X: Any) -> tuple[Names, Floats]:
        """Return the features and the rows of a batch."""
        if not hasattr(X, "__len__"):
            raise VectorError(
                f"vectors in a {type(X).__name__}",
                expected="a frame, an array of rows, or a list of dictionaries",
                remedy="Collect a lazy frame or a generator first.",
            )
        names, values = self._named(X) if len(X) else ((), [])
        rows = door.vectors(values, dimension=None if len(X) else self.links.dimension)
        return names or self._default_names(rows.shape[1]), rows

    def _named(self, X: Any) -> tuple[Names, Any]:
        """Return the features of a batch, if they have names, and its rows."""
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
        """Return the features in the order of the first vector; raise VectorError for others."""
        names = seen if self._features is None else self._features
        _check_same(names, seen)
        return names

    def _default_names(self, dimension: int) -> Names:
        """Return the features of vectors without names."""
        return self._features or tuple(range(dimension))

    def clone(
        self, new_params: dict[str, Any] | None = None, include_attributes: bool = False
    ) -> LinksRiver:
        """Return a new model with the same parameters.

        Args:
            new_params: parameters that differ.
            include_attributes: whether to copy the clusterer, too.

        Raises:
            ArgumentError: both arguments are given.
        """
        if new_params and include_attributes:
            raise ArgumentError(
                f"new {', '.join(new_params)} for a clone with its clusterer",
                expected="the parameters that the vectors were learnt with",
                remedy="Leave include_attributes out, and learn the vectors again.",
            )
        copied: LinksRiver = super().clone(new_params, include_attributes)
        return copied

    # A pickle holds a snapshot (plain arrays with a checksum), no engine object.

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"links": self.links.to_bytes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        options = {"engine": state["engine"], "threads": state["threads"]}
        vars(self).update(state, links=Links.from_bytes(state["links"], **options))

    @property
    def _raw_memory_usage(self) -> int:
        """Return river's count of the Python objects, plus the arrays of the engine."""
        links = self.links
        arrays = sum(array.nbytes for array in links.state().arrays().values())
        kept = 4 * (links.dimension or 0) * links.n_vectors if links.keep_vectors else 0
        return super()._raw_memory_usage + arrays + kept

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield dict(zip(THRESHOLDS, (0.7, 0.6, 0.9), strict=True))

    def _unit_test_skips(self) -> set[str]:
        # A vector with missing or additional coordinates is refused: filling it up with zeros would
        # change its direction.
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
