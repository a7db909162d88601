"""The figure of docs/explanations/generations.md: who predicts elec2, in the order of its rows.

It trains generations on all rows of elec2 in one pass, saves and loads the model, and draws what it recorded. It writes
docs/figures/generations.png and .svg.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import matplotlib as mpl
from datasets import available
from pyarrow import parquet

import tunefree

mpl.use("Agg")

FIGURES = Path(__file__).parents[1] / "docs" / "figures"


def draw() -> None:
    """Train, and draw from the file of the model."""
    for data in available(["elec2"]):
        trained = tunefree.train(parquet.read_table(data.path), target=data.target, learner="generations")
        with tempfile.TemporaryDirectory() as folder:
            trained.save(Path(folder) / "elec2.model")
            display = tunefree.GenerationsDisplay.from_estimator(tunefree.load(Path(folder) / "elec2.model"))
        FIGURES.mkdir(parents=True, exist_ok=True)
        with mpl.rc_context({"svg.hashsalt": "tunefree"}):
            for suffix, metadata in (("png", {}), ("svg", {"Date": None})):
                display.figure_.savefig(FIGURES / f"generations.{suffix}", dpi=150, metadata=metadata)
        first = trained.trained_.progress.progressive[0]
        print(
            f"elec2, {first.rows:,} rows: progressive log-loss {first.mean_loss():.4f}, error {first.mean_error():.4f}"
        )


if __name__ == "__main__":
    draw()
