"""What metrics are called, and how they are written."""

from __future__ import annotations

from tunefree.report.document import Fact
from tunefree.report.formats import MEASURE, PERCENT, Format
from tunefree.workflows.metrics import Measure, Scored

SHARES = ("error", "balanced_error", "coverage", "interval_coverage")  # written in per cent
TITLES = {"log_loss": "log-loss", "auc": "area under ROC curve", "f1": "F1", "r2": "R2", "brier": "Brier score"}
TITLES |= {"interval_coverage": "covered by intervals", "interval_width": "mean width of intervals"}
TITLES |= {"d2": "D2", "gini": "Gini index", "actual_over_expected": "actual / expected"}
BRIEF_TITLES = {"auc": "ROC area", "mean_absolute_error": "absolute error", "root_mean_squared_error": "RMSE"}
OF_SLICES = ("error", "log_loss", "auc", "mean_absolute_error", "root_mean_squared_error", "coverage")
OF_INTERVALS = ("interval_coverage", "interval_width", "interval_score")
OF_SLICES_OF_COUNTS = ("deviance", "d2", "actual_over_expected", "gini")
INTERVALS = (
    "Intervals: 95 %, if rows are independent; Wilson's for shares of rows, else by a jackknife over 20 parts of them."
)
INTERVALS_OF_GROUPS = "Intervals: 95 %, if groups are independent; by a jackknife over 20 parts of whole groups."


def intervals_named(scored: Scored) -> str:
    """What intervals of scored rows are."""
    return INTERVALS if scored.groups is None else INTERVALS_OF_GROUPS


def title_of(name: str) -> str:
    """What a metric is called."""
    return TITLES.get(name, name.replace("_", " "))


def format_of(name: str) -> Format:
    """In per cent where it is a share of rows."""
    return PERCENT if name in SHARES else MEASURE


def facts_of_measures(measures: dict[str, Measure]) -> list[Fact]:
    """Metrics with their intervals."""
    return [Fact(title_of(name), measure, format_of(name), name) for name, measure in measures.items()]
