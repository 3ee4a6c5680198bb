"""Write a clusterer as bytes, read it back, and compute its digest."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from linkstream.confidence import Model
from linkstream.engine import snapshot
from linkstream.engine.fixed_point import SCALE
from linkstream.engine.forest import FULL
from linkstream.engine.state import ARRAYS, State, damaged, indices_of
from linkstream.epochs import FIRST, Epochs, Former
from linkstream.errors import ArgumentError, SnapshotError
from linkstream.identity import records
from linkstream.identity.ledger import Ledger
from linkstream.identity.limits import Limits
from linkstream.identity.rebuild_thresholds import RebuildThresholds
from linkstream.identity.settling import Healing
from linkstream.space import Space

# Fields of the header of a snapshot; any other field is refused.
_META = (
    *("state", "model", "heal", "ledger", "limits", "min_size", "keep_vectors"),
    *("space_dimension", "epochs", "confidence", "learnt", "rebuild_thresholds", "former"),
    "encoder",
)
_ARRAYS = (*ARRAYS, "space_mean", "kept", "undone", "margins", "former")


@dataclass(frozen=True, slots=True)
class Saved:
    """What a snapshot holds.

    `kept` are the vectors themselves, if they are kept. `undone` are the vectors that undo took and
    redo may restore, oldest first. `epochs` is None if the space never changed, and
    `rebuild_thresholds` if rebuilds take those of the state. `former` is what a clusterer without
    kept vectors was before the last change, if that changed its encoder. `margins` are the cluster
    margins of decisions, `learnt` the answers that the model has (confidence.py), and `encoder` the
    encoder it was fitted to (`Epochs.encoder`). The digest leaves these four and `confidence` out,
    as they change no decision.
    """

    state: State
    space: Space
    healing: Healing | None
    ledger: Ledger
    limits: Limits = field(default_factory=Limits)
    min_size: int = 1
    keep_vectors: bool = False
    kept: npt.NDArray[np.int32] | None = None
    undone: npt.NDArray[np.int32] | None = None
    epochs: Epochs | None = None
    confidence: Model | None = None
    learnt: tuple[int, int] = (0, 0)
    encoder: int = FIRST
    margins: npt.NDArray[np.int32] | None = None
    rebuild_thresholds: RebuildThresholds | None = None
    former: Former | None = None

    def space_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the mean of the space, if there is one."""
        return {} if self.space.mean is None else {"space_mean": self.space.mean}


def pack(saved: Saved) -> bytes:
    """Return a snapshot: plain arrays with checksums, no pickle."""
    meta: dict[str, Any] = {
        "state": saved.state.scalars(),
        "model": saved.space.model,
        "heal": saved.healing.to_dict() if saved.healing else None,
        "ledger": records.to_plain(saved.ledger),
        "limits": asdict(saved.limits),
        "min_size": saved.min_size,
        "keep_vectors": saved.keep_vectors,
    }
    if saved.space.mean is None and saved.space.dimension is not None:
        meta["space_dimension"] = saved.space.dimension
    if saved.epochs is not None and len(saved.epochs.known) > 1:
        meta["epochs"] = saved.epochs.to_plain()
    if saved.confidence is not None:
        meta["confidence"] = saved.confidence.to_plain()
    if any(saved.learnt):
        meta["learnt"] = list(saved.learnt)
    if saved.encoder != FIRST:
        meta["encoder"] = saved.encoder
    if saved.rebuild_thresholds is not None:
        meta["rebuild_thresholds"] = saved.rebuild_thresholds.to_plain()
    some: dict[str, Any] = {"kept": saved.kept, "undone": saved.undone, "margins": saved.margins}
    if saved.former is not None:
        meta["former"], some["former"] = _former_parts(saved.former)
    vectors = {name: rows for name, rows in some.items() if rows is not None}
    return snapshot.encode(meta, {**saved.state.arrays(), **saved.space_arrays(), **vectors})


def unpack(data: bytes) -> Saved:
    """Return what `pack` was given; raise SnapshotError if it is not valid."""
    meta, arrays = snapshot.decode(data, meta=_META, arrays=_ARRAYS, views=("kept",))
    state = State.from_parts(meta.get("state"), arrays)
    limits, min_size, keep_vectors = _options(meta)
    space = _space(meta, arrays, state.dimension)
    ledger = records.from_plain(meta.get("ledger"), state)
    records.check_log(state, ledger)
    return Saved(
        state=state,
        space=space,
        healing=Healing.read(meta.get("heal")),
        ledger=ledger,
        limits=limits,
        min_size=min_size,
        keep_vectors=keep_vectors,
        kept=_kept(arrays.get("kept"), state, ledger, keep_vectors),
        undone=_undone(arrays.get("undone"), state, keep_vectors),
        epochs=_epochs(meta.get("epochs"), space, state),
        confidence=_confidence(meta.get("confidence")),
        learnt=_learnt(meta.get("learnt", [0, 0])),
        encoder=_encoder(meta.get("encoder", FIRST)),
        margins=_margins(arrays.get("margins"), state),
        rebuild_thresholds=_rebuild_thresholds(meta.get("rebuild_thresholds")),
        former=_former(meta.get("former"), arrays.get("former"), state),
    )


