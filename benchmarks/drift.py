"""Where progressive losses rise: the test of tunefree beside ADWIN and Page-Hinkley of river, on the same losses.

Losses are those of the pool, each row predicted before it is learned. In 20 made streams of 10,000 rows it is known
where what is to be learned changes: abruptly, gradually, again and again, only in its noise, only in the share of a
class; or never, though a column of no use may change. The constants of ADWIN and Page-Hinkley are chosen on half of
these streams, by errors and then by delay; with these the other half was run once. Only alarms at which losses had
risen count. An alarm before a change, or a second one after it, is false; a change without one before the next is
missed.
Three real streams are taken in their order and in a random one, in which all alarms are false.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from common import SHARED, parser_of
from pyarrow import parquet
from river.drift import ADWIN, PageHinkley

import tunefree
from tunefree.theory.rises import LossRises, Place
from tunefree.training.callbacks import Callback

ROWS, COLUMNS = 10_000, 5
REAL = {"elec2": ("class", 45_312), "flights_3m": ("delay", 60_000), "covtype": ("Cover_Type", 30_000)}
LATE = 15  # minutes from which a flight is late


class Stream(NamedTuple):
    """A made stream."""

    kind: str
    X: np.ndarray
    y: np.ndarray
    changes: tuple[int, ...]  # the first row of each change


def score(X: np.ndarray, weights: Sequence[float]) -> np.ndarray:
    """A linear score, and a term that is not linear."""
    return X[:, : len(weights)] @ np.asarray(weights) + 0.5 * np.abs(X[:, 0]) - 0.4


def labels(rng: np.random.Generator, of: np.ndarray, noise: Any) -> np.ndarray:
    """Labels that follow scores."""
    return np.where(of + noise * rng.logistic(size=len(of)) > 0.0, "yes", "no")


def streams_of(n: int) -> Iterator[Stream]:
    """The streams, of two that are alike one for choosing."""
    place, half = np.arange(n), n // 2
    first, second = (1.0, 1.0, 0.0), (1.0, -1.0, 0.5)
    for k in range(20):
        rng = np.random.default_rng(k)
        X = rng.normal(size=(n, COLUMNS))
        one, other = score(X, first), score(X, second)
        if k < 4:
            heavy = rng.standard_t(2.5, n)
            targets = labels(rng, one, 0.1), labels(rng, one, 1.0), one + heavy, one + rng.normal(size=n)
            yield Stream("none", X, targets[k], ())
        elif k < 8:
            after = place >= half
            of = np.where(after, -one if k < 6 else other, one)
            yield Stream("abrupt", X, labels(rng, of, 0.3) if k % 2 else of + rng.normal(size=n), (half,))
        elif k < 12:
            width = n // 10 if k < 10 else n // 4
            after = rng.random(n) < np.clip((place - half) / width, 0.0, 1.0)
            of = np.where(after, other if k < 10 else -one, one)
            yield Stream("gradual", X, labels(rng, of, 0.3) if k % 2 else of + rng.normal(size=n), (half,))
        elif k < 14:
            quarters = tuple(range(n // 4, n, n // 4))
            of = np.where(np.searchsorted(quarters, place, "right") % 2, other, one)
            yield Stream("recurring", X, labels(rng, of, 0.3) if k % 2 else of + rng.normal(size=n), quarters)
        elif k < 16:
            deviation = np.where(place >= half, 1.5 if k % 2 else 2.5, 1.0)
            yield Stream("variance only", X, one + deviation * rng.normal(size=n), (half,))
        elif k < 18:
            positive = rng.random(n) < np.where(place >= half, 0.5, 0.05 if k % 2 else 0.15)
            X[:, 0] += np.where(positive, 1.0, -1.0)
            yield Stream("share of a class", X, np.where(positive, "yes", "no"), (half,))
        else:
            X[half:, 4] += 3.0
            yield Stream("useless column", X, labels(rng, one, 0.5) if k % 2 else one + rng.normal(size=n), ())


class Recorded(Callback):
    """Keeps losses and targets."""

    def __init__(self) -> None:
        self.losses: list[np.ndarray] = []

    def step(self, trained: Any, step: Any) -> None:
        self.losses.append(step.row_losses)


def losses_of(table: Any, target: str) -> tuple[np.ndarray, np.ndarray]:
    """Progressive losses of the pool, and of a guess: 1 for classes, else the square distance from the mean so far."""
    recorded = Recorded()
    tunefree.train(table, target=target, callbacks=[recorded], shuffle=False)
    losses, y = np.concatenate(recorded.losses), pa.table(table)[target]
    scale = np.ones(len(losses))
    if pa.types.is_floating(y.type):
        numbers = y.to_numpy()
        means = np.cumsum(numbers) / np.arange(1, len(numbers) + 1)
        scale = np.append(np.nan, (numbers[1:] - means[:-1]) ** 2 / 2.0)
    is_known = ~np.isnan(losses) & ~np.isnan(scale)
    return np.where(is_known, losses, 0.0), np.where(is_known, scale, 0.0)


Alarms = Callable[[np.ndarray, np.ndarray], list[int]]  # rows at which it is sure, of losses and their scale


def of_tunefree(losses: np.ndarray, scale: np.ndarray) -> list[int]:
    """The rows at which rises are sure."""
    test, rows = LossRises(), np.arange(len(losses))
    while len(rows):
        places = [Place(row) for row in rows.tolist()]
        rows = rows[test.add(losses[rows], np.ones(len(rows)), scale[rows], places.__getitem__).rows :]
    return [rise.row + rise.rows - 1 for rise in test.rises]


def of_adwin(delta: float) -> Alarms:
    """ADWIN, at whose alarms the mean has risen."""

    def alarms(losses: np.ndarray, scale: np.ndarray) -> list[int]:
        detector, rows, before = ADWIN(delta=delta), [], 0.0
        for row, loss in enumerate(losses.tolist()):
            detector.update(loss)
            if detector.drift_detected and detector.estimation > before:
                rows.append(row)
            before = detector.estimation
        return rows

    return alarms


def of_page_hinkley(delta: float, threshold: float) -> Alarms:
    """Page-Hinkley for rises."""

    def alarms(losses: np.ndarray, scale: np.ndarray) -> list[int]:
        detector, rows = PageHinkley(delta=delta, threshold=threshold, mode="up"), []
        for row, loss in enumerate(losses.tolist()):
            detector.update(loss)
            if detector.drift_detected:
                rows.append(row)
        return rows

    return alarms


class Outcome(NamedTuple):
    """Of a detector on some streams."""

    false: int
    missed: int
    delays: list[int]

    def rank(self) -> tuple[float, float]:
        """By which constants are chosen."""
        return self.false + self.missed, float(np.mean(self.delays)) if self.delays else np.inf


def judged(alarms: Alarms, runs: Sequence[tuple[Stream, np.ndarray, np.ndarray]]) -> Outcome:
    """Alarms of a detector on streams whose changes are known."""
    false, missed, delays = 0, 0, []
    for stream, losses, scale in runs:
        rows = np.array(alarms(losses, scale), np.int64)
        starts = [*stream.changes, len(losses)]
        false += int((rows < starts[0]).sum())
        for start, stop in pairwise(starts):
            here = rows[(rows >= start) & (rows < stop)]
            missed += not len(here)
            false += max(len(here) - 1, 0)
            delays += [int(here[0] - start)] if len(here) else []
    return Outcome(false, missed, delays)


DETECTORS: dict[str, dict[str, Alarms]] = {
    "tunefree": {"level 0.001": of_tunefree},
    "ADWIN": {f"delta {delta:g}": of_adwin(delta) for delta in (0.002, 1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-9)},
    "Page-Hinkley": {
        f"delta {delta:g}, threshold {threshold:g}": of_page_hinkley(delta, threshold)
        for delta in (0.005, 0.05, 0.2)
        for threshold in (50, 10, 20, 100, 200, 500)
    },
}  # the first constants of each are the defaults


def print_row(name: str, outcome: Outcome, microseconds: float) -> None:
    """A row of the table."""
    delay = f"{np.median(outcome.delays):,.0f}, {np.mean(outcome.delays):,.0f}" if outcome.delays else "-"
    print(f"| {name} | {outcome.false} | {outcome.missed} | {delay} | {microseconds:.2f} |", flush=True)


def timed(alarms: Alarms, runs: Sequence[tuple[Stream, np.ndarray, np.ndarray]]) -> tuple[Outcome, float]:
    """The outcome, and microseconds a loss."""
    start = time.process_time()
    outcome = judged(alarms, runs)
    return outcome, 1e6 * (time.process_time() - start) / sum(len(losses) for _, losses, _ in runs)


def on_made(n: int) -> dict[str, Alarms]:
    """Print the table of the made streams; returns the detectors with their defaults, and as they were chosen."""
    runs = []
    for stream in streams_of(n):
        table = {f"x{j}": stream.X[:, j] for j in range(COLUMNS)} | {"y": stream.y}
        runs.append((stream, *losses_of(table, "y")))
    halves, used = [[run for k, run in enumerate(runs) if (k % 4 in (0, 3)) == first] for first in (True, False)], {}
    for name, constants in DETECTORS.items():
        best = min(constants, key=lambda words: judged(constants[words], halves[0]).rank())
        for words in dict.fromkeys([next(iter(constants)), best]):
            used[f"{name}, {words}"] = constants[words]
    for title, half in zip(("streams for choosing", "the others"), halves, strict=True):
        n_changes = sum(len(stream.changes) for stream, *_ in half)
        print(f"\n| {title}: {n_changes} changes | false | missed | delay: median, mean | us a loss |")
        print("|---|---|---|---|---|")
        for name, alarms in used.items():
            print_row(name, *timed(alarms, half))
    for stream, losses, scale in runs:
        outcomes = [judged(alarms, [(stream, losses, scale)]) for alarms in used.values()]
        print(stream.kind, *(f"{o.false} false, {o.missed} missed, {o.delays}" for o in outcomes), sep=" | ")
    return used


def on_real(used: dict[str, Alarms], most: int) -> None:
    """Print how many alarms there are on real streams, in their order and in a random one."""
    for name, (target, rows) in REAL.items():
        path = SHARED / f"{name}.parquet"
        if not path.exists():
            print(f"{name}: not there")
            continue
        table = parquet.read_table(path).slice(0, min(rows, most))
        if target == "delay":
            late = pa.array(np.where(table[target].to_numpy() > LATE, "late", "not"))
            table = table.drop_columns([target]).append_column(target, late)
        order = np.random.default_rng(0).permutation(len(table))
        both = losses_of(table, target), losses_of(table.take(order), target)
        for words, alarms in used.items():
            print(f"| {name} | {words} | {' | '.join(str(len(alarms(*losses))) for losses in both)} |", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the comparison."""
    options = parser_of(__doc__).parse_args(arguments)
    used = on_made(1500 if options.quick else ROWS)
    on_real(used, 2000 if options.quick else ROWS**2)


if __name__ == "__main__":
    main()
