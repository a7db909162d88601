"""What several commands print of a model that stands still: the loss to expect after the end, and how it grows."""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

from tunefree.cli.display.common import table_of_names
from tunefree.report.told import STILL_LEARNING, ages_note, drift_warning, expectation_of, losses_by_age
from tunefree.workflows.training import Trained


def expectation_told(trained: Trained) -> list[Text]:
    """A warning where the stream drifts, and a reason where less is expected than was lost on the way."""
    found = expectation_of(trained)
    if found is None:
        return []
    warning = drift_warning(trained)
    if warning is None:
        below = found.loss < trained.progress.progressive[0].mean_loss()
        return [Text(STILL_LEARNING)] if below else []
    return [Text(f"warning: {warning}", style="bold yellow")]


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
    for ages, loss in losses_by_age(found):
        table.add_row(ages, loss)
    table.caption = ages_note(found)
    table.caption_justify = "left"
    return [table, *expectation_told(trained)]
