"""What is told of a training: rare classes, rows that repeat others, what weights mean, columns of doubtful kinds."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.model.targets import FEWEST_ROWS, MANY_ROWS
from tunefree.model_files.progress import Occurrences
from tunefree.model_files.trained import Trained
from tunefree.stream.arrays import of_strings
from tunefree.stream.batch import Origin
from tunefree.stream.booleans import looks_like_booleans, truths
from tunefree.stream.columns import LIKE_DATES, OF_WORDS, RARE_WORD
from tunefree.stream.notation import EXACT, ZEROS
from tunefree.stream.tally import Reason
from tunefree.theory.exchangeability import LEVEL
from tunefree.training.callbacks import Step

MANY_KNOWN = 0.05  # of the latest rows, from which on this is reported
QUOTES = "\"'`\u2018\u2019\u201c\u201d "
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


def follow(trained: Trained, step: Step, origin: Origin) -> None:
    """Take note of the targets of rows of the first pass, which were learned: their order, and rows of rare classes.

    Where classes have weights, their probabilities are summed, too, with the weights that rows have without these.

    Parameters
    ----------
    trained : Trained
        Its order and progress are changed.
    step : Step
        Of rows that were read.
    origin : callable
        From a file and the number of a row in it to those that the user knows.
    """
    y, batch = step.learned.target, step.batch
    is_of_classes = trained.model.task == "classification"
    codes = trained.model.codes(y)[0] if is_of_classes else y
    if trained.order is not None:
        trained.order.add(codes)
    if not is_of_classes:
        return
    known = trained.progress.occurrences
    known += [Occurrences() for _ in range(len(known), len(trained.model.classes))]
    for k, count in enumerate(np.bincount(codes, minlength=len(known)).tolist()):
        known[k].rows += count
        if known[k].rows >= FEWEST_ROWS:
            known[k].first = []
        elif count:
            known[k].first += [origin(batch.file, row) for row in batch.numbers[codes == k].tolist()]
    if trained.plan.class_weight and trained.model.loss_is_log_loss:
        _sum_probabilities(trained.model.probabilities(step.predictions), codes, batch.weight, known)


def _sum_probabilities(
    probabilities: np.ndarray, codes: np.ndarray, weight: np.ndarray, known: list[Occurrences]
) -> None:
    """Add rows to the sums of classes, row by row, so that they do not depend on where batches are cut."""
    for k, seen in enumerate(known[: probabilities.shape[1]]):
        seen.weight = float(np.append(seen.weight, weight[codes == k]).cumsum()[-1])
        seen.predicted = float(np.append(seen.predicted, weight * probabilities[:, k]).cumsum()[-1])


def rare_classes(trained: Any) -> list[str]:
    """A line for each class of fewer than three rows, where there are more than a thousand in all.

    Parameters
    ----------
    trained : Trained

    Returns
    -------
    list of str
        Empty where the classes were named.

    Examples
    --------
    >>> from tunefree.stream.source import open_source
    >>> from tunefree.model_files.plan import Plan
    >>> from tunefree.training.training import train
    >>> table = {"age": [20.0, 60.0] * 600 + [30.0], "rich": ["no", "yes"] * 600 + ["goo"]}
    >>> rare_classes(train(open_source(table), Plan(target="rich", learner="scinol2")))[0].split(";")[0]
    "class 'goo' has 1 of 1,201 rows: the table, row 1201"
    """
    known = trained.progress.occurrences
    total = sum(occurrences.rows for occurrences in known)
    if total <= MANY_ROWS or trained.plan.classes:
        return []
    return [
        f"class {label!r} has {seen.rows} of {total:,} rows: {_places(seen.first)}; if it is a mistake, correct it, or "
        f"name all classes by `classes`"
        for label, seen in zip(trained.model.classes, known, strict=False)
        if 0 < seen.rows < FEWEST_ROWS
    ]


def alike_classes(trained: Any) -> list[str]:
    """A line for each group of classes whose names differ in case, quotes or white space only, or mean true or false.

    Parameters
    ----------
    trained : Trained

    Examples
    --------
    >>> from types import SimpleNamespace as Trained
    >>> trained = Trained(model=Trained(task="classification", classes=["No", "Yes", "yes"]), plan=Trained(classes=()))
    >>> alike_classes(trained)
    ["the classes 'Yes' and 'yes' differ in case or quotes only; if they are one, correct it, or name all by `classes`"]
    >>> trained.model.classes = ["0", "1", "TRUE"]
    >>> alike_classes(trained)
    ["the classes '1' and 'TRUE' mean the same; if they are one, correct it, or name all by `classes`"]
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
    remedy = "if they are one, correct it, or name all by `classes`"
    return [f"the classes {' and '.join(group)} {difference}; {remedy}" for group in groups.values() if len(group) > 1]


