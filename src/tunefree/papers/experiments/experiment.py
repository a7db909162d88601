"""Definition and execution of an experiment: parts are computed in parallel and cached, then reported.

An experiment is divided into parts. Each finished part is written to disk, so an interrupted run continues from the
finished parts. Parts may depend on the results of earlier ones: ``Experiment.parts`` is called again with the results
so far until all parts that it lists are finished.
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
Point = tuple[Any, ...]  # names and numbers, which tell a part of an experiment from the others
Results = Mapping[Point, Arrays]
Progress = Callable[[int, int, int], None]  # parts finished, of how many, and how many of these in an earlier run
ENDING = ".arrays"  # suffix of the files of parts


class Claim(NamedTuple):
    """A statement of a paper, and whether it holds here."""

    statement: str
    holds: bool
    measured: str


class Report(NamedTuple):
    """The report of an experiment: a figure, its numbers, and the paper's claims."""

    draw: Callable[[Any], None]  # draws on a matplotlib figure
    inches: tuple[float, float]  # width and height of the figure
    numbers: list[dict[str, Any]]  # rows of the table of plotted values
    claims: list[Claim]
    differences: str  # between the experiment and the paper's


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
    quick: Any  # a NamedTuple of settings that are smaller than its defaults, the paper's size
    report: Callable[[Any, Results], Report]  # from settings and all results
    parts: Callable[[Any, Results], list[Point]] = lambda settings, results: []  # from settings and results so far
    work: Callable[..., Arrays] = dict  # computes a part from (files, settings, *point)
    parts_from: str = ""  # name of the experiment whose parts are used, if not its own
    sets: tuple[str, ...] = ()  # data sets that are needed
    lacks: str = ""  # differences of the full size from the paper's


class Request(NamedTuple):
    """Options of a run."""

    output: Path  # folder for the results
    folder: Path | None = None  # folder of the data files
    quick: bool = False
    jobs: int = 1  # processes


def settings_of(experiment: Experiment, request: Request) -> Any:
    """The experiment's settings, full or quick."""
    return experiment.quick if request.quick else type(experiment.quick)()


def files_of(experiment: Experiment, request: Request) -> dict[str, Path]:
    """The data files that an experiment needs; raises DataError if one is missing."""
    return {name: data.locate(name, request.folder) for name in experiment.sets}


def store_of(experiment: Experiment, request: Request) -> Store:
    """The cache of the experiment's parts."""
    size = "-quick" if request.quick else ""
    sources = digest_of(experiment.work.__module__, files_of(experiment, request).values())
    folder = request.output / "parts" / f"{experiment.parts_from or experiment.name}{size}"
    return Store(folder, settings_of(experiment, request), sources)


def compute(experiment: Experiment, request: Request, progress: Progress = lambda *numbers: None) -> Results:
    """Compute all parts of an experiment that are not cached; the results of all."""
    files, store = files_of(experiment, request), store_of(experiment, request)
    results: dict[Point, Arrays] = {}
    kept = 0
    while waiting := [point for point in experiment.parts(store.settings, results) if point not in results]:
        cached = {point: arrays for point in waiting if (arrays := store.load(point)) is not None}
        missing = [point for point in dict.fromkeys(waiting) if point not in cached]
        results |= cached
        kept, total = kept + len(cached), len(results) + len(missing)
        progress(len(results), total, kept)
        for point, arrays in _computed(experiment.work, files, missing, store, request.jobs):
            results[point] = arrays
            progress(len(results), total, kept)
    return results


def _computed(
    work: Callable[..., Arrays], files: dict[str, Path], points: list[Point], store: Store, jobs: int
) -> Iterator[tuple[Point, Arrays]]:
    """Yield parts as they are finished, in this process or in several."""
    processes = Parallel(jobs, "loky", return_as="generator_unordered", batch_size=1)
    try:
        yield from processes(delayed(_finished)(work, files, point, store) for point in points)
    except BrokenProcessPool:
        raise ModelError(
            "a worker process was killed, most likely because memory ran out; run the same command again with "
            "fewer --jobs, it continues from the finished parts"
        ) from None


def _finished(work: Callable[..., Arrays], files: dict[str, Path], point: Point, store: Store) -> tuple[Point, Arrays]:
    """Compute a part and write it to the cache."""
    arrays = work(files, store.settings, *point)
    store.save(point, arrays)
    return point, arrays


class Store(NamedTuple):
    """Cache of parts on disk; each file has the settings and the point of its part, and a digest of the code and the
    data that it was made of, so that nothing else matches."""

    folder: Path
    settings: Any
    sources: str

    def load(self, point: Point) -> Arrays | None:
        """The cached result, or None if it is missing, damaged or of other settings."""
        try:
            arrays, header = storage.load(self._path(point))
        except ModelError:
            return None
        return arrays if self._identity(point).items() <= header.items() else None

    def save(self, point: Point, arrays: Arrays) -> None:
        """Write a part atomically."""
        self.folder.mkdir(parents=True, exist_ok=True)
        storage.save(self._path(point), arrays, self._identity(point))

    def clear(self) -> None:
        """Delete all cached parts."""
        for path in self.folder.glob(f"*{ENDING}"):
            path.unlink()

    def _path(self, point: Point) -> Path:
        name = "-".join(f"{value:g}" if isinstance(value, float) else str(value) for value in point)
        return self.folder / f"{name.replace(' ', '')}{ENDING}"

    def _identity(self, point: Point) -> dict[str, Any]:
        """The header entries that identify a cached part."""
        return {"part": repr((self.settings, point)), "sources": self.sources}
