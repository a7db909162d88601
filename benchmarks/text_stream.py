"""How training from text compares with Vowpal Wabbit, whole process against whole process: the pool, and one learner.

One pass, logistic loss, both from the same file of Vowpal Wabbit text (over 400 MB, zipf-distributed features, about
40 a row), page cache warm, runs interleaved.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from common import TUNEFREE, VOWPAL, interleaved, process_seconds, report, text_file

ROWS = 1_000_000


def main(rows: int = ROWS) -> None:
    """Generate the file if it is not there, time both, print the ratio."""
    path, plain = text_file(rows), text_file(rows, bar="")
    print(f"{path.name}: {path.stat().st_size / 1e6:.0f} MB; {plain.name} holds the same rows as svmlight text")
    with tempfile.TemporaryDirectory() as folder:
        model = str(Path(folder) / "model")
        ours, sparse = ([*TUNEFREE, "train", str(data), "-o", model, "--quiet"] for data in (path, plain))
        alone = [*ours, "--learner", "scinol2"]
        theirs = [*VOWPAL, "-d", str(path), "--loss_function", "logistic", "-f", model + ".vw", "--quiet"]
        report(
            interleaved(
                {
                    "Vowpal Wabbit, one pass": lambda: process_seconds(theirs),
                    "tunefree, one pass": lambda: process_seconds(ours),
                    "tunefree, one pass of ScInOL2 alone": lambda: process_seconds(alone),
                    "tunefree, one pass, svmlight text": lambda: process_seconds(sparse),
                }
            )
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
