"""The online learners, one algorithm (or family) a file, and ALL: the list that tests and the command line read."""

from __future__ import annotations

from typing import Any

from tunefree.learners.averaged import Averaged
from tunefree.learners.pistol import CoordinatePiSTOL, PiSTOL
from tunefree.learners.scinol import ScInOL1, ScInOL2

ALL: dict[str, Any] = {
    "scinol1": ScInOL1,
    "scinol2": ScInOL2,
    "pistol": PiSTOL,
    "coordinate-pistol": CoordinatePiSTOL,
}

__all__ = ["ALL", "Averaged", "CoordinatePiSTOL", "PiSTOL", "ScInOL1", "ScInOL2"]
