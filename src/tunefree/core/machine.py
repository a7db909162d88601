"""What this machine has."""

from __future__ import annotations

import ctypes
import os

_SETTING = "MALLOC_MMAP_THRESHOLD_"  # of the environment, by which users set the same
_M_MMAP_THRESHOLD = -3  # its number in glibc
_LARGE = 2**22  # bytes


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


def give_back_large_arrays() -> bool:
    """Let the C library of Linux give the memory of each large array back as soon as it is free; whether it will.

    By default it stops doing so once an array of up to 32 MiB was freed. What reading and encoding leave free between
    small objects is then of no use to the statistics of learners, which have pages of their own. This is for processes
    that are tunefree's, since it holds for all that runs in them.
    """
    if _SETTING in os.environ:
        return False
    try:
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    except (OSError, TypeError):  # Windows
        return False
    return mallopt is not None and bool(mallopt(_M_MMAP_THRESHOLD, _LARGE))
