"""Metrics for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from linkstream.service.responses import json_response

if TYPE_CHECKING:
    from starlette.responses import Response

    from linkstream.service.sessions import Sessions
    from linkstream.service.slow_reads import SlowReads

MEDIA = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_STREAMS = ("/events/stream", "/live")  # open as long as the client listens


class Metrics:
    """Counts of requests, and of the namespaces at the time of the scrape."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        here: Any = {"namespace": "linkstream", "registry": self._registry}
        labels = ("method", "route", "status")
        self._requests = Counter("requests", "Requests answered.", labels, **here)
        words = "Duration of requests."
        self._seconds = Histogram("request_seconds", words, ("route",), buckets=_BUCKETS, **here)
        self._children: dict[tuple[str, str, int], tuple[Any, Any]] = {}

    def watch(self, sessions: Sessions) -> None:
        """Include these namespaces."""
        self._registry.register(_Namespaces(sessions))

    def answered(self, scope: Any, status: int, seconds: float) -> None:
        """Count an answered request."""
        route = scope.get("linkstream.route") or getattr(scope.get("route"), "path", "none")
        key = scope["method"] if route != "none" else "other", route, status
        found = self._children.get(key)
        if found is None:
            labels = key[0], route, str(status)
            found = self._requests.labels(*labels), self._seconds.labels(route)
            self._children[key] = found
        found[0].inc()
        if not route.endswith(_STREAMS):
            found[1].observe(seconds)

    def text(self) -> Response:
        """Return all metrics as a response."""
        answer = json_response(None)
        answer.body = generate_latest(self._registry)
        answer.init_headers({"content-type": MEDIA})
        return answer


def _gauge(name: str, words: str, **options: Any) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"linkstream_{name}", words, **options)


def _counter(name: str, words: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(f"linkstream_{name}", words, value=value)


def _slow_reads(slow: SlowReads) -> Iterator[Any]:
    yield _gauge("slow_reads_running", "Slow reads that run.", value=len(slow.running))
    yield _gauge("slow_reads_waiting", "Slow reads that wait.", value=len(slow.waiting))
    yield _gauge("slow_reads_bytes", "Memory of running slow reads, by estimate.", value=slow.used)
    yield _counter("slow_reads_computed", "Slow reads computed.", slow.computed)
    yield _counter("slow_reads_shared", "Slow reads answered by the work of others.", slow.shared)
    yield _counter("slow_reads_refused", "Slow reads refused with 503.", slow.refused)


class _Namespaces(Collector):
    """Metrics of the open namespaces."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def collect(self) -> Iterator[Any]:
        """Yield the metric families."""
        sessions = self._sessions
        yield _gauge("event_readers", "Open event streams.", value=sessions.readers)
        yield _gauge("waiting_bytes", "Bytes received and waiting.", value=sessions.held)
        broken = len(sessions.health.broken)
        yield _gauge("broken_namespaces", "Namespaces that could not be opened.", value=broken)
        failing = len(sessions.health.failing)
        yield _gauge("failing_namespaces", "Namespaces whose last write failed.", value=failing)
        yield from _slow_reads(sessions.slow)
        words, labels = "Vectors added since the start.", ("namespace",)
        taken = CounterMetricFamily("linkstream_vectors", words, labels=labels)
        waiting = _gauge("waiting_requests", "Writes waiting.", labels=labels)
        held = {
            name: _gauge(f"{name}_held", f"Number of {name}.", labels=labels)
            for name in ("vectors", "subclusters", "clusters")
        }
        for session in list(sessions.open.values()):
            taken.add_metric((session.name,), session.live.taken)
            waiting.add_metric((session.name,), session.load.calls)
            for name, family in held.items():
                family.add_metric((session.name,), session.live.figures.get(name, 0))
        yield from (taken, waiting, *held.values())
