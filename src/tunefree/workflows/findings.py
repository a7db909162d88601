"""Findings about data that seem wrong: one list for `columns`, `train`, `predict`, `inspect` and reports.

What single columns seem to be is found in their first rows (:mod:`tunefree.training.roles`), and by the same functions
in rows all over a source (:mod:`tunefree.workflows.columns`) and here, in the rows that a pool keeps for growing: these
tell of missing values, constants, leaks, and drift.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tunefree.generations.columns import is_bundle
from tunefree.model_files.trained import Trained
from tunefree.pool.targets import FEWEST_ROWS, MANY_ROWS
from tunefree.stream.arrays import string_array
from tunefree.stream.batch import Reason
from tunefree.stream.columns import LIKE_DATES, OF_WORDS, RARE_WORD
from tunefree.stream.kinds import truths
from tunefree.stream.layout import CODES, MISSING, Layout, Part
from tunefree.stream.notation import EXACT, ZEROS
from tunefree.stream.profile import FEWEST, LEVEL, largest_difference, most_by_chance
from tunefree.stream.schema import looks_like_booleans
from tunefree.theory.exchangeability import LEVEL as LEVEL_OF_ORDER
from tunefree.theory.rises import LEVEL as LEVEL_OF_RISES
from tunefree.training import roles
from tunefree.training.rises import changed_most, drifts_of
from tunefree.training.roles import Finding

ORDER, RISE, CLASSES, KNOWN, UNSEEN, WEIGHTS = "order", "rise of the loss", "classes", "known rows", "unseen", "weights"
DOUBT, ODD = "doubtful kind", "odd"
MANY_KNOWN = 0.05  # of the latest rows, from which on this is reported
MOST_ODDITIES = 6  # that are shown
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
TENTH = 10
FEWEST_NAMED = 100  # rows, before columns are said to name them
MOSTLY_MISSING = 0.5
GAPS, DRIFT = "mostly missing", "drift"
DRIFTS = (
    "drifts along the stream: the distributions of early and of late rows differ by {distance:.3f}, and by at"
    " most {bound:.3f} where the order has no meaning (a test of level {level:g} for all columns together)"
)


def findings(trained: Trained) -> list[Finding]:
    """Findings about all rows that a model has learned.

    Findings about rows and classes come first; those about columns have their names.

    >>> from tunefree.stream.source import open_source
    >>> from tunefree.model_files.plan import Plan
    >>> from tunefree.training.training import train
    >>> table = {"age": [20.0, 60.0] * 600 + [30.0], "rich": ["no", "yes"] * 600 + ["goo"]}
    >>> for finding in findings(train(open_source(table), Plan(target="rich", learner="scinol2"))):
    ...     finding.column, finding.kind, finding.evidence[:28]
    ('', 'classes', "class 'goo' has 1 of 1,201 r")
    ('age', 'odd', 'alone predicts 99.92 % of 1,')
    """
    row_findings = [*order_findings(trained), *alike_classes(trained), *rare_classes(trained), *pool_findings(trained)]
    row_findings += [*weight_findings(trained), *rise_findings(trained)]
    first = [*oddity_findings(trained.progress.tally.oddities), *doubts_of_columns(trained.encoder)]
    if getattr(trained.encoder, "has_queries", False):
        unused = "query numbers (qid) are not used; rows are learned one by one, not ranked within their query"
        first.append(Finding("", ODD, unused))
    known = {oddity.column for oddity in trained.progress.tally.oddities}
    return [*row_findings, *first, *findings_of_kept_rows(trained, known)]


def oddity_findings(oddities: list[Reason]) -> list[Finding]:
    """Oddities of columns, and of rows that were used, the most frequent first.

    >>> print(*oddity_findings([Reason("a category that is new", "job", 1200, "a.csv", 7)]))
    column 'job': a category that is new (1,200 rows, the first: a.csv, row 7)
    """
    in_order = sorted(oddities, key=lambda oddity: (oddity.rows > 0, -oddity.rows))
    listed = [Finding(oddity.column, ODD, oddity.counted, oddity.remedy) for oddity in in_order[:MOST_ODDITIES]]
    further = len(in_order) - MOST_ODDITIES
    return listed if further <= 0 else [*listed, Finding("", ODD, f"and {further:,} others of this kind")]


def order_findings(trained: Trained) -> list[Finding]:
    """Whether the targets depend on the order of the rows."""
    if trained.order is None or not (test := trained.order.finding()).is_dependent:
        return []
    text = OF_GROUPS if trained.plan.groups is not None else SORTED if test.is_sorted else DEPENDENT
    return [Finding("", ORDER, text.format(level=LEVEL_OF_ORDER, **test._asdict()))]


def rare_classes(trained: Any) -> list[Finding]:
    """Each class of fewer than three rows, where there are more than a thousand in all and classes were not named."""
    known = trained.progress.occurrences
    total = sum(occurrences.rows for occurrences in known)
    if total <= MANY_ROWS or trained.plan.classes:
        return []
    remedy = CLOSING.format("it is a mistake", "classes ")
    return [
        Finding("", CLASSES, f"class {label!r} has {seen.rows} of {total:,} rows: {_places(seen.first)}", remedy)
        for label, seen in zip(trained.model.classes, known, strict=False)
        if 0 < seen.rows < FEWEST_ROWS
    ]


def alike_classes(trained: Any) -> list[Finding]:
    """Each group of classes whose names differ in case, quotes or white space only, or mean true or false.

    >>> from types import SimpleNamespace as Trained
    >>> trained = Trained(model=Trained(task="classification", classes=["No", "Yes", "yes"]), plan=Trained(classes=()))
    >>> print(*alike_classes(trained))
    the classes 'Yes' and 'yes' differ in case or quotes only; if they are one, correct it, or name all by `classes`
    >>> trained.model.classes = ["0", "1", "TRUE"]
    >>> print(*alike_classes(trained))
    the classes '1' and 'TRUE' mean the same; if they are one, correct it, or name all by `classes`
    """
    if trained.model.task != "classification" or trained.plan.classes:
        return []
    labels = [label for label in trained.model.classes if isinstance(label, str)]
    folded = string_array([" ".join(label.casefold().split()).strip(QUOTES) for label in labels])
    are_truths = not {"0", "1"}.isdisjoint(labels) and len(labels) > 2 and looks_like_booleans(folded)
    groups: dict[str, list[str]] = {}
    for label, key in zip(labels, (truths(folded) if are_truths else folded).to_pylist(), strict=True):
        groups.setdefault(key, []).append(repr(label))
    difference = "mean the same" if are_truths else "differ in case or quotes only"
    remedy = CLOSING.format("they are one", "")
    several = [group for group in groups.values() if len(group) > 1]
    return [Finding("", CLASSES, f"the classes {' and '.join(group)} {difference}", remedy) for group in several]


def _places(rows: list[tuple[str, int]]) -> str:
    """Rows in words."""
    files = list(dict.fromkeys(file for file, _ in rows))
    numbers = [[str(row) for file, row in sorted(rows) if file == name] for name in files]
    return ", ".join(
        f"{file}, row{'s' if len(file_numbers) > 1 else ''} {' and '.join(file_numbers)}"
        for file, file_numbers in zip(files, numbers, strict=True)
    )


def pool_findings(trained: Trained) -> list[Finding]:
    """Whether many rows to come would be known, groups are not contiguous, or rows have more columns than trees see."""
    model, group = trained.model, trained.plan.groups
    if model.pool is None or model.pool.only_predicts:
        return []
    unseen = [Finding("", UNSEEN, line) for line in model.pool.unseen]
    (known, rows), share = model.pool.known_rows, model.pool.known_share
    if group is not None:
        evidence = f"{known:,} of {rows:,} rows are of groups that came before"
        return ([Finding("", KNOWN, evidence, f"sort the rows by {group}")] if known else []) + unseen
    remedy = "leave out rows that were learned before"
    remedy += "; if rows belong to subjects, name their column by `groups`" if trained.kind == "table" else ""
    evidence = (
        f"{share:.0%} of the latest rows have the columns of earlier ones, and the estimated loss is of such rows"
    )
    return ([Finding("", KNOWN, evidence, remedy)] if share >= MANY_KNOWN else []) + unseen


def weight_findings(trained: Trained) -> list[Finding]:
    """The meaning of probabilities where classes have weights: the class that gains most by them."""
    total = sum(seen.weight for seen in trained.progress.occurrences)
    shares = [
        (seen.predicted / seen.weight, seen.predicted / total, seen.weight / total, label)
        for label, seen in zip(trained.model.classes, trained.progress.occurrences, strict=False)
        if seen.weight > 0.0
    ]
    if not shares:
        return []
    _, predicted, share, label = max(shares, key=lambda each: each[0])
    evidence = f"probabilities are of rows as `class_weight` weighs them: the mean probability of {label!r} is "
    return [Finding("", WEIGHTS, f"{evidence}{predicted:.3g}, and its share of the rows {share:.3g}")]


def rise_findings(trained: Trained) -> list[Finding]:
    """The largest rise of the loss, and how many others there were."""
    known = drifts_of(trained)
    if not known:
        return []
    rise = max(known, key=lambda rise: rise["loss"] - rise["loss_before"])  # Rise.size
    others = 0 if trained.rises is None else trained.rises.count - 1
    rest = f"; {others:,} other rise{'s' if others > 1 else ''} in `tunefree inspect`" if others else ""
    where = f"{rise['file']}, row {rise['row_in_file']}" + (f", {rise['time']}" if rise["time"] else "")
    words = {"where": where, "changed_most": changed_most(rise), "level": LEVEL_OF_RISES, "others": rest}
    return [Finding("", RISE, RISES.format(**rise, **words))]


def doubts_of_columns(encoder: Any) -> list[Finding]:
    """Doubts about columns of categories, each with the parameters that decide it.

    >>> from types import SimpleNamespace as Encoder
    >>> from tunefree.stream.kinds import Category
    >>> print(*doubts_of_columns(Encoder(columns=[Category("zip", doubt=(ZEROS, ""))])))
    column 'zip': leading zeros, read as categories; `numeric='zip'` reads numbers
    """
    doubts = []
    for column in getattr(encoder, "columns", []):
        if not getattr(column, "doubt", ()):
            continue
        kind, value = column.doubt
        decision = _DECISIONS[kind].format(name=column.name, value=value, date=f"{column.name}=FORMAT")
        seen = f"{kind} {value!r}" if value else kind
        doubts.append(Finding(column.name, DOUBT, f"{seen}, read as categories", decision))
    return doubts


class Kept(NamedTuple):
    """A part of a column in rows that are kept: numbers, or ranks of codes."""

    part: Part
    values: np.ndarray  # of all
    first: np.ndarray  # of early ones
    last: np.ndarray  # of late ones


class KeptRows:
    """The rows that a pool keeps for growing.

    As long as these are all rows, they are in their order: the first and the last tenth are compared. Later, the
    sample of all rows is compared with the latest ones.
    """

    def __init__(self, trained: Trained, growth: Any) -> None:
        kept = growth.whole.kept()
        self.layout, self.targets = Layout.of_encoder(trained.encoder), kept["targets"]
        self._matrix = matrix = growth.columns.features(kept["columns"])
        n = len(matrix) // TENTH
        self._first, self._last = matrix[:n], matrix[len(matrix) - n :]
        if growth.whole.rows > growth.whole.capacity:
            n = min(growth.recent.rows, growth.recent.capacity)  # none, where windows sleep under a memory limit
            self._first = matrix
            self._last = growth.columns.features(growth.recent.kept(n)["columns"]) if n else matrix[:0]
        keys = [(place, key) for place, key in enumerate(growth.columns.keys[: matrix.shape[1]]) if not is_bundle(key)]
        layout = self.layout  # the parts of features and codes are -1 of codes of a number, where it is missing
        parts = [int(layout.feature_parts[key] if key > 0 else layout.code_source(-1 - key)[1]) for _, key in keys]
        self._places = [(place, key, part) for (place, key), part in zip(keys, parts, strict=True)]

    @property
    def n_compared(self) -> int:
        """Rows of the smaller of the samples that are compared."""
        return min(len(self._first), len(self._last)) if any(part >= 0 for *_, part in self._places) else 0

    @cached_property
    def columns(self) -> list[Kept]:
        """The parts of columns."""
        columns: dict[int, Kept] = {}
        for place, key, part in self._places:
            if part >= 0 and part not in columns:
                samples = [rows[:, place] for rows in (self._matrix, self._first, self._last)]
                columns[part] = Kept(self.layout.parts[part], *(_ranked(self.layout, samples) if key < 0 else samples))
        return list(columns.values())

    def missing_shares(self) -> dict[str, float]:
        """The share of the rows in which each column is missing, by name."""
        shares = {column.name: 0.0 for column in self.layout.columns}
        for place, key, part in self._places:
            values = self._matrix[:, place]
            is_missing = np.isnan(values)
            if key < 0:  # codes, some of which may say so
                codes = pa.array(values[values > 0]).unique().to_pylist()
                is_missing = np.isin(values, [code for code in codes if self.layout.label(int(code)) == MISSING])
            name = self.layout.parts[part].column
            shares[name] = max(shares.get(name, 0.0), float(is_missing.mean()))
        return shares


def kept_rows(trained: Trained) -> KeptRows | None:
    """The rows that a pool keeps for growing; None where there are none."""
    growth = None if trained.model.pool is None else trained.model.pool.members.growth
    return KeptRows(trained, growth) if growth is not None and growth.whole.rows else None


def _ranked(layout: Layout, samples: list[np.ndarray]) -> list[np.ndarray]:
    """Codes in samples renumbered by the order of their labels, so that the order of rows does not matter.

    A code that is not in the first sample, and a missing one, comes first.
    """
    different = np.unique(samples[0][~np.isnan(samples[0])])
    if not len(different):
        return [np.zeros(len(codes)) for codes in samples]
    labels = [layout.label(int(code)) for code in different]
    ranks = np.empty(len(labels))
    ranks[sorted(range(len(labels)), key=labels.__getitem__)] = 1.0 + np.arange(len(labels))
    places = [np.minimum(np.searchsorted(different, codes), len(different) - 1) for codes in samples]
    return [np.where(different[at] == codes, ranks[at], 0.0) for at, codes in zip(places, samples, strict=True)]


def findings_of_kept_rows(trained: Trained, known: set[str]) -> list[Finding]:
    """Findings from the kept rows and the categories met, on columns that are not ``known`` from the first rows."""
    doubts = [finding for finding in _identifiers(trained) if finding.column not in known]
    sample = kept_rows(trained)
    if sample is None or trained.kind != "table":
        return doubts
    doubts += [finding for finding in leaks_of(trained, sample) if finding.column not in known]
    same = "has the same value in all rows kept"
    doubts += [Finding(name, roles.CONSTANT, same) for name in _constants(trained, sample)]
    missing = [(name, share) for name, share in sample.missing_shares().items() if share > MOSTLY_MISSING]
    doubts += [Finding(name, GAPS, f"is missing in {100 * share:.1f} % of the rows kept") for name, share in missing]
    return doubts + drifts(sample)


def _identifiers(trained: Trained) -> list[Finding]:
    """Columns of categories that differ in more than half of the rows: they may name the rows."""
    rows = trained.progress.progressive[0].rows
    if trained.kind != "table" or rows < FEWEST_NAMED:
        return []
    columns, places = trained.encoder.columns, trained.encoder.column_of()
    counts = np.bincount(places[places >= 0], minlength=len(columns)).tolist()
    nearly = roles.nearly_numbers(trained.encoder)
    return [
        roles.identifier(column.name, count, rows, count < rows)
        for column, count in zip(columns, counts, strict=True)
        if column.kind == "category" and count > roles.MANY_DIFFERENT * rows and column.name not in nearly
    ]


def leaks_of(trained: Trained, sample: KeptRows) -> list[Finding]:
    """Columns that alone predict nearly all rows kept."""
    n = len(sample.targets)
    rows = np.arange(n) if n <= roles.MOST_ROWS else np.linspace(0, n - 1, roles.MOST_ROWS).astype(np.int64)
    columns: dict[str, roles.Values] = {}
    for kept in sample.columns:
        columns.setdefault(kept.part.column, roles.Values(kept.values[rows], kept.part.kind == CODES))
    is_classes = trained.model.task == "classification"
    targets = sample.targets[rows].astype(np.int64) if is_classes else sample.targets[rows]
    return roles.leaks(columns, targets, is_classes)


def _constants(trained: Trained, sample: KeptRows) -> list[str]:
    """Columns of numbers or categories that have one value in all rows kept."""
    changes: dict[str, bool] = {}
    for kept in sample.columns:
        does_change = bool((kept.values != kept.values[0]).any() and not np.isnan(kept.values).all())
        changes[kept.part.column] = changes.get(kept.part.column, False) or does_change
    kinds = {column.name: column.kind for column in trained.encoder.columns}
    candidates = [name for name, kind in kinds.items() if kind in ("number", "category", "boolean")]
    return [name for name in candidates if not changes.get(name, True)]


def drifts(sample: KeptRows) -> list[Finding]:
    """Parts of columns whose values in early and late rows differ, by :mod:`tunefree.stream.profile`, the most first.

    If rows are exchangeable, there is none with a probability of 1 - LEVEL.
    """
    if sample.n_compared < FEWEST:
        return []
    bound = most_by_chance(sample.n_compared, len(sample.columns), LEVEL)
    distances = [(largest_difference(kept.first, kept.last), kept.part.name) for kept in sample.columns]
    return [
        Finding(name, DRIFT, DRIFTS.format(distance=distance, bound=bound, level=LEVEL))
        for distance, name in sorted(distances, key=lambda each: -each[0])
        if distance > bound
    ]
