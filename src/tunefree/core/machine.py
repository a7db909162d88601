"""What this machine has."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterable
from typing import Any

_ARENA_MAX = -8  # M_ARENA_MAX in malloc.h of glibc
_DONT_NEED = 4  # MADV_DONTNEED in sys/mman.h of Linux


def memory() -> int:
    """Bytes of memory of this machine; 0 where the system does not tell.

    Examples
    --------
    >>> memory() >= 0
    True
    """
    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" not in names or "SC_PAGE_SIZE" not in names:
        return 0
    return max(os.sysconf("SC_PHYS_PAGES"), 0) * max(os.sysconf("SC_PAGE_SIZE"), 0)


def share_freed_memory() -> None:
    """Let all threads, and Arrow, take memory that others gave back.

    Else each thread has an arena of its own (``M_ARENA_MAX`` of glibc), Arrow has an allocator of its own, and what is
    free in one is lost to the others. Arenas that exist remain, so a program calls it before it begins threads.
    """
    library: Any = ctypes.CDLL(None) if os.name == "posix" else None
    mallopt = getattr(library, "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENA_MAX, 1)
    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())


def give_back_memory() -> None:
    """Give memory back that is free, and pages of code and constants that were used only once, as while starting.

    The latter are unchanged copies of what files hold (``MADV_DONTNEED`` of Linux): what is used again is mapped again.
    """
    library: Any = ctypes.CDLL(None) if os.name == "posix" else None
    for name in ("malloc_trim", "madvise"):
        if not hasattr(library, name):
            return
    library.malloc_trim(ctypes.c_size_t(0))
    with contextlib.suppress(OSError), open("/proc/self/smaps") as maps:
        for start, stop in unchanged_files(maps):
            library.madvise(ctypes.c_void_p(start), ctypes.c_size_t(stop - start), _DONT_NEED)


def unchanged_files(maps: Iterable[str]) -> list[tuple[int, int]]:
    """Where files are mapped that cannot be written and whose pages are all as in the file.

    Parameters
    ----------
    maps : iterable of str
        Lines of ``/proc/self/smaps``.

    Examples
    --------
    >>> code = "1000-3000 r-xp 00000000 08:01 7 /lib/libm.so", "Rss: 8 kB", "Anonymous: 0 kB"
    >>> data = "3000-4000 rw-p 00002000 08:01 7 /lib/libm.so", "Rss: 4 kB", "Anonymous: 0 kB"
    >>> unchanged_files([*code, *data])
    [(4096, 12288)]
    """
    places, place = [], None
    for line in maps:
        first, *rest = line.split(maxsplit=5)
        if "-" in first:
            is_file = len(rest) == 5 and rest[4].startswith("/") and rest[0] in ("r-xp", "r--p")
            start, _, stop = first.partition("-")
            place = (int(start, 16), int(stop, 16)) if is_file else None
        elif first == "Anonymous:" and rest[0] == "0" and place is not None:
            places.append(place)
    return places
