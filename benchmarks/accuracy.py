"""One pass, nothing chosen: test log-loss of tunefree and of Vowpal Wabbit's default, rows in the same order.

Runs on the data sets found in TUNEFREE_DATA (or ../shared/data); numbers as they are, other columns one-hot.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from common import SHARED, TUNEFREE, VOWPAL
from pyarrow import compute, parquet

import tunefree

SETS = {
    "adult": ("income", ()),
    "shuttle": ("Class", ()),
    "letter_recognition": ("lettr", ()),
    "satellite": ("classes", ()),
    "spambase": ("type", ()),
    "bank_additional_full": ("y", ("duration",)),
    "census_income_kdd_test": ("income", ("instance weight",)),
}


def place(name: str) -> Path:
    """Where a data set is; the census data come with the package."""
    return Path(tunefree.__file__).parent / "data" / "adult.parquet" if name == "adult" else SHARED / f"{name}.parquet"


def split(name: str, drop: tuple[str, ...]) -> tuple[pa.Table, pa.Table]:
    """Training rows in a fixed random order, and test rows."""
    table = parquet.read_table(place(name))
    table = table.drop_columns([column for column in drop if column in table.column_names])
    if "split" in table.column_names:
        parts = [table.filter(compute.equal(table["split"], part)).drop_columns("split") for part in ("train", "test")]
        return parts[0].take(np.random.default_rng(0).permutation(len(parts[0]))), parts[1]
    order = np.random.default_rng(0).permutation(len(table))
    return table.take(order[: 2 * len(table) // 3]), table.take(order[2 * len(table) // 3 :])


def vw_lines(table: pa.Table, target: str, classes: list[str]) -> str:
    """The table in Vowpal Wabbit's text: numbers as they are, others one-hot."""
    names = [name for name in table.column_names if name != target]
    columns = [table[name].to_pylist() for name in names]
    numeric = [pa.types.is_integer(t.type) or pa.types.is_floating(t.type) for t in map(table.schema.field, names)]
    labels = [classes.index(str(label)) for label in table[target].to_pylist()]
    codes = [str(2 * k - 1) if len(classes) == 2 else str(k + 1) for k in labels]
    lines = []
    for i, code in enumerate(codes):
        parts = [
            f"{j}:{column[i]}" if number and column[i] is not None else f"{j}={str(column[i]).replace(' ', '_')}"
            for j, (column, number) in enumerate(zip(columns, numeric, strict=True))
            if not number or column[i] != 0
        ]
        lines.append(f"{code} | {' '.join(parts)}".replace("=:", "="))
    return "\n".join(lines) + "\n"


def vowpal_loss(train: pa.Table, test: pa.Table, target: str, folder: Path) -> float:
    """Test log-loss of its default settings after one pass."""
    classes = sorted({str(label) for label in train[target].to_pylist()})
    (folder / "train.vw").write_text(vw_lines(train, target, classes))
    (folder / "test.vw").write_text(vw_lines(test, target, classes))
    kind = ["--oaa", str(len(classes)), "--probabilities"] if len(classes) > 2 else []
    base = [*VOWPAL, "--quiet", "--loss_function", "logistic"]
    subprocess.run([*base, *kind, "-d", "train.vw", "-f", "m.vw"], cwd=folder, check=True)
    out = ["-p", "p.txt"] if kind else ["-r", "p.txt"]
    subprocess.run([*VOWPAL, "--quiet", "-t", "-d", "test.vw", "-i", "m.vw", *kind[2:], *out], cwd=folder, check=True)
    labels = np.array([classes.index(str(label)) for label in test[target].to_pylist()])
    lines = (folder / "p.txt").read_text().split("\n")[: len(labels)]
    if kind:
        odds = np.array([[float(part.split(":")[1]) for part in line.split()] for line in lines])
        odds = np.maximum(odds, 1e-15)
        return float(-np.log((odds / odds.sum(1, keepdims=True))[np.arange(len(labels)), labels]).mean())
    return float(np.logaddexp(0, -(2 * labels - 1) * np.array([float(line.split()[0]) for line in lines])).mean())


def our_loss(train: pa.Table, test: pa.Table, target: str, folder: Path) -> tuple[float, float]:
    """Test log-loss and error after one pass."""
    for name, table in (("train", train), ("test", test)):
        labels = pa.array([str(label) for label in table[target].to_pylist()])
        table = table.set_column(table.column_names.index(target), target, labels)
        parquet.write_table(table, folder / f"{name}.parquet")
    command = [*TUNEFREE, "train", "train.parquet", "-t", target, "-o", "model", "-q"]
    subprocess.run(command, cwd=folder, check=True)
    command = [*TUNEFREE, "evaluate", "model", "test.parquet", "--json"]
    figures = json.loads(subprocess.run(command, cwd=folder, check=True, capture_output=True).stdout)
    return figures["log_loss"], figures["error"]


def main() -> None:
    """A line for each data set."""
    print(f"{'data set':<24}{'tunefree, one pass':>22}{'Vowpal Wabbit, one pass':>26}")
    for name, (target, drop) in SETS.items():
        if not place(name).exists():
            print(f"{name:<24}not in {SHARED}")
            continue
        train, test = split(name, drop)
        with tempfile.TemporaryDirectory() as folder:
            ours, error = our_loss(train, test, target, Path(folder))
            theirs = vowpal_loss(train, test, target, Path(folder))
        print(f"{name:<24}{ours:>12.4f} ({100 * error:5.2f} %){theirs:>22.4f}")


if __name__ == "__main__":
    main()
