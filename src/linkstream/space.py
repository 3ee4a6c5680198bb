"""The space of vectors: its mean vector, its dimension, and the model that made the vectors.

Real embeddings often lie in a cone, so that strangers (vectors of different identities) are not
perpendicular and lemma 1 fails. Subtracting the mean vector of the space and normalising again
restores the lemma. The mean must come from many identities
(docs/choices.md, "the space belongs to the set-up").

Without labels, the number of identities in a sample is estimated: vectors as similar as neighbours
count as one identity, and the number is one over the probability that two random vectors do.
Measured on subsets of eleven labelled sets: five voices or faces count as 4 to 8, thirty as 14 to
37. The estimate is too low for many identities (261 voices count as 37 to 52) and for identities
that come in families (thirty products count as 9 to 13). It is too high if one identity varies as
much as several do (four speakers of a meeting count as 42, two speakers with long speech as 3 to
25, five broad intents as 6 to 32). Pass labels to count exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linkstream.engine import door
from linkstream.engine.fixed_point import DIMENSION_MAX, norms
from linkstream.errors import ArgumentError, SpaceError, VectorError

# The mean of fewer identities describes them rather than the space. Measured on eleven sets: a
# mean of five sometimes makes pairs of other identities worse, a mean of ten or more hardly.
MIN_IDENTITIES = 12

# Strangers less similar than this count as perpendicular: centring is not needed.
PERPENDICULAR = 0.05

_SURVEYED = 3000  # vectors compared with each other: about 200 MB of memory
_PASSES = 4
_ROUNDING = 5e-6  # products of float32 differ by less from one machine to another
_NEAR = 0.4  # of the way from a random pair to a neighbour: two vectors count as one identity
_BLOCK = 8192

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """A mean vector to subtract (or None), the name of the encoder, and the dimension.

    Attributes:
        mean: mean of unit vectors of many identities, of length below 1. None leaves vectors as
            they are.
        model: name of the encoder. Vectors of different models are not mixed.
        dimension: dimension of the vectors; vectors of another dimension are refused. A mean
            fixes the dimension; if both are None, the first vector fixes it.

    >>> Space(mean=[0.5, 0.0, 0.0], model="encoder-7").dimension
    3
    >>> Space(model="encoder-8", dimension=512)
    Space(model 'encoder-8', no mean vector, 512 dimensions)
    """

    mean: npt.NDArray[np.float64] | None = None
    model: str | None = None
    dimension: int | None = None

    def __post_init__(self) -> None:
        if self.model is not None and not isinstance(self.model, str):
            raise SpaceError(
                f"a model tag of type {type(self.model).__name__}",
                expected="a string or None",
                remedy="Name the encoder, such as 'ge2e'.",
            )
        if self.dimension is not None:
            object.__setattr__(self, "dimension", _checked_dimension(self.dimension))
        if self.mean is not None:
            mean = _checked_mean(self.mean, self.dimension)
            object.__setattr__(self, "mean", mean)
            object.__setattr__(self, "dimension", len(mean))

    @classmethod
    def fit(
        cls,
        X: npt.ArrayLike,
        *,
        y: npt.ArrayLike | None = None,
        model: str | None = None,
        min_identities: int = MIN_IDENTITIES,
        seed: int = 0,
    ) -> Space:
        """Fit the space to a sample of many identities, labelled or not.

        Every identity weighs about the same, whatever its number of vectors. If strangers are
        already perpendicular (mean similarity below 0.05), the space has no mean. At most 3,000
        random vectors are compared. Fit once and keep the space: the last digits of the mean
        depend on the machine.

        Args:
            X: vectors of the encoder, one per row, of any length; at least two.
            y: the identity of each vector. Without labels, the number of identities is estimated;
                the docstring of this module says how well.
            model: name of the encoder.
            min_identities: minimum number of identities in the sample. The mean of few identities
                describes them rather than the space, and makes clusters worse.
            seed: seed of the random vectors.

        Raises:
            SpaceError: the sample has too few identities.

        >>> from linkstream.paper.generative import sample_stream
        >>> X, y = sample_stream(30, 10, 64, 0.1, np.random.default_rng(0))
        >>> Space.fit(X + 0.1, model="a cone").mean is None, Space.fit(X).mean is None
        (False, True)
        """
        seen = survey(X, y=y, seed=seed)
        if seen.identities < min_identities:
            words = "" if seen.counted else "about "
            raise SpaceError(
                f"a sample of {words}{seen.identities:.0f} identities",
                expected=f"at least {min_identities}, so that the mean describes the space",
                remedy="Take vectors of many more identities of the same encoder"
                + ("." if seen.counted else ", or pass y= to count them.")
                + " To centre anyway, lower min_identities.",
            )
        return cls(seen.mean if seen.strangers >= PERPENDICULAR else None, model)

    def check_same(self, other: Space) -> None:
        """Raise SpaceError unless vectors of the other space may be mixed with those of this one.

        A space without a dimension matches any dimension.

        Args:
            other: the other space.
        """
        one_dimension = (
            None in (self.dimension, other.dimension) or self.dimension == other.dimension
        )
        if self._same_mean(other) and self.model == other.model and one_dimension:
            return
        remedy = "Use one encoder and one space, or one clusterer for each space."
        if self.model != other.model:
            raise SpaceError(
                f"vectors of model {other.model!r}", expected=f"model {self.model!r}", remedy=remedy
            )
        raise SpaceError(
            f"a space of model {other.model!r} with {other._mean_in_words()}",
            expected=f"a space of the same model with {self._mean_in_words()}",
            remedy=remedy,
        )

    def text(self) -> str:
        """Return model, mean and dimension in one line."""
        model = "no model named" if self.model is None else f"model {self.model!r}"
        return f"{model}, {self._mean_in_words()}"

    def __repr__(self) -> str:
        return f"Space({self.text()})"

    def _mean_in_words(self) -> str:
        if self.mean is None:
            known = "" if self.dimension is None else f", {self.dimension} dimensions"
            return f"no mean vector{known}"
        length = float(np.linalg.norm(self.mean))
        return f"a mean vector of length {length:.4g} in {len(self.mean)} dimensions"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Space):
            return NotImplemented
        same = self.model == other.model and self.dimension == other.dimension
        return same and self._same_mean(other)

    def _same_mean(self, other: Space) -> bool:
        if self.mean is None or other.mean is None:
            return self.mean is other.mean
        return np.array_equal(self.mean, other.mean)

    __hash__ = None  # type: ignore[assignment]  # holds an array

    def centre(self, rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Return the rows at unit length, less the mean.

        Args:
            rows: vectors of any length.

        Raises:
            VectorError: a row is zero or not finite.
        """
        wide = rows.astype(np.float64)
        lengths = norms(wide)
        door.check_norms(rows, lengths)
        unit: npt.NDArray[np.float64] = wide / lengths[:, np.newaxis]
        return unit if self.mean is None else unit - self.mean


