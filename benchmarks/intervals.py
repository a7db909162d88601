"""Intervals and sets: coverage and width of the pool's, of LightGBM with split conformal prediction, CV+ and CQR.

Prints a line a table: coverage of rows to come with its standard error, and the mean width of intervals over that of
the best of three ways around LightGBM with its defaults: split conformal prediction, CV+ with five folds (Barber,
Candes, Ramdas, Tibshirani 2021), and conformalised quantile regression (Romano, Patterson, Candes 2019), each with a
fifth of the rows held out; or the mean size of sets over that of the smaller of two kinds around LightGBM: adaptive
sets, and these with the penalty that the pool's have. ``--half chosen`` has the tables that constants were chosen on,
``--half other`` those that were run after that, and on which one choice was made again, ``--half fresh`` those that
were run last. ``--part streams`` prints coverage along streams, and the worst window of 2,000 rows; ``--part time``
what is spent on intervals during ``fit``.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from common import SHARED, parser_of
from pyarrow import parquet
from sklearn.datasets import load_diabetes, make_friedman1, make_friedman3
from sklearn.model_selection import KFold

from tunefree import TuneFreeClassifier, TuneFreeRegressor
from tunefree.core.rows import dense
from tunefree.intervals.conformal import quantile
from tunefree.intervals.conformal_record import ConformalRecord
from tunefree.intervals.sets import PENALTY, class_scores, draws_of

COVERAGES = (0.8, 0.9, 0.95)
SEEDS = 3
WINDOW = 2000
Rows = tuple[np.ndarray, np.ndarray]


class Table(NamedTuple):
    """A table, of which two thirds of the rows, or of the groups, are learned."""

    rows: Callable[[int], Rows]  # by a seed
    is_of_numbers: bool = True
    in_order: bool = False  # the first two thirds are learned, in their order
    n_groups: int = 0  # of consecutive rows


def of_file(name: str, target: str, drop: tuple[str, ...] = (), most: int = 12_000, in_order: bool = False) -> Any:
    """Rows of a shared file, with texts as codes."""

    def rows(seed: int) -> Rows:
        table = parquet.read_table(SHARED / f"{name}.parquet").drop_columns(list(drop)).to_pandas()
        table = table.drop(columns="split", errors="ignore")
        places = np.arange(len(table)) if in_order else np.random.default_rng(seed).permutation(len(table))
        table = table.iloc[places[:most]]
        columns = []
        for column in table:
            of_column = table[column]
            is_number = of_column.dtype.kind in "iufb"
            columns.append(of_column.to_numpy(float) if is_number else of_column.factorize(sort=True)[0].astype(float))
        place = list(table).index(target)
        return np.column_stack(columns[:place] + columns[place + 1 :]), columns[place]

    return rows


def unequal(seed: int) -> Rows:
    """Noise whose spread depends on the row."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (6000, 8))
    spread = 0.1 + np.abs(X[:, 1]) + (X[:, 2] > 0.0)
    return X, 2.0 * np.sin(3.0 * X[:, 0]) + X[:, 3] + spread * rng.normal(size=6000)


def heavy(seed: int) -> Rows:
    """Noise of heavy tails: Student's with 2.5 degrees of freedom, whose spread depends on the row."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(6000, 6))
    return X, 2.0 * X[:, 0] + X[:, 2] ** 2 + np.exp(0.5 * X[:, 1]) * rng.standard_t(2.5, size=6000)


def grouped(seed: int) -> Rows:
    """600 groups of ten rows, with an effect of the group that two columns identify."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(600), 10)
    X = np.column_stack([rng.normal(size=(6000, 3)), rng.normal(size=(600, 2))[group]])
    return X, X[:, 0] + np.sin(X[:, 1]) + rng.normal(size=600)[group] + 0.5 * rng.normal(size=6000)


def drifting(seed: int) -> Rows:
    """Slopes and noise that grow slowly along the rows."""
    rng = np.random.default_rng(seed)
    X, t = rng.normal(size=(9000, 6)), np.arange(9000) / 9000.0
    return X, X[:, 0] * (1.0 + t) + np.sin(2.0 * X[:, 1]) + (1.0 + 0.3 * t) * rng.normal(size=9000)


def rising(seed: int) -> Rows:
    """Noise that grows by half along the rows, and a slope that turns by a tenth of a circle."""
    rng = np.random.default_rng(seed)
    X, t = rng.normal(size=(9000, 5)), np.arange(9000) / 9000.0
    turned = np.cos(0.2 * np.pi * t) * X[:, 0] + np.sin(0.2 * np.pi * t) * X[:, 1]
    return X, 2.0 * turned + np.abs(X[:, 2]) + (0.8 + 0.4 * t) * rng.normal(size=9000)


