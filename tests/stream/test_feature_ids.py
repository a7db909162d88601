"""Ids of features: the dictionary, hashing, storage, and independence of where a stream is cut."""

import datetime as dt
import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.stream.tabular import bytes_of, chunk_of, encoded, raw_rows
from tunefree.core.errors import DataError
from tunefree.core.rows import sparse
from tunefree.stream import feature_ids
from tunefree.stream import keys as dictionary
from tunefree.stream.batch import BadRows
from tunefree.stream.encoder import TableEncoder
from tunefree.stream.feature_ids import sum_duplicates
from tunefree.stream.layout import Layout


@given(
    st.lists(st.lists(st.integers(0, 6), min_size=3, max_size=3), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 7), st.integers(1, 6), st.floats(0.5, 2)), max_size=20),
)
def test_merging_keeps_the_sum_of_each_feature(codes, words):
    codes = np.array(codes, np.int32)
    words = sorted((place % len(codes), j, v) for place, j, v in words)
    rows, features, values = (np.array([w[k] for w in words], t) for k, t in enumerate((np.int64, np.int32, float)))
    pointers = np.searchsorted(rows, np.arange(len(codes) + 1))
    merged, block = sum_duplicates(codes, sparse(pointers, features, values))
    assert np.allclose(sums(merged, block), sums(codes, sparse(pointers, features, values)))
    assert sums(merged, block._replace(values=np.ones(len(block.values)))).max(initial=0) <= 1


def sums(codes, words):
    """The sum of the values of each feature from 1 to 6 in each row; that of a code is 1."""
    total = np.array([np.bincount(row, minlength=7) for row in codes], float)
    np.add.at(total, (np.repeat(np.arange(len(codes)), np.diff(words.pointers)), words.features), words.values)
    return total[:, 1:]


def test_words_counted_piece_by_piece_equal_the_whole_chunk(monkeypatch):
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(["red", "green", "blue", "größe", f"w{i}"], rng.integers(0, 9))) for i in range(200)]
    texts[70] = "one very long text of many other words " * 40
    columns = {
        "t": [None, *texts[1:]],
        "u": ["", "", *texts[2:][::-1]],
        "s": [f"v{i % 30}" for i in range(200)],
        "l": [[f"tag {k}" for k in range(i % 4)] for i in range(200)],
        "n": [float(i) for i in range(200)],
    }
    for bits in (0, 6):
        whole, expected = encoded(columns, text=["t", "u"], hash_bits=bits)
        with monkeypatch.context() as patched:
            patched.setattr(feature_ids, "PIECE", 100)
            cut = list(feature_ids._pieces(200, [np.full(200, 30), np.arange(200) == 70]))
            assert len(cut) > 50 and [start for start, _ in cut] == [0, *(stop for _, stop in cut[:-1])]
            pieces, found = encoded(columns, text=["t", "u"], hash_bits=bits)
        np.testing.assert_equal(found.rows, expected.rows)
        assert pieces.names() == whole.names() and pieces.column_of().tolist() == whole.column_of().tolist()
        assert bytes_of(pieces) == bytes_of(whole)


TEXTS = st.sampled_from([None, "?", "red", "red green", "green blue red", "blue blue"])
ROWS = st.fixed_dictionaries(
    {
        "n": st.one_of(st.none(), st.floats(-1e9, 1e9), st.just(float("nan")), st.just(float("inf"))),
        "s": st.sampled_from([None, "", "a", "b", "c", "d", "é", " a"]),
        "c": st.sampled_from([None, "x", "y"]),
        "b": st.sampled_from([None, True, False]),
        "d": st.one_of(st.none(), st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1))),
        "z": st.one_of(st.none(), st.datetimes(dt.datetime(2020, 1, 1), timezones=st.just(dt.UTC))),
        "k": st.one_of(st.none(), st.times()),
        "t": TEXTS,
        "u": TEXTS,
        "y": st.sampled_from([None, "no", "yes"]),
        "w": st.sampled_from([None, 1.0, 0.0, -1.0]),
    }
)
TYPES = dict.fromkeys("nw", pa.float64()) | dict.fromkeys("stuy", pa.string()) | {"b": pa.bool_()}
TYPES |= {"c": pa.dictionary(pa.int32(), pa.string()), "d": pa.timestamp("us"), "k": pa.time64("us")}
SCHEMA = pa.schema(TYPES | {"z": pa.timestamp("us", "Asia/Tokyo")})


def rows_of(batch):
    """The entries, number, target and weight of each row."""
    columns = batch.numbers.tolist(), batch.target.to_pylist(), batch.weight.tolist()
    return list(zip(raw_rows(batch.rows), *columns, strict=True))


