"""Test losses after one pass of tunefree with its defaults and of Vowpal Wabbit, on the same rows in the same order.

Vowpal Wabbit is run with its defaults and with eleven other settings; the best of the twelve is chosen on the test
rows. It gets texts as words, and in a second result as words with the value log(1 + count). The benchmark uses the data
sets that are available (see ``datasets.py``). ``--sets a,b`` selects data sets, ``--default-only`` omits the eleven
other settings. Results are stored in benchmarks/data/accuracy.json.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import vowpal
from common import TUNEFREE, WARM, keep, kept
from pyarrow import parquet

from tunefree.workflows.evaluation import Reliability
from tunefree.workflows.training import Trained

TEXT_OPTIONS = ("-b", "24")  # the default of 18 bits is too small for the vocabulary of the texts


def ours(split: datasets.Split, folder: Path, loss: str | None = None) -> dict[str, float]:
    """Run ``tunefree train`` of one pass, and ``tunefree evaluate``; the time of training is of the whole process."""
    tables = {"train": split.train, "test": split.test, "warm": split.train.slice(0, WARM)}
    for name, table in tables.items():
        parquet.write_table(table, folder / f"{name}.parquet")
    options = ["-t", split.data.target, "-o", "model.tf", "-q", "--refit", "0", *(["--loss", loss] if loss else [])]
    options += ["--task", "classification" if split.classes else "regression"]
    subprocess.run([*TUNEFREE, "train", "warm.parquet", *options], cwd=folder, check=True)
    start = time.perf_counter()
    subprocess.run([*TUNEFREE, "train", "train.parquet", *options], cwd=folder, check=True)
    seconds = time.perf_counter() - start
    command = [*TUNEFREE, "evaluate", "model.tf", "test.parquet", "--json"]
    figures = json.loads(subprocess.run(command, cwd=folder, check=True, capture_output=True).stdout)
    progressive = Trained.load(folder / "model.tf").progress.progressive[0].mean_loss()
    return figures | {"seconds": seconds, "progressive_loss": progressive}


def classes(split: datasets.Split, settings: Sequence[str], folder: Path) -> list[dict[str, Any]]:
    """The result, or for texts the two results, on a classification data set."""
    mine = ours(split, folder)
    results = []
    for logarithms in (False, True) if split.data.kind == "text" else (False,):
        texts = (datasets.lines(split, table, logarithms) for table in (split.train, split.test))
        options = TEXT_OPTIONS if split.data.kind == "text" else ()
        y = split.targets(split.test)
        problem = vowpal.Problem.write(folder, *texts, len(split.classes), y, options)
        theirs = {setting: figures_of(vowpal.run(problem, setting), y) for setting in settings}
        if split.data.kind == "drift":
            for setting, figures in theirs.items():
                known = vowpal.run(problem, setting, progressive=True).progressive
                figures["progressive_loss"] = vowpal.log_loss(split.targets(split.train), known)
        name = f"{split.data.name}{' [log counts]' if logarithms else ''}"
        results.append({"name": name, "kind": split.data.kind, "ours": mine, "theirs": theirs})
    return results


def figures_of(run: vowpal.Run, y: np.ndarray) -> dict[str, float]:
    """Test losses of a run of Vowpal Wabbit."""
    reliability, odds = Reliability(), np.nan_to_num(np.exp(run.predictions))
    reliability.add(odds.max(axis=1), odds.argmax(axis=1) == y, np.ones(len(y)))
    return {
        "log_loss": vowpal.log_loss(y, run.predictions),
        "error": vowpal.error(y, run.predictions),
        "calibration_error": reliability.error(),
        "seconds": run.seconds,
    }


def numbers(split: datasets.Split, settings: Sequence[str], folder: Path) -> list[dict[str, Any]]:
    """The two results on a regression data set: with the square and with the absolute loss."""
    texts = (datasets.lines(split, table) for table in (split.train, split.test))
    y = split.targets(split.test)
    problem = vowpal.Problem.write(folder, *texts, 0, y)
    results = []
    for loss, name in (("square", "squared"), ("absolute", "quantile")):
        theirs = {}
        for setting in settings:
            done = vowpal.run(problem, setting, name)
            misses = done.predictions - y
            theirs[setting] = {
                "mean_absolute_error": float(np.abs(misses).mean()),
                "root_mean_squared_error": float(np.sqrt((misses**2).mean())),
                "seconds": done.seconds,
            }
        mine = ours(split, folder, loss)
        results.append({"name": f"{split.data.name} [{loss}]", "kind": "regression", "ours": mine, "theirs": theirs})
    return results


def criterion(result: dict[str, Any]) -> str:
    """The metric by which settings are compared."""
    if result["kind"] != "regression":
        return "log_loss"
    return "root_mean_squared_error" if "[square]" in result["name"] else "mean_absolute_error"


def best(result: dict[str, Any], figure: str | None = None) -> str:
    """The setting with the least loss on the test rows."""
    figure = figure or criterion(result)
    return min(result["theirs"], key=lambda setting: result["theirs"][setting][figure])


def ratio(result: dict[str, Any], setting: str) -> float:
    """The loss of tunefree divided by that of a setting of Vowpal Wabbit."""
    return result["ours"][criterion(result)] / result["theirs"][setting][criterion(result)]


def line(result: dict[str, Any]) -> str:
    """A row of the table."""
    mine, default, winner = result["ours"], result["theirs"][vowpal.DEFAULT], best(result)
    other = result["theirs"][winner]
    if result["kind"] == "regression":
        pair = ("mean_absolute_error", "root_mean_squared_error")
        three = [" / ".join(f"{figures[name]:.5g}" for name in pair) for figures in (mine, default, other)]
        cells = [three[0], f"{mine['seconds']:.1f}", three[1], f"{default['seconds']:.1f}", three[2]]
    else:
        three = [f"{figures['log_loss']:.4f} / {100 * figures['error']:.2f}" for figures in (mine, default, other)]
        gaps = [f" / {100 * figures['calibration_error']:.1f}" for figures in (mine, default)]
        cells = [three[0] + gaps[0], f"{mine['seconds']:.1f}"]
        cells += [three[1] + gaps[1], f"{default['seconds']:.1f}", three[2]]
    ratios = [f"{ratio(result, setting):.3f}" for setting in (vowpal.DEFAULT, winner)]
    return "| " + " | ".join([result["name"], *cells, f"`{winner}`", *ratios]) + " |"


def table(results: Sequence[dict[str, Any]]) -> str:
    """The tables in Markdown, with geometric means of the ratios and progressive losses."""
    figures = {"log-loss / error % / calibration error %": False, "MAE / RMSE": True}
    lines = []
    for title, regression in figures.items():
        chosen = [result for result in results if (result["kind"] == "regression") == regression]
        if chosen:
            short = title.replace(" / calibration error %", "")
            heads = ["data set", f"tunefree: {title}", "s", f"VW default: {title}", "s", f"VW best: {short}", "which"]
            heads += ["ours / default", "ours / best"]
            lines += ["", "| " + " | ".join(heads) + " |", "|---" * len(heads) + "|", *map(line, chosen)]
    dense = [result for result in results if result["kind"] == "table"]
    if dense:
        means = [
            math.exp(np.mean([math.log(ratio(result, setting(result))) for result in dense]))
            for setting in (lambda result: vowpal.DEFAULT, best)
        ]
        lines += ["", f"geometric mean over the {len(dense)} tables: {means[0]:.3f} of the default's log-loss, "]
        lines[-1] += f"{means[1]:.3f} of the best setting's"
    for result in results:
        if result["kind"] == "drift":
            winner = best(result, "progressive_loss")
            theirs = [f"{result['theirs'][s]['progressive_loss']:.4f}" for s in (vowpal.DEFAULT, winner)]
            mine = f"{result['ours']['progressive_loss']:.4f}"
            lines.append(f"{result['name']}, progressive log-loss: {mine}; VW {theirs[0]}, best {theirs[1]} ({winner})")
    return "\n".join(lines)


def main() -> None:
    """Run the benchmark, store and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", help="comma-separated names of data sets")
    parser.add_argument("--default-only", action="store_true", help="only Vowpal Wabbit's default")
    parser.add_argument("--show", action="store_true", help="only print stored results")
    chosen = parser.parse_args()
    if chosen.show:
        print(table(sorted(kept("accuracy").values(), key=lambda result: datasets.place(result["name"]))))
        return
    settings = [vowpal.DEFAULT] if chosen.default_only else list(vowpal.SETTINGS)
    results = []
    for data in datasets.available(chosen.sets.split(",") if chosen.sets else None):
        split = datasets.load(data)
        with tempfile.TemporaryDirectory() as folder:
            measured = (classes if split.classes else numbers)(split, settings, Path(folder))
        for result in measured:
            keep("accuracy", result["name"], result)
            print(line(result), flush=True)
        results += measured
    print(table(results))


if __name__ == "__main__":
    main()
