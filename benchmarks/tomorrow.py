"""Models that are trained on the past and used on the rows that follow, without learning on, at several cuts in time.

A model learns the rows up to a cut, and predicts the next stretch, half as many rows. Six cuts lie at equal ratios; one
lucky season decides nothing. Vowpal Wabbit's default stands beside it, the one of its twelve settings that is best over
all cuts, and the best at each cut; both are chosen on the test rows, which favours it. Sets are streams in the order of
their file, and generated streams of 40,000 rows: their log-odds are linear, with weights that change at once, steadily
or with a season, or with columns whose means move, or with no change at all.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import vowpal
from common import keep, kept
from datasets import ALL, DataSet, Split, lines, load

import tunefree
from tunefree.stream.batch import BadRows
from tunefree.workflows import training
from tunefree.workflows.evaluation import evaluate

CUTS = tuple(0.12 * (0.66 / 0.12) ** (k / 5) for k in range(6))  # of the rows
AHEAD = 0.5  # of the rows learned
GENERATED = ("abrupt", "gradual", "seasonal", "covariate", "none")
ROWS = 40_000
FROM_FILES = ("elec2", "flights_1m", "flights_3m", "covtype_in_order", "adult", "bank_additional_full")
COLUMNS = ("before", "now", "default", "best over cuts", "best at each cut", "expected", "true")


def generated(kind: str) -> pa.Table:
    """A stream of one kind of drift."""
    rng = np.random.default_rng(GENERATED.index(kind))
    time, X = np.linspace(0.0, 1.0, ROWS), rng.normal(size=(ROWS, 8))
    first, second = rng.normal(size=(2, 8, 1)) / 2.0
    if kind == "covariate":
        X += np.outer(time, 3.0 * rng.normal(size=8))
    turn = {
        "abrupt": (time > 0.4) * np.pi / 2.0,
        "gradual": time * np.pi,
        "seasonal": np.sin(time * 12.0 * np.pi),
    }.get(kind, 0.0 * time)
    margins = np.cos(turn) * (X @ first)[:, 0] + np.sin(turn) * (X @ second)[:, 0]
    y = np.where(rng.random(ROWS) < 1.0 / (1.0 + np.exp(-margins)), "1", "0")
    return pa.table({f"x{j}": X[:, j] for j in range(8)} | {"y": y})


def stream(name: str) -> tuple[DataSet, pa.Table]:
    """A data set as one table in the order of time, or in the random order of its split."""
    if name in GENERATED:
        return DataSet(name, "y", "drift"), generated(name)
    own = {"flights_1m": "flights_3m", "covtype_in_order": "covtype"}.get(name, name)
    data = next(data for data in ALL if data.name == own)
    if name == "covtype_in_order":
        data = data._replace(kind="drift")
    split = load(data)
    table = pa.concat_tables([split.train, split.test])
    return data, table.slice(0, 1_000_000) if name == "flights_1m" else table


def splits(data: DataSet, table: pa.Table) -> Iterator[Split]:
    """The rows up to each cut, and the stretch that follows."""
    for cut in CUTS:
        n = int(cut * len(table))
        yield Split(data, table.slice(0, n), table.slice(n, int(AHEAD * n)))


def of_the_pool(data: DataSet, table: pa.Table) -> list[dict[str, float]]:
    """At each cut the loss with and without evidence for standing still, and the loss that was expected.

    One model learns on from cut to cut: it is, to the byte, the one that learns all rows up to the cut.
    """
    model: Any = None
    learned, found = 0, []
    for split in splits(data, table):
        source = tunefree.open_source(split.train.slice(learned))
        learned = len(split.train)
        plan = tunefree.Plan(target=data.target, refit=0)
        model = training.train(source, plan) if model is None else more(model, source)
        own, losses = model.model, {}
        deployment, expected = own.deployment, own.deployment.expectation() if own.deployment else None
        for name, evidence in (("now", deployment), ("before", None)):
            own.deployment = evidence
            losses[name] = evaluate(model, tunefree.open_source(split.test), BadRows()).metrics.mean_loss()
        own.deployment = deployment
        losses["expected"] = expected.loss if expected else float("nan")
        found.append(losses)
    return found


def more(model: Any, source: Any) -> Any:
    """The model after further rows."""
    return training.learn_more(model, source)


def of_vowpal(data: DataSet, table: pa.Table, settings: list[str]) -> dict[str, list[float]]:
    """The loss of each setting at each cut."""
    found: dict[str, list[float]] = {setting: [] for setting in settings}
    for split in splits(data, table):
        with tempfile.TemporaryDirectory() as folder:
            texts = lines(split, split.train), lines(split, split.test)
            targets = split.targets(split.test)
            problem = vowpal.Problem.write(Path(folder), *texts, len(split.classes), targets)
            for setting in settings:
                found[setting].append(vowpal.log_loss(targets, vowpal.run(problem, setting).predictions))
    return found


def measure(name: str, settings: list[str]) -> dict[str, Any]:
    """All figures of a set."""
    data, table = stream(name)
    return {"pool": of_the_pool(data, table), "vowpal": of_vowpal(data, table, settings) if settings else {}}


def row(name: str, figures: dict[str, Any]) -> str:
    """A line of the table: means over the cuts."""
    own = {key: float(np.mean([cut[key] for cut in figures["pool"]])) for key in ("before", "now", "expected")}
    values = {"before": own["before"], "now": own["now"], "expected": own["expected"], "true": own["now"]}
    if figures["vowpal"]:
        losses = np.array(list(figures["vowpal"].values()))
        values |= {"default": float(np.mean(figures["vowpal"][vowpal.DEFAULT]))}
        values |= {"best over cuts": losses.mean(axis=1).min(), "best at each cut": losses.min(axis=0).mean()}
    cells = (f"{values[column]:.4f}" if column in values else "" for column in COLUMNS)
    return f"| {name.replace('_', ' ')} | {' | '.join(cells)} |"


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default=",".join([*GENERATED, *FROM_FILES]))
    parser.add_argument("--vowpal", choices=("all", "default", "none"), default="all", help="which of its settings")
    parser.add_argument("--show", action="store_true", help="print stored results only")
    options = parser.parse_args()
    settings = {"all": list(vowpal.SETTINGS), "default": [vowpal.DEFAULT], "none": []}[options.vowpal]
    if not options.show:
        for name in options.sets.split(","):
            keep("tomorrow", name, measure(name, settings))
            print(row(name, kept("tomorrow")[name]), flush=True)
    print(f"|  | {' | '.join(COLUMNS)} |\n|{'---|' * (len(COLUMNS) + 1)}")
    for name, figures in kept("tomorrow").items():
        print(row(name, figures))


if __name__ == "__main__":
    main()
