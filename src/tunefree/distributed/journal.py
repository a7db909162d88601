"""The journal of a training over shards: the sums of each round, from which it can be gone on with.

What the coordinator does between rounds depends on these sums alone. So whoever resumes reads the rows anew, takes the
sums of the rounds that were done from the journal, and ends with the same bytes as if nothing had happened.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tunefree.core import storage
from tunefree.core.errors import ModelError
from tunefree.distributed.engines import Engine

KIND = "journal"
ARRAY = "$array"  # the key of the place of an array


class Journal:
    """Sums of rounds, in a file that is written whole after each; nothing is kept without a path.

    If it ``resumes``, rounds that the file has are not done again.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, resumes: bool = False) -> None:
        self.path = None if path is None else Path(path)
        self.identity = ""
        self.arrays: dict[str, np.ndarray] = {}
        self.rounds: dict[str, str] = {}  # JSON
        self.resumes = resumes and self.path is not None and self.path.exists()

    def begin(self, *described: Any) -> None:
        """Training begins, of data and a plan that are so described; a ModelError if the file is of another one."""
        text = json.dumps(described, sort_keys=True, default=str)
        self.identity = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        if not self.resumes or self.path is None:
            return
        self.arrays, header = storage.load(self.path)
        if header.get("kind") != KIND or header.get("identity") != self.identity:
            problem = "it is no checkpoint of this training over shards: the data or the options have changed"
            raise ModelError(f"{self.path}: {problem}; remove it to begin anew")
        self.rounds = header["rounds"]

    def round(self, engine: Engine, stage: str, learn: Callable[[], Any], restored: Callable[[Any], Any]) -> Any:
        """The handle of what a round learned: from the file, or learned now and then written to it.

        A file has nested lists, of which ``restored`` makes the value of ``learn``. Without a file, what was learned
        stays with the workers.
        """
        if stage in self.rounds:
            return engine.hold(stage, restored(json.loads(self.rounds[stage], object_hook=self._restored)))
        handle = learn()
        if self.path is not None:
            self.rounds[stage] = json.dumps(engine.value(handle), default=self._reference)
            storage.save(self.path, self.arrays, {"kind": KIND, "identity": self.identity, "rounds": self.rounds})
        return handle

    def _reference(self, array: np.ndarray) -> dict[str, str]:
        """The place of an array in the file, for JSON."""
        name = str(len(self.arrays))
        self.arrays[name] = array
        return {ARRAY: name}

    def _restored(self, pairs: dict[str, Any]) -> Any:
        """The array at a place in the file, or any other dict."""
        return self.arrays[pairs[ARRAY]] if ARRAY in pairs else pairs
