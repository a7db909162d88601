"""A comparison of learners in words, for what the command prints and for reports."""

from __future__ import annotations

import os

from tunefree.model_files.plan import POOL
from tunefree.report.document import Table
from tunefree.report.told import oddities_told, rows_told
from tunefree.workflows.comparison import RATES, Comparison, Contestant, has_rate, in_figures


def titles_of(comparison: Comparison) -> tuple[str, ...]:
    """What is told of each learner, after its name."""
    error = "error" if comparison.task == "classification" else "absolute error"
    return f"progressive {comparison.loss_name}", error, "seconds"


def row_of(comparison: Comparison, contestant: Contestant) -> tuple[str, ...]:
    """The name of a learner, and these things as texts."""
    error = contestant.metrics.mean_error()
    shown = f"{100 * error:.2f} %" if comparison.task == "classification" else in_figures(error)
    return contestant.name, in_figures(contestant.metrics.mean_loss()), shown, f"{contestant.seconds:.3f}"


def table_of_losses(comparison: Comparison) -> Table:
    """The learners by progressive loss."""
    rows = [list(row_of(comparison, contestant)) for contestant in comparison.ranked]
    note = "Each row is predicted by all learners before any of them learns it."
    return Table("Learners by progressive loss", ["learner", *titles_of(comparison)], rows, note)


def remarks(comparison: Comparison) -> list[str]:
    """Sentences under the table."""
    lines = [f"left out: {name} ({why})" for name, why in comparison.left_out.items()]
    skipped = f", {comparison.skipped:,} skipped" if comparison.skipped else ""
    rows = rows_told(comparison.rows, comparison.plan)
    lines.append(f"{rows}{skipped}; the models take {memory(comparison)}")
    leaders = [f"{name} {100 * share:.1f} %" for name, share in comparison.leaders().items()][:4]
    lines += [f"the pool ends with {', '.join(leaders)}"] if leaders else []
    notes = [f"note: {line}" for line in oddities_told(comparison.oddities)]
    return [*lines, *_costs(comparison), *notes]


def _costs(comparison: Comparison) -> list[str]:
    """What a sweep would have cost."""
    sweeps = comparison.sweeps()
    once, tuned = sweeps["learners"], sweeps["learners_and_rates"]
    rates = sum(has_rate(contestant.name) for contestant in comparison.contestants if contestant.name != POOL)
    lines = [f"seconds of learning alone; reading and encoding took {comparison.reading:.2f} s, here once"]
    if once.passes:
        lines.append(f"trying {_counted(once.passes, 'learner')}, one after the other: {once.seconds:.2f} s")
    if rates:
        passes = f"the same with {RATES} rates for those that have one ({rates}): {tuned.passes} passes"
        lines.append(f"{passes}, {tuned.seconds:.2f} s")
    if POOL in sweeps:
        processors = _counted(os.cpu_count() or 1, "processor")
        lines.append(f"the pool: 1 pass, {sweeps[POOL].seconds:.2f} s (on {processors}; a learner has one)")
    return lines


def memory(comparison: Comparison) -> str:
    """What all models take."""
    size = float(comparison.bytes)
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1000.0:
            return f"{size:.3g} {unit}"
        size /= 2**10
    return f"{size:.3g} GiB"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
