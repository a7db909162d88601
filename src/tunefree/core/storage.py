"""Models on disk: one file of named arrays and a JSON header, written whole or not at all.

The file is in the safetensors format. Its metadata are ``tunefree``, the JSON header, and ``digest``, a checksum of the
whole file with the digest itself set to zeros, so that any cut or changed byte shows.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from tunefree.core.errors import ModelError

FORMAT = 11  # raised when a file of before could no longer be read, or an older version not read what this one writes
_PIECE = 2**20  # bytes of a file that are read, or brought together, at a time
_BEGINNING = b'{"__metadata__":{"digest":"'  # behind eight bytes that tell the length of the header
_BLANK = "0" * 64
_DIGEST = slice(8 + len(_BEGINNING), 8 + len(_BEGINNING) + len(_BLANK))  # its place in a file


def save(path: str | os.PathLike[str], arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
    """Write arrays and a header, of what JSON can hold, to a file; one already there is replaced whole, at the last
    moment.

    The same arrays and header give the same bytes. If the file cannot be written, what was there before is untouched.

    >>> import tempfile, os
    >>> name = os.path.join(tempfile.mkdtemp(), "model")
    >>> save(name, {"weights": np.arange(3.0)}, {"task": "regression"})
    >>> arrays, header = load(name)
    >>> arrays["weights"], header["task"]
    (array([0., 1., 2.]), 'regression')
    """
    try:
        text = json.dumps({**header, "format": FORMAT}, sort_keys=True, allow_nan=False)
    except TypeError as error:
        raise ModelError(f"{path}: cannot be saved ({error}); name a kernel instead of giving a function") from None
    write(path, arrays, text)


def write(path: str | os.PathLike[str], arrays: dict[str, np.ndarray], text: str) -> None:
    """Write arrays and a header that is JSON, see :func:`save`."""
    # The largest numbers first, so that each array begins at a multiple of the size of its numbers.
    ordered = sorted(arrays.items(), key=lambda named: (-named[1].dtype.itemsize, named[0]))
    beginning = _described(ordered, text)
    digest = hashlib.sha256(beginning)
    for piece in _pieces(ordered):
        digest.update(piece)
    with whole_file(Path(path)) as file:
        file.write(beginning[: _DIGEST.start] + digest.hexdigest().encode() + beginning[_DIGEST.stop :])
        for piece in _pieces(ordered):
            file.write(piece)


def _pieces(ordered: list[tuple[str, np.ndarray]]) -> Iterator[memoryview]:
    """The bytes of arrays. What has gaps is copied a few rows at a time, which stay in the processor's cache."""
    for array in (np.atleast_1d(array) for _, array in ordered):
        rows = len(array) if array.flags.c_contiguous else _PIECE // max(array[:1].nbytes, 1)
        for start in range(0, len(array), max(rows, 1)):
            yield _bytes_of(array[start : start + max(rows, 1)])


def _bytes_of(array: np.ndarray) -> memoryview:
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1).view(np.uint8).data


def _described(arrays: list[tuple[str, np.ndarray]], text: str) -> bytes:
    """The beginning of a file: the header, and where each array is."""
    header: dict[str, Any] = {"__metadata__": {"digest": _BLANK, "tunefree": text}}
    start = 0
    for name, array in arrays:
        kind = "BOOL" if array.dtype == bool else f"{array.dtype.kind.upper()}{8 * array.dtype.itemsize}"
        header[name] = {"dtype": kind, "shape": array.shape, "data_offsets": [start, start + array.nbytes]}
        start += array.nbytes
    beginning = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    beginning += b" " * (-len(beginning) % 8)
    return len(beginning).to_bytes(8, "little") + beginning