def _places(rows: list[tuple[str, int]]) -> str:
    """Rows in words."""
    files = list(dict.fromkeys(file for file, _ in rows))
    numbers = [[str(row) for file, row in sorted(rows) if file == name] for name in files]
    return ", ".join(
        f"{file}, row{'s' if len(of_file) > 1 else ''} {' and '.join(of_file)}"
        for file, of_file in zip(files, numbers, strict=True)
    )


def order_warning(trained: Trained) -> str | None:
    """A warning, if the targets depend on the order of the rows.

    Examples
    --------
    >>> from tunefree.stream.source import open_source
    >>> from tunefree.model_files.plan import Plan
    >>> from tunefree.training.training import train
    >>> table = {"age": [20.0, 60.0] * 100, "rich": ["no"] * 100 + ["yes"] * 100}
    >>> order_warning(train(open_source(table), Plan(target="rich", learner="scinol2")))[:36]
    'the rows are sorted by the target, o'
    """
    if trained.order is None or not (finding := trained.order.finding()).is_dependent:
        return None
    if trained.plan.group is not None:
        return OF_GROUPS.format(level=LEVEL)
    return (SORTED if finding.is_sorted else DEPENDENT).format(level=LEVEL, **finding._asdict())


def remark_on_known_rows(trained: Any) -> list[str]:
    """A line where many rows to come would be known, or groups are not contiguous; none otherwise.

    Parameters
    ----------
    trained : Trained
        At the end of its pass.
    """
    plan = trained.plan
    if not trained.model.options.is_pool:
        return []
    known, rows = trained.model.known_rows()
    if plan.group is not None:
        text = f"{known:,} of {rows:,} rows are of groups that came before; sort the rows by {plan.group}"
        return [text] if known else []
    share = trained.model.pool.known_share
    remedy = "; if rows belong to subjects, name their column by `group`" if trained.kind == "table" else ""
    text = f"{share:.0%} of the latest rows have the columns of earlier ones{remedy}"
    return [text] if share >= MANY_KNOWN else []


def remark_on_columns(trained: Any) -> list[str]:
    """A line where rows have more columns than trees see; none otherwise.

    Parameters
    ----------
    trained : Trained
        At the end of its pass.
    """
    return list(trained.model.unseen()) if trained.model.options.is_pool else []


def remark_on_weights(trained: Any) -> list[str]:
    """A line on what probabilities refer to where classes have weights: the class that gains most by them.

    Parameters
    ----------
    trained : Trained
        At the end of its pass.
    """
    total = sum(seen.weight for seen in trained.progress.occurrences)
    shares = [
        (seen.predicted / seen.weight, seen.predicted / total, seen.weight / total, label)
        for label, seen in zip(trained.model.classes, trained.progress.occurrences, strict=False)
        if seen.weight > 0.0
    ]
    if not shares:
        return []
    _, predicted, share, label = max(shares, key=lambda each: each[0])
    return [
        f"probabilities are of rows as `class_weight` weighs them: the mean probability of {label!r} is "
        f"{predicted:.3g}, and its share of the rows {share:.3g}"
    ]


def doubts_of_columns(trained: Any) -> list[Reason]:
    """What lets columns of categories look like something else, each with the parameters that decide it.

    Parameters
    ----------
    trained : Trained

    Examples
    --------
    >>> from types import SimpleNamespace as Trained
    >>> from tunefree.stream.columns import Category
    >>> trained = Trained(encoder=Trained(columns=[Category("zip", doubt=(ZEROS, ""))]))
    >>> print(*doubts_of_columns(trained))
    column 'zip': leading zeros, read as categories; `numeric='zip'` reads numbers
    """
    doubts = []
    for column in getattr(trained.encoder, "columns", []):
        if not getattr(column, "doubt", ()):
            continue
        kind, value = column.doubt
        decision = _DECISIONS[kind].format(name=column.name, value=value, date=f"{column.name}=FORMAT")
        seen = f"{kind} {value!r}" if value else kind
        doubts.append(Reason(f"{seen}, read as categories", column.name, 0, "", 0, decision))
    return doubts
