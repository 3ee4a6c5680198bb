"""Health: whether every namespace can be opened, and whether the disk accepts writes."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from linkstream.errors import DamagedStoreError, LinkstreamError

FREE_MIN = 16 << 20  # bytes; with less free space the disk counts as full
_PROBE = b"\0" * (64 << 10)  # written to find out whether the disk accepts writes again


@dataclass(slots=True)
class Health:
    """Problems of the namespaces in a folder.

    Attributes:
        folder: the folder of the stores.
        broken: the errors of namespaces that could not be opened.
        failing: namespaces in which a write failed, and none has succeeded since.
    """

    folder: Path
    broken: dict[str, LinkstreamError] = field(default_factory=dict)
    failing: set[str] = field(default_factory=set)

    def reasons(self, *, disk_full: bool) -> list[str]:
        """Return why the service is degraded: "store", "disk"; nothing if it is well.

        Args:
            disk_full: what `check_disk` has returned.
        """
        if not disk_full:
            self._recover()
        return ["store"] * bool(self.broken) + ["disk"] * disk_full

    def check_disk(self) -> bool:
        """Return whether the disk is full. Slow: call it in a thread.

        It is if little space is free, or if a write failed and another one fails now.
        """
        try:
            if shutil.disk_usage(self.folder).free < FREE_MIN:
                return True
            if self.failing:
                write_probe(self.folder)
        except OSError:
            return True
        return False

    def _recover(self) -> None:
        """Forget errors that a full disk may have caused; the next request opens such a store."""
        for name in self.failing:
            if not isinstance(self.broken.get(name), DamagedStoreError):
                self.broken.pop(name, None)
        self.failing.clear()


def write_probe(folder: Path) -> None:
    """Write a small file and remove it; raise OSError if the disk does not accept it."""
    handle, name = tempfile.mkstemp(prefix=".linkstream-probe-", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_PROBE)
            file.flush()
            os.fsync(file.fileno())
    finally:
        with contextlib.suppress(OSError):
            os.unlink(name)
