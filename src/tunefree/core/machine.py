"""The memory and processors of this machine."""

from __future__ import annotations

import ctypes
import os
from typing import Any

_ARENA_MAX = -8  # M_ARENA_MAX in malloc.h of glibc


def memory() -> int:
    """The memory of this machine in bytes; 0 if the system does not report it."""
    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" not in names or "SC_PAGE_SIZE" not in names:
        return 0
    return max(os.sysconf("SC_PHYS_PAGES"), 0) * max(os.sysconf("SC_PAGE_SIZE"), 0)


def share_freed_memory() -> None:
    """Let all threads, and Arrow, reuse memory that others have freed.

    By default each thread has its own arena (``M_ARENA_MAX`` of glibc) and Arrow its own allocator, and free memory of
    one is unavailable to the others. Existing arenas remain, so a program calls this before it starts threads.
    """
    library: Any = ctypes.CDLL(None) if os.name == "posix" else None
    mallopt = getattr(library, "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENA_MAX, 1)
    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())
