"""Situations that users bring: the loss of ``fit`` over what a careful user would have reached.

Prints a line of a table for each situation of ``tests/situations``: losses are means over seeds, the reference is the
best of a constant, scikit-learn's cross-validated linear model, its boosted trees and LightGBM's, all with their
defaults; or ``fit`` itself on the same rows said in the plainest way. ``--half chosen`` (the default) may be looked at
while constants are chosen; ``--half other`` is for the end, once. ``--names a,b`` selects situations of that half by
the beginnings of their names. ``--out FILE`` writes the table to a file too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

from common import parser_of
from tests.situations.catalogue import HALVES, Situation
from tests.situations.measures import compare

HEADER = "| situation | why | ours | best reference | ratio | bar | holds |\n|---|---|---|---|---|---|---|"


def line(situation: Situation) -> tuple[str, bool]:
    """A line of the table, and whether the bar is kept; an error is a bar that is not."""
    head = f"| {situation.name} | {situation.why} |"
    try:
        comparison = compare(situation)
    except FileNotFoundError as error:
        return f"{head} skipped: {error.filename} does not exist | | | | |", True
    except Exception as error:
        return f"{head} {type(error).__name__}: {str(error).splitlines()[0]} | | | | **no** |", False
    reference = f"{comparison.references[comparison.best]:.4g} ({comparison.best})"
    holds = "yes" if comparison.holds else "**no**"
    figures = f"{comparison.loss:.4g} | {reference} | {comparison.ratio:.3f} | {comparison.bar:.2f} | {holds} |"
    return f"{head} {figures}", comparison.holds


def table(situations: list[Situation]) -> Iterator[str]:
    """The table, line by line, and how many bars are kept."""
    yield HEADER
    n_kept = 0
    for situation in situations:
        text, holds = line(situation)
        n_kept += holds
        yield text
    yield f"\n{n_kept} of {len(situations)} within their bars"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the situations of one half."""
    parser = parser_of(__doc__)
    parser.add_argument("--half", choices=tuple(HALVES), default="chosen")
    parser.add_argument("--names", default="", help="beginnings of names, with commas between")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    beginnings = ("iris",) if options.quick else tuple(options.names.split(","))
    situations = [situation for situation in HALVES[options.half] if situation.name.startswith(beginnings)]
    if not situations:
        names = ", ".join(situation.name for situation in HALVES[options.half])
        raise SystemExit(f"--names {options.names}: no situation of this half begins like that; there are {names}")
    lines = []
    for text in table(situations):
        lines.append(text)
        print(text, flush=True)
        if options.out:
            options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
