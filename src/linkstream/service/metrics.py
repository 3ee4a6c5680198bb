"""Metrics, as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from linkstream.service.answers import plain

if TYPE_CHECKING:
    from starlette.responses import Response

    from linkstream.service.sessions import Sessions

MEDIA = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_STREAMS = ("/events/stream", "/live")  # they take as long as somebody listens


class Metrics:
    """What is counted of requests; and of the namespaces, at the moment somebody asks."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "linkstream_requests",
            "Requests answered.",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "linkstream_request_seconds",
            "How long answers took.",
            ("route",),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._children: dict[tuple[str, str, int], tuple[Any, Any]] = {}

    def watch(self, sessions: Sessions) -> None:
        """Tell of these namespaces, too."""
        self._registry.register(_Namespaces(sessions))

    def answered(self, scope: Any, status: int, seconds: float) -> None:
        """A request was answered."""
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
        """All of it."""
        answer = plain(None)
        answer.body = generate_latest(self._registry)
        answer.init_headers({"content-type": MEDIA})
        return answer


class _Namespaces(Collector):
    """Figures of the namespaces that are open."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def collect(self) -> Iterator[Any]:
        """One family after the other."""
        sessions = self._sessions
        yield GaugeMetricFamily("linkstream_event_readers", "Readers.", value=sessions.readers)
        yield GaugeMetricFamily("linkstream_waiting_bytes", "Waiting.", value=sessions.held)
        broken = len(sessions.broken)
        yield GaugeMetricFamily("linkstream_broken_namespaces", "Cannot be used.", value=broken)
        taken = CounterMetricFamily(
            "linkstream_vectors", "Vectors taken since the start.", labels=("namespace",)
        )
        waiting = GaugeMetricFamily(
            "linkstream_waiting_requests", "Writes that wait.", labels=("namespace",)
        )
        held = {
            name: GaugeMetricFamily(f"linkstream_{name}_held", f"Of {name}.", labels=("namespace",))
            for name in ("vectors", "subclusters", "clusters")
        }
        for session in list(sessions.open.values()):
            taken.add_metric((session.name,), session.live.taken)
            waiting.add_metric((session.name,), session.load.calls)
            for name, family in held.items():
                family.add_metric((session.name,), session.live.figures.get(name, 0))
        yield from (taken, waiting, *held.values())
