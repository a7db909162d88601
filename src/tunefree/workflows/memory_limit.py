"""How much memory the parts of a model may take while it learns.

What they take grows with the features and doubles at a time. It is told while it grows. Before it exceeds the limit the
members with the least shares are dropped, one by one, and each is told. If even one member takes too much, training
ends with an error before the memory is taken; hashing features to fewer is then what remains. What rows, the reader and
the dictionary of features take is not counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tunefree.core import machine
from tunefree.core.errors import ModelError
from tunefree.core.states import size_of
from tunefree.model.meetings import FIRST
from tunefree.model.members import Setting
from tunefree.model.mixture import predictive_shares
from tunefree.model.model import Model

SHARE = 4  # of the machine's memory, by default one part of so many
TOLD = 8  # parts of the limit from one of which on growth is told
_SMALL, _LARGER = 2**11, 2**12  # features of models that tell what a feature takes
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def limit_of(text: str | None) -> int:
    """Bytes of a limit as users write it; by default a quarter of the machine's memory, 0 where that is unknown.

    Raises
    ------
    ModelError

    Examples
    --------
    >>> limit_of("1.5G"), limit_of("300M")
    (1610612736, 314572800)
    """
    if text is None:
        return machine.memory() // SHARE
    found = re.fullmatch(r"(\d+\.?\d*)([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if found is None or float(found[1]) == 0.0:
        raise ModelError(f"--memory-limit {text}: write a size such as 500M or 4G")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def held(model: Model) -> int:
    """Bytes that what members, certificates and frozen copies of a model consist of take."""
    return _of_features(model) + _of_rows(model) + of_generations(model)


def of_generations(model: Any) -> int:
    """Bytes of generations, of the rows that they are grown on, and of their mixture."""
    return int(model.pool.nbytes) if model.options.has_generations else 0


def _shares(model: Model) -> np.ndarray:
    """The share of each member in predictions; of generations those of the linear members."""
    if not model.options.has_generations:
        return predictive_shares(model.mixture)
    shares = model.shares_by_member()
    return np.array([shares.get(member.name, 0.0) for member in model.members])


def _of_features(model: Model, room: int = 0) -> int:
    """Bytes of what is kept of features; only of what has room for so many, and will grow with their number."""
    parts: list[Any] = [getattr(member, "state", ()) for member in model.members]
    parts.append(model.record.evidence)
    if model.deployment is not None:
        parts += [model.deployment.averages or (), *(own.snapshot for own in model.deployment.copies)]
    return sum(size_of(part, room) for part in parts)


def _of_rows(model: Model) -> int:
    """Bytes of what is kept of rows in which features were met for the first time."""
    logs = [log for member in model.members if (log := getattr(member, "log", None)) is not None]
    return sum(map(size_of, [model.record.log, model.ensemble.linear.meetings_held, *logs]))


def shown(size: float) -> str:
    """Bytes in words.

    Examples
    --------
    >>> shown(3 * 2**30), shown(5e6)
    ('3.0 GiB', '5 MiB')
    """
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"


class MemoryLimit:
    """Keeps what a model takes below a limit while it learns.

    Parameters
    ----------
    limit : int
        Bytes; 0 for none.
    tell : function
        Is called with what the user should know.
    """

    def __init__(self, limit: int, tell: Callable[[str], None]) -> None:
        self.limit, self.tell, self._told = limit, tell, limit / TOLD

    def members_that_fit(self, make: Callable[[int], Model], n_features: int) -> list[Setting] | None:
        """The members with which a model may begin with so many features, None for all; the last are left out first.

        Parameters
        ----------
        make : function
            From a number of features to a model of all members.
        n_features : int

        Raises
        ------
        ModelError
            If one member alone would take more than the limit.
        """
        if not self.limit or n_features <= _LARGER:
            return None
        small, larger = make(_SMALL), make(_LARGER)
        step = n_features / (_LARGER - _SMALL)
        sizes = [[size_of(getattr(member, "state", ())) for member in own.members] for own in (small, larger)]
        of_members = {k: step * (more - less) for k, (less, more) in enumerate(zip(*sizes, strict=True))}
        needed, left = step * (held(larger) - held(small)), [k for k, size in of_members.items() if size > 0.0]
        while needed > self.limit and len(left) > 1:
            last = left.pop()
            self.tell(
                f"{n_features:,} features would take {shown(needed)}, more than the {shown(self.limit)} of "
                f"--memory-limit: {larger.members[last].name} is left out"
            )
            needed -= of_members.pop(last)
        if needed > self.limit:
            bits = max(int(np.log2(self.limit / needed * n_features)), 1)
            raise ModelError(
                f"{n_features:,} features take {shown(needed)} of memory at least, more than the {shown(self.limit)} "
                f"of --memory-limit; hash to {bits} bits at most (--hash-bits), or raise the limit"
            )
        settings = larger.member_settings
        return [settings[k] for k in of_members] if len(of_members) < len(settings) else None

    def has_room_for(self, size: int, what: str) -> bool:
        """Whether something of so many bytes may be made beside the model; tells if not."""
        if not self.limit or size <= self.limit:
            return True
        self.tell(f"{what} would take {shown(size)}, more than the {shown(self.limit)} of --memory-limit: left out")
        return False

    def make_room(self, model: Model, n_features: int) -> None:
        """Look whether a model may have statistics of so many features, and drop members until it may.

        Raises
        ------
        ModelError
            If one member alone would take more.
        """
        if not self.limit:
            return
        grown, needed = of_generations(model), self._needed(model, n_features)
        if grown > self.limit:
            raise ModelError(
                f"generations and the rows that they are grown on take {shown(grown)} of memory, more than the"
                f" {shown(self.limit)} of --memory-limit; raise it, or train without --learner generations"
            )
        while needed > self.limit and len(model.members) > 1:
            shares = _shares(model)
            least = min(range(len(shares)), key=lambda m: shares[m])
            name = model.members[least].name
            model.prune(np.arange(len(model.members)) == least)
            self.tell(
                f"{n_features:,} features would take {shown(needed)}, more than the {shown(self.limit)} of "
                f"--memory-limit: {name} is dropped, which had the least share"
            )
            needed = self._needed(model, n_features)
        if needed > self.limit:
            raise ModelError(
                f"{n_features:,} features would take {shown(needed)} of memory, more than the {shown(self.limit)} of "
                "--memory-limit; hash them to fewer (--hash-bits 20), leave out columns of ids (--ignore), or raise it"
            )
        if needed > self._told:
            self._told = 2.0 * needed
            hint = "generations take most of it" if 2 * grown > needed else "--hash-bits bounds their number"
            self.tell(
                f"the model has {n_features:,} features and takes {shown(needed)} of the {shown(self.limit)} of "
                f"--memory-limit; {hint}"
            )

    def _needed(self, model: Model, n_features: int) -> float:
        """Bytes with so many features; room for them doubles."""
        rooms = [member.room for member in model.members if hasattr(member, "room")]
        room = max(rooms, default=n_features)
        more = 0.0 if n_features <= room else max(n_features, 2 * room) / room - 1.0
        return held(model) + more * _of_features(model, min(room, FIRST))  # Newton's matrices do not grow beyond
