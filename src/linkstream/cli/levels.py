"""The command `levels`: vectors of a file at several levels of granularity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from linkstream.cli import screen
from linkstream.cli.options import RowOptions, VectorFileOptions, cluster_command
from linkstream.cli.phrasing import reworded
from linkstream.cli.terminal_text import harmless

if TYPE_CHECKING:
    import numpy.typing as npt

    from linkstream.tuning import Levels

_WIDTH = 60  # characters of a shown text


def levels(
    file: Annotated[str, "Vectors in order of arrival, in a file as for cluster; - for stdin."],
    vectors: VectorFileOptions,
    preset: Annotated[
        str | None, "The encoder, such as minilm; else five levels are made from the vectors."
    ] = None,
    show: Annotated[str | None, "Column to show of the example rows, such as text."] = None,
    examples: Annotated[int, Option(min=0, help="Vectors to show the clusters of.")] = 3,
) -> None:
    """Show vectors at several levels of granularity, to choose one by looking.

    It clusters the first 2,500 vectors at each level: how many clusters, how large, and the
    clusters of the same few vectors. The vectors alone suggest a level; your task may ask for
    another one.

    Example: linkstream levels voices.npy --preset ge2e
    """
    from linkstream.tuning import levels as at_levels

    X, texts = _read(file, vectors, show)
    found = at_levels(X, preset, examples=examples)
    if not screen.wrote_json([_record(found, texts)]):
        _show(found, texts)


def _read(
    file: str, vectors: VectorFileOptions, show: str | None
) -> tuple[npt.NDArray[Any], list[str] | None]:
    """Return the first vectors of a file, and a column of it if one is to be shown."""
    import numpy as np

    from linkstream.tuning.level_table import VECTORS_MAX

    blocks, n = [], 0
    payloads: list[Any] = []
    with vectors.open(file, RowOptions(payload=show)) as source:
        for block in source:
            blocks.append(block.vectors)
            payloads += block.payloads or []
            n += len(block)
            if n >= VECTORS_MAX:
                break
    X = np.concatenate(blocks)[:VECTORS_MAX] if blocks else np.empty((0, 1), np.float32)
    if show is None:
        return X, None
    return X, [" ".join(str(value) for value in each.values()) for each in payloads]


def _record(found: Levels, texts: list[str] | None) -> dict[str, Any]:
    record = found.to_dict() | {"advice": reworded(found.advice)}
    if texts is not None:
        for level in record["levels"]:
            for each in level["examples"]:
                each["shown"] = [texts[row] for row in each["rows"]]
    return record


def _show(found: Levels, texts: list[str] | None) -> None:
    console = screen.console()
    title = f"{found.n_vectors:,} vectors at {len(found.levels)} levels"
    rows = screen.table(title, "level", "granularity", "clusters", "largest", "median", "of one")
    for each in found.levels:
        figures = (each.n_clusters, each.largest, each.median, each.singles)
        rows.add_row(each.name, f"{each.granularity:.2f}", *map(screen.figure, figures))
    console.print(rows)
    for number in range(len(found.levels[0].examples)):
        _show_example(found, number, texts)
    console.print(f"\n{reworded(found.advice)}", soft_wrap=True)
    console.print(f"\nTo use one: {_command(found)}", soft_wrap=True)


def _show_example(found: Levels, number: int, texts: list[str] | None) -> None:
    anchor = found.levels[0].examples[number].rows[0]
    words = f"row {anchor}" if texts is None else repr(harmless(texts[anchor][:_WIDTH]))
    rows = screen.listing(f"\nThe cluster of {words}", "level", "vectors", "some of the others")
    for each in found.levels:
        example = each.examples[number]
        others = ", ".join(map(str, example.rows[1:]))
        if texts is not None:
            others = "\n".join(harmless(texts[row][:_WIDTH]) for row in example.rows[1:])
        rows.add_row(each.name, f"{example.size:,}", others or "—")
    screen.console().print(rows)


def _command(found: Levels) -> str:
    chosen = found.suggested or found.default or found.levels[len(found.levels) // 2].name
    if found.preset is None:
        return cluster_command(found[chosen].thresholds)
    options = f"--preset {found.preset} --granularity {chosen}"
    return f"linkstream cluster FILE --store people.links {options}"
