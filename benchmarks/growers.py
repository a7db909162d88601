"""Who grows trees: test loss and seconds of the package's growers beside those of LightGBM and scikit-learn.

Each grower sees all training rows of the first half of the tables of ``generation_sets.py`` once, in one thread, with
the settings of a generation: 100 boosted trees, 60 randomised ones. Categories are codes, which only the package's own
growers know to be categories. Prints a line of JSON for each table; code is compiled before.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import datasets
import generation_sets as sets
import numpy as np
import pandas as pd
from common import parser_of
from peers import loss_of

from tunefree.generations import boosted, kinds, randomised
from tunefree.generations.problem import USUAL, Problem, prepared
from tunefree.losses import Square

SEED = 1


def codes(frame: pd.DataFrame) -> np.ndarray:
    """Numbers, and codes of categories."""
    columns = [frame[name].cat.codes if frame[name].dtype == "category" else frame[name] for name in frame]
    return np.column_stack([column.to_numpy(float) for column in columns])


def ours(kind: str, problem: Problem, test: np.ndarray) -> np.ndarray:
    """Probabilities, or numbers, of the package's trees."""
    model: Any = kinds.KINDS[kind].grow(prepared(problem), SEED, USUAL)
    margins = model.apply(test)[1][0]
    if problem.n_classes == 0:
        return margins[:, 0]
    margins = np.column_stack([np.zeros(len(margins)), margins]) if problem.n_classes == 2 else margins
    shares = np.exp(margins - margins.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def lightgbm(problem: Problem, test: np.ndarray) -> np.ndarray:
    """Likewise of LightGBM with the settings of boosted generations."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    leaves, least, rate = boosted.sizes_of(len(problem.targets), problem.n_classes)
    options: dict[str, Any] = {"num_leaves": leaves, "min_child_samples": least, "learning_rate": rate}
    options |= {"subsample": boosted.ROWS, "subsample_freq": 1, "colsample_bytree": boosted.COLUMNS}
    kind = LGBMClassifier if problem.n_classes else LGBMRegressor
    model = kind(n_estimators=boosted.TREES, random_state=SEED, n_jobs=1, verbose=-1, **options)
    model.fit(problem.columns, problem.targets)
    return np.asarray(model.predict_proba(test) if problem.n_classes else model.predict(test))


def extra_trees(problem: Problem, test: np.ndarray) -> np.ndarray:
    """Likewise of scikit-learn's randomised trees."""
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

    kind = ExtraTreesClassifier if problem.n_classes else ExtraTreesRegressor
    part = "sqrt" if problem.n_classes else 1.0
    leaves = {"max_leaf_nodes": randomised.MOST_LEAVES, "min_samples_leaf": 2}
    model = kind(randomised.TREES, max_features=part, random_state=SEED, n_jobs=1, **leaves)
    model.fit(problem.columns, problem.targets)
    return np.maximum(model.predict_proba(test), 1e-5) if problem.n_classes else model.predict(test)


GROWERS: dict[str, Callable[[Problem, np.ndarray], np.ndarray]] = {
    "boosted": lambda problem, test: ours("boosted", problem, test),
    "lightgbm": lightgbm,
    "randomised": lambda problem, test: ours("randomised", problem, test),
    "extra trees": extra_trees,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures of each table."""
    quick = parser_of(__doc__).parse_args(arguments).quick
    for name in ("breast_cancer", "diabetes") if quick else sets.CHOSEN:
        split = datasets.few(sets.table(name)) if quick else sets.table(name)
        train, test, names = sets.frames(split)
        is_categorical = np.array([column in names for column in train])
        columns, y, truth = codes(train), split.targets(split.train), split.targets(split.test)
        n_classes = len(split.classes)
        rows = columns, is_categorical, y.astype(float), np.ones(len(y))
        problem = Problem(*rows, n_classes, None if n_classes else Square())
        line: dict[str, Any] = {"set": name, "rows": len(y)}
        for grower, predict in GROWERS.items():
            few = problem._replace(**{part: getattr(problem, part)[:300] for part in ("columns", "targets", "weights")})
            predict(few, codes(test)[:9])
            start = time.process_time()
            predicted = predict(problem, codes(test))
            seconds = time.process_time() - start
            loss = loss_of(predicted, truth, n_classes > 0)
            line[grower] = {"loss": float(f"{loss:.4g}"), "seconds": round(seconds, 2)}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
