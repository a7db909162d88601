"""What several commands print where the targets depend on the order of the rows."""

from __future__ import annotations

from rich.text import Text

from tunefree.workflows.certification import order_of
from tunefree.workflows.training import Trained

SORTED = (
    "warning: the rows are sorted by the target, or grouped by it: {changes:,} of the neighbouring targets looked at"
    " differ, and {expected:,.0f} would in a random order. The losses are of predicting the next row in this order;"
    " they tell nothing of other rows, and the model leans to the last rows it saw. Train with --shuffle."
)
DEPENDENT = (
    "warning: the target depends on the number of the row: it drifts, or neighbouring rows are alike (a test of level"
    " {level:g}). The losses are of predicting the next row; new rows in another order may be predicted worse. If the"
    " order has no meaning, train with --shuffle."
)


def order_told(trained: Trained) -> list[Text]:
    """A warning, if the targets depend on the order of the rows."""
    found = order_of(trained).get("order", {"depends_on_rows": False})
    if not found["depends_on_rows"]:
        return []
    return [Text((SORTED if found["sorted"] else DEPENDENT).format(**found), style="bold yellow")]
