"""What was learned, how well it predicted along the stream, and how to do it again."""

from __future__ import annotations

import platform
import shlex
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tunefree.core.parameters import OF_PYTHON, words_of
from tunefree.generations.problem import Settings
from tunefree.model.targets import MOST_SUMMED, RunningMetrics
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.pool.estimated_loss import estimated_loss
from tunefree.report.columns import facts_of_columns, table_of_columns
from tunefree.report.document import Block, Code, Column, Data, Fact, Facts, Note, Section, Table
from tunefree.report.formats import COUNT, DECIMALS, FOUR, PERCENT, SIX, TWO, first
from tunefree.report.guarantees import bounds
from tunefree.report.rows import tables_of_reasons
from tunefree.report.suspicions import notes_of
from tunefree.report.words import loss_name, weights_named
from tunefree.theory.column_changes import LEVEL as LEVEL_OF_COLUMNS
from tunefree.theory.rises import LATEST, LEVEL
from tunefree.training.rises import changed_most, drifts_of
from tunefree.workflows.findings import findings

MOST = 400  # columns that are listed
PACKAGES = ("tunefree", "numpy", "llvmlite", "pyarrow")
MOST_RISES = 20  # rises that people see
OF_RISES = (
    f"A sequential test of level {LEVEL:g} for the whole stream, and anew after each rise, for independent rows. It"
    f" sees rises of the loss and nothing else. Columns are compared for the largest and the latest {LATEST} rises, by"
    f" tests of level {LEVEL_OF_COLUMNS:g} for all together."
)
RISE_FIELDS = {  # of a rise, for programs
    "row in file": None,
    "rows": COUNT,
    "rows before": COUNT,
    "rows compared": None,
    "columns compared": None,
    "changed": None,
}
MOST_CLASSES = 12  # that are named


def learned(trained: Trained) -> Section:
    """What was learned, of which rows."""
    facts = [*facts_of_goal(trained), *facts_of_rows(trained), *_known_rows(trained), *_settings_of_trees(trained)]
    return Section("learned", "What was learned", [Facts(facts), *table_of_columns(trained, MOST)])


def summary(trained: Trained, output: Path, for_programs: bool = False) -> list[Block]:
    """The end of a training: rows, losses, the file of the model, and what looks wrong.

    ``for_programs``: with where the loss rose, and the bounds of the certificate.
    """
    blocks: list[Block] = [
        Facts([*facts_of_rows(trained), *losses(trained), *facts_of_drifts(trained), Fact("model", str(output))])
    ]
    blocks += tables_of_reasons(trained.progress.reasons)
    blocks += [*blocks_of_drifts(trained), *bounds(trained)] if for_programs else []
    return [*blocks, *tables_of_passes(trained), *notes_of(findings(trained))]


def story(trained: Trained, top: int) -> list[Block]:
    """What is known of a training: rows, losses, what looks wrong, and what columns became.

    ``top``: columns that people see; 0 for all.
    """
    if hasattr(trained.model, "facts"):  # of another kind than those of this package
        return [Facts(trained.model.facts(trained)), *table_of_columns(trained, top)]
    facts = [*facts_of_goal(trained), *facts_of_rows(trained), *_known_rows(trained)]
    facts += [*_settings_of_trees(trained), *losses(trained)]
    blocks: list[Block] = [Facts([*facts, *facts_of_drifts(trained)]), *tables_of_passes(trained)]
    return [*blocks, *notes_of(findings(trained)), *blocks_of_drifts(trained), *table_of_columns(trained, top)]


def facts_of_goal(trained: Trained) -> list[Fact]:
    """What is learned, with which loss and by which learner."""
    model = trained.model
    facts = [Fact("task", model.task), Fact("target", trained.plan.target or "the label")]
    facts += [Fact("loss", loss_name(model))]
    averaged = ", averaged" if model.options.average else ""
    facts.append(Fact("learner", model.learner, lambda name: f"{name}{averaged}"))
    is_complete = trained.progress.complete
    return facts + ([] if is_complete else [Fact("state", "a checkpoint, not trained to the end")])


def facts_of_rows(trained: Trained) -> list[Fact]:
    """Of which rows, classes and columns a model was learned."""
    model, progress, plan = trained.model, trained.progress, trained.plan
    rows = progress.progressive[0].rows if progress.progressive else progress.rows
    facts = [Fact("rows learned", rows, COUNT, "rows")]
    facts += [Fact("weighted by", column)] if (column := weights_named(plan)) else []
    facts += [Fact("groups", plan.group, lambda name: f"column '{name}'", "group")] if plan.group else []
    held_out = progress.held_out[0].rows if progress.held_out else 0
    facts += [Fact("rows held out", held_out, COUNT)] if held_out else []
    skipped = {"rows skipped": "skipped", "rows without a label, skipped": "unlabelled"}
    facts += [Fact(name, n, COUNT, key) for name, key in skipped.items() if (n := getattr(progress, key))]
    facts += [Fact("features", model.n_features, COUNT, "n_features")]
    forgotten = trained.encoder.ids.n_forgotten if trained.kind == "table" else 0
    facts += [Fact("features forgotten", forgotten, COUNT, "n_forgotten")] if forgotten else []
    facts += [Fact("classes", model.classes, first(MOST_CLASSES))] if model.classes else []
    return [*facts, *facts_of_columns(trained), *_kept_rows(trained)]


def _known_rows(trained: Trained) -> list[Fact]:
    """Rows of a pool that were known."""
    pool = trained.model.pool
    if pool is None or pool.only_predicts:
        return []
    known, rows = pool.known_rows
    title = "rows whose group was known" if pool.members.has_groups else "rows whose columns equal earlier ones"
    return [Fact(title, known, lambda n: f"{n:,} of {rows:,}", "known_rows")]


