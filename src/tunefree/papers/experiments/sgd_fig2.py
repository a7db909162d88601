"""Nitanda, Suzuki 2019, Figure 2: the classification error of stochastic gradient descent falls faster than its loss.

Algorithm 1 of the paper on the data of :mod:`tunefree.papers.experiments.sgd_fig1`: logistic loss, penalty (lambda / 2)
||g||^2, rates 2 / (lambda (gamma + t)), with the last iterate g_{T+1} and with the average weighted by gamma + t - 1.
The paper uses linear functions. Here they have an intercept, since the Bayes rule, x1 = 1, does not pass through the
origin.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from tunefree.losses import Logistic
from tunefree.papers import RegularizedSGD
from tunefree.papers.experiments import drawing
from tunefree.papers.experiments.experiment import Arrays, Claim, Experiment, Point, Report, Results, moments
from tunefree.papers.experiments.sgd_fig1 import BORDER, GAP, strips
from tunefree.papers.losses import OneMargin
from tunefree.papers.playing import Played, play_rounds

OFFSETS = (3.0, 30.0, 300.0, 3e3, 3e4, 3e5)  # grid of gamma, from the least with all rates up to 1 / (2 lambda)
TEST_SEED, TUNING_SEED = 10**6, 10**7  # seeds that differ from those of the runs
KINDS = ("SGD", "averaged SGD")
STYLES = (drawing.Style(drawing.PURPLE), drawing.Style(drawing.BLUE))
PAPER_PENALTIES = {0.1: 0.01, 0.25: 0.01, 0.4: 0.0001}  # lambda in the paper, by delta
BARS = (0.01, 0.001)  # excess errors below which a run has converged, the same for all delta


class Settings(NamedTuple):
    """Sizes; the seed of run r is r."""

    deltas: tuple[float, ...] = (0.1, 0.25, 0.4)
    penalties: tuple[float, ...] = (0.1, 0.01, 0.001, 0.0001)
    iterations: int = 20_000
    tuning_iterations: int = 1000
    runs: int = 5
    test_rows: int = 100_000
    tests: int = 60


class Curves(NamedTuple):
    """Results for one delta, at the penalty with the best training accuracy."""

    delta: float
    penalty: float
    offsets: np.ndarray  # (runs,) gamma
    rounds: np.ndarray  # (tests,)
    risk: np.ndarray  # (2, runs, tests) expected loss of the last iterate and of the average
    error: np.ndarray  # (2, runs, tests) expected classification error
    accuracies: dict[float, float]  # training accuracy by penalty, mean over the runs of SGD and averaged SGD

    @property
    def excess_risk(self) -> np.ndarray:
        """Mean over the runs (2, tests)."""
        return self.risk.mean(axis=1) - bayes_risk(self.delta)

    @property
    def excess_error(self) -> np.ndarray:
        """Mean over the runs (2, tests)."""
        return np.maximum(self.error.mean(axis=1) - (0.5 - self.delta), 0.0)

    def rounds_below(self, bar: float) -> np.ndarray:
        """Rounds (2,) from which on the mean excess error stays below a bar; infinite if never."""
        above = self.excess_error > bar
        after = len(self.rounds) - np.argmax(above[:, ::-1], axis=1)  # one after the last test above the threshold
        after[~above.any(axis=1)] = 0
        return np.append(self.rounds, np.inf)[after]


def parts(settings: Settings, results: Results) -> list[Point]:
    """One part for each delta, penalty and run."""
    return list(product(settings.deltas, settings.penalties, range(settings.runs)))


def work(files: dict[str, Path], settings: Settings, delta: float, penalty: float, run: int) -> Arrays:
    """Tune gamma, then run SGD; expected loss and error at geometrically spaced rounds."""
    trial = strips(settings.tuning_iterations, delta, np.random.default_rng([TUNING_SEED, run]))
    offset = min(OFFSETS, key=lambda candidate: progressive_loss(*trial, penalty, candidate))
    x, y = strips(settings.iterations, delta, np.random.default_rng(run))
    test, _ = strips(settings.test_rows, delta, np.random.default_rng(TEST_SEED))
    stops = np.unique(np.geomspace(10, settings.iterations, settings.tests).round().astype(int))
    functions = descent(x, y, penalty, offset, stops).functions
    measured = [[measure(weights[:, 0], test, delta) for weights in pair] for pair in functions]
    risk, error = np.array(measured).transpose(2, 1, 0)
    accuracy = [np.mean((values(weights[:, 0], x) > 0) == (y > 0)) for weights in functions[-1]]
    return {
        "rounds": stops,
        "risk": risk.copy(),
        "error": error.copy(),
        "offset": np.array(offset),
        "accuracy": np.array(accuracy),
    }


def descent(x: np.ndarray, y: np.ndarray, penalty: float, offset: float, stops: np.ndarray) -> Played:
    """Algorithm 1: its functions are intercept and weights (3, 1) of g_{t+1} and of the average."""
    rows = np.column_stack([np.ones(len(y)), x])
    return play_rounds(RegularizedSGD(penalty, offset), rows, y, OneMargin(Logistic(), "logistic"), set(stops.tolist()))


def progressive_loss(x: np.ndarray, y: np.ndarray, penalty: float, offset: float) -> float:
    """Progressive validation loss: the mean loss of rows, each predicted before it is learned."""
    return float(descent(x, y, penalty, offset, np.empty(0, int)).losses.mean())


def values(weights: np.ndarray, x: np.ndarray) -> np.ndarray:
    """g(x) (n,)."""
    return weights[0] + x @ weights[1:]


def measure(weights: np.ndarray, x: np.ndarray, delta: float) -> tuple[float, float]:
    """Expected loss and classification error; the expectation over the labels given x is exact."""
    predicted = values(weights, x)
    right = x[:, 0] > BORDER
    chance = np.where(right, 0.5 + delta, 0.5 - delta)  # of the label +1
    risk = chance * np.logaddexp(0.0, -predicted) + (1.0 - chance) * np.logaddexp(0.0, predicted)
    error = np.where((predicted > 0) == right, 0.5 - delta, 0.5 + delta)
    return float(risk.mean()), float(error.mean())


def bayes_risk(delta: float) -> float:
    """The Bayes risk of the logistic loss: the entropy of the label."""
    return float(-sum(p * np.log(p) for p in (0.5 - delta, 0.5 + delta)))


def least_linear_risk(delta: float) -> float:
    """The least expected loss of linear functions; by symmetry it is attained by s (x1 - 1) for some s."""
    away = np.linspace(GAP, 2.0 - GAP, 2001)  # |x1 - 1|

    def risk(s: float) -> float:
        likely, unlikely = (0.5 + delta) * np.logaddexp(0.0, -s * away), (0.5 - delta) * np.logaddexp(0.0, s * away)
        return float(np.mean(likely + unlikely))

    return float(minimize_scalar(risk, bounds=(0.0, 20.0), method="bounded").fun)


def curves_of(settings: Settings, results: Results) -> list[Curves]:
    """For each delta the runs with the best training accuracy; ties are broken in favour of the larger penalty."""
    curves = []
    for delta in settings.deltas:
        runs = {
            penalty: [results[delta, penalty, run] for run in range(settings.runs)] for penalty in settings.penalties
        }
        accuracies = {p: float(np.mean([one["accuracy"] for one in repeats]).round(12)) for p, repeats in runs.items()}
        penalty = max(settings.penalties, key=lambda p: (accuracies[p], p))
        repeats = runs[penalty]
        risk, error = (np.stack([one[kind] for one in repeats], axis=1) for kind in ("risk", "error"))
        offsets = np.array([float(one["offset"]) for one in repeats])
        curves.append(Curves(delta, penalty, offsets, repeats[0]["rounds"], risk, error, accuracies))
    return curves


def report(settings: Settings, results: Results) -> Report:
    """Three rows of panels: loss, error, and the ratio of excess error to excess risk."""
    curves = curves_of(settings, results)
    return Report(
        draw=lambda figure: _draw(figure, curves),
        inches=(11.5, 8.6),
        numbers=_numbers(curves),
        claims=_claims(curves),
        differences="The paper states that its functions are linear, but not whether they have an intercept. Without "
        "one none of them is the Bayes rule, so they have one here (kernel 1 + x.z). No linear function attains the "
        "Bayes risk. Excess risks are relative to the Bayes risk, so they do not tend to 0; dashed lines show the "
        "least loss of linear functions too. Loss and error are expectations over the labels of the test rows, so "
        f"label noise does not enter. gamma is selected from {', '.join(f'{offset:,.0f}' for offset in OFFSETS)} by "
        f"the progressive loss on {settings.tuning_iterations:,} separate rows, for each run. Rounds are on a "
        "logarithmic scale. The paper's values cannot be read from its figure. Seeds: the number of the run.",
    )


def _claims(curves: list[Curves]) -> list[Claim]:
    claims = []
    for c in curves:
        paper, ratio = PAPER_PENALTIES.get(c.delta, c.penalty), c.excess_error / c.excess_risk
        shown = ", ".join(f"{100 * share:.2f} % for {penalty:g}" for penalty, share in c.accuracies.items())
        ends = " and ".join(f"{first:.3g} to {last:.3g}" for first, last in ratio[:, [0, -1]].tolist())
        of = f"For delta = {c.delta:g}"
        falls = bool((ratio[:, -1] < ratio[:, 0]).all())
        claims += [
            Claim(f"{of}, lambda = {paper:g} has the best training accuracy", c.penalty == paper, shown),
            Claim(f"{of}, the ratio of excess error to excess risk falls", falls, ends),
        ]
    for bar in BARS:
        rounds = np.array([c.rounds_below(bar) for c in curves])  # (deltas, 2)
        is_fastest = np.isfinite(rounds[-1]) & (rounds[-1] == rounds.min(axis=0))
        to = f"To an excess error of {100 * bar:g} %"
        shown = f"rounds of {' and '.join(KINDS)}: " + "; ".join(
            f"delta = {c.delta:g}: {' and '.join(f'{n:,.0f}' if n < np.inf else 'never' for n in ends)}"
            for c, ends in zip(curves, rounds.tolist(), strict=True)
        )
        claims += [
            Claim(f"{to}, averaged SGD is not later", bool((rounds[:, 1] <= rounds[:, 0]).all()), shown),
            Claim(f"{to}, the largest delta is fastest", bool(is_fastest.all()), shown),
        ]
    return claims


def _numbers(curves: list[Curves]) -> list[dict[str, Any]]:
    rows = []
    for c in curves:
        for k, kind in enumerate(KINDS):
            for i, rounds in enumerate(c.rounds.tolist()):
                row = {"delta": c.delta, "lambda": c.penalty, "method": kind, "round": rounds}
                row |= moments("loss", c.risk[k, :, i]) | moments("error", c.error[k, :, i])
                rows.append(row | {"ratio": float(c.excess_error[k, i] / c.excess_risk[k, i])})
    return rows


def _draw(figure: Any, curves: list[Curves]) -> None:
    panels = figure.subplots(3, len(curves), sharex=True, gridspec_kw={"wspace": 0.3, "hspace": 0.2})
    for place, c in enumerate(curves):
        names = ("expected loss (nats)", "classification error (%)", "excess error / excess risk")
        tops = (f"δ = {c.delta:g}, λ = {c.penalty:g}", "", "")
        for axes, title, name in zip(panels[:, place], tops, names, strict=True):
            drawing.frame(axes, title, "round" if name == names[2] else "", name if place == 0 else "")
            axes.set_xscale("log")
        _draw_column(panels[:, place], c)
    figure.align_ylabels(panels[:, 0])
    panels[0, -1].legend(frameon=False, fontsize=drawing.SMALL_FONT, loc="upper right")


def _draw_column(column: Any, c: Curves) -> None:
    loss, error, ratio = column
    for axes in (loss, error):
        axes.margins(y=0.12)  # space for the labels of horizontal lines
    for k, (kind, style) in enumerate(zip(KINDS, STYLES, strict=True)):
        loss.plot(c.rounds, c.risk[k].mean(axis=0), label=kind, **style.options)
        drawing.band(error, c.rounds, 100 * c.error[k].mean(axis=0), 100 * c.error[k].std(axis=0), style)
        ratio.plot(c.rounds, c.excess_error[k] / c.excess_risk[k], **style.options)
    for axes, levels in (
        (loss, ((bayes_risk(c.delta), "best of all"), (least_linear_risk(c.delta), "best linear"))),
        (error, ((100 * (0.5 - c.delta), "Bayes rule"),)),
    ):
        for level, text in levels:
            axes.axhline(level, color="black", dashes=(4, 3), linewidth=0.9)
            near = {"textcoords": "offset points", "va": "top", "fontsize": drawing.SMALL_FONT}
            axes.annotate(text, (c.rounds[0], level), (2, -2), **near)
    ratio.set_ylim(bottom=0.0)
    ratio.set_xlim(c.rounds[0], c.rounds[-1])
    drawing.plain_numbers(ratio.xaxis)


EXPERIMENT = Experiment(
    name="sgd-fig2",
    title="Nitanda, Suzuki 2019, Figure 2: loss and classification error of (averaged) SGD",
    quick=Settings(iterations=5000, runs=3, test_rows=20_000, tests=30),
    parts=parts,
    work=work,
    report=report,
)
