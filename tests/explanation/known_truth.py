"""Tables of which it is known what columns matter, and which pairs of them act together."""

import numpy as np
import pandas as pd

MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun"]


def table(kind, seed):
    """Thirteen columns and a target; the columns that matter, and the pairs that interact."""
    rng, n = np.random.default_rng(seed), 300 if kind == "few rows" else 2000
    columns = {f"x{j}": rng.normal(size=n) for j in range(10)}
    columns |= {"a": rng.choice(list("abcd"), n), "b": rng.choice([f"v{i}" for i in range(30)], n)}
    columns["month"] = rng.choice(MONTHS, n)
    x, is_a = [columns[f"x{j}"] for j in range(10)], columns["a"] == "a"
    mean, matter, pairs = {
        "none": (np.zeros(n), set(), []),
        "interactions": (
            1.5 * np.sign(x[0] * x[1]) + 1.5 * x[2] * is_a,
            {"x0", "x1", "x2", "a"},
            [{"x0", "x1"}, {"x2", "a"}],
        ),
        "few rows": (1.5 * x[0] + x[1], {"x0", "x1"}, []),
    }[kind]
    label = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-2.0 * (mean - mean.mean()))), "yes", "no")
    columns["target"] = label if seed % 2 else mean + rng.normal(size=n)
    return pd.DataFrame(columns), matter, pairs