def _checked_dimension(dimension: int) -> int:
    whole = isinstance(dimension, (int, np.integer)) and not isinstance(dimension, bool)
    if not whole or not door.DIMENSION_MIN <= dimension <= DIMENSION_MAX:
        raise SpaceError(
            f"dimension={dimension!r:.80}",
            expected=f"a whole number from {door.DIMENSION_MIN} to {DIMENSION_MAX}, or None",
            remedy="Pass the number of coordinates of a vector of the encoder.",
        )
    return int(dimension)


def _checked_mean(mean: npt.ArrayLike, dimension: int | None) -> npt.NDArray[np.float64]:
    rows = door.vector(mean, dimension=None).astype(np.float64)
    if dimension not in (None, rows.shape[1]):
        raise SpaceError(
            f"a mean vector of dimension {rows.shape[1]} and dimension={dimension}",
            expected="one dimension",
            remedy="Leave dimension= out: the mean vector fixes it.",
        )
    length = float(norms(rows)[0])
    if not length < 1.0:
        raise SpaceError(
            f"a mean vector of length {length:.6g}",
            expected="a length below 1: the mean of unit vectors of several identities",
            remedy="Normalise vectors before averaging them.",
        )
    fixed: npt.NDArray[np.float64] = rows[0]
    fixed.flags.writeable = False
    return fixed


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """Measurements of a sample that describe its space.

    Attributes:
        mean: mean of the unit vectors, in which every identity weighs about the same.
        identities: number of identities.
        counted: whether `identities` is counted from labels; otherwise it is estimated.
        strangers: mean similarity of two vectors of different identities, without centring.
    """

    mean: Floats
    identities: float
    counted: bool
    strangers: float

    @property
    def length(self) -> float:
        """Length of the mean vector: near 0 for perpendicular strangers, near 1 in a cone."""
        return float(np.linalg.norm(self.mean))


def survey(X: npt.ArrayLike, *, y: npt.ArrayLike | None = None, seed: int = 0) -> Survey:
    """Measure the mean, the number of identities and the similarity of strangers of a sample.

    Args:
        X: vectors, one per row; at least two.
        y: the identity of each vector; None estimates the number of identities.
        seed: seed of the random vectors that are compared.
    """
    rows = door.vectors(X, dimension=None)
    if len(rows) < 2:
        raise VectorError(
            f"{len(rows)} vectors",
            expected="at least two",
            remedy="Take vectors of many identities.",
        )
    if y is not None:
        return _counted(rows, identities(y, len(rows)))
    rng = np.random.default_rng(seed)
    drawn = np.sort(rng.permutation(len(rows))[:_SURVEYED])
    return _estimated(unit_rows(rows[drawn]).astype(np.float32))


