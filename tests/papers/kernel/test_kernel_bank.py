"""Kernel learners that learn together: cuts, threads, files, extreme rows, and what is stored of functions."""

import os

import numpy as np
import pytest

from tests.papers.kernel.contracts import bank_of, drawn, frozen_after, taught, teach
from tests.pool.rows import bytes_of
from tests.strategies import KINDS, as_dense
from tunefree.core import threads
from tunefree.core.rows import part
from tunefree.papers.kernel.kernel_bank import KernelConfig

WIDTHS = (0.5, 1.0, 4.0)


def learned(data, block, frozen=300):
    """A bank after one pass, with probabilities, what it predicted on the way and what it predicts of the rows."""
    bank = bank_of(data, kernel_config=KernelConfig(), widths=WIDTHS, view="steady", n_classes=max(data.n_outputs, 2))
    with frozen_after(frozen):
        shown = teach(bank, block, data)
        return bank, shown, bank.predict(block)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_predictions_of_a_row_do_not_depend_on_the_rows_that_it_came_with(kind):
    data = drawn(2, 600)
    bank, _, whole = learned(data, KINDS[kind](data.X))
    for start, stop in ((0, 1), (17, 18), (100, 350), (300, 600)):
        np.testing.assert_array_equal(bank.predict(part(KINDS[kind](data.X), start, stop)), whole[:, start:stop])


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_the_number_of_threads_changes_no_byte(kind, monkeypatch):
    data = drawn(3, 2500, weighted=False)
    data = data._replace(y=np.random.default_rng(3).choice([-1.0, 1.0], 2500))  # nearly all rows become points
    monkeypatch.setattr(threads, "FEW", 0)
    results = set()
    for number in (1, 2, 5):
        monkeypatch.setattr(os, "cpu_count", lambda number=number: number)
        bank, shown, predictions = learned(data, KINDS[kind](data.X))
        results.add((shown.tobytes(), predictions.tobytes(), bytes_of(bank)))
    assert bank.expansion.support.points.size > 2048 and len(results) == 1


EXTREMES = {
    "huge": lambda rng: 1e300 * rng.normal(size=(200, 3)),
    "tiny": lambda rng: 1e-300 * rng.normal(size=(200, 3)),
    "of all sizes": lambda rng: rng.normal(size=(200, 3)) * 10.0 ** rng.uniform(-300, 300, (200, 3)),
    "columns of all sizes": lambda rng: rng.normal(size=(200, 3)) * [1e300, 1.0, 1e-300],
    "constant columns": lambda rng: np.c_[rng.normal(size=200), np.full(200, 1e12), np.zeros(200)],
    "all rows the same": lambda rng: np.full((200, 3), 7.0),
    "all rows zero": lambda rng: np.zeros((200, 3)),
    "one row": lambda rng: rng.normal(size=(1, 3)),
    "one of them huge": lambda rng: np.r_[rng.normal(size=(199, 3)), np.full((1, 3), 1e300)],
    "the first of them huge": lambda rng: np.r_[np.full((1, 3), -1e300), rng.normal(size=(199, 3))],
}


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("case", sorted(EXTREMES))
def test_extreme_rows_give_finite_predictions(case, kind):
    X = EXTREMES[case](np.random.default_rng(10))
    data = drawn(10, len(X))._replace(X=X)
    for frozen in (1, 100):
        bank, shown, predictions = learned(data, KINDS[kind](X), frozen=frozen)
        saved = [array for array in bank.save_state()[0].values() if array.dtype.kind == "f"]
        assert all(np.isfinite(array).all() for array in (predictions, shown[:, frozen:], *saved))


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("n", [90, 128, 500])
def test_a_second_pass_adds_no_points_for_rows_of_the_first(kind, n):
    data = drawn(0, n, distinct=0.5)
    block = KINDS[kind](data.X)
    bank, _ = taught(data, block)
    bank.begin_pass()
    teach(bank, block, data, again=True)
    points = bank.expansion.support.points.keys()
    assert len(set(points)) == len(points)
    bank.expansion.close()
    assert bank.expansion.support.points.size <= len(np.unique(data.X, axis=0))


@pytest.mark.parametrize("n", [50, 200])
@pytest.mark.parametrize("kind", ["against", "multinomial"])
def test_a_third_and_a_fourth_class_change_no_decision_and_no_margin(kind, n):
    data = drawn(7, n)
    block = as_dense(data.X)
    bank, _ = taught(data, widths=WIDTHS, n_classes=None)
    before = bank.predict(block)[:, :, 0]
    three = drawn(8, n, kind=kind)
    bank.add_class(three.objective, 3, 3)
    after = bank.predict(block)
    np.testing.assert_array_equal(after[:, :, 1], before)
    np.testing.assert_array_equal(after[:, :, 0], -before if kind == "against" else 0.0 * before)
    assert not after[:, :, 2].any()
    teach(bank, as_dense(three.X), three)
    learned = bank.predict(block)
    assert learned[:, :, 2].any()
    bank.add_class(three.objective, 4, 4)
    after = bank.predict(block)
    np.testing.assert_array_equal(after[:, :, :3], learned)
    assert not after[:, :, 3].any()
    assert np.isfinite(teach(bank, as_dense(three.X), three)).all()
