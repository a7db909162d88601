"""A service says where the loss rose, when, and which columns changed most."""

import json
import math
import time

import numpy as np

from tunefree.model_files.plan import Plan
from tunefree.serving.http import GAUGES, number_of
from tunefree.serving.service import Service
from tunefree.stream.source import open_source
from tunefree.training.training import train

N = 1500


def stream():
    """Rows whose target follows a column, and the other way round from row N on."""
    a = np.random.default_rng(0).normal(size=N + 700).round(4)
    return {"a": a, "y": np.where((a > 0.0) ^ (np.arange(len(a)) >= N), "yes", "no")}


def test_a_rise_is_in_the_state_and_in_the_metrics():
    table = stream()
    rows = [{"a": float(a), "y": str(y)} for a, y in zip(table["a"], table["y"], strict=True)]
    trained = train(open_source({name: values[:N] for name, values in table.items()}), Plan("y", learner="scinol2"))
    service, began = Service(trained), time.time()

    def told(metric):
        return number_of(metric, service.state()[GAUGES[metric]])

    try:
        assert (
            service.state()["drifts"] == []
            and math.isnan(told("loss_rose_seconds"))
            and math.isnan(told("loss_rose_row"))
        )
        service.learn(rows[N : N + 100])
        service.settle()
        (rise,) = service.state()["drifts"]
        assert abs(rise["row"] - N - 1) < 20 and service.state()["drift_count"] == 1
        assert told("loss_rose_row") == rise["row"] and began <= told("loss_rose_seconds") <= time.time()
        service.learn(rows[N + 100 :])
        service.settle()
        (rise,) = service.state()["drifts"]
        assert rise["rows_compared"][1] == 512 and rise["changed"][0]["column"] == "a"
        json.dumps(service.state())
    finally:
        service.close()
