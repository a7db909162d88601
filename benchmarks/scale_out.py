"""Learning over shards: what is lost against one machine, and how fast two workers are.

`losses` cuts data sets into shards and compares test losses with `train` and `fit` on one machine (root mean square in
regression). Which process learns a shard changes no byte, so the shards are learned here, one after the other. `speed`
compares the rows a second of workers on this machine with those of one process.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from common import keep, kept
from datasets import Split, available, load
from pyarrow import compute, parquet

import tunefree
from tunefree.distributed import phases
from tunefree.distributed.engines import Here
from tunefree.distributed.shards import Cut, count_range, ranges_to_count, shards_of
from tunefree.stream.batch import BadRows
from tunefree.stream.source import open_source
from tunefree.workflows import training
from tunefree.workflows.plan import Plan
from tunefree.workflows.prediction import predict
from tunefree.workflows.targets import target_of

SETS = ("adult", "covtype", "mnist", "letter_recognition", "diamonds", "flights_3m")


def of(trained: Any, test: pa.Table) -> float:
    """The mean loss of test rows; in regression its root."""
    model, found = trained.model, predict(trained, open_source(test), BadRows(), labelled=True)
    losses = [model.losses(target_of(model.task, own.batch), own.predictions) for own in found]
    mean = float(np.nanmean(np.concatenate(losses)))
    return mean**0.5 if model.task == "regression" else mean


def over_shards(train: pa.Table, target: str, n_shards: int, tell: Any) -> Any:
    """The model of so many shards."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.parquet"
        parquet.write_table(train, path, row_group_size=-(-len(train) // n_shards))
        source, cut = open_source(path), Cut(1)
        shards = shards_of(source, [count_range(*own) for own in ranges_to_count(source, cut)], cut)
        return phases.learn(Here(), phases.Parts(shards, [[] for _ in shards]), Plan(target=target), tell)


def ordered(split: Split, order: str) -> Split:
    """Training rows as they are; sorted by class; or with every second column missing in seven eighths of all rows.

    These are the last rows, so most shards do not have the columns. Test rows lack them as often.
    """
    if order == "given":
        return split
    if order == "class":
        by_class = np.argsort(split.targets(split.train), kind="stable")
        return split._replace(train=split.train.take(pa.array(by_class)))
    columns = [name for name in split.train.column_names if name != split.data.target][1::2]
    return split._replace(train=without(split.train, columns), test=without(split.test, columns))


def spaced(n_rows: int, most: int) -> np.ndarray:
    """The numbers of at most so many rows, equally spaced, so that data in temporal order are of all times."""
    return np.arange(0, n_rows, max(-(-n_rows // most), 1))


def without(table: pa.Table, columns: list[str]) -> pa.Table:
    """A table whose first eighth alone has some columns."""
    known = pa.array(np.arange(len(table)) < len(table) // 8)
    for name in columns:
        place, nothing = table.column_names.index(name), pa.scalar(None, table.schema.field(name).type)
        table = table.set_column(place, name, compute.if_else(known, table[name], nothing))
    return table


def fitted(split: Split) -> float:
    """The test loss of the estimator's ``fit``."""
    from sklearn.metrics import log_loss, root_mean_squared_error

    regresses, target = split.data.kind == "regression", split.data.target
    made = tunefree.TuneFreeRegressor() if regresses else tunefree.TuneFreeClassifier()
    made.fit(split.train.drop_columns([target]).to_pandas(), split.train[target].to_pandas())
    X, y = split.test.drop_columns([target]).to_pandas(), split.test[target].to_pandas()
    if regresses:
        return float(root_mean_squared_error(y, made.predict(X)))
    return float(log_loss(y, made.predict_proba(X), labels=made.classes_))


def on_one_machine(split: Split, fits: bool) -> dict[str, float]:
    """Test losses of ``train`` and ``fit``, which are kept from an earlier call with the same rows."""
    name = (
        f"{split.data.name}, {len(split.train):,} rows, {sum(own.null_count for own in split.train.columns):,} missing"
    )
    found = kept("scale_out").get(name, {})
    if "train" not in found:
        trained = training.train(open_source(split.train), Plan(target=split.data.target))
        found["train"] = of(trained, split.test)
        keep("scale_out", name, found)
    if fits and "fit" not in found and split.data.kind != "text":
        found["fit"] = fitted(split)
        keep("scale_out", name, found)
    return found


def losses(names: list[str], shards: list[int], orders: list[str], most_rows: int, sample: int, fits: bool) -> None:
    """Compare test losses."""
    phases.SAMPLE = sample
    for data in available(names):
        split = load(data)
        split = split._replace(train=split.train.take(pa.array(spaced(len(split.train), most_rows))))
        for order in orders:
            given = ordered(split, order)
            compared = on_one_machine(given if order == "missing" else split, fits)
            for n_shards in shards:
                start = time.perf_counter()
                loss = of(over_shards(given.train, data.target, n_shards, lambda line: None), given.test)
                seconds = time.perf_counter() - start
                others = ", ".join(f"{name} {own:.5g} ({loss / own - 1:+.1%})" for name, own in compared.items())
                print(
                    f"{data.name}, {len(split.train):,} rows, {n_shards} shards, {order}: {loss:.5g},"
                    f" {seconds:.0f} s; {others}",
                    flush=True,
                )


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


def speed(n_rows: int, n_workers: int, repeats: int) -> None:
    """Rows a second of one process and of workers, in turn; the seconds of each round."""
    from distributed import Client
    from tunefree.distributed import local_cluster, train

    with tempfile.TemporaryDirectory() as folder:
        small, large = (generated(rows, Path(folder)) for rows in (2**17, n_rows))
        times: dict[str, list[float]] = {"one process": [], f"{n_workers} workers": []}
        with (
            local_cluster(n_workers, dashboard_address="127.0.0.1:0") as cluster,
            Client(cluster) as client,
        ):
            for path in (small, *[large] * repeats):  # the first compiles
                start = time.perf_counter()
                training.train(open_source(path), Plan(target="y"))
                middle = time.perf_counter()
                lines: list[tuple[float, str]] = []
                train(client, path, "y", tell=lambda line, own=lines: own.append((time.perf_counter(), line)))
                if path is large:
                    times["one process"].append(middle - start)
                    times[f"{n_workers} workers"].append(time.perf_counter() - middle)
            for before, (now, line) in zip([middle, *(own for own, _ in lines)], lines, strict=False):
                print(f"{now - before:7.1f} s  {line}")
        for name, own in times.items():
            print(f"{name}: {n_rows / np.median(own):,.0f} rows/s (median of {repeats})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command")
    of_losses = commands.add_parser("losses")
    of_losses.add_argument("names", nargs="*", default=list(SETS))
    of_losses.add_argument("--shards", type=int, nargs="*", default=[16, 64])
    of_losses.add_argument("--orders", nargs="*", default=["given", "class"])
    of_losses.add_argument("--most-rows", type=int, default=1_000_000)
    of_losses.add_argument("--sample", type=int, default=phases.SAMPLE, help="rows of the common start")
    of_losses.add_argument("--no-fit", dest="fits", action="store_false")
    of_speed = commands.add_parser("speed")
    of_speed.add_argument("--rows", type=int, default=5_000_000)
    of_speed.add_argument("--workers", type=int, default=2)
    of_speed.add_argument("--repeats", type=int, default=5)
    given = vars(parser.parse_args())
    command = given.pop("command")
    if command == "losses":
        losses(**given)
    elif command == "speed":
        speed(given["rows"], given["workers"], given["repeats"])
    else:
        losses(["adult"], [16], ["given"], 10**6, phases.SAMPLE, True)


if __name__ == "__main__":
    main()
