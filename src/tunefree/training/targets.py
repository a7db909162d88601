"""The target of a source: inference of the task, conversion to labels or numbers, and class weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tunefree.core.errors import DataError, ModelError, nearest
from tunefree.losses import loss_of
from tunefree.losses.rates import are_impossible, as_rates, has_rates, problem_of_target
from tunefree.model_files.plan import OF_NUMBERS, Plan
from tunefree.pool.targets import Labels, check_lengths, written
from tunefree.stream.arrays import string_array, to_numpy
from tunefree.stream.batch import BadRows, Batch
from tunefree.stream.notation import notation_of

MOST_CLASSES_OF_INTEGERS = 100  # integers with more distinct values are numbers
ROWS_OF_A_CLASS = 5  # mean number of rows per integer class; with fewer, the integers are numbers
FEWEST_NUMBERS = 7  # distinct integers that are numbers if frequencies rise and fall once; 4 for counts from 0
MANY = 12  # distinct integers: fewer are doubtful numbers, others doubtful classes unless equally frequent
SMOOTH = 0.2  # largest excess variation of frequencies that rise and fall once, relative to a random order
NOISE = 0.56  # mean absolute difference of two square roots of counts, of variance 1/4 each: 1 / sqrt(pi)
BOOLEANS = {"true": True, "false": False}
TEXTS, FRACTIONS, MANY_VALUES = "texts", "numbers with fractions", f"more than {MOST_CLASSES_OF_INTEGERS} whole numbers"
NEVER_CLASSES = FRACTIONS, MANY_VALUES
BALANCED = "balanced"
MISSPELT = 0.8  # similarity from which a label counts as a misspelling of another


class Guess(NamedTuple):
    """The inferred task of a target, the reason, and whether the other task is plausible."""

    task: str  # "classification" or "regression"
    why: str
    doubtful: bool = False


def task_of(target: Any) -> Guess:
    """Infer the task from the values of a target.

    Strings and booleans are classes. So are at most two distinct numbers, and integers with few, close and frequent
    values, unless frequencies rise and fall once, as for counts, grades and ages. Other numbers make a regression.

    >>> import pyarrow as pa
    >>> [task_of(pa.array(values)).task for values in ([1.0, 2.0] * 10, [1.5, 2.0, 2.5] * 10, ["a", "b"])]
    ['classification', 'regression', 'classification']
    >>> task_of(pa.array([0] * 109 + [1] * 65 + [2] * 22 + [3] * 3 + [4]))[:2]
    ('regression', '5 whole numbers from 0 to 4 that get rarer like counts')
    """
    if pa.types.is_boolean(target.type):
        return Guess("classification", "true or false")
    if not (pa.types.is_floating(target.type) or pa.types.is_integer(target.type)):
        return Guess("classification", TEXTS)
    counted = target.value_counts()
    values = np.array(counted.field("values").to_pylist(), np.float64)
    order = np.argsort(values)
    values, counts = values[order], to_numpy(counted.field("counts"), 0)[order]
    if len(values) <= 2:
        return Guess("classification", f"{len(values)} different number{'' if len(values) == 1 else 's'}")
    if (values != np.round(values)).any():
        return Guess("regression", FRACTIONS)
    return _whole_number_guess(values, counts.astype(np.float64))


def check_classes(guess: Guess, target: Any, file: str, name: str | None) -> None:
    """Raise a DataError if the targets of the first rows are mostly distinct strings, which cannot be classes.

    >>> import pyarrow as pa
    >>> check_classes(Guess("classification", TEXTS), pa.array([f"{k} m" for k in range(200)]), "a.csv", "y")
    Traceback (most recent call last):
    ...
    tunefree.core.errors.DataError: a.csv, column 'y': the target has 200 different texts in 200 rows, ...
    """
    different = len(target.unique()) if guess.why == TEXTS else 0
    if different > MOST_CLASSES_OF_INTEGERS and 2 * different > len(target):
        problem = f"the target has {different:,} different texts in {len(target):,} rows, which are no classes"
        remedy = "correct it if they are numbers, as `task='regression'` helps to, or pass `task='classification'`"
        raise DataError(problem, file, column=name, remedy=remedy + _hint_of_notation(target))


def _hint_of_notation(target: Any) -> str:
    """The parameters for the notation of numbers if the first text is a number in some notation; else empty."""
    is_number = notation_of(string_array([str(target[0].as_py())])) is not None
    return "; `decimal` and `thousands` say how numbers are written" if is_number else ""


def _whole_number_guess(values: np.ndarray, counts: np.ndarray) -> Guess:
    """The guess for at least three distinct integers in ascending order, with their frequencies."""
    k, n = len(values), int(counts.sum())
    is_seldom = n < 4 * ROWS_OF_A_CLASS * k
    span = f"{k} whole numbers from {int(values[0])} to {int(values[-1])}"
    if k > MOST_CLASSES_OF_INTEGERS:
        return Guess("regression", MANY_VALUES)
    if ROWS_OF_A_CLASS * k > n:
        return Guess("regression", f"{span} in {n} rows", 2 * k <= n)
    if np.ptp(values) > 3 * k:  # class codes are consecutive, round prices and ages are not
        return Guess("regression", f"{span}, far apart", k <= 2 * MANY and not is_seldom)
    rises_and_falls, is_clear = shape_of(counts)
    is_uneven = counts.var() > 2.0 * counts.mean()  # equal frequencies have a ratio of about 1
    is_odd = bool(is_uneven or is_seldom or values[0] not in (0, 1))  # class codes start at 0 or 1
    classes = Guess("classification", f"{span}, each of them often", k >= MANY and is_odd)
    has_rare_end = 10 * min(counts[0], counts[-1]) < counts.max()
    if not rises_and_falls or not is_uneven or not (has_rare_end or k > 2 * MANY):
        return classes
    if k >= FEWEST_NUMBERS:
        return Guess("regression", f"{span} whose frequencies rise and fall", k < MANY or not is_clear)
    if k > 3 and values[0] == 0 and 10 * counts[-1] < counts.max():
        return Guess("regression", f"{span} that get rarer like counts", True)
    return classes._replace(doubtful=True)


def shape_of(counts: np.ndarray) -> tuple[bool, bool]:
    """Whether frequencies rise and fall once along the values, apart from noise, and whether this is clear.

    The variation of their square roots, which have equal variance, is compared with the variation in a random order.

    >>> shape_of(np.array([109, 65, 22, 3, 1])), shape_of(np.array([50, 900, 170, 800, 10, 30, 700]))
    ((True, True), (False, True))
    """
    roots = np.sqrt(counts)
    k, largest = len(roots), float(roots.max())
    excess = np.abs(np.diff(roots)).sum() - (2.0 * largest - roots[0] - roots[-1])
    at_random = np.abs(roots[:, None] - roots).sum() / k - 2.0 * (largest - roots.mean())
    return bool(excess <= SMOOTH * at_random + NOISE * k), bool(at_random > 2.0 * NOISE * k)


def labels_of(target: Any) -> Labels:
    """The distinct labels that occur in an Arrow array, and codes; integral floats become integers.

    >>> import pyarrow as pa
    >>> labels_of(pa.array([2.0, 1.0, 2.0]))
    Labels(values=[2, 1], codes=array([0, 1, 0]))
    """
    coded = target if pa.types.is_dictionary(target.type) else target.dictionary_encode()
    codes = to_numpy(coded.indices, -1).astype(np.int64)
    values = [_label(value) for value in coded.dictionary.to_pylist()]
    numbers: dict[Any, int] = {}
    renumbered = np.zeros(len(values), np.int64)
    for i in np.unique(codes).tolist():
        renumbered[i] = numbers.setdefault(values[i], len(numbers))
    return Labels(list(numbers), renumbered[codes])


def _label(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def target_of(task: str, batch: Batch) -> Any:
    """Convert the target of a batch for a model; a DataError if a regression has no numbers, or a label is too long."""
    if task == "classification":
        labels = labels_of(batch.target)
        check_lengths(labels, batch.file, batch.numbers)
        return labels
    try:
        return to_numpy(batch.target.cast("float64", safe=False), math.nan)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        problem = f"the target holds texts such as {str(batch.target[0].as_py())!r}, not numbers"
        remedy = "pass `task='classification'`" + _hint_of_notation(batch.target)
        raise DataError(problem, batch.file, int(batch.numbers[0]), remedy=remedy) from None


def closed_classes(names: Sequence[str], task: str, target: Any) -> list[Any]:
    """The named labels, sorted and converted to the type of the target; a ModelError if one cannot be converted.

    >>> closed_classes(["2", "1.0"], "classification", pa.array([1, 2]))
    [1, 2]
    >>> closed_classes(["yes", "no"], "classification", pa.array([1, 2]))
    Traceback (most recent call last):
    tunefree.core.errors.ModelError: `classes`: 'yes' is not a label of the target, which holds numbers
    """
    if task == "regression":
        raise ModelError(OF_NUMBERS)
    kind, labels = target.type, list[Any]()
    for name in names:
        try:
            if pa.types.is_boolean(kind):
                labels.append(BOOLEANS[name.lower()])
            else:
                is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
                labels.append(_label(float(name)) if is_number else name)
        except (KeyError, ValueError):
            holds = "truth values" if pa.types.is_boolean(kind) else "numbers"
            raise ModelError(f"`classes`: {name!r} is not a label of the target, which holds {holds}") from None
    if len(set(labels)) < len(labels):
        raise ModelError(f"`classes={list(names)}`: name each label once")
    return sorted(labels)


def rows_with_usable_targets(batch: Batch, bad: BadRows) -> Batch:
    """The rows with a label among the classes of ``bad``, or a target in the domain of its loss."""
    if batch.target is None or not len(batch.weight) or not (bad.classes or has_rates(bad.loss)):
        return batch
    if bad.classes:
        labels, class_names = labels_of(batch.target), ", ".join(bad.classes)
        known = set(closed_classes(bad.classes, "classification", batch.target))
        is_bad = np.array([label not in known for label in labels.values], bool)[labels.codes]
        for row in np.flatnonzero(is_bad).tolist():
            problem = f"the label {labels.values[labels.codes[row]]!r} is not among the classes {class_names}"
            remedy = "correct it, or add it to `classes`" if bad.options else "correct it"
            bad.report(problem, batch.file, int(batch.numbers[row]), bad.target, remedy)
    else:
        loss, y = loss_of("regression", bad.loss), target_of("regression", batch)
        is_bad = are_impossible(loss, y)
        for row in np.flatnonzero(is_bad).tolist():
            problem, remedy = problem_of_target(loss, y[row])
            bad.report(problem, batch.file, int(batch.numbers[row]), bad.target, remedy)
    return batch.at(np.flatnonzero(~is_bad)) if is_bad.any() else batch


def with_rates(plan: Plan, batch: Batch) -> Batch:
    """A batch with rates instead of its usable targets, and their weights, if its rows have exposures."""
    if batch.exposure is None or not has_rates(plan.loss):
        return batch
    rates, weight = as_rates(loss_of("regression", plan.loss), batch.target, batch.weight, batch.exposure)
    return batch._replace(weight=weight, target=rates)


def weights_by_label(texts: Sequence[str]) -> dict[str, float]:
    """Parse weights written as LABEL=WEIGHT.

    >>> weights_by_label(["yes=5", "a=b=0.5"])
    {'yes': 5.0, 'a=b': 0.5}
    """
    weights: dict[str, float] = {}
    for text in texts:
        label, mark, number = text.rpartition("=")
        try:
            weights[label] = float(number)
        except ValueError:
            mark = ""
        if not mark or not 0.0 <= weights[label] < math.inf:
            raise ModelError(f"`class_weight` is {BALANCED}, or LABEL=WEIGHT with a number of at least 0, not {text!r}")
    return weights


def check_class_weight(plan: Plan, task: str, classes: Sequence[Any], complete: bool) -> None:
    """Raise a ModelError if class weights have no effect; ``complete``: whether all classes are known."""
    if plan.class_weight and task != "classification":
        raise ModelError("`class_weight` is for classes, and the target is a number to predict; leave it out")
    if not plan.class_weight or BALANCED in plan.class_weight:
        return
    texts = list(map(str, classes))
    known = {*texts, *(written(label) for label in classes if not isinstance(label, str))}
    for label in weights_by_label(plan.class_weight):
        is_misspelt = label.isalpha() and get_close_matches(label, texts, 1, MISSPELT)  # not for numbers: 12 is not 112
        if not known & {label, written(label)} and (complete or is_misspelt):
            raise ModelError(f"`class_weight`: there is no class {label!r}; {nearest(label, texts, 'classes')}")


def class_factors(weights: dict[str, float], y: Labels) -> np.ndarray:
    """Weight factors (n,) of rows with these labels; 1 for classes without a class weight.

    >>> class_factors({"yes": 5.0}, Labels.of(np.array(["no", "yes", "no"])))
    array([1., 5., 1.])
    """
    weight_by_text = {written(label): weight for label, weight in weights.items()}
    text_weights = [1.0 if isinstance(value, str) else weight_by_text.get(written(value), 1.0) for value in y.values]
    factors = [weights.get(str(value), default) for value, default in zip(y.values, text_weights, strict=True)]
    return np.array(factors)[y.codes]


def weighed(batch: Batch, by_label: dict[str, float]) -> Batch:
    """The batch with row weights multiplied by class weights; targets must be labels."""
    return batch._replace(weight=batch.weight * class_factors(by_label, batch.target)) if by_label else batch


def is_balanced(plan: Plan) -> bool:
    """Whether class weights are to be computed from the rows; raises a ModelError if they are malformed."""
    if BALANCED not in plan.class_weight:
        weights_by_label(plan.class_weight)
        return False
    if plan.class_weight != (BALANCED,):
        raise ModelError(f"`class_weight` is either {BALANCED} or given label by label, not both")
    return True


def balancing(totals: dict[str, float]) -> tuple[str, ...]:
    """Weights that balance the classes, as LABEL=WEIGHT, from the total row weight of each class.

    A class with the share p of the total weight gets 1 / (K p), with K classes, as in scikit-learn.
    """
    positive = {label: total for label, total in sorted(totals.items()) if total > 0.0}
    mean = math.fsum(positive.values()) / len(positive) if positive else 0.0  # `sum` depends on the Python version
    return tuple(f"{label}={mean / total!r}" for label, total in positive.items())
