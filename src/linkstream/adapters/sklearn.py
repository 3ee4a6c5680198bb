"""`LinksClusterer`, an estimator for scikit-learn 1.5 and later."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.adapters.parameters import make_links, store_parameters
from linkstream.clusterer import Links
from linkstream.confidence import Model
from linkstream.engine import door
from linkstream.errors import ArgumentError, MissingExtraError
from linkstream.identity.settling import Healing
from linkstream.space import Space

try:
    from sklearn.base import BaseEstimator, ClusterMixin
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.validation import check_is_fitted
except ImportError as missing:
    raise MissingExtraError("scikit-learn", extra="sklearn", purpose="The estimator") from missing

try:
    from sklearn.utils.validation import validate_data
except ImportError:  # scikit-learn 1.5 has a method instead
    validate_data = None

# Checks of `sklearn.utils.estimator_checks` that do not apply, with the reason, for
# `check_estimator(..., expected_failed_checks=NOT_APPLICABLE)`.
NOT_APPLICABLE = {
    "check_estimators_dtypes": (
        "its whole numbers include a row of zeros, which has no direction; "
        "rows of any dtype that are not zero are accepted"
    )
}


def check_has_model(model: Any) -> bool:
    """Return whether an estimator has a model of confidence; raise AttributeError if not.

    Args:
        model: the estimator.
    """
    fitted = vars(model).get("links_")
    if model.confidence is not None or (fitted is not None and fitted.confidence.model is not None):
        return True
    raise AttributeError(
        "predict_proba needs a model: pass confidence=, such as tune(X, y).confidence"
    )


class LinksClusterer(ClusterMixin, BaseEstimator):  # type: ignore[misc]  # sklearn has no types
    """Links as an estimator: `fit`, `partial_fit`, `predict`, `fit_predict`, `labels_`.

    Rows are clustered in their order, as by `Links.add_many`; `fit` starts again, `partial_fit`
    continues. Thresholds belong to an encoder and have no defaults: give the three, or a preset, or
    a preset and the thresholds that differ from it. `fit` checks the parameters.

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
        min_size: as for `Links`.
        max_subclusters: as for `Links`.
        max_idle: as for `Links`.
        keep_vectors: as for `Links`.
        confidence: as for `Links`; `predict_proba` needs it.
        engine: as for `Links`.
        threads: as for `Links`.

    Attributes:
        links_: the clusterer, to name, correct, explain and save.
        labels_: current ID of every row since `fit`.
        classes_: −1 for a new cluster, then the current IDs: the columns of `predict_proba`.
        n_features_in_: number of columns, as scikit-learn defines it.
        feature_names_in_: names of the columns, as scikit-learn defines them.

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
        granularity: str | float | None = None,
        space: Space | None = None,
        mode: str | None = None,
        evidence: str | None = None,
        heal: Healing | str | bool | None = None,
        min_size: int = 1,
        max_subclusters: int | None = None,
        max_idle: int | None = None,
        keep_vectors: bool | None = None,
        confidence: Model | None = None,
        engine: str = "auto",
        threads: int | None = None,
    ) -> None:
        store_parameters(self, locals())

    def fit(self, X: Any, y: object = None) -> LinksClusterer:
        """Cluster rows in their order, starting from an empty clusterer.

        Args:
            X: vectors, one a row.
            y: ignored.
        """
        parameters = self._parameters()
        self._take(make_links(parameters), X)
        self._fitted_with_ = parameters
        return self

    def partial_fit(self, X: Any, y: object = None) -> LinksClusterer:
        """Cluster more rows; the IDs are those of one `fit` of all rows at once.

        Args:
            X: vectors, one a row.
            y: ignored.

        Raises:
            ArgumentError: a parameter was changed since `fit`.
        """
        if not self._fitted():
            return self.fit(X)
        _check_unchanged(self._fitted_with_, self._parameters())
        return self._take(self.links_, X)

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """Return the ID that each row would get, or −1 for a new cluster; change nothing.

        Args:
            X: vectors, one a row.
        """
        check_is_fitted(self)
        return self.links_.predict(self._rows(X, reset=False))

    @available_if(check_has_model)  # type: ignore[untyped-decorator,unused-ignore]
    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Return how probably each row belongs to each of `classes_`; change nothing.

        Probabilities are those of `Links.predict_proba`: of the five best clusters and of a new
        one; all others are 0. The probability of what `predict` says is that of the decision, and
        need not be the greatest. A row is NaN where they are unknown (`links_.confidence.why`).
        Without a model there is no such method.

        Args:
            X: vectors, one a row.
        """
        check_is_fitted(self)
        found = self.links_.predict_proba(self._rows(X, reset=False))
        classes = self.classes_
        shares = np.zeros((len(found), len(classes)))
        for row, each in enumerate(found):
            shares[row, np.searchsorted(classes, list(each))] = list(each.values())
            if not each:
                shares[row] = np.nan
        return shares

    @property
    def classes_(self) -> npt.NDArray[np.int64]:
        """−1 for a new cluster, then the IDs of all clusters, rising, computed on access."""
        check_is_fitted(self)
        return np.array([-1, *(each.id for each in self.links_.clusters())], dtype=np.int64)

    @property
    def labels_(self) -> npt.NDArray[np.int64]:
        """Current ID of every row since `fit`, in order of arrival, computed on access."""
        check_is_fitted(self)
        return self.links_.labels()

    def _parameters(self) -> dict[str, Any]:
        """Return the parameters of the clusterer."""
        return dict(self.get_params(deep=False))

    def _take(self, links: Links, X: Any) -> LinksClusterer:
        """Add rows to a clusterer and store it; on an error, leave the estimator unchanged."""
        before = dict(self.__dict__)
        try:
            links.add_many(self._rows(X, reset=not (self._fitted() and links is self.links_)))
        except Exception:
            self.__dict__ = before
            raise
        self.links_ = links
        return self

    def _rows(self, X: Any, *, reset: bool) -> Any:
        """Return X as a dense array of finite numbers, checked by scikit-learn."""
        options = {
            "reset": reset,
            "dtype": [np.float32, np.float64],
            # After the first fit, n_features_in_ is checked instead.
            "ensure_min_features": door.DIMENSION_MIN if reset else 1,
        }
        if validate_data is None:
            return self._validate_data(X, **options)
        return validate_data(self, X, **options)

    def _fitted(self) -> bool:
        return "links_" in vars(self)

    # A pickle holds a snapshot (plain arrays with a checksum), no engine object.

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


def _check_unchanged(before: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise ArgumentError if a parameter was changed since the last fit."""
    changed = [name for name, value in now.items() if before[name] != value]
    if changed:
        raise ArgumentError(
            "; ".join(f"{name}={now[name]!r} after {before[name]!r}" for name in changed),
            expected="the parameters of the last fit()",
            remedy="Set them back to continue, or call fit() to start again with them.",
        )
