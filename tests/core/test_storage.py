"""Files that are whole or not there, and damage that shows."""

import fcntl
import hashlib
import json
import os
import stat
import threading
import tracemalloc
import zlib
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from tunefree.core import storage
from tunefree.core.errors import ModelError
from tunefree.core.storage import only_writer


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model"
    storage.save(path, {"weights": np.arange(6.0).reshape(3, 2)}, {"task": "regression", "classes": ["a", "é"]})
    return path


def test_every_changed_byte_is_found(saved):
    data = saved.read_bytes()
    for place in range(len(data)):
        saved.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(ModelError, match="not a tunefree model" if place < 8 else "damaged|upgrade|earlier"):
            storage.load(saved)


def test_the_reader_of_a_file_of_joblib(tmp_path):
    (tmp_path / "model.joblib").write_bytes(b"\x80\x04")
    with pytest.raises(ModelError, match="or read this one by joblib.load"):
        storage.load(tmp_path / "model.joblib")


def test_every_cut_is_found(saved):
    data = saved.read_bytes()
    for content in (*(data[:length] for length in range(len(data))), data + b"\0"):
        saved.write_bytes(content)
        with pytest.raises(ModelError, match="damaged" if len(content) > len(data) else None):
            storage.load(saved)


@pytest.mark.parametrize("dtype", ["bool", "float16", "float32", "float64", "int8", "int64", "uint16", "uint64"])
@pytest.mark.parametrize("n_values", [1, 7, 250, 300, 5000])
def test_numbers_of_each_type_are_loaded_to_the_bit(tmp_path, dtype, n_values):
    rng = np.random.default_rng(n_values)
    size = np.dtype(dtype).itemsize
    bits = rng.integers(0, 256, (n_values, size), np.uint8) & (1 if dtype == "bool" else 255)
    columns = bits[rng.integers(0, n_values, (5000, 3))].view(dtype)[..., 0]
    arrays = {"a": columns, "b": columns[::2], "c": columns[:, [0, 1, 0]], "d": columns.T.copy(), "e": columns.copy()}
    arrays |= {"f.g": columns[:0], "h": columns[0, 0]}
    storage.save(tmp_path / "model", arrays, {"n": 1.1})
    loaded, header = storage.load(tmp_path / "model")
    assert header == {"n": 1.1} and loaded.keys() == arrays.keys()
    for name, array in arrays.items():
        assert (loaded[name].dtype, loaded[name].shape) == (array.dtype, array.shape)
        assert loaded[name].tobytes() == array.tobytes()


def test_files_are_compressed_and_equal_arrays_are_written_once(tmp_path):
    numbers = np.random.default_rng(0).random(20_000)
    storage.save(tmp_path / "model", {"a": numbers, "b": numbers.copy(), "c": np.ones(20_000)}, {})
    assert (tmp_path / "model").stat().st_size < 1.1 * numbers.nbytes


def test_what_takes_much_more_memory_than_its_file_is_left_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "FREE", 2**10)
    arrays = {"zeros": np.zeros((4096, 4)), "more": np.zeros((4096, 4)), "ones": np.ones(50_000)}
    storage.save(tmp_path / "model", arrays, {})
    size = (tmp_path / "model").stat().st_size
    assert sum(array.nbytes for array in arrays.values()) <= 2**10 + storage.MOST_TIMES * size
    assert size < 2 * arrays["zeros"].nbytes  # the others are compressed
    loaded, _ = storage.load(tmp_path / "model")
    assert all((loaded[name] == array).all() for name, array in arrays.items())


ARRAY = zlib.compress(bytes(24))
SOUND = ["float64", [3], [len(ARRAY)]]
BOMB = zlib.compress(bytes(2**20))


