"""Run a service: check the settings, listen, serve, stop."""

from __future__ import annotations

import contextlib
import errno
import functools
import ipaddress
import logging
import os
import shlex
import socket
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, cast

from linkstream.errors import ArgumentError, MissingExtraError
from linkstream.service.settings import Settings
from linkstream.service.tokens import Tokens

if TYPE_CHECKING:
    from linkstream.service.server import Server
    from linkstream.service.sessions import Sessions

Ready = Callable[[str], None]
Address = tuple[socket.AddressFamily, tuple[Any, ...]]

_BACKLOG = 2_048
_log = logging.getLogger("linkstream.service")
_WHY = {
    errno.EADDRINUSE: (
        "is in use",
        "Stop the program that listens there, or choose another with --port.",
    ),
    errno.EACCES: ("needs privileges", "Choose a --port of 1,024 or more."),
    errno.EADDRNOTAVAIL: (
        "is not an address of this machine",
        "Choose another --host, such as 127.0.0.1.",
    ),
}


def serve(settings: Settings, *, ready: Ready | None = None) -> bool:
    """Serve until SIGTERM or Ctrl-C; then answer running requests, close the stores, and return.

    If that takes longer than `stop_seconds`, the process ends then, whatever runs in it. A second
    signal ends the process at once. The exit code is 0 in both cases, and acknowledged data is
    safe. Slow reads are not answered: they get 503.

    Args:
        settings: the settings of the service.
        ready: called with the URL of the dashboard once requests are answered.

    Returns:
        Whether a signal has stopped it. Threads of slow reads may still run for a moment.

    Raises:
        ArgumentError: the service would be open to other machines without a token, the port is in
            use, or the token file cannot be used. No store was opened.
        MissingExtraError: FastAPI or uvicorn is not installed.
    """
    _allow_many_files()
    sockets = prepare(settings)
    with contextlib.ExitStack() as held:
        for one in sockets:
            held.callback(one.close)
        running = server(settings)
        if ready is not None:
            url = url_of(settings, sockets[0].getsockname())
            running.ready = functools.partial(ready, url)
        running.run_on(sockets)
        return running.signalled


@contextlib.contextmanager
def background(settings: Settings) -> Iterator[str]:
    """Run a service in a thread of this process inside the block; yield its URL."""
    messages: SimpleQueue[str | BaseException] = SimpleQueue()
    sockets = prepare(settings)
    url = url_of(settings, sockets[0].getsockname())
    with contextlib.ExitStack() as held:
        for one in sockets:
            held.callback(one.close)
        running = server(settings)
        running.ready = functools.partial(messages.put, url)

        def run() -> None:
            try:
                running.run_on(sockets)
            except BaseException as error:
                messages.put(error)

        thread = threading.Thread(target=run, name="linkstream-service")
        thread.start()
        try:
            answer = messages.get()
            if isinstance(answer, BaseException):
                raise answer
            yield answer
        finally:
            running.should_exit = True
            thread.join()
        if not messages.empty():  # the service failed while it ran
            raise cast("BaseException", messages.get())


def prepare(settings: Settings) -> list[socket.socket]:
    """Check the settings and listen; all refusals happen here, before a store is opened."""
    addresses = check(settings)
    _make_folder(settings)
    return _listening(settings, addresses)


def check(settings: Settings) -> list[Address]:
    """Return the addresses where a service would listen; nothing changes.

    Raises:
        ArgumentError: the service would be open to other machines without a token, or a file or
            folder of the settings cannot be used.
    """
    _check_folders(settings)
    tokens = _tokens(settings)
    addresses = _addresses(settings)
    beyond = [address for address in addresses if not is_loopback(address[1][0])]
    if beyond and not tokens.live():
        folder = shlex.quote(str(settings.data))
        seen = f"the host {settings.host!r}, which other machines can reach, and no valid token"
        remedy = f"Run: linkstream token create {folder} --scope '*=admin'"
        raise ArgumentError(seen, expected="a token, or a loopback address", remedy=remedy)
    return addresses


