"""Models on disk: one file of named arrays and a JSON header, written atomically.

A file begins with MARK and the version of its format. The arrays follow in chunks of 256 KiB, compressed by zlib; a
chunk stores the first bytes of all its numbers, then the second bytes, and so on. Equal arrays are written once. The
compressed JSON description of the arrays and the header follows, then its length, and finally the SHA-256 digest of all
preceding bytes, which detects truncated and changed files.

The declared size of the arrays is checked before memory is allocated: it is at most FREE bytes plus MOST_TIMES the size
of the file. If compression would exceed this ratio, arrays are stored uncompressed.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from tunefree.core.errors import ModelError

MARK = b"tunefree"
FORMAT = 14  # increased whenever older files, or newer files in older versions, become unreadable
FREE, MOST_TIMES = 2**24, 64  # bytes, and ratio; see above
LEVEL = 1  # of compression: level 6 takes 50 % more time for 3 % fewer bytes
_CHUNK = 2**18  # bytes of a chunk
_LENGTH = 8  # bytes of a length, and of the format version
_DIGEST = hashlib.sha256().digest_size
DTYPES = {
    np.dtype(code).name: np.dtype(f"<{code}")
    for code in ("?", *(f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)), "f2", "f4", "f8")
}


def save(path: str | os.PathLike[str], arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
    """Write arrays and a JSON-serialisable header to a file, see :func:`whole_file`.

    The same arrays and header give the same bytes.

    >>> import tempfile, os
    >>> name = os.path.join(tempfile.mkdtemp(), "model")
    >>> save(name, {"weights": np.arange(3.0)}, {"task": "regression"})
    >>> load(name)
    ({'weights': array([0., 1., 2.])}, {'task': 'regression'})
    """
    digest = hashlib.sha256()
    with whole_file(Path(path)) as file:
        for chunk in _chunks_of_file(arrays, json.dumps(header, sort_keys=True, allow_nan=False)):
            digest.update(chunk)
            file.write(chunk)
        file.write(digest.digest())


def _chunks_of_file(arrays: dict[str, np.ndarray], text: str) -> Iterator[bytes]:
    """The bytes of a file of arrays and a header in JSON text, up to the checksum."""
    descriptions: dict[str, Any] = {}
    names_by_content: dict[Any, str] = {}
    declared = stored = 0
    yield MARK + _length(FORMAT)
    for name, array in sorted(arrays.items()):
        chunks = [zlib.compress(chunk, LEVEL) for chunk in _chunks(array)]
        content = array.dtype.name, array.shape, hashlib.sha256(b"".join(chunks)).digest()
        declared += array.nbytes
        if content in names_by_content and declared <= FREE + MOST_TIMES * stored:
            descriptions[name] = names_by_content[content]
            continue
        if declared > FREE + MOST_TIMES * (stored + sum(map(len, chunks))):
            chunks = [zlib.compress(chunk, 0) for chunk in _chunks(array)]
        stored += sum(map(len, chunks))
        names_by_content[content], descriptions[name] = name, [*content[:2], [*map(len, chunks)]]
        yield from chunks
    description = zlib.compress(f'{{"arrays":{json.dumps(descriptions)},"header":{text}}}'.encode(), LEVEL)
    yield description + _length(len(description))


def _chunks(array: np.ndarray) -> Iterator[bytes]:
    """The bytes of an array in chunks: the first bytes of all numbers of a chunk, the second bytes, and so on."""
    flat = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1)
    for part in _parts(flat):
        yield _bytes_of(part).T.tobytes()


def _parts(flat: np.ndarray) -> list[np.ndarray]:
    """The chunks of a one-dimensional array, as views."""
    step = _CHUNK // flat.itemsize
    return [flat[start : start + step] for start in range(0, len(flat), step)]


def _bytes_of(numbers: np.ndarray) -> np.ndarray:
    """A view (n, bytes) of numbers."""
    return numbers.view(np.uint8).reshape(-1, numbers.itemsize)


def _length(number: int) -> bytes:
    return number.to_bytes(_LENGTH, "little")


def load(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read the arrays and the header that :func:`save` wrote.

    A file that is missing, not a tunefree model, truncated, changed, or of another format version raises a ModelError.
    """
    with _open(path) as (file, size):
        file.seek(0)
        digest, remaining = hashlib.sha256(), size - _DIGEST
        while remaining > 0 and (chunk := file.read(min(remaining, _CHUNK))):
            digest.update(chunk)
            remaining -= len(chunk)
        if file.read() != digest.digest():
            raise ModelError(f"{path}: damaged (its checksum does not match); train again or restore it from a backup")
        try:
            return _contents(file, size)
        except (ValueError, LookupError, TypeError, OverflowError, RecursionError, MemoryError, zlib.error) as error:
            problem = str(error)[:200]
            raise ModelError(f"{path}: damaged ({problem}); train again or restore it from a backup") from None


