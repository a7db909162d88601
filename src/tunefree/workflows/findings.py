"""What seems to be wrong with data: one list for `columns`, `train`, `predict`, `inspect` and reports.

What single columns seem to be is found in their first rows (:mod:`tunefree.training.roles`), and by the same functions
in rows all over a source (:mod:`tunefree.workflows.columns`) and in the rows that a model keeps
(:mod:`tunefree.workflows.kept_rows`).
"""

from __future__ import annotations

from typing import Any

from tunefree.model.targets import FEWEST_ROWS, MANY_ROWS
from tunefree.model_files.trained import Trained
from tunefree.stream.arrays import of_strings
from tunefree.stream.booleans import looks_like_booleans, truths
from tunefree.stream.columns import LIKE_DATES, OF_WORDS, RARE_WORD
from tunefree.stream.notation import EXACT, ZEROS
from tunefree.stream.tally import Reason
from tunefree.theory.exchangeability import LEVEL as LEVEL_OF_ORDER
from tunefree.theory.rises import LEVEL
from tunefree.training.rises import changed_most, drifts_of
from tunefree.training.roles import Finding
from tunefree.workflows.kept_rows import findings_of_kept_rows

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


def findings(trained: Trained) -> list[Finding]:
    """All that seems to be wrong with the rows that a model has learned.

    Findings about rows and classes come first; those about columns have their names.

    Examples
    --------
    >>> from tunefree.stream.source import open_source
    >>> from tunefree.model_files.plan import Plan
    >>> from tunefree.training.training import train
    >>> table = {"age": [20.0, 60.0] * 600 + [30.0], "rich": ["no", "yes"] * 600 + ["goo"]}
    >>> for finding in findings(train(open_source(table), Plan(target="rich", learner="scinol2"))):
    ...     finding.column, finding.kind, finding.evidence[:28]
    ('', 'classes', "class 'goo' has 1 of 1,201 r")
    ('age', 'odd', 'alone predicts 99.92 % of 1,')
    """
    of_rows = [*of_order(trained), *alike_classes(trained), *rare_classes(trained), *of_pool(trained)]
    of_rows += [*of_class_weights(trained), *of_rises(trained)]
    first = [*of_reasons(trained.progress.oddities), *doubts_of_columns(trained.encoder)]
    if getattr(trained.encoder, "has_queries", False):
        unused = "query numbers (qid) are not used; rows are learned one by one, not ranked within their query"
        first.append(Finding("", ODD, unused))
    known = {oddity.column for oddity in trained.progress.oddities}
    return [*of_rows, *first, *findings_of_kept_rows(trained, known)]


def of_reasons(oddities: list[Reason]) -> list[Finding]:
    """What is odd about columns, and about rows that were used: the most frequent first.

    Examples
    --------
    >>> print(*of_reasons([Reason("a category that is new", "job", 1200, "a.csv", 7)]))
    column 'job': a category that is new (1,200 rows, the first: a.csv, row 7)
    """
    in_order = sorted(oddities, key=lambda oddity: (oddity.rows > 0, -oddity.rows))
    found = [Finding(oddity.column, ODD, oddity.counted, oddity.remedy) for oddity in in_order[:MOST_ODDITIES]]
    further = len(in_order) - MOST_ODDITIES
    return found if further <= 0 else [*found, Finding("", ODD, f"and {further:,} others of this kind")]


def of_order(trained: Trained) -> list[Finding]:
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

    Examples
    --------
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
    folded = of_strings([" ".join(label.casefold().split()).strip(QUOTES) for label in labels])
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
        f"{file}, row{'s' if len(of_file) > 1 else ''} {' and '.join(of_file)}"
        for file, of_file in zip(files, numbers, strict=True)
    )


def of_pool(trained: Trained) -> list[Finding]:
    """Whether many rows to come would be known, groups are not contiguous, or rows have more columns than trees see."""
    model, group = trained.model, trained.plan.groups
    if model.pool is None or model.only_predicts:
        return []
    unseen = [Finding("", UNSEEN, line) for line in model.pool.unseen]
    (known, rows), share = model.pool.known_rows, model.pool.known_share
    if group is not None:
        evidence = f"{known:,} of {rows:,} rows are of groups that came before"
        return ([Finding("", KNOWN, evidence, f"sort the rows by {group}")] if known else []) + unseen
    remedy = "if rows belong to subjects, name their column by `groups`" if trained.kind == "table" else ""
    evidence = f"{share:.0%} of the latest rows have the columns of earlier ones"
    return ([Finding("", KNOWN, evidence, remedy)] if share >= MANY_KNOWN else []) + unseen


def of_class_weights(trained: Trained) -> list[Finding]:
    """What probabilities refer to where classes have weights: the class that gains most by them."""
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


def of_rises(trained: Trained) -> list[Finding]:
    """The largest rise of the loss, and how many others there were."""
    known = drifts_of(trained)
    if not known:
        return []
    rise = max(known, key=lambda rise: rise["loss"] - rise["loss_before"])  # Rise.size
    others = 0 if trained.rises is None else trained.rises.count - 1
    rest = f"; {others:,} other rise{'s' if others > 1 else ''} in `tunefree inspect`" if others else ""
    where = f"{rise['file']}, row {rise['row_in_file']}" + (f", {rise['time']}" if rise["time"] else "")
    words = {"where": where, "changed_most": changed_most(rise), "level": LEVEL, "others": rest}
    return [Finding("", RISE, RISES.format(**rise, **words))]


def doubts_of_columns(encoder: Any) -> list[Finding]:
    """What lets columns of categories look like something else, each with the parameters that decide it.

    Examples
    --------
    >>> from types import SimpleNamespace as Encoder
    >>> from tunefree.stream.columns import Category
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
