"""The sample of a stream: the same whatever the batches, and the same again from a file."""

from __future__ import annotations

import numpy as np
import pytest

from tunefree.additive.sample import SAMPLED, Sample, rows_at
from tunefree.core.rows import part, read_only, sparse, table

N = 11_000


@pytest.fixture(scope="module")
def stream():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 5, (N, 3))
    codes[:, 2] = np.where(np.arange(N) % 997 == 0, 7, 0)  # a column of codes that most batches lack
    pointers = np.concatenate([[0], np.cumsum(rng.integers(0, 3, N))])
    words = sparse(pointers, rng.integers(10, 20, pointers[-1]), rng.normal(size=pointers[-1]))
    return table(rng.normal(size=(N, 2)), [1, 2], codes, words)


def sampled(stream, size):
    sample = Sample(stream)
    for start in range(0, N, size):
        rows = part(stream, start, min(start + size, N))
        present = (rows.codes > 0).any(axis=0)
        codes = read_only(rows.codes[:, present], np.int32)
        sample.add(rows._replace(codes=codes, code_columns=read_only(rows.code_columns[present], np.int32)))
    return sample


def test_the_sample_is_every_so_manyth_row(stream):
    rows = sampled(stream, 512).rows
    expected = rows_at(stream, np.arange(0, N, 4))
    assert SAMPLED // 2 <= len(rows.numbers) < SAMPLED
    for name, found in rows._asdict().items():
        np.testing.assert_array_equal(found, getattr(expected, name), err_msg=name)


@pytest.mark.parametrize("size", [1, 300, N])
def test_batches_may_be_cut_anywhere(stream, size):
    arrays, header = sampled(stream, size).save_state()
    expected, expected_header = sampled(stream, 512).save_state()
    assert header == expected_header
    for name, array in arrays.items():
        assert array.tobytes() == expected[name].tobytes(), name


def test_a_restored_sample_goes_on_in_the_same_way(stream):
    half, whole = Sample(stream), sampled(stream, 512)
    half.add(part(stream, 0, 7_001))
    restored = Sample.restore(*half.save_state())
    restored.add(part(stream, 7_001, N))
    for name, array in restored.save_state()[0].items():
        np.testing.assert_array_equal(array, whole.save_state()[0][name])


def test_nothing_sampled_is_saved_too(stream):
    restored = Sample.restore(*Sample(stream).save_state())
    assert restored.values.shape == (0, 2)
    restored.add(part(stream, 0, 3))
    np.testing.assert_array_equal(restored.values, stream.numbers[:3])
