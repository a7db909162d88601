"""Time of the first ``tunefree train`` after an installation, and of a later one on 1,000 rows.

The package is copied to an empty folder, and has no machine code on disk yet.
``tunefree --help`` is timed as well.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from common import parser_of

import tunefree
from tunefree.cli.demo import write_data


def seconds(arguments: list[str], environment: dict[str, str]) -> float:
    """Wall time of a command, which must succeed."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "tunefree", *arguments], env=environment, check=True, capture_output=True)
    return time.perf_counter() - start


def main(arguments: Sequence[str] | None = None) -> None:
    """Copy the package, and time the first training, later ones, and the help text."""
    from pyarrow import parquet

    repeats = 1 if parser_of(__doc__).parse_args(arguments).quick else 5
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(
            Path(tunefree.__file__).parent, folder / "fresh" / "tunefree", ignore=shutil.ignore_patterns("__pycache__")
        )
        rows, _ = write_data(folder)
        parquet.write_table(parquet.read_table(rows).slice(0, 1000), folder / "rows.parquet")
        text = folder / "rows.vw"
        text.write_text("".join(f"{1 - 2 * (i % 2)} | a:{i % 7} b:{i % 3}\n" for i in range(1000)))
        environment = os.environ | {"PYTHONPATH": str(folder / "fresh"), "TUNEFREE_CACHE": str(folder / "cache")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installation keeps it
        for title, command in {
            "Parquet": ["train", str(folder / "rows.parquet"), "-t", "income", "-o", str(folder / "m")],
            "Vowpal Wabbit text": ["train", str(text), "-o", str(folder / "m")],
        }.items():
            print(f"{title}: first train {seconds(command, environment):.2f} s", end="")
            print(f", warm {statistics.median(seconds(command, environment) for _ in range(repeats)):.2f} s")
        print(f"--help {statistics.median(seconds(['--help'], environment) for _ in range(repeats)):.3f} s")


if __name__ == "__main__":
    main()
