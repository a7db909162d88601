"""Common code of the benchmarks: their options, generated files, interleaved timings, stored results.

Each benchmark is a script with a function ``main``, which takes the arguments of the command line.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent / "data"
FIGURES = Path(__file__).parents[1] / "docs" / "figures"
SHARED = Path(os.environ.get("TUNEFREE_DATA", Path(__file__).parents[2] / "shared" / "data"))
TUNEFREE = [sys.executable, "-m", "tunefree"]
WARM = 2100  # rows learned before the timed ones, so that all code is compiled


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """The parser of a benchmark, which its docstring describes, with the option that all of them have."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rows, to see that it runs; figures mean nothing")
    return parser


def names_in(text: str) -> tuple[str, ...]:
    """Names with commas between them, as the value of an option."""
    return tuple(text.split(","))


def zipf_rows(n_rows: int, per_row: int, n_features: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row indices, Zipf-distributed features (from 1, distinct within a row) and values of sparse rows."""
    rng = np.random.default_rng(seed)
    ranks = rng.random((n_rows, per_row))
    features = np.floor(n_features**ranks).astype(np.int64)  # P(feature) is proportional to 1 / feature
    features.sort(axis=1)
    fresh = np.ones(features.shape, bool)
    fresh[:, 1:] = features[:, 1:] != features[:, :-1]
    rows = np.broadcast_to(np.arange(n_rows)[:, None], features.shape)[fresh]
    return rows, features[fresh], np.round(rng.random(fresh.sum()) + 0.001, 4)


def text_file(n_rows: int, per_row: int = 52, n_features: int = 200_000, bar: str = "|") -> Path:
    """A file of labelled rows with about 40 features each, as Vowpal Wabbit text (or, without the bar, svmlight)."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"zipf-{n_rows}-{n_features}.{'vw' if bar else 'svm'}"
    if path.exists():
        return path
    weights = np.random.default_rng(0).normal(size=n_features + 1)
    part = path.with_suffix(".part")
    with open(part, "w") as file:
        for start in range(0, n_rows, 20_000):
            count = min(20_000, n_rows - start)
            rows, features, values = zipf_rows(count, per_row, n_features, start + 1)
            margins = np.bincount(rows, weights[features] * values, count)
            positive = np.random.default_rng(start).random(count) < 1 / (1 + np.exp(-margins))
            entries = [f"{j}:{v:.4g}" for j, v in zip(features.tolist(), values.tolist(), strict=True)]
            edges = np.searchsorted(rows, np.arange(count + 1)).tolist()
            for i, label in enumerate(np.where(positive, "1", "-1").tolist()):
                file.write(
                    " ".join(
                        [label, bar, *entries[edges[i] : edges[i + 1]]]
                        if bar
                        else [label, *entries[edges[i] : edges[i + 1]]]
                    )
                    + "\n"
                )
    part.rename(path)
    return path


def kept(benchmark: str) -> dict[str, Any]:
    """Stored results of a benchmark, by name."""
    path = FOLDER / f"{benchmark}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def keep(benchmark: str, name: str, figures: Any) -> None:
    """Store a result for tables and figures; it replaces an earlier one of the same name."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{benchmark}.json"
    part = path.with_suffix(".part")
    part.write_text(json.dumps(kept(benchmark) | {name: figures}, indent=1))
    part.replace(path)


def write_figure(figure: Any, name: str, quick: bool) -> None:
    """Write docs/figures/NAME.png and .svg; with ``--quick`` the figure is drawn and not written."""
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "tunefree"}):
        for suffix, metadata in (("png", {}), ("svg", {"Date": None})):
            target = io.BytesIO() if quick else FIGURES / f"{name}.{suffix}"
            figure.savefig(target, format=suffix, dpi=150, metadata=metadata)


def process_seconds(command: Sequence[str]) -> float:
    """Wall time of a whole process, which must succeed."""
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr.decode()}")
    return seconds


def interleaved(runs: dict[str, Callable[[], float]], repeats: int = 5) -> dict[str, list[float]]:
    """Times of each function, called in turn: once to warm up, then ``repeats`` times."""
    for run in runs.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            seconds[name].append(run())
    return seconds


def report(seconds: dict[str, list[float]]) -> None:
    """Print median, minimum and maximum of each, and the ratio of its median to that of the first."""
    first = statistics.median(next(iter(seconds.values())))
    for name, values in seconds.items():
        middle = statistics.median(values)
        print(f"{name:<44}{middle:9.3f} s  ({min(values):.3f} .. {max(values):.3f})  ratio {middle / first:6.3f}")


def peak_memory_mib(command: Sequence[str]) -> float:
    """Maximum resident set size of the child processes so far, this command included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    process_seconds(command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return max(before, after) / 1024
