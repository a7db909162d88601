"""Memory of models of many features: at the peak of a training, and while the model is saved.

The rows are svmlight text of two classes, in which each id occurs twice. Each model is learned in a process of its own.
Memory does not depend on what else the machine does.

With ``--endless`` a stream of rows comes through a pipe, of which each tenth row has a category that is new: the
command learns it with each of some limits (``none`` for none). How long ago the category of a row was new is drawn so
that its logarithm is uniform: no category is ever the last of its kind, and all become rare.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import numpy as np
from common import FOLDER, parser_of

import tunefree
from tunefree.model_files.trained import Trained

MODELS = (("scinol2", 2_000_000), ("scinol2", 10_000_000), ("pool", 1_000_000), ("pool", 2_000_000))
PER_ROW = 40
PER_CATEGORY, BLOCK = 10, 100_000  # rows of a stream for each new category, and that are written at a time
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


def endless(n_rows: int, file: TextIO) -> None:
    """Write so many rows of categories without end as CSV."""
    random, n_categories = np.random.default_rng(0), n_rows // PER_CATEGORY
    effects, of_places = random.normal(size=n_categories + 1), random.normal(size=200)
    file.write("id,place,amount,y\n")
    for start in range(0, n_rows, BLOCK):
        rows = start + np.arange(min(BLOCK, n_rows - start))
        newest = rows // PER_CATEGORY + 1
        ids = newest - np.minimum(np.exp(random.random(len(rows)) * np.log(newest)), newest).astype(np.int64)
        places, amounts = np.minimum(random.zipf(1.3, len(rows)) - 1, 199), random.normal(size=len(rows))
        odds = effects[ids] + of_places[places] + 0.5 * amounts
        y = np.where(random.random(len(rows)) < 1.0 / (1.0 + np.exp(-odds)), "yes", "no")
        columns = zip(ids.tolist(), places.tolist(), amounts.tolist(), y.tolist(), strict=True)
        file.write("".join(f"c{i},p{place},{amount:.3f},{label}\n" for i, place, amount, label in columns))


def learn_endless(n_rows: int, limit: str) -> dict[str, float]:
    """Let the command learn a stream of categories without end from a pipe: its largest resident set, and the model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        command = [sys.executable, "-m", "tunefree", "train", "-", "--target", "y", "-o", str(path), "--quiet"]
        command += [] if limit == "none" else ["--memory-limit", limit]
        stream = subprocess.Popen([sys.executable, __file__, "--stream", str(n_rows)], stdout=subprocess.PIPE)
        with stream, subprocess.Popen(command, stdin=stream.stdout) as learning:
            _, status, used = os.wait4(learning.pid, 0)
            learning.returncode = os.waitstatus_to_exitcode(status)
        if learning.returncode:
            raise SystemExit(learning.returncode)
        trained = Trained.load(path)
    loss, ids = trained.progress.progressive[0].mean_loss(), trained.encoder.ids
    peak = used.ru_maxrss / 1024
    return {"peak": peak, "loss": loss, "known": trained.encoder.n_features, "forgotten": ids.n_forgotten}


def show_endless(n_rows: int, limits: Sequence[str]) -> None:
    """Print the table of a stream of categories without end."""
    print("| limit | rows | MiB at the peak | loss | features at the end | forgotten |\n|---|---|---|---|---|---|")
    for limit in limits:
        of_run = learn_endless(n_rows, limit)
        counts = f"{of_run['known']:,} | {of_run['forgotten']:,}"
        print(f"| {limit} | {n_rows:,} | {of_run['peak']:,.0f} | {of_run['loss']:.5f} | {counts} |", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table of docs/theory/reliability.md, or of a stream of categories without end."""
    parser = parser_of(__doc__)
    parser.add_argument("--endless", nargs="+", metavar=("ROWS", "LIMIT"), help="a stream of categories without end")
    parser.add_argument("--stream", type=int, metavar="ROWS", help="only write the stream")
    parser.add_argument("--one", nargs=2, metavar=("LEARNER", "FILE"), help="of one model, in this process")
    options = parser.parse_args(arguments)
    if options.one:
        learn(*options.one)
        return
    if options.stream:
        endless(options.stream, sys.stdout)
        return
    if options.endless:
        show_endless(int(options.endless[0]), options.endless[1:])
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
