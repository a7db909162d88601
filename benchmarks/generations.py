"""One pass of the pool against peers: tables, streams, small tables, texts, copies, time.

``tables``, ``streams``, ``late``, ``frozen``, ``small``, ``texts``, ``copies``, ``time``, or all of them, print a line
of JSON for each set (see ``generation_sets.py``) and then geometric means. ``--door`` is ``train``, which takes the
rows in their order; or ``fit``; or none, which measures peers only (see ``peers.py``) and needs no more of tunefree
than its data. Figures of peers are kept in ``--peers FILE`` (benchmarks/data/generations.json) and not measured again,
so peers may come from an environment of their own: ``generations.py tables --door none`` there, ``generations.py
tables`` here. Those that are not installed are left out. ``--sets a,b`` selects sets, ``--again`` measures all anew.

Losses are log-losses, or root mean squared errors of numbers. Seconds are those of the processor, of one thread, after
code was compiled on the first rows of the same table. A set that fails prints its error.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import datasets
import generation_sets as sets
import numpy as np
import peers
import pyarrow as pa
from common import FOLDER, WARM, names_in, parser_of
from datasets import DataSet, Split
from peers import LEAST, Figures, log_loss, loss_of

DOORS = ("train", "fit", "none")
DELAY, BLOCK = 250, 25  # rows until a label comes; rows that are predicted at once
CHUNK = 100_000  # rows predicted at once
WEIGHT, WEIGHTS = 3.7, "weight of rows"  # of all rows, and its column


class Run:
    """The options of a run, the figures of peers in a JSON file by benchmark, set and model, and which sets failed."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.failed = options, list[str]()
        self.path = None if options.quick else options.peers

    def sized(self, split: Split) -> Split:
        """All rows of a split, or the first ones with ``--quick``."""
        return datasets.few(split) if self.options.quick else split

    def sets(self, names: Iterable[str], few: str) -> tuple[str, ...]:
        """The names of ``--sets``, or all of them, or with ``--quick`` one that takes little time."""
        return self.options.sets or ((few,) if self.options.quick else tuple(names))

    def figures(self) -> dict[str, Figures]:
        """All figures of peers that are kept."""
        return json.loads(self.path.read_text()) if self.path and self.path.exists() else {}

    def peer(self, key: str, measure: Callable[[], Figures]) -> Figures:
        """Figures that are kept, or else measured and kept; none if the peer is not installed."""
        known = self.figures()
        if key in known and not self.options.again:
            return known[key]
        try:
            figures = measure()
        except ImportError:
            return {}
        if self.path:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            part = self.path.with_suffix(".part")
            part.write_text(json.dumps(known | {key: figures}, indent=1))
            part.replace(self.path)
        return figures

    def ours(self, measure: Callable[[], Figures]) -> Figures:
        """Figures of tunefree, which are never kept; none if it is not asked for."""
        return {} if self.options.door == "none" else measure()

    def lines(self, names: Iterable[str], measure: Callable[[str], Figures]) -> list[Figures]:
        """Print and return the line of each set; one that fails prints its error."""
        lines = []
        for name in names:
            try:
                lines.append(show({"set": name} | measure(name)))
            except FileNotFoundError as error:
                show({"set": name, "skipped": str(error)})
            except Exception as error:
                traceback.print_exc()
                show({"set": name, "error": f"{type(error).__name__}: {error}"})
                self.failed.append(name)
        return lines


def one_thread(threads: int = 1) -> Any:
    """A context in which tunefree works in one thread, or as many as are named."""
    from tunefree.core.threads import at_most

    return at_most(threads)


def trained(door: str, data: DataSet, table: pa.Table, **options: Any) -> Any:
    """A model after one pass over the rows in their order, or after ``fit``."""
    import tunefree

    if door == "fit":
        return fitted(data, table, **options)
    task = "regression" if data.kind == "regression" else "classification"
    return tunefree.train(table, target=data.target, task=task, **{"shuffle": False, **options})


def estimator(classifies: bool) -> Any:
    """An estimator that works in one thread."""
    import tunefree

    return (tunefree.TuneFreeClassifier if classifies else tunefree.TuneFreeRegressor)(n_jobs=1)


