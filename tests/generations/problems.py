"""Small problems that tests of growers share, so that compiled code is shared too."""

import numpy as np

from tunefree.core.part import FIXED, Part, argument, child, declared_arrays, restored
from tunefree.core.schema import check_arrays
from tunefree.generations import kinds
from tunefree.generations.problem import USUAL, Problem, prepared
from tunefree.losses import Square

N, COLUMNS = 400, 5
IS_CATEGORICAL = np.arange(COLUMNS) == 4
KINDS = ["boosted", "randomised", "linear"]
TREES = KINDS[:2]
TASKS = ["numbers", "two", "three"]


def columns(n=N, seed=0):
    """Four numbers, of which the last is mostly 0, and a category; a tenth is missing."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, COLUMNS))
    X[:, 3] *= random.random(n) < 0.1
    X[:, 4] = random.integers(0, 9, n) * 1000.0
    X[random.random((n, COLUMNS)) < 0.1] = np.nan
    return X


def numbers(X, seed=1):
    """Targets that depend on the first column and the category."""
    noise = 0.3 * np.random.default_rng(seed).normal(size=len(X))
    return np.nan_to_num(X[:, 0]) + (np.nan_to_num(X[:, 4]) % 2000 == 0) + noise


def problem(task="numbers", X=None, y=None, weights=None, loss=None):
    """A problem of a task, with any of its parts in place of the usual ones."""
    X = columns() if X is None else X
    y = numbers(columns(len(X))) if y is None else y
    weights = np.ones(len(X)) if weights is None else weights
    flags = IS_CATEGORICAL[: X.shape[1]]
    if task == "numbers":
        return Problem(X, flags, y, weights, 0, loss or Square())
    edges = [0.5] if task == "two" else [0.0, 1.0]
    return Problem(X, flags, np.digitize(y, edges).astype(float), weights, len(edges) + 1, None)


class Holder(Part):
    """A part that has trees, or linear models, and nothing else."""

    n_columns, kind = argument(), argument()
    model = child(object, FIXED)

    def check(self):
        self.model.check(self.n_columns)


def holder_of(kind, n_columns):
    """A class that holds models of a kind."""
    return type("HolderOf", (Holder,), {"model": child(kind, FIXED)}).bare(n_columns=n_columns)


def arrays_in_file(model):
    """The arrays of trees, or of linear models, in a file."""
    holder = holder_of(type(model), 0)
    holder.model = model
    return {name.removeprefix("model."): array for name, array in holder.save_state()[0].items()}


def from_file(kind, arrays, n_columns):
    """Trees, or linear models, of a file, which is checked."""
    holder, arrays = holder_of(kind, n_columns), {f"model.{name}": array for name, array in arrays.items()}
    header = {"model": {"bins": {}} if "bins" in kind._fields else {}}
    check_arrays(arrays, declared_arrays(type(holder), header), {})
    restored(holder, "", arrays, header)
    return holder.model


def grow(kind, rows, seed):
    """A model of a problem; None where the kind is not for such rows."""
    return kinds.KINDS[kind].grow(rows if rows.binned else prepared(rows), seed, USUAL)
