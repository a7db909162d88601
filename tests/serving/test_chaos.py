"""Most of a minute of all at once (:mod:`tests.serving.chaos`, which takes longer if asked to)."""

import random

import pytest

from tests.serving.chaos import Chaos

pytest.importorskip("starlette")
pytest.importorskip("prometheus_client")
pytest.importorskip("httptools")

SECONDS, RATE, PAUSE = 45.0, 200.0, 3.0


@pytest.mark.slow
def test_chaos(tmp_path):
    random.seed(7)
    chaos = Chaos(tmp_path, SECONDS, RATE, PAUSE)
    chaos.run()
    assert chaos.check() > 100
