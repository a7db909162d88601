"""Sections of a report: what was learned, and how to do it again."""

from __future__ import annotations

import platform
import shlex
from dataclasses import fields
from importlib.metadata import version
from typing import Any

from tunefree.report.document import Code, Facts, Note, Section, Table
from tunefree.report.told import goal_of, listed, rows_of_expectation
from tunefree.report.told_columns import facts_of_columns, lines_of_kinds
from tunefree.stream.layout import MISSING, Layout
from tunefree.workflows.plan import OPTIONS, Plan
from tunefree.workflows.training import Trained

OPEN = 24  # columns of a table that is shown at once
MOST = 400  # columns that are listed
PACKAGES = ("tunefree", "numpy", "numba", "pyarrow")
UNSAID = ("class_weight", "settings", "pairs", "shuffle", "skip_bad_rows", "skip_unlabelled")  # written otherwise


def learned(trained: Trained) -> Section:
    """What was learned, of which rows.

    Parameters
    ----------
    trained : Trained
    """
    model, progress = trained.model, trained.progress
    first = progress.progressive[0]
    default = "square" if model.task == "regression" else "logistic"
    facts = [("goal", goal_of(trained)), ("rows learned", f"{first.rows:,}")]
    facts += [("rows held out", f"{progress.held_out[0].rows:,}")] if progress.held_out[0].rows else []
    facts += [("rows skipped", f"{progress.skipped:,}")] if progress.skipped else []
    facts += [("rows without a label, skipped", f"{progress.unlabelled:,}")] if progress.unlabelled else []
    facts += [("features", f"{model.n_features:,}")]
    facts += [("classes", listed(model.classes, 12))] if model.task == "classification" else []
    facts += lines_of_kinds(trained)
    facts += [("loss", model.options.loss or default), ("learner", model.learner)]
    facts += [("passes", f"{len(progress.progressive)}")]
    facts += [] if progress.complete else [("state", "a checkpoint, not trained to the end")]
    return Section("learned", "What was learned", [Facts(facts), *_columns(trained)])


def _columns(trained: Trained) -> list[Any]:
    """The columns of a table, with the share of sampled rows in which each is missing."""
    known = facts_of_columns(trained).get("columns", [])
    if not known:
        return []
    missing, sample = missing_shares(trained), sample_of(trained)
    header = ["column", "learned as", "because of", *([] if sample is None else ["missing"])]
    rows = [
        [own["name"], own["kind"], own["why"], *([] if sample is None else [_percent(missing.get(own["name"], 0.0))])]
        for own in known[:MOST]
    ]
    note = f"The first {MOST:,} of {len(known):,} columns." if len(known) > MOST else ""
    if sample is not None:
        note += f" Missing: share of {len(sample.numbers):,} rows, evenly spaced along the stream."
    return [Table(f"{len(known):,} columns", header, rows, note.strip(), 3, len(known) <= OPEN, True)]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share else "0"


def sample_of(trained: Trained) -> Any:
    """The rows of the stream that a model with curves keeps, in their order; None without.

    Parameters
    ----------
    trained : Trained

    Returns
    -------
    Table or None
    """
    additive = trained.model.ensemble.additive
    return None if additive is None else additive.sample.rows


def missing_shares(trained: Trained) -> dict[str, float]:
    """The share of sampled rows in which a column is missing, by its name, where it ever is; empty without a sample.

    Parameters
    ----------
    trained : Trained
    """
    sample = sample_of(trained)
    if sample is None:
        return {}
    layout, found = Layout.of_encoder(trained.encoder), dict[str, float]()
    for column in sample.codes.T:
        for feature in set(column[column > 0].tolist()):
            if layout.label(feature) == MISSING:
                found[layout.parts[layout.of_feature[feature]].column] = float((column == feature).mean())
    return found


def command_of(plan: Plan, data: str = "DATA", output: str = "MODEL") -> str:
    """The command that trains by a plan.

    Parameters
    ----------
    plan : Plan
    data, output : str
        What stands for the files.

    Examples
    --------
    >>> command_of(Plan(target="the income", passes=3, settings={"eta": 0.5}, learner="adagrad", shuffle=7))
    "tunefree train DATA --target 'the income' --learner adagrad --passes 3 --set eta=0.5 --shuffle --seed 7 -o MODEL"
    """
    usual, words = Plan(), ["tunefree", "train", data]
    for name in (own.name for own in fields(plan) if own.name not in UNSAID):
        value = getattr(plan, name)
        if value != getattr(usual, name):
            option = f"--{OPTIONS.get(name, name.replace('_', '-'))}"
            each = value if isinstance(value, tuple) else (value,)
            words += [word for one in each for word in ([option] if one is True else [option, f"{one}"])]
    words += [word for name, value in plan.settings.items() for word in ("--set", f"{name}={value:g}")]
    words += [word for pair in (plan.pairs or ()) for word in ("--pairs", pair)]
    words += ["--pairs", "none"] if plan.pairs == () else []
    words += [word for weight in plan.class_weight for word in ("--class-weight", weight)]
    words += ["--on-bad-row", "skip"] if plan.skip_bad_rows else []
    words += ["--unlabelled", "skip"] if plan.skip_unlabelled else []
    words += [] if plan.shuffle is None else ["--shuffle", "--seed", str(plan.shuffle)]
    return shlex.join([*words, "-o", output])


def reproducing(trained: Trained, digest: str | None) -> Section:
    """How to make the model again, and what it was made with.

    Parameters
    ----------
    trained : Trained
    digest : str, optional
        The checksum that the model's file holds.
    """
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    facts = [("versions of this report", f"{versions}, Python {platform.python_version()}")]
    facts += [] if digest is None else [("checksum of the model (BLAKE2b)", digest)]
    note = "The same rows in the same order, learned with the same versions, give the same model to the byte."
    return Section(
        "reproduce", "How to reproduce it", [Code(command_of(trained.plan)), Facts(facts), Note(note, "fine")]
    )


def expectations(trained: Trained) -> list[tuple[str, str]]:
    """What is known of the model after its end, as facts."""
    return list(rows_of_expectation(trained).items())
