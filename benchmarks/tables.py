"""Rows a second of ``tunefree train`` as a whole process, with the pool and with one learner, and its peak memory.

The census rows of the package are repeated to 5 million rows (and, to measure memory only, to 50 million).
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path

from common import FOLDER, TUNEFREE, parser_of, peak_memory_mib, process_seconds
from pyarrow import parquet


def repeated(rows: int) -> Path:
    """A file of so many rows of the census data, repeated."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"adult-{rows}.parquet"
    if path.exists():
        return path
    with as_file(files("tunefree") / "data" / "adult.parquet") as source:
        table = parquet.read_table(source).drop_columns("split")
    part = path.with_suffix(".part")
    with parquet.ParquetWriter(part, table.schema, compression="zstd") as writer:
        for start in range(0, rows, len(table)):
            writer.write_table(table.slice(0, rows - start))
    part.rename(path)
    return path


def main(arguments: Sequence[str] | None = None) -> None:
    """Time 5 million rows; compare the memory of 5 and of 50 million."""
    quick = parser_of(__doc__).parse_args(arguments).quick
    few, many, repeats = (1000, 2000, 1) if quick else (5_000_000, 50_000_000, 5)
    with tempfile.TemporaryDirectory() as folder:
        command = [*TUNEFREE, "train", "--target", "income", "-o", str(Path(folder) / "model"), "--quiet"]
        path = repeated(few)
        rows = parquet.read_metadata(path).num_rows
        for learner in ("pool", "scinol2"):
            named = [*command, "--learner", learner, str(path)]
            process_seconds(named)
            seconds = [process_seconds(named) for _ in range(repeats)]
            middle = statistics.median(seconds)
            spread = f"({min(seconds):.2f} .. {max(seconds):.2f})"
            print(f"{learner}: {rows:,} rows in {middle:.2f} s {spread}, {rows / middle:,.0f} rows/s")
        for n_rows in (few, many):
            print(f"{n_rows:,} rows: peak memory {peak_memory_mib([*command, str(repeated(n_rows))]):.0f} MiB")


if __name__ == "__main__":
    main()
