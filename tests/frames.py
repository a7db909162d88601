"""Data frames of numbers, categories and booleans, some of which are missing."""

import numpy as np
import pandas as pd


def mixed_frame(n, seed):
    """Rows of two numbers, two categories, one of which has many, a boolean, and a column that does not vary."""
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "z": rng.integers(0, 50, n),
            "letter": rng.choice(list("abcde"), n),
            "town": [f"t{k}" for k in rng.integers(0, 900, n)],
            "flag": rng.random(n) < 0.4,
            "same": 1.0,
        }
    )
    rows.loc[rng.random(n) < 0.1, "x"] = np.nan
    rows.loc[rng.random(n) < 0.1, "letter"] = None
    return rows


def strange_frame(n):
    """New rows, some of which have categories and numbers that training did not meet."""
    rows = mixed_frame(n, 1)
    rows.loc[: n // 10, "letter"] = "new"
    rows.loc[n // 10 : n // 5, "town"] = "elsewhere"
    rows.loc[n // 5 : n // 4, ["x", "letter", "town"]] = [-1e300, None, None]
    rows.loc[n // 4 : n // 3, "z"] = 10**9
    return rows