def check(saved: Saved) -> None:
    """Raise SnapshotError if `unpack` would refuse what `pack` returns."""
    try:
        saved.state.check()
        ledger = records.from_plain(records.to_plain(saved.ledger), saved.state)
        records.check_log(saved.state, ledger)
        _kept(saved.kept, saved.state, ledger, saved.keep_vectors)
        _undone(saved.undone, saved.state, saved.keep_vectors)
    except SnapshotError as error:
        raise SnapshotError(
            f"{error.seen}, in memory",
            expected="a state that can be loaded again",
            remedy="Nothing was written. Go on from the last snapshot that was saved.",
        ) from error


def digest(saved: Saved) -> str:
    """Return a hex digest of all that decides answers now and later."""
    sha = hashlib.sha256(saved.state.digest().encode())
    sha.update(repr(saved.space.model).encode())
    if saved.healing or saved.ledger.aliases:
        sha.update(repr((saved.healing, sorted(saved.ledger.aliases.items()))).encode())
    signature = records.signature(saved.ledger)
    if signature or saved.limits:
        sha.update(repr((saved.limits, signature)).encode())
    if saved.rebuild_thresholds is not None:
        sha.update(repr(saved.rebuild_thresholds).encode())
    for mean in saved.space_arrays().values():
        sha.update(mean.astype("<f8").tobytes())
    return sha.hexdigest()


def _options(meta: dict[str, Any]) -> tuple[Limits, int, bool]:
    min_size, keep_vectors = meta.get("min_size"), meta.get("keep_vectors")
    try:
        limits = Limits(**meta.get("limits"))  # type: ignore[arg-type]
    except (TypeError, ArgumentError) as error:
        raise damaged(f"limits that cannot be ({error})", "what linkstream wrote") from None
    if type(min_size) is not int or min_size < 1 or type(keep_vectors) is not bool:
        seen = f"min_size {min_size!r}, keep_vectors {keep_vectors!r}"
        raise damaged(seen, "a number and a yes or no")
    return limits, min_size, keep_vectors


def _kept(
    array: npt.NDArray[Any] | None, state: State, ledger: Ledger, keep_vectors: bool
) -> npt.NDArray[np.int32] | None:
    if array is None and not (keep_vectors and state.n_vectors):
        return None
    if array is None or not keep_vectors or not state.track_vectors:
        raise damaged("vectors kept, and a header that knows nothing of them", "both or none")
    if array.dtype != np.int32 or array.shape != (state.n_vectors, state.dimension):
        expected = f"{state.n_vectors} rows of {state.dimension}"
        raise damaged(f"vectors of shape {array.shape}", expected)
    if not _sums_fit(array, state, ledger):
        raise damaged("vectors kept that do not sum to the subclusters", "the vectors added")
    return array


def _undone(
    array: npt.NDArray[Any] | None, state: State, keep_vectors: bool
) -> npt.NDArray[np.int32] | None:
    if array is None:
        return None
    if not keep_vectors or array.dtype != np.int32 or array.shape[1:] != (state.dimension,):
        expected = f"rows of {state.dimension}, where vectors are kept"
        raise damaged(f"undone vectors of shape {array.shape}", expected)
    lengths, _ = _lengths_and_shares(array, np.zeros(state.dimension))
    if np.any(np.abs(lengths - 1.0) > _SLACK):
        raise damaged("undone vectors of another length than one", "the vectors undone")
    return array


def _former_parts(former: Former) -> tuple[list[int], npt.NDArray[np.int32]]:
    """Return the header and the array of a clusterer as it was: a snapshot within the snapshot."""
    space = former.epochs.last.space
    inner = pack(Saved(former.state, space, None, former.ledger, epochs=former.epochs))
    padded = inner + bytes(-len(inner) % 4)
    return [former.end, len(inner)], np.frombuffer(padded, dtype="<i4")