def fitted(data: DataSet, table: pa.Table, weight: str | None = None) -> Any:
    """An estimator after ``fit``; ``weight`` is the column of the rows' weights."""
    weights = None if weight is None else table[weight].to_numpy()
    rows = table.drop_columns([data.target, *([] if weight is None else [weight])])
    model = estimator(data.kind != "regression")
    return model.fit(rows, table[data.target].to_numpy(), sample_weight=weights)


def probabilities(model: Any, rows: pa.Table, classes: list[str]) -> np.ndarray:
    """Probabilities of all classes, of which the model may not know some."""
    odds = model.predict_proba(rows)
    full = np.full((len(odds), len(classes)), LEAST)
    full[:, [classes.index(str(label)) for label in model.classes_]] = odds
    return full


def test_loss(model: Any, split: Split) -> float:
    """The loss on the test rows."""
    rows, classes, parts = split.test.drop_columns(split.data.target), split.classes, []
    for start in range(0, len(rows), CHUNK):
        part = rows.slice(start, CHUNK)
        parts.append(probabilities(model, part, classes) if classes else model.predict(part))
    return loss_of(np.concatenate(parts), split.targets(split.test), bool(classes))


def measured(door: str, split: Split, **options: Any) -> Figures:
    """Test loss and seconds of the processor; code is compiled before."""
    with one_thread():
        trained(door, split.data, split.train.slice(0, WARM), **options)
        start = time.process_time()
        model = trained(door, split.data, split.train, **options)
        seconds = time.process_time() - start
        return {"loss": test_loss(model, split), "seconds": seconds}


def over(figures: Figures, base: Figures, key: str = "loss") -> float | None:
    """A figure divided by that of another model, where both are known."""
    return figures[key] / base[key] if figures.get(key) and base.get(key) else None


def show(line: Figures) -> Figures:
    """Print a line of JSON without what is not known, numbers with five digits."""
    known = {key: value for key, value in line.items() if value is not None}
    short = {key: float(f"{value:.5g}") if isinstance(value, float) else value for key, value in known.items()}
    print(json.dumps(short), flush=True)
    return known


def means(title: str, lines: list[Figures]) -> None:
    """Print the geometric mean of each ratio."""
    ratios = {key for line in lines for key in line if "over" in key.split("_")}
    for key in sorted(ratios):
        values = [line[key] for line in lines if key in line]
        show({"mean of": title, key: math.exp(np.log(values).mean()), "sets": len(values)})


def tables(run: Run) -> None:
    """Test losses after one pass, over those of peers."""
    options = run.options

    def line(name: str) -> Figures:
        split = run.sized(sets.table(name))
        figures = run.ours(lambda: measured(options.door, split))
        row = {"rows": len(split.train), **figures}
        for peer, measure in peers.TABLES.items():
            base = run.peer(f"tables/{name}/{peer}", partial(measure, split))
            row |= {peer: base.get("loss"), f"over_{peer}": over(figures, base)}
            row |= {f"{peer}_seconds": base.get("seconds"), f"seconds_over_{peer}": over(figures, base, "seconds")}
            row |= {f"{peer}_{key}": base.get(key) for key in ("setting", "default")}
        return row

    names = sets.HALVES[options.half] if options.half else sets.CHOSEN + sets.OTHER + sets.BESIDE
    lines = run.lines(run.sets(names, "iris"), line)
    for half, members in sets.HALVES.items():
        means(half, [row for row in lines if row["set"] in members])
    means("both halves", [row for row in lines if row["set"] in sets.CHOSEN + sets.OTHER])


def progressive(door: str, data: DataSet, table: pa.Table, test: Split | None = None) -> Figures:
    """The mean loss of the rows, each predicted before it is learned, and that on the test rows of a split."""
    with one_thread():
        trained(door, data, table.slice(0, WARM))
        start = time.process_time()
        model = trained(door, data, table)
        seconds = time.process_time() - start
        loss = model.history()["loss"].to_pylist()[-1]
        figures = {"loss": loss, "seconds": seconds, "microseconds": 1e6 * seconds / len(table)}
        return figures if test is None else figures | {"test": test_loss(model, test)}


