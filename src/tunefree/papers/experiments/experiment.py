"""Definition and execution of an experiment: parts are computed in parallel and cached, then reported.

An experiment is divided into parts. Each finished part is written to disk, so an interrupted run continues from the
finished parts. Parts may depend on the results of earlier ones: ``Experiment.parts`` is called again with the results
so far until all parts that it names are finished.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from tunefree.core import storage
from tunefree.core.errors import ModelError
from tunefree.papers.experiments import data
from tunefree.papers.experiments.sources import digest_of

Arrays = dict[str, np.ndarray]
Results = Mapping[str, Arrays]  # of parts, by name
Progress = Callable[[int, int, int], None]  # parts finished, of how many, and how many of these in an earlier run
ENDING = ".safetensors"  # suffix of the files of parts


class Part(NamedTuple):
    """A part of an experiment."""

    name: str  # of its file, without suffix
    arguments: dict[str, Any]  # of the experiment's ``work``: numbers, names and lists of them


class Report(NamedTuple):
    """The report of an experiment: a figure, its numbers and a text."""

    draw: Callable[[Any], None]  # draws on a matplotlib figure
    inches: tuple[float, float]  # width and height of the figure
    numbers: list[dict[str, Any]]  # rows of the table of plotted values
    reported: str  # the paper's results
    results: str  # the results here
    differences: str  # where they differ, and why


def moments(name: str, values: np.ndarray) -> dict[str, float]:
    """Mean and standard deviation over the runs, for a row of the table.

    Examples
    --------
    >>> moments("error", np.array([1.0, 3.0]))
    {'error_mean': 2.0, 'error_sd': 1.0}
    """
    return {f"{name}_mean": float(values.mean()), f"{name}_sd": float(values.std())}


@dataclass(frozen=True)
class Experiment:
    """A figure or table of a paper."""

    name: str  # on the command line
    title: str  # which figure or table of which paper
    full: Any  # NamedTuple of settings: the paper's size
    quick: Any  # smaller settings of the same type
    report: Callable[[Any, Results], Report]  # from settings and all results
    parts: Callable[[Any, Results], list[Part]] = lambda settings, results: []  # from settings and results so far
    work: Callable[..., Arrays] = dict  # computes a part from (files, **arguments)
    parts_from: str = ""  # name of the experiment whose parts are used, if not its own
    sets: tuple[str, ...] = ()  # data sets that are needed
    lacks: str = ""  # what the full size lacks of the paper's


class Request(NamedTuple):
    """Options of a run."""

    output: Path  # folder for the results
    folder: Path | None = None  # folder of the data files
    quick: bool = False
    jobs: int = 1  # processes


def settings_of(experiment: Experiment, request: Request) -> Any:
    """The experiment's settings, full or quick."""
    return experiment.quick if request.quick else experiment.full


def files_of(experiment: Experiment, request: Request) -> dict[str, Path]:
    """The data files that an experiment needs; raises DataError if one is missing."""
    return {name: data.locate(name, request.folder) for name in experiment.sets}


def store_of(experiment: Experiment, request: Request) -> Store:
    """The cache of the experiment's parts."""
    size = "-quick" if request.quick else ""
    sources = digest_of(experiment.work.__module__, files_of(experiment, request).values())
    return Store(request.output / "parts" / f"{experiment.parts_from or experiment.name}{size}", sources)


def compute(experiment: Experiment, request: Request, progress: Progress = lambda *numbers: None) -> Results:
    """Compute all parts of an experiment that are not cached; the results of all, by name."""
    settings, files, store = (
        settings_of(experiment, request),
        files_of(experiment, request),
        store_of(experiment, request),
    )
    results: dict[str, Arrays] = {}
    kept = 0
    while waiting := {part.name: part for part in experiment.parts(settings, results) if part.name not in results}:
        cached = {name: arrays for name, part in waiting.items() if (arrays := store.load(part)) is not None}
        missing = [part for name, part in waiting.items() if name not in cached]
        results |= cached
        kept, total = kept + len(cached), len(results) + len(missing)
        progress(len(results), total, kept)
        for name, arrays in _computed(experiment.work, files, missing, store, request.jobs):
            results[name] = arrays
            progress(len(results), total, kept)
    return results


def _computed(
    work: Callable[..., Arrays], files: dict[str, Path], parts: list[Part], store: Store, jobs: int
) -> Iterator[tuple[str, Arrays]]:
    """Yield parts as they are finished, in this process or in several."""
    processes = Parallel(jobs, "loky", return_as="generator_unordered", batch_size=1)
    try:
        yield from processes(delayed(_finished)(work, files, part, store) for part in parts)
    except BrokenProcessPool:
        raise ModelError(
            "a worker process was killed, most likely because memory ran out; run the same command again with "
            "fewer --jobs, it continues from the finished parts"
        ) from None


def _finished(work: Callable[..., Arrays], files: dict[str, Path], part: Part, store: Store) -> tuple[str, Arrays]:
    """Compute a part and write it to the cache."""
    arrays = work(files, **part.arguments)
    store.save(part, arrays)
    return part.name, arrays


class Store(NamedTuple):
    """Cache of parts on disk; each file has the arguments of its part, and a digest of the code and the data that it
    was made of, so that nothing else matches."""

    folder: Path
    sources: str

    def load(self, part: Part) -> Arrays | None:
        """The cached result, or None if it is missing, damaged or of other arguments."""
        try:
            arrays, header = storage.load(self._path(part))
        except ModelError:
            return None
        return arrays if self._identity(part).items() <= header.items() else None

    def save(self, part: Part, arrays: Arrays) -> None:
        """Write a part atomically."""
        self.folder.mkdir(parents=True, exist_ok=True)
        storage.save(self._path(part), arrays, self._identity(part))

    def clear(self) -> None:
        """Delete all cached parts."""
        for path in self.folder.glob(f"*{ENDING}"):
            path.unlink()

    def _path(self, part: Part) -> Path:
        return self.folder / f"{part.name}{ENDING}"

    def _identity(self, part: Part) -> dict[str, Any]:
        """The header entries that identify a cached part."""
        return {"arguments": part.arguments, "sources": self.sources}
