"""One row at a time: ScInOL2 with river's interface against river's logistic regression on standardised features.

Both predict and learn the rows of river's data set Phishing (1,250 rows of nine numbers), first both, then learning
alone; times are processor time, runs are interleaved. Their progressive log-losses stand beside the times.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from common import interleaved
from river import datasets, linear_model, metrics, preprocessing

from tunefree.river import ScInOLClassifier

REPEATS = 9


def peer() -> Any:
    """river's own model."""
    return preprocessing.StandardScaler() | linear_model.LogisticRegression()


def microseconds(make: Callable[[], Any], rows: list[Any], predicts: bool) -> float:
    """Processor time a row."""
    model, start = make(), time.process_time()
    for x, y in rows:
        if predicts:
            model.predict_proba_one(x)
        model.learn_one(x, y)
    return 1e6 * (time.process_time() - start) / len(rows)


def progressive_loss(make: Callable[[], Any], rows: list[Any]) -> float:
    """Mean log-loss of the rows, each predicted before it is learned."""
    model, metric = make(), metrics.LogLoss()
    for x, y in rows:
        metric.update(y, model.predict_proba_one(x))
        model.learn_one(x, y)
    return float(metric.get())


def main(repeats: int = REPEATS) -> None:
    """Time both, print medians and ratios."""
    rows = list(datasets.Phishing())
    models: dict[str, Callable[[], Any]] = {"river, scaled logistic regression": peer, "tunefree": ScInOLClassifier}
    for title, predicts in (("predicted and learned", True), ("learned", False)):
        runs = {name: partial(microseconds, make, rows, predicts) for name, make in models.items()}
        taken = interleaved(runs, repeats)
        first = statistics.median(taken["river, scaled logistic regression"])
        for name, own in taken.items():
            middle = statistics.median(own)
            spread = f"({min(own):.1f} .. {max(own):.1f})"
            print(f"{title:<24}{name:<36}{middle:7.1f} us a row  {spread:<18} ratio {middle / first:5.2f}")
    for name, make in models.items():
        print(f"progressive log-loss    {name:<36}{progressive_loss(make, rows):7.4f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