def unit_rows(rows: npt.NDArray[np.float32]) -> Floats:
    """Return the rows at unit length; raise VectorError if a row is zero."""
    return Space().centre(rows)


def identities(y: npt.ArrayLike, count: int) -> npt.NDArray[np.intp]:
    """Return the identity of each of `count` vectors as a number."""
    who = np.asarray(y)
    if who.shape != (count,):
        raise ArgumentError(
            f"labels of shape {who.shape} for {count} vectors",
            expected="one label for each vector",
            remedy="Give them in the order of the vectors.",
        )
    return np.unique(who, return_inverse=True)[1]


def _counted(rows: npt.NDArray[np.float32], who: npt.NDArray[np.intp]) -> Survey:
    """Survey labelled vectors: the mean of the means of all identities."""
    counts = np.bincount(who)
    means = np.zeros((len(counts), rows.shape[1]))
    for start in range(0, len(rows), _BLOCK):
        block = slice(start, start + _BLOCK)
        np.add.at(means, who[block], unit_rows(rows[block]))
    means /= counts[:, np.newaxis]
    n = len(means)
    mean = means.mean(axis=0)
    own = float(np.sum(means * means))
    strangers = (n * n * float(mean @ mean) - own) / max(n * (n - 1), 1)
    return Survey(mean, n, counted=True, strangers=strangers if n > 1 else 0.0)


def _estimated(unit: npt.NDArray[np.float32]) -> Survey:
    """Survey unlabelled vectors.

    Vectors near each other after centring count as one identity. A vector with more than twice the
    typical number of near vectors gets a lower weight, so that a big identity weighs no more than
    a few small ones. Vectors without near ones get no extra weight, since they are often noise. A
    better mean gives better neighbours, so a few passes are made.
    """
    count = len(unit)
    weights = np.full(count, 1.0 / count)
    products: npt.NDArray[np.float32] = unit @ unit.T
    for turn in range(_PASSES):
        mean = weights @ unit.astype(np.float64)
        near = _near(_centred(products, weights), weights)
        known = 1.0 + near.sum(axis=1)
        typical = count / float(np.sum(1.0 / known))
        same, chance = _pair_share(near, weights), weights
        weights = 1.0 / np.maximum(known, typical if turn == 0 else 2.0 * typical)
        weights /= weights.sum()
    strange = ~near
    np.fill_diagonal(strange, False)
    pairs = float(chance @ (strange @ chance))
    alike = float(chance @ (np.where(strange, products, 0.0) @ chance))
    identities = min(1.0 / max(same, 1.0 / count), float(count))
    strangers = alike / pairs if pairs > 0.0 else float(mean @ mean)
    return Survey(mean, identities, counted=False, strangers=strangers)


def _centred(products: npt.NDArray[np.float32], weights: Floats) -> npt.NDArray[np.float32]:
    """Return the similarities after subtracting the weighted mean, from the products alone."""
    to_mean = (products @ weights.astype(np.float32)).astype(np.float64)
    centred = products - to_mean[:, np.newaxis].astype(np.float32)
    centred -= (to_mean - float(to_mean @ weights)).astype(np.float32)
    centred[np.abs(centred) < _ROUNDING] = 0.0
    # A vector that equals the mean has no direction; it stays perpendicular to all others.
    lengths = np.sqrt(np.maximum(np.diagonal(centred), 1e-6))
    centred /= lengths[:, np.newaxis]
    centred /= lengths
    return centred


def _near(similarity: npt.NDArray[np.float32], weights: Floats) -> npt.NDArray[np.bool_]:
    """Return which pairs are near: `_NEAR` of the way from a random pair to neighbours."""
    np.fill_diagonal(similarity, -2.0)
    neighbour = float(np.median(similarity.max(axis=1)))
    np.fill_diagonal(similarity, 0.0)
    others = 1.0 - float(weights @ weights)
    random_pair = float(weights @ (similarity @ weights)) / others
    near: npt.NDArray[np.bool_] = similarity >= random_pair + _NEAR * (neighbour - random_pair)
    np.fill_diagonal(near, False)
    return near


def _pair_share(near: npt.NDArray[np.bool_], weights: Floats) -> float:
    """Return the probability that two vectors, drawn by weight, are near each other."""
    return float(weights @ (near @ weights)) / (1.0 - float(weights @ weights))
