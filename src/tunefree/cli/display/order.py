"""What several commands print where the targets depend on the order of the rows."""

from __future__ import annotations

from rich.text import Text

from tunefree.report.told import order_warning
from tunefree.workflows.training import Trained


def order_told(trained: Trained) -> list[Text]:
    """A warning, if the targets depend on the order of the rows."""
    warning = order_warning(trained)
    return [] if warning is None else [Text(f"warning: {warning}", style="bold yellow")]
