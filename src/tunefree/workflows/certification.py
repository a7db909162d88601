"""Weights of linear models from files, and theorems about them."""

from __future__ import annotations

import copy
import math
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from tunefree.core.errors import DataError, nearest
from tunefree.learners import ALL
from tunefree.model_files.trained import Trained
from tunefree.theory.bounds import Bound, no_bound, paper_bound


def theorem_of(trained: Trained, weights: np.ndarray) -> Bound:
    """The bound of the learner's theorem on the regret of the first pass, or the reason why there is none.

    ``weights``: weights (d, K) of the features in the order of the model, the constant first.
    """
    model = trained.model
    if not model.has_weights or model.options.view != "raw":
        return no_bound("theorems are of one linear learner on the columns as they are")
    learner = model.linear.members[0].setting.learner
    if not (theorem := ALL[learner].traits.theorem):
        return no_bound(f"no theorem of the papers bounds the regret of {learner}")
    if model.record.is_over:
        return no_bound("the theorems are of one pass, and rows were learned again: pass passes=1")
    linear = copy.deepcopy(model.linear)
    linear.settle()
    if linear.meetings.n_partial:
        return no_bound("some first occurrences of features are not known any more")
    (member,), by_slot = linear.members, linear.meetings.by_slot(weights)
    if member.offsets is not None:
        return no_bound("a class that came late began with more than the learner's rounds")
    slot_weights = np.zeros((member.room, model.n_outputs))
    n_copied = min(len(slot_weights), len(by_slot))  # features beyond this capacity never occurred
    slot_weights[:n_copied] = by_slot[:n_copied]
    bound = paper_bound(member.state, member.objective, slot_weights)
    if bound == math.inf:
        return no_bound("no theorem covers this loss with these parameters, or its bound is beyond all numbers")
    return Bound(bound, theorem)


def read_weights(trained: Trained, path: str | os.PathLike[str]) -> np.ndarray:
    """Weights (d, K) of a linear model from a CSV file.

    The column ``feature`` has the names that ``inspect`` writes, ``(constant)`` for the intercept. Weights are in one
    column, or in a column named after each class if there are more than two.
    Raises a DataError if the file cannot be read, or names features or classes that the model does not have.
    """
    model, outputs = trained.model, ["weight"]
    if model.n_outputs > 1:
        outputs = [str(label) for label in model.classes]
    try:
        table = csv.read_csv(Path(path), convert_options=csv.ConvertOptions(column_types={"feature": pa.string()}))
        features, *columns = table.column_names
        if features != "feature" or (columns != outputs if model.n_outputs > 1 else len(columns) != 1):
            wanted = ", ".join(["feature", *outputs])
            raise DataError(f"the columns are {', '.join(table.column_names)}", str(path), remedy=f"write {wanted}")
        given = np.column_stack([table[column].cast(pa.float64()).to_numpy() for column in columns])
    except FileNotFoundError:
        raise DataError("there is no such file", str(path), remedy="check the path") from None
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(f"cannot be read as CSV ({error})", str(path), remedy="columns feature and weight") from None
    names = {name: j for j, name in enumerate(trained.encoder.names())}
    weights, seen = np.zeros((model.n_features, model.n_outputs)), set[str]()
    for row, name in enumerate(map(str, table[features].to_pylist())):
        if name not in names:
            remedy = nearest(name, [*names], "features")
            raise DataError(f"there is no feature {name!r}", str(path), row + 1, "feature", remedy)
        if name in seen:
            raise DataError(f"there are two weights of {name!r}", str(path), row + 1, remedy="leave one of them out")
        seen.add(name)
        if not np.isfinite(given[row]).all():
            raise DataError(f"the weight of {name!r} is not a finite number", str(path), row + 1)
        weights[names[name]] = given[row]
    return weights
