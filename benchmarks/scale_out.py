"""Learning over shards: what is lost against one process, and how fast workers are.

``losses`` cuts data sets into shards, as their rows lie and sorted by class, and divides the test loss of the model by
that of ``train`` on the same rows in one process (root mean square in regression). Which worker learns a shard changes
no byte.
``speed`` compares the rows a second of workers on this machine with those of one process, in turn; of both it gives
processor seconds, too.
``plan`` measures bytes and processor seconds of each stage in one process, and computes what many workers would take.
"""

from __future__ import annotations

import math
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import datasets
import numpy as np
import pyarrow as pa
from common import names_in, parser_of
from datasets import Split
from pyarrow import parquet

import tunefree
from distributed import Client
from generations import test_loss
from tunefree.distributed import local_cluster, train, training
from tunefree.distributed.engines import FAN_IN, Engine
from tunefree.distributed.shards import Cut, shards_of
from tunefree.model_files.plan import Plan
from tunefree.stream.source import open_source

SETS = ("adult", "covtype", "mnist", "letter_recognition", "diamonds", "flights_3m")
SHARDS = (16, 64)
MOST_ROWS = 1_000_000  # rows learned, equally spaced, so that data in temporal order are of all times
WORKERS = 2
REPEATS = 5
PLANNED = ((10**8, 10), (10**9, 100), (10**10, 100), (10**10, 1000))  # rows, and workers
SHARDS_OF_A_WORKER = 8
NETWORK = 1.25e9  # bytes a second that a worker sends and takes: 10 Gbit/s
TASKS = 1000  # to measure what one costs the scheduler
STAGES_OF_SHARDS = ("read", "survey", "prepare", "sample", "last", "shard")


