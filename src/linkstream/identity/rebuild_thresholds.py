"""Thresholds of rebuilds that a clusterer has beside those of its stream."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from linkstream.errors import ThresholdError
from linkstream.paper.thresholds import Thresholds


@dataclass(frozen=True, slots=True)
class RebuildThresholds:
    """Thresholds for `rebuild`, and those of the stream that they were found with.

    They are for one encoder and space: a rebuild that gives the clusterer other thresholds or
    another space puts them out of force, and an undo of that rebuild puts them in force again.
    """

    rebuild: Thresholds
    stream: Thresholds

    def to_plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)

    @classmethod
    def read(cls, plain: Any) -> RebuildThresholds | None:
        """Return what `to_plain` gave, None for None; raise ValueError for anything else."""
        if plain is None:
            return None
        try:
            return cls(**{name: Thresholds(**values) for name, values in plain.items()})
        except (TypeError, AttributeError, ThresholdError) as error:
            raise ValueError(f"thresholds of rebuilds that cannot be ({error})") from None
