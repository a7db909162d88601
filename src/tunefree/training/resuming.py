"""Checkpoints of a training, and resuming from them if plan and data have not changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from typing import Any

from tunefree.core.errors import DataError, ModelError
from tunefree.core.parameters import require
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.stream import formats
from tunefree.stream.batch import Position
from tunefree.stream.source import Source
from tunefree.stream.text import plain_size
from tunefree.training.callbacks import Callback, Step
from tunefree.training.stopping import Stop, Stopped

PIECE = 2**20  # bytes hashed at a time


def check_kind(trained: Trained, source: Source) -> None:
    """Raise a DataError if the kind of a source differs from the training data of a model."""
    if source.kind != trained.kind:
        problem = f"the model was trained on {trained.kind} data, this is {source.kind}"
        raise DataError(problem, source.name, remedy="give data of the same kind, or pass `format`")


def file_sizes(source: Source) -> list[int]:
    """Sizes of the files of a source in bytes, 0 for standard input; empty for a table in memory."""
    return [_size(file) for file in source.files]


class RunningDigests:
    """Digests of the bytes of a source's files that have been read; the files are read a second time for this.

    If a position has no byte offset in a file (compressed text, text that is not UTF-8, columnar files), the whole file
    is hashed when it is begun. Standard input is left out.
    """

    def __init__(self, source: Source) -> None:
        self.files = source.files
        self.is_text = source.format is not None and formats.named(source.format).text
        self.sizes: list[int] = []  # hashed bytes of each file that was begun
        self._hashes: list[Any] = []

    @property
    def digests(self) -> list[str]:
        """The digest of the hashed bytes of each file."""
        return [file.hexdigest() for file in self._hashes]

    def extend(self, position: Position) -> None:
        """Hash the bytes before a position; a DataError if a file can no longer be read."""
        for i in range(max(len(self.sizes) - 1, 0), min(position.file + 1, len(self.files))):
            file = self.files[i]
            try:
                is_plain = i == position.file and self.is_text and plain_size(file) is not None
                self.take(i, position.offset if is_plain else _size(file))
            except OSError as error:
                problem = f"it cannot be read a second time, for the checkpoint ({error.strerror})"
                raise DataError(problem, file, remedy="leave it in place while it is learned from") from None

    def take(self, i: int, size: int) -> None:
        """Hash a file up to a size."""
        if i == len(self.sizes):
            self.sizes.append(0)
            self._hashes.append(hashlib.blake2b(digest_size=16))
        if size <= self.sizes[i] or self.files[i] == "-":
            return
        with open(self.files[i], "rb", buffering=0) as stream:
            stream.seek(self.sizes[i])
            while self.sizes[i] < size and (block := stream.read(min(PIECE, size - self.sizes[i]))):
                self._hashes[i].update(block)
                self.sizes[i] += len(block)


def _size(file: str) -> int:
    return 0 if file == "-" else os.stat(file).st_size


class Checkpoints(Callback):
    """Saves a training to a file at intervals; see :func:`tunefree.train`."""

    may_end = False

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        save_every: int,
        resume: bool,
        tell: Callable[[str], None],
        stop: Stop,
    ) -> None:
        require("save_every", int, save_every, low=0)
        for name, value in (("save_every", save_every), ("resume", resume)):
            if value and path is None:
                raise ModelError(f"`{name}` is of a checkpoint; leave it out, or name the file of one by `checkpoint`")
        self.path, self.rows, self.tell, self.request = path, save_every, tell, stop
        self.resumes = resume and path is not None and os.path.exists(path)
        self._digests: RunningDigests | None = None
        self._latest: tuple[Trained, Position] | None = None  # state and position that are not saved yet
        self.saved: tuple[str, int] | None = None  # saved rows in words, and the number of the next row

    def begin(self, trained: Trained, source: Source) -> None:
        """Called when training begins or resumes; the source has its rows in the order of learning."""
        self._digests, self._source = self._digests or RunningDigests(source), source
        if self.resumes:
            self._note_saved(trained)

    def is_due(self, before: int, rows: int) -> bool:
        """Whether a checkpoint is due when the number of rows grows from ``before`` to ``rows``."""
        return bool(self.rows) and before // self.rows < rows // self.rows

    def load(self, source: Source, plan: Plan) -> Trained:
        """The training to resume; a ModelError if it is complete, or its plan or data have changed."""
        trained = Trained.load(str(self.path))
        if trained.plan != plan or trained.kind != source.kind:
            problem = "made with other options; give the options of the first run, or remove it"
            raise ModelError(f"{self.path}: {problem}")
        progress = trained.progress
        if progress.complete:
            problem = "holds a model that is complete, so that no row would be learned"
            raise ModelError(f"{self.path}: {problem}; pass it as `earlier` to learn further rows, or remove it")
        saved_sizes, sizes = progress.sizes, file_sizes(source)
        if not saved_sizes:
            return trained
        changed = [i for i, size in enumerate(sizes) if i >= len(saved_sizes) or size != saved_sizes[i]]
        self._digests = digests = RunningDigests(source)
        for i, size in enumerate(progress.read[: len(sizes)]):
            digests.take(i, size)
        differ = (digests.sizes, digests.digests) != (progress.read, progress.read_digests)
        is_behind = any(i < progress.position.file for i in changed)
        if differ or len(sizes) < len(saved_sizes) or is_behind or (plan.shuffle and changed):
            problem = "the data have changed since it was made" + ("" if differ else ", at places that it has passed")
            remedy = "remove it to begin anew, or give the data of the first run"
            raise ModelError(f"{self.path}: {problem}; {remedy}")
        in_pass = f" in pass {progress.number + 1}, which earlier passes have not seen" if progress.number else ""
        for i in changed:
            added = sizes[i] - (saved_sizes[i] if i < len(saved_sizes) else 0)
            change = f"{abs(added):,} bytes {'more' if added > 0 else 'less'} than at the checkpoint"
            self.tell(f"{source.files[i]} has {change}; its rows from there on are learned as they are now{in_pass}")
        return trained

    def step(self, trained: Trained, step: Step) -> None:
        """Save the training after a batch if due, and end it if requested; if this fails, learning continues."""
        self._latest = trained, step.batch.position
        if step.batch.checkpoint is None:
            return
        try:
            self._save(step.batch.checkpoint)
        except ModelError as error:
            self.tell(f"not saved: {error}; learning goes on, and the next save tries again")
        else:
            if self.request.number:
                raise Stopped

    def stop(self) -> None:
        """Save a training that was requested to end; a ModelError if it cannot be saved."""
        if self._latest is not None and self.path is not None:
            self._save()

    def keep(self) -> None:
        """Save a training after an error in its rows; a failure to save is reported, and not raised."""
        try:
            self.stop()
        except ModelError as error:
            self.tell(f"not saved: {error}")

    def _save(self, encoder: Any = None) -> None:
        """Save the training, with the given state of the encoder if the reader is ahead of learning."""
        assert self._latest is not None
        assert self._digests is not None
        trained, position = self._latest
        self._digests.extend(position)
        trained.progress.read, trained.progress.read_digests = [*self._digests.sizes], self._digests.digests
        trained.save(str(self.path), encoder)
        self._latest = None  # everything is saved
        self._note_saved(trained)

    def _note_saved(self, trained: Trained) -> None:
        prefix = f"pass {trained.progress.number + 1}, " if trained.plan.passes > 1 else ""
        self.saved = f"{prefix}{trained.progress.rows:,} rows", trained.progress.position.row + 1

    def outcome(self, stop: Stop, is_error: bool = False) -> str:
        """A message about the saved file of an interrupted training, and how to continue."""
        if self.saved is None:
            return (
                f"{'the learned rows are not saved' if stop.learns else 'no row was learned'}, and no model was written"
            )
        (saved_rows, row), source = self.saved, self._source
        remedy = "Give the same command with `resume=True` to go on from there"
        # In a file that is not text, correcting a row changes the bytes before it.
        if not source.rewindable or (is_error and not formats.named(str(source.format)).text):
            remedy = f"Go on with the rows from number {row:,} on by `earlier={str(self.path)!r}`"
        return f"{self.path} holds the model after {saved_rows}. {remedy}"