def size_of(value: Any) -> int:
    """The bytes of the arrays and texts in nested tuples, lists and dicts, and 8 for anything else."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, dict):
        return sum(size_of(key) + size_of(part) for key, part in value.items())
    return sum(map(size_of, value)) if isinstance(value, list | tuple) else 8


@contextmanager
def workers(number: int) -> Iterator[Client]:
    """A client of workers on this machine."""
    with local_cluster(number, dashboard_address="127.0.0.1:0") as cluster, Client(cluster) as client:
        yield client


def loss_over_shards(client: Client, split: Split, n_shards: int) -> float:
    """The test loss of the model of so many shards."""
    with tempfile.TemporaryDirectory() as folder:
        data, model = Path(folder) / "train.parquet", Path(folder) / "shards.model"
        parquet.write_table(split.train, data, row_group_size=-(-len(split.train) // n_shards))
        train(client, data, split.data.target, shard_rows=1).save(model)
        return test_loss(tunefree.load(model), split)


def sorted_by_class(split: Split) -> Split:
    """Training rows sorted by class, or by their numbers."""
    return split._replace(train=split.train.take(pa.array(np.argsort(split.targets(split.train), kind="stable"))))


def losses(names: Sequence[str], quick: bool) -> None:
    """Compare test losses."""
    with workers(1) as client:
        for data in datasets.available(list(names)):
            split = datasets.few(datasets.load(data)) if quick else datasets.load(data)
            step = -(-len(split.train) // MOST_ROWS)
            split = split._replace(train=split.train.take(pa.array(np.arange(0, len(split.train), step))))
            for order, rows in (("as they lie", split), ("sorted by class", sorted_by_class(split))):
                one = test_loss(tunefree.train(rows.train, target=data.target, shuffle=False), rows)
                print(f"{data.name}, {len(rows.train):,} rows {order}, one process: {one:.5g}", flush=True)
                for n_shards in (2,) if quick else SHARDS:
                    start = time.perf_counter()
                    loss = loss_over_shards(client, rows, n_shards)
                    seconds = time.perf_counter() - start
                    figures = f"{loss:.5g}, {loss / one:.3f} of one process's, {seconds:.0f} s"
                    print(f"{data.name}, {n_shards} shards, {order}: {figures}", flush=True)


def generated(n_rows: int, folder: Path) -> Path:
    """A table of ten numbers, three categories and a class, in row groups of 2^18 rows."""
    path, random = folder / f"{n_rows}.parquet", np.random.default_rng(0)
    columns: dict[str, Any] = {f"x{k}": random.normal(size=n_rows) for k in range(10)}
    margin = 0.5 * columns["x0"] - columns["x1"] + 0.3 * columns["x2"] ** 2
    for k in range(3):
        codes = random.integers(0, 20, n_rows)
        columns[f"c{k}"] = pa.DictionaryArray.from_arrays(codes.astype(np.int32), [f"v{i}" for i in range(20)])
        margin += 0.1 * (codes % 5 - 2)
    is_high = random.random(n_rows) < 1.0 / (1.0 + np.exp(-margin))
    columns["y"] = pa.DictionaryArray.from_arrays(is_high.astype(np.int32), ["low", "high"])
    parquet.write_table(pa.table(columns), path, row_group_size=2**18)
    return path


def processor_seconds(client: Client) -> float:
    """Of this process and of the workers."""
    return time.process_time() + sum(client.run(time.process_time).values())


def speed(n_rows: int, repeats: int) -> None:
    """Rows a second and processor seconds of one process and of workers, in turn; the seconds of each round."""
    with tempfile.TemporaryDirectory() as folder, workers(WORKERS) as client:
        small, large = (generated(rows, Path(folder)) for rows in (min(2**18, n_rows // 2), n_rows))
        figures: dict[str, list[tuple[float, float]]] = {"one process": [], f"{WORKERS} workers": []}
        rounds: list[tuple[float, str]] = []

        def spread(path: Path) -> None:
            rounds.clear()
            train(client, path, "y", tell=lambda line: rounds.append((time.perf_counter(), line)))

        for path in (small, *[large] * repeats):  # the first compiles
            for name, learn in zip(figures, (lambda file: tunefree.train(file, target="y"), spread), strict=True):
                start, processor = time.perf_counter(), processor_seconds(client)
                learn(path)
                if path is large:
                    figures[name].append((time.perf_counter() - start, processor_seconds(client) - processor))
        for before, (now, line) in zip([start, *(moment for moment, _ in rounds)], rounds, strict=False):
            print(f"{now - before:7.1f} s  {line}")
        for name, values in figures.items():
            seconds, processor = map(statistics.median, zip(*values, strict=True))
            rate = f"{n_rows / seconds:,.0f} rows/s"
            print(f"{name}: {seconds:.1f} s, {rate}, {processor:.1f} s of processors (median of {repeats})")


class Stage(NamedTuple):
    """What the tasks of a stage took together."""

    tasks: int = 0
    seconds: float = 0.0  # of processors
    taken: int = 0  # bytes of their arguments
    returned: int = 0  # bytes


class Measured(Engine):
    """Calls functions in this process, and measures each stage."""

    def __init__(self) -> None:
        self.stages: dict[str, Stage] = {}

    def each(self, stage: str, function: Callable[..., Any], items: Sequence[tuple[Any, ...]]) -> list[Any]:
        """What a function returns for each of some tuples of arguments."""
        start = time.process_time()
        results = [function(*item) for item in items]
        name, seconds = stage.rstrip("0123456789"), time.process_time() - start
        before = self.stages.get(name, Stage())
        taken, returned = before.taken + size_of(list(items)), before.returned + size_of(results)
        self.stages[name] = Stage(before.tasks + len(items), before.seconds + seconds, taken, returned)
        return results

    def values(self, handles: Sequence[Any]) -> list[Any]:
        """Handles are the values themselves."""
        return list(handles)


def stages_of(n_rows: int) -> dict[str, Stage]:
    """The stages of a training over shards of the generated table."""
    with tempfile.TemporaryDirectory() as folder:
        source, engine = open_source(generated(n_rows, Path(folder))), Measured()
        shards = shards_of(source, [], Cut(1, most_rows=-(-n_rows // SHARDS_OF_A_WORKER)))
        training.learn(engine, training.Parts(shards, [[] for _ in shards]), Plan(target="y"), lambda line: None)
    return engine.stages


def seconds_of_a_task() -> float:
    """What a task costs the process of the client and the scheduler."""
    with workers(1) as client:
        start = time.process_time()
        client.gather([client.submit(abs, number) for number in range(TASKS)])
        return (time.process_time() - start) / TASKS


def plan(n_rows: int) -> None:
    """Tell what each stage takes, and what many rows and workers would."""
    stages = stages_of(n_rows)
    print(f"{n_rows:,} rows in {stages['shard'].tasks} shards: processor seconds; megabytes that tasks take and return")
    for name, stage in stages.items():
        print(f"{name:>12} {stage.tasks:4} {stage.seconds:8.2f} {stage.taken / 1e6:8.1f} {stage.returned / 1e6:8.1f}")
    task = seconds_of_a_task()
    print(f"a task costs the scheduler {1e3 * task:.2f} ms")
    phases_of = [f"{name}, s" for name in ("read", "scheduler", "start", "shards", "sums", "join", "all")]
    columns = ["rows", "workers", "shards", *phases_of, "GB a worker"]
    print("| " + " | ".join(columns) + " |", "|" + "---|" * len(columns), sep="\n")
    for planned in PLANNED:
        print("| " + " | ".join(planned_row(stages, n_rows, task, *planned)) + " |")


def planned_row(stages: dict[str, Stage], n_rows: int, task: float, n_planned: int, n_workers: int) -> list[str]:
    """One row of the table: seconds of each phase, and the memory of a worker in GB."""
    shards, of_worker, n_shards = n_workers * SHARDS_OF_A_WORKER, n_planned / n_workers, stages["shard"].tasks
    reading = (stages["read"].seconds + stages["prepare"].seconds) * of_worker / n_rows
    surveys = stages["survey"].returned / n_shards * shards / NETWORK
    scheduler = task * shards * (len(STAGES_OF_SHARDS) + 1)
    to_workers = stages["following"].returned * math.ceil(math.log2(n_workers)) / NETWORK  # who has it hands it on
    started, measured = training.rows_of_start(n_planned), training.rows_of_start(n_rows)
    start = started / measured * stages["start"].seconds / WORKERS + stages["sample"].returned / NETWORK + to_workers
    of_shards = stages["shard"].seconds * of_worker / (n_rows - measured - training.LAST)
    level = FAN_IN * (stages["shard-sum"].seconds + stages["shard"].returned / NETWORK) / n_shards
    summing = level * (math.log(shards, FAN_IN) + shards / FAN_IN / n_workers)
    join = stages["join"].seconds + 2.0 * stages["join"].returned / NETWORK
    seconds = reading + surveys, scheduler, start, of_shards, summing, join
    memory = 2.0 * stages["read"].returned * of_worker / n_rows / 1e9  # while features are numbered anew
    numbers = *seconds, sum(seconds), memory
    return [f"{n_planned:,}", f"{n_workers:,}", f"{shards:,}", *(f"{number:,.3g}" for number in numbers)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure losses or speed, or plan."""
    parser = parser_of(__doc__)
    parser.add_argument("benchmark", nargs="?", choices=("all", "losses", "speed", "plan"), default="all")
    parser.add_argument("--sets", type=names_in, default=SETS, help="of losses")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of speed and of the plan")
    options = parser.parse_args(arguments)
    if options.benchmark in ("all", "losses"):
        losses(("adult",) if options.quick else options.sets, options.quick)
    if options.benchmark in ("all", "speed"):
        speed(*((2000, 1) if options.quick else (options.rows, REPEATS)))
    if options.benchmark in ("all", "plan"):
        sizes = (600, 100) if options.quick else (training.SAMPLE, training.LAST)
        with mock.patch.multiple(training, SAMPLE=sizes[0], LAST=sizes[1]):
            plan(2000 if options.quick else options.rows)


if __name__ == "__main__":
    main()
