"""Processor time of the learning pass alone for each entry, of each learner (logistic loss, sparse rows).

Features are Zipf-distributed, with indices in the order of first appearance, as in a stream; about 44 entries in a row.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

import numpy as np
from common import parser_of, zipf_rows

from tunefree import losses
from tunefree.core import rows
from tunefree.learners import ALL
from tunefree.losses.objectives import Objective
from tunefree.pool import passes
from tunefree.pool.pool import PIECE


def main(arguments: Sequence[str] | None = None) -> None:
    """Time each learner on the same rows."""
    options = parser_of(__doc__).parse_args(arguments)
    n, n_features, repeats = (100, 1000, 2) if options.quick else (100_000, 200_000, 8)
    i, features, values = zipf_rows(n, 52, n_features, seed=1)
    _, first, inverse = np.unique(features, return_index=True, return_inverse=True)
    ids = np.argsort(np.argsort(first))[inverse] + 1
    weights = np.random.default_rng(0).normal(size=n_features + 1)
    margins = np.bincount(i, weights[features] * values, n)
    y = np.where(np.random.default_rng(2).random(n) < 1 / (1 + np.exp(-margins)), 1.0, -1.0)
    X = rows.sparse(np.searchsorted(i, np.arange(n + 1)), ids, values)
    objective, predictions, weight = Objective("classification", losses.Logistic()), np.empty((n, 1)), np.ones(n)
    print(f"{len(values) / n:.1f} entries per row, {int(ids.max()):,} features")
    for name, learner in ALL.items():
        seconds = []
        for _ in range(repeats):
            state, began = learner(int(ids.max()) + 1), time.process_time()
            for start in range(0, n, PIECE):
                piece = slice(start, start + PIECE)
                of_rows = rows.part(X, start, min(start + PIECE, n)), y[piece], weight[piece], predictions[piece]
                passes.learn(state, objective, *of_rows)
            seconds.append(time.process_time() - began)
        entry = 1e9 / len(values)
        print(
            f"{name:<18} {statistics.median(seconds[1:]) * entry:5.1f} ns per entry (best {min(seconds) * entry:.1f})"
        )


if __name__ == "__main__":
    main()