def streams(run: Run) -> None:
    """Progressive losses in the order of the rows, with those of peers and of the true probabilities."""

    def line(name: str) -> Figures:
        stream = sets.stream(name)
        table = stream.table.slice(0, datasets.FEW_TRAINED) if run.options.quick else stream.table
        figures = run.ours(lambda: progressive(run.options.door, stream.data, table))
        row = {"rows": len(table), **figures, "truth": stream.least}
        for peer, measure in peers.STREAMS.items():
            base = run.peer(f"streams/{name}/{peer}", partial(measure, stream.data, table))
            row |= {peer: base.get("loss"), f"over_{peer}": over(figures, base)}
        return row | {"over_truth": over(figures, {"loss": stream.least})}

    lines = run.lines(run.sets(sets.STREAMS, "none_trees"), line)
    means("streams", lines)
    means("generated streams", [row for row in lines if row["set"] in sets.GENERATED])


def late_labels(data: DataSet, table: pa.Table) -> Figures:
    """Progressive loss where each row is predicted by the model of the rows whose labels have come."""
    y, rows = table[data.target].to_numpy(), table.drop_columns(data.target)
    classes = sorted(set(y.tolist()))
    estimator(True).partial_fit(rows.slice(0, WARM), y[:WARM], classes=classes).predict_proba(rows.slice(0, 9))
    model, learned, total = estimator(True), 0, 0.0
    start = time.process_time()
    for first in range(0, len(table), BLOCK):
        known = max(first - DELAY + 1, 0)
        if known > learned:
            model.partial_fit(rows.slice(learned, known - learned), y[learned:known], classes=classes)
            learned = known
        truth = np.searchsorted(classes, y[first : first + BLOCK])
        odds = np.full((len(truth), len(classes)), 1 / len(classes))
        if learned:
            odds = probabilities(model, rows.slice(first, BLOCK), classes)
        total += log_loss(odds, truth) * len(truth)
    seconds = time.process_time() - start
    return {"loss": total / len(table), "seconds": seconds, "microseconds": 1e6 * seconds / len(table)}


def late(run: Run) -> None:
    """Progressive losses where labels come late, by ``partial_fit``."""

    def line(name: str) -> Figures:
        stream = sets.stream(name)
        table = stream.table.slice(0, datasets.FEW_TRAINED) if run.options.quick else stream.table
        return {"rows": len(table), **run.ours(lambda: late_labels(stream.data, table))}

    run.lines(run.sets(("elec2",), "none_linear"), line)


def frozen(run: Run) -> None:
    """The last third of a stream, predicted by the model of the first two thirds."""

    def line(name: str) -> Figures:
        split = run.sized(sets.past(name))
        figures = run.ours(lambda: measured(run.options.door, split))
        base = run.peer(f"frozen/{name}/vowpal", lambda: peers.vowpal_wabbit(split))
        row = {"rows": len(split.train), **figures, "vowpal": base.get("loss"), "over_vowpal": over(figures, base)}
        return row | {"vowpal_setting": base.get("setting")}

    means("frozen", run.lines(run.sets(("elec2", "flights", "flights_3m"), "elec2"), line))


def mean_of(splits: list[Split], measure: Callable[[Split], Figures]) -> Figures:
    """Mean figures over splits."""
    each_split = [measure(split) for split in splits]
    return {key: float(np.mean([figures[key] for figures in each_split])) for key in each_split[0]}


def small(run: Run) -> None:
    """Mean losses of five splits of small tables, over the best of a constant, a linear model and LightGBM."""

    def line(name: str) -> Figures:
        splits = list(sets.splits(name, 1 if run.options.quick else 5))
        figures = run.ours(lambda: mean_of(splits, lambda split: measured(run.options.door, split)))
        bases = {
            peer: run.peer(f"small/{name}/{peer}", partial(mean_of, splits, measure)).get("loss")
            for peer, measure in peers.SMALLS.items()
        }
        best = min((loss for loss in bases.values() if loss is not None), default=None)
        return {"rows": len(splits[0].train), **figures, **bases, "over_best": over(figures, {"loss": best})}

    lines = run.lines(run.sets(sets.SMALLS, "iris"), line)
    means("small tables", lines)
    means("of scikit-learn", [row for row in lines if row["set"] in sets.BUNDLED])


