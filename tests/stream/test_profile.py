"""What training saw of each column, and what is odd about rows that are predicted."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

from tests.stream.tabular import bytes_of, chunk_of
from tunefree.stream import profile
from tunefree.stream.batch import BadRows
from tunefree.stream.encoder import TableEncoder

N = 1200


def table(seed, n=N):
    random = np.random.default_rng(seed)
    numbers = {f"n{k}": random.normal(size=n) for k in range(6)}
    gaps = {f"g{k}": np.where(random.random(n) < 0.1, np.nan, random.random(n)) for k in range(4)}
    words = np.array(["Diesel", "Petrol", "Gas", "Steam"])
    categories = {f"c{k}": words[random.integers(0, 4, n)] for k in range(6)}
    days = np.datetime64("2024-01-01") + random.integers(0, 300, n)
    return pa.record_batch({**numbers, **gaps, **categories, "day": pa.array(days), "yes": random.random(n) < 0.5})


def pieces(batch, size):
    for start in range(0, batch.num_rows, size):
        yield chunk_of(batch.slice(start, size), start + 1, "a.csv")


def learned(batch, size=N, **options):
    encoder = TableEncoder.infer(chunk_of(batch), **options)
    for chunk in pieces(batch, size):
        encoder.encode(chunk, True, BadRows())
    return encoder


def oddities(encoder, batch, size=N):
    bad = BadRows()
    for chunk in pieces(batch, size):
        encoder.encode(chunk, False, bad)
    bad.compare()
    return [str(oddity) for oddity in bad.tally.oddities]


def replaced(batch, name, values):
    return batch.set_column(batch.schema.get_field_index(name), name, pa.array(values))


def test_where_a_stream_is_cut_makes_no_difference():
    batch = table(0)
    encoder, *others = (learned(batch, size) for size in (N, 13, 199))
    assert len(encoder.state()[0]["profile.keys"]) == profile.SAMPLE
    assert all(bytes_of(other) == bytes_of(encoder) for other in others)
    later = replaced(table(1), "c0", ["diesel"] * N)
    assert oddities(encoder, later, 11) == oddities(encoder, later)


@pytest.mark.parametrize("hash_bits", [0, 8])
def test_rows_of_the_same_distribution_are_not_odd(hash_bits):
    for seed in range(20):
        encoder = learned(table(2 * seed), hash_bits=hash_bits)
        for rows in (1, 30, N):  # an alarm in all of these has a probability of 2 * 60 * profile.LEVEL at most
            assert oddities(encoder, table(2 * seed + 1, rows)) == []


def test_many_columns_have_no_more_false_alarms():
    for seed in range(4):
        values = np.where(np.random.default_rng(seed).random((2, 600, N)) < 0.1, np.nan, 1.0)
        first, later = (pa.record_batch({f"g{k}": column for k, column in enumerate(part)}) for part in values)
        assert oddities(learned(first), later) == []


def test_what_is_odd_is_told():
    encoder, later, rows = learned(table(0)), table(1, 200), np.arange(200)
    assert oddities(encoder, replaced(later, "c0", ["DIESEL"] * 3 + ["hydrogen"] + ["Gas "] * 196)) == [
        "column 'c0': 2 categories that training never saw: 'DIESEL', like 'Diesel'; 'hydrogen'"
        " (4 rows, the first: a.csv, row 1)"
    ]
    low, high = encoder.profile.ranges[0]
    just_inside = np.where(rows == 4, high + 0.99 * (high - low), 0.0)
    assert "outside" not in " ".join(oddities(encoder, replaced(later, "n0", just_inside)))
    [line] = oddities(encoder, replaced(later, "n0", np.where(rows == 4, 1e3, later["n0"])))
    assert line.endswith("such as 1000 (1 row, the first: a.csv, row 5)")
    [line] = oddities(encoder, replaced(later, "n0", np.where(rows < 8, np.nan, later["n0"])))
    assert line.startswith("column 'n0': missing in 4 % of the rows, in training in 0 % (a test of level 0.001 for all")
    for name, values in (("n0", later["n0"].to_numpy() + 1.5), ("c1", ["Gas"] * 200)):
        [line] = oddities(encoder, replaced(later, name, values))
        assert line.startswith(f"distributed otherwise than in training: '{name}' (a test")
    later_days = np.full(200, np.datetime64("2025-01-05"))
    assert not [line for line in oddities(encoder, replaced(later, "day", later_days)) if "'day'" in line]
    days = np.append(np.datetime64("1970-01-01"), later["day"].to_numpy(zero_copy_only=False)[1:])
    [line] = oddities(encoder, replaced(later, "day", days))
    assert line.startswith(
        "column 'day': outside the range of training, 2024-01-01 to 2024-10-26, by more than its width"
    )
    assert "such as 1970-01-01" in line


def test_columns_that_come_later_are_missing_before():
    encoder = learned(pa.record_batch({"a": np.arange(50.0)}))
    encoder.encode(chunk_of({"a": [1.0, 2.0], "b": ["x", "y"]}), True, BadRows())
    assert encoder.profile.present.tolist() == [52, 2]
    assert oddities(encoder, pa.record_batch({"a": [3.0], "b": ["X"]})) == [
        "column 'b': a category that training never saw: 'X', like 'x' (1 row, the first: a.csv, row 1)"
    ]


def test_what_is_new_has_the_features_of_an_average():
    batch = pa.record_batch({"x": np.arange(100.0), "job": ["cook"] * 75 + ["clerk"] * 25, "day": ["2024-05-06"] * 100})
    encoder = learned(batch)
    names = encoder.names()
    rows = {"x": [3.0, None, 5.0], "job": ["cook", "pilot", None], "day": ["2024-05-06", "2030-01-01", None]}
    found = encoder.encode(chunk_of(rows), False, BadRows()).rows
    assert found.numbers[:, 0].tolist() == [3.0, 49.5, 5.0]
    named = [(names[feature], value) for feature, value in zip(found.features, found.values.tolist(), strict=True)]
    entries = [named[start:stop] for start, stop in itertools.pairwise(found.pointers.tolist())]
    average = [("job=cook", 0.75), ("job=clerk", 0.25)]
    assert entries == [[], average, average]
    again = encoder.encode(chunk_of(rows), True, BadRows()).rows
    assert not len(again.features) and again.numbers[:, 0].tolist() == [3.0, 0.0, 5.0]
