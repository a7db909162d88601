"""The claims of the papers and the sizes of the runs as tables of values, from the texts of ``tunefree reproduce``.

``python -m documentation.claims reproduction`` puts those of a folder in place of the earlier ones of the same figures,
in ``docs/figures/reproduction/claims.csv`` and ``runs.csv``.
"""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "docs" / "figures" / "reproduction"
CLAIM = re.compile(r"^- (?P<claim>.*?)\. (?P<holds>Here, too|Not so here): (?P<measured>.*?)\.?$", re.M)
TITLE = re.compile(r"\A# .*\n\n(.*?)\.?\n")
RUN = re.compile(r"\*\*Differences\.\*\* (?P<differences>.*)\n\nSize: (?P<size>.*)\. Numbers:")


def rows_of(figure: str, text: str) -> tuple[list[list[str]], list[str]]:
    """The rows of the claims of a figure, and the row of its run."""
    claims = [
        [figure, of["claim"], "yes" if of["holds"] == "Here, too" else "no", of["measured"]]
        for of in CLAIM.finditer(text)
    ]
    title, run = TITLE.search(text), RUN.search(text)
    if title is None or run is None:
        raise ValueError(f"the text of {figure} has no title or no size")
    return claims, [figure, title[1], run["size"], run["differences"]]


def replace(path: Path, rows: list[list[str]]) -> None:
    """Put rows in place of those of the same figures in a file."""
    with open(path, newline="") as file:
        head, *before = csv.reader(file)
    figures = {row[0] for row in rows}
    kept = [row for row in before if row[0] not in figures]
    with open(path, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *sorted([*kept, *rows], key=lambda row: row[0])])


def main(folder: Path, output: Path = FOLDER) -> None:
    """Read the texts of a folder and write the two tables."""
    read = [rows_of(path.stem, path.read_text()) for path in sorted(folder.glob("*.md"))]
    replace(output / "claims.csv", [row for claims, _ in read for row in claims])
    replace(output / "runs.csv", [run for _, run in read])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
