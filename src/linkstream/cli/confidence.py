"""Commands about how sure a store is: confidence, judge."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from linkstream.cli import outcome, screen, stores
from linkstream.cli.options import StorePath
from linkstream.cli.outcome import usage_error

if TYPE_CHECKING:
    from linkstream.clusterer.confidence import Told

_PICTURES = tuple(suffix[1:] for suffix in screen.PICTURES)


def confidence(
    store: StorePath,
    plot: Annotated[Path | None, Option(help="Draw the reliability diagram in this file.")] = None,
) -> None:
    """Show whether a store tells probabilities, and whether they hold.

    Answers are those of `linkstream judge` and of `linkstream review`.

    Example: linkstream confidence tuned.links --plot sure.png
    """
    if plot is not None and plot.suffix[1:] not in _PICTURES:
        raise usage_error(f"--plot {plot}", f"a name that ends with {', '.join(_PICTURES)}", "")
    with stores.reading(store) as opened:
        told = opened.confidence
    record = told.summary()
    if plot is not None:
        _draw(told, plot)
        record["picture"] = str(plot)
    if not screen.wrote_json([record]):
        sys.stdout.write(_in_words(record) + "\n")


def _draw(told: Told, path: Path) -> None:
    from linkstream import plots

    screen.check_folder(path.parent)
    plots.save(told.plot(), path)
    outcome.note_change(f"{path} written")


def _in_words(record: dict[str, Any]) -> str:
    """Return the record as sentences, one a line."""
    lines = [
        f"Probabilities are unknown: {record['why']}."
        if record["why"]
        else "Probabilities are known."
    ]
    if record["identities"] is not None:
        lines.append(f"Fitted to {record['identities']} identities, {record['answers']} answers.")
    check = record["check"]
    if check is not None:
        lines.append(
            f"The tuning told {check['told']:.3f} in the mean of {check['answers']} answers; "
            f"{check['right']:.3f} were right ({check['deviation']:+.1f} standard deviations)."
        )
    if record["drifted"]:
        lines.append("The newest answers contradict the probabilities.")
    if "picture" in record:
        lines.append(f"Written: {record['picture']}")
    return "\n".join(lines)


def judge(
    store: StorePath,
    vector: Annotated[str, Argument(help="Its number or key.")],
    wrong: Annotated[bool, "The decision was wrong."] = False,
) -> None:
    """Say that the decision on a vector was right, or wrong.

    Probabilities learn from it. Right means: most of the cluster was its identity, or a new cluster
    was a new identity. Judge vectors as they come or at random, not those that look wrong.

    Example: linkstream judge tuned.links 17 --wrong
    """
    with stores.writing(store) as opened:
        number = stores.vector(opened, vector)
        stores.perform(opened, "judge", vector=number, right=not wrong)
    word = "wrong" if wrong else "right"
    screen.answer({"vector": number, "right": not wrong}, f"Vector {number} was {word}.")