@given(st.lists(ROWS, min_size=1, max_size=25), st.lists(st.integers(0, 25)), st.sampled_from([0, 4]), st.data())
def test_cuts_change_nothing(rows, cuts, hash_bits, data):
    whole = pa.RecordBatch.from_pylist(rows, SCHEMA)
    options = {"target": "y", "weight": "w", "text": ["t", "u"], "hash_bits": hash_bits}
    one, many = (TableEncoder.infer(chunk_of(whole), **options) for _ in range(2))
    restored_at = data.draw(st.integers(0, 25))
    bad, bads = BadRows(skip=True), BadRows(skip=True)
    expected = one.encode(chunk_of(whole), True, bad)
    places = sorted({min(cut, len(rows)) for cut in cuts} | {0, len(rows)})
    rows_of_pieces = []
    for start, stop in zip(places, places[1:], strict=False):
        if start <= restored_at < stop:
            arrays, header = many.state()
            many = TableEncoder.restore(arrays, json.loads(json.dumps(header)))
        rows_of_pieces += rows_of(many.encode(chunk_of(whole.slice(start, stop - start), first=start + 1), True, bads))
    assert rows_of_pieces == rows_of(expected)
    assert bytes_of(many) == bytes_of(one) and many.names() == one.names() and many.types() == one.types()
    assert many.column_of().tolist() == one.column_of().tolist()
    assert (bads.tally.count, bads.tally.first) == (bad.tally.count, bad.tally.first)


KEYS = st.lists(st.one_of(st.integers(0, 40), st.integers(0, 2**64 - 1)), max_size=200)


@given(KEYS, st.integers(1, 50), st.integers(1, 5))
def test_ids_equal_a_dict_however_batches_are_cut(values, cut, first):
    expected: dict[int, int] = {}
    for value in values:
        expected.setdefault(value, first + len(expected))
    array = np.array(values, np.uint64)
    whole, ids = dictionary.lookup(dictionary.create(first), array)
    parts, pieces = dictionary.create(first), []
    for i in range(0, len(values), cut):
        parts, piece = dictionary.lookup(parts, array[i : i + cut])
        pieces += piece.tolist()
    assert ids.tolist() == pieces == [expected[value] for value in values]
    assert dictionary.save(whole).tobytes() == dictionary.save(parts).tobytes()
    assert dictionary.save(whole).tolist() == list(expected)
    assert dictionary.n_features(whole) == first + len(expected)
    again = dictionary.restore(dictionary.save(whole), first)
    assert dictionary.lookup(again, array, add=False)[1].tolist() == ids.tolist()


def test_more_features_than_there_is_room_for_are_refused(monkeypatch):
    encoder, _ = encoded({"s": ["a"], "t": ["b"]})
    encoder.ids.limit(1)
    with pytest.raises(DataError, match="a row has more new categories and words than the 1 there is room for"):
        encoder.encode(chunk_of({"s": ["c"], "t": ["d"]}), True, BadRows())
    monkeypatch.setattr(dictionary, "LARGEST_ID", 600)
    with pytest.raises(DataError, match="more than 600 different features; hash the features"):
        dictionary.lookup(dictionary.create(), np.arange(601, dtype=np.uint64))


def test_hashing_takes_constant_memory():
    encoder, _ = encoded({"x": [1.0], "s": ["a"]}, hash_bits=2)
    layout = Layout.of_encoder(encoder)
    assert layout.feature_parts.tolist() == [-1, 0, 2, 2, 2, 2] and layout.parts[2].kind == "hashed"
    assert encoder.names() == ["(constant)", "x", "#0", "#1", "#2", "#3"]
    array = np.random.default_rng(0).integers(0, 2**63, 100_000).astype(np.uint64)
    keys, ids = dictionary.lookup(dictionary.create(first=3, bits=10), array)
    assert dictionary.n_features(keys) == 3 + 1024
    assert len(dictionary.save(keys)) == 0
    counts = np.bincount(ids - 3, minlength=1024)
    assert len(counts) == 1024
    assert abs(counts - 100_000 / 1024).max() < 6 * np.sqrt(100_000 / 1024)
    other = dictionary.restore(dictionary.save(keys), first=3, bits=10)
    assert (dictionary.lookup(other, array, add=False)[1] == ids).all()


@given(st.lists(st.text(max_size=30), max_size=20), st.integers(0, 2**64 - 1))
def test_strings_have_the_hash_of_each_name(names, seed):
    packed = [name.encode() for name in names]
    offsets = np.cumsum([0, *map(len, packed)])
    hashes = dictionary.hash_strings(offsets, np.frombuffer(b"".join(packed), np.uint8), seed)
    assert hashes.tolist() == [dictionary.hash_name(name, seed) for name in names]
    assert len(set(hashes.tolist())) == len(set(names))


def test_hash_does_not_change_between_versions():
    assert dictionary.hash_name("") == 0
    assert dictionary.hash_name("feature", 7) == 18226337167891808151


def test_the_seed_of_the_process_changes_slots_and_no_id():
    """With a multiplier that is known, 200,000 indices of one slot took 58 seconds instead of one tenth."""
    known = np.arange(1, 3000, dtype=np.uint64) * np.uint64(7)
    first, second = (dictionary.lookup(dictionary.create()._replace(seed=np.uint64(seed)), known) for seed in (1, 2))
    assert np.array_equal(first[1], second[1]) and np.array_equal(dictionary.save(first[0]), dictionary.save(second[0]))
    assert not np.array_equal(first[0].slots, second[0].slots)
    assert dictionary.create().seed == dictionary.SEED
