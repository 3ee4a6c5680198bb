"""Records of a benchmark: rates, facts and targets, one JSON object per line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Rate:
    """Vectors per second of one contestant at one task; ratios are relative to the first."""

    workload: str
    task: str
    who: str
    rates: tuple[float, ...]
    note: str = ""

    @property
    def best(self) -> float:
        """The best try."""
        return max(self.rates)

    @property
    def spread(self) -> float:
        """The difference between the best and the slowest try, as a fraction of the best."""
        return 1.0 - min(self.rates) / self.best

    def text(self) -> str:
        """Return the rate as text."""
        tries = f"best of {len(self.rates)}, spread {self.spread:.0%}"
        tries = "one try" if len(self.rates) == 1 else tries
        note = f"; {self.note}" if self.note else ""
        return f"{self.task}, {self.who}: {readable(self.best)} vectors/s ({tries}{note})"


@dataclass(frozen=True)
class Fact:
    """A measured quantity that is not a rate of vectors."""

    workload: str
    what: str
    value: float
    unit: str
    note: str = ""

    def text(self) -> str:
        """Return the fact as text."""
        note = f" ({self.note})" if self.note else ""
        return f"{self.what}: {readable(self.value)} {self.unit}{note}"


@dataclass(frozen=True)
class Target:
    """A bound on a figure. A missed bound is reported, and is not an error."""

    workload: str
    what: str
    seen: float
    bound: float
    unit: str
    sense: str = "at least"

    @property
    def met(self) -> bool:
        """Whether the figure is within the bound."""
        return self.seen >= self.bound if self.sense == "at least" else self.seen <= self.bound

    def text(self) -> str:
        """Return the target as text."""
        verdict = "pass" if self.met else "FAIL"
        bound = f"{self.sense} {readable(self.bound)}"
        return f"{verdict}  {self.what}: {readable(self.seen)} {self.unit} (wanted {bound})"


Record = Rate | Fact | Target
CLASSES: dict[str, type[Rate] | type[Fact] | type[Target]] = {
    "rate": Rate,
    "fact": Fact,
    "target": Target,
}


def to_dict(record: Record) -> dict[str, Any]:
    """Return a record as plain values."""
    return {"kind": type(record).__name__.lower(), **asdict(record)}


def from_dict(values: dict[str, Any]) -> Record:
    """Return the record of plain values."""
    values = dict(values)
    made = CLASSES[values.pop("kind")]
    if made is Rate:
        values["rates"] = tuple(values["rates"])
    return made(**values)


def readable(value: float) -> str:
    """Return three significant figures with separated thousands: 0.123, 4.56, 78.9, 1,230."""
    if value == 0:
        return "0"
    digits = 3 - len(str(int(abs(value)))) if abs(value) >= 1 else 3
    return f"{round(value, digits):,.{max(digits, 0)}f}"


class Recorder:
    """Prints the records of one workload, one line of JSON each."""

    def __init__(self, workload: str) -> None:
        self.workload = workload

    def rate(self, task: str, who: str, rates: Sequence[float], note: str = "") -> Rate:
        """Record the tries of a contestant."""
        return self._print(Rate(self.workload, task, who, tuple(rates), note))

    def fact(self, what: str, value: float, unit: str, note: str = "") -> Fact:
        """Record a quantity."""
        return self._print(Fact(self.workload, what, value, unit, note))

    def at_least(self, bound: float, what: str, seen: float, unit: str = "times") -> Target:
        """Record a lower bound."""
        return self._print(Target(self.workload, what, seen, bound, unit))

    def at_most(self, bound: float, what: str, seen: float, unit: str = "times") -> Target:
        """Record an upper bound."""
        return self._print(Target(self.workload, what, seen, bound, unit, "at most"))

    def missing(self, task: str, who: str, why: str) -> None:
        """Record that a contestant did not run."""
        self.fact(f"{task}, {who}", 0.0, "runs", why)

    def _print(self, record: Any) -> Any:
        print(json.dumps(to_dict(record)), flush=True)
        return record
