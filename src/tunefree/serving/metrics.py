"""Metrics of a model in operation for Prometheus."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily

from tunefree.serving.events import Counts
from tunefree.serving.service import Service

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)

# What :meth:`tunefree.serving.service.Service.state` calls a number, by the name of its metric.
GAUGES = {
    "rows": "rows",
    "rows_published": "rows_published",
    "rows_unsaved": "unsaved",
    "version": "version",
    "waiting": "waiting",
    "queued_to_learn": "learn_queue",
    "queued_to_predict": "predict_queue",
    "progressive_loss": "progressive_loss",
    "recent_loss": "recent_loss",
    "loss_rises": "drift_count",
    "loss_rose_seconds": "drift_time",
    "loss_rose_row": "drift_row",
    "can_learn": "learn_failure",
    "can_save": "save_failure",
}


def number_of(metric: str, state: Any) -> float:
    """The number of a metric, of what :meth:`Service.state` has for it; NaN of None."""
    if metric in ("can_learn", "can_save"):
        return float(state is None)
    return math.nan if state is None else float(state)


class Metrics:
    """Numbers of a service as text; the names begin with ``tunefree_``."""

    def __init__(self, service: Service) -> None:
        self._service, self._registry = service, CollectorRegistry()
        self._registry.register(self)
        described = "tunefree_request_seconds", "From a request to its answer.", ("path", "status")
        self._latency = Histogram(*described, buckets=SECONDS, registry=self._registry)

    def observe(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._latency.labels(path, status).observe(seconds)

    def text(self) -> bytes:
        """All numbers."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Any]:
        """The metrics for the registry."""
        for of in fields(Counts):
            number = getattr(self._service.counts, of.name)
            yield CounterMetricFamily(f"tunefree_{of.metadata['metric']}", of.metadata["meaning"], number)
        state = self._service.state()
        for name, key in GAUGES.items():
            yield GaugeMetricFamily(f"tunefree_{name}", f"{key!r} of /model.", number_of(name, state[key]))
        ignored = CounterMetricFamily("tunefree_columns_ignored", "Rows with it.", labels=["column"])
        for column, count in Counter[str](state["ignored_columns"]).most_common(100):
            ignored.add_metric([column], count)
        yield ignored
        path = Path("/proc/self/statm")
        size = float(path.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if path.exists() else math.nan
        yield GaugeMetricFamily("tunefree_memory_bytes", "Resident memory of the process.", size)
        model = InfoMetricFamily("tunefree_model", "What is served.")
        model.add_metric([], {name: str(state[name]) for name in ("task", "target")})
        yield model