def amounts(seed: int) -> Rows:
    """Amounts above 0 with a tail that is heavy above, in proportion to their mean."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (6000, 6))
    return X, np.exp(X[:, 0] + 0.5 * X[:, 1] * X[:, 2] + 0.8 * rng.normal(size=6000))


def wandering(seed: int) -> Rows:
    """Slopes that wander along the rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(9000, 5))
    slopes = 1.0 + np.cumsum(rng.normal(0.0, 0.004, (9000, 5)), axis=0)
    return X, (slopes * X).sum(axis=1) + rng.normal(size=9000)


def turning(seed: int) -> Rows:
    """A slope that turns by half a circle along the rows, with noise of tails."""
    rng = np.random.default_rng(seed)
    X, angle = rng.normal(size=(9000, 5)), np.pi * np.arange(9000) / 9000.0
    return X, np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1] + X[:, 2] ** 2 + rng.standard_t(5.0, size=9000)


def noisy(n_classes: int, n: int) -> Callable[[int], Rows]:
    """Classes of which some rows are sure, and others are not."""

    def rows(seed: int) -> Rows:
        rng = np.random.default_rng(seed)
        X, weights = rng.normal(size=(n, 6)), rng.normal(size=(6, n_classes))
        margins = X @ weights * np.where(X[:, :1] > 0.0, 2.0, 0.4) + rng.gumbel(size=(n, n_classes))
        return X, margins.argmax(axis=1).astype(float)

    return rows


def fourfold(seed: int) -> Rows:
    """Noise that is four times as much in every other 5,000 rows."""
    rng = np.random.default_rng(seed)
    X, spread = rng.normal(size=(30_000, 6)), np.where(np.arange(30_000) // 5000 % 2 == 0, 0.5, 2.0)
    return X, 2.0 * X[:, 0] + np.sin(2.0 * X[:, 1]) + spread * rng.normal(size=30_000)


def in_circles(seed: int) -> Rows:
    """A slope that turns three times, noise that comes and goes, and a column that matters from row 17,000 on."""
    rng = np.random.default_rng(seed)
    X, angle = rng.normal(size=(30_000, 6)), 2.0 * np.pi * np.arange(30_000) / 10_000.0
    turned = np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1]
    y = 2.0 * turned + (1.0 + 0.5 * np.sin(angle / 1.7)) * rng.standard_t(4.0, size=30_000)
    return X, y + np.where(np.arange(30_000) < 17_000, 0.0, 3.0 * X[:, 2])


HALVES: dict[str, dict[str, Table]] = {
    "chosen": {
        "california": Table(of_file("california_housing", "MedHouseVal")),
        "adult, age": Table(of_file("adult", "age")),
        "diabetes": Table(lambda seed: load_diabetes(return_X_y=True)),
        "friedman": Table(lambda seed: make_friedman1(4000, 10, noise=1.0, random_state=seed)),
        "unequal variance": Table(unequal),
        "rising noise": Table(rising, in_order=True),
        "amounts": Table(amounts),
        "adult": Table(of_file("adult", "income"), False),
        "letters": Table(of_file("letter_recognition", "lettr"), False),
        "forest cover": Table(of_file("covtype", "Cover_Type"), False),
        "ten noisy classes": Table(noisy(10, 9000), False),
        "bank": Table(of_file("bank_additional_full", "y", ("duration",)), False),
    },
    "other": {
        "diamonds": Table(of_file("diamonds", "price")),
        "forest, elevation": Table(of_file("covtype", "Elevation")),
        "flights": Table(of_file("flights_3m", "delay")),
        "electricity, price": Table(of_file("elec2", "nswprice", ("class", "vicprice"))),
        "heavy tails": Table(heavy),
        "groups": Table(grouped, n_groups=600),
        "drift": Table(drifting, in_order=True),
        "wandering slopes": Table(wandering, in_order=True),
        "flights, in order": Table(of_file("flights_3m", "delay", in_order=True), in_order=True),
        "satellite": Table(of_file("satellite", "classes"), False),
        "census": Table(of_file("census_income_kdd_test", "income", ("instance weight",)), False),
        "spam": Table(of_file("spambase", "type"), False),
    },
}
HALVES["fresh"] = {
    "adult, hours": Table(of_file("adult", "hours-per-week")),
    "bank, age": Table(of_file("bank_additional_full", "age")),
    "forest, roadways": Table(of_file("covtype", "Horizontal_Distance_To_Roadways")),
    "friedman 3": Table(lambda seed: make_friedman3(5000, noise=0.1, random_state=seed)),
    "electricity, demand": Table(of_file("elec2", "nswdemand", ("vicdemand",))),
    "letters, edges": Table(of_file("letter_recognition", "x.ege")),
    "turning slope": Table(turning, in_order=True),
}
STREAMS = {
    "electricity, price": Table(of_file("elec2", "nswprice", ("class", "vicprice"), 10**9, True)),
    "flights": Table(of_file("flights_3m", "delay", most=40_000, in_order=True)),
    "electricity, up or down": Table(of_file("elec2", "class", (), 10**9, True), False),
    "noise that changes fourfold": Table(fourfold),
    "slopes that turn, and one that comes": Table(in_circles),
}


