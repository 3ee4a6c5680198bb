"""Shared parts of all pictures: colours, figures, files and labels."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkstream.clusterer import Cluster
from linkstream.engine.state import State
from linkstream.errors import ArgumentError, MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from linkstream.clusterer import Links
    from linkstream.store import Store

    Clustering = Links | Store

# The colours of Okabe and Ito, which colour-blind readers can distinguish (without their yellow,
# which is too pale for bars), then darker ones for streams with more identities.
PALETTE = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"),
    *("#332288", "#8C6D31", "#882255", "#117733", "#AA99DD", "#F0A58F"),
)
FRAGMENT = "#B4B4B4"
INK, FAINT = "#333333", "#E4E4E4"

Colours = Mapping[int, str]


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure.

    Args:
        width: in inches.
        height: in inches.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise MissingExtraError("matplotlib", extra="plots", purpose="Drawing") from missing
    return Figure(figsize=(width, height), dpi=150, layout="constrained")


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure to a file. Characters that the font lacks are drawn as boxes.

    Args:
        figure: the figure.
        path: the file: .png, .svg or .pdf.

    Raises:
        ArgumentError: the file cannot be written.
    """
    name, drawn = os.fspath(path), io.BytesIO()
    suffix = os.path.splitext(name)[1]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        try:
            # Drawn first, then written at once: an interrupt leaves no part of a picture.
            figure.savefig(drawn, format=suffix[1:] or "png")
            Path(name if suffix else f"{name}.png").write_bytes(drawn.getbuffer())
        except (OSError, ValueError) as error:
            raise ArgumentError(
                f"{os.fspath(path)}: {getattr(error, 'strerror', None) or error}",
                expected="a .png, .svg or .pdf in a folder with write permission",
                remedy="Choose another name.",
            ) from None


def by_size(links: Clustering) -> list[Cluster]:
    """Return all clusters, the biggest first."""
    return sorted(links.clusters(), key=lambda cluster: (-cluster.size, cluster.id))


def colours_by_size(clusters: list[Cluster]) -> dict[int, str]:
    """Return a colour for each of the first clusters, by ID."""
    return {cluster.id: colour for cluster, colour in zip(clusters, PALETTE, strict=False)}


def title(cluster: Cluster, width: int = 24) -> str:
    """Return the label of a cluster: its ID, or its name with unprintable characters replaced."""
    if cluster.name is None:
        return f"ID {cluster.id}"
    shown = "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in cluster.name
    )
    return shown if len(shown) <= width else shown[: width - 1] + "…"


def plain_labels(axes: Axes) -> None:
    """Show the labels of the axes as they are, although names may contain dollar signs."""
    for label in (*axes.get_yticklabels(), *axes.get_xticklabels()):
        label.set_parse_math(False)


def refuse_empty(state: State) -> None:
    """Raise ArgumentError if there is nothing to draw."""
    if not len(state.numbers):
        raise ArgumentError(
            "a clusterer without vectors",
            expected="at least one subcluster to draw",
            remedy="Add vectors first.",
        )


def hide_ticks(axes: Axes) -> None:
    """Remove the ticks of a panel, and draw its frame in a faint colour."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_color(FAINT)


def heading(axes: Axes, words: str, **more: Any) -> None:
    """Write the heading of a panel."""
    axes.set_title(words, loc="left", fontsize=10, color=INK, **more)


def figure_title(figure: Figure, words: str, *, fontsize: float = 14) -> None:
    """Write the title of a figure at its left."""
    figure.suptitle(words, x=0.012, ha="left", fontsize=fontsize, fontweight="bold", color=INK)


def open_frame(axes: Axes, *sides: str) -> None:
    """Hide the frame of a panel on these sides."""
    axes.spines[list(sides)].set_visible(False)
    axes.tick_params(colors=INK, labelsize=8.5)
