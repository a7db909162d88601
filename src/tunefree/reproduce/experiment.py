"""What an experiment is, and how it is run: parts computed side by side and kept, then a picture, numbers and a text.

An experiment is cut into parts that do not depend on each other. Each part is written to the disk when it is done, so a
run that was stopped goes on where it was. Parts may depend on the results of earlier ones: ``Experiment.parts`` is
asked again, with what is known by then, until it names no part that is not done.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import storage
from tunefree.core.errors import ModelError
from tunefree.reproduce import data

Arrays = dict[str, np.ndarray]
Results = Mapping[str, Arrays]  # of parts, by their names
ENDING = ".safetensors"  # of files that hold parts


class Part(NamedTuple):
    """A part of an experiment."""

    name: str  # of its file, without ending
    arguments: dict[str, Any]  # of the experiment's ``work``: numbers, names and lists of them


class Report(NamedTuple):
    """What came out of an experiment."""

    draw: Callable[[Any], None]  # draws on a matplotlib figure
    inches: tuple[float, float]  # width and height of the figure
    numbers: list[dict[str, Any]]  # behind the figure, a row each
    reported: str  # what the paper reports
    found: str  # what came out
    differences: str  # where they differ, and why


@dataclass(frozen=True)
class Experiment:
    """A figure or table of a paper."""

    name: str  # as the command line takes it
    title: str  # which figure or table of which paper
    full: Any  # NamedTuple of settings: the paper's size
    quick: Any  # the same settings, smaller
    parts: Callable[[Any, Results], list[Part]]  # from settings and what is done
    work: Callable[..., Arrays]  # computes a part from (files, **arguments)
    report: Callable[[Any, Results], Report]  # from settings and all results
    shares: str = ""  # name of the experiment whose parts these are, if not its own
    sets: tuple[str, ...] = ()  # data sets that must be there


class Watcher:
    """Told how a run goes on; this one says nothing."""

    def begin(self, name: str, title: str) -> None:
        """An experiment begins."""

    def progress(self, done: int, total: int, kept: int) -> None:
        """So many parts are done, ``kept`` of them from an earlier run."""

    def end(self, name: str, files: list[Path]) -> None:
        """An experiment is done and these files were written."""

    def stop(self) -> None:
        """Nothing more will be told."""


class Request(NamedTuple):
    """How to run experiments."""

    output: Path  # folder for what comes out
    folder: Path | None = None  # where data files are
    quick: bool = False
    jobs: int = 1  # processes


def settings_of(experiment: Experiment, request: Request) -> Any:
    """The experiment's settings in the size asked for."""
    return experiment.quick if request.quick else experiment.full


def files_of(experiment: Experiment, request: Request) -> dict[str, Path]:
    """The data files that an experiment needs; raises DataError if one is missing."""
    return {name: data.locate(name, request.folder) for name in experiment.sets}


def store_of(experiment: Experiment, request: Request) -> Store:
    """Where the experiment's parts are kept."""
    size = "-quick" if request.quick else ""
    return Store(request.output / "parts" / f"{experiment.shares or experiment.name}{size}")


def compute(experiment: Experiment, request: Request, watcher: Watcher) -> Results:
    """All parts of an experiment: those kept from an earlier run, the others now."""
    settings, files = settings_of(experiment, request), files_of(experiment, request)
    store = store_of(experiment, request)
    results: dict[str, Arrays] = {}
    kept = 0
    while waiting := [part for part in experiment.parts(settings, results) if part.name not in results]:
        missing = []
        for part in waiting:
            arrays = store.load(part)
            if arrays is None:
                missing.append(part)
            else:
                results[part.name] = arrays
        kept, total = kept + len(waiting) - len(missing), len(results) + len(missing)
        watcher.progress(len(results), total, kept)
        for name, arrays in _computed(experiment.work, files, missing, store, request.jobs):
            results[name] = arrays
            watcher.progress(len(results), total, kept)
    return results


def _computed(
    work: Callable[..., Arrays], files: dict[str, Path], parts: list[Part], store: Store, jobs: int
) -> Iterator[tuple[str, Arrays]]:
    """Parts as they get done, in this process or in several."""
    if jobs == 1 or len(parts) < 2:
        yield from (_finished(work, files, part, store) for part in parts)
        return
    with _processes(min(jobs, len(parts))) as processes:
        futures: list[Future[tuple[str, Arrays]]] = [
            processes.submit(_finished, work, files, part, store) for part in parts
        ]
        try:
            yield from (future.result() for future in as_completed(futures))
        except BrokenProcessPool:
            raise ModelError(
                "a process was ended from outside, most likely for want of memory; run the same command again with "
                "fewer --jobs, which goes on where it was"
            ) from None


@contextmanager
def _processes(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that end at once when anything goes wrong here, whatever they are at."""
    # Spawned: threads, which compiled code and matplotlib may have started, do not survive a fork.
    executor = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _follow_parent)
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    executor.shutdown()


def _follow_parent() -> None:
    """In a process of ours: leave interrupts to the parent, and end when it has ended in whatever way."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _finished(work: Callable[..., Arrays], files: dict[str, Path], part: Part, store: Store) -> tuple[str, Arrays]:
    """Compute a part and keep it."""
    arrays = work(files, **part.arguments)
    store.save(part, arrays)
    return part.name, arrays


class Store(NamedTuple):
    """Parts on the disk, each a file with its arguments, so that parts of other settings are never taken for these."""

    folder: Path

    def load(self, part: Part) -> Arrays | None:
        """What was kept, or None if there is nothing, or something else, or a file that was damaged."""
        try:
            arrays, header = storage.load(self._path(part))
        except ModelError:
            return None
        return arrays if _identity(part).items() <= header.items() else None

    def save(self, part: Part, arrays: Arrays) -> None:
        """Keep a part: the file is whole or not there."""
        self.folder.mkdir(parents=True, exist_ok=True)
        storage.save(self._path(part), arrays, _identity(part))

    def clear(self) -> None:
        """Forget what was kept."""
        for path in self.folder.glob(f"*{ENDING}"):
            path.unlink()

    def _path(self, part: Part) -> Path:
        return self.folder / f"{part.name}{ENDING}"


def _identity(part: Part) -> dict[str, Any]:
    """By what a kept part is known."""
    return {"arguments": part.arguments, "version": version("tunefree")}