def divided(table: Table, seed: int, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, Any]:
    """Rows to learn and rows to come, and the groups of the former."""
    X, y = table.rows(seed)
    X, y = X[:most], y[:most]
    order, groups = np.arange(len(y)), None
    if table.n_groups:
        groups = order * table.n_groups // 6000
        order = np.argsort(np.random.default_rng(seed).permutation(table.n_groups)[groups], kind="stable")
    elif not table.in_order:
        order = np.random.default_rng(100 + seed).permutation(len(y))
    first = 2 * len(y) // 3 if not table.n_groups else 20 * len(y) // 300 * 10
    learned, to_come = order[:first], order[first:]
    return X[learned], y[learned], X[to_come], y[to_come], None if groups is None else groups[learned]


def of_pool(table: Table, X: np.ndarray, y: np.ndarray, new: np.ndarray, groups: Any) -> Any:
    """Intervals (n, c, 2) or sets (n, c, K) of the pool, and the classes."""
    if table.is_of_numbers:
        model: Any = TuneFreeRegressor(shuffle=not table.in_order).fit(X, y, groups=groups)
        return model.predict_interval(new, COVERAGES), None
    model = TuneFreeClassifier().fit(X, y, groups=groups)
    return model.predict_set(new, COVERAGES), model.classes_


