"""Claim: training on a Parquet file with the columns of Adult reaches 70,000 rows/s with the pool and 700,000 rows/s
with one learner, as a whole process. It needs less than 400 MB of memory, whatever the
number of rows.

The census rows of the package are repeated to 5 million rows (and, to measure memory only, to 50 million).
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from importlib.resources import as_file, files
from pathlib import Path

from common import FOLDER, TUNEFREE, peak_memory_mib, process_seconds
from pyarrow import parquet


def repeated(millions: int) -> Path:
    """A file of the census data, repeated."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"adult-{millions}m.parquet"
    if path.exists():
        return path
    with as_file(files("tunefree") / "data" / "adult.parquet") as source:
        table = parquet.read_table(source).drop_columns("split")
    part = path.with_suffix(".part")
    with parquet.ParquetWriter(part, table.schema, compression="zstd") as writer:
        for _ in range(-(-millions * 1_000_000 // len(table))):
            writer.write_table(table)
    part.rename(path)
    return path


def main(longest: int = 50) -> None:
    """Time 5 million rows; compare the memory of 5 and of ``longest`` million."""
    with tempfile.TemporaryDirectory() as folder:
        command = [*TUNEFREE, "train", "--target", "income", "-o", str(Path(folder) / "model"), "--quiet"]
        path = repeated(5)
        rows = parquet.read_metadata(path).num_rows
        for learner in ("pool", "scinol2"):
            named = [*command, "--learner", learner, str(path)]
            process_seconds(named)
            seconds = [process_seconds(named) for _ in range(5)]
            middle = statistics.median(seconds)
            spread = f"({min(seconds):.2f} .. {max(seconds):.2f})"
            print(f"{learner}: {rows:,} rows in {middle:.2f} s {spread}, {rows / middle:,.0f} rows/s")
        for millions in (5, longest):
            print(
                f"{millions} million rows: peak memory {peak_memory_mib([*command, str(repeated(millions))]):.0f} MiB"
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
