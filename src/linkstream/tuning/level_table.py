"""`levels`: the user's own vectors at four or five levels of granularity.

A person who sees the clusters of a few levels can choose one without knowing a threshold. With a
preset, the levels are those of the preset. Without one, they lie on a line that is made from the
similarities of the vectors: from clusters as loose as random pairs to clusters as tight as nearest
neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.paper.thresholds import Thresholds
from linkstream.presets import Granularity, Line, Preset, granularity_of, other_dimension
from linkstream.presets import preset as preset_of
from linkstream.space import Space
from linkstream.tuning import granularity, grid
from linkstream.tuning.inputs import check_whole_number, checked_vectors
from linkstream.tuning.measurements import Rows, unit_vectors
from linkstream.tuning.result import text_table

VECTORS_MAX = 2500
EXAMPLES = 3
_MEMBERS = 4  # rows of an example
_OWN_NAMES = ("coarsest", "coarse", "middle", "fine", "finest")
_OWN_JOIN = 0.4  # (1 − T_s) / (1 − T_c), as in the presets

Partition = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Example:
    """The cluster of one vector at one level: its size, and some of its rows in order."""

    size: int
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """The clusters of the vectors at one granularity.

    Attributes:
        name: the name of the level.
        granularity: its place on the line, from 0 to 1.
        words: what one cluster is at this level; "" without a preset.
        thresholds: the thresholds of the level.
        n_clusters: number of clusters.
        largest, median: vectors of the largest and of the median cluster.
        singles: clusters of one vector.
        examples: the clusters of the same few vectors at every level.
        labels: the cluster of each vector, numbered from 0.
    """

    name: str
    granularity: float
    words: str
    thresholds: Thresholds
    n_clusters: int
    largest: int
    median: float
    singles: int
    examples: tuple[Example, ...]
    labels: Partition

    def to_dict(self) -> dict[str, Any]:
        """Return the figures by name, without the labels, as plain values for JSON."""
        kept = {name: getattr(self, name) for name in self.__slots__ if name != "labels"}
        return kept | {
            "thresholds": asdict(self.thresholds),
            "examples": [asdict(each) | {"rows": list(each.rows)} for each in self.examples],
        }


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """The vectors at several levels, and the level that the vectors alone suggest.

    Attributes:
        preset: the name of the preset; None if the levels were made from the vectors.
        n_vectors: number of vectors that were clustered.
        levels: coarse levels first.
        default: the level of the preset that applies if nothing is said; None without a preset.
        suggested: the level with the most separate clusters; None if the vectors cannot decide.
        advice: what the suggestion is based on.
    """

    preset: str | None
    n_vectors: int
    levels: tuple[Level, ...]
    default: str | None
    suggested: str | None
    advice: str

    def __getitem__(self, name: str) -> Level:
        return next(each for each in self.levels if each.name == name)

    def to_dict(self) -> dict[str, Any]:
        """Return all figures by name, as plain values for JSON."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        return plain | {"levels": [each.to_dict() for each in self.levels]}

    def text(self) -> str:
        """Return one line for each level, and the advice."""
        lines = [
            (
                each.name,
                f"{each.n_clusters} clusters, largest {each.largest}, {each.singles} of one",
            )
            for each in self.levels
        ]
        return f"{text_table(lines)}\n\n{self.advice}"

    __str__ = text


