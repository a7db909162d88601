"""The sets of ``generations.py``: tables, streams in their order, small tables, and generators of streams and tables.

Nothing here needs more than NumPy, pandas, PyArrow and scikit-learn, so that peers can be measured in an environment of
their own. Classes are strings. Splits are those of ``datasets.py``; sets of scikit-learn are shuffled and split alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
from common import SHARED
from datasets import DataSet, Split
from pyarrow import compute

# Two halves, each with regression and with many classes: constants may be chosen on the first one only.
CHOSEN = ("spambase", "satellite", "diamonds", "adult", "madelon", "breast_cancer")
OTHER = ("letters", "california", "bank", "census", "digits", "covtype")
BESIDE = ("shuttle", "wine", "diabetes", "iris")  # too easy or too small to weigh as much as the others
# Tables of PMLB; those whose names begin with a number are of numbers.
SUITE = tuple(sorted(path.name.removesuffix(".tsv.gz") for path in (SHARED / "suite").glob("*.tsv.gz")))
HALVES = {"chosen": CHOSEN, "other": OTHER, "beside": BESIDE, "suite-chosen": SUITE[::2], "suite-other": SUITE[1::2]}
FILES = {
    "letters": "letter_recognition",
    "california": "california_housing",
    "bank": "bank_additional_full",
    "census": "census_income_kdd_test",
    "flights": "flights_3m",
    "cover": "covtype",
}
BUNDLED = ("breast_cancer", "digits", "wine", "diabetes", "iris")  # with scikit-learn
FLIGHTS, COVER, CENSUS = 300_000, 250_000, 60_000  # first rows
TEXTS = ("newsgroups20_binary", "newsgroups20", "spam_assassin")


def described(name: str) -> DataSet:
    """The file of a set and its target."""
    return next(data for data in datasets.ALL if data.name == FILES.get(name, name))


def ordered(split: Split) -> pa.Table:
    """The training rows and then the test rows."""
    return pa.concat_tables([split.train, split.test])


def halves(data: DataSet, table: pa.Table) -> Split:
    """The first two thirds of the rows, and the last third."""
    cut = 2 * len(table) // 3
    return Split(data, table.slice(0, cut), table.slice(cut))


def bundled(name: str) -> tuple[DataSet, pa.Table]:
    """A set of scikit-learn, in its order."""
    import sklearn.datasets

    bunch = getattr(sklearn.datasets, f"load_{name}")(as_frame=True)
    numbers = name == "diabetes"
    target = bunch.target.astype(float) if numbers else bunch.target.astype(str)
    frame = bunch.data.assign(target=target)
    return DataSet(name, "target", "regression" if numbers else "table"), pa.Table.from_pandas(
        frame, preserve_index=False
    )


def of_suite(name: str) -> tuple[DataSet, pa.Table]:
    """A table of the suite in its order; labels are strings."""
    frame = pd.read_csv(SHARED / "suite" / f"{name}.tsv.gz", sep="\t")
    numbers = name[0].isdigit()
    frame["target"] = frame["target"].astype(float) if numbers else "class " + frame["target"].astype(str)
    return DataSet(name, "target", "regression" if numbers else "table"), pa.Table.from_pandas(
        frame, preserve_index=False
    )


def table(name: str) -> Split:
    """A table by its short name, split."""
    if name in SUITE:
        data, rows = of_suite(name)
        return halves(data, rows.take(np.random.default_rng(0).permutation(len(rows))))
    if name in BUNDLED:
        data, rows = bundled(name)
        return halves(data, rows.take(np.random.default_rng(0).permutation(len(rows))))
    split = datasets.load(described(name))
    if name == "census":
        return halves(split.data, ordered(split).slice(0, CENSUS))
    if name == "covtype":
        return split._replace(train=split.train.slice(0, 100_000), test=split.test.slice(0, 50_000))
    return split


def frames(split: Split) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Training and test rows for peers; everything but numbers is a category, whose names are the last value."""
    pair = [part.drop_columns(split.data.target).to_pandas() for part in (split.train, split.test)]
    names = [name for name in pair[0].columns if not pd.api.types.is_numeric_dtype(pair[0][name])]
    for name in names:
        texts = [frame[name].astype(object).fillna("missing").astype(str) for frame in pair]
        kind = pd.CategoricalDtype(sorted(set(texts[0]) | set(texts[1])))
        for frame, column in zip(pair, texts, strict=True):
            frame[name] = column.astype(kind)
    return pair[0], pair[1], names


