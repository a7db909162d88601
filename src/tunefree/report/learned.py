"""A learned model: its goal, its losses along the stream, its columns, and how to reproduce it."""

from __future__ import annotations

import platform
import shlex
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tunefree.core.parameters import OF_PYTHON, words_of
from tunefree.explanation.decomposition import Decomposition
from tunefree.generations.kinds import TREES, registered
from tunefree.generations.problem import Settings
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.pool.growth import settings_of_trees
from tunefree.pool.model import last_class
from tunefree.pool.options import Monotone
from tunefree.pool.weights_record import estimated_loss
from tunefree.report.document import Block, Code, Column, Data, Fact, Facts, Note, Section, Table, key_of, known
from tunefree.report.findings import notes_of, tables_of_reasons
from tunefree.report.formats import (
    COUNT,
    FIGURES,
    PERCENT,
    TENTHS_OF_PERCENT,
    TWO,
    first,
    learner_name,
    loss_name,
    sentence,
    weights_named,
)
from tunefree.report.guarantees import bounds, order
from tunefree.report.members import blocks_of_members, in_brief
from tunefree.report.terms import blocks_of_features, blocks_of_terms
from tunefree.theory.column_changes import LEVEL as LEVEL_OF_COLUMNS
from tunefree.theory.rises import LEVEL
from tunefree.training.rises import changed_most, drifts_of
from tunefree.workflows.columns import ColumnsView, kind_of, why_of
from tunefree.workflows.findings import findings, missing_shares

MOST_NAMED = 8
OPEN = 24  # columns up to which a table is not folded
HINT = "To read columns otherwise: --numeric, --categorical, --date, --text, --ignore COLUMN; --na-values, --decimal."
OF_ALL = "To list all members, columns and features: --top 0."
MOST = 400  # listed columns
PACKAGES = ("tunefree", "numpy", "llvmlite", "pyarrow")
MOST_RISES = 20  # rises in text output
OF_RISES = (
    f"A sequential test of level {LEVEL:g} for the whole stream, and anew after each rise, for independent rows. It"
    f" sees rises of the loss and nothing else. Columns are compared by tests of level {LEVEL_OF_COLUMNS:g} for all"
    " together."
)
# Fields of a rise that only JSON has.
RISE_FIELDS = ("row in file", "rows", "rows before", "rows compared", "columns compared", "changed")
MOST_CLASSES = 12  # named classes


def facts_of_columns(trained: Trained) -> list[Fact]:
    """The columns of each kind, those with an unusual format first; empty without columns."""
    kinds: dict[str, list[Any]] = {}
    for column in _columns(trained):
        kinds.setdefault(column.kind, []).append(column)
    facts = []
    for kind, columns in kinds.items():
        described = [(column.name, column.description()) for column in columns]
        described.sort(key=lambda pair: not pair[1])
        names = [f"{name} ({description})" if description else name for name, description in described]
        facts.append(Fact(kind_of(columns[0]).plural, names, first(MOST_NAMED, True), f"{kind}_columns"))
    late = [f"{column.name} (from row {column.since:,} on)" for column in _columns(trained) if column.since]
    further = getattr(trained.encoder, "further", None)
    left_out = [f"{name} ({type})" for name, type in further.left_out.items()] if further else []
    new = ("new columns", late), ("new columns of no use", left_out)
    return facts + known(*(Fact(title, names, first(MOST_NAMED)) for title, names in new))


def _columns(trained: Trained) -> list[Any]:
    return list(getattr(trained.encoder, "columns", []))


def table_of_columns(trained: Trained, most: int) -> list[Table]:
    """A table of columns, their kinds and missing values, if any; text output has ``most`` rows (0: all)."""
    columns = _columns(trained)
    if not columns:
        return []
    missing, header = missing_shares(trained), [Column("column", key="name"), Column("learned as", key="kind")]
    header.append(Column("because of", key="why"))
    rows: list[list[Any]] = [[column.name, column.kind, why_of(trained.plan, column)] for column in columns]
    if any(column.since for column in columns):
        header.append(Column("from row", COUNT, "since"))
        rows = [[*row, column.since or None] for row, column in zip(rows, columns, strict=True)]
    header.append(Column("missing", TENTHS_OF_PERCENT))
    rows = [[*row, missing[row[0]]] for row in rows]
    note = f"The first {most:,} of {len(columns):,} columns." if 0 < most < len(columns) else ""
    shown = range(most) if most else None
    return [Table(f"{len(columns):,} columns", header, rows, note, "columns", shown, len(columns) <= OPEN, True)]


def blocks_of_view(view: ColumnsView) -> list[Block]:
    """Blocks on how training would read the columns of a source."""
    facts = [Fact("source", view.name), Fact("rows", view.rows, COUNT), Fact("sample", view.where)]
    facts += [Fact("task", view.task, lambda task: task or "no target is named"), *known(Fact("why", view.why))]
    columns = [
        Column("column", key="name"),
        Column("read as", key="kind"),
        Column("why"),
        Column("missing", TENTHS_OF_PERCENT),
        Column("different", COUNT),
        Column("values"),
        *(Column(name, is_shown=False) for name in ("range", "examples", "findings")),
    ]
    remarks = [[one._asdict() for one in view.findings if one.column == column.name] for column in view.columns]
    rows = [[*one[:5], one.values, *one[5:], remark] for one, remark in zip(view.columns, remarks, strict=True)]
    table = Table(f"{len(rows):,} columns", columns, rows, key="columns")
    return [Facts(facts), table, *(Note(line, "note") for line in view.notes()), Note(HINT, "fine")]


