"""Healing: clusters put right as the stream goes on, at fixed places of the stream.

Sections 3.3 and 3.4 of the paper never join two clusters, so fragments last for ever. With healing
they are looked at again after 50 vectors, then each time the stream has grown by 30 per cent, so
that the work stays in proportion and decisions do not depend on how a stream is cut into calls.
Oftener did not give better IDs (docs/tuning.md).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from linkstream.engine.state import State
from linkstream.errors import ArgumentError, SnapshotError
from linkstream.identity.laws import Laws
from linkstream.identity.settling import Settlement, Unite, heal, settle

MODES = ("join", "settle")


@dataclass(frozen=True, slots=True)
class Healing:
    """When and how clusters are healed.

    Attributes:
        mode: "join" ties clusters of at least `min_size` vectors that pass s~ as wholes; "settle"
            runs a whole settlement, which also cuts.
        first: number of vectors after which it is done first.
        growth: the stream's growth, as a factor, between one time and the next.
        min_size: vectors a cluster needs to take part in "join".

    >>> Healing("settle").after(1000)
    1141
    """

    mode: str = "join"
    first: int = 50
    growth: float = 1.3
    min_size: int = 5

    def __post_init__(self) -> None:
        _require(self.mode in MODES, "mode", self.mode, "'join' or 'settle'")
        whole = all(type(value) is int and value >= 1 for value in (self.first, self.min_size))
        seen = (self.first, self.min_size)
        _require(whole, "first and min_size", seen, "whole numbers from 1 on")
        number = isinstance(self.growth, float) and 1.0 < self.growth <= 1000.0
        _require(number, "growth", self.growth, "a float above 1, at most 1000")

    def after(self, n_vectors: int) -> int:
        """The next place in the stream, after so many vectors, where clusters are healed."""
        mark = self.first
        while mark <= n_vectors:
            mark = max(mark + 1, int(mark * self.growth))
        return mark

    def run(self, state: State, unite: Unite, laws: Laws) -> tuple[Settlement, State]:
        """What is changed now, and the state with it done."""
        if self.mode == "settle":
            return settle(state, state.thresholds, unite, laws=laws)
        return heal(state, state.thresholds, unite, min_size=self.min_size, laws=laws)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for snapshots."""
        return asdict(self)

    @classmethod
    def read(cls, values: object) -> Healing | None:
        """What `to_dict` gave, from a snapshot (SnapshotError)."""
        if values is None:
            return None
        try:
            return cls(**values)  # type: ignore[arg-type]
        except (TypeError, ArgumentError) as error:
            raise SnapshotError(
                f"healing that cannot be ({error})",
                expected="what linkstream wrote",
                remedy="The file is damaged or was made by another program; use a backup.",
            ) from None

    @classmethod
    def of(cls, given: object) -> Healing | None:
        """What `heal=` stands for: None, a mode, or a Healing."""
        if given is None or isinstance(given, Healing):
            return given
        if isinstance(given, str):
            return cls(given)
        _require(False, "heal", given, "None, 'join', 'settle' or a Healing")
        return None


def _require(holds: bool, name: str, seen: object, expected: str) -> None:
    if not holds:
        raise ArgumentError(
            f"{name}: {seen!r}",
            expected=expected,
            remedy="Healing is opt-in: leave heal=None for the paper's algorithm.",
        )
