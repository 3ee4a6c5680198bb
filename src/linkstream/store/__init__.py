"""The store: a clusterer in one file. Everything that was acknowledged survives a crash."""

from linkstream.store.journal import Operation
from linkstream.store.payloads import JsonLines
from linkstream.store.repairing import Repaired, Verified, repair
from linkstream.store.searching import Found, Hit
from linkstream.store.steps import Step
from linkstream.store.store import Store
from linkstream.store.write_requests import Batch

__all__ = [
    "Batch",
    "Found",
    "Hit",
    "JsonLines",
    "Operation",
    "Repaired",
    "Step",
    "Store",
    "Verified",
    "repair",
]
