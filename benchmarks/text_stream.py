"""Training time from text against Vowpal Wabbit, as whole processes, with the pool and with one learner.

One pass with the logistic loss over the same file of Vowpal Wabbit text (over 400 MB, Zipf-distributed features, about
40 in a row). The page cache is warm and the runs are interleaved.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from common import TUNEFREE, interleaved, parser_of, process_seconds, report, text_file
from vowpal import VOWPAL

ROWS = 1_000_000


def main(arguments: Sequence[str] | None = None) -> None:
    """Generate the files if they are missing, time the commands, print the ratios."""
    quick = parser_of(__doc__).parse_args(arguments).quick
    rows, repeats = (1000, 1) if quick else (ROWS, 5)
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
                },
                repeats,
            )
        )


if __name__ == "__main__":
    main()
