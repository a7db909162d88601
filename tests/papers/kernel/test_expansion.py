"""What is stored of functions: each point once, none without a coefficient; and what averages are averages of."""

import numpy as np
import pytest

from tests.papers.kernel.contracts import drawn, taught, teach
from tests.strategies import KINDS, as_dense

WIDTHS = (1.0, 4.0, 0.5)


def taught_again(bank, block, data, **options):
    """Another pass over the same rows."""
    bank.begin_pass()
    return teach(bank, block, data, evaluation_weight=np.zeros(len(data.y)), **options)


def stored(bank):
    return bank.expansion.support.points.keys()


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("n", [90, 128, 500])
def test_a_second_pass_adds_no_points_for_rows_of_the_first(kind, n):
    data = drawn(0, n, distinct=0.5)
    block = KINDS[kind](data.X)
    bank, _ = taught(data, block)
    taught_again(bank, block, data)
    points = stored(bank)
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