def levels(
    X: npt.ArrayLike,
    preset: str | None = None,
    *,
    granularities: Sequence[Granularity] | None = None,
    examples: int = EXAMPLES,
) -> Levels:
    """Cluster vectors at several levels of granularity, to choose one by looking.

    The cost is about twenty runs of Links over at most 2,500 vectors, the first of the stream: half
    a minute.

    >>> from linkstream.data import voice_stream
    >>> shown = levels(voice_stream().X[:300], "ge2e")
    >>> [each.n_clusters for each in shown.levels] == sorted(
    ...     each.n_clusters for each in shown.levels
    ... )
    True

    Args:
        X: vectors in order of arrival, at least ten.
        preset: the name of the preset of the encoder. None makes five levels from the
            similarities of the vectors.
        granularities: levels by name, or numbers from 0 (coarse) to 1 (fine). None takes the
            levels of the preset.
        examples: how many vectors to show the clusters of, at each level.

    Raises:
        ArgumentError: the vectors or levels cannot be used.
        DimensionError: the preset is for vectors of another dimension.
    """
    rows = checked_vectors(X, None, remedy="Give more of the stream.")[:VECTORS_MAX]
    check_whole_number("examples", examples, least=0, remedy="Three show enough.")
    scale = _scale_of(rows, preset)
    sample, wanted = unit_vectors(rows, scale.space), scale.chosen(granularities)
    options = granularity.options_of(scale)
    partitions = [grid.partition(scale.line.at(at), sample, options) for at in wanted.values()]
    anchors = _anchors(sample, partitions[len(wanted) // 2], examples)
    found = tuple(
        _level(name, at, scale, partition, anchors)
        for (name, at), partition in zip(wanted.items(), partitions, strict=True)
    )
    suggested, advice = _suggestion(granularity.run_line(sample, scale), wanted)
    return Levels(preset, len(rows), found, scale.default, suggested, advice)


@dataclass(frozen=True, slots=True, eq=False)
class _Scale:
    """A line with levels: of a preset, or made from the vectors."""

    line: Line
    levels: dict[str, float]
    words: dict[str, str]
    default: str | None
    space: Space
    evidence: str
    heal: str | None
    preset: Preset | None

    def chosen(self, granularities: Sequence[Granularity] | None) -> dict[str, float]:
        """Return the wanted levels, coarse ones first; a number is its own name."""
        if granularities is None:
            return self.levels
        places = [granularity_of(each, self.levels, of=_of(self.preset)) for each in granularities]
        names = {at: name for name, at in self.levels.items()}
        return {names.get(at, f"{at:g}"): at for at in sorted({*places})}


def _of(preset: Preset | None) -> str:
    return "" if preset is None else f" of preset {preset.name!r}"


def _scale_of(rows: Rows, name: str | None) -> _Scale:
    if name is None:
        return _own_scale(unit_vectors(rows, Space()))
    p = preset_of(name)
    if rows.shape[1] != p.dimension:
        raise other_dimension(f"vectors of dimension {rows.shape[1]}", p.space)
    return _Scale(p.line, p.levels, p.words, p.default, p.space, p.evidence, p.heal, p)


def _own_scale(sample: Rows) -> _Scale:
    """Return five levels between the similarities of random pairs and of nearest neighbours."""
    low, high = grid.similarity_range(sample @ sample.T)
    coarse, fine = (round(math.sqrt(value), 4) for value in (low, high))
    line = Line(coarse=coarse, fine=fine, pull=grid.PULL, join=_OWN_JOIN)
    places = np.linspace(0.0, 1.0, len(_OWN_NAMES)).tolist()
    own = dict(zip(_OWN_NAMES, places, strict=True))
    return _Scale(line, own, {}, None, Space(), "cluster", "settle", None)


def _suggestion(runs: grid.GridRuns, wanted: dict[str, float]) -> tuple[str | None, str]:
    """Return the level nearest to the most separate clusters, or None; and the reason."""
    score = granularity.score_by_structure(runs)
    reasons = granularity.doubts(score)
    if reasons:
        return None, f"Cannot decide: {', and '.join(reasons)}. Choose by the examples."
    best = granularity.PLACES[int(np.argmax(score))]
    name = min(wanted, key=lambda each: abs(wanted[each] - best))
    return name, (
        f"The clusters are most separate at granularity {best:.2f}; the nearest level is {name}. "
        "Your task may ask for finer or coarser ones: choose by the examples."
    )


def _anchors(sample: Rows, partition: Partition, count: int) -> list[int]:
    """Return the most central vectors of the largest clusters, one for each cluster."""
    largest = np.argsort(-np.bincount(partition), kind="stable")[:count]
    return [_most_central(sample, np.flatnonzero(partition == each)) for each in largest]


def _most_central(sample: Rows, rows: npt.NDArray[np.intp]) -> int:
    towards = sample[rows] @ sample[rows].sum(axis=0)
    return int(rows[int(np.argmax(towards))])


def _level(
    name: str, at: float, scale: _Scale, partition: Partition, anchors: Sequence[int]
) -> Level:
    sizes = np.bincount(partition)
    return Level(
        name=name,
        granularity=at,
        words=scale.words.get(name, ""),
        thresholds=scale.line.at(at),
        n_clusters=len(sizes),
        largest=int(sizes.max()),
        median=float(np.median(sizes)),
        singles=int(np.sum(sizes == 1)),
        examples=tuple(_example(partition, anchor) for anchor in anchors),
        labels=partition,
    )


def _example(partition: Partition, anchor: int) -> Example:
    """Return the cluster of a vector: its size, the vector, and other rows spread evenly."""
    rows = np.flatnonzero(partition == partition[anchor])
    others = rows[rows != anchor]
    spread = np.linspace(0, max(len(others) - 1, 0), min(_MEMBERS - 1, len(others)))
    return Example(len(rows), (anchor, *others[np.unique(spread.astype(int))].tolist()))
