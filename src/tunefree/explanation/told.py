"""Words for what is explained."""

from __future__ import annotations

import math

from tunefree.explanation.decomposition import Decomposition
from tunefree.explanation.importance import Importance
from tunefree.losses.rates import has_rates


def reference_told(decomposition: Decomposition) -> str:
    """What contributions are to, and relative to, as a sentence."""
    rows = decomposition.reference.matrix if decomposition.reference.rows is not None else ()
    relative = f"to their mean over {len(rows):,} rows" if len(rows) else "to a row of which nothing is known"
    return f"Contributions add up to the {margins_named(decomposition)}, and are relative {relative}."


def importance_told(decomposition: Decomposition, columns: Importance) -> str:
    """What importance is, as a line."""
    return (
        f"importance: mean absolute contribution to the {margins_named(decomposition)}, over {columns.rows:,} rows; the"
        " standard error is that of this mean"
    )


def margins_named(decomposition: Decomposition) -> str:
    """What the model's margins are called."""
    if decomposition.model.task == "regression":
        return "logarithm of the prediction" if has_rates(decomposition.model.options.loss) else "prediction"
    return "log-odds" if decomposition.model.loss_is_log_loss else "margin"


def percent(part: float) -> str:
    """A part as a percentage.

    Examples
    --------
    >>> percent(0.98765), percent(1.0), percent(0.99996), percent(math.nan), percent(-1.2)
    ('98.8 %', '100 %', '> 99.9 %', 'none', 'none')
    """
    if math.isnan(part) or part < 0.0:
        return "none"
    if part > 0.9995:
        return "> 99.9 %" if part < 1.0 - 1e-9 else "100 %"
    return f"{100 * part:.1f} %"


def digits(number: float, n: int) -> str:
    """A number with so many significant digits, zeros at its end included.

    Examples
    --------
    >>> digits(0.34, 4), digits(0.003, 2), digits(1234.5, 4)
    ('0.3400', '0.0030', '1234')
    """
    return f"{number:#.{n}g}".rstrip(".")


def with_error(number: float, error: float) -> str:
    """A number and its standard error, with as many decimals as the first digit of the error has.

    Examples
    --------
    >>> with_error(1.0004, 0.002), with_error(0.9, 0.1), with_error(12.3, 4.0), with_error(1.0, 0.0)
    ('1.000 ± 0.002', '0.9 ± 0.1', '12 ± 4', '1 ± 0')
    """
    decimals = max(0, -math.floor(math.log10(error))) if error > 0.0 else 0
    return f"{number:.{decimals}f} ± {error:.{decimals}f}"
