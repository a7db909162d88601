"""The presets of PiSTOL side by side: progressive loss, and test errors after one pass and after several.

``python benchmarks/presets.py`` prints the table of docs/results.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from common import SHARED, parser_of
from pyarrow import parquet
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import train_test_split

from tunefree import KernelPiSTOLClassifier, PiSTOLClassifier

ROWS = 3000  # for training and for tests, at most
SETS = ("spambase", "satellite", "shuttle", "bank_additional_full", "adult")
TARGETS = ("class", "target", "y", "income", "label")
LEARNERS = {
    "each feature": lambda preset, passes: PiSTOLClassifier(preset=preset, passes=passes),
    "one copy": lambda preset, passes: PiSTOLClassifier(preset=preset, coordinate=False, passes=passes),
    "kernel": lambda preset, passes: KernelPiSTOLClassifier(preset=preset, passes=passes),
}
PASSES = {"each feature": 10, "one copy": 10, "kernel": 5}


def data_sets() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Numbers and labels; sets whose file is missing are skipped."""
    yield "cancer", *load_breast_cancer(return_X_y=True)
    yield "digits", *load_digits(return_X_y=True)
    for name in SETS:
        path = SHARED / f"{name}.parquet"
        if path.exists():
            table = parquet.read_table(path).to_pandas().dropna()
            table = table.sample(min(len(table), 12_000), random_state=0)
            target = next((column for column in table if column.lower() in TARGETS), table.columns[-1])
            labels = table.pop(target).astype(str).to_numpy()
            yield name, table.select_dtypes("number").to_numpy(float), labels


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row for each data set."""
    quick = parser_of(__doc__).parse_args(arguments).quick
    most = 100 if quick else ROWS
    warnings.simplefilter("ignore")
    titles = [f"{name}, {preset}" for name in LEARNERS for preset in ("theory", "practice")]
    print("| set | rows | " + " | ".join(titles) + " |\n|---|---|" + "---|" * len(titles))
    for name, X, y in islice(data_sets(), 1 if quick else None):
        train, test, codes, hidden = train_test_split(X, y, random_state=0, test_size=0.3)
        train, codes, test, hidden = train[:most], codes[:most], test[:most], hidden[:most]
        cells = []
        for kind, create in LEARNERS.items():
            for preset in ("theory", "practice"):
                models = [create(preset, passes).fit(train, codes) for passes in (1, PASSES[kind])]
                errors = [100 * (1 - model.score(test, hidden)) for model in models]
                cells.append(f"{models[0].progressive_loss_:.3f}, {errors[0]:.1f}, {errors[1]:.1f}")
        print(f"| {name} | {len(train)} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