def description_with(whole=None, excess=0, array=ARRAY, **changes):
    """A file of one array whose description is changed, with a right checksum."""
    description = whole or {"arrays": {"weights": SOUND} | changes, "header": {}}
    text = zlib.compress(json.dumps(description).encode())
    data = b"".join([storage.MARK, storage._length(storage.FORMAT), array, text, storage._length(len(text) + excess)])
    return data + hashlib.sha256(data).digest()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"weights": ["float64", [2**40], SOUND[2]]}, "it declares 8,796,093,022,208 bytes"),
        ({"more": ["float64", [2**30, 2**30], []]}, "it declares"),
        ({"weights": ["float64", [-3], SOUND[2]]}, "not a whole number"),
        ({"weights": ["float64", [3], [True]]}, "not a whole number"),
        ({"weights": ["float64", [3.0], SOUND[2]]}, "not a whole number"),
        ({"weights": ["object", [3], SOUND[2]]}, "object"),
        ({"weights": ["float64", [2], SOUND[2]]}, "not as long as is declared"),
        ({"weights": ["float64", [4], SOUND[2]]}, "."),
        ({"weights": ["float64", [3], [5]]}, "do not fill"),
        ({"weights": ["float64", [3], [*SOUND[2], 0]]}, "."),
        ({"weights": None}, "."),
        ({"more": "weight"}, "weight"),
        ({"more": "more"}, "."),
        ({"a": "b", "b": "weights"}, "."),
        ({"whole": {"arrays": [], "header": {}}}, "not a mapping"),
        ({"whole": {"arrays": {"weights": SOUND}, "header": []}}, "not a mapping"),
        ({"excess": len(ARRAY) + 1}, "longer than the file"),
        ({"array": BOMB, "weights": ["float64", [3], [len(BOMB)]]}, "not as long as is declared"),
    ],
)
def test_descriptions_that_lie_are_refused_before_memory_is_taken(tmp_path, changes, problem):
    (tmp_path / "sound").write_bytes(description_with())
    assert storage.load(tmp_path / "sound")[0]["weights"].tolist() == [0.0, 0.0, 0.0]
    (tmp_path / "lie").write_bytes(description_with(**changes))
    tracemalloc.start()
    try:
        with pytest.raises(ModelError, match=f"damaged.*{problem}"):
            storage.load(tmp_path / "lie")
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_a_failed_write_leaves_the_old_file_and_no_other(saved, monkeypatch):
    before = saved.read_bytes()

    monkeypatch.setattr(storage.os, "fsync", Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(ModelError, match="No space left"):
        storage.save(saved, {"weights": np.zeros(10)}, {})
    assert saved.read_bytes() == before and list(saved.parent.iterdir()) == [saved]


def test_saving_copies_one_array_at_a_time(tmp_path):
    records = np.zeros((20, 2**17, 2))  # of which every other number is saved
    arrays = {f"{i}": part[:, 0] for i, part in enumerate(records)}
    storage.save(tmp_path / "model", {}, {})  # what is loaded with it
    tracemalloc.start()
    try:
        storage.save(tmp_path / "model", arrays, {})
        assert tracemalloc.get_traced_memory()[1] < 3 * arrays["0"].nbytes
    finally:
        tracemalloc.stop()


def test_pipes_and_devices_are_written_through(tmp_path):
    """As root, `-o /dev/null` put a file in the place of the device."""
    pipe, found = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    storage.check_writable(pipe)
    storage.save(pipe, {"weights": np.arange(3.0)}, {"task": "regression"})
    reader.join()
    storage.save(tmp_path / "file", {"weights": np.arange(3.0)}, {"task": "regression"})
    assert found == [(tmp_path / "file").read_bytes()] and stat.S_ISFIFO(pipe.stat().st_mode)
    storage.check_writable(Path("/dev/null"))
    storage.save("/dev/null", {}, {})
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(ModelError, match="/dev/full: cannot be written"):
        storage.save("/dev/full", {}, {})


def test_a_lock_names_its_holder_and_nothing_that_a_killed_one_left(tmp_path):
    (tmp_path / "lock").write_text("process 4194304, which was killed")
    with only_writer(tmp_path / "lock", tmp_path / "m"):
        assert (tmp_path / "lock").read_text() == f"process {os.getpid()}"
    assert not (tmp_path / "lock").exists()


def test_a_lock_whose_file_was_removed_meanwhile_is_taken_anew(tmp_path, monkeypatch):
    """Else two would write: this one, and one that finds no file."""
    flock = fcntl.flock

    def remove_and_lock(handle, operation):
        monkeypatch.undo()
        (tmp_path / "lock").unlink()
        flock(handle, operation)

    monkeypatch.setattr(fcntl, "flock", remove_and_lock)
    with only_writer(tmp_path / "lock", tmp_path / "m"), pytest.raises(ModelError, match=f"process {os.getpid()} wri"):
        only_writer(tmp_path / "lock", tmp_path / "m").__enter__()


@pytest.mark.skipif(os.name != "posix", reason="there are no such modes")
@pytest.mark.parametrize(
    ("mask", "before", "after"),
    [(0o022, None, 0o644), (0o077, None, 0o600), (0o022, 0o600, 0o600), (0o022, 0o664, 0o664)],
)
def test_who_may_read_a_file_stays_as_it_was(tmp_path, monkeypatch, mask, before, after):
    path, asked = tmp_path / "people.model", os.umask(mask)
    try:
        if before is not None:
            path.write_bytes(b"")
            path.chmod(before)
        set_mask = []
        monkeypatch.setattr(os, "umask", set_mask.append)  # what other threads write meanwhile would have no mask
        storage.save(path, {"x": np.zeros(3)}, {})
        monkeypatch.undo()
    finally:
        os.umask(asked)
    assert path.stat().st_mode & 0o777 == after and not set_mask
    assert list(tmp_path.iterdir()) == [path]
