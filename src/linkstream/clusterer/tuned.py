"""What a tuning found, as a file: thresholds, space, options, and the model of confidence."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from linkstream.clusterer.links import Links
from linkstream.confidence import Model
from linkstream.engine import atomic_files
from linkstream.errors import InputFileError, LinkstreamError
from linkstream.identity.settling import Healing
from linkstream.paper.thresholds import Thresholds
from linkstream.space import Space

SIZE_MAX = 1 << 26  # bytes of a file
_OPTIONS = ("mode", "evidence", "heal")


@dataclass(frozen=True, slots=True, eq=False)
class Tuned:
    """The settings that a tuning found, to be kept in a file.

    Attributes:
        thresholds: the thresholds.
        space: the space of the thresholds.
        options: options of `Links`: `mode`, or `evidence` and `heal`.
        rebuild_thresholds: thresholds for `rebuild`; None if they were not asked for.
        confidence: the model of the probability that a decision is right, or None.
    """

    thresholds: Thresholds
    space: Space = field(default_factory=Space)
    options: Mapping[str, Any] = field(default_factory=dict)
    rebuild_thresholds: Thresholds | None = None
    confidence: Model | None = None

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `Store.open`, `Client.create` and `Links.from_thresholds`."""
        own: dict[str, Any] = {
            "rebuild_thresholds": self.rebuild_thresholds,
            "confidence": self.confidence,
        }
        if self.space.mean is not None or self.space.model is not None:
            own["space"] = self.space
        given = {name: value for name, value in own.items() if value is not None}
        return {"thresholds": self.thresholds, **self.options, **given}

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the adapters for scikit-learn, river and BERTopic."""
        given = self.arguments()
        given.pop("rebuild_thresholds", None)
        return {**asdict(given.pop("thresholds")), **given}

    def links(self, **options: Any) -> Links:
        """Return an empty clusterer with these settings.

        Args:
            options: further options of `Links`; they override those of the tuning.
        """
        return Links.from_thresholds(**{**self.arguments(), **options})

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values for JSON."""
        again = self.rebuild_thresholds
        return {
            "thresholds": asdict(self.thresholds),
            "rebuild_thresholds": None if again is None else asdict(again),
            "space": space_to_dict(self.space),
            "options": {
                name: value.to_dict() if isinstance(value, Healing) else value
                for name, value in self.options.items()
            },
            "confidence": None if self.confidence is None else self.confidence.to_plain(),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the settings to a file of JSON, completely or not at all.

        Only you can read the file (mode 0600), as snapshots: `chmod` it for others.

        Args:
            path: the file, such as `tuned.json`.
        """
        atomic_files.write(Path(path), f"{json.dumps(self.to_dict(), allow_nan=False)}\n".encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Tuned:
        """Read what `save` wrote, or what `linkstream tune --json` wrote.

        Args:
            path: the file.

        Raises:
            InputFileError: the file cannot be read, or holds something else.
        """
        try:
            with open(path, "rb") as stream:
                data = stream.read(SIZE_MAX + 1)
            if len(data) > SIZE_MAX:
                raise ValueError("it is too large")
            return _of_plain(json.loads(data))
        except (OSError, ValueError, TypeError, LookupError, LinkstreamError) as error:
            reason = (str(error).splitlines() or [""])[0] or type(error).__name__
            raise InputFileError(
                f"{os.fspath(path)}: no settings of a tuning ({reason:.150})",
                expected="a file that tune(…).save(path) wrote",
                remedy="Tune again, and save the result.",
            ) from None


def _of_plain(plain: Any) -> Tuned:
    """Return settings; raise an error that `load` catches if the values are none."""
    options, again, model = plain["options"], plain["rebuild_thresholds"], plain["confidence"]
    unknown = sorted(set(options) - set(_OPTIONS))
    if unknown:
        raise ValueError(f"unknown options {', '.join(unknown)}")
    found = Tuned(
        Thresholds(**plain["thresholds"]),
        _space(plain["space"]),
        {name: _option(value) for name, value in options.items()},
        None if again is None else Thresholds(**again),
        None if model is None else Model.from_plain(model),
    )
    found.links(engine="reference")  # raises if an option cannot be
    return found


def _option(value: Any) -> Any:
    return Healing.read(value) if isinstance(value, dict) else value


def _space(plain: Any) -> Space:
    mean, model = plain["mean"], plain["model"]
    return Space(None if mean is None else np.array(mean, dtype=np.float64), model)


def space_to_dict(space: Space) -> dict[str, Any]:
    """Return a space as plain values for JSON."""
    return {"mean": None if space.mean is None else space.mean.tolist(), "model": space.model}