class Stream(NamedTuple):
    """Rows in their order, and the mean log-loss of the true probabilities, where they are known."""

    data: DataSet
    table: pa.Table
    least: float | None = None


def flights() -> pa.Table:
    """Hour, weekday and day of the year from the date, airports and distance, and whether a flight was late."""
    split = datasets.load(described("flights"))
    rows = ordered(split).slice(0, FLIGHTS)
    date = rows["date"].to_pandas()
    columns = {"hour": date.dt.hour + date.dt.minute / 60, "weekday": date.dt.dayofweek, "day": date.dt.dayofyear}
    for name, values in columns.items():
        rows = rows.append_column(name, pa.array(values.to_numpy(float)))
    return rows.drop_columns("date")


def cover() -> pa.Table:
    """The first rows of the forest covers in the order of the file."""
    from pyarrow import parquet

    data = described("cover")
    rows = parquet.read_table(data.path).slice(0, COVER)
    place = rows.column_names.index(data.target)
    return rows.set_column(place, data.target, compute.cast(rows[data.target], pa.string()))


def stream(name: str) -> Stream:
    """A stream by its short name."""
    if name in GENERATED:
        return generated(name)
    data = described(name)
    rows = {"flights": flights, "cover": cover}[name]() if name != "elec2" else ordered(datasets.load(data))
    return Stream(data._replace(name=name, kind="drift"), rows)


def past(name: str) -> Split:
    """A stream that is learned up to two thirds; ``flights_3m`` has its date as it is, as elsewhere."""
    if name == "elec2" or name == "flights_3m":
        return datasets.load(described(name))
    data = described("flights")
    return halves(data, ordered(datasets.load(data)).slice(0, FLIGHTS))


ROWS = 60_000
COLUMNS, LEVELS = 8, (6, 40)  # numbers, and levels of the categories


class Kind(NamedTuple):
    """What a generated stream is made of."""

    drift: str
    truth: str
    categories: bool = False
    classes: int = 2


GENERATED = {
    "sudden_linear": Kind("sudden", "linear"),
    "sudden_trees": Kind("sudden", "trees", True),
    "gradual_linear": Kind("gradual", "linear", True),
    "gradual_trees": Kind("gradual", "trees"),
    "recurring_linear": Kind("recurring", "linear"),
    "recurring_trees": Kind("recurring", "trees", False, 3),
    "none_linear": Kind("none", "linear", True),
    "none_trees": Kind("none", "trees", True, 3),
    "none_noise": Kind("none", "noise"),
    "sudden_scales": Kind("scales", "linear"),
}
STREAMS = ("elec2", "flights", "cover", *GENERATED)


def concepts(drift: str, rng: np.random.Generator) -> np.ndarray:
    """Which truth holds in each row: four in turn, at once or gradually, or two that alternate, or one."""
    time = np.arange(ROWS) / ROWS
    if drift == "sudden":
        return (4 * time).astype(int)
    if drift == "gradual":
        return np.clip(4 * time + rng.random(ROWS) - 0.5, 0, 3).astype(int)
    return (6 * time).astype(int) % 2 if drift == "recurring" else np.zeros(ROWS, int)


def margins(kind: Kind, numbers: np.ndarray, codes: list[np.ndarray], seed: int) -> np.ndarray:
    """Log-odds of the classes, (n, K), of standard deviation 2: sums of effects, or of 30 trees of depth 3."""
    rng, n = np.random.default_rng(seed), len(numbers)
    total = np.zeros((n, kind.classes))
    if kind.truth == "noise":
        return total
    if kind.truth == "linear":
        total += numbers @ rng.normal(size=(numbers.shape[1], kind.classes))
        for levels, column in zip(LEVELS, codes, strict=False):
            total += rng.normal(size=(levels, kind.classes))[column]
        return 2 * total / total.std()
    for _ in range(30):
        leaf = np.zeros(n, int)
        for _ in range(3):
            j = rng.integers(numbers.shape[1] + len(codes))
            ranks = rng.permutation(max(LEVELS))
            column = numbers[:, j] if j < numbers.shape[1] else ranks[codes[j - numbers.shape[1]]]
            leaf = 2 * leaf + (column > column[rng.integers(n)])
        total += rng.normal(size=(8, kind.classes))[leaf]
    return 2 * total / total.std()


