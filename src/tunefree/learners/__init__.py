"""The online learners, one algorithm (or family) a file, and ALL: the list that tests and the command line read."""

from __future__ import annotations

from typing import Any

from tunefree.learners.averaged import Averaged
from tunefree.learners.cocob import CoCoB, CoCoBOriginal
from tunefree.learners.kotlowski import Kotlowski
from tunefree.learners.nag import NAG
from tunefree.learners.pistol import CoordinatePiSTOL, PiSTOL
from tunefree.learners.scinol import ScInOL1, ScInOL2
from tunefree.learners.sfmd import SFMD

ALL: dict[str, Any] = {
    "scinol1": ScInOL1,
    "scinol2": ScInOL2,
    "pistol": PiSTOL,
    "coordinate-pistol": CoordinatePiSTOL,
    "nag": NAG,
    "sfmd": SFMD,
    "cocob": CoCoB,
    "cocob-original": CoCoBOriginal,
    "kotlowski": Kotlowski,
}

__all__ = [
    "ALL",
    "NAG",
    "SFMD",
    "Averaged",
    "CoCoB",
    "CoCoBOriginal",
    "CoordinatePiSTOL",
    "Kotlowski",
    "PiSTOL",
    "ScInOL1",
    "ScInOL2",
]
