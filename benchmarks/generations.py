"""One pass of the pool against CatBoost's and LightGBM's defaults.

``tables``, ``streams``, ``late``, ``frozen``, ``small``, ``texts``, ``copies`` and ``time`` print a line of JSON for
each set (see ``generation_sets.py``) and then geometric means. ``--door`` is ``train``, which takes the rows in their
order; or ``fit``; or none, which measures peers only and needs no more of tunefree than its data. Figures of peers are
kept in ``--peers FILE`` (benchmarks/data/generations.json) and not measured again, so peers may come from an
environment of their own: ``generations.py tables --door none`` there, ``generations.py tables`` here. The file may
have figures of the former pool, too, under ``pool``. ``--sets a,b`` selects sets, ``--again`` measures what is kept.

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
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import datasets
import generation_sets as sets
import numpy as np
import pyarrow as pa
from common import FOLDER, WARM
from datasets import DataSet, Split

Figures = dict[str, Any]
DOORS = ("train", "fit", "none")
PEERS = ("catboost", "lightgbm")
SIMPLE = ("constant", "linear", "lightgbm")  # on small tables
DELAY, BLOCK = 250, 25  # rows until a label comes; rows that are predicted at once
LEAST = 1e-15  # probability
CHUNK = 100_000  # rows predicted at once
WEIGHT, WEIGHTS = 3.7, "weight of rows"  # of all rows, and its column


class Store:
    """Figures by benchmark, set and model in a JSON file."""

    def __init__(self, path: Path, again: bool) -> None:
        self.path, self.again = path, again

    def figures(self) -> dict[str, Figures]:
        """All that is kept."""
        return json.loads(self.path.read_text()) if self.path.exists() else {}

    def keep(self, key: str, figures: Figures) -> None:
        """Keep figures instead of earlier ones."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self.figures() | {key: figures}, indent=1))
        part.replace(self.path)

    def peer(self, key: str, measure: Callable[[], Figures]) -> Figures:
        """Figures that are kept, or else measured and kept; none if the peer is not installed."""
        if key in self.figures() and not self.again:
            return self.figures()[key]
        try:
            figures = measure()
        except ImportError:
            return {}
        self.keep(key, figures)
        return figures

    def ours(self, key: str, measure: Callable[[], Figures]) -> Figures:
        """Figures of tunefree, which are never kept; none if it is not asked for."""
        return {} if key.rpartition("/")[2] == "none" else measure()


def log_loss(probabilities: np.ndarray, y: np.ndarray) -> float:
    """Mean log-loss of class indices."""
    return float(-np.log(np.maximum(probabilities[np.arange(len(y)), y], LEAST)).mean())


def loss_of(predicted: np.ndarray, y: np.ndarray, classifies: bool) -> float:
    """Log-loss of probabilities of all classes, or the root of the mean squared error."""
    return log_loss(predicted, y) if classifies else float(np.sqrt(((predicted - y) ** 2).mean()))


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
    return tunefree.train(table, target=data.target, task=task, **options)


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


def boosting(peer: str, split: Split) -> Figures:
    """Test loss and seconds of CatBoost or LightGBM with their defaults, which get categories as they are."""
    kind = "Classifier" if split.classes else "Regressor"
    train, test, names = sets.frames(split)
    if peer == "catboost":
        import catboost

        options = {"verbose": 0, "thread_count": 1, "random_seed": 0, "allow_writing_files": False}
        model = getattr(catboost, f"CatBoost{kind}")(cat_features=names, **options)
        train, test = (frame.astype(dict.fromkeys(names, str)) for frame in (train, test))
    else:
        import lightgbm

        model = getattr(lightgbm, f"LGBM{kind}")(n_jobs=1, verbose=-1)
        model.fit(train[:200], split.targets(split.train)[:200])  # the first call takes longer
    start = time.process_time()
    model.fit(train, split.targets(split.train))
    seconds = time.process_time() - start
    predicted = model.predict_proba(test) if split.classes else model.predict(test)
    return {"loss": loss_of(predicted, split.targets(split.test), bool(split.classes)), "seconds": seconds}


