"""Memory of models of many features: at the peak of a training, and while the model is saved.

The rows are svmlight text of two classes, in which each id occurs twice. Each model is learned in a process of its own.
Memory does not depend on what else the machine does.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from common import FOLDER, parser_of

import tunefree

MODELS = (("scinol2", 2_000_000), ("scinol2", 10_000_000), ("pool", 1_000_000), ("pool", 2_000_000))
PER_ROW = 40
MEBIBYTE = 2**20


def text_of(n_features: int) -> Path:
    """A file in which the ids up to a number occur twice each, in a random order."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"twice-{n_features}.svm"
    if path.exists():
        return path
    part, random = path.with_suffix(".part"), np.random.default_rng(0)
    ids = np.concatenate([random.permutation(n_features) for _ in range(2)]) + 1
    with open(part, "w") as file:
        for start in range(0, len(ids), PER_ROW):
            row = np.unique(ids[start : start + PER_ROW]).tolist()
            file.write(f"{1 - 2 * (start // PER_ROW % 2)} {' '.join(f'{j}:1' for j in row)}\n")
    part.rename(path)
    return path


def peak() -> float:
    """Largest resident set of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def learn(learner: str, data: str) -> None:
    """Learn a model of a file and save it; print memory and the size of the model's file as JSON."""
    model = tunefree.train(data, learner=learner)
    learned = peak()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        print(json.dumps({"peak": learned, "saving": peak() - learned, "file": path.stat().st_size / MEBIBYTE}))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table of docs/reliability.md."""
    parser = parser_of(__doc__)
    parser.add_argument("--one", nargs=2, metavar=("LEARNER", "FILE"), help="of one model, in this process")
    options = parser.parse_args(arguments)
    if options.one:
        learn(*options.one)
        return
    print("| model | features | MiB at the peak | more while saving | file |\n|---|---|---|---|---|")
    for learner, n_features in ((name, 1000) for name in ("scinol2", "pool")) if options.quick else MODELS:
        command = [sys.executable, __file__, "--one", learner, str(text_of(n_features))]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        figures = json.loads(done.stdout.splitlines()[-1])
        cells = (f"{figures[name]:,.0f}" for name in ("peak", "saving", "file"))
        print(f"| {learner} | {n_features:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
