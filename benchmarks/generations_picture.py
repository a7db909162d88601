"""The figure of docs/theory/pool.md: who predicts elec2, in the order of its rows.

It trains the pool on all rows of elec2 in one pass, saves and loads the model, and draws what it recorded. It writes
docs/figures/generations.png and .svg.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from common import parser_of, write_figure
from datasets import FEW_TRAINED, available
from pyarrow import parquet

import tunefree

mpl.use("Agg")


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, and draw from the file of the model."""
    options = parser_of(__doc__).parse_args(arguments)
    for data in available(["elec2"]):
        table = parquet.read_table(data.path)
        rows = table.slice(0, FEW_TRAINED if options.quick else None)
        model = tunefree.train(rows, target=data.target, shuffle=False)
        with tempfile.TemporaryDirectory() as folder:
            model.save(Path(folder) / "elec2.model")
            display = tunefree.GenerationsDisplay.from_estimator(tunefree.load(Path(folder) / "elec2.model"))
        write_figure(display.figure_, "generations", options.quick)
        history = model.history()
        print(f"elec2, {len(table):,} rows: progressive log-loss {history['loss'].to_pylist()[-1]:.4f}")


if __name__ == "__main__":
    main()
