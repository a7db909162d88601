"""Data frames of numbers, categories and booleans, some of which are missing."""

import numpy as np
import pandas as pd


def mixed_frame(n, seed, draw_towns):
    """Rows of two numbers, two categories and a boolean; ``draw_towns(rng, n)`` are the numbers of rare categories."""
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "z": rng.integers(0, 50, n),
            "letter": rng.choice(list("abcde"), n),
            "town": [f"t{k}" for k in draw_towns(rng, n)],
            "flag": rng.random(n) < 0.4,
        }
    )
    rows.loc[rng.random(n) < 0.1, "x"] = np.nan
    rows.loc[rng.random(n) < 0.1, "letter"] = None
    return rows
