"""The memory and processors of this machine."""

from __future__ import annotations

import ctypes
import os
from typing import Any

_ARENA_MAX = -8  # M_ARENA_MAX in malloc.h of glibc


def memory() -> int:
    """Bytes of memory of this machine; 0 where the system does not tell."""
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