def labels(log_odds: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Classes drawn from log-odds, and the mean log-loss of the true probabilities."""
    y = (log_odds + rng.gumbel(size=log_odds.shape)).argmax(axis=1)
    normal = np.log(np.exp(log_odds).sum(axis=1))
    return y, float((normal - log_odds[np.arange(len(y)), y]).mean())


def as_table(numbers: np.ndarray, codes: list[np.ndarray], y: np.ndarray) -> pa.Table:
    """Columns ``x0``, ..., categories ``c0``, ..., and the target ``y``."""
    columns: dict[str, Any] = {f"x{j}": column for j, column in enumerate(numbers.T)}
    columns |= {f"c{j}": np.char.add("level", column.astype(str)) for j, column in enumerate(codes)}
    return pa.table(columns | {"y": y if y.dtype == np.float64 else np.char.add("class", y.astype(str))})


def generated(name: str) -> Stream:
    """A generated stream; the seed is the place of its name."""
    kind, seed = GENERATED[name], 100 * list(GENERATED).index(name)
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(ROWS, COLUMNS))
    codes = [(levels * rng.random(ROWS) ** 2).astype(int) for levels in LEVELS] if kind.categories else []
    at = concepts(kind.drift, rng)
    candidates = [margins(kind, numbers, codes, seed + 1 + concept) for concept in range(at.max() + 1)]
    y, least = labels(np.stack(candidates)[at, np.arange(ROWS)], rng)
    if kind.drift == "scales":  # the same truth, in units that change
        numbers = numbers * 10.0 ** rng.uniform(-2, 2, size=(4, COLUMNS))[concepts("sudden", rng)]
    return Stream(DataSet(name, "y", "drift"), as_table(numbers, codes, y), least)


class Small(NamedTuple):
    """What a generated small table is made of."""

    rows: int
    columns: int
    truth: str
    classes: int = 2  # 1 in regression
    categories: bool = False


SMALL = {
    "linear_60": Small(60, 3, "linear"),
    "linear_200": Small(200, 10, "linear"),
    "linear_1000": Small(1000, 20, "linear", 3),
    "noise_300": Small(300, 10, "noise"),
    "exclusive_or_500": Small(500, 6, "exclusive or"),
    "wide_100": Small(100, 200, "first five"),
    "categories_400": Small(400, 3, "linear", 2, True),
    "numbers_noise_500": Small(500, 8, "noise", 1),
    "numbers_linear_150": Small(150, 8, "linear", 1),
    "numbers_trees_800": Small(800, 6, "trees", 1, True),
}
SMALLS = (*BUNDLED, *SMALL)


def small(name: str) -> tuple[DataSet, pa.Table]:
    """A small table, of scikit-learn or generated."""
    if name in BUNDLED:
        return bundled(name)
    kind, seed = SMALL[name], 5000 + 100 * list(SMALL).index(name)
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(kind.rows, kind.columns))
    codes = [(levels * rng.random(kind.rows) ** 2).astype(int) for levels in LEVELS] if kind.categories else []
    if kind.truth == "exclusive or":
        odd = (numbers[:, 0] > 0) ^ (numbers[:, 1] > 0)
        log_odds = np.where(odd[:, None], [0.0, 2.5], [2.5, 0.0])
    else:
        relevant = numbers[:, :5] if kind.truth == "first five" else numbers
        truth = "linear" if kind.truth == "first five" else kind.truth
        log_odds = margins(Kind("none", truth, kind.categories, kind.classes), relevant, codes, seed + 1)
    if kind.classes == 1:
        y = 100.0 + 10.0 * (log_odds[:, 0] + rng.normal(size=kind.rows))
        return DataSet(name, "y", "regression"), as_table(numbers, codes, y)
    return DataSet(name, "y"), as_table(numbers, codes, labels(log_odds, rng)[0])


def splits(name: str, number: int = 5) -> Iterator[Split]:
    """Random splits of a small table."""
    data, rows = small(name)
    for seed in range(number):
        yield halves(data, rows.take(np.random.default_rng(seed).permutation(len(rows))))


def copies(split: Split, times: int = 5) -> Split:
    """Each training row several times, shuffled."""
    rows = np.random.default_rng(0).permutation(np.tile(np.arange(len(split.train)), times))
    return split._replace(train=split.train.take(rows))


def tiled(rows: int = 300_000) -> tuple[DataSet, pa.Table]:
    """Rows of adult drawn with replacement, with a little noise in the numbers, so that rows differ."""
    split, rng = table("adult"), np.random.default_rng(0)
    drawn = split.train.take(rng.integers(len(split.train), size=rows))
    for place, name in enumerate(drawn.column_names):
        if datasets.is_number(drawn, name):
            values = drawn[name].to_numpy().astype(float)
            drawn = drawn.set_column(place, name, pa.array(values + 0.01 * values.std() * rng.normal(size=rows)))
    return split.data, drawn
