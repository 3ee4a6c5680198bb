"""HTTP clients for tests, down to single bytes.

Every answer is checked here: errors have seen, expected and remedy, no status is 500, and the
security headers are present.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import socket
import time
from dataclasses import dataclass

import numpy as np

BINARY = "application/octet-stream"
TIMEOUT = 60.0  # seconds; enough for a very busy machine


@dataclass(frozen=True)
class Answer:
    """An HTTP answer."""

    status: int
    headers: dict[str, str]  # names in lower case
    body: bytes
    seconds: float = 0.0

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def kind(self):
        """The kind of an error."""
        return self.json["error"]["kind"]

    @property
    def ids(self):
        if self.headers["content-type"] == BINARY:
            return np.frombuffer(self.body, dtype="<i8").tolist()
        return self.json["ids"]


class Caller:
    """A client with one persistent connection."""

    def __init__(self, port, *, token=None, timeout=TIMEOUT):
        self.port, self.token = port, token
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)

    def call(self, method, path, data=None, *, headers=None, token=None, sound=True):
        """Send a request and check its answer; `data` is bytes, an array, or a JSON value."""
        sent, body = {}, data
        if isinstance(data, np.ndarray):
            joint = "&" if "?" in path else "?"
            path = f"{path}{joint}dimension={data.shape[-1]}"
            sent, body = {"Content-Type": BINARY}, data.astype("<f4").tobytes()
        elif data is not None and not isinstance(data, bytes):
            sent, body = {"Content-Type": "application/json"}, json.dumps(data).encode()
        token = token or self.token
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        sent |= headers or {}
        begin = time.monotonic()
        answer = self._exchanged(method, path, body, sent)
        answer = Answer(*answer, time.monotonic() - begin)
        if sound:
            check_answer(answer)
        return answer

    def _exchanged(self, method, path, body, headers):
        connection = self._connection
        headers = {name: value for name, value in headers.items() if value is not None}
        connection.request(method, path, body, headers)
        got = connection.getresponse()
        read = got.read()
        return got.status, {name.lower(): value for name, value in got.getheaders()}, read

    def get(self, path, **how):
        return self.call("GET", path, **how)

    def post(self, path, data=None, **how):
        return self.call("POST", path, data, **how)

    def put(self, path, data=None, **how):
        return self.call("PUT", path, data, **how)

    def close(self):
        self._connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


def check_answer(answer):
    """Check an answer: no fault, errors in one form, security headers."""
    assert answer.status < 500 or answer.status == 503, (answer.status, answer.body[:2000])
    if answer.status >= 400 and answer.body:
        assert_error(answer)
    if answer.status in (429, 503):
        assert int(answer.headers["retry-after"]) >= 1
    if answer.status == 401:
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert_safe(answer)


def assert_error(answer):
    assert answer.headers["content-type"].split(";")[0] == "application/json"
    error = answer.json["error"]
    assert {"kind", "seen", "expected", "remedy"} <= set(error), error
    more = {"row", "chain", "correction"}
    assert set(error) <= {"kind", "seen", "expected", "remedy"} | more, error
    for name in ("kind", "seen", "expected", "remedy"):
        assert isinstance(error[name], str), error
        assert error[name], error
    assert len(answer.body) < 8_192, "an error that echoes all it was sent"
    for leak in (b"Traceback", b'File "', b"/tests/", b"/tmp/", b"site-packages"):
        assert leak not in answer.body, answer.body


def assert_safe(answer):
    """Check the security headers."""
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert "set-cookie" not in answer.headers


# Below HTTP


class RawConnection:
    """A connection that sends any bytes."""

    def __init__(self, port, *, timeout=TIMEOUT, receive_buffer=None):
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout)
        self.socket.connect(("127.0.0.1", port))

    def send(self, data):
        """Send bytes; return whether the connection was still open."""
        try:
            self.socket.sendall(data)
        except OSError:
            return False
        return True

    def answers(self):
        """Return all answers until the service closes the connection."""
        read = self.rest()
        found = []
        while read:
            answer, read = _split(read)
            if answer is None:
                break
            found.append(answer)
        return found

    def rest(self):
        """Return all bytes until the service closes the connection; raise TimeoutError if not."""
        parts = []
        with contextlib.suppress(ConnectionError):
            while part := self.socket.recv(1 << 16):
                parts.append(part)
        return b"".join(parts)

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


def _split(read):
    """Split bytes into the first answer and the rest."""
    head, gap, rest = read.partition(b"\r\n\r\n")
    if not gap:
        return None, b""
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    status, length = int(first.split()[1]), int(headers.get("content-length", len(rest)))
    return Answer(status, headers, rest[:length]), rest[length:]


def raw_answers(port, data, **how):
    """Send bytes on a new connection; return the answers until it closes."""
    with RawConnection(port, **how) as line:
        line.send(data)
        return line.answers()


def head(method, path, *, body=None, length=None, **headers):
    """Return a request as bytes."""
    lines = [f"{method} {path} HTTP/1.1"]
    headers = {"host": "127.0.0.1", "connection": "close"} | headers
    if body is not None and length is None:
        length = len(body)
    if length is not None:
        headers["content-length"] = str(length)
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b"")


# Events


@dataclass(frozen=True)
class Message:
    """One server-sent event."""

    id: str | None
    event: str
    data: object


class Stream:
    """A reader of server-sent events."""

    def __init__(self, port, path, *, token=None, last=None, timeout=TIMEOUT):
        self._line = RawConnection(port, timeout=timeout)
        more = {} if token is None else {"authorization": f"Bearer {token}"}
        if last is not None:
            more["last_event_id"] = last
        self._line.send(head("GET", path, accept="text/event-stream", **more))
        self._file = self._line.socket.makefile("rb")
        self.status = int(self._file.readline().split()[1])
        self.headers = {}
        while line := self._file.readline().strip():
            name, _, value = line.decode("latin-1").partition(":")
            self.headers[name.lower()] = value.strip()
        self._text = b""
        self._messages = self._read()

    def __iter__(self):
        """Yield messages until the stream ends."""
        return self._messages

    def _read(self):
        fields, chunked = {}, self.headers.get("transfer-encoding") == "chunked"
        for line in self._lines(chunked):
            if line:
                name, _, value = line.partition(":")
                fields[name] = value.removeprefix(" ")
                continue
            if fields.get("data"):
                data = json.loads(fields["data"])
                yield Message(fields.get("id"), fields.get("event", "message"), data)
            fields = {}

    def take(self, n):
        """Return the next n messages."""
        return list(itertools.islice(self._messages, n))

    def _lines(self, chunked):
        try:
            while part := self._part(chunked):
                *whole, self._text = (self._text + part).split(b"\n")
                for line in whole:
                    yield line.decode().removesuffix("\r")
        except ConnectionError:
            return

    def _part(self, chunked):
        if not chunked:
            return self._file.readline()
        size = int(self._file.readline().strip() or b"0", 16)
        part = self._file.read(size)
        self._file.readline()
        return part if size else b""

    def close(self):
        self._file.close()
        self._line.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


JSON = {"Content-Type": "application/json"}


def refused(service, method, path, body, *, statuses=(400,), headers=JSON):
    """Send a request that must be refused quickly, and check that the service still works.

    Returns the first answer; the fastest of four attempts counts, since the machine may be busy.
    """
    answers = []
    for _ in range(4):
        answer = service.call(method, path, body, headers=headers)
        assert answer.status in statuses, (answer.status, answer.body)
        answers.append(answer)
        if answer.seconds < 0.1:
            break
    assert min(answer.seconds for answer in answers) < 1.0
    assert service.get("/healthz").status == 200
    return answers[0]