def load(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read the arrays and the header that :func:`save` wrote.

    A file that is missing, is not a tunefree model, was cut short or changed, or is of another format raises a
    ModelError.
    """
    from safetensors import SafetensorError, safe_open

    with _opened(path) as file:
        header, recorded, digest = _header_of(path, file)
        while piece := file.read(_PIECE):
            digest.update(piece)
    if header["format"] > FORMAT:
        raise ModelError(f"{path}: was written by a later version of tunefree; upgrade tunefree")
    if header["format"] < FORMAT:
        raise ModelError(f"{path}: was written by an earlier version of tunefree; train again")
    if recorded != digest.hexdigest():
        raise ModelError(f"{path}: damaged (its checksum does not match); train again or restore it from a backup")
    try:
        with safe_open(path, "np") as opened:
            return {name: opened.get_tensor(name) for name in opened.keys()}, header  # noqa: SIM118
    except SafetensorError as error:
        raise ModelError(f"{path}: damaged ({error}); train again or restore it from a backup") from None


def digest_of(path: str | os.PathLike[str]) -> str:
    """The checksum that :func:`save` wrote into a file, in hexadecimal digits; it is not compared with the file."""
    with _opened(path) as file:
        return _header_of(path, file)[1]


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether a file is meant as a model: it begins as one, or is called so."""
    if Path(path).suffix == ".model":
        return True
    try:
        return bool(digest_of(path))
    except ModelError:
        return False


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A model file to be read."""
    try:
        with open(path, "rb") as file:
            yield file
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}); give the path of a trained model") from None


def _header_of(path: Any, file: BinaryIO) -> tuple[dict[str, Any], str, Any]:
    """The JSON header, its checksum, and the running checksum: a newer format is no damage."""
    size = os.fstat(file.fileno()).st_size
    length = file.read(8)
    try:
        if not 2 <= int.from_bytes(length, "little") <= size - 8:
            raise ValueError
        beginning = length + file.read(int.from_bytes(length, "little"))
        metadata = json.loads(beginning[8:])["__metadata__"]
        header = json.loads(metadata["tunefree"])
        if not isinstance(header, dict) or not isinstance(header.get("format"), int):
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ModelError(f"{path}: not a tunefree model, or damaged; give the path of a trained model") from None
    blank = beginning[: _DIGEST.start] + _BLANK.encode() + beginning[_DIGEST.stop :]
    return header, str(metadata.get("digest", "")), hashlib.sha256(blank)


def check_writable(path: Path) -> None:
    """Raise a ModelError if :func:`whole_file` could not write a file here: before hours of work, not after.

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
    handle, part = _beside(path)
    os.close(handle)
    os.unlink(part)


def make_folder(path: Path) -> None:
    """Make a folder in which files can be written, unless it is there.

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
    """A file to write beside ``path``; once it is written and on the disk it takes the name, and not before.

    Who may read it is as before if there was a file of this name, else as of any new file. What is written to a device
    or a pipe goes through it: a file would replace it. If it cannot be written, a ModelError tells so, and what was
    there before is untouched.
    """
    if _is_device(path):
        with _through(path) as file:
            yield file
        return
    handle, part = _beside(path)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        problem = error.strerror or error
        raise ModelError(f"{path}: cannot be written ({problem}); make room or choose another place") from None
    finally:
        part.unlink(missing_ok=True)


def _is_device(path: Path) -> bool:
    """Whether something is there that is neither a file nor a folder."""
    return path.exists() and not path.is_file() and not path.is_dir()


@contextmanager
def _through(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("wb") as file:
            yield file
    except OSError as error:
        raise ModelError(f"{path}: cannot be written ({error.strerror or error}); name a file") from None


def _beside(path: Path) -> tuple[int, Path]:
    """A new file in the folder of ``path``, with the mode of a file of this name: its handle and its name."""
    part = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
        handle = os.open(part, flags, 0o666 if mode is None else mode)  # less than that is what the mask of users says
        if mode is not None:
            os.chmod(part, mode)
        return handle, part
    except OSError as error:
        raise ModelError(f"{path}: cannot be written ({error.strerror}); choose another place") from None


@contextmanager
def only_writer(path: Path, of: Path) -> Iterator[None]:
    """Hold a lock (``flock``) on a file while something is written; the system releases it when the process ends.

    The file, whose folder exists, names the process, and goes when the lock is released. Systems without ``flock`` have
    no such locks. Of what is written, the message tells where another process, or another lock of this one, holds it.

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
        os.close(handle)  # the holder before has just removed it
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"process {os.getpid()}".encode(), 0)
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)
