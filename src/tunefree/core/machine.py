"""What this machine has."""

from __future__ import annotations

import os


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
