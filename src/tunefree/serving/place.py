"""Where a challenger is: its model on disk, the event up to which that has learned, and how it compares so far.

```text
people.store/challenger/
    state.json                which is replaced as a whole, and names the model by its event
    000000000123.model        the model that has learned all events up to 123
    lock                      while its process runs
```
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from tunefree.core.errors import ModelError
from tunefree.core.storage import make_folder, whole_file
from tunefree.model_files.trained import Trained
from tunefree.serving.settings import CHALLENGER
from tunefree.theory.superiority import Superiority

STATE = "state.json"
CHAMPION_SINCE = "champion since"  # fact of the journal: the event after which the model that is served is another one


@dataclass
class Place:
    """How far a challenger is: what is saved with its model."""

    name: str  # of the file that it was taken from
    sequence: int  # of the last event that it has learned
    since: int = 0  # event since which it is compared with the model that is served
    rows: int = 0  # learned here
    refused: int = 0  # events that it could not learn
    comparison: Superiority = field(default_factory=Superiority)

    @classmethod
    def of(cls, kept: dict[str, Any]) -> Place:
        """The place that a dict of JSON holds."""
        return cls(**{**kept, "comparison": Superiority(**kept["comparison"])})

    @classmethod
    def read(cls, folder: Path) -> Place | None:
        """The place of the challenger in a store; None if there is no challenger."""
        path = folder / CHALLENGER / STATE
        if not path.exists():
            return None
        try:
            place = cls.of(json.loads(path.read_text()))
            for part in (place, place.comparison):
                _check_types(part)
            return place
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise ModelError(f"{path}: is damaged ({error}); remove the folder {path.parent}") from None

    def file(self, folder: Path) -> Path:
        """The model at this place."""
        return folder / CHALLENGER / f"{self.sequence:012d}.model"

    def save(self, folder: Path, model: Trained) -> None:
        """Let this be the place of the challenger, with its model.

        Raises
        ------
        ModelError
            If it cannot be written; the place before is the one of the challenger then.
        """
        make_folder(folder / CHALLENGER)
        model.save(self.file(folder))
        with whole_file(folder / CHALLENGER / STATE) as file:
            file.write(json.dumps(asdict(self)).encode())
        flush(folder / CHALLENGER)
        for path in (folder / CHALLENGER).glob("*.model"):
            if path != self.file(folder):
                path.unlink()


def _check_types(part: Any) -> None:
    for of in fields(part):
        value = getattr(part, of.name)
        if type(value).__name__ != of.type or (of.type == "int" and value < 0):
            raise TypeError(f"{of.name} is {value!r}")


def forget(folder: Path) -> None:
    """Remove the challenger of a store, whose process has ended."""
    (folder / CHALLENGER / STATE).unlink(missing_ok=True)
    for path in (folder / CHALLENGER).glob("*.model"):
        path.unlink()


def flush(folder: Path) -> None:
    """Bring the names of files in a folder to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
