"""The store: a clusterer in one file, from which nothing that was acknowledged is ever lost."""

from linkstream.store.store import Store

__all__ = ["Store"]
