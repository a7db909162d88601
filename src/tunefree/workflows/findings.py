"""Findings about suspicious data, shared by `columns`, `train`, `predict`, `inspect` and reports.

Roles of single columns are inferred from the first rows (:mod:`tunefree.training.roles`), and by the same functions
from a sample of the source (:mod:`tunefree.workflows.columns`) and here from the rows that a pool keeps for growing.
Missing values and constant columns are found in the profile of the encoder.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.generations.columns import is_bundle
from tunefree.model_files.trained import Trained
from tunefree.pool.targets import FEWEST_ROWS, MANY_ROWS
from tunefree.stream.batch import Reason
from tunefree.stream.columns import LIKE_DATES, OF_WORDS, RARE_WORD
from tunefree.stream.formats import TABLE
from tunefree.stream.layout import Layout
from tunefree.stream.notation import EXACT, ZEROS
from tunefree.theory.exchangeability import LEVEL as LEVEL_OF_ORDER
from tunefree.theory.rises import LEVEL as LEVEL_OF_RISES
from tunefree.training import roles
from tunefree.training.rises import changed_most, drifts_of
from tunefree.training.roles import Finding

ORDER, RISE, CLASSES, KNOWN, UNSEEN = "order", "rise of the loss", "classes", "known rows", "unseen"
DOUBT, ODD = "doubtful kind", "odd"
MANY_KNOWN = 0.05  # share of known rows among the latest rows that is reported
MOST_ODDITIES = 6  # listed oddities
QUOTES = "\"'`\u2018\u2019\u201c\u201d "
CLOSING = "if {}, correct it, or name all {}by `classes`"
_DECISIONS = {
    ZEROS: "`numeric={name!r}` reads numbers",
    EXACT: "`numeric={name!r}` reads rounded numbers, `ignore={name!r}` leaves it out",
    OF_WORDS: "`text={name!r}` reads words, `categorical={name!r}` keeps this",
    LIKE_DATES: "`date={date!r}` reads dates, `categorical={name!r}` keeps this",
    RARE_WORD: "`na_values={value!r}` if it stands for a missing number, `categorical={name!r}` keeps this",
}
SORTED = (
    "the rows are sorted by the target, or grouped by it: {changes:,} of the neighbouring targets looked at"
    " differ, and {expected:,.0f} would in a random order. The losses are of predicting the next row in this order;"
    " they tell nothing of other rows, and the model leans to the last rows it saw. Train with `shuffle=True`."
)
OF_GROUPS = (
    "the target depends on the number of the row (a test of level {level:g}), as it does where rows of a group are"
    " alike. The losses are of predicting the next group; where groups drift, later ones may be predicted worse."
)
DEPENDENT = (
    "the target depends on the number of the row: it drifts, or neighbouring rows are alike (a test of level"
    " {level:g}). The losses are of predicting the next row; new rows in another order may be predicted worse. If the"
    " order has no meaning, train with `shuffle=True`."
)
RISES = (
    "the loss rose at about row {row:,} ({where}): {loss:.4g} on {rows:,} rows from there,"
    " {loss_before:.4g} on the {rows_before:,} before; {changed_most} (a test of level {level:g} for independent rows)"
    "{others}"
)
FEWEST_TOLD = 100  # rows needed for findings about columns
MOSTLY_MISSING = 0.5
GAPS = "mostly missing"


def findings(trained: Trained) -> list[Finding]:
    """All findings about the training data of a model: first about rows and classes, then about columns."""
    row_findings = [*order_findings(trained), *class_findings(trained), *pool_findings(trained)]
    row_findings += rise_findings(trained)
    first = [*oddity_findings(trained.progress.tally.oddities), *doubts_of_columns(trained.encoder)]
    if getattr(trained.encoder, "has_queries", False):
        unused = "query numbers (qid) are not used; rows are learned one by one, not ranked within their query"
        first.append(Finding("", ODD, unused))
    known = {oddity.column for oddity in trained.progress.tally.oddities}
    later = [*column_findings(trained), *leaks_of(trained)] if trained.kind == TABLE else []
    return [*row_findings, *first, *(finding for finding in later if finding.column not in known)]


def oddity_findings(oddities: list[Reason]) -> list[Finding]:
    """Oddities of columns, and of used rows, the most frequent first.

    >>> print(*oddity_findings([Reason("a category that is new", "job", 1200, "a.csv", 7)]))
    column 'job': a category that is new (1,200 rows, the first: a.csv, row 7)
    """
    in_order = sorted(oddities, key=lambda oddity: (oddity.rows > 0, -oddity.rows))
    listed = [Finding(oddity.column, ODD, oddity.counted, oddity.remedy) for oddity in in_order[:MOST_ODDITIES]]
    further = len(in_order) - MOST_ODDITIES
    return listed if further <= 0 else [*listed, Finding("", ODD, f"and {further:,} others of this kind")]


def order_findings(trained: Trained) -> list[Finding]:
    """A finding if the targets depend on the order of the rows."""
    if trained.order is None or not (test := trained.order.finding()).is_dependent:
        return []
    text = OF_GROUPS if trained.plan.groups is not None else SORTED if test.is_sorted else DEPENDENT
    return [Finding("", ORDER, text.format(level=LEVEL_OF_ORDER, **test._asdict()))]


def class_findings(trained: Trained) -> list[Finding]:
    """Classes whose names differ only in case, quotes or white space, and classes with fewer than three rows.

    Rare classes are reported above a thousand rows in total; there are no findings if the plan names the classes.
    """
    if trained.model.task != "classification" or trained.plan.classes:
        return []
    classes, counts = trained.model.classes, trained.progress.class_rows
    groups: dict[str, list[str]] = {}
    for label in classes:
        if isinstance(label, str):
            groups.setdefault(" ".join(label.casefold().split()).strip(QUOTES), []).append(repr(label))
    if_one, if_wrong = CLOSING.format("they are one", ""), CLOSING.format("it is a mistake", "classes ")
    findings = [
        Finding("", CLASSES, f"the classes {' and '.join(group)} differ in case or quotes only", if_one)
        for group in groups.values()
        if len(group) > 1
    ]
    total = sum(counts)
    for label, rows in zip(classes, counts, strict=False) if total > MANY_ROWS else ():
        if 0 < rows < FEWEST_ROWS:
            findings.append(Finding("", CLASSES, f"class {label!r} has {rows} of {total:,} rows", if_wrong))
    return findings


def pool_findings(trained: Trained) -> list[Finding]:
    """Findings about known rows, groups that are not contiguous, and columns that trees do not see."""
    model, group = trained.model, trained.plan.groups
    if model.pool is None or model.pool.only_predicts:
        return []
    findings = [Finding("", UNSEEN, line) for line in model.pool.unseen]
    (known, rows), share = model.pool.known_rows, model.pool.known_share
    if group is not None and known:
        evidence = f"{known:,} of {rows:,} rows are of groups that came before"
        findings.insert(0, Finding("", KNOWN, evidence, f"sort the rows by {group}"))
    elif group is None and share >= MANY_KNOWN:
        remedy = "leave out copies of rows, and keep different rows with the same values"
        remedy += "; if rows belong to subjects, name their column by `groups`" if trained.kind == TABLE else ""
        columns = f"{share:.0%} of the latest rows have the columns of earlier ones"
        findings.insert(0, Finding("", KNOWN, f"{columns}, and the estimated loss is of such rows", remedy))
    return findings


def rise_findings(trained: Trained) -> list[Finding]:
    """The largest rise of the loss, and the number of other rises."""
    rises = drifts_of(trained)
    if not rises:
        return []
    rise = max(rises, key=lambda rise: rise["loss"] - rise["loss_before"])  # Rise.size
    others = trained.rises.count - 1 if trained.rises is not None else 0
    suffix = f"; {others:,} other rise{'s' if others > 1 else ''} in `tunefree inspect`" if others else ""
    where = f"{rise['file']}, row {rise['row_in_file']}" + (f", {rise['time']}" if rise["time"] else "")
    words = {"where": where, "changed_most": changed_most(rise), "level": LEVEL_OF_RISES, "others": suffix}
    return [Finding("", RISE, RISES.format(**rise, **words))]


def doubts_of_columns(encoder: Any) -> list[Finding]:
    """Doubts about columns of categories, each with the parameters that resolve it.

    >>> from types import SimpleNamespace as Encoder
    >>> from tunefree.stream.columns import Category
    >>> print(*doubts_of_columns(Encoder(columns=[Category("zip", doubt=(ZEROS, ""))])))
    column 'zip': leading zeros, read as categories; `numeric='zip'` reads numbers
    """
    doubts = []
    for column in getattr(encoder, "columns", []):
        if getattr(column, "doubt", ()):
            kind, value = column.doubt
            decision = _DECISIONS[kind].format(name=column.name, value=value, date=f"{column.name}=FORMAT")
            evidence = f"{kind} {value!r}" if value else kind
            doubts.append(Finding(column.name, DOUBT, f"{evidence}, read as categories", decision))
    return doubts


def leaks_of(trained: Trained) -> list[Finding]:
    """Columns of a table that alone predict nearly all of the rows that a pool keeps for growing."""
    growth = None if trained.model.pool is None else trained.model.pool.members.growth
    if growth is None or not growth.whole.rows:
        return []
    kept, layout = growth.whole.kept(), Layout.of_encoder(trained.encoder)
    n = len(kept["targets"])
    rows = np.arange(n) if n <= roles.MOST_ROWS else np.linspace(0, n - 1, roles.MOST_ROWS).astype(np.int64)
    matrix, targets = kept["columns"][rows], kept["targets"][rows]
    columns: dict[str, roles.Values] = {}
    for index, key in enumerate(growth.columns.keys[: matrix.shape[1]]):
        if is_bundle(key):
            continue
        part = layout.part_of(key)
        if part >= 0:  # skip indicators of missing numbers
            columns.setdefault(layout.parts[part].column, roles.Values(matrix[:, index], key < 0))
    is_classes = trained.model.task == "classification"
    return roles.leaks(columns, targets.astype(np.int64) if is_classes else targets, is_classes)


def column_findings(trained: Trained) -> list[Finding]:
    """Columns of a table that may identify rows, are constant, or are mostly missing."""
    encoder, profile = trained.encoder, trained.encoder.profile
    if profile.rows < FEWEST_TOLD:
        return []
    column_indices, near_numbers = encoder.column_of(), roles.nearly_numbers(encoder)
    categories = np.bincount(column_indices[column_indices >= 0], minlength=len(encoder.columns)).tolist()
    missing, rows, doubts = missing_shares(trained), profile.rows, list[Finding]()
    for index, (column, n_distinct) in enumerate(zip(encoder.columns, categories, strict=True)):
        low, high = profile.ranges[index].tolist()
        is_one = low == high if column.kind == "number" else n_distinct == 1 and column.kind in ("category", "boolean")
        if column.kind == "category" and n_distinct > roles.MANY_DIFFERENT * rows and column.name not in near_numbers:
            doubts.append(roles.identifier(column.name, n_distinct, rows, n_distinct < rows))
        elif missing[column.name] > MOSTLY_MISSING:
            doubts.append(Finding(column.name, GAPS, f"is missing in {100 * missing[column.name]:.1f} % of the rows"))
        elif is_one and missing[column.name] == 0.0:
            doubts.append(Finding(column.name, roles.CONSTANT, "has the same value in all rows"))
    return doubts


def missing_shares(trained: Trained) -> dict[str, float]:
    """The share of missing values in each column of a table, by name."""
    profile, names = trained.encoder.profile, [column.name for column in trained.encoder.columns]
    return dict(zip(names, ((profile.rows - profile.present) / max(profile.rows, 1)).tolist(), strict=True))
