"""River's default models on the tables of ``generations.py``: one pass over the training rows, test loss after it.

The adaptive random forest, and logistic, softmax or linear regression on standardised numbers and one-hot categories.
Log-losses, or root mean squared errors of numbers. ``--sets a,b`` selects tables.
"""

from __future__ import annotations

import argparse
from typing import Any

import generation_sets as sets
import numpy as np
from datasets import Split
from river import compose, forest, linear_model, preprocessing

from generations import loss_of, show

TABLES = ("spambase", "satellite", "letters", "bank", "adult", "madelon", "california", "diamonds")


def linear(classes: list[str]) -> Any:
    """A linear model of standardised numbers and one-hot categories."""
    numbers = compose.SelectType(float) | preprocessing.StandardScaler()
    categories = compose.SelectType(str) | preprocessing.OneHotEncoder()
    by_classes = linear_model.LogisticRegression() if len(classes) == 2 else linear_model.SoftmaxRegression()
    return (numbers + categories) | (by_classes if classes else linear_model.LinearRegression())


def rows_of(frame: Any) -> list[dict[str, Any]]:
    """Rows as river takes them: numbers as floats, categories as texts, and no missing values."""
    rows = []
    for row in frame.to_dict("records"):
        known = {name: value for name, value in row.items() if value is not None and value == value}
        rows.append({k: float(v) if isinstance(v, (int, float, np.number)) else str(v) for k, v in known.items()})
    return rows


def test_loss(model: Any, split: Split) -> float:
    """The test loss after one pass over the training rows."""
    train, test, _ = sets.frames(split)
    for row, target in zip(rows_of(train), split.targets(split.train).tolist(), strict=True):
        model.learn_one(row, target)
    if not split.classes:
        predicted = np.array([model.predict_one(row) for row in rows_of(test)])
        return loss_of(predicted, split.targets(split.test), False)
    odds = [model.predict_proba_one(row) for row in rows_of(test)]
    table = np.array([[row.get(k, 0.0) for k in range(len(split.classes))] for row in odds], float)
    table = np.maximum(table, 1e-9)
    return loss_of(table / table.sum(axis=1, keepdims=True), split.targets(split.test), True)


def main() -> None:
    """Print a line of JSON for each table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=lambda names: tuple(names.split(",")), default=TABLES)
    for name in parser.parse_args().sets:
        split = sets.table(name)
        trees = forest.ARFClassifier(seed=0) if split.classes else forest.ARFRegressor(seed=0)
        losses = {"forest": test_loss(trees, split), "linear": test_loss(linear(split.classes), split)}
        show({"set": name} | losses)


if __name__ == "__main__":
    main()
