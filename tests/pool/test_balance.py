"""Which rows a pool of counts keeps to balance its predictions."""

import numpy as np
import pytest

from tunefree.core.rows import dense
from tunefree.pool import balance


@pytest.mark.parametrize("size", [1, 7, 100])
def test_the_sample_is_the_rows_whose_number_the_step_divides(size, monkeypatch):
    monkeypatch.setattr(balance, "MOST_ROWS", 8)
    X, kept = np.arange(1.0, 101.0), balance.Balance()
    weight = np.where(X == 48.0, 0.0, X)
    numbers = np.cumsum(weight > 0.0)  # of the rows that were learned
    for start in range(0, 100, size):
        rows = slice(start, start + size)
        kept._sample(dense(X[rows, None]), weight[rows], numbers[rows], 1)
    sample, weights = kept.sample
    assert kept.step == 16 and weights.tolist() == sample.numbers[:, 0].tolist() == [16.0, 32.0, 49.0, 65.0, 81.0, 97.0]
