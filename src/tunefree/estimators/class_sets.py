"""Sets of classes of estimators: closed ones, and classes that are rare in what was fitted."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from tunefree.model.targets import FEWEST_ROWS, MANY_ROWS


def plain(labels: Any) -> Any:
    """Labels of type object that are all whole numbers, or booleans, as an array of these; anything else as it is.

    Examples
    --------
    >>> plain(np.array([0, 1], object)), plain(np.array([True, False], object)), plain(np.array(["a"], object))
    (array([0, 1]), array([ True, False]), array(['a'], dtype=object))
    """
    if getattr(getattr(labels, "dtype", None), "kind", "") != "O" or labels.ndim != 1:
        return labels
    types = set(map(type, labels))
    are_whole = all(issubclass(of_some, Integral) and of_some is not bool for of_some in types)
    return np.array(list(labels)) if types and (are_whole or types <= {bool, np.bool_}) else labels


def check_types(labels: np.ndarray) -> None:
    """Raise a ValueError unless labels of type object are strings."""
    types = {type(label): place for place, label in reversed([*enumerate(labels)])}
    others = [of_some for of_some in types if not issubclass(of_some, (str, float, np.floating))]
    if len(types) > 1 or others:
        shown = " and ".join(f"y[{place}] of type {of_some.__name__}" for of_some, place in [*types.items()][:2])
        raise ValueError(f"Unknown label type: {shown}; make the labels all strings, or all whole numbers")


def union(known: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The classes known and some labels, sorted."""
    if not (len(known) and len(labels)):
        return labels if len(labels) else known
    if (known.dtype.kind in "OSU") != (labels.dtype.kind in "OSU"):
        raise ValueError(f"the classes known are {known.tolist()}; labels like {labels[0]!r} are of another type")
    if known.dtype == labels.dtype and set(known.tolist()).issuperset(labels.tolist()):
        return known
    return np.unique(np.concatenate([known, labels]))


def closed(classes: Any, estimator: Any, again: bool) -> np.ndarray | None:
    """The labels, sorted, that classes are closed to from here on; None if a new label becomes a class.

    ``again``: whether it goes on with what it has learned.
    Raises a ValueError if there are none, one has no name, or two are the same.
    """
    before = getattr(estimator, "_closed", None) if again else None
    if classes is None:
        return before
    named = column_or_1d(plain(np.asarray(classes)))
    labels, counts = np.unique(named, return_counts=True)
    if not len(labels):
        raise ValueError("classes is empty; give all labels, or leave it out")
    if (counts > 1).any():
        raise ValueError(f"classes names {labels[counts > 1].tolist()[0]!r} twice")
    if labels.dtype.kind in "OSU" and "" in labels.tolist():
        raise ValueError("classes has an empty name")
    return union(estimator.classes_, labels) if again else labels


def check(y: np.ndarray, known: np.ndarray | None, rows: np.ndarray | None = None) -> None:
    """Raise a ValueError for the first label that is not in a closed set; ``rows`` (n,) are their places in y."""
    if known is None or not len(y):
        return
    is_text = [array.dtype.kind in "OSU" for array in (y, known)]
    if is_text[0] == is_text[1] and set(known.tolist()).issuperset(y.tolist()):
        return
    outside = np.full(len(y), True) if is_text[0] != is_text[1] else ~np.isin(y, known)
    if outside.any():
        first = int(np.argmax(outside))
        row = first if rows is None else int(rows[first])
        raise ValueError(
            f"y[{row}] is {y[first : first + 1].tolist()[0]!r}, which is not among the classes {known.tolist()}; "
            "correct it, leave the row out, or name it in classes"
        )


def check_several(classes: np.ndarray) -> None:
    """Raise scikit-learn's ValueError unless there are two classes or more."""
    if len(classes) < 2:
        raise ValueError(f"The number of classes has to be greater than one; got 1 class ({classes.tolist()[0]!r})")


def warn_of_rare(y: np.ndarray, weight: np.ndarray) -> None:
    """Warn of each class of fewer than three rows of a weight above 0, where there are more than a thousand."""
    rows = np.flatnonzero(weight > 0)
    labels, codes, counts = np.unique(y[rows], return_inverse=True, return_counts=True)
    for k in np.flatnonzero(counts < FEWEST_ROWS).tolist() if len(rows) > MANY_ROWS else []:
        places = " and ".join(f"y[{row}]" for row in rows[codes == k].tolist())
        warnings.warn(
            f"class {labels.tolist()[k]!r} has {counts[k]} of {len(rows):,} rows: {places}; "
            "if it is a mistake, correct it, or give all classes by classes=[...]",
            stacklevel=4,
        )
