"""Columns that the caller chose, by name or as `Column`, found the way Spark finds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql.types import DataType

from linkstream.errors import ArgumentError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Choice = str | Column


@dataclass(frozen=True, slots=True)
class Chosen:
    """One column of a frame.

    Attributes:
        column: how to select it.
        name: what Spark calls it when it is selected.
        type: the type of its values.
        origin: equal for two choices of the same column; only names can be compared.
    """

    column: Column = field(compare=False)
    name: str
    type: DataType
    origin: object


def column(name: str) -> Column:
    """The column of this name, whatever characters it has."""
    return f.col("`" + name.replace("`", "``") + "`")


def choose(frame: DataFrame, given: Choice) -> Chosen:
    """Find a column: a name as it is, else what Spark finds by it; ArgumentError if there is none.

    A name that the frame has may hold any characters. Other texts are read as Spark reads them: in
    another case, after the alias of a frame ("voices.key"), within a struct.
    """
    names = frame.columns
    if isinstance(given, str) and _is_the_only(given, names):
        return Chosen(column(given), given, frame.schema[given].dataType, given)
    if not isinstance(given, Column) and not _may_be_there(given, names):
        raise _not_there(given, names)
    if isinstance(given, Column):
        wanted: Column = given
    else:
        wanted = column(given) if given in names else f.col(given)
    try:
        found = frame.select(wanted).schema.fields
    except AnalysisException as error:
        raise _not_there(given, names, error.getCondition()) from None
    if len(found) != 1:
        raise _not_there(given, names, f"it stands for {len(found)} columns")
    origin = object() if isinstance(given, Column) else given
    return Chosen(wanted, found[0].name, found[0].dataType, origin)


def choose_all(frame: DataFrame, given: Choice | Sequence[Choice]) -> tuple[Chosen, ...]:
    """Find one column or several."""
    if isinstance(given, (str, Column)) or not isinstance(given, Iterable):
        return (choose(frame, given),)
    return tuple(choose(frame, each) for each in given)


def all_but(frame: DataFrame, chosen: Chosen) -> tuple[Chosen, ...]:
    """Every column of a frame but one."""
    names = frame.drop(chosen.column).columns
    return choose_all(frame, [name for name in names if name != chosen.name])


def _is_the_only(given: str, names: Sequence[str]) -> bool:
    """Whether a frame has a column of just this name, and none that differs in case."""
    return given in names and [name.lower() for name in names].count(given.lower()) == 1


def _may_be_there(given: object, names: Sequence[str]) -> bool:
    """Whether Spark should be asked; of a name that is not there it logs pages of its stack."""
    if not isinstance(given, str):
        return False
    return "." in given or "`" in given or given.lower() in {name.lower() for name in names}


def _not_there(given: Any, names: Sequence[str], why: str | None = None) -> ArgumentError:
    return ArgumentError(
        f"a column {given!r}" + (f" ({why})" if why else ""),
        expected=f"one of {', '.join(names)}",
        remedy="Name columns of the frame, or pass Column objects of it, such as frame.camera.",
    )