def split_conformal(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Intervals of LightGBM by split conformal prediction."""
    from lightgbm import LGBMRegressor

    n = 4 * len(y) // 5
    model = LGBMRegressor(verbose=-1, n_jobs=1).fit(X[:n], y[:n])
    scores, middle = np.abs(y[n:] - model.predict(X[n:])), np.asarray(model.predict(new))
    bounds = [quantile(scores, np.ones(len(scores)), coverage) for coverage in COVERAGES]
    return np.stack([np.stack([middle - bound, middle + bound], 1) for bound in bounds], 1)


def cross_validated(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Intervals of LightGBM by CV+ with five folds."""
    from lightgbm import LGBMRegressor

    lows, highs = [], []
    for train, held in KFold(5).split(X):
        model = LGBMRegressor(verbose=-1, n_jobs=1).fit(X[train], y[train])
        scores, middle = np.abs(y[held] - model.predict(X[held])), np.asarray(model.predict(new))
        lows.append(middle[:, None] - scores)
        highs.append(middle[:, None] + scores)
    low, high, n = np.sort(np.concatenate(lows, 1), 1), np.sort(np.concatenate(highs, 1), 1), len(y)
    ends = []
    for coverage in COVERAGES:
        rank = min(int(np.ceil(coverage * (n + 1))), n)
        ends.append(np.stack([low[:, n - rank], high[:, rank - 1]], 1))
    return np.stack(ends, 1)


def quantile_regression(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Intervals of LightGBM by conformalised quantile regression."""
    from lightgbm import LGBMRegressor

    n, ends = 4 * len(y) // 5, []
    for coverage in COVERAGES:
        of_levels = []
        for level in ((1.0 - coverage) / 2.0, (1.0 + coverage) / 2.0):
            model = LGBMRegressor(objective="quantile", alpha=level, verbose=-1, n_jobs=1).fit(X[:n], y[:n])
            of_levels.append((np.asarray(model.predict(X[n:])), np.asarray(model.predict(new))))
        (low, new_low), (high, new_high) = of_levels
        scores = np.maximum(low - y[n:], y[n:] - high)
        bound = quantile(scores, np.ones(len(scores)), coverage)
        ends.append(np.stack([new_low - bound, new_high + bound], 1))
    return np.stack(ends, 1)


def of_lightgbm(model: Any, rows: np.ndarray, has_penalty: bool) -> np.ndarray:
    """Scores (n, K) of classes."""
    probabilities = model.predict_proba(rows)
    scores = class_scores(np.log(np.maximum(probabilities, 1e-300)), draws_of(dense(rows)))
    return scores if has_penalty else (scores - PENALTY * (1.0 - probabilities)) / (1.0 - PENALTY)


def adaptive_sets(
    X: np.ndarray, y: np.ndarray, new: np.ndarray, classes: np.ndarray, has_penalty: bool = False
) -> np.ndarray:
    """Adaptive sets of LightGBM, with a fifth of the rows held out."""
    from lightgbm import LGBMClassifier

    n = 4 * len(y) // 5
    model = LGBMClassifier(verbose=-1, n_jobs=1).fit(X[:n], y[:n])
    held, to_come = (of_lightgbm(model, rows, has_penalty) for rows in (X[n:], new))
    is_known = np.isin(y[n:], model.classes_)
    codes = np.searchsorted(model.classes_, y[n:][is_known])
    scores = held[is_known][np.arange(len(codes)), codes]
    sets = np.zeros((len(new), len(COVERAGES), len(classes)), bool)
    for c, coverage in enumerate(COVERAGES):
        of_known = to_come <= quantile(scores, np.ones(len(scores)), coverage)
        sets[:, c, np.searchsorted(classes, model.classes_)] = of_known
    return sets


def judged(table: Table, regions: np.ndarray, y: np.ndarray, classes: Any) -> np.ndarray:
    """Coverages, and mean widths or sizes, (2, c)."""
    if table.is_of_numbers:
        is_in = (regions[:, :, 0] <= y[:, None]) & (y[:, None] <= regions[:, :, 1])
        return np.stack([is_in.mean(0), (regions[:, :, 1] - regions[:, :, 0]).mean(0)])
    is_known = np.isin(y, classes)
    codes = np.searchsorted(classes, np.where(is_known, y, classes[0]))
    is_in = regions[np.arange(len(y)), :, codes] & is_known[:, None]
    return np.stack([is_in.mean(0), regions.sum(2).mean(0)])


def of_table(name: str, table: Table, seeds: int, most: int) -> tuple[str, np.ndarray]:
    """A line, and the widths over the best ones of LightGBM."""
    ours, others, n = [], [], 0
    for seed in range(seeds):
        X, y, new, y_new, groups = divided(table, seed, most)
        regions, classes = of_pool(table, X, y, new, groups)
        ours.append(judged(table, regions, y_new, classes))
        n += len(y_new)
        is_in_turn = table.in_order or groups is not None  # groups are held out whole
        order = np.arange(len(y)) if is_in_turn else np.random.default_rng(seed).permutation(len(y))
        rows = X[order], y[order], new
        if table.is_of_numbers:
            ways = (split_conformal, cross_validated, quantile_regression)
            of_ways = np.stack([judged(table, way(*rows), y_new, None) for way in ways])
        else:
            kinds = (adaptive_sets(*rows, classes, has_penalty) for has_penalty in (False, True))
            of_ways = np.stack([judged(table, sets, y_new, classes) for sets in kinds])
        others.append(of_ways)
    mean, of_others = np.mean(ours, axis=0), np.mean(others, axis=0)
    ratios = mean[1] / of_others[:, 1].min(axis=0)
    error = np.sqrt(np.array(COVERAGES) * (1.0 - np.array(COVERAGES)) / n)
    covered = " | ".join(
        f"{part:.3f} ({(part - c) / e:+.1f})" for part, c, e in zip(mean[0], COVERAGES, error, strict=True)
    )
    best = of_others[np.arange(len(of_others))[of_others[:, 1, 1].argmin()], 0, 1]
    widths = " | ".join(f"{ratio:.3f}" for ratio in ratios)
    return f"| {name} | {covered} | {widths} | {best:.3f} |", ratios


def tables(half: str, quick: bool) -> None:
    """Coverage and width on the tables of a half."""
    titles = " | ".join(
        [f"coverage at {c:g} (standard errors off)" for c in COVERAGES] + [f"width at {c:g}" for c in COVERAGES]
    )
    print(
        f"| table | {titles} | coverage of LightGBM's narrowest at 0.9 |\n|{'---|' * (2 * len(COVERAGES) + 2)}",
        flush=True,
    )
    ratios: dict[bool, list[np.ndarray]] = {True: [], False: []}
    for name, table in HALVES[half].items():
        try:
            line, of_line = of_table(name, table, 1 if quick else SEEDS, 1500 if quick else 10**9)
        except FileNotFoundError as error:
            line, of_line = f"| {name} | skipped: {error.filename} does not exist |", np.empty(0)
        print(line, flush=True)
        if len(of_line):
            ratios[table.is_of_numbers].append(of_line)
    for is_of_numbers, of_tables in ratios.items():
        if of_tables:
            means = np.exp(np.log(of_tables).mean(axis=0)).round(3).tolist()
            print(f"\ngeometric mean of {'widths' if is_of_numbers else 'sizes'} over LightGBM's: {means}")


def streams(quick: bool) -> None:
    """Coverage along streams: each row is predicted, and then learned."""
    print("| stream | asked | covered | worst window of 2,000 rows | infinite |\n|---|---|---|---|---|", flush=True)
    for name, stream in STREAMS.items():
        try:
            X, y = stream.rows(0)
        except FileNotFoundError as error:
            print(f"| {name} | skipped: {error.filename} does not exist |")
            continue
        if quick:
            X, y = X[:3000], y[:3000]
        covered, infinite = along(stream, X, y)
        for coverage, of_rows in covered.items():
            windows = [of_rows[i : i + WINDOW].mean() for i in range(0, max(len(of_rows) - WINDOW, 0) + 1, 500)]
            worst = max(windows, key=lambda part: abs(part - coverage))
            print(
                f"| {name} | {coverage:g} | {of_rows.mean():.4f} | {worst:.4f} | {infinite[coverage]:.4f} |", flush=True
            )


def along(stream: Table, X: np.ndarray, y: np.ndarray) -> tuple[dict[float, np.ndarray], dict[float, float]]:
    """By coverages, which rows were covered as the pass saw them one by one, and the part of infinite intervals."""
    model: Any = TuneFreeRegressor() if stream.is_of_numbers else TuneFreeClassifier()
    record: dict[float, list[Any]] = {c: [] for c in COVERAGES}
    n_infinite = dict.fromkeys(COVERAGES, 0)
    follow_all = ConformalRecord._learn

    def observed(conformal: ConformalRecord, rows: Any, evidence: np.ndarray, fills: list[float]) -> None:
        for i in evidence.tolist():
            state = conformal.adaptive
            before = state.below.copy()
            ends = {c: ((1.0 - c) / 2.0, (1.0 + c) / 2.0) if stream.is_of_numbers else (c,) for c in COVERAGES}
            bounds = {c: [state.quantile(level) for level in levels] for c, levels in ends.items()}
            follow_all(conformal, rows, np.array([i]), fills)
            places, below = state.targets.tolist(), state.below - before
            for c, levels in ends.items() if state.rows[0] > 400 else ():
                of_levels = [bool(below[places.index(level)]) for level in levels]
                record[c].append(of_levels[-1] and not (len(levels) > 1 and of_levels[0]))
                n_infinite[c] += not np.isfinite(bounds[c]).all()

    ConformalRecord._learn = observed  # type: ignore[method-assign, assignment]
    try:
        model.partial_fit(X, y)
    finally:
        ConformalRecord._learn = follow_all  # type: ignore[method-assign]
    covered = {c: np.array(of_rows, float) for c, of_rows in record.items()}
    return covered, {c: n_infinite[c] / max(len(record[c]), 1) for c in COVERAGES}


def spent(quick: bool) -> None:
    """Processor time of ``fit`` over that without what is kept for intervals, in turns."""
    learn = ConformalRecord.observe
    print("| table | fit over fit without |\n|---|---|", flush=True)
    for name in ("friedman", "unequal variance", "california", "adult", "ten noisy classes"):
        table = HALVES["chosen"][name]
        X, y, *_ = divided(table, 0, 1500 if quick else 10**9)
        seconds: dict[bool, list[float]] = {True: [], False: []}
        for turn in range(3 if quick else 9):
            with_intervals = turn % 2 == 0
            ConformalRecord.observe = learn if with_intervals else lambda *of_rows: None  # type: ignore[method-assign]
            started = time.process_time()
            (TuneFreeRegressor() if table.is_of_numbers else TuneFreeClassifier()).fit(X, y)
            seconds[with_intervals].append(time.process_time() - started)
        ConformalRecord.observe = learn  # type: ignore[method-assign]
        print(f"| {name} | {min(seconds[True]) / min(seconds[False]):.3f} |", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure one part."""
    parser = parser_of(__doc__)
    parser.add_argument("--part", choices=("tables", "streams", "time"), default="tables")
    parser.add_argument("--half", choices=tuple(HALVES), default="chosen")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    if options.part == "tables":
        tables(options.half, options.quick)
    else:
        (streams if options.part == "streams" else spent)(options.quick)


if __name__ == "__main__":
    main(sys.argv[1:])
