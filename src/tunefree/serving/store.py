"""A model in operation on disk: one folder with numbered versions, a journal, and a lock.

A version is written as a file first, and counts from the transaction on that names it in the journal. So the process
may end at any moment: the current version and the events of the journal that follow it are the model.
"""

from __future__ import annotations

import math
import os
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from tunefree.core.errors import ModelError, nearest
from tunefree.core.storage import digest_of, make_folder, only_writer
from tunefree.model_files.trained import Trained, ended
from tunefree.serving.journal import Journal, Version
from tunefree.serving.settings import CURRENT, INCOMING, JOURNAL, VERSIONS, is_store

ORIGIN = "origin.part"


class Store:
    """A folder of a model in operation, which nothing else writes while it is open.

    A new store begins with ``model``; without a folder it is in memory and has no versions. ``durability`` is that of
    the journal, and so many versions are ``kept``, with the rows since the oldest of them. Raises a ModelError if the
    folder cannot be written, is written by another process, or there is neither a store nor a model.
    """

    def __init__(
        self, folder: Path | None, model: Trained | None = None, durability: str = "power", kept: int = 5
    ) -> None:
        self.folder, self._kept, self._open = folder, kept, ExitStack()
        try:
            if folder is not None:
                if model is None and not is_store(folder):
                    raise ModelError(f"{folder}: is no store of a model; name a model to begin one with")
                for part in (folder, folder / VERSIONS, folder / INCOMING):
                    make_folder(part)
                self._open.enter_context(only_writer(folder / "lock", folder))
            self.journal = Journal(None if folder is None else folder / JOURNAL, durability)
            self._open.callback(self.journal.close)
            self._begin(model)
            self._tidy()
        except BaseException:
            self._open.close()
            raise

    def _begin(self, model: Trained | None) -> None:
        """Save the model that a new store begins with; an old one must have begun with it, if there is one."""
        digest = None
        if model is not None and self.folder is not None:
            model.save(self.folder / ORIGIN)
            digest = digest_of(self.folder / ORIGIN)
            (self.folder / ORIGIN).unlink()
        if not self.versions:
            assert model is not None
            self.add(model, 0, "the model to begin with")
            self.journal.state("origin", digest)
        elif digest not in (None, self.journal.facts.get("origin")):
            remedy = "leave the model out to go on with what is there, or name another folder"
            raise ModelError(f"{self.folder}: began with another model; {remedy}")

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the lock, so that other processes can write."""
        self._open.close()

    def _tidy(self) -> None:
        """Remove files that the journal does not name, and let the link be right: the process may have ended before."""
        if self.folder is None:
            return
        named = {self.file(version.number).name for version in self.versions}
        for path in (self.folder / VERSIONS).iterdir():
            if path.name not in named:
                path.unlink()
        link, target = self.folder / CURRENT, Path(VERSIONS) / self.file(self.versions[-1].number).name
        if not link.is_symlink() or link.readlink() != target:
            beside = self.folder / f"{CURRENT}.part"
            beside.unlink(missing_ok=True)
            beside.symlink_to(target)
            os.replace(beside, link)

    def file(self, number: int) -> Path:
        """The file of a version."""
        assert self.folder is not None
        return self.folder / VERSIONS / f"{number:06d}.model"

    @property
    def versions(self) -> list[Version]:
        """The saved versions, the oldest first; the last is the current one."""
        return self.journal.versions

    def add(self, trained: Trained, sequence: int, reason: str) -> Version:
        """Save a model that has learned all events up to one, as the current version.

        If it cannot be saved, which raises a ModelError or a StoreError, the version before stays the current one.
        """
        number, created = 1 + max((version.number for version in self.versions), default=0), datetime.now(UTC)
        rows, loss = 0, math.nan
        for metrics in trained.progress.progressive[:1]:
            rows, loss = metrics.rows, metrics.mean_loss()
        known = None if math.isnan(loss) else loss
        version = Version(number, sequence, rows, known, created.isoformat(timespec="seconds"), reason)
        if self.folder is not None:
            (trained if trained.progress.complete else ended(trained)).save(self.file(number))
            handle = os.open(self.folder / VERSIONS, os.O_RDONLY)  # which brings the name of the file to the disk
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        with self.journal.transaction():
            self.journal.add_version(version, self._kept)
        self._tidy()
        return version

    def load(self, number: int) -> Trained:
        """A version that is kept."""
        if self.folder is None or number not in [version.number for version in self.versions]:
            kept = ", ".join(str(version.number) for version in self.versions)
            raise ModelError(f"there is no version {number}; those that are kept are {kept}")
        return Trained.load(self.file(number))

    def incoming(self, name: str) -> Trained:
        """A model that was put into the folder for incoming ones."""
        if self.folder is None:
            raise ModelError("there is no store, whose folder could have a model to take; name one by `output`")
        names = sorted(path.name for path in (self.folder / INCOMING).iterdir())
        if name not in names:
            remedy = nearest(name, names, "files there") if names else "put it there first"
            raise ModelError(f"the store's folder {INCOMING!r} has no file {name!r}; {remedy}")
        return Trained.load(self.folder / INCOMING / name)

    def current(self) -> Trained:
        """The current version, without the events that follow it."""
        return self.load(self.versions[-1].number)
