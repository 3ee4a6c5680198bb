"""Return a loopback address that no other test process uses, so that its ports are free."""

from __future__ import annotations

import os
import socket


def own_address():
    """Return an address in 127.64.0.0/10 derived from the process ID.

    Every other test listens or calls from 127.0.0.1, so a port that is free here stays free.
    """
    pid = os.getpid() & 0x3FFFFF
    return f"127.{64 + (pid >> 16)}.{pid >> 8 & 255}.{pid & 255}"


def free_port(address):
    """Return a port that is free at `address`."""
    with socket.create_server((address, 0)) as server:
        return server.getsockname()[1]
