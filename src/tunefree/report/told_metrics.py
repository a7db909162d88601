"""Metrics in words, for what commands print and for reports."""

from __future__ import annotations

import math

from tunefree.workflows.metrics import Measure

SHARES = ("error", "balanced_error", "coverage")  # printed in per cent
TITLES = {"log_loss": "log-loss", "auc": "area under ROC curve", "f1": "F1", "r2": "R2", "brier": "Brier score"}
TITLES |= {"d2": "D2", "gini": "Gini index", "actual_over_expected": "actual / expected"}
INTERVALS = (
    "intervals: 95 %, if rows are independent; Wilson's for shares of rows, else by a jackknife over 20 groups of rows;"
    " ± is half the width"
)


def title_of(name: str) -> str:
    """What a metric is called."""
    return TITLES.get(name, name.replace("_", " "))


def shown(name: str, measure: Measure) -> tuple[str, str]:
    """A metric and its interval as texts."""
    if math.isnan(measure.value):
        return "-", ""
    value = in_unit(name, measure.value, "g")
    if measure.low is None or measure.high is None:
        return value, ""
    return value, f"{in_unit(name, measure.low, '.4g').removesuffix(' %')} to {in_unit(name, measure.high, '.4g')}"


def in_unit(name: str, value: float, digits: str) -> str:
    """A value in per cent where it is a share of rows, else with so many digits."""
    return f"{100.0 * value:.2f} %" if name in SHARES else f"{value:{digits}}"
