"""Waiting for what other processes do."""

import time
from collections.abc import Callable

NEVER = 600.0  # seconds; what has not happened by then does not happen


def until(condition: Callable[[], object]) -> None:
    """Wait for a condition, however long it takes; the limit tells a deadlock only."""
    limit = time.monotonic() + NEVER
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.005)
