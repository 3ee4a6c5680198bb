"""Tables of the quality benchmark, for the screen and for docs/tuning.md."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from benchmarks.protocol import MOMENTS, STILLNESS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "tuning.md"
SECTION = "## Held-out quality, compared with other methods"
NONE = "—"
BESIDE = ("text_googlenews", "voice_ravdess")  # sets that are not part of the headline mean

Grid = list[list[str]]


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure of one method on one set: for each split each order, the given order first."""

    splits: tuple[tuple[float, ...], ...]

    @property
    def orders(self) -> tuple[float, ...]:
        """The figure in every order of every split."""
        return tuple(value for orders in self.splits for value in orders)

    @property
    def given_by_split(self) -> list[float]:
        """The figure in the given order of arrival, by split."""
        return [orders[0] for orders in self.splits]

    @property
    def given(self) -> float:
        """The figure in the given order of arrival: the mean over the splits."""
        return float(np.mean(self.given_by_split))

    @property
    def mean(self) -> float:
        """Mean over all orders and splits."""
        return float(np.mean(self.orders))

    @property
    def deviation(self) -> float:
        """Standard deviation over the orders of a split: the mean over the splits."""
        return float(np.mean([np.std(orders) for orders in self.splits]))

    @property
    def spread(self) -> float:
        """Difference between the best and the worst order of a split: the mean over the splits."""
        return float(np.mean([max(orders) - min(orders) for orders in self.splits]))


@dataclass(frozen=True, slots=True)
class Row:
    """One method at one moment, or at two moments that never differ.

    Attributes:
        method: name of the method.
        moment: the moment or moments.
        ordered: whether the answer depends on the order of arrival.
        capped: whether the method got fewer vectors than others.
        tune_seconds, run_seconds: processor seconds of one split, summed over the sets.
        cells: accuracy by set.
        stillness: for the row of the current labels: `still` and `half`, each by set.
    """

    method: str
    moment: str
    ordered: bool
    capped: bool
    tune_seconds: float
    run_seconds: float
    cells: dict[str, Cell]
    stillness: dict[str, dict[str, Cell]]

    def over_sets(self, names: Sequence[str], figure: str) -> float | None:
        """Return the mean of a figure over the sets; None unless the row has them all."""
        return over_sets(self.cells, names, figure)

    def deviation_of_mean(self, names: Sequence[str]) -> float | None:
        """Return the standard deviation over splits of the mean over sets; None if not known."""
        found = [self.cells[name].given_by_split for name in names if name in self.cells]
        lengths = {len(each) for each in found}
        if len(found) < len(names) or len(lengths) != 1 or lengths == {1}:
            return None
        return float(np.std(np.mean(found, axis=0)))


def over_sets(cells: Mapping[str, Cell], names: Sequence[str], figure: str) -> float | None:
    """Return the mean of a figure over the sets; None without sets or unless all are there."""
    if not names or not all(name in cells for name in names):
        return None
    return float(np.mean([getattr(cells[name], figure) for name in names]))


def set_names(results: dict[str, Any]) -> list[str]:
    """Return the names of all sets: those of the headline, then those beside it."""
    found = {name for kept in results["methods"].values() for name in kept["sets"]}
    return sorted(found, key=lambda name: (name in BESIDE, name))


def headline(names: Sequence[str]) -> list[str]:
    """Return the sets that the mean is taken over; all of them if there are no others."""
    return [name for name in names if name not in BESIDE] or list(names)