def constant(split: Split) -> Figures:
    """The loss of the classes' frequencies, or of the mean."""
    y, truth = split.targets(split.train), split.targets(split.test)
    if not split.classes:
        return {"loss": loss_of(np.full(len(truth), y.mean()), truth, False)}
    shares = np.bincount(y, minlength=len(split.classes)) / len(y)
    return {"loss": log_loss(np.tile(shares, (len(truth), 1)), truth)}


def linear(split: Split) -> Figures:
    """The loss of a linear model of standardised columns, whose strength is chosen by cross-validation."""
    from sklearn.linear_model import LogisticRegressionCV, RidgeCV

    train, test = sets.matrices(split)
    y, truth = split.targets(split.train), split.targets(split.test)
    if not split.classes:
        return {"loss": loss_of(RidgeCV(np.logspace(-3, 4, 15)).fit(train, y).predict(test), truth, False)}
    options = {"scoring": "neg_log_loss", "l1_ratios": (0.0,), "use_legacy_attributes": False}
    model = LogisticRegressionCV(Cs=np.logspace(-4, 2, 10), cv=5, max_iter=500, **options).fit(train, y)
    return {"loss": log_loss(model.predict_proba(test), truth)}


def over(figures: Figures, base: Figures, key: str = "loss") -> float | None:
    """A figure divided by that of another model, where both are known."""
    return figures[key] / base[key] if figures.get(key) and base.get(key) else None


def show(line: Figures) -> Figures:
    """Print a line of JSON without what is not known, numbers with five digits."""
    known = {key: value for key, value in line.items() if value is not None}
    short = {key: float(f"{value:.5g}") if isinstance(value, float) else value for key, value in known.items()}
    print(json.dumps(short), flush=True)
    return known


def each(names: Iterable[str], measure: Callable[[str], Figures]) -> list[Figures]:
    """Print and return the line of each set; one that fails prints its error."""
    lines = []
    for name in names:
        try:
            lines.append(show({"set": name} | measure(name)))
        except Exception as error:
            traceback.print_exc()
            show({"set": name, "error": f"{type(error).__name__}: {error}"})
    return lines


def means(title: str, lines: list[Figures]) -> None:
    """Print the geometric mean of each ratio."""
    ratios = {key for line in lines for key in line if "over" in key.split("_")}
    for key in sorted(ratios):
        values = [line[key] for line in lines if key in line]
        show({"mean of": title, key: math.exp(np.log(values).mean()), "sets": len(values)})


def tables(options: argparse.Namespace, store: Store) -> None:
    """Test losses after one pass, over those of peers."""

    def line(name: str) -> Figures:
        split = sets.table(name)
        figures = store.ours(f"tables/{name}/{options.door}", lambda: measured(options.door, split))
        row = {"rows": len(split.train), **figures}
        for peer in PEERS:
            base = store.peer(f"tables/{name}/{peer}", lambda peer=peer: boosting(peer, split))
            row |= {peer: base.get("loss"), f"{peer}_seconds": base.get("seconds"), f"over_{peer}": over(figures, base)}
            row[f"seconds_over_{peer}"] = over(figures, base, "seconds")
        if options.door == "none":
            peers = ({"loss": row[peer]} for peer in reversed(PEERS))
            row["lightgbm_over_catboost"] = over(*peers)
        pool = store.figures().get(f"tables/{name}/pool", {})
        return row | {"pool": pool.get("loss"), "over_pool": over(figures, pool)}

    names = options.sets or (sets.HALVES[options.half] if options.half else sum(sets.HALVES.values(), ()))
    lines = each(names, line)
    for half, members in sets.HALVES.items():
        means(half, [row for row in lines if row["set"] in members])
    means("both halves", [row for row in lines if row["set"] in sets.CHOSEN + sets.OTHER])