def is_loopback(address: str) -> bool:
    """Return whether an address reaches this machine alone; False for names.

    >>> [is_loopback(a) for a in ("127.0.0.2", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::")]
    [True, True, True, False, False]
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return (mapped or parsed).is_loopback


def url_of(settings: Settings, name: tuple[Any, ...]) -> str:
    """Return the URL of the dashboard for a browser on this machine."""
    host = str(name[0])
    if ipaddress.ip_address(host.partition("%")[0]).is_unspecified:
        host = "::1" if ":" in host else "127.0.0.1"
    elif settings.host == "localhost" and settings.port:  # port 0 is that of one address only
        host = "localhost"
    return f"http://[{host}]:{name[1]}/" if ":" in host else f"http://{host}:{name[1]}/"


def _allow_many_files() -> None:
    """Raise the limit of open files: a store takes six, a connection one."""
    with contextlib.suppress(ImportError, OSError, ValueError):  # Windows has no such limit
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def server(settings: Settings, *, sessions: Sessions | None = None) -> Server:
    """Make the server of a service, to be run on sockets.

    Unlike `serve` it does not check where it listens. Without `sessions` it opens the namespaces
    in the data folder.
    """
    try:
        from linkstream.service.server import Server
    except ModuleNotFoundError as missing:
        if missing.name != "uvicorn":
            raise
        raise MissingExtraError("uvicorn", extra="service", purpose="Serving") from missing
    return Server.of(settings, sessions=sessions)


def _tokens(settings: Settings) -> Tokens:
    if settings.tokens is not None and not settings.tokens.exists():
        raise ArgumentError(
            f"no token file {str(settings.tokens)!r}",
            expected="an existing file; without it the service would be open",
            remedy="Make a token first, or leave the setting out to serve loopback without tokens.",
        )
    tokens = Tokens.load(settings.token_file)
    if tokens.any and not tokens.live():
        _log.warning("%s holds no valid token: all calls are refused", settings.token_file)
    return tokens


def _addresses(settings: Settings) -> list[Address]:
    """Resolve the host; a name may stand for several addresses."""
    try:
        found = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, UnicodeError):
        seen = f"the host {settings.host!r}, which has no address"
        expected = "an address of this machine, or its name"
        raise ArgumentError(seen, expected=expected, remedy="Try 127.0.0.1.") from None
    addresses = {name: family for family, _, _, _, name in found}
    return [(family, name) for name, family in addresses.items()]


def _check_folders(settings: Settings) -> None:
    for name, folder in (("data", settings.data), ("images", settings.images)):
        made_later = name == "data" and folder is not None and folder.parent.is_dir()
        if folder is None or folder.is_dir() or (made_later and not os.path.lexists(folder)):
            continue
        seen = f"{name}: {str(folder)!r} is not a folder"
        remedy = "Make it first, or choose another folder."
        raise ArgumentError(seen, expected="an existing folder", remedy=remedy)


def _make_folder(settings: Settings) -> None:
    try:
        settings.data.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        seen = f"the data folder {str(settings.data)!r} cannot be made ({error.strerror})"
        remedy = "Choose another folder."
        raise ArgumentError(seen, expected="a writable parent folder", remedy=remedy) from None


def _listening(settings: Settings, addresses: list[Address]) -> list[socket.socket]:
    """Listen at each address that was checked; no name is resolved again."""
    if settings.port == 0:
        addresses = addresses[:1]  # each address would get another port
    made: list[socket.socket] = []
    refused: list[tuple[tuple[Any, ...], OSError]] = []
    for family, name in addresses:
        try:
            made.append(_socket(family, name))
        except OSError as error:  # noqa: PERF203
            refused.append((name, error))
    # A missing IPv6 is no failure; a port in use is.
    failures = [one for one in refused if one[1].errno == errno.EADDRINUSE or not made]
    if failures:
        for one in made:
            one.close()
        raise _cannot_listen(*failures[0])
    return made


def _socket(family: socket.AddressFamily, name: tuple[Any, ...]) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # on Windows two programs could then share a port
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(name)
        made.listen(_BACKLOG)  # now, so that a port in use is refused before any work
    except BaseException:
        made.close()
        raise
    return made


def _cannot_listen(name: tuple[Any, ...], error: OSError) -> ArgumentError:
    why, remedy = _WHY.get(
        error.errno or 0, (f"cannot be used ({error.strerror})", "Choose another --host or --port.")
    )
    seen = f"port {name[1]} at {name[0]} {why}"
    return ArgumentError(seen, expected="a free address", remedy=remedy)
