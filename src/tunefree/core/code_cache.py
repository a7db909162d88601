"""Compiled code on disk: found by what it was made from, so that it is never stale.

Numba decides by the file of the entry point alone whether its cache is valid. Compiled code is also made from other
files: from every function that the entry point calls, and from the bodies of generic functions for the classes of its
arguments. Here each specialisation is a file whose name holds two digests: one of the sources of the rooms that the
entry point can call (:data:`ROOMS`), one of the types of its arguments.

Code from outside the package takes part through classes and the bodies registered for them. Its sources are unknown,
so it is compiled anew in each process unless :func:`cached_by` names them.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import types
from numba.core.caching import FunctionCache, IndexDataCacheFile

from tunefree.core import compilation

PACKAGE = Path(__file__).parents[1]
_UP_TO_LOSSES = ("core", "learners", "losses")
_UP_TO_KERNELS = (*_UP_TO_LOSSES, "theory", "kernel")
# For each room with entry points: the rooms whose functions can become part of them, that is, all that it imports from.
ROOMS = {
    "stream": ("core", "stream"),
    "losses": _UP_TO_LOSSES,
    "theory": (*_UP_TO_LOSSES, "theory"),
    "kernel": _UP_TO_KERNELS,
    "generations": (*_UP_TO_LOSSES, "generations"),
    "mixing": (*_UP_TO_LOSSES, "mixing"),
    "early_stopping": (*_UP_TO_KERNELS, "early_stopping"),
    "model": (*_UP_TO_KERNELS, "mixing", "model"),
}

_PLAIN = (types.Number, types.Boolean, types.NoneType, types.Buffer)
_source_of: dict[type, str] = {}  # digests of the sources of classes from outside the package, by cached_by
_package_replaced = False  # a body from outside is registered for a class of the package: sources of all are unknown


def _digest_of(files: Iterable[Path]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for path in files:
        text = path.read_bytes()
        digest.update(f"{path.name} {len(text)} ".encode())
        digest.update(text)
    return digest.hexdigest()


@cache
def room_key(room: str) -> str:
    """Digest of the source files of a room."""
    return _digest_of(sorted((PACKAGE / room).rglob("*.py")))


@cache
def source_key(module: str) -> str:
    """Digest of all sources that the entry points of a module can be made from, and of the compiler's version.

    Examples
    --------
    >>> source_key("tunefree.stream.vw") == source_key("tunefree.stream.keys") != source_key("tunefree.model.passes")
    True
    """
    rooms = ROOMS[module.split(".")[1]]
    text = " ".join([numba.__version__, *map(room_key, rooms)])
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def is_of_the_package(thing: Any) -> bool:
    """Whether a class or function is defined in this package."""
    return thing.__module__.split(".")[0] == "tunefree"


def registered(cls: type, body: Callable[..., Any]) -> None:
    """A generic function has a new body: one from outside for a class of the package ends caching in this process."""
    global _package_replaced
    _package_replaced |= is_of_the_package(cls) and not is_of_the_package(body)


def cached_by(cls: type, *files: str | Path) -> None:
    """Cache on disk what is compiled for a class from outside the package, for as long as these files do not change.

    Parameters
    ----------
    cls : type
        A NamedTuple class with bodies for generic functions: a learner, a loss, an objective.
    *files : str or Path
        All files, outside the package, of functions that those bodies call: at least the class's own.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> class Cubic(NamedTuple):
    ...     scale: float
    >>> cached_by(Cubic, __file__)
    """
    _source_of[cls] = _digest_of(map(Path, files))


def _described(kind: Any) -> Any:
    """A type as nested tuples of strings, the same in each process; raises KeyError if its sources are unknown."""
    if isinstance(kind, _PLAIN) or is_of_the_package(type(kind)):
        return repr(kind)
    a_tuple, has_a_class = isinstance(kind, types.BaseTuple), isinstance(kind, types.BaseNamedTuple)
    if not a_tuple:
        raise KeyError(kind)  # a function, say: what it is made from is not part of its type
    parts = tuple(_described(part) for part in kind.types)
    if not has_a_class:
        return parts
    cls = kind.instance_class
    source = "" if is_of_the_package(cls) else _source_of[cls]
    return (cls.__module__, cls.__qualname__, source, parts)


class _Files(IndexDataCacheFile):
    """One file for each specialisation, without an index, which processes would overwrite for each other."""

    def load(self, key: str | None) -> Any:
        """The code of that name, or None: a file that is missing or damaged is written anew."""
        with contextlib.suppress(Exception):
            return self._load_data(key) if key else None
        return None

    def save(self, key: str | None, data: Any) -> None:
        """Write a specialisation; a full or read-only disk means that it is compiled again next time."""
        if key:
            with contextlib.suppress(OSError):
                self._save_data(key, data)


class CodeCache(FunctionCache):
    """The compiled specialisations of an entry point.

    Parameters
    ----------
    function : function
        The entry point, uncompiled.

    Raises
    ------
    RuntimeError
        If there is no folder to write to.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._stamp = self._cache_file._source_stamp  # of the whole archive, if the package is imported from one
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, "")
        path = Path(function.__code__.co_filename)
        self._name = f"{path.stem}.{function.__qualname__}_"
        self._key = source_key(function.__module__)
        self._ending = f".py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"

    def _index_key(self, signature: Any, codegen: Any) -> str | None:
        """The name of a file, or None if the code is not to be cached."""
        if _package_replaced:
            return None
        try:
            kinds = [_described(kind) for kind in getattr(signature, "args", signature)]
        except KeyError:
            return None
        text = repr((self._stamp, kinds, codegen.magic_tuple()))
        code = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        return f"{self._name}{self._key}-{code}{self._ending}.nbc"

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The code for a signature; where there is none on disk, it is about to be compiled."""
        found = super().load_overload(signature, target_context)
        if found is None:
            compilation.begins()
        return found

    def _save_overload(self, signature: Any, compiled: Any) -> None:
        with contextlib.suppress(OSError):  # as in _Files.save: the folder may have gone
            super()._save_overload(signature, compiled)
            self._remove_stale()

    def _remove_stale(self) -> None:
        """Remove what other versions of the sources left; a process that still runs one of them compiles again."""
        pattern = re.compile(rf"{re.escape(self._name)}([0-9a-f]{{32}})-.*{re.escape(self._ending)}\.(.*\.)?nb[ci]")
        for path in Path(self._cache_path).glob(f"{self._name}*"):
            found = pattern.fullmatch(path.name)
            if found and found[1] != self._key:
                with contextlib.suppress(OSError):
                    path.unlink()