def text(run: Run) -> None:
    """Print losses, seconds and peak memory of one set of texts, measured in this process."""
    split = run.sized(datasets.load(sets.described(run.options.sets[0])))
    figures = progressive(run.options.door, split.data, split.train, split)
    print(json.dumps(figures | {"mebibytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def texts(run: Run) -> None:
    """Progressive and test losses, seconds and peak memory of texts, each in a process of its own."""

    def apart(name: str) -> Figures:
        command = [sys.executable, __file__, "text", "--sets", name, "--door", run.options.door]
        command += ["--quick"] if run.options.quick else []
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        return json.loads(done.stdout.splitlines()[-1])

    def line(name: str) -> Figures:
        split = run.sized(datasets.load(sets.described(name)))
        row = run.ours(lambda: apart(name))
        base = run.peer(f"texts/{name}/vowpal", lambda: peers.vowpal_wabbit(split))
        return row | {"vowpal": base.get("loss"), "setting": base.get("setting"), "default": base.get("default")}

    names = run.sets(sets.TEXTS, sets.TEXTS[-1])
    run.lines([name for name in names if sets.described(name).path.exists()], line)


def weighted(split: Split) -> Split:
    """All rows with the same weight, which is not 1."""
    column = pa.array(np.full(len(split.train), WEIGHT))
    return split._replace(train=split.train.append_column(WEIGHTS, column))


def copies(run: Run) -> None:
    """Test losses of rows that come five times, and of rows with weights that are all the same, over rows as usual."""

    def line(name: str) -> Figures:
        split, door = run.sized(sets.table(name)), run.options.door
        once = run.ours(lambda: measured(door, split))
        five = run.ours(lambda: measured(door, sets.copies(split)))
        heavy = run.ours(lambda: measured(door, weighted(split), sample_weight=WEIGHTS))
        losses = {"once": once.get("loss"), "five_times": five.get("loss"), "weighted": heavy.get("loss")}
        return losses | {"five_times_over_once": over(five, once), "weighted_over_once": over(heavy, once)}

    means("copies", run.lines(run.sets(("adult", "spambase", "satellite"), "breast_cancer"), line))


def times(run: Run) -> None:
    """Microseconds of the processor a row of adult's shape in one thread, and wall time with two threads over one."""

    def ours() -> Figures:
        data, table = sets.tiled(datasets.FEW_TRAINED if run.options.quick else run.options.rows)
        wall, work = {}, {}
        for threads in (1, 2):
            with one_thread(threads):
                trained(run.options.door, data, table.slice(0, WARM))
                start = time.perf_counter(), time.process_time()
                trained(run.options.door, data, table)
                wall[threads], work[threads] = time.perf_counter() - start[0], time.process_time() - start[1]
        row = {f"microseconds_{threads}": 1e6 * seconds / len(table) for threads, seconds in work.items()}
        return {"rows": len(table), **row, "wall_1": wall[1], "wall_2": wall[2], "two_threads": wall[2] / wall[1]}

    run.lines(("adult",), lambda name: run.ours(ours))


BENCHMARKS: dict[str, Callable[[Run], None]] = {
    "tables": tables,
    "streams": streams,
    "late": late,
    "frozen": frozen,
    "small": small,
    "texts": texts,
    "copies": copies,
    "time": times,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a benchmark."""
    parser = parser_of(__doc__)
    parser.add_argument("benchmark", nargs="?", default="all", choices=("all", "text", *BENCHMARKS))
    parser.add_argument("--door", choices=DOORS, default="train")
    parser.add_argument("--half", choices=sets.HALVES, help="of the tables; all if left out")
    parser.add_argument("--sets", type=names_in, help="names of sets; all if left out")
    parser.add_argument("--rows", type=int, default=300_000, help="of the benchmark of time")
    parser.add_argument("--peers", type=Path, default=FOLDER / "generations.json", help="file of figures kept")
    parser.add_argument("--again", action="store_true", help="measure what is kept")
    run = Run(parser.parse_args(arguments))
    chosen = run.options.benchmark
    for benchmark in BENCHMARKS.values() if chosen == "all" else [BENCHMARKS.get(chosen, text)]:
        benchmark(run)
    if run.failed:
        raise SystemExit(f"failed: {', '.join(run.failed)}")


if __name__ == "__main__":
    main()
