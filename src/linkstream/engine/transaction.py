"""A change of the reference engine of several calls: kept wholly, or taken back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from linkstream.engine.cluster_sums import ClusterSums
from linkstream.engine.contract import VectorStore
from linkstream.engine.graph import Graph
from linkstream.engine.kept_changes import KeptChanges
from linkstream.engine.log import Journal
from linkstream.engine.members import Members


class Transaction:
    """Begin, keep and take back changes of all parts of an engine together."""

    def __init__(
        self,
        graph: Graph,
        members: Members,
        journal: Journal,
        cluster_sums: ClusterSums,
        vector_store: VectorStore | None,
        kept: KeptChanges,
    ) -> None:
        self._graph, self._members, self._journal = graph, members, journal
        self._cluster_sums, self._vector_store, self._kept = cluster_sums, vector_store, kept
        self._open = False
        self._stored_before = 0  # vectors in the store before the open change

    def begin(self) -> None:
        """Begin a change of several calls."""
        assert not self._open, "changes do not nest"
        self._graph.begin()
        self._members.begin()
        self._journal.begin()
        self._stored_before = 0 if self._vector_store is None else len(self._vector_store)
        self._open = True

    def commit(self, *, keep: bool = False) -> None:
        """Keep all calls since `begin`; `keep`: so that the change can be taken back later."""
        self._kept.ends(keep=keep, stored=self._stored_before)
        self._graph.commit()
        self._members.commit()
        self._journal.commit()
        self._open = False

    def rollback(self) -> None:
        """Take back all calls since `begin`."""
        if not self._open:
            return
        self._graph.rollback()
        self._cluster_sums.read()
        self._members.rollback()
        self._journal.rollback()
        if self._vector_store is not None:
            self._vector_store.cut(self._stored_before)
        self._open = False

    @contextmanager
    def change(self) -> Iterator[None]:
        """Make a call a change of its own unless a change is open."""
        if self._open:
            yield
            return
        self.begin()
        try:
            yield
            self.commit()
        except BaseException:
            self.rollback()
            raise