def progressive(door: str, data: DataSet, table: pa.Table) -> Figures:
    """The mean loss of the rows, each predicted before it is learned."""
    with one_thread():
        trained(door, data, table.slice(0, WARM))
        start = time.process_time()
        model = trained(door, data, table)
        seconds = time.process_time() - start
    loss = model.history()["loss"].to_pylist()[-1]
    return {"loss": loss, "seconds": seconds, "microseconds": 1e6 * seconds / len(table)}


def streams(options: argparse.Namespace, store: Store) -> None:
    """Progressive losses in the order of the rows, with those of the pool and of the true probabilities."""

    def line(name: str) -> Figures:
        stream = sets.stream(name)
        key = f"streams/{name}/"
        figures = store.ours(key + options.door, lambda: progressive(options.door, stream.data, stream.table))
        pool = store.figures().get(f"{key}pool", {})
        row = {"rows": len(stream.table), **figures, "truth": stream.least, "pool": pool.get("loss")}
        return row | {"over_pool": over(figures, pool), "microseconds_over_pool": over(figures, pool, "microseconds")}

    lines = each(options.sets or sets.STREAMS, line)
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


def late(options: argparse.Namespace, store: Store) -> None:
    """Progressive losses where labels come late, by ``partial_fit``."""

    def line(name: str) -> Figures:
        stream = sets.stream(name)
        figures = store.ours(f"late/{name}/{options.door}", lambda: late_labels(stream.data, stream.table))
        pool = store.figures().get(f"late/{name}/pool", {})
        return {"rows": len(stream.table), **figures, "pool": pool.get("loss"), "over_pool": over(figures, pool)}

    means("late labels", each(options.sets or ("elec2",), line))


def frozen(options: argparse.Namespace, store: Store) -> None:
    """The last third of a stream, predicted by the model of the first two thirds."""

    def line(name: str) -> Figures:
        split = sets.past(name)
        figures = store.ours(f"frozen/{name}/{options.door}", lambda: measured(options.door, split))
        pool = store.figures().get(f"frozen/{name}/pool", {})
        return {"rows": len(split.train), **figures, "pool": pool.get("loss"), "over_pool": over(figures, pool)}

    means("frozen", each(options.sets or ("elec2", "flights", "flights_3m"), line))


def mean_of(splits: list[Split], measure: Callable[[Split], Figures]) -> Figures:
    """Mean figures over splits."""
    each_split = [measure(split) for split in splits]
    return {key: float(np.mean([figures[key] for figures in each_split])) for key in each_split[0]}


def small(options: argparse.Namespace, store: Store) -> None:
    """Mean losses of five splits of small tables, over the best of a constant, a linear model and LightGBM."""
    peers = {"constant": constant, "linear": linear, "lightgbm": lambda split: boosting("lightgbm", split)}

    def line(name: str) -> Figures:
        splits, key = list(sets.splits(name)), f"small/{name}/"
        door = options.door
        figures = store.ours(key + door, lambda: mean_of(splits, lambda split: measured(door, split)))
        bases = {
            peer: store.peer(key + peer, lambda peer=peer: mean_of(splits, peers[peer])).get("loss") for peer in SIMPLE
        }
        best = min((loss for loss in bases.values() if loss is not None), default=None)
        row = {"rows": len(splits[0].train), **figures, **bases, "over_best": over(figures, {"loss": best})}
        for before in ("pool", "fit"):
            earlier = store.figures().get(key + before, {})
            row |= {before: earlier.get("loss"), f"over_{before}": over(figures, earlier)}
        return row

    lines = each(options.sets or sets.SMALLS, line)
    means("small tables", lines)
    means("of scikit-learn", [row for row in lines if row["set"] in sets.BUNDLED])


