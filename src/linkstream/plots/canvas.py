"""What all pictures share: colours, figures, and names made fit to be drawn."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from linkstream.clusterer import Cluster
from linkstream.engine.state import State
from linkstream.errors import ArgumentError, MissingExtraError
from linkstream.space import Space

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart by colour-blind readers (their yellow is too pale for bars),
# then darker ones for streams with more identities.
PALETTE = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"),
    *("#332288", "#8C6D31", "#882255", "#117733", "#AA99DD", "#F0A58F"),
)
FRAGMENT = "#B4B4B4"
INK, FAINT = "#333333", "#E4E4E4"

Colours = Mapping[int, str]


class Clustering(Protocol):
    """What can be drawn: a clusterer or a store."""

    @property
    def space(self) -> Space:
        """The space of its vectors."""

    @property
    def n_vectors(self) -> int:
        """Vectors seen."""

    def state(self) -> State:
        """The whole state as plain arrays."""

    def clusters(self) -> list[Cluster]:
        """All clusters, by ID."""

    def labels(self) -> npt.NDArray[np.int64]:
        """Current cluster of every vector."""


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise MissingExtraError("matplotlib", extra="plots", purpose="Drawing") from missing
    return Figure(figsize=(width, height), dpi=150, layout="constrained")


def save(figure: Figure, path: Path) -> None:
    """Write a figure; letters that the font does not have are boxes, not warnings."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        try:
            figure.savefig(path)
        except OSError as error:
            raise ArgumentError(
                f"{path}: {error.strerror or error}",
                expected="a place to write the picture to",
                remedy="Choose another one.",
            ) from None


def by_size(links: Clustering) -> list[Cluster]:
    """All clusters, the biggest first."""
    return sorted(links.clusters(), key=lambda cluster: (-cluster.size, cluster.id))


def colours_by_size(clusters: list[Cluster]) -> dict[int, str]:
    """A colour for each of the biggest; `clusters` has them first."""
    return {cluster.id: colour for cluster, colour in zip(clusters, PALETTE, strict=False)}


def title(cluster: Cluster, width: int = 24) -> str:
    """What to call a cluster in a picture: its name if it has one, with nothing odd in it."""
    if cluster.name is None:
        return f"ID {cluster.id}"
    shown = "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in cluster.name
    )
    return shown if len(shown) <= width else shown[: width - 1] + "…"


def as_they_are(axes: Axes) -> None:
    """Names may hold dollar signs; they are no formulas."""
    for label in (*axes.get_yticklabels(), *axes.get_xticklabels()):
        label.set_parse_math(False)


def refuse_empty(state: State) -> None:
    """ArgumentError where there is nothing to draw."""
    if not len(state.numbers):
        raise ArgumentError(
            "a clusterer without vectors",
            expected="at least one subcluster to draw",
            remedy="Add vectors first.",
        )


def heading(axes: Axes, words: str, **more: Any) -> None:
    """The words above a panel."""
    axes.set_title(words, loc="left", fontsize=10, color=INK, **more)


def open_frame(axes: Axes, *sides: str) -> None:
    """A panel without the lines of these sides."""
    axes.spines[list(sides)].set_visible(False)
    axes.tick_params(colors=INK, labelsize=8.5)
