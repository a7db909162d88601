"""What Prometheus reads of a model in operation."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily

from tunefree.serving.connections import Refusals
from tunefree.serving.requests import Counts
from tunefree.serving.service import Service
from tunefree.serving.shadow import Shadow

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


GAUGES: dict[str, tuple[str, Callable[[Service], float]]] = {
    "rows": ("Rows learned in all.", lambda service: service.learner.trained.progress.progressive[0].rows),
    "rows_published": ("Rows that predictions know.", lambda service: service.learner.published.rows),
    "rows_unsaved": ("Rows in the journal since the last version.", lambda service: service.learner.unsaved),
    "version": ("The current version.", lambda service: service.store.versions[-1].number),
    "waiting": ("Rows that wait for their labels.", lambda service: service.store.journal.n_waiting),
    "queued_to_learn": ("Requests that wait to be learned.", lambda service: service.learner.n_queued),
    "queued_to_predict": ("Requests that wait to be predicted.", lambda service: service.predictor.n_queued),
    "progressive_loss": (
        "Mean loss of rows before they were learned.",
        lambda service: service.learner.trained.progress.progressive[0].mean_loss(),
    ),
    "recent_loss": (
        "The same of the latest rows, of a weight that halves in 1,000.",
        lambda service: service.learner.recent,
    ),
    "loss_rises": ("Rises of the loss along the stream.", lambda service: service.learner.n_rises),
    "loss_rose_seconds": (
        "When it rose last, since 1970; NaN if not since the start.",
        lambda service: service.learner.rose_at,
    ),
    "loss_rose_row": (
        "Row from which on it rose last; NaN if it never did.",
        lambda service: (service.learner.published.drifts or [{"row": math.nan}])[-1]["row"],
    ),
    "can_learn": ("1 unless learning failed.", lambda service: float(service.learner.broken is None)),
    "can_save": ("1 unless the last version could not be saved.", lambda service: float(not service.learner.failure)),
}

OF_CHALLENGER: dict[str, tuple[str, Callable[[Shadow], float]]] = {
    "rows_compared": ("Rows that it and the served model predicted.", lambda shadow: shadow.place.comparison.rows),
    "loss": ("Its mean loss on these.", lambda shadow: shadow.place.comparison.means()[1]),
    "loss_of_served": (
        "That of the served model.",
        lambda shadow: shadow.place.comparison.means()[0],
    ),
    "is_better": ("1 if it is known to be better.", lambda shadow: float(shadow.place.comparison.is_second_better())),
    "is_worse": ("1 if it is known to be worse.", lambda shadow: float(shadow.place.comparison.is_first_better())),
    "can_learn": ("1 unless it failed.", lambda shadow: float(shadow.broken is None)),
}


class Metrics:
    """Numbers of a service as text; the names begin with ``tunefree_``."""

    def __init__(self, service: Service, refusals: Refusals) -> None:
        self._service, self._refusals = service, refusals
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._latency = Histogram(
            "tunefree_request_seconds",
            "From a request to its answer.",
            ("path", "status"),
            buckets=SECONDS,
            registry=self._registry,
        )
        self._children: dict[tuple[str, int], Any] = {}

    def observe(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        child = self._children.get((path, status))
        if child is None:
            child = self._children[path, status] = self._latency.labels(path, status)
        child.observe(seconds)

    def text(self) -> bytes:
        """All numbers."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Any]:
        """What the registry asks for."""
        for of in fields(Counts):
            number = getattr(self._service.counts, of.name)
            yield CounterMetricFamily(f"tunefree_{of.metadata['metric']}", of.metadata["meaning"], number)
        for name, (meaning, value) in GAUGES.items():
            yield GaugeMetricFamily(f"tunefree_{name}", meaning, value(self._service))
        shadow = self._service.shadow
        for name, (meaning, of_shadow) in OF_CHALLENGER.items():
            if shadow is not None:
                yield GaugeMetricFamily(f"tunefree_challenger_{name}", f"The challenger: {meaning}", of_shadow(shadow))
        ended = CounterMetricFamily("tunefree_connections_ended", "Because of a limit.", labels=["limit"])
        for limit, count in vars(self._refusals).items():
            ended.add_metric([limit], count)
        yield ended
        ignored = CounterMetricFamily("tunefree_columns_ignored", "Rows with it.", labels=["column"])
        for column, count in self._service.ignored_columns().most_common(100):
            ignored.add_metric([column], count)
        yield ignored
        yield GaugeMetricFamily("tunefree_memory_bytes", "Resident memory of the process.", _memory())
        model = InfoMetricFamily("tunefree_model", "What is served.")
        task, target = self._service.learner.trained.model.task, str(self._service.learner.trained.encoder.target)
        model.add_metric([], {"task": task, "target": target})
        yield model


def _memory() -> float:
    """Resident bytes, or NaN where the system does not say."""
    path = Path("/proc/self/statm")
    return float(path.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if path.exists() else float("nan")
