"""Tables of the quality benchmark, for the screen and for docs/tuning.md."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from benchmarks.protocol import MOMENTS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "tuning.md"
SECTION = "## Held-out quality, compared with other methods"
NONE = "—"

Grid = list[list[str]]


@dataclass(frozen=True, slots=True)
class Cell:
    """Accuracy of one method at one moment on one set: each order, the given one first."""

    orders: tuple[float, ...]

    @property
    def given(self) -> float:
        """Accuracy in the given order of arrival."""
        return self.orders[0]

    @property
    def mean(self) -> float:
        """Mean over all orders."""
        return float(np.mean(self.orders))

    @property
    def deviation(self) -> float:
        """Standard deviation over all orders."""
        return float(np.std(self.orders))

    @property
    def spread(self) -> float:
        """Difference between the best and the worst order."""
        return max(self.orders) - min(self.orders)


@dataclass(frozen=True, slots=True)
class Row:
    """One method at one moment, or at two moments that never differ."""

    method: str
    moment: str
    ordered: bool
    capped: bool
    tune_seconds: float
    run_seconds: float
    cells: dict[str, Cell]

    def over_sets(self, names: Sequence[str], figure: str) -> float | None:
        """Return the mean of a figure over the sets; None unless the row has them all."""
        if not all(name in self.cells for name in names):
            return None
        return float(np.mean([getattr(self.cells[name], figure) for name in names]))


def set_names(results: dict[str, Any]) -> list[str]:
    """Return the names of all sets."""
    return sorted({name for kept in results["methods"].values() for name in kept["sets"]})


def rows(results: dict[str, Any]) -> list[Row]:
    """Return all methods at all their moments, in the order of the file."""
    most: dict[str, int] = {}
    for kept in results["methods"].values():
        for name, cell in kept["sets"].items():
            most[name] = max(most.get(name, 0), cell["vectors"][1])
    found = []
    for method, kept in results["methods"].items():
        sets = kept["sets"]
        by_moment: dict[str, dict[str, Cell]] = {}
        for moment in MOMENTS:
            cells = {
                name: Cell(tuple(order[moment] for order in cell["orders"]))
                for name, cell in sets.items()
                if moment in cell["orders"][0]
            }
            if cells and cells == by_moment.get("instant"):
                by_moment["instant = current"] = by_moment.pop("instant")
            elif cells:
                by_moment[moment] = cells
        capped = any(cell["vectors"][1] < most[name] for name, cell in sets.items())
        tune, run = (sum(cell["seconds"][key] for cell in sets.values()) for key in ("tune", "run"))
        found += [
            Row(method, moment, kept["ordered"], capped, tune, run, cells)
            for moment, cells in by_moment.items()
        ]
    return found


# Grids: a header and rows of text


def accuracy_grid(results: dict[str, Any]) -> Grid:
    """Return accuracy in the given order, with the best of each set in bold."""
    names, found = set_names(results), rows(results)
    best = {name: highest([r.cells.get(name) for r in found if not r.capped]) for name in names}
    means = [row.over_sets(names, "given") for row in found]
    top = max((m for m, row in zip(means, found, strict=True) if m and not row.capped), default=0.0)
    grid = [["method", "moment", "mean", *(name.replace("_", " ") for name in names)]]
    for row, mean in zip(found, means, strict=True):
        texts = [marked(mean, top, row.capped)]
        for name in names:
            given = row.cells[name].given if name in row.cells else None
            texts.append(marked(given, best[name], row.capped))
        grid.append([title(row), row.moment, *texts])
    return grid


def highest(cells: Sequence[Cell | None]) -> float:
    """Return the best accuracy in the given order; 0 if there is none."""
    return max((cell.given for cell in cells if cell), default=0.0)


def order_grid(results: dict[str, Any]) -> Grid:
    """Return the effect of the order of arrival, as means over the sets, and the run times."""
    names = set_names(results)
    head = ["method", "moment", "given order", "all orders", "deviation", "best − worst"]
    grid = [[*head, "most on one set", "tuning, s", "one run, s"]]
    for row in rows(results):
        seconds = [f"{row.tune_seconds:.0f}", f"{row.run_seconds:.2f}"]
        figures = [
            decimal(row.over_sets(names, figure) if row.ordered or figure == "given" else None)
            for figure in ("given", "mean", "deviation", "spread")
        ]
        worst = NONE
        if row.ordered and row.cells:
            name = max(row.cells, key=lambda key: row.cells[key].spread)
            worst = f"{decimal(row.cells[name].spread)} ({name.replace('_', ' ')})"
        grid.append([title(row), row.moment, *figures, worst, *seconds])
    return grid


def spread_grid(results: dict[str, Any]) -> Grid:
    """Return mean and standard deviation over the orders, by set."""
    names = set_names(results)
    grid = [["method", "moment", *(name.replace("_", " ") for name in names)]]
    for row in rows(results):
        if row.ordered:
            cells = [row.cells.get(name) for name in names]
            texts = [f"{decimal(c.mean)} ± {decimal(c.deviation)}" if c else NONE for c in cells]
            grid.append([title(row), row.moment, *texts])
    return grid


def title(row: Row) -> str:
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
        on_screen("Orders of arrival", order_grid(results)),
        on_screen("Mean ± deviation over the orders", spread_grid(results)),
    ]


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


def body(results: dict[str, Any]) -> str:
    """Return the text between the markers."""
    protocol, about = results["protocol"], results["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    notes = [f"- **{name}**: {kept['note']}." for name, kept in results["methods"].items()]
    return f"""![Accuracy of each method on each set, one marker each](img/quality.png)

Each method is tuned on a random half of the identities and scored on the other half, which it has
not seen. The order of arrival is kept, and each half has at most {protocol["cap"]:,} vectors.
Accuracy is that of [section 3.6](paper-map.md), after matching. *Instant* is the ID given at
arrival, *current* the label after the last vector, and *settled* the label of a method that sees
all vectors before it answers. Tuning maximises accuracy, or the mean of instant and current
accuracy for methods with both. The best of each column is bold.

Sets with few identities in a half (the meeting has two, stream10 five) say little about the
difference between methods: one split identity changes their accuracy by tenths.

{in_markdown(accuracy_grid(results))}

† This method gets fewer vectors than the others and is not compared with them.

The effect of the order of arrival: the given order and {protocol["orders"] - 1} seeded
permutations, as means over the sets. Seconds are processor seconds, summed over the sets.

{in_markdown(order_grid(results))}

Mean and standard deviation over the orders, by set:

{in_markdown(spread_grid(results))}

How each method was tuned:

{chr(10).join(notes)}

Made by `python -m benchmarks.quality FOLDER --docs` from
[benchmarks/quality.json](../benchmarks/quality.json); {about["processor"]}; Python
{about["python"]}, {versions}."""
