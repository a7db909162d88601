"""Limits on the memory of a model during training.

Before a pool exceeds the limit, it puts to sleep the parts with the least predictive value for their memory, and
reports each. If no such part is left, training ends with an error before the memory is allocated. Rows, the reader and
the dictionary of features are not counted.

Under a limit set by the user, categories and words of tables may take half of a pool's limit, or all of a single
learner's limit; further features are forgotten (:mod:`tunefree.stream.feature_ids`). This memory is allocated at once.
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

SHARE = 4  # the default limit is 1 / SHARE of the machine's memory
CHECKED = 2**12  # rows between checks of a limit set by the user
CHUNK_SIZE = 2**18  # bytes of text per chunk; several chunks are buffered as columns and as rows
DICTIONARY = 96  # bytes per category or word in the dictionary, with its name and evidence, under a limit
OF_FEATURES = 2  # 1 / OF_FEATURES of a pool's limit is for features, the rest for generations and their rows
FEWEST = 2**11  # features; under a lower limit none is forgotten, and training ends if they do not fit
SMALL = 2**11  # features of a model that measures the memory per feature
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def limit_of(text: str | None) -> int:
    """Parse a limit to bytes; by default a quarter of the machine's memory, 0 if unknown.

    >>> limit_of("1.5G"), limit_of("300M")
    (1610612736, 314572800)
    """
    if text is None:
        return machine.memory() // SHARE
    match = re.fullmatch(r"(\d+\.?\d*)([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if match is None or float(match[1]) == 0.0:
        raise ModelError(f"`memory_limit={text!r}`: write a size such as 500M or 4G")
    limit, memory = int(float(match[1]) * _UNITS[match[2].upper()]), machine.memory()
    if limit > memory > 0:
        raise ModelError(f"`memory_limit={text!r}`: the machine has {shown(memory)}; write less")
    return limit


def small_chunks(file: str) -> TextFile:
    """A file that is read in small chunks."""
    return (file if isinstance(file, TextFile) else TextFile(file)).but(chunk_size=CHUNK_SIZE)


def model_bytes(model: Model) -> int:
    """Bytes of a model, including its rows with first occurrences of features."""
    logs = [log for member in model.linear.members if (log := getattr(member, "log", None)) is not None]
    row_bytes = sum(map(size_of, [model.record.log, vars(model.linear.meetings), *logs]))
    return _feature_bytes(model) + row_bytes + (0 if model.pool is None else model.pool.nbytes)


def _feature_bytes(model: Model, capacity: int = 0) -> int:
    """Bytes of feature statistics; with ``capacity``, only of growing arrays, which have at least this capacity."""
    members = model.linear.members if model.predictor.bank is None else model.predictor.bank.members
    return sum(size_of(part, capacity) for part in (*(member.state for member in members), model.record.evidence))


def shown(size: float) -> str:
    """Format a number of bytes with a unit.

    >>> shown(3 * 2**30), shown(5e6), shown(300_000), shown(500)
    ('3.0 GiB', '5 MiB', '293 KiB', '500 bytes')
    """
    units = {"GiB": 2**30, "MiB": 2**20, "KiB": 2**10}
    unit = next((unit for unit, scale in units.items() if size >= 2 * scale or size >= scale == 2**30), None)
    return f"{size:.0f} bytes" if unit is None else f"{size / units[unit]:.{int(unit == 'GiB')}f} {unit}"


class MemoryLimit:
    """Keeps the memory of a model below a limit while it learns.

    ``limit``: bytes; 0 for none.
    ``tell``: called with messages for the user.
    ``is_stated``: whether the user set the limit, under which categories and words of tables are then forgotten.
    ``most``: largest number of features known at a time; None if none is forgotten.
    """

    def __init__(self, limit: int, tell: Callable[[str], None], is_stated: bool = False) -> None:
        self.limit, self.tell = limit, tell
        self.is_stated, self.most = is_stated, None

    def most_features(self, model: Model) -> int | None:
        """The largest number of categories and words known at a time; None if none may be forgotten."""
        if not self.is_stated or model.predictor.bank is not None:
            return None
        sizes = [
            (member.setting, size_of(member.state.blocks, member.room) // member.room)
            for member in model.linear.members
        ]
        kind_bytes = [sum(size for setting, size in sizes if setting in alike) for alike in (OF_TEXTS, OF_TABLES)]
        omitted = min(kind_bytes) if model.pool is not None else 0  # members for the other kind of rows are left out
        evidence = model.record.evidence
        evidence_bytes = size_of(evidence.blocks, evidence.n_features) // evidence.n_features
        parts = OF_FEATURES if model.pool is not None else 1
        feature_bytes = parts * (sum(size for _, size in sizes) - omitted + evidence_bytes + DICTIONARY)
        most = self.limit * 15 // 16 // feature_bytes  # the rest is for samples of the stream
        return most if most >= FEWEST else None

    def check_beginning(self, make: Callable[[int], Model], n_features: int) -> None:
        """Raise a ModelError if a model with the initial number of features would exceed the limit."""
        if self.limit and n_features > SMALL:
            needed = n_features / SMALL * _feature_bytes(make(SMALL), FIRST)
            if needed > self.limit:
                raise self._error(n_features, needed)

    def make_room(self, model: Model, n_features: int) -> None:
        """Let a pool put parts to sleep until ``n_features`` features fit, or raise a ModelError."""
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
        """The error for features that do not fit."""
        return ModelError(
            f"{n_features:,} features would take {shown(needed)} of memory, more than the {shown(self.limit)} of "
            "`memory_limit`; hash them to fewer (`hash_bits`), leave out columns of ids (`ignore`), or raise it"
        )

    def _needed(self, model: Model, n_features: int) -> float:
        """Bytes of a model with ``n_features`` features; a capacity that is exceeded doubles."""
        dictionary_bytes = DICTIONARY * (self.most or 0)
        capacities = [member.room for member in model.linear.members]
        capacity = max(capacities, default=n_features)
        growth = 0.0 if n_features <= capacity else max(n_features, 2 * capacity) / capacity - 1.0
        added_bytes = growth * _feature_bytes(model, min(capacity, FIRST))  # Newton matrices do not grow further
        return dictionary_bytes + model_bytes(model) + added_bytes