def text(options: argparse.Namespace, store: Store) -> None:
    """Print progressive loss, seconds and peak memory of one set of texts, measured in this process."""
    split = datasets.load(sets.described(options.sets[0]))
    figures = progressive(options.door, split.data, split.train)
    print(json.dumps(figures | {"mebibytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def texts(options: argparse.Namespace, store: Store) -> None:
    """Progressive losses, seconds and peak memory of texts, each in a process of its own."""

    def apart(name: str) -> Figures:
        command = [sys.executable, __file__, "text", "--sets", name, "--door", options.door]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        return json.loads(done.stdout.splitlines()[-1])

    def line(name: str) -> Figures:
        figures = store.ours(f"texts/{name}/{options.door}", lambda: apart(name))
        pool = store.figures().get(f"texts/{name}/pool", {})
        ratios = {f"{key}_over_pool": over(figures, pool, key) for key in ("seconds", "mebibytes")}
        return {**figures, "pool": pool.get("loss"), "over_pool": over(figures, pool), **ratios}

    means("texts", each(options.sets or sets.TEXTS, line))


def weighted(split: Split) -> Split:
    """All rows with the same weight, which is not 1."""
    column = pa.array(np.full(len(split.train), WEIGHT))
    return split._replace(train=split.train.append_column(WEIGHTS, column))


def copies(options: argparse.Namespace, store: Store) -> None:
    """Test losses of rows that come five times, and of rows with weights that are all the same, over rows as usual."""

    def line(name: str) -> Figures:
        split, door, key = sets.table(name), options.door, f"copies/{name} "
        once = store.ours(f"tables/{name}/{door}", lambda: measured(door, split))
        five = store.ours(f"{key}five times/{door}", lambda: measured(door, sets.copies(split)))
        heavy = store.ours(f"{key}weighted/{door}", lambda: measured(door, weighted(split), weight=WEIGHTS))
        losses = {"once": once.get("loss"), "five_times": five.get("loss"), "weighted": heavy.get("loss")}
        return losses | {"five_times_over_once": over(five, once), "weighted_over_once": over(heavy, once)}

    means("copies", each(options.sets or ("adult", "spambase", "satellite"), line))


def times(options: argparse.Namespace, store: Store) -> None:
    """Microseconds of the processor a row of adult's shape in one thread, and wall time with two threads over one."""

    def ours() -> Figures:
        data, table = sets.tiled(options.rows)
        wall, work = {}, {}
        for threads in (1, 2):
            with one_thread(threads):
                trained(options.door, data, table.slice(0, WARM))
                start = time.perf_counter(), time.process_time()
                trained(options.door, data, table)
                wall[threads], work[threads] = time.perf_counter() - start[0], time.process_time() - start[1]
        row = {f"microseconds_{threads}": 1e6 * seconds / len(table) for threads, seconds in work.items()}
        return {"rows": len(table), **row, "wall_1": wall[1], "wall_2": wall[2], "two_threads": wall[2] / wall[1]}

    def line(name: str) -> Figures:
        figures = store.ours(f"time/{name} {options.rows}/{options.door}", ours)
        pool = store.figures().get(f"time/{name} {options.rows}/pool", {})
        return {**figures, "over_pool": over(figures, pool, "microseconds_1")}

    each(("adult",), line)


COMMANDS = {
    "tables": tables,
    "streams": streams,
    "late": late,
    "frozen": frozen,
    "small": small,
    "texts": texts,
    "text": text,
    "copies": copies,
    "time": times,
}


def main() -> None:
    """Run a benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benchmark", nargs="?", default="tables", choices=COMMANDS)
    parser.add_argument("--door", choices=DOORS, default="train")
    parser.add_argument("--half", choices=sets.HALVES, help="of the tables; all if left out")
    parser.add_argument("--sets", type=lambda names: tuple(names.split(",")), help="names of sets; all if left out")
    parser.add_argument("--rows", type=int, default=300_000, help="of the benchmark of time")
    parser.add_argument("--peers", type=Path, default=FOLDER / "generations.json", help="file of figures kept")
    parser.add_argument("--again", action="store_true", help="measure what is kept")
    options = parser.parse_args()
    COMMANDS[options.benchmark](options, Store(options.peers, options.again))


if __name__ == "__main__":
    main()
