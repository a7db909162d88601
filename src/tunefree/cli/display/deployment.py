"""What several commands print of a model that stands still: the loss to expect after the end, and how it grows."""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

from tunefree.cli.display.common import table_of_names
from tunefree.model.decay import AGES, Expectation
from tunefree.workflows.training import Trained

DRIFT = (
    "warning: the stream drifts. A model that stands still from here on is expected to lose {loss:.4g} on the next"
    " {horizon:,} rows, {ratio:.2g} times what it lost on the way lately. Go on learning (tunefree train NEW --from"
    " MODEL); tunefree evaluate --progressive judges a model that does."
)
RETRAIN = " Or learn again every {rows:,} rows, within which the loss grows by 5 % on the average."
STILL_LEARNING = (
    "the loss expected after the end is below the progressive loss, which counts the first rows too, of which little"
    " was known"
)


def expectation_of(trained: Any) -> Expectation | None:
    """What to expect of a model from here on, if copies of it were judged."""
    model = trained.model
    deployment = getattr(model, "deployment", None)
    return None if deployment is None else deployment.expectation()


def rows_of_expectation(trained: Trained) -> dict[str, str]:
    """Titles and values for the table of a training's end; nothing where nothing is known."""
    found = expectation_of(trained)
    if found is None:
        return {}
    title = "log-loss" if trained.model.loss_is_log_loss else "loss"
    return {
        f"{title} on the way lately": f"{found.recent:.4f}",
        f"{title} expected after the end": f"{found.loss:.4f} (over the next {found.horizon:,} rows)",
    }


def expectation_told(trained: Trained) -> list[Text]:
    """A warning where the stream drifts, and a reason where less is expected than was lost on the way."""
    found = expectation_of(trained)
    if found is None:
        return []
    if not found.drifts:
        below = found.loss < trained.progress.progressive[0].mean_loss()
        return [Text(STILL_LEARNING)] if below else []
    line = DRIFT.format(loss=found.loss, horizon=found.horizon, ratio=found.loss / found.recent)
    line += "" if found.retrain_every is None else RETRAIN.format(rows=found.retrain_every)
    return [Text(line, style="bold yellow")]


def facts_of_expectation(trained: Trained) -> dict[str, Any]:
    """The same for JSON."""
    found = expectation_of(trained)
    if found is None:
        return {}
    ages = [None if age != age else age for age in found.ages]
    known = found._asdict() | {"ages": ages, "drifts": found.drifts, "retrain_every": found.retrain_every}
    shares = trained.model.deployment.rule.means  # type: ignore[union-attr]
    known |= {"temperature": trained.model.deployment.temperature, "share_of_the_mixture": float(shares[0])}  # type: ignore[union-attr]
    return {"after_the_end": known}


def table_of_ages(trained: Trained) -> list[Any]:
    """A table of the loss to expect by the rows since the end."""
    found = expectation_of(trained)
    if found is None:
        return []
    table: Table = table_of_names("rows after the end")
    table.add_column("loss expected", justify="right")
    for age, loss in enumerate(found.ages):
        start, stop = found.horizon * age // AGES, found.horizon * (age + 1) // AGES
        table.add_row(f"{start + 1:,} to {stop:,}", "-" if loss != loss else f"{loss:.4f}")
    copies = f"from {found.copies} copies of the model, each judged by the rows after it"
    table.caption = f"{copies}; on the way lately {found.recent:.4f}"
    table.caption_justify = "left"
    return [table, *expectation_told(trained)]