def _former(header: Any, array: npt.NDArray[Any] | None, state: State) -> Former | None:
    if header is None and array is None:
        return None
    sound = isinstance(header, list) and [type(value) for value in header] == [int, int]
    if array is None or array.dtype != np.int32 or not sound or header[0] > state.n_events:
        raise damaged("a former state that cannot be", "what linkstream wrote")
    inner = unpack(array.astype("<i4").tobytes()[: header[1]])
    if inner.state.n_vectors != state.n_vectors or inner.state.n_events >= header[0]:
        raise damaged("a former state of another clusterer", "what linkstream wrote")
    epochs = inner.epochs or Epochs.first(inner.space)
    return Former(inner.state, inner.ledger, epochs, header[0])


_BLOCK = 1024  # rows looked at together: they stay in the cache
_SLACK = 1e-4  # far above what rounding can make of sound vectors, far below any other vector
_SINGLE = 1024  # dimensions whose sums single precision holds to within that


def _sums_fit(kept: npt.NDArray[np.int32], state: State, ledger: Ledger) -> bool:
    """Return whether rows have length one, and the rows of each subcluster add up to its sum.

    Rows and sums are compared along one fixed direction, in linear time. This finds a row that is
    not the one that was added, unless it differs at right angles to that direction.
    """
    direction = np.cos(np.arange(state.dimension) ** 2 + 1.0)
    lengths, along = _lengths_and_shares(kept, direction)
    for vector, missing_weight in ledger.missing_weights.items():
        along[vector] *= 1.0 - missing_weight / FULL
    places = indices_of(state, state.vectors)
    if places is None or np.any(np.abs(lengths - 1.0) > _SLACK):
        return False
    summed = np.bincount(places + 1, along, minlength=len(state.numbers) + 1)[1:]
    sums = np.einsum("ij,j->i", state.sums.astype(np.float64), direction)
    off = np.abs(summed - sums / SCALE)
    return bool(np.all(off <= _SLACK * np.linalg.norm(direction) * (state.counts + 1)))


def _lengths_and_shares(
    kept: npt.NDArray[np.int32], direction: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the squared length of each row, and its component along a direction."""
    lengths, along = np.empty(len(kept)), np.empty(len(kept))
    precision = np.dtype(np.float32 if kept.shape[1] <= _SINGLE else np.float64)
    towards = direction.astype(precision)
    for start in range(0, len(kept), _BLOCK):
        block = slice(start, start + _BLOCK)
        rows = kept[block].astype(precision)
        along[block] = np.einsum("ij,j->i", rows, towards)  # einsum starts no threads
        lengths[block] = np.einsum("ij,ij->i", rows, rows)
    return lengths / SCALE**2, along / SCALE


def _confidence(plain: Any) -> Model | None:
    try:
        return None if plain is None else Model.from_plain(plain)
    except ValueError as error:
        raise damaged(f"confidence that cannot be ({error})", "what linkstream wrote") from None


def _learnt(plain: Any) -> tuple[int, int]:
    whole = isinstance(plain, list) and [type(each) for each in plain] == [int, int]
    if not whole or not 0 <= plain[0] <= plain[1]:
        raise damaged(f"answers learnt {plain!r:.40}", "what linkstream wrote")
    return plain[0], plain[1]


def _encoder(plain: Any) -> int:
    if type(plain) is not int or plain < FIRST:
        raise damaged(f"the encoder {plain!r:.40}", "what linkstream wrote")
    return plain


def _margins(array: npt.NDArray[Any] | None, state: State) -> npt.NDArray[np.int32] | None:
    if array is None:
        return None
    if array.dtype != np.int32 or array.ndim != 1 or len(array) > state.n_vectors:
        seen = f"margins of type {array.dtype} and shape {array.shape}"
        raise damaged(seen, f"whole numbers, for up to {state.n_vectors} decisions")
    return array


def _epochs(rows: Any, space: Space, state: State) -> Epochs:
    try:
        return Epochs.from_plain(rows, space, state.n_vectors, state.n_events)
    except (ValueError, TypeError, LookupError) as error:
        raise damaged(f"epochs that cannot be ({error})", "what linkstream wrote") from None


def _rebuild_thresholds(plain: Any) -> RebuildThresholds | None:
    try:
        return RebuildThresholds.read(plain)
    except ValueError as error:
        raise damaged(str(error), "what linkstream wrote") from None


def _space(meta: dict[str, Any], arrays: snapshot.Arrays, dimension: int) -> Space:
    try:
        space = Space(arrays.get("space_mean"), meta.get("model"), meta.get("space_dimension"))
    except ArgumentError as error:
        raise damaged(f"a space that cannot be ({error.seen})", error.expected) from None
    if dimension and space.dimension not in (None, dimension):
        expected = f"dimension {dimension}, as the subclusters have"
        raise damaged(f"a space of dimension {space.dimension}", expected)
    return space
