"""Knots: quantiles, values that many rows have, and samples of a stream."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.additive.contracts import table_of
from tunefree.additive import sample as samples
from tunefree.additive.knots import FEWEST, first_knots, further_knots
from tunefree.additive.sample import SAMPLED, Sample

quick = settings(max_examples=100, deadline=None)
finite = st.floats(allow_nan=False, allow_infinity=False)  # subnormal ones and 1.7e308 too


@st.composite
def columns(draw):
    """Numbers of any size, some of which many rows have."""
    different = draw(st.lists(finite, min_size=1, max_size=60, unique=True))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(1, 300))
    shares = rng.dirichlet(np.full(len(different), draw(st.sampled_from([0.1, 1.0, 100.0]))))
    return rng.choice(different, n, p=shares)


@quick
@given(values=columns(), n_intervals=st.integers(1, 12))
def test_first_knots_ascend_from_end_to_end_through_frequent_values(values, n_intervals):
    found = first_knots(values, n_intervals)
    assert (found[:-1] < found[1:]).all()
    assert found[0] == values.min()
    assert found[-1] == values.max()
    assert np.isin(found, values).all()
    different, counts = np.unique(values, return_counts=True)
    frequent = different[counts * n_intervals > len(values)]
    assert np.isin(frequent, found).all()
    if len(different) <= n_intervals + 1:
        np.testing.assert_array_equal(found, different)
    assert len(found) <= n_intervals + (3 if len(frequent) else 1)


@pytest.mark.parametrize("n", [1000, 257])
def test_intervals_hold_as_many_rows_each(n):
    values = np.exp(np.random.default_rng(0).normal(size=n))
    inside, _ = np.histogram(values, first_knots(values, 8))
    assert len(inside) == 8
    assert np.ptp(inside) <= 2


def test_rows_of_a_frequent_value_take_no_quantile_from_the_others():
    others = np.random.default_rng(0).normal(size=100)
    found = first_knots(np.concatenate([np.full(900, 0.5), others]), 8)
    inside, _ = np.histogram(others, found[found != 0.5])
    assert len(inside) == 7
    assert np.ptp(inside) <= 2


def test_columns_of_no_one_and_two_values():
    assert len(first_knots(np.zeros(0), 8)) == 0
    np.testing.assert_array_equal(first_knots(np.full(300, -7.0), 8), [-7.0])
    np.testing.assert_array_equal(first_knots(np.repeat([1e300, 1e-300], 200), 8), [1e-300, 1e300])
    assert len(further_knots(np.array([-7.0]), np.full(300, -7.0))) == 0


@quick
@given(values=columns(), n_intervals=st.integers(1, 12), part=st.floats(0.1, 1.0))
def test_an_interval_with_values_enough_is_cut_once_where_half_of_them_lie_on_either_side(values, n_intervals, part):
    own = first_knots(values[: max(int(part * len(values)), 1)], n_intervals)
    found = further_knots(own, values)
    assert len(set(found.tolist())) == len(found)
    assert not np.isin(found, own).any()
    edges = np.concatenate([[-np.inf], own, [np.inf]])
    for k, (start, stop) in enumerate(zip(edges[:-1], edges[1:], strict=True)):
        inside = np.sort(values[(values > start) & (values < stop)])
        new = found[(found > start) & (found < stop)]
        assert len(new) == (len(inside) >= FEWEST)
        if len(new) and k == 0:
            assert new[0] == inside[0]
        elif len(new) and k == len(own):
            assert new[0] == inside[-1]
        elif len(new):
            assert abs(2 * np.searchsorted(inside, new[0]) - len(inside)) <= len(inside)
            assert np.count_nonzero(inside <= new[0]) >= len(inside) / 2 >= np.count_nonzero(inside < new[0])


@quick
@given(n=st.integers(0, 300), cuts=st.lists(st.integers(0, 300), max_size=8), most=st.sampled_from([2, 8, 64]))
def test_a_sample_is_every_so_manyth_row_wherever_batches_are_cut(n, cuts, most):
    stream = np.arange(2.0 * n).reshape(n, 2)
    with patch.object(samples, "SAMPLED", most):
        sample = Sample(table_of(stream))
        for batch in np.split(stream, sorted(min(cut, n) for cut in cuts)):
            sample.add(table_of(batch))
    stride = sample.save_state()[1]["stride"]
    assert len(sample.values) <= most
    assert stride == 1 or len(stream[:: stride // 2]) >= most
    np.testing.assert_array_equal(sample.values, stream[::stride])


def test_the_stride_of_a_sample_doubles():
    sample, before = Sample(table_of(np.zeros((0, 1)))), 0
    last = SAMPLED - 1  # the place of the row that fills it
    for seen, stride in ((last, 1), (last + 1, 2), (2 * last, 2), (2 * last + 1, 4), (4 * last, 4), (4 * last + 1, 8)):
        sample.add(table_of(np.zeros((seen - before, 1))))
        assert sample.save_state()[1] == {"stride": stride, "seen": seen}
        assert len(sample.values) < SAMPLED
        before = seen
