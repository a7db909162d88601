"""The dictionary gives the ids that a Python dict gives, however batches are cut."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tunefree.stream import keys as dictionary

KEYS = st.lists(st.one_of(st.integers(0, 40), st.integers(0, 2**64 - 1)), max_size=200)


@given(KEYS, st.integers(1, 50), st.integers(1, 5))
def test_ids_are_those_of_a_dict_however_batches_are_cut(values, cut, first):
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
    backwards = np.array(list(expected)[::-1], np.uint64)
    kept = [*range(first), *(expected[value] for value in backwards.tolist())]  # ids before the first are those of both
    assert dictionary.ids_of(whole, backwards).tolist() == kept


def test_hashing_takes_constant_memory():
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
