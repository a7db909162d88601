"""`partial_fit` of one row of 30 columns: one learner and the pool against scikit-learn's SGDClassifier.

First rows are only learned, then each is predicted before it is learned. Times are processor time a row of 1,000 rows
after 600 that were learned at once; runs are interleaved.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from common import interleaved
from sklearn.linear_model import SGDClassifier

from tunefree import ScInOLClassifier, TuneFreeClassifier

REPEATS = 5
FIRST, ROWS, COLUMNS = 600, 1000, 30
MODELS: dict[str, Callable[[], Any]] = {
    "scikit-learn, SGDClassifier": partial(SGDClassifier, loss="log_loss"),
    "tunefree, ScInOL2": ScInOLClassifier,
    "tunefree, pool": TuneFreeClassifier,
}


def microseconds(make: Callable[[], Any], predicts: bool) -> float:
    """Processor time a row; the process's, so that threads count."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(FIRST + ROWS, COLUMNS))
    y = (X[:, 0] + X[:, 1] + rng.normal(size=len(X)) > 0).astype(int)
    model = make().partial_fit(X[:FIRST], y[:FIRST], classes=[0, 1])
    start = time.process_time()
    for i in range(FIRST, FIRST + ROWS):
        if predicts:
            model.predict_proba(X[i : i + 1])
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    return 1e6 * (time.process_time() - start) / ROWS


def main(repeats: int = REPEATS) -> None:
    """Time all, print medians and ratios."""
    for title, predicts in (("learned", False), ("predicted and learned", True)):
        taken = interleaved({name: partial(microseconds, make, predicts) for name, make in MODELS.items()}, repeats)
        first = statistics.median(taken["scikit-learn, SGDClassifier"])
        for name, own in taken.items():
            middle = statistics.median(own)
            spread = f"({min(own):.1f} .. {max(own):.1f})"
            print(f"{title:<24}{name:<30}{middle:8.1f} us a row  {spread:<20} ratio {middle / first:6.3f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