def _contents(file: BinaryIO, size: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the header of a file of ``size`` bytes with a correct checksum and this format version."""
    most, start = FREE + MOST_TIMES * size, len(MARK) + _LENGTH
    file.seek(size - _DIGEST - _LENGTH)
    length = int.from_bytes(file.read(_LENGTH), "little")
    end = size - _DIGEST - _LENGTH - length
    if end < start:
        raise ValueError("its description is longer than the file")
    file.seek(end)
    description = json.loads(_decompressed(file.read(length), most))
    arrays, header = description["arrays"], description["header"]
    if not isinstance(arrays, dict) or not isinstance(header, dict):
        raise ValueError("its description is not a mapping")
    declared = stored = 0
    for entry in arrays.values():
        dtype, shape, lengths = arrays[entry] if isinstance(entry, str) else entry
        if not all(type(number) is int and number >= 0 for number in [*shape, *lengths]):
            raise ValueError("a length is not a whole number from 0")
        declared += DTYPES[dtype].itemsize * math.prod(shape)
        stored += 0 if isinstance(entry, str) else sum(lengths)
    if declared > most:
        raise ValueError(f"it declares {declared:,} bytes, and a file of {size:,} bytes may hold {most:,}")
    if stored != end - start:
        raise ValueError("its arrays do not fill it")
    file.seek(start)
    loaded: dict[str, np.ndarray] = {}
    for name, entry in arrays.items():
        loaded[name] = loaded[entry].copy() if isinstance(entry, str) else _array(file, *entry)
    return loaded, header


def _array(file: BinaryIO, name: str, shape: list[int], lengths: list[int]) -> np.ndarray:
    """The array of a named dtype, read from its next chunks, which have these lengths."""
    dtype = DTYPES[name]
    array = np.empty(math.prod(shape), dtype)
    for part, length in zip(_parts(array), lengths, strict=True):
        raw = np.frombuffer(_decompressed(file.read(length), part.nbytes), np.uint8)
        _bytes_of(part)[:] = raw.reshape(dtype.itemsize, -1).T
    return array.reshape(shape).astype(dtype.newbyteorder("="), copy=False)


def _decompressed(data: bytes, most: int) -> bytes:
    """The decompressed bytes; a ValueError if they are truncated or more than ``most``."""
    decompressor = zlib.decompressobj()
    raw = decompressor.decompress(data, most + 1)
    if len(raw) > most or not decompressor.eof or decompressor.unused_data:
        raise ValueError("a piece is not as long as is declared")
    return raw


def digest_of(path: str | os.PathLike[str]) -> str:
    """The hexadecimal checksum stored in a file; it is not verified."""
    with _open(path) as (file, size):
        file.seek(size - _DIGEST)
        return file.read().hex()


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a model by its suffix or by its first bytes."""
    try:
        return Path(path).suffix == ".model" or bool(digest_of(path))
    except ModelError:
        return False


@contextmanager
def _open(path: str | os.PathLike[str]) -> Iterator[tuple[BinaryIO, int]]:
    """A model file of this format version, opened for reading, and its size in bytes."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            mark, number = file.read(len(MARK)), int.from_bytes(file.read(_LENGTH), "little")
            if mark != MARK or size < len(MARK) + 2 * _LENGTH + _DIGEST:
                reader = ", or read this one by joblib.load" if Path(path).suffix == ".joblib" else ""
                raise ModelError(f"{path}: not a tunefree model, or damaged; give the path of a trained model{reader}")
            if number != FORMAT:
                version, remedy = ("a later", "upgrade tunefree") if number > FORMAT else ("an earlier", "train again")
                raise ModelError(f"{path}: was written by {version} version of tunefree; {remedy}")
            yield file, size
    except OSError as error:
        models = sorted(map(str, Path(path).glob("*.model")))  # in a store: the current version
        remedy = f"did you mean {models[0]}?" if models else "give the path of a trained model"
        raise ModelError(f"{path}: cannot be read ({error.strerror}); {remedy}") from None


def check_writable(path: Path) -> None:
    """Raise a ModelError if :func:`whole_file` could not write this file, to fail before hours of work.

    >>> check_writable(Path("no such folder") / "people.model")
    Traceback (most recent call last):
    tunefree.core.errors.ModelError: no such folder/people.model: its parent is not a directory; name a file
    """
    if path.is_dir() or not path.parent.is_dir():
        raise ModelError(f"{path}: {'is' if path.is_dir() else 'its parent is not'} a directory; name a file")
    if _is_device(path):
        if not os.access(path, os.W_OK):
            raise ModelError(f"{path}: writing to this device is not permitted; name a file")
        return
    handle, temporary = _temporary_file(path)
    os.close(handle)
    os.unlink(temporary)


def make_folder(path: Path) -> None:
    """Create a folder unless it exists, and check that files can be written to it.

    >>> make_folder(Path("/dev/null/folder"))
    Traceback (most recent call last):
    tunefree.core.errors.ModelError: /dev/null/folder: cannot be made a folder (Not a directory); choose another place
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ModelError(f"{path}: cannot be made a folder ({error.strerror}); choose another place") from None
    check_writable(path / ".tunefree")


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Write a temporary file beside ``path``, which replaces ``path`` after it is complete and synced to disk.

    The file keeps the permissions of an existing file, else it has those of any new file. A device or a pipe is written
    directly, since renaming would replace it. If writing fails, a ModelError is raised and an existing file is kept.
    """
    if _is_device(path):
        try:
            with path.open("wb") as file:
                yield file
        except OSError as error:
            raise ModelError(f"{path}: cannot be written ({error.strerror or error}); name a file") from None
        return
    handle, temporary = _temporary_file(path)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        problem = error.strerror or error
        raise ModelError(f"{path}: cannot be written ({problem}); make room or choose another place") from None
    finally:
        temporary.unlink(missing_ok=True)


def _is_device(path: Path) -> bool:
    """Whether the path exists and is neither a file nor a folder."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _temporary_file(path: Path) -> tuple[int, Path]:
    """The handle and the path of a new file in the folder of ``path``, with the mode of an existing file."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
        handle = os.open(temporary, flags, 0o666 if mode is None else mode)  # the umask applies
        if mode is not None:
            os.chmod(temporary, mode)
        return handle, temporary
    except OSError as error:
        raise ModelError(f"{path}: cannot be written ({error.strerror}); choose another place") from None


@contextmanager
def only_writer(path: Path, of: Path) -> Iterator[None]:
    """Hold a lock (``flock``) on a file while writing; the system releases it when the process ends.

    The lock file, whose folder exists, names the process and is deleted when the lock is released. On systems without
    ``flock`` nothing is locked. ``of`` is the file to write, for the message if another process, or this one, holds the
    lock.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with only_writer(folder / "lock", Path("people.model")):
    ...     with only_writer(folder / "lock", Path("people.model")):  # doctest: +ELLIPSIS
    ...         pass
    Traceback (most recent call last):
    tunefree.core.errors.ModelError: people.model: process ... writes it; wait until it ends, or write another one
    """
    try:
        import fcntl
    except ModuleNotFoundError:
        yield
        return
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise ModelError(f"{of}: cannot be written ({error.strerror}); choose another place") from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(handle, 100, 0).decode(errors="replace").strip() or "another process"
            os.close(handle)
            raise ModelError(f"{of}: {holder} writes it; wait until it ends, or write another one") from None
        if path.exists() and os.path.samestat(os.fstat(handle), path.stat()):
            break
        os.close(handle)  # the previous holder has just removed the file
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"process {os.getpid()}".encode(), 0)
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)
