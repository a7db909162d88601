"""How far probabilities are to be believed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunefree.workflows.calibration import BINS, CELLS, by_sureness, calibration, class_reliability
from tunefree.workflows.metrics import Scored


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


def test_rows_of_a_group_count_as_one_where_they_agree():
    """Whiskers, and the error that chance explains, are those of the groups and not of five copies of each row."""
    rng = np.random.default_rng(2)
    p, copies = rng.random(400), np.repeat(np.arange(400), 5)
    codes = (rng.random(400) < p).astype(int)

    def scored(rows, groups):
        fields = {"scores": p[rows, None], "n_classes": 2, "groups": groups}
        sure = {"probability": np.maximum(p, 1 - p)[rows], "is_right": (codes == (p >= 0.5))[rows]}
        return Scored(np.ones(len(rows)), {}, codes[rows], (p[rows] >= 0.5).astype(int), **fields, **sure)

    single, whole = scored(np.arange(400), None), scored(copies, copies)
    for parts_of in (
        lambda one: class_reliability(one, [0, 1])[0].tenths,
        lambda one: [part for *_, part in by_sureness(one)],
    ):
        for one, five in zip(parts_of(single), parts_of(whole), strict=True):
            assert five.rows == 5 * one.rows and five.share == pytest.approx(one.share)
            assert five[4:] == pytest.approx(one[4:], abs=0.03)
    chance = [calibration(one.probability, one.is_right, one.weight, one.groups).by_chance for one in (single, whole)]
    assert chance[1] == pytest.approx(chance[0], rel=0.15)
