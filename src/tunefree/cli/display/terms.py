"""What `tunefree inspect` prints of the terms of a model: columns by importance."""

from __future__ import annotations

from typing import Any

from tunefree.cli.display.common import table_of_names
from tunefree.explanation.decomposition import Decomposition
from tunefree.explanation.importance import Importance, importance
from tunefree.explanation.picture import output_of
from tunefree.explanation.told import importance_told


def ranked(decomposition: Decomposition, label: Any = None) -> Importance:
    """The columns by importance, for one class or for all."""
    model = decomposition.model
    return importance(decomposition, None if label is None else output_of(model.classes, model.n_outputs, label)[0])


def facts_of_terms(decomposition: Decomposition | None, top: int, label: Any = None) -> dict[str, Any]:
    """The strongest columns, for JSON; nothing if there are none."""
    if decomposition is None:
        return {}
    columns = ranked(decomposition, label)
    rows = zip(columns.names, columns.sizes.tolist(), columns.errors.tolist(), strict=True)
    shown = [{"column": name, "importance": size, "standard_error": error} for name, size, error in rows]
    return {"terms": shown[: top or None], "sampled_rows": columns.rows}


def table_of_terms(decomposition: Decomposition | None, top: int, label: Any = None) -> list[Any]:
    """The strongest columns, for people: a table, and a line on what it holds."""
    if decomposition is None:
        return []
    columns = ranked(decomposition, label)
    table = table_of_names("column")
    table.add_column("importance", justify="right")
    table.add_column("standard error", justify="right")
    rows = zip(columns.names, columns.sizes.tolist(), columns.errors.tolist(), strict=True)
    for name, size, error in list(rows)[: top or None]:
        table.add_row(name, f"{size:.4g}", f"{error:.1g}")
    return [table, importance_told(decomposition, columns)]
