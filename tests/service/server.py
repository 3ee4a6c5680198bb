"""Services for tests: in a thread for quick tests, in a process for tests that kill it.

A process is forked from one that has everything imported, so that starting it costs little; what
it runs is the command `linkstream serve`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from linkstream.service.running import server as made
from linkstream.service.settings import Settings
from service.calling import TIMEOUT, Caller
from store.operations import THRESHOLDS

MADE_WITH = {
    "thresholds": {
        "cluster_similarity": THRESHOLDS.cluster_similarity,
        "subcluster_similarity": THRESHOLDS.subcluster_similarity,
        "pair_similarity_max": THRESHOLDS.pair_similarity_max,
    }
}


def until(condition, *, seconds=TIMEOUT, pause=0.005):
    """Wait until a condition is true; return its value."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it does not come about"
        time.sleep(pause)
    return found


class Service:
    """What both kinds of service share: a port and ways to call it."""

    port: int

    def caller(self, **how):
        return Caller(self.port, **how)

    def call(self, method, path, data=None, **how):
        """Send one request on a new connection."""
        with Caller(self.port) as caller:
            return caller.call(method, path, data, **how)

    def get(self, path, **how):
        return self.call("GET", path, **how)

    def post(self, path, data=None, **how):
        return self.call("POST", path, data, **how)

    def put(self, path, data=None, **how):
        return self.call("PUT", path, data, **how)

    def namespace(self, name, *, token=None, **options):
        """Make a namespace; return its path."""
        answer = self.put(f"/v1/namespaces/{name}", MADE_WITH | options, token=token)
        assert answer.status in (200, 201), answer.body
        return f"/v1/namespaces/{name}"


class ThreadService(Service):
    """A service in a thread of this process."""

    def __init__(self, data, **settings):
        self.data = Path(data)
        self.settings = Settings(data=self.data, port=0, **settings)
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=1_024)
        self.port = self.socket.getsockname()[1]
        self.server = made(self.settings)
        self._thread = threading.Thread(target=self.server.run, args=([self.socket],))

    @property
    def app(self):
        return self.server.config.app

    def __enter__(self):
        self._thread.start()
        until(lambda: self.server.started or not self._thread.is_alive())
        assert self._thread.is_alive(), "it did not start"
        return self

    def __exit__(self, *error):
        self.server.should_exit = True
        self._thread.join(TIMEOUT)
        self.socket.close()
        assert not self._thread.is_alive(), "it does not stop"


@dataclass(frozen=True)
class Ended:
    """The end of a process: its status, negative for a signal, and its output."""

    status: int
    errors: str


class ServiceForker:
    """A process that has imported everything and forks services."""

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", Path(__file__).with_name("child.py")],
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, **job):
        print(json.dumps(job), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())

    def close(self):
        self._process.communicate(timeout=TIMEOUT)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


class ProcessService(Service):
    """A service as a process: `linkstream serve DATA`, with settings from a file."""

    def __init__(self, nest, data, *, fault=None, **settings):
        self.data = Path(data)
        self.data.mkdir(exist_ok=True, parents=True)
        self._nest, self.fault = nest, fault
        self._config = self.data.parent / f"{self.data.name}.toml"
        lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
        self._config.write_text("[service]\n" + "\n".join(lines) + "\n")
        self.pid, self.ended = 0, None
        self.start()

    def start(self):
        """Start or restart the service; its first line of output has the address."""
        self.ended = None
        self._output = self.data.parent / f"{self.data.name}.{time.monotonic_ns()}"
        words = ["serve", self.data, "--port", "0", "--config", self._config]
        self.pid = self._nest.ask(
            words=list(map(str, words)), output=str(self._output), fault=self.fault
        )
        line = until(self._first_line)
        self.port = urlsplit(json.loads(line)["url"]).port
        return self

    def _first_line(self):
        text = self._output.read_text() if self._output.exists() else ""
        ended = self._nest.ask(ended=self.pid) if "\n" not in text else None
        assert ended is None, (ended, self.errors())
        return text.partition("\n")[0] if "\n" in text else ""

    def errors(self):
        """Return its standard error."""
        path = Path(f"{self._output}.errors")
        return path.read_text() if path.exists() else ""

    def signal(self, number):
        if self.ended is None:
            os.kill(self.pid, number)

    def wait(self):
        """Wait for the end of the process; return how it ended."""
        if self.ended is None:
            status = until(lambda: self._nest.ask(ended=self.pid))
            self.ended = Ended(status[0], self.errors())
        return self.ended

    def kill(self):
        """Kill the process, as a loss of power does."""
        self.signal(signal.SIGKILL)
        ended = self.wait()
        assert ended.status == -signal.SIGKILL, ended
        return ended

    def stop(self):
        """Send SIGTERM, as a system does at shutdown."""
        self.signal(signal.SIGTERM)
        ended = self.wait()
        assert ended.status == 0, ended
        assert "Traceback" not in ended.errors, ended.errors
        return ended

    @property
    def resident(self):
        """Return the private memory of the process in bytes."""
        text = Path(f"/proc/{self.pid}/smaps_rollup").read_text()
        fields = dict(line.split(":", 1) for line in text.splitlines()[1:])
        return sum(int(fields[name].split()[0]) for name in PRIVATE) * 1024

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.ended is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self.wait()


PRIVATE = ("Private_Clean", "Private_Dirty")
