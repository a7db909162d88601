"""How far probabilities are to be believed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunefree.workflows.calibration import BINS, CELLS, calibration


def expected_error(probabilities, right, weight):
    """The expected calibration error from all rows at once: sorted, and cut where rows of one cell do not part."""
    order = np.argsort(probabilities, kind="stable")
    cells = np.minimum(np.floor(probabilities[order] * CELLS), CELLS - 1)
    mass, bins = weight.sum(), {}
    for cell in np.unique(cells):
        rows = order[cells == cell]
        middle = weight[order[cells < cell]].sum() + weight[rows].sum() / 2
        bins.setdefault(min(int(BINS * middle / mass), BINS - 1), []).extend(rows)
    total = 0.0
    for rows in bins.values():
        share = weight[rows].sum() / mass
        if share > 0:
            accuracy = np.average(right[rows], weights=weight[rows])
            total += share * abs(accuracy - np.average(probabilities[rows], weights=weight[rows]))
    return total


@given(st.integers(1, 300), st.integers(0, 2**32 - 1), st.sampled_from([1.0, 0.1, 0.0]), st.booleans())
def test_the_error_is_that_of_all_rows_at_once(n, seed, spread, weighted):
    rng = np.random.default_rng(seed)
    probabilities = np.clip(0.75 + spread * (rng.random(n) - 0.5), 0.5, 1.0)
    right = rng.random(n) < probabilities - 0.1
    weight = rng.exponential(size=n) if weighted else np.ones(n)
    assert calibration(probabilities, right, weight).error == pytest.approx(
        expected_error(probabilities, right, weight), abs=1e-9
    )


def test_weights_count_as_copies_and_nothing_has_no_error():
    rng = np.random.default_rng(1)
    probabilities, right, weight = rng.uniform(0.5, 1, 200), rng.random(200) < 0.6, rng.integers(0, 4, 200)
    copies = calibration(*(np.repeat(array, weight) for array in (probabilities, right, np.ones(200)))).error
    assert calibration(probabilities, right, weight.astype(float)).error == pytest.approx(copies)
    assert calibration(np.zeros(0), np.zeros(0, bool), np.zeros(0)).error == 0.0
