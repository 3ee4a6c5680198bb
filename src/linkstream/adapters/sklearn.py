"""scikit-learn: `LinksClusterer`, an estimator for scikit-learn 1.5 and later."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.adapters import making
from linkstream.clusterer import Links
from linkstream.engine import door
from linkstream.errors import MissingExtraError
from linkstream.identity.healing import Healing
from linkstream.space import Space

try:
    from sklearn.base import BaseEstimator, ClusterMixin
    from sklearn.utils.validation import check_is_fitted
except ImportError as missing:
    raise MissingExtraError("scikit-learn", extra="sklearn", purpose="The estimator") from missing

try:
    from sklearn.utils.validation import validate_data
except ImportError:  # scikit-learn 1.5 has it as a method

    def validate_data(estimator: Any, X: Any, **options: Any) -> Any:
        """X as a checked array, with the estimator's own notes of its columns."""
        return estimator._validate_data(X, **options)


# Checks of `sklearn.utils.estimator_checks` that do not apply, and why: they are what
# `check_estimator(..., expected_failed_checks=NOT_APPLICABLE)` asks for.
NOT_APPLICABLE = {
    "check_estimators_dtypes": (
        "its whole numbers include a row of zeros, which has no direction to cluster by; "
        "rows of any dtype that are not zero are taken"
    ),
}


class LinksClusterer(ClusterMixin, BaseEstimator):  # type: ignore[misc]  # sklearn has no types
    """Links as an estimator: `fit`, `partial_fit`, `predict`, `fit_predict`, `labels_`.

    Rows are clustered in their order, as `Links.add_many` does; `fit` starts anew, `partial_fit`
    goes on. Thresholds have no defaults, for they belong to an encoder: give the three, or a
    preset, or a preset and those that should differ from it. As scikit-learn wants it, they are
    looked at by `fit`, not before.

    Args:
        cluster_similarity, subcluster_similarity, pair_similarity_max: as those of `Links`.
        preset: name of a preset (docs/tuning.md): its thresholds, space, evidence and healing.
        space, evidence, heal: as those of `Links`. None: the preset's, if there is one;
            `heal=False`: none, whatever the preset says.
        min_size, max_subclusters, max_idle, keep_vectors, engine, threads: as those of `Links`.

    Attributes:
        links_: the clusterer itself: to name, correct, explain, save.
        labels_: current ID of every row since `fit`.
        n_features_in_, feature_names_in_: as scikit-learn defines them.

    >>> X = [[1.0, 0.0, 0.1], [0.0, 1.0, 0.0], [0.9, 0.1, 0.0]]
    >>> LinksClusterer(0.7, 0.6, 0.9).fit_predict(X)
    array([0, 1, 0])
    """

    links_: Links

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
        self.min_size = min_size
        self.max_subclusters = max_subclusters
        self.max_idle = max_idle
        self.keep_vectors = keep_vectors
        self.engine = engine
        self.threads = threads

    def fit(self, X: Any, y: object = None) -> LinksClusterer:
        """Cluster the rows of X, in their order, from nothing; `y` is not looked at."""
        parameters = self._parameters()
        self._take(making.links(parameters), X)
        self._fitted_with_ = parameters
        return self

    def partial_fit(self, X: Any, y: object = None) -> LinksClusterer:
        """Cluster more rows; the IDs are those of one `fit` of all rows at once.

        Raises:
            ArgumentError: a parameter was changed since `fit`; call `fit` to start with it.
        """
        if not self._fitted():
            return self.fit(X)
        making.check_unchanged(self._fitted_with_, self._parameters())
        return self._take(self.links_, X)

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """The ID that each row would be given, changing nothing; −1 where it would be new."""
        check_is_fitted(self)
        return self.links_.predict(self._rows(X, reset=False))

    @property
    def labels_(self) -> npt.NDArray[np.int64]:
        """Current ID of every row since `fit`, in order of arrival.

        Counted when asked for: a stream of many small `partial_fit` does not pay for it.
        """
        check_is_fitted(self)
        return self.links_.labels()

    def _parameters(self) -> dict[str, Any]:
        """The parameters that the clusterer is made from."""
        return dict(self.get_params(deep=False))

    def _take(self, links: Links, X: Any) -> LinksClusterer:
        """Add the rows to a clusterer and keep it, or leave all as it was."""
        before = dict(self.__dict__)
        try:
            links.add_many(self._rows(X, reset=not (self._fitted() and links is self.links_)))
        except Exception:
            self.__dict__ = before
            raise
        self.links_ = links
        return self

    def _rows(self, X: Any, *, reset: bool) -> Any:
        """X as a dense array of finite numbers, by scikit-learn's own rules."""
        least = door.DIMENSION_MIN if reset else 1  # later it is n_features_in_ that counts
        numbers = [np.float32, np.float64]
        return validate_data(self, X, reset=reset, dtype=numbers, ensure_min_features=least)

    def _fitted(self) -> bool:
        return "links_" in vars(self)

    # A pickle holds our own snapshot (plain arrays, checksummed) and no object of an engine.

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "links_" in state:
            state["links_"] = state["links_"].to_bytes()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if "links_" in state:
            options = {"engine": state["engine"], "threads": state["threads"]}
            state["links_"] = Links.from_bytes(state["links_"], **options)
        super().__setstate__(state)
