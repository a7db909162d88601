"""Tables of which it is known what columns matter, and which pairs of them act together."""

import numpy as np
import pandas as pd

KINDS = ("linear", "none", "one column", "interactions", "rare class", "few rows")
ROWS = {"few rows": 300, "rare class": 4000}
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun"]


def table(kind, seed):
    """Thirteen columns and a target; the columns that matter, and the pairs that interact."""
    rng, n = np.random.default_rng(seed), ROWS.get(kind, 2000)
    columns = {f"x{j}": rng.normal(size=n) for j in range(10)}
    columns |= {"a": rng.choice(list("abcd"), n), "b": rng.choice([f"v{i}" for i in range(30)], n)}
    columns["month"] = rng.choice(MONTHS, n)
    x, is_a = [columns[f"x{j}"] for j in range(10)], columns["a"] == "a"
    mean, matter, pairs = {
        "linear": (x[0] + 0.7 * x[1] - 0.5 * x[2] + 0.8 * is_a, {"x0", "x1", "x2", "a"}, []),
        "none": (np.zeros(n), set(), []),
        "one column": (1.5 * np.abs(x[3]), {"x3"}, []),
        "interactions": (
            1.5 * np.sign(x[0] * x[1]) + 1.5 * x[2] * is_a,
            {"x0", "x1", "x2", "a"},
            [{"x0", "x1"}, {"x2", "a"}],
        ),
        "rare class": (0.5 * (1.5 * x[0] + x[1] - 5.0), {"x0", "x1"}, []),
        "few rows": (1.5 * x[0] + x[1], {"x0", "x1"}, []),
    }[kind]
    margin = 2.0 * (mean if kind == "rare class" else mean - mean.mean())
    label = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-margin)), "yes", "no")
    is_classes = kind == "rare class" or seed % 2
    columns["target"] = label if is_classes else mean + rng.normal(size=n)
    return pd.DataFrame(columns), matter, pairs
