"""A model in words, for what commands print and for reports."""

from __future__ import annotations

from typing import Any

from tunefree.model.decay import AGES, Expectation
from tunefree.model.model import Model
from tunefree.model.targets import MOST_SUMMED, RunningMetrics
from tunefree.stream.tally import Reason
from tunefree.workflows.certification import order_of
from tunefree.workflows.prediction import Predictor
from tunefree.workflows.training import Trained

SORTED = (
    "the rows are sorted by the target, or grouped by it: {changes:,} of the neighbouring targets looked at"
    " differ, and {expected:,.0f} would in a random order. The losses are of predicting the next row in this order;"
    " they tell nothing of other rows, and the model leans to the last rows it saw. Train with --shuffle."
)
DEPENDENT = (
    "the target depends on the number of the row: it drifts, or neighbouring rows are alike (a test of level"
    " {level:g}). The losses are of predicting the next row; new rows in another order may be predicted worse. If the"
    " order has no meaning, train with --shuffle."
)
DRIFT = (
    "the stream drifts. A model that stands still from here on is expected to lose {loss:.4g} on the next"
    " {horizon:,} rows, {ratio:.2g} times what it lost on the way lately. Go on learning (tunefree train NEW --from"
    " MODEL); tunefree evaluate --progressive judges a model that does."
)
RETRAIN = " Or learn again every {rows:,} rows, within which the loss grows by 5 % on the average."
STILL_LEARNING = (
    "the loss expected after the end is below the progressive loss, which counts the first rows too, of which little"
    " was known"
)


def listed(names: list[Any], most: int) -> str:
    """The first names, separated by commas."""
    return ", ".join(map(str, names[:most])) + (", ..." if len(names) > most else "")


def goal_of(trained: Predictor, so_far: str = "") -> str:
    """The task, the target, and its classes."""
    model, target = trained.model, trained.plan.target
    goal = f"'{target}'" if target else "the label"
    if model.task == "regression":
        return f"regression of {goal}"
    return f"classification of {goal} ({len(model.classes)} classes{so_far}: {listed(model.classes, 4)})"


def losses_of(model: Model, metrics: RunningMetrics) -> dict[str, str]:
    """Mean loss and error as texts, with their titles."""
    if model.task == "classification":
        default = "log-loss" if model.loss_is_log_loss else "loss"
        return {default: f"{metrics.mean_loss():.4f}", "error": f"{100 * metrics.mean_error():.2f} %"}
    loss, error = (
        f"{'over ' if total >= MOST_SUMMED else ''}{mean:.6g}"
        for total, mean in ((metrics.loss, metrics.mean_loss()), (metrics.errors, metrics.mean_error()))
    )
    return {"loss": loss, "absolute error": error}


def describe(trained: Trained) -> str:
    """One line on what is learned, with which loss and by which learner."""
    model = trained.model
    default = "square" if model.task == "regression" else "logistic"
    averaged = ", averaged" if model.options.average else ""
    how = f"loss {model.options.loss or default}, learner {model.learner}{averaged}"
    return f"{goal_of(trained, ' so far')}; {how}"


REASON_TITLES = ("reason", "first met in", "rows")


def reasons_told(reasons: list[Reason]) -> list[list[str]]:
    """Why rows were skipped: for each reason where the first row is, and how many there are.

    Parameters
    ----------
    reasons : list of Reason

    Examples
    --------
    >>> reasons_told([Reason("… is not a number", "age", 1200, "a.csv", 7)])
    [['… is not a number', "a.csv, row 7, column 'age'", '1,200']]
    """
    return [[own.problem, own.place, f"{own.rows:,}"] for own in reasons]


def expectation_of(trained: Any) -> Expectation | None:
    """What to expect of a model from here on, if copies of it were judged."""
    model = trained.model
    deployment = getattr(model, "deployment", None)
    return None if deployment is None else deployment.expectation()


def rows_of_expectation(trained: Trained) -> dict[str, str]:
    """Titles and values for the table of a training's end; nothing where nothing is known."""
    found, refit = expectation_of(trained), trained.progress.refit
    title = "log-loss" if trained.model.loss_is_log_loss else "loss"
    if refit is not None and refit.pays:
        of_passes = f"{title} of {refit.rows:,} rows held out after the passes"
        on_the_way = f"{title} of the last {refit.rows:,} rows on the way"
        return {
            of_passes if trained.plan.passes > 1 else on_the_way: f"{refit.before:.4f}",
            f"{title} of these by a model of all others": f"{refit.standing:.4f} (so all were learned again)",
        }
    if found is None:
        return {}
    return {
        f"{title} on the way lately": f"{found.recent:.4f}",
        f"{title} expected after the end": f"{found.loss:.4f} (over the next {found.horizon:,} rows)",
    }


def order_warning(trained: Trained) -> str | None:
    """A warning, if the targets depend on the order of the rows."""
    found = order_of(trained).get("order", {"depends_on_rows": False})
    if not found["depends_on_rows"]:
        return None
    return (SORTED if found["sorted"] else DEPENDENT).format(**found)


def drift_warning(trained: Any) -> str | None:
    """A warning, if a model that stands still is expected to be clearly worse than one that goes on learning."""
    found = expectation_of(trained)
    if found is None or not found.drifts:
        return None
    line = DRIFT.format(loss=found.loss, horizon=found.horizon, ratio=found.loss / found.recent)
    return line + ("" if found.retrain_every is None else RETRAIN.format(rows=found.retrain_every))


def losses_by_age(found: Expectation) -> list[tuple[str, str]]:
    """The loss to expect by the rows since the end, as texts."""
    rows = []
    for age, loss in enumerate(found.ages):
        start, stop = found.horizon * age // AGES, found.horizon * (age + 1) // AGES
        rows.append((f"{start + 1:,} to {stop:,}", "-" if loss != loss else f"{loss:.4f}"))
    return rows


def ages_note(found: Expectation) -> str:
    """What these losses are from."""
    copies = f"from {found.copies} copies of the model, each judged by the rows after it"
    return f"{copies}; on the way lately {found.recent:.4f}"


def sentence(text: str) -> str:
    """A text that begins with a capital.

    Examples
    --------
    >>> sentence("from Bath")
    'From Bath'
    """
    return text[:1].upper() + text[1:]
