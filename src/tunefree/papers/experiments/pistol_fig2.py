"""Orabona 2014, Figure 2: the bound of Theorem 2 on the excess risk of PiSTOL, for beta = 1/2.

Up to logarithms and constants the bound is, with E the optimal risk and 1/3 < beta <= 1/2,

    max((E + 1/T)^(beta / (2 beta + 1)) T^(-2 beta / (2 beta + 1)),
        (E + 1/T)^((3 beta - 1) / (4 beta)) T^(-1/2),
        T^(-2 beta / (beta + 1))).

The last term dominates for small T, the first from about T = E^(-(beta + 1) / (2 beta)) on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tunefree.papers.experiments import drawing
from tunefree.papers.experiments.experiment import Claim, Experiment, Report, Results
from tunefree.papers.pistol_risk import excess_risk_rate


class Settings(NamedTuple):
    """Parameters of the bound and of its plot."""

    beta: float = 0.5
    optimal_risks: tuple[float, ...] = (1e-1, 1e-2, 1e-3, 1e-4, 0.0)
    decades: int = 9  # of T, from 1
    points_per_decade: int = 40


STYLES = (
    drawing.Style(drawing.BLUE),
    drawing.Style(drawing.VERMILLION, (6, 2)),
    drawing.Style(drawing.GREEN, (6, 2, 1.5, 2)),
    drawing.Style(drawing.PURPLE, (2, 1.5)),
    drawing.Style(drawing.BLACK, (), 2.0),
)


def bounds_of(settings: Settings) -> tuple[np.ndarray, np.ndarray]:
    """T, and the bound for each optimal risk."""
    rounds = np.logspace(0, settings.decades, settings.decades * settings.points_per_decade + 1)
    return rounds, np.array([excess_risk_rate(rounds, risk, settings.beta) for risk in settings.optimal_risks])


def crossing_of(rounds: np.ndarray, values: np.ndarray, beta: float) -> float:
    """The first T of the second regime of a curve; infinite if there is none."""
    early = values <= rounds ** exponents(beta)[0] * (1.0 + 1e-12)
    # Near T = 1 the first term may be the largest, since E adds to its 1 / T.
    return float(rounds[np.flatnonzero(early)[-1] + 1]) if early.any() and not early[-1] else np.inf


def exponents(beta: float) -> tuple[float, float]:
    """Exponents of T in the first and in the second regime.

    Examples
    --------
    >>> exponents(0.5)
    (-0.6666666666666666, -0.5)
    """
    return -2.0 * beta / (beta + 1.0), -2.0 * beta / (2.0 * beta + 1.0)


def report(settings: Settings, results: Results) -> Report:
    """The bound against T, with the beginning of the second regime."""
    rounds, bounds = bounds_of(settings)
    numbers = [
        {"optimal_risk": risk, "T": float(t), "bound": float(value)}
        for risk, values in zip(settings.optimal_risks, bounds, strict=True)
        for t, value in zip(rounds, values, strict=True)
    ]
    beta = settings.beta
    first, second = exponents(beta)
    crossings = {
        risk: (crossing_of(rounds, values, beta), risk ** (-(beta + 1.0) / (2.0 * beta)))
        for risk, values in zip(settings.optimal_risks, bounds, strict=True)
        if risk > 0.0
    }
    return Report(
        draw=lambda figure: _draw(figure, settings, rounds, bounds),
        inches=(7.4, 4.4),
        numbers=numbers,
        claims=[
            Claim(
                f"For beta = {beta:g} a first regime of faster convergence, T^{first:.4g}, lasts until T is of the "
                f"order of E^(-(beta + 1) / (2 beta)), E the optimal risk; then the bound falls as T^{second:.4g}",
                all(expected / 10.0 < crossing < 10.0 * expected for crossing, expected in crossings.values()),
                "; ".join(
                    f"E = {risk:g}: T = {t:,.3g}, of the order of {order:,.3g}"
                    for risk, (t, order) in crossings.items()
                ),
            )
        ],
        differences="The paper gives neither constants and logarithmic factors nor the optimal risks of its curves. "
        "Here all constants are 1 and logarithmic factors are omitted, so slopes and crossings can be compared, but "
        "not heights.",
    )


def _draw(figure: Any, settings: Settings, rounds: np.ndarray, bounds: np.ndarray) -> None:
    axes = figure.add_axes((0.11, 0.13, 0.66, 0.78))
    beta = settings.beta
    title = f"Bound on the excess risk of PiSTOL, β = {beta:g}; dots: where the second regime begins"
    drawing.frame(axes, title, "T (training rows)", "bound, up to constants and logs")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(1, rounds[-1])
    ends = []
    for risk, values, style in zip(settings.optimal_risks, bounds, STYLES, strict=False):
        axes.plot(rounds, values, **style.options)
        ends.append(drawing.EndLabel(float(values[-1]), f"optimal risk {risk:g}", style.color))
        crossing = crossing_of(rounds, values, beta)
        if crossing < np.inf:
            axes.plot(crossing, np.interp(crossing, rounds, values), "o", color=style.color, markersize=4.5)
    first, second = exponents(beta)
    for start, height, power, place, label in (
        (3.0, 0.02, first, (1.6, 1.3e-3), f"$T^{{-2β/(β+1)}} = T^{{{first:.2f}}}$"),
        (1e6, 3e-3, second, (2e6, 4e-3), f"$T^{{-2β/(2β+1)}} = T^{{{second:.2f}}}$"),
    ):
        across = np.array([start, 30.0 * start])
        axes.plot(across, height * (across / start) ** power, color=drawing.GREY, linewidth=1.2)
        axes.text(*place, label, color=drawing.GREY, va="top" if place[1] < height else "bottom")
    drawing.label_ends(axes, ends)


EXPERIMENT = Experiment(
    name="pistol-fig2",
    title="Orabona 2014, Figure 2: the bound of Theorem 2 on the excess risk of PiSTOL",
    quick=Settings(points_per_decade=20),
    report=report,
)