def learned(trained: Trained) -> Section:
    """The section on the rows and columns of the training data."""
    tables = table_of_columns(trained, MOST)
    facts = [fact for fact in facts_of_model(trained) if not (tables and fact.key.endswith("_columns"))]
    return Section("learned", "Rows and columns", [Facts(facts), *tables])


def summary(trained: Trained, output: Path, for_programs: bool = False) -> list[Block]:
    """A summary after training: rows, losses, the model file, and findings.

    ``for_programs``: whether to add rises of the loss and bounds of the certificate.
    """
    blocks: list[Block] = [Facts([*facts_of_rows(trained), *losses(trained), Fact("model", str(output))])]
    blocks += tables_of_reasons(trained.progress.tally.reasons)
    blocks += [*blocks_of_drifts(trained), *bounds(trained)] if for_programs else []
    return [*blocks, *tables_of_passes(trained), *notes_of(findings(trained))]


def facts_of_model(trained: Trained) -> list[Fact]:
    """Facts about the target, the loss, the learner, the rows, and settings of trees chosen by later rows."""
    model, pool = trained.model, trained.model.pool
    facts = [Fact("task", model.task), Fact("target", trained.plan.target or "the label")]
    facts += known(Fact("learned from", trained.progress.data))
    facts += [Fact("loss", loss_name(model)), Fact("learner", model.options.learner, lambda _: learner_name(model))]
    facts += [] if trained.progress.complete else [Fact("state", "a checkpoint, not trained to the end")]
    facts += facts_of_rows(trained)
    if pool is not None and not pool.only_predicts:
        known_rows, rows = pool.known_rows
        title = "rows whose group was known" if pool.members.has_groups else "rows whose columns equal earlier ones"
        facts.append(Fact(title, known_rows, lambda n: f"{n:,} of {rows:,}", "known_rows"))
    for kind, settings in settings_of_trees(None if pool is None else pool.members.growth).items():
        facts.append(Fact(f"{kind} trees", settings._asdict(), lambda of: Settings(**of).in_words(), f"{kind}_trees"))
    return facts


def facts_of_rows(trained: Trained) -> list[Fact]:
    """Facts about the rows, classes and columns of the training data."""
    model, progress, plan = trained.model, trained.progress, trained.plan
    rows = progress.progressive[0].rows if progress.progressive else progress.rows
    kept, all_rows = (0, 0) if model.pool is None else model.pool.kept_rows
    sample = Fact("trees are grown on", kept, lambda n: f"a sample of {n:,} of {all_rows:,} rows", "kept_rows")
    forgotten = trained.encoder.ids.n_forgotten if trained.kind == "table" else 0
    return [
        Fact("rows learned", rows, COUNT, "rows"),
        *known(
            Fact("monotone", model.monotone, partial(_monotone, model)),
            Fact("weighted by", weights_named(plan)),
            Fact("groups", plan.groups, lambda name: f"column '{name}'", "group"),
            Fact("rows skipped", progress.tally.count, COUNT, "skipped"),
            Fact("rows without a label, skipped", progress.tally.unlabelled, COUNT, "unlabelled"),
        ),
        Fact("features", model.n_features, COUNT, "n_features"),
        *known(Fact("features forgotten", forgotten, COUNT, "n_forgotten")),
        *known(Fact("classes", model.classes, first(MOST_CLASSES))),
        *facts_of_columns(trained),
        *([sample] if kept < all_rows else []),
    ]


def _monotone(model: Any, monotone: tuple[Monotone, ...]) -> str:
    """A phrase on monotone columns, and the members that are left out for them."""
    goal = "the prediction" if (last := last_class(model.classes)) is None else f"the probability of {last!r}"
    changes = ", ".join(f"{'rises' if column.sign > 0 else 'falls'} with '{column.name}'" for column in monotone)
    kinds = {slot.kind for slot in model.pool.members.slots}
    left_out = ", ".join(f"{kind} trees" for kind in (*TREES, *registered()) if kind not in kinds)
    return f"{goal} {changes}; without {left_out} and learners on leaves"


def losses(trained: Trained) -> list[Fact]:
    """Mean loss and error of the first pass, the estimated loss on new rows, and the number of rises."""
    model, metrics = trained.model, trained.progress.progressive[0]
    counted = " (after the first row)" if model.task == "regression" else ""
    names, facts = names_of_losses(model), list[Fact]()
    means = {"progressive_loss": metrics.mean_loss(), "progressive_error": metrics.mean_error()}
    for (title, format), (key, mean) in zip(names, means.items(), strict=True):
        facts.append(Fact(f"progressive {title}", mean, replace(format, unit=f"{format.unit}{counted}"), key))
    if model.pool is not None and (estimate := estimated_loss(model.pool)) is not None:
        rows = "rows of new groups" if model.pool.members.has_groups else "new rows"
        facts += [
            Fact(f"estimated {names[0][0]} on {rows}", estimate.loss, FIGURES, "estimated_loss"),
            Fact("standard error of this estimate", estimate.standard_error, TWO, "estimated_loss_error"),
        ]
    if trained.rises is not None:
        facts.append(Fact("rises of the loss", trained.rises.count, COUNT, "drift_count"))
    return facts


