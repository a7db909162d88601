"""Rows of remembered values are those of the encoder of tables, and what is odd about them is the same."""

import copy
import datetime
import random

import numpy as np
import pyarrow as pa
import pytest

from tunefree.stream.batch import BadRows
from tunefree.stream.encoder import TableEncoder
from tunefree.stream.jsonlines import read_objects
from tunefree.stream.row_encoder import LONGEST, MOST_REMEMBERED, RowEncoder

N = 300


def objects(n, seed):
    """Rows of columns of all kinds but words."""
    rng = random.Random(seed)
    days = [str(datetime.date(2020, 1, 1) + datetime.timedelta(days)) for days in range(60)]
    return [
        {
            "age": rng.choice([rng.randint(0, 99), rng.random(), -0.0, None]),
            "job": rng.choice(["cook", " clerk", "mason", "", None]),
            "size": rng.choice(["1.5", "2", "x1", None]),
            "tall": rng.choice([True, False, None]),
            "day": rng.choice(days),
            "full": float(i),
        }
        | ({"late": rng.choice([0.0, rng.random(), None])} if seed % 2 else {})
        for i in range(n)
    ]


@pytest.fixture(scope="module")
def encoder():
    """An encoder that learned some rows, at last with another column, and that no test changes."""
    encoder = encoder_of(objects(N, 0))
    encoded(encoder, objects(9, 1), BadRows(), True)
    return encoder


def encoder_of(rows):
    types = {"age": pa.float64(), "job": pa.string(), "size": pa.string(), "tall": pa.bool_(), "day": pa.string()}
    chunk = read_objects(rows, types | {"full": pa.float64()}, "example")
    encoder = TableEncoder.infer(chunk)
    encoder.encode(chunk, True, BadRows())
    return encoder


def encoded(encoder, rows, bad, learning=False):
    return encoder.encode(read_objects(rows, encoder.types(), "example"), learning, bad).rows


@pytest.mark.parametrize("n_rows", [1, 2, 7])
def test_blocks_equal_the_encoder(encoder, n_rows):
    row_encoder, n_foreseen = RowEncoder(encoder), 0
    for seed in range(1, 60):
        rows = objects(n_rows, seed)
        expected = encoded(encoder, rows, BadRows(options=()))
        found = row_encoder.encode(rows)
        if found is not None:
            block, n_foreseen = found[0], n_foreseen + 1
            for field, one, other in zip(expected._fields, expected, block, strict=True):
                assert np.array_equal(one, other) and np.asarray(one).dtype == np.asarray(other).dtype, field
                assert np.asarray(one).tobytes() == np.asarray(other).tobytes(), field
    assert n_foreseen > 40


def test_what_is_odd_is_the_same_whoever_encodes(encoder):
    row_encoder = RowEncoder(encoder)
    rows = [{**row, "age": None, "full": 1e6 + k} for k, row in enumerate(objects(150, 1))]
    of_encoder, of_rows = BadRows(options=()), BadRows(options=())
    encoded(encoder, rows[:1], of_rows)
    encoded(encoder, rows[:1], of_encoder)
    for row in rows[1:]:
        encoded(encoder, [row], of_encoder)
        found = row_encoder.encode([row])
        assert found is not None
        of_rows.comparison.add_seen(found[1][0], "example")
    of_encoder.compare()
    of_rows.compare()
    assert of_rows.tally.oddities == of_encoder.tally.oddities and len(of_rows.tally.oddities) >= 2
    for name, array in of_encoder.comparison.here.save().items():
        assert np.array_equal(array, of_rows.comparison.here.save()[name]), name


STRANGE = [10**400, -(10**400), 1e308 * 10, "x", True, [], {}, [1], {"a": 1}, "\ud800", "nan", "-"]


@pytest.mark.parametrize("value", STRANGE, ids=repr)
@pytest.mark.parametrize("name", ["age", "job", "tall", "day", "size", "full"])
def test_strange_values_equal_the_encoder_or_are_left_to_it(encoder, name, value):
    row = {**objects(1, 3)[0], "age": 1.0, name: value}
    found = RowEncoder(encoder).encode([row])
    if found is not None:
        expected = encoded(encoder, [row], BadRows(options=()))
        assert all(map(np.array_equal, expected, found[0]))


def test_values_are_kept_while_features_keep_their_ids_and_bounded():
    rows = objects(N, 0)
    encoder, known = encoder_of(rows), {**rows[0], "age": 1}
    row_encoder = RowEncoder(encoder)
    row_encoder.encode([known])
    before = row_encoder._known[1][str, known["job"]]
    more = [{**known, "job": f"job {k}"} for k in range(10)]
    encoder = copy.deepcopy(encoder)
    encoded(encoder, more, BadRows(), True)
    kept = row_encoder.follow(encoder)
    assert kept._known[1][str, known["job"]] is before
    assert kept.encode(more[:1]) is not None and RowEncoder(encoder).encode(more[:1]) is not None
    other = encoder_of(list(reversed(rows)))
    moved = row_encoder.follow(other).encode([known])
    assert np.array_equal(moved[0].codes, encoded(other, [known], BadRows(options=())).codes)
    for k in range(2 * MOST_REMEMBERED):
        row_encoder.encode([{**known, "job": f"x{k}"}])
    long = {**known, "job": "x" * (1 + LONGEST)}
    assert row_encoder.encode([long]) is None
    encoded(encoder, [long], BadRows(options=()))
    assert all(len(remembered) <= MOST_REMEMBERED for remembered in row_encoder._known)
    assert not any(long["job"] in str(key) for key in row_encoder._known[1])
