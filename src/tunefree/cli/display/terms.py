"""What `tunefree inspect` prints of the terms of a model: columns and pairs of columns by importance."""

from __future__ import annotations

from typing import Any

from tunefree.cli.display.common import table_of_names
from tunefree.explanation.decomposition import Decomposition
from tunefree.explanation.fidelity import Ranking, ranking
from tunefree.explanation.picture import output_of
from tunefree.explanation.told import fidelity_told, own_margins, percent, shares_told


def ranked(found: Decomposition, label: Any = None) -> Ranking:
    """The terms by importance, for one class or for all."""
    model = found.model
    output = None if label is None else output_of(model.classes, model.n_outputs, label)[0]
    return ranking(found, output)


def facts_of_terms(found: Decomposition | None, top: int, label: Any = None) -> dict[str, Any]:
    """The strongest terms, for JSON; nothing if there are none."""
    if found is None:
        return {}
    terms = ranked(found, label)
    rows = zip(terms.names, terms.importance.tolist(), terms.explained.tolist(), strict=True)
    shown = [{"term": name, "importance": size, "explained": part} for name, size, part in rows]
    return {
        "terms": shown[: top or None],
        "explained": terms.fidelity.explained,
        "share_of_terms": found.share,
        "sampled_rows": terms.fidelity.rows,
    }


def table_of_terms(found: Decomposition | None, top: int, label: Any = None) -> list[Any]:
    """The strongest terms, for people: a table, and lines on what it holds."""
    if found is None:
        return []
    terms = ranked(found, label)
    table = table_of_names("column or pair")
    table.add_column("importance", justify="right")
    table.add_column("explained so far", justify="right")
    rows = zip(terms.names, terms.importance.tolist(), terms.explained.tolist(), strict=True)
    for name, importance, explained in list(rows)[: top or None]:
        table.add_row(name, f"{importance:.4g}", percent(explained))
    return [
        table,
        f"importance: standard deviation of the contribution to the model's {own_margins(found)}; pairs beyond what"
        " their columns tell alone",
        f"{shares_told(found)} {fidelity_told(found, terms.fidelity, label is not None)}",
    ]
