"""Whether a training can be gone on with: what has changed since its checkpoint was made."""

from __future__ import annotations

import hashlib
import os
from typing import Any

from tunefree.core.errors import DataError, ModelError
from tunefree.stream.source import Source
from tunefree.workflows.plan import Plan

SAMPLED, BLOCK = 2**22, 2**14  # bytes of a file in its digest, and of a block of them


def check_kind(trained: Any, source: Source) -> None:
    """Raise an error if a source is of another kind than the rows that a model was trained on.

    Raises
    ------
    DataError
    """
    if source.kind != trained.kind:
        problem = f"the model was trained on {trained.kind} data, this is {source.kind}"
        raise DataError(problem, source.name, remedy="give data of the same kind, or pass --format")


def file_sizes(source: Source) -> list[int]:
    """Bytes of the files of a source, 0 of standard input; none of a table in memory."""
    return [0 if file == "-" else os.stat(file).st_size for file in source.files]


def file_times(source: Source) -> list[int]:
    """When the files of a source were written last, in ns, 0 of standard input."""
    return [0 if file == "-" else max(os.stat(file).st_mtime_ns, 0) for file in source.files]


def file_digests(source: Source, sizes: list[int]) -> list[str]:
    """A digest of each file of a source, of its first so many bytes; empty of standard input.

    Of up to SAMPLED bytes all are read, of more as many blocks at equal distances, the first and the last among them.
    """
    return ["" if file == "-" else _digest(file, size) for file, size in zip(source.files, sizes, strict=False)]


def _digest(file: str, size: int) -> str:
    found, last = hashlib.blake2b(size.to_bytes(8, "little"), digest_size=16), max(size - BLOCK, 0)
    n_blocks = min(-(-size // BLOCK), SAMPLED // BLOCK)
    with open(file, "rb") as opened:
        for place in range(n_blocks):
            opened.seek(last * place // max(n_blocks - 1, 1) if size > SAMPLED else BLOCK * place)
            found.update(opened.read(min(BLOCK, size - opened.tell())))
    return found.hexdigest()


def check_resumable(trained: Any, source: Source, plan: Plan, watcher: Any, checkpoint: Any) -> None:
    """Raise an error if training cannot go on from a checkpoint, and tell what has grown since it was made.

    Parameters
    ----------
    trained : Trained
        What the checkpoint holds.
    source : Source
    plan : Plan
    watcher : Watcher
        Is told of files that have grown where their new rows will be learned.
    checkpoint : path
        For messages.

    Raises
    ------
    ModelError
        If it is of another plan, complete, or of data that have changed before the place to go on from.
    """
    if trained.plan != plan or trained.kind != source.kind:
        raise ModelError(f"{checkpoint}: made with other options; give the options of the first run, or remove it")
    progress = trained.progress
    if progress.complete:
        problem = "holds a model that is complete, so that no row would be learned"
        raise ModelError(f"{checkpoint}: {problem}; pass it as --from to learn further rows, or remove it")
    before, now = progress.sizes, file_sizes(source)
    if not before:
        return
    changed = [i for i, size in enumerate(now) if i >= len(before) or size != before[i]]
    shrunk = len(now) < len(before) or any(now[i] < before[i] for i in changed if i < len(before))
    differ = progress.digests != file_digests(source, before)[: len(progress.digests)]
    if not changed and not differ:
        _tell_of_times(source, trained, watcher)
        return
    if plan.shuffle is not None or shrunk or differ or any(i < progress.position.file for i in changed):
        problem = "the data have changed since it was made" + ("" if differ else ", at places that it has passed")
        raise ModelError(f"{checkpoint}: {problem}; remove it to begin anew, or give the data of the first run")
    _tell_of_times(source, trained, watcher)
    passed = f" in pass {progress.number + 1}, which earlier passes have not seen" if progress.number else ""
    for i in changed:
        more = now[i] - (before[i] if i < len(before) else 0)
        grown = f"{source.files[i]} has grown by {more:,} bytes since the checkpoint"
        watcher.tell(f"{grown}; its new rows are learned as well{passed}")


def _tell_of_times(source: Source, trained: Any, watcher: Any) -> None:
    """Tell of large files that were written since, of which only blocks were compared; files in a random order are
    written anew each time."""
    if trained.plan.shuffle is not None:
        return
    progress = trained.progress
    for file, size, then, now in zip(source.files, progress.sizes, progress.times, file_times(source), strict=False):
        if then != now and size > SAMPLED:
            watcher.tell(
                f"{file} was written after training began; {SAMPLED // BLOCK} blocks of it are as they were, and the"
                " rest was not compared. If rows that were learned have changed, remove the checkpoint and begin anew"
            )
