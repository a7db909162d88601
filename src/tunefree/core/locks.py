"""One writer at a time: a lock that a process has until it ends, however it ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tunefree.core.errors import ModelError


@contextmanager
def only_writer(path: Path, of: Path) -> Iterator[None]:
    """Hold a lock (``flock``) on a file while something is written; the system releases it when the process ends.

    The file names the process, and goes when the lock is released. Systems without ``flock`` have no such locks.

    Parameters
    ----------
    path : Path
        The file; its folder exists.
    of : Path
        What is written, for the message.

    Raises
    ------
    ModelError
        If another process, or another lock of this one, holds it.

    Examples
    --------
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