def splits_of(of_set: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the results of all splits of a set; files of earlier versions have one."""
    first = [of_set] if "orders" in of_set else []
    return first + list(of_set.get("splits", {}).values())


def rows(results: dict[str, Any]) -> list[Row]:
    """Return all methods at all their moments, in the order of the file."""
    most: dict[tuple[str, int], int] = {}
    for kept in results["methods"].values():
        for name, of_set in kept["sets"].items():
            for split, result in enumerate(splits_of(of_set)):
                seen = most.get((name, split), 0)
                most[name, split] = max(seen, result["vectors"][1])
    return [
        row
        for method, kept in results["methods"].items()
        for row in _rows_of(method, kept["ordered"], kept["sets"], most)
    ]


def _rows_of(
    method: str, ordered: bool, sets: dict[str, Any], most: Mapping[tuple[str, int], int]
) -> Iterator[Row]:
    results = {name: splits_of(of_set) for name, of_set in sets.items()}
    results = {name: splits for name, splits in results.items() if splits}
    by_moment: dict[str, dict[str, Cell]] = {}
    for moment in MOMENTS:
        cells = cells_of(results, moment)
        if cells and cells == by_moment.get("instant"):
            by_moment["instant = current"] = by_moment.pop("instant")
        elif cells:
            by_moment[moment] = cells
    capped = any(
        result["vectors"][1] < most[name, split]
        for name, splits in results.items()
        for split, result in enumerate(splits)
    )
    tune, run = (seconds_of(results, key) for key in ("tune", "run"))
    for moment, cells in by_moment.items():
        still = {name: cells_of(results, name) for name in STILLNESS if "current" in moment}
        yield Row(method, moment, ordered, capped, tune, run, cells, still)


def cells_of(results: Mapping[str, Any], figure: str) -> dict[str, Cell]:
    """Return a figure by set, for the sets that have it in every order of every split."""
    found = {}
    for name, splits in results.items():
        if all(figure in order for result in splits for order in result["orders"]):
            values = (tuple(order[figure] for order in result["orders"]) for result in splits)
            found[name] = Cell(tuple(values))
    return found


def seconds_of(results: Mapping[str, Any], key: str) -> float:
    """Return the seconds of one split, summed over the sets."""
    return float(
        sum(np.mean([each["seconds"][key] for each in splits]) for splits in results.values())
    )


# Grids: a header and rows of text


def accuracy_grid(results: dict[str, Any]) -> Grid:
    """Return accuracy in the given order, with the best of each set in bold, and stillness."""
    names, found = set_names(results), rows(results)
    groups = mean_columns(names)
    best = {name: highest([r.cells.get(name) for r in found if not r.capped]) for name in names}
    top = {
        title: max([row.over_sets(over, "given") or 0.0 for row in found if not row.capped] or [0])
        for title, over in groups.items()
    }
    shown = [name for name in STILLNESS if any(row.stillness.get(name) for row in found)]
    grid = [["method", "moment", *groups, *shown, *(name.replace("_", " ") for name in names)]]
    for row in found:
        texts = [mean_text(row, over, top[title]) for title, over in groups.items()]
        texts += [
            decimal(over_sets(row.stillness.get(name, {}), headline(names), "given"))
            for name in shown
        ]
        for name in names:
            given = row.cells[name].given if name in row.cells else None
            texts.append(marked(given, best[name], row.capped))
        grid.append([title_of(row), row.moment, *texts])
    return grid


def mean_columns(names: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns of means with their sets: the headline, and all sets if there are more."""
    columns = {"mean": headline(names)}
    if len(columns["mean"]) < len(names):
        columns[f"mean of {len(names)}"] = list(names)
    return columns


def mean_text(row: Row, names: Sequence[str], best: float) -> str:
    """Return a mean over sets, with its standard deviation over splits if there are several."""
    text = marked(row.over_sets(names, "given"), best, row.capped)
    deviation = row.deviation_of_mean(names)
    return text if deviation is None else f"{text} ± {decimal(deviation)}"


def stillness_grid(results: dict[str, Any]) -> Grid:
    """Return the shares of vectors that keep their ID, by set, in the given order of arrival."""
    names = set_names(results)
    groups = mean_columns(names)
    grid = [["method", "share", *groups, *(name.replace("_", " ") for name in names)]]
    for row in rows(results):
        for share, cells in row.stillness.items():
            if cells:
                texts = [decimal(over_sets(cells, over, "given")) for over in groups.values()]
                texts += [decimal(cells[name].given if name in cells else None) for name in names]
                grid.append([title_of(row), share, *texts])
    return grid


def highest(cells: Sequence[Cell | None]) -> float:
    """Return the best accuracy in the given order; 0 if there is none."""
    return max((cell.given for cell in cells if cell), default=0.0)


def order_grid(results: dict[str, Any]) -> Grid:
    """Return the effect of the order of arrival, as means over the sets, and the run times."""
    names = headline(set_names(results))
    head = ["method", "moment", "given order", "all orders", "deviation", "best − worst"]
    grid = [[*head, "most on one set", "tuning, s", "one run, s"]]
    for row in rows(results):
        seconds = [f"{row.tune_seconds:.0f}", f"{row.run_seconds:.2f}"]
        figures = [
            decimal(row.over_sets(names, figure) if row.ordered or figure == "given" else None)
            for figure in ("given", "mean", "deviation", "spread")
        ]
        worst = NONE
        cells = {name: cell for name, cell in row.cells.items() if name in names}
        if row.ordered and cells:
            name = max(cells, key=lambda key: row.cells[key].spread)
            worst = f"{decimal(row.cells[name].spread)} ({name.replace('_', ' ')})"
        grid.append([title_of(row), row.moment, *figures, worst, *seconds])
    return grid


def spread_grid(results: dict[str, Any]) -> Grid:
    """Return mean and standard deviation over the orders, by set."""
    names = set_names(results)
    grid = [["method", "moment", *(name.replace("_", " ") for name in names)]]
    for row in rows(results):
        if row.ordered:
            cells = [row.cells.get(name) for name in names]
            texts = [f"{decimal(c.mean)} ± {decimal(c.deviation)}" if c else NONE for c in cells]
            grid.append([title_of(row), row.moment, *texts])
    return grid


def title_of(row: Row) -> str:
    """Return the name of the method, with a dagger if it got fewer vectors than the others."""
    return f"{row.method} †" if row.capped else row.method


def marked(value: float | None, best: float, capped: bool) -> str:
    """Return a figure, in bold if it equals the best after rounding."""
    text = decimal(value)
    return f"**{text}**" if text == decimal(best) and not capped else text


def decimal(value: float | None) -> str:
    """Return three decimals without the leading 0."""
    return NONE if value is None else f"{value:.3f}".removeprefix("0")


# Output


def tables(results: dict[str, Any]) -> list[Table]:
    """Return the tables for the screen."""
    if not results["methods"]:
        return []
    return [
        on_screen("Accuracy in the given order of arrival", accuracy_grid(results)),
        *stillness_tables(results),
        on_screen("Orders of arrival", order_grid(results)),
        on_screen("Mean ± deviation over the orders", spread_grid(results)),
    ]


def stillness_tables(results: dict[str, Any]) -> list[Table]:
    """Return the table of stillness for the screen, if a method has IDs."""
    grid = stillness_grid(results)
    return [on_screen("Vectors that keep their ID", grid)] if len(grid) > 1 else []


def on_screen(heading: str, grid: Grid) -> Table:
    """Return a grid as a table of Rich."""
    table = Table(title=heading, title_justify="left", box=box.SIMPLE, padding=(0, 1, 0, 0))
    for column, name in enumerate(grid[0]):
        side = "left" if column < 2 else "right"
        table.add_column(name, justify=side, overflow="fold", no_wrap=column == 0)
    for line in grid[1:]:
        table.add_row(*(re.sub(r"\*\*(.+)\*\*", r"[bold]\1[/bold]", text) for text in line))
    return table


def in_markdown(grid: Grid) -> str:
    """Return a grid as a Markdown table."""
    ruler = ["---", "---", *["--:"] * (len(grid[0]) - 2)]
    return "\n".join(f"| {' | '.join(line)} |" for line in [grid[0], ruler, *grid[1:]])


def write(results: dict[str, Any], page: Path = PAGE) -> None:
    """Write the tables between the markers of the page, or into a new section."""
    put("quality", body(results), page=page, section=SECTION)


def put(mark: str, content: str, *, page: Path = PAGE, section: str = "") -> None:
    """Write text between the markers of a page, or into a new section at its end."""
    text = page.read_text("utf-8") if page.exists() else "# Tuning\n"
    if f"<!-- {mark} -->" not in text:
        text = f"{text.rstrip()}\n\n{section}\n\n<!-- {mark} -->\n<!-- /{mark} -->\n"
    pattern = rf"(<!-- {mark} -->\n).*?(<!-- /{mark} -->)"
    text, found = re.subn(pattern, lambda m: f"{m[1]}\n{content}\n\n{m[2]}", text, flags=re.S)
    assert found == 1, f"{found} sections marked {mark!r} in {page.name}, expected 1"
    page.write_text(text, "utf-8")


def splits_text(count: int) -> str:
    """Return the sentence about the splits of the identities."""
    if count == 1:
        return "All figures are of one split of the identities."
    return (
        f"All figures are means over {count} splits of the identities; after ± is the standard\n"
        "deviation of the mean over these splits."
    )


def stillness_text(results: dict[str, Any]) -> str:
    """Return the paragraph and the table of stillness; empty if no method has IDs."""
    grid = stillness_grid(results)
    if len(grid) == 1:
        return ""
    return f"""Vectors that keep their ID, in the given order, for methods with lasting IDs: *still*
is the share of vectors whose ID at arrival is their current ID, and *half* the share of the first
half of the stream that keeps its ID while the second half arrives. IDs are resolved, so that a join
alone changes no vector.

{in_markdown(grid)}

"""


def beside_text(results: dict[str, Any]) -> str:
    """Return the sentence about sets that are not part of the mean; empty without such sets."""
    names = set_names(results)
    beside = [name.replace("_", " ") for name in names if name not in headline(names)]
    if not beside:
        return ""
    counted = f"the first {len(names) - len(beside)} sets"
    return f"\nThe *mean* is over {counted}; {' and '.join(beside)} came later and stand beside it."


def body(results: dict[str, Any]) -> str:
    """Return the text between the markers."""
    protocol, about = results["protocol"], results["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    count = max(len(cell.splits) for row in rows(results) for cell in row.cells.values())
    notes = [f"- **{name}**: {kept['note']}." for name, kept in results["methods"].items()]
    return f"""![Accuracy of each method on each set, one marker each](img/quality.png)

Each method is tuned on a random half of the identities and scored on the other half, which it has
not seen. The order of arrival is kept, and each half has at most {protocol["cap"]:,} vectors.
{splits_text(count)}
Accuracy is that of [section 3.6](paper-map.md), after matching. *Instant* is the ID given at
arrival, *current* the label after the last vector, and *settled* the label of a method that sees
all vectors before it answers. Tuning maximises accuracy, or the mean of instant and current
accuracy for methods with both. The best of each column is bold.{beside_text(results)}

Sets with few identities in a half (the meeting has two, stream10 five) say little about the
difference between methods: one split identity changes their accuracy by tenths.

{in_markdown(accuracy_grid(results))}

† This method gets fewer vectors than the others and is not compared with them.

{stillness_text(results)}The effect of the order of arrival: the given order and
{protocol["orders"] - 1} seeded permutations, as means over the sets. Seconds are processor seconds
of one split, summed over the sets.

{in_markdown(order_grid(results))}

Mean and standard deviation over the orders, by set:

{in_markdown(spread_grid(results))}

How each method was tuned:

{chr(10).join(notes)}

Made by `python -m benchmarks.quality FOLDER --docs` from
[benchmarks/quality.json](../benchmarks/quality.json); {about["processor"]}; Python
{about["python"]}, {versions}."""
