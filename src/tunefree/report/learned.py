"""Sections of a report: what was learned, and how to do it again."""

from __future__ import annotations

import platform
import shlex
from importlib.metadata import version

import numpy as np

from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.pool.model import PoolModel
from tunefree.report.document import Code, Facts, Note, Section, Table
from tunefree.report.told import goal_of, listed, weighed_by
from tunefree.report.told_columns import facts_of_columns, lines_of_kinds
from tunefree.stream.layout import MISSING, Layout

OPEN = 24  # columns of a table that is shown at once
MOST = 400  # columns that are listed
PACKAGES = ("tunefree", "numpy", "numba", "pyarrow")


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
    facts += [("weighted by", column)] if (column := weighed_by(trained.plan)) else []
    facts += [("rows held out", f"{progress.held_out[0].rows:,}")] if progress.held_out[0].rows else []
    facts += [("rows skipped", f"{progress.skipped:,}")] if progress.skipped else []
    facts += [("rows without a label, skipped", f"{progress.unlabelled:,}")] if progress.unlabelled else []
    facts += [("features", f"{model.n_features:,}")]
    facts += [("classes", listed(model.classes, 12))] if model.task == "classification" else []
    facts += lines_of_kinds(trained)
    facts += [("loss", model.options.loss or default), ("learner", model.learner)]
    facts += _of_evidence(trained)
    facts += [] if progress.complete else [("state", "a checkpoint, not trained to the end")]
    return Section("learned", "What was learned", [Facts(facts), *table_of_columns(trained, MOST)])


def _of_evidence(trained: Trained) -> list[tuple[str, str]]:
    """Passes of a single learner; of the pool, rows that are no evidence."""
    model = trained.model
    if not isinstance(model, PoolModel):
        return [("passes", f"{len(trained.progress.progressive)}")]
    repeated, rows = model.repeats()
    facts = [] if trained.plan.group is None else [("groups", f"column '{trained.plan.group}'")]
    return [*facts, ("rows that repeat earlier ones, and are no evidence", f"{repeated:,} of {rows:,}")]


def table_of_columns(trained: Trained, most: int) -> list[Table]:
    """What the first columns became, and the share of the rows kept in which each is missing; empty without columns.

    Parameters
    ----------
    trained : Trained
    most : int
        Columns that are listed; 0 for all.
    """
    columns = facts_of_columns(trained).get("columns", [])
    if not columns:
        return []
    missing = missing_shares(trained)
    header = ["column", "learned as", "because of", *(["missing"] if missing else [])]
    rows = [
        [column["name"], column["kind"], column["why"], *([_percent(missing[column["name"]])] if missing else [])]
        for column in columns[: most or None]
    ]
    notes = [f"The first {most:,} of {len(columns):,} columns."] if 0 < most < len(columns) else []
    notes += ["Missing: share of the rows that are kept for growing trees."] if missing else []
    return [Table(f"{len(columns):,} columns", header, rows, " ".join(notes), 3, len(columns) <= OPEN, True)]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share else "0"


def missing_shares(trained: Trained) -> dict[str, float]:
    """The share of the rows kept for growing in which each column is missing, by name; empty if none are kept.

    Parameters
    ----------
    trained : Trained
    """
    growth = trained.model.pool.members.growth if isinstance(trained.model, PoolModel) else None
    if growth is None or not growth.whole.rows:
        return {}
    layout, matrix = Layout.of_encoder(trained.encoder), growth.whole.kept()["columns"]
    shares = {column.name: 0.0 for column in layout.columns}
    for key, values in zip(growth.columns.keys, matrix.T, strict=False):
        part = int(layout.of_feature[key]) if key > 0 else layout.code_source(-1 - key)[1]
        share = float((_codes_of_missing(layout, values) if key < 0 else np.isnan(values)).mean())
        name = layout.parts[part].column
        shares[name] = max(shares.get(name, 0.0), share)
    return shares


def _codes_of_missing(layout: Layout, codes: np.ndarray) -> np.ndarray:
    """Which codes (n,) say that a column is missing."""
    known = np.unique(codes[codes > 0])
    return np.isin(codes, [code for code in known.tolist() if layout.label(int(code)) == MISSING])


def command_of(plan: Plan, data: str = "DATA", output: str = "MODEL") -> str:
    """The command that trains by a plan.

    Parameters
    ----------
    plan : Plan
    data, output : str
        What stands for the files.

    Examples
    --------
    >>> command_of(Plan(target="the income", learner="adagrad", settings={"eta": 0.5}, passes=3))
    "tunefree train DATA --target 'the income' --learner adagrad:eta=0.5 --passes 3 -o MODEL"
    """
    return shlex.join(["tunefree", "train", data, *plan.words(), "-o", output])


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
