"""Learning over shards: what is lost against one process, and how fast workers are.

``losses`` cuts data sets into shards, as their rows lie and sorted by class, and divides the test loss of the model by
that of ``train`` on the same rows in one process (root mean square in regression). Which worker learns a shard changes
no byte.
``speed`` compares the rows a second of workers on this machine with those of one process, in turn.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
from common import names_in, parser_of
from datasets import Split
from pyarrow import parquet

import tunefree
from distributed import Client
from generations import test_loss
from tunefree.distributed import local_cluster, train

SETS = ("adult", "covtype", "mnist", "letter_recognition", "diamonds", "flights_3m")
SHARDS = (16, 64)
MOST_ROWS = 1_000_000  # rows learned, equally spaced, so that data in temporal order are of all times
WORKERS = 2
REPEATS = 5


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
                one = test_loss(tunefree.train(rows.train, target=data.target), rows)
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


def speed(n_rows: int, repeats: int) -> None:
    """Rows a second of one process and of workers, in turn; the seconds of each round."""
    with tempfile.TemporaryDirectory() as folder, workers(WORKERS) as client:
        small, large = (generated(rows, Path(folder)) for rows in (min(2**17, n_rows // 2), n_rows))
        seconds: dict[str, list[float]] = {"one process": [], f"{WORKERS} workers": []}
        for path in (small, *[large] * repeats):  # the first compiles
            start = time.perf_counter()
            tunefree.train(path, target="y")
            middle = time.perf_counter()
            rounds: list[tuple[float, str]] = []
            train(client, path, "y", tell=lambda line, rounds=rounds: rounds.append((time.perf_counter(), line)))
            if path is large:
                seconds["one process"].append(middle - start)
                seconds[f"{WORKERS} workers"].append(time.perf_counter() - middle)
        for before, (now, line) in zip([middle, *(moment for moment, _ in rounds)], rounds, strict=False):
            print(f"{now - before:7.1f} s  {line}")
        for name, values in seconds.items():
            print(f"{name}: {n_rows / statistics.median(values):,.0f} rows/s (median of {repeats})")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure losses or speed."""
    parser = parser_of(__doc__)
    parser.add_argument("benchmark", nargs="?", choices=("all", "losses", "speed"), default="all")
    parser.add_argument("--sets", type=names_in, default=SETS, help="of losses")
    parser.add_argument("--rows", type=int, default=5_000_000, help="of speed")
    options = parser.parse_args(arguments)
    if options.benchmark != "speed":
        losses(("adult",) if options.quick else options.sets, options.quick)
    if options.benchmark != "losses":
        speed(*((2000, 1) if options.quick else (options.rows, REPEATS)))


if __name__ == "__main__":
    main()
