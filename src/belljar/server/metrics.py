"""Metrics for Prometheus. None has a tenant's name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

if TYPE_CHECKING:
    from belljar.server.service import Service

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "belljar_requests", "Requests that were answered", ("route", "method", "status"), registry=registry
        )
        self.request_seconds = Histogram(
            "belljar_request_seconds", "Time until the answer began", ("route",), buckets=_SECONDS, registry=registry
        )
        self.starts = Counter("belljar_sandbox_starts", "Sandboxes started, resumed ones included", registry=registry)
        self.start_seconds = Histogram(
            "belljar_sandbox_start_seconds", "Time to start one", buckets=_SECONDS, registry=registry
        )
        self.pauses = Counter("belljar_sandbox_pauses", "Sandboxes paused", registry=registry)
        self.resumes = Counter("belljar_sandbox_resumes", "Sandboxes resumed", registry=registry)
        self.timeouts = Counter(
            "belljar_sandbox_timeouts", "Sandboxes whose time was over", ("action",), registry=registry
        )
        self.execs = Counter("belljar_execs", "Commands and runs of code", registry=registry)
        self.refusals = Counter("belljar_refused_credentials", "Requests with a wrong key or token", registry=registry)
        self._sandboxes = Gauge("belljar_sandboxes", "Sandboxes there are", ("state",), registry=registry)
        self._streams = Gauge("belljar_streams", "Answers that are being streamed", registry=registry)

    def render(self, service: Service) -> bytes:
        held = list(service.held.values())
        self._sandboxes.labels("running").set(sum(each.guest is not None for each in held))
        self._sandboxes.labels("paused").set(sum(each.guest is None for each in held))
        self._streams.set(sum(each.guest.streams for each in held if each.guest is not None))
        return generate_latest(self.registry)
