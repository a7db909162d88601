"""Limits on the memory that the parts of a model take while it learns.

Before a pool exceeds the limit, it puts to sleep the parts that predict least for their memory, and each is told. If
nothing is left to give up, training ends with an error before the memory is taken. Memory of rows, the reader and the
dictionary of features is not counted.

Under a limit that the user names, categories and words of tables are known as long as they have room in half of a
pool's limit, or all of a single learner's; others are forgotten (:mod:`tunefree.stream.feature_ids`). Room for all is
taken at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tunefree.core import machine
from tunefree.core.errors import ModelError
from tunefree.core.part import size_of
from tunefree.pool.model import Model
from tunefree.pool.occurrences import FIRST
from tunefree.pool.options import OF_TABLES, OF_TEXTS
from tunefree.stream.files import TextFile

SHARE = 4  # of the machine's memory, by default one part of so many
CHECKED = 2**12  # rows after which it is looked anew whether a model has room under a limit that is named
CHUNK_SIZE = 2**18  # bytes of text that are read at a time: several chunks wait as columns and as rows
DICTIONARY = 96  # bytes of a category or word in the dictionary, its name and its evidence, while some are forgotten
OF_FEATURES = 2  # one part of so many of a pool's limit is for features, the rest for generations and their rows
FEWEST = 2**11  # features; below, none is forgotten, and training ends where there is no room
SMALL = 2**11  # features of a model that tells what a feature takes
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def limit_of(text: str | None) -> int:
    """Bytes of a limit as users write it; by default a quarter of the machine's memory, 0 where that is unknown.

    >>> limit_of("1.5G"), limit_of("300M")
    (1610612736, 314572800)
    """
    if text is None:
        return machine.memory() // SHARE
    written = re.fullmatch(r"(\d+\.?\d*)([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if written is None or float(written[1]) == 0.0:
        raise ModelError(f"`memory_limit={text!r}`: write a size such as 500M or 4G")
    return int(float(written[1]) * _UNITS[written[2].upper()])


def small_chunks(file: str) -> TextFile:
    """A file that is read in chunks of little memory."""
    return (file if isinstance(file, TextFile) else TextFile(file)).but(chunk_size=CHUNK_SIZE)


def model_bytes(model: Model) -> int:
    """Bytes of a model, with the rows in which features were met for the first time."""
    logs = [log for member in model.linear.members if (log := getattr(member, "log", None)) is not None]
    met = () if model.linear.meetings is None else vars(model.linear.meetings)
    row_bytes = sum(map(size_of, [model.record.log, met, *logs]))
    return _feature_bytes(model) + row_bytes + (0 if model.pool is None else model.pool.nbytes)


def _feature_bytes(model: Model, room: int = 0) -> int:
    """Bytes of statistics of features; with ``room``, only of arrays with at least this capacity, which grow."""
    members = model.linear.members if model.predictor.bank is None else model.predictor.bank.members
    return sum(size_of(part, room) for part in (*(member.state for member in members), model.record.evidence))


def shown(size: float) -> str:
    """Bytes in words.

    >>> shown(3 * 2**30), shown(5e6), shown(300_000), shown(500)
    ('3.0 GiB', '5 MiB', '293 KiB', '500 bytes')
    """
    units = {"GiB": 2**30, "MiB": 2**20, "KiB": 2**10}
    unit = next((unit for unit, scale in units.items() if size >= 2 * scale or size >= scale == 2**30), None)
    return f"{size:.0f} bytes" if unit is None else f"{size / units[unit]:.{int(unit == 'GiB')}f} {unit}"


class MemoryLimit:
    """Keeps the memory of a model below a limit while it learns.

    ``limit``: bytes; 0 for none.
    ``tell``: called with what the user should know.
    ``is_stated``: whether the user named the limit. Then categories and words of tables are forgotten under it.
    ``most``: features that are known at a time; None where none is forgotten.
    """

    def __init__(self, limit: int, tell: Callable[[str], None], is_stated: bool = False) -> None:
        self.limit, self.tell = limit, tell
        self.is_stated, self.most = is_stated, None

    def most_features(self, model: Model) -> int | None:
        """The number of categories and words that a model may know at a time; None if none is to be forgotten."""
        if not self.is_stated or model.predictor.bank is not None:
            return None
        sizes = [
            (member.setting, size_of(member.state.blocks, member.room) // member.room)
            for member in model.linear.members
        ]
        others = [sum(size for setting, size in sizes if setting in alike) for alike in (OF_TEXTS, OF_TABLES)]
        left_out = min(others) if model.pool is not None else 0  # as members for the other kind of rows are
        evidence = model.record.evidence
        evidence_bytes = size_of(evidence.blocks, evidence.n_features) // evidence.n_features
        parts = OF_FEATURES if model.pool is not None else 1
        feature_bytes = parts * (sum(size for _, size in sizes) - left_out + evidence_bytes + DICTIONARY)
        most = self.limit * 15 // 16 // feature_bytes  # something is kept of the stream, whatever the features
        return most if most >= FEWEST else None

    def check_beginning(self, make: Callable[[int], Model], n_features: int) -> None:
        """Raise a ModelError if a model, made for a number of features, would begin with so many, and take more."""
        if self.limit and n_features > SMALL:
            needed = n_features / SMALL * _feature_bytes(make(SMALL), FIRST)
            if needed > self.limit:
                raise self._error(n_features, needed)

    def make_room(self, model: Model, n_features: int) -> None:
        """Let a pool put parts to sleep until there is room for so many features, or raise a ModelError."""
        if not self.limit:
            return
        needed, lines = self._needed(model, n_features), list[str]()
        while needed > self.limit and model.pool is not None and (name := model.pool.put_to_sleep()) is not None:
            lines.append(
                f"the model with {n_features:,} features would take {shown(needed)}, more than the "
                f"{shown(self.limit)} of `memory_limit`: goes on without {name}"
            )
            needed = self._needed(model, n_features)
        if needed > self.limit:
            raise self._error(n_features, needed)
        for line in lines:
            self.tell(line)

    def _error(self, n_features: int, needed: float) -> ModelError:
        """The error of features that there is no room for."""
        return ModelError(
            f"{n_features:,} features would take {shown(needed)} of memory, more than the {shown(self.limit)} of "
            "`memory_limit`; hash them to fewer (`hash_bits`), leave out columns of ids (`ignore`), or raise it"
        )

    def _needed(self, model: Model, n_features: int) -> float:
        """Bytes with so many features; room for them doubles."""
        dictionary_bytes = DICTIONARY * (self.most or 0)
        rooms = [member.room for member in model.linear.members]
        room = max(rooms, default=n_features)
        growth = 0.0 if n_features <= room else max(n_features, 2 * room) / room - 1.0
        further = growth * _feature_bytes(model, min(room, FIRST))  # Newton's matrices do not grow beyond
        return dictionary_bytes + model_bytes(model) + further
