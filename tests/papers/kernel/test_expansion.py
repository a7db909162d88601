"""What is stored of functions: each point once, none without a coefficient; and what averages are averages of."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import naive
from tests.papers.kernel.contracts import Rows, drawn, gram, naive_slope, taught, teach
from tests.strategies import KINDS, as_dense
from tunefree.papers.kernel.kernel_bank import KernelConfig

DOUBLE = KernelConfig("rbf", 0.5)
WIDTHS = (1.0, 4.0, 0.5)
few = settings(max_examples=10)


def taught_again(bank, block, data, **options):
    """Another pass over the same rows."""
    bank.begin_pass()
    return teach(bank, block, data, evaluation_weight=np.zeros(len(data.y)), **options)


def twice(data):
    return Rows(*(np.concatenate([array, array]) for array in data[:3]), *data[3:])


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


@pytest.mark.parametrize("average", [False, True])
@few
@given(seed=st.integers(0, 2**32), n=st.integers(2, 300), distinct=st.sampled_from([0.2, 1.0]))
def test_a_second_pass_goes_on_from_the_first_and_its_average_is_its_own(average, seed, n, distinct):
    data = drawn(seed, n, distinct=distinct)
    data.weight[-1] = 1.0
    block = as_dense(data.X)
    bank, first = taught(data, average=average, kernel_config=DOUBLE)
    second = taught_again(bank, block, data)
    again = twice(data)
    values = gram(again.X, again.X, "rbf", 0.5)
    expected, last, both = naive.kernel_pistol(values, naive_slope(again), 1, again.weight)
    scale = np.abs(expected).max(initial=1e-300)
    np.testing.assert_allclose(np.concatenate([first[0], second[0]]), expected, rtol=1e-8, atol=1e-9 * scale)
    if not average:
        function = last
    else:  # of the second pass alone
        shares, total = 0.0, np.zeros_like(last)
        for t in range(n, 2 * n):
            if again.weight[t] > 0:
                function, share = function_before(t, again, values, expected), again.weight[t]
                total, shares = total + share * function, shares + share
        function = total / shares
    found = bank.predict(block)[0]
    np.testing.assert_allclose(found, values[:n] @ function, rtol=1e-7, atol=1e-8 * np.abs(values[:n] @ function).max())


def function_before(t, data, values, margins):
    """Coefficients of f_t, from the margins of all rounds before."""
    slope_of, g, A, M, T = naive_slope(data), np.zeros((len(values), 1)), 0.0, 0.0, 0
    for s in range(t + 1):
        if data.weight[s] > 0:
            M, T = max(M, data.weight[s] * np.sqrt(values[s, s])), T + 1
            if s < t:
                g[s] = -slope_of(s, margins[s])
                A += abs(g[s, 0]) * np.sqrt(values[s, s])
    alpha, squares = 0.125 * (1 + A / M), float((g * (values @ g)).sum()) / M**2
    return g / M**2 * np.sqrt(0.25 * T) / alpha * np.exp(squares / (2 * alpha))


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
