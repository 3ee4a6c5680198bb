"""Saving: all that makes a clusterer, as bytes and back, and as a digest."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from linkstream.engine import snapshot
from linkstream.engine.state import State
from linkstream.errors import ArgumentError, SnapshotError
from linkstream.identity import aliases
from linkstream.identity.healing import Healing
from linkstream.space import Space


@dataclass(frozen=True, slots=True)
class Saved:
    """What a snapshot holds."""

    state: State
    space: Space
    healing: Healing | None
    aliases: dict[int, int]

    def space_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The mean of the space, where there is one."""
        return {} if self.space.mean is None else {"space_mean": self.space.mean}


def pack(saved: Saved) -> bytes:
    """A snapshot: plain arrays, checksummed, no pickle."""
    heal = saved.healing.to_dict() if saved.healing else None
    meta = {"state": saved.state.scalars(), "model": saved.space.model, "heal": heal}
    table = {"aliases": aliases.to_array(saved.aliases)}
    return snapshot.encode(meta, {**saved.state.arrays(), **table, **saved.space_arrays()})


def unpack(data: bytes) -> Saved:
    """What `pack` was given, checked (SnapshotError)."""
    meta, arrays = snapshot.decode(data)
    state = State.from_parts(meta.get("state"), arrays)
    return Saved(
        state=state,
        space=_space(meta, arrays, state.dimension),
        healing=Healing.read(meta.get("heal")),
        aliases=aliases.from_array(arrays.get("aliases"), state),
    )


def digest(saved: Saved) -> str:
    """Hex digest of all that decides answers now and later."""
    sha = hashlib.sha256(saved.state.digest().encode())
    sha.update(repr(saved.space.model).encode())
    if saved.healing or saved.aliases:
        sha.update(repr((saved.healing, sorted(saved.aliases.items()))).encode())
    for mean in saved.space_arrays().values():
        sha.update(mean.astype("<f8").tobytes())
    return sha.hexdigest()


def _space(meta: dict[str, Any], arrays: snapshot.Arrays, dimension: int) -> Space:
    try:
        space = Space(arrays.get("space_mean"), meta.get("model"))
    except ArgumentError as error:
        raise SnapshotError(
            f"a space that cannot be ({error.seen})",
            expected=error.expected,
            remedy="The file is damaged or was made by another program; use a backup.",
        ) from None
    if dimension and space.dimension not in (None, dimension):
        raise SnapshotError(
            f"a space of dimension {space.dimension}",
            expected=f"dimension {dimension}, as the subclusters have",
            remedy="The file is damaged or was made by another program; use a backup.",
        )
    return space
