"""The compiled side of linkstream."""

from typing import Annotated, Any

import numpy
from numpy.typing import NDArray


def build_info() -> str:
    """The compiler this module was built with."""

def quantise(rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> tuple[Annotated[NDArray[numpy.int32], dict(order='C')], Annotated[NDArray[numpy.float64], dict(order='C')]]:
    """Fixed-point rows of float32 rows, and the rows' lengths."""

def kernels() -> list[str]:
    """Names of the kernels this machine can run, slowest first."""

class Engine:
    """Links on the compiled core."""

    def __init__(self, cluster_similarity: float, subcluster_similarity: float, pair_similarity_max: float, dimension: int, track_vectors: bool, cluster_evidence: bool, threads: int, kernel: str, check_all_edges: bool) -> None: ...

    def add(self, vectors: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> tuple[int, Annotated[NDArray[numpy.int64], dict(order='C')], Annotated[NDArray[numpy.int64], dict(order='C')], Annotated[NDArray[numpy.int8], dict(order='C')], Annotated[NDArray[numpy.float64], dict(order='C')], Annotated[NDArray[numpy.float64], dict(order='C')]]: ...

    def add_floats(self, rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], least: float, most: float) -> tuple[int, Annotated[NDArray[numpy.int64], dict(order='C')], Annotated[NDArray[numpy.int64], dict(order='C')], Annotated[NDArray[numpy.int8], dict(order='C')], Annotated[NDArray[numpy.float64], dict(order='C')], Annotated[NDArray[numpy.float64], dict(order='C')]] | None: ...

    def add_one(self, vector: object, least: float, most: float) -> tuple[int, int, int, float | None, float | None, int] | None: ...

    def ask(self, vectors: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> tuple[int, Annotated[NDArray[numpy.int64], dict(order='C')], Annotated[NDArray[numpy.int64], dict(order='C')], Annotated[NDArray[numpy.int8], dict(order='C')], Annotated[NDArray[numpy.float64], dict(order='C')], Annotated[NDArray[numpy.float64], dict(order='C')]]: ...

    def ranked(self, vector: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], limit: int) -> list[tuple[int, int, int, float, float]]: ...

    def labels(self) -> Annotated[NDArray[numpy.int64], dict(order='C')]: ...

    def oldest_event(self) -> int: ...

    def event_rows(self, since: int) -> Annotated[NDArray[numpy.int64], dict(order='C')]: ...

    def state(self) -> dict[str, Any]: ...

    def restore(self, state: dict[str, Any]) -> None: ...

    @property
    def n_vectors(self) -> int: ...

    @property
    def n_subclusters(self) -> int: ...

    @property
    def n_clusters(self) -> int: ...

    @property
    def n_cluster_ids(self) -> int: ...

    @property
    def kernel(self) -> str: ...

def unions(table: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], squares: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], counts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], cluster_similarity: float, subcluster_similarity: float, pair_similarity_max: float) -> tuple[list[int], list[int], list[float]]:
    """Rows united by margin, in order; the table is used up."""