def names_of_losses(model: Any) -> tuple[tuple[str, Any], tuple[str, Any]]:
    """Names of the loss and the error of a model, with their formats."""
    if model.task == "classification":
        return ("log-loss" if model.loss_is_log_loss else "loss", FIGURES), ("error", PERCENT)
    return ("squared error" if loss_name(model) == "square" else "loss", FIGURES), ("absolute error", FIGURES)


def tables_of_passes(trained: Trained) -> list[Table]:
    """Losses and errors of each pass, if there were several."""
    progress = trained.progress
    if len(progress.progressive) < 2:
        return []
    (loss, loss_format), (error, error_format) = names_of_losses(trained.model)
    columns = [
        Column("pass", COUNT),
        Column(f"progressive {loss}", loss_format, "progressive_loss"),
        Column(f"progressive {error}", error_format, "progressive_error"),
    ]
    passes = enumerate(progress.progressive, 1)
    rows = [[number, *((one.mean_loss(), one.mean_error()) if one.rows else (None, None))] for number, one in passes]
    return [Table("Passes", columns, rows)]


def blocks_of_drifts(trained: Trained) -> list[Block]:
    """The rises of the loss; an empty list for JSON if there are none, and no block if they are unknown."""
    rises = drifts_of(trained)
    if not rises:
        return [Data("drifts", [])] if trained.rises is not None else []
    columns = [Column("row", COUNT), Column("file"), Column("time"), Column("loss before", FIGURES, "loss_before")]
    columns += [Column("loss after", FIGURES, "loss"), Column("changed most")]
    columns += [Column(title, str, title.replace(" ", "_"), False) for title in RISE_FIELDS]
    described = [{**rise, "changed_most": changed_most(rise).removeprefix("changed most: ")} for rise in rises]
    rows = [[rise[key_of(column, column.title)] for column in columns] for rise in described]
    return [Table("Where the loss rose", columns, rows, OF_RISES, "drifts", range(MOST_RISES), is_wide=True)]


def command_of(plan: Plan) -> str:
    """The command that trains by a plan, or the call in Python where a parameter has no option.

    >>> print(command_of(Plan(target="the income", learner="adagrad")))
    tunefree train DATA --target 'the income' --learner adagrad -o MODEL
    >>> print(command_of(Plan(learner="adagrad", settings={"eta": 0.5})))
    tunefree.train(DATA, learner='adagrad', settings={'eta': 0.5}).save(MODEL)
    """
    changed = plan.changed()
    if changed.keys() & set(OF_PYTHON):
        return f"tunefree.train(DATA, {', '.join(f'{name}={value!r}' for name, value in changed.items())}).save(MODEL)"
    words = [word for name, value in changed.items() for word in words_of(name, value)]
    return shlex.join(["tunefree", "train", "DATA", *words, "-o", "MODEL"])


def reproducing(trained: Trained, digest: str | None) -> Section:
    """The section on how to reproduce the model, with versions; ``digest``: the checksum in the model file."""
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    facts = [Fact("versions of this report", f"{versions}, Python {platform.python_version()}", key="versions")]
    facts += known(Fact("checksum of the model (SHA-256)", digest, key="checksum"))
    note = (
        "The same rows in the same order, of files with the same names, give the same model to the byte with the same "
        "versions."
    )
    blocks: list[Block] = [Code(command_of(trained.plan)), Facts(facts), Note(note, "fine")]
    return Section("reproduce", "How to reproduce it", blocks)


def blocks_of_model(
    trained: Trained, decomposition: Decomposition | None, top: int, label: Any = None, is_brief: bool = False
) -> list[Block]:
    """Rows, losses, members, and the ``top`` columns and features (0: all).

    ``is_brief``: whether members are only named, with a note on how to list all.
    """
    model, tables = trained.model, [] if is_brief else table_of_columns(trained, top)
    if hasattr(model, "facts"):  # a kind of model from another package
        blocks: list[Block] = [Facts(model.facts(trained)), *tables]
    else:
        blocks = [
            Facts([*facts_of_model(trained), *losses(trained)]),
            *tables_of_passes(trained),
            *notes_of(findings(trained)),
        ]
        blocks += [*blocks_of_drifts(trained), *tables]
        blocks += [Note(f"{sentence(in_brief(model))}.")] if is_brief else blocks_of_members(model, top)
        blocks += order(trained)
    blocks += blocks_of_terms(decomposition, top, label)
    blocks += blocks_of_features(model, trained.encoder.names(), top)
    return [*blocks, Note(OF_ALL, "fine")] if is_brief else blocks