def _kept_rows(trained: Trained) -> list[Fact]:
    """The rows on which trees of a pool were grown, where these are not all."""
    kept, rows = (0, 0) if trained.model.pool is None else trained.model.pool.kept_rows
    sample = Fact("trees are grown on", kept, lambda n: f"a sample of {n:,} of {rows:,} rows", "kept_rows")
    return [sample] if kept < rows else []


def _settings_of_trees(trained: Trained) -> list[Fact]:
    """What rows chose for trees of a pool that came after them."""
    growth = None if trained.model.pool is None else trained.model.pool.members.growth
    return [
        Fact(f"{kind} trees", settings._asdict(), lambda multiples: Settings(**multiples).in_words(), f"{kind}_trees")
        for kind, settings in (growth.settings() if growth else {}).items()
    ]


def losses(trained: Trained) -> list[Fact]:
    """Losses and errors of the passes."""
    progress = trained.progress
    facts = [*_of_metrics(trained, "progressive", progress.progressive[0]), *_estimated(trained.model)]
    if len(progress.held_out) == 1 and progress.held_out[0].rows:
        facts += _of_metrics(trained, "held-out", progress.held_out[0])
    return facts


def _estimated(model: Any) -> list[Fact]:
    """The loss to expect of new rows."""
    estimate = None if model.pool is None else estimated_loss(model.pool)
    if estimate is None:
        return []
    (name, in_figures), _ = names_of_losses(model)
    return [
        Fact(f"estimated {name} on new rows", estimate.loss, in_figures, "estimated_loss"),
        Fact("standard error of this estimate", estimate.standard_error, TWO, "estimated_loss_error"),
    ]


def _of_metrics(trained: Trained, kind: str, metrics: RunningMetrics) -> list[Fact]:
    """Mean loss and error."""
    (loss, of_loss), (error, of_error) = names_of_losses(trained.model)
    counted = " (after the first row)" if trained.model.task == "regression" and kind == "progressive" else ""
    return [
        Fact(f"{kind} {name}", mean, _ended(of_mean, total, counted), f"{kind}_{key}".replace("-", "_"))
        for name, key, mean, of_mean, total in (
            (loss, "loss", metrics.mean_loss(), of_loss, metrics.loss),
            (error, "error", metrics.mean_error(), of_error, metrics.errors),
        )
    ]


def _ended(of_mean: Any, total: float, counted: str) -> Any:
    """A format that says where a sum has ended at the largest number."""
    over = "over " if total >= MOST_SUMMED else ""
    return lambda mean: f"{over}{of_mean(mean)}{counted}"


def names_of_losses(model: Any) -> tuple[tuple[str, Any], tuple[str, Any]]:
    """What loss and error of a model are called, with their formats."""
    if model.task == "classification":
        return ("log-loss" if model.loss_is_log_loss else "loss", DECIMALS), ("error", PERCENT)
    return ("loss", SIX), ("absolute error", SIX)


def tables_of_passes(trained: Trained) -> list[Table]:
    """Losses and errors of each pass, if there were several."""
    progress = trained.progress
    if len(progress.progressive) < 2:
        return []
    (loss, of_loss), (error, of_error) = names_of_losses(trained.model)
    kinds = {"progressive": progress.progressive}
    kinds |= {"held-out": progress.held_out} if any(metrics.rows for metrics in progress.held_out) else {}
    columns = [Column("pass", COUNT)]
    rows: list[list[Any]] = [[k + 1] for k in range(len(progress.progressive))]
    for kind, passes in kinds.items():
        key = kind.replace("-", "_")
        columns += [
            Column(f"{kind} {loss}", of_loss, f"{key}_loss"),
            Column(f"{kind} {error}", of_error, f"{key}_error"),
        ]
        for row, metrics in zip(rows, passes, strict=False):
            row += [metrics.mean_loss(), metrics.mean_error()] if metrics.rows else [None, None]
    width = len(columns)
    return [Table("Passes", columns, [[*row, *[None] * (width - len(row))] for row in rows])]


def facts_of_drifts(trained: Trained) -> list[Fact]:
    """How often the loss rose; nothing where it is not known."""
    if trained.rises is None:
        return []
    return [Fact("rises of the loss", trained.rises.count, COUNT, "drift_count")]


def blocks_of_drifts(trained: Trained) -> list[Block]:
    """Where the loss rose; an empty list for programs where it did not, and nothing where it is not known."""
    known = drifts_of(trained)
    if not known:
        return [Data("drifts", [])] if trained.rises is not None else []
    columns = [Column("row", COUNT), Column("file"), Column("time")]
    columns += [Column("loss before", FOUR, "loss_before"), Column("loss after", FOUR, "loss"), Column("changed most")]
    columns += [Column(title, form or str, title.replace(" ", "_"), False) for title, form in RISE_FIELDS.items()]
    rows: list[list[Any]] = [
        [
            *(rise[key] for key in ("row", "file", "time", "loss_before", "loss")),
            changed_most(rise).removeprefix("changed most: "),
            *(rise[title.replace(" ", "_")] for title in RISE_FIELDS),
        ]
        for rise in known
    ]
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
    """How to make the model again, and what it was made with.

    ``digest``: the checksum that the model's file holds.
    """
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    facts = [Fact("versions of this report", f"{versions}, Python {platform.python_version()}", key="versions")]
    facts += [] if digest is None else [Fact("checksum of the model (BLAKE2b)", digest, key="checksum")]
    note = "The same rows in the same order, learned with the same versions, give the same model to the byte."
    blocks: list[Block] = [Code(command_of(trained.plan)), Facts(facts), Note(note, "fine")]
    return Section("reproduce", "How to reproduce it", blocks)
