"""The command `migrate`: change the encoder of a store, a file at a time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from linkstream.cli import outcome, screen, stores
from linkstream.cli.options import RowOptions, StorePath, VectorFileOptions, Yes
from linkstream.cli.outcome import usage_error

if TYPE_CHECKING:
    import numpy as np

    from linkstream.clusterer.migration import Migration
    from linkstream.io import Block, Source
    from linkstream.paper.thresholds import Thresholds
    from linkstream.store import Store

NONE = "no migration is under way"


def migrate(
    store: StorePath,
    action: Annotated[
        str,
        Argument(help="begin, add FILE, status, missing, report, finish or abandon."),
    ] = "status",
    file: Annotated[
        str | None, Argument(metavar="FILE", help="With add: vectors of the other encoder.")
    ] = None,
    thresholds: Annotated[
        tuple[float, float, float] | None,
        Option(help="With begin: T_c, T_s and T_p for the other encoder.", show_default=False),
    ] = None,
    thresholds_from_clusters: Annotated[
        bool,
        Option(
            "--thresholds-from-clusters",
            help="With begin: find the thresholds that fit the present clusters best.",
        ),
    ] = False,
    space: Annotated[
        str | None, "With begin: a mean vector to subtract, as .npy, as tune --mean writes."
    ] = None,
    model: Annotated[str | None, "With begin: the name of the other encoder."] = None,
    first: Annotated[
        int | None,
        Option(min=0, help="With add: the number of the first vector.", show_default="0"),
    ] = None,
    numbers: Annotated[
        Path | None, "With add: the number of each vector, as .npy, instead of --first."
    ] = None,
    id_column: Annotated[str | None, "With add: column of the vectors' own keys, instead."] = None,
    old: Annotated[
        Path | None,
        Option(
            help="With add, in a store that does not keep its vectors: those of the present "
            "encoder, one for each vector, as .npy."
        ),
    ] = None,
    limit: Annotated[int | None, Option(min=1, help="With missing: how many to show.")] = None,
    yes: Yes = False,
    *,
    options: VectorFileOptions,
) -> None:
    """Change to another encoder, while the store goes on with the old one.

    `begin` says what the other encoder needs; `add` takes the same items as it sees them, in any
    order, as often as needed; `missing` lists vectors that are left; `report` shows what would
    change. `finish` translates what is missing and changes to the other encoder, with the same IDs
    and names; `linkstream undo` takes that back, but what was added is dropped. `abandon` drops it,
    too. All of it is kept in the store, so that it goes on after any interruption.

    Example: linkstream migrate people.links begin --model encoder-2
    """
    wanted = _thresholds(thresholds, from_clusters=thresholds_from_clusters)
    given = _Given(store, wanted, space, model, first, numbers, id_column, old, limit, yes)
    _check(action, file, given)
    if action == "add":
        assert file is not None, "it was checked"
        _add(given, file, options)
    else:
        _ACTIONS[action](given)


@dataclass(frozen=True)
class _Given:
    """The options of the command."""

    store: Path
    thresholds: Thresholds | str | None
    space: str | None
    model: str | None
    first: int | None
    numbers: Path | None
    id_column: str | None
    old: Path | None
    limit: int | None
    yes: bool

    def flags(self) -> dict[str, str]:
        """Return the options that were given, each with the action that it belongs to."""
        named = {
            "--thresholds": (
                None if isinstance(self.thresholds, str) else self.thresholds,
                "begin",
            ),
            "--thresholds-from-clusters": (isinstance(self.thresholds, str) or None, "begin"),
            "--space": (self.space, "begin"),
            "--model": (self.model, "begin"),
            "--first": (self.first, "add"),
            "--numbers": (self.numbers, "add"),
            "--id-column": (self.id_column, "add"),
            "--old": (self.old, "add"),
            "--limit": (self.limit, "missing"),
        }
        return {flag: action for flag, (value, action) in named.items() if value is not None}


def _thresholds(
    given: tuple[float, float, float] | None, *, from_clusters: bool
) -> Thresholds | str | None:
    from linkstream.identity.cluster_labels import FROM_CLUSTERS
    from linkstream.paper.thresholds import Thresholds

    if given is not None and from_clusters:
        raise usage_error(
            "--thresholds with --thresholds-from-clusters", "one of the two", "Leave one out."
        )
    return FROM_CLUSTERS if from_clusters else given and Thresholds(*given)


def _check(action: str, file: str | None, given: _Given) -> None:
    """Raise ArgumentError for an unknown action, or for options of another one."""
    names = ("begin", "add", *(name for name in _ACTIONS if name != "begin"))
    if action not in names:
        raise usage_error(f"migrate {action}", " or ".join(names), "See linkstream migrate --help.")
    for flag, owner in given.flags().items():
        if owner != action:
            raise usage_error(f"{flag} with {action}", f"it with {owner}", "Leave it out.")
    if (file is None) is (action == "add"):
        seen = "add without a file" if file is None else f"{action} with a file"
        raise usage_error(seen, "add FILE", f"linkstream migrate {given.store} add FILE.")
    if sum(flag in given.flags() for flag in ("--first", "--numbers", "--id-column")) > 1:
        raise usage_error("two ways to number the vectors", "one of them", "Leave one out.")


def _under_way(opened: Store) -> Migration:
    found = opened.migration()
    if found is None:
        raise usage_error(
            f"{opened.path}: {NONE}",
            "one that linkstream migrate STORE begin has begun",
            "Begin one, with --thresholds and --model for the other encoder.",
        )
    return found


def _begin(given: _Given) -> None:
    from linkstream.cli.rebuilding import mean_of
    from linkstream.space import Space

    mean = None if given.space is None else mean_of(Path(given.space))
    wanted = None if (mean, given.model) == (None, None) else Space(mean, given.model)
    with stores.writing(given.store) as opened:
        before = opened.migration()
        status = opened.migrate(space=wanted, thresholds=given.thresholds).status()
    screen.answer(status.to_dict(), f"{'Begun' if before is None else 'Continued'}: {status}.")


def _status(given: _Given) -> None:
    with stores.reading(given.store) as opened:
        found = opened.migration()
        status = None if found is None else found.status()
    if status is None:
        screen.answer({"migration": None}, f"{NONE[:1].upper()}{NONE[1:]}.")
    else:
        screen.answer(status.to_dict(), f"{status}.")


def _missing(given: _Given) -> None:
    with stores.reading(given.store) as opened:
        numbers = _under_way(opened).missing(given.limit)
        rows = opened.described(numbers)
    if screen.wrote_json(rows):
        return
    for row in rows:
        sys.stdout.write(f"{row['vector']}{'' if row['id'] is None else '  ' + row['id']}\n")


def _report(given: _Given) -> None:
    from linkstream.cli.outputs import share_bar

    with stores.reading(given.store) as opened, share_bar("rebuilding") as bar:
        found = _under_way(opened).report(bar)
    if not screen.wrote_json([found.to_dict()]):
        sys.stdout.write(f"{found}\n\nTo do it: linkstream migrate {given.store} finish\n")


def _finish(given: _Given) -> None:
    from linkstream.cli.outputs import share_bar

    with stores.writing(given.store) as opened, share_bar("rebuilding") as bar:
        found = _under_way(opened).finish(bar)
    if not screen.wrote_json([found.to_dict()]):
        back = f"To take it back: linkstream undo {given.store}. What was added is then lost."
        sys.stdout.write(f"{found}\n\n{back}\n")


def _abandon(given: _Given) -> None:
    with stores.reading(given.store) as opened:  # fail before asking if there is none
        status = _under_way(opened).status()
    stores.confirm(f"drop {status.reencoded:,} vectors of the other encoder", yes=given.yes)
    with stores.writing(given.store) as opened:
        _under_way(opened).abandon()
    screen.answer(status.to_dict(), f"Abandoned: {status}.")


_ACTIONS: dict[str, Callable[[_Given], None]] = {
    "begin": _begin,
    "status": _status,
    "missing": _missing,
    "report": _report,
    "finish": _finish,
    "abandon": _abandon,
}


# Adding a file


def _add(given: _Given, file: str, options: VectorFileOptions) -> None:
    from linkstream.io.feeding import naming_rows

    kept = RowOptions(id_column=given.id_column)
    numbers = None if given.numbers is None else _numbers(given.numbers)
    old = None if given.old is None else _old(given.old)
    with stores.writing(given.store) as opened, options.open(file, kept) as source:
        migration = _under_way(opened)
        taken = rows = 0
        tracked = opened.track_vectors
        for block, named in _named(source, given, numbers, old):
            if not tracked:
                named["numbers"] = None
            with naming_rows(source.name, block.first_row):
                taken += migration.add(block.vectors, **named)
            rows += len(block)
            outcome.note_change(f"{rows:,} rows of {source.name} are in {given.store}")
        status = migration.status()
    words = f"{source.name}: {rows:,} rows, {taken:,} of vectors that are there. {status}."
    screen.answer({"rows": rows, "taken": taken, **status.to_dict()}, words)


def _named(
    source: Source,
    given: _Given,
    numbers: np.ndarray[Any, Any] | None,
    old: np.ndarray[Any, Any] | None,
) -> Iterator[tuple[Block, dict[str, Any]]]:
    """Yield the blocks of a source, each with the numbers or keys of its items."""
    import numpy as np

    for each, what in ((numbers, "numbers"), (old, "old vectors")):
        if each is not None and source.n not in (None, len(each)):
            seen = f"{source.n:,} vectors and {len(each):,} {what}"
            raise usage_error(seen, "one for each vector", f"Give the {what} of this file.")
    for block in source:
        rows = np.arange(block.first_row, block.first_row + len(block))
        before = {} if old is None else {"old": old[rows]}
        if given.id_column is not None:
            yield block, {"keys": _keys(source, block, given.id_column), **before}
        else:
            named = (given.first or 0) + rows if numbers is None else numbers[rows]
            yield block, {"numbers": named, **before}


def _keys(source: Source, block: Block, column: str) -> list[str]:
    """Return the keys of the rows of a block; raise ArgumentError if one has none."""
    keys = block.ids or [None] * len(block)
    for row, key in enumerate(keys, start=block.first_row):
        if not isinstance(key, str):
            raise usage_error(
                f"{source.name}, row {row} without a key in the column {column}",
                "a key in each row",
                "Name the column of keys, or drop such rows, and run again.",
            )
    return list(keys)


def _numbers(path: Path) -> np.ndarray[Any, Any]:
    """Return the numbers in a file."""
    import numpy as np

    try:
        found = np.load(path, allow_pickle=False)
    except (ValueError, EOFError):
        found = None
    if not isinstance(found, np.ndarray) or found.ndim != 1 or found.dtype.kind not in "iu":
        raise usage_error(
            f"--numbers {path}, which is no list of numbers",
            "whole numbers in .npy",
            "One number for each vector of the file.",
        )
    return found


def _old(path: Path) -> np.ndarray[Any, Any]:
    """Return the vectors in a file."""
    import numpy as np

    try:
        found = np.load(path, allow_pickle=False, mmap_mode="r")
    except (ValueError, EOFError):
        found = None
    if not isinstance(found, np.ndarray) or found.ndim != 2:
        raise usage_error(
            f"--old {path}, which holds no rows of vectors",
            "an array of shape (n, dimension) in .npy",
            "One vector of the present encoder for each vector of the file.",
        )
    return found
