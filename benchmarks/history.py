"""A record of speed: processor time of tunefree over that of a peer, a line for each kind of work, in history.csv.

Each line has commit, date, machine and ratio, and is appended to ``benchmarks/history.csv`` once it is
measured.
``--compare`` ends with status 1 if a ratio is more than 1.3 times that of the last record on the same machine.
tunefree and the peer run in turn, and medians are divided; over several tables it is the geometric mean of ratios.
Kinds without their peer or data are left out, ``--lines "CSV,JSON lines"`` selects some, and ``--quick`` keeps none.
"""

from __future__ import annotations

import csv
import datetime
import json
import math
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import datasets
import generation_sets as sets
import large
import numpy as np
import peers
import pyarrow as pa
from common import FOLDER, TUNEFREE, names_in, parser_of, process_seconds, text_file
from pyarrow import compute

from generations import measured
from tunefree.estimators.pool import TuneFreeClassifier
from tunefree.model_files.plan import Plan
from tunefree.stream.batch import BadRows
from tunefree.stream.source import open_source
from tunefree.training import reading

PATH = Path(__file__).with_suffix(".csv")
FIELDS = ("commit", "date", "machine", "cores", "line", "peer", "seconds", "peer_seconds", "ratio")
LEAST_RISE = 1.3  # of a ratio, to be reported
BAR = 300.0  # seconds that the tests may take
ROWS, BLOCK = 4_000_000, 500_000  # of generated tables
FIRST = 600  # rows learned before single rows
Runs = dict[str, Callable[[], float]]  # first that of the peer; a function returns seconds
Record = dict[str, Any]


def processor() -> float:
    """Seconds of the processor so far, of this process and of child processes that have ended."""
    return sum(sum(resource.getrusage(whose)[:2]) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def spent(work: Callable[[], object]) -> float:
    """Seconds of the processor that a piece of work takes."""
    start = processor()
    work()
    return processor() - start


def command(*arguments: object) -> Callable[[], float]:
    """Runs a command, which must succeed."""
    return partial(spent, partial(process_seconds, [str(argument) for argument in arguments]))


def seconds_of(function: Callable[..., Any], *arguments: Any) -> float:
    """The seconds among the figures that a function of another benchmark returns."""
    return function(*arguments)["seconds"]


def svmlight(quick: bool, folder: Path) -> Iterator[Runs]:
    """One pass over text of a million rows; Vowpal Wabbit reads the same rows in its format."""
    from vowpal import VOWPAL

    rows = 1000 if quick else 1_000_000
    train = [*TUNEFREE, "train", text_file(rows, bar=""), "-o", folder / "model", "--quiet"]
    yield {
        "Vowpal Wabbit": command(*VOWPAL, "-d", text_file(rows), "--loss_function", "logistic", "--quiet"),
        "one learner": command(*train, "--learner", "scinol2"),
        "pool": command(*train),
    }


def newsgroups(quick: bool, folder: Path) -> Iterator[Runs]:
    """One pass over twenty newsgroups; Vowpal Wabbit gets their words counted."""
    import vowpal

    split = datasets.load(sets.described("newsgroups20"))
    split = datasets.few(split) if quick else split
    problem = vowpal.Problem.write(folder, datasets.lines(split, split.train), [], len(split.classes))
    options = ("--oaa", problem.n_classes, "--loss_function", "logistic", "--quiet")
    yield {
        "Vowpal Wabbit": command(*vowpal.VOWPAL, "-d", folder / "train.vw", *options),
        "pool": partial(seconds_of, measured, "train", split),
    }


def tables(peer: str, names: Sequence[str], quick: bool, folder: Path) -> Iterator[Runs]:
    """``train`` after code was compiled, in one thread."""
    for name in ("iris",) if quick else names:
        split = sets.table(name)
        yield {
            peer: partial(seconds_of, peers.boosting, peer.lower(), split),
            "pool": partial(seconds_of, measured, "train", split),
        }


def cover(rows: int, quick: bool, folder: Path) -> Iterator[Runs]:
    """``fit`` of forest covers, one class against the rest, beside 500 trees of 255 leaves; one thread."""
    from lightgbm import LGBMClassifier

    split = datasets.load(sets.described("covtype"))
    table = split.train.slice(0, datasets.FEW_TRAINED if quick else rows)
    X = np.column_stack([column.to_numpy() for column in table.drop_columns(split.data.target).columns]).astype(float)
    labels, counts = np.unique(table[split.data.target].to_numpy(), return_counts=True)
    y = table[split.data.target].to_numpy() == labels[counts.argmax()]
    peer = LGBMClassifier(n_estimators=500, num_leaves=255, n_jobs=1, verbose=-1)
    yield {
        "LightGBM": partial(spent, partial(peer.fit, X, y)),
        "pool": partial(spent, partial(TuneFreeClassifier(n_jobs=1).fit, X, y)),
    }


def made(name: str, quick: bool, folder: Path) -> Iterator[Runs]:
    """A table of a million rows, each learner in a process of its own."""
    run = partial(large.apart, name=name, rows=1000 if quick else 1_000_000)
    yield {"LightGBM": partial(seconds_of, run, "LightGBM"), "pool": partial(seconds_of, run, "tunefree")}


def rows_of_river(predicts: bool, quick: bool, folder: Path) -> Iterator[Runs]:
    """``learn_one``, and ``predict_proba_one`` before it, of the rows of river's data set Phishing."""
    from river.datasets import Phishing
    from single_rows import OF_RIVER, by_river

    from tunefree.river import TuneFreeClassifier

    rows = list(Phishing())[: 20 if quick else None]
    models = {"river": next(iter(OF_RIVER.values())), "pool": TuneFreeClassifier}
    yield {name: partial(spent, partial(by_river, make, rows, predicts, True)) for name, make in models.items()}


def predict_each(model: Any, rows: Sequence[Any]) -> None:
    """Predict rows one at a time."""
    for row in rows:
        model.predict_proba(row)


def batches_of_one(frames: bool, quick: bool, folder: Path) -> Iterator[Runs]:
    """``predict_proba`` of one row, an array or a frame."""
    import pandas as pd
    from sklearn.linear_model import SGDClassifier

    from tunefree import TuneFreeClassifier

    rng = np.random.default_rng(0)
    X, n = rng.normal(size=(FIRST + 1000, 30)), 20 if quick else 1000
    y = X[:, 0] + X[:, 1] + rng.normal(size=len(X)) > 0
    data = pd.DataFrame(X, columns=[f"x{j}" for j in range(30)]) if frames else X
    models = {"scikit-learn": SGDClassifier(loss="log_loss"), "pool": TuneFreeClassifier()}
    rows = [data[i : i + 1] for i in range(FIRST, FIRST + n)]
    for model in models.values():
        model.fit(data[:FIRST], y[:FIRST]).predict_proba(rows[0])
    yield {name: partial(spent, partial(predict_each, model, rows)) for name, model in models.items()}


def generated(suffix: str, rows: int) -> Path:
    """A file of ten columns of numbers, one of categories and the target."""
    FOLDER.mkdir(exist_ok=True)
    path, rng = FOLDER / f"columns-{rows}.{suffix}", np.random.default_rng(0)
    part = path.with_suffix(".part")
    for start in range(0, rows, BLOCK) if not path.exists() else ():
        n = min(BLOCK, rows - start)
        columns = {f"x{j}": compute.round(pa.array(rng.normal(size=n)), 4) for j in range(10)}
        block = pa.table(columns | {"place": [f"p{i}" for i in rng.integers(0, 1000, n)], "y": rng.integers(0, 2, n)})
        with open(part, "ab" if start else "wb") as file:
            if suffix == "csv":
                pa.csv.write_csv(block, file, pa.csv.WriteOptions(include_header=not start))
            else:
                file.writelines(json.dumps(row).encode() + b"\n" for row in block.to_pylist())
    if not path.exists():
        part.rename(path)
    return path


def encoded(path: Path) -> None:
    """Read a file into encoded rows."""
    for _ in reading.begin(open_source(str(path)), Plan(target="y"), BadRows()).batches:
        pass


def read(suffix: str, quick: bool, folder: Path) -> Iterator[Runs]:
    """From a file to encoded rows; Arrow reads columns."""
    import pyarrow.csv
    import pyarrow.json

    path = generated(suffix, 1000 if quick else ROWS if suffix == "csv" else ROWS // 2)
    arrow = pyarrow.csv.read_csv if suffix == "csv" else pyarrow.json.read_json
    yield {"Arrow": partial(spent, partial(arrow, str(path))), "encoded rows": partial(spent, partial(encoded, path))}


def tests(quick: bool, folder: Path) -> Iterator[Runs]:
    """``make test`` without compiled code on disk, over the five minutes that it may take."""
    chosen = ["tests/test_structure.py"] if quick else ["-n", "2", "--dist", "worksteal", "-m", "not slow"]
    cold = f"TUNEFREE_CACHE={folder / 'cache'}"
    yield {"bar": lambda: BAR, "pytest": command("env", cold, sys.executable, "-m", "pytest", "-q", *chosen)}


LINES: dict[str, Callable[[bool, Path], Iterator[Runs]]] = {
    "svmlight text": svmlight,
    "twenty newsgroups": newsgroups,
    "tables over LightGBM": partial(tables, "LightGBM", [*sets.CHOSEN, *sets.OTHER[:-1]]),  # eleven, without covtype
    "tables over CatBoost": partial(tables, "CatBoost", sets.CHOSEN),
    "covtype of 131072 rows": partial(cover, 131_072),
    "rules of a million rows": partial(made, "rules"),
    "Friedman of a million rows": partial(made, "friedman"),
    "learn_one": partial(rows_of_river, False),
    "predict_proba_one and learn_one": partial(rows_of_river, True),
    "array of one row": partial(batches_of_one, False),
    "frame of one row": partial(batches_of_one, True),
    "CSV": partial(read, "csv"),
    "JSON lines": partial(read, "jsonl"),
    "tests": tests,
}


def rounds(runs: Runs, repeats: int) -> dict[str, float]:
    """Median seconds of each, run in turn."""
    seconds = [{name: run() for name, run in runs.items()} for _ in range(repeats)]
    return {name: statistics.median(times[name] for times in seconds) for name in runs}


def measure(line: str, quick: bool, repeats: int, folder: Path) -> list[Record]:
    """Records of a kind of work, without commit, date and machine."""
    medians = [rounds(runs, repeats) for runs in LINES[line](quick, folder)]
    peer, *names = medians[0]
    records = []
    for name in names:
        ratio = math.exp(statistics.mean(math.log(row[name] / row[peer]) for row in medians))
        sums = [round(sum(row[model] for row in medians), 4) for model in (name, peer)]
        title = f"{line}, {name}" if len(names) > 1 else line
        records.append(dict(zip(FIELDS[4:], (title, peer, *sums, float(f"{ratio:.4g}")), strict=True)))
    return records


def origin() -> Record:
    """The commit, the date and the machine."""
    describe = ["git", "describe", "--always", "--dirty", "--abbrev=8", "--exclude=*"]
    commit = subprocess.run(describe, cwd=PATH.parent, capture_output=True, text=True, check=True).stdout.strip()
    info = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    machine = names[0] if names else platform.processor()
    date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d")
    return dict(zip(FIELDS, (commit, date, machine, os.cpu_count()), strict=False))


def kept(path: Path) -> list[Record]:
    """Records of a file, the oldest first."""
    return list(csv.DictReader(path.read_text().splitlines())) if path.exists() else []


def keep(path: Path, records: list[Record]) -> None:
    """Append records to a file."""
    is_new = not path.exists()
    with open(path, "a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerows(records)


def rise(record: Record, earlier: list[Record]) -> float | None:
    """A ratio over that of the last earlier record of the same work on the same machine; None if there is none."""
    same = ("machine", "cores", "line", "peer")
    alike = [row for row in earlier if all(str(row[name]) == str(record[name]) for name in same)]
    return record["ratio"] / float(alike[-1]["ratio"]) if alike else None


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and append each record."""
    parser = parser_of(__doc__)
    parser.add_argument("--compare", action="store_true", help=f"fail if a ratio rose {LEAST_RISE} times")
    parser.add_argument("--lines", type=names_in, default=tuple(LINES), help="kinds of work; all if left out")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each, in turn")
    options = parser.parse_args(arguments)
    if unknown := set(options.lines) - LINES.keys():
        parser.error(f"no kind of work is called {', '.join(sorted(unknown))}; there are {', '.join(LINES)}")
    earlier, source, risen = kept(PATH), origin(), []
    for line in options.lines:
        try:
            with tempfile.TemporaryDirectory() as folder:
                repeats = 1 if options.quick or line == "tests" else options.repeats
                records = [source | record for record in measure(line, options.quick, repeats, Path(folder))]
        except (ModuleNotFoundError, FileNotFoundError) as error:
            print(f"{line}: left out, {error}", flush=True)
            continue
        for record in records:
            change = rise(record, earlier)
            risen += [record["line"]] if change is not None and change > LEAST_RISE else []
            change_text = "" if change is None else f", {change:.2f} times the last record"
            print(f"{record['line']}: {record['ratio']} of {record['peer']}{change_text}", flush=True)
        if not options.quick:
            keep(PATH, records)
    if options.compare and risen:
        raise SystemExit(f"slower: {'; '.join(risen)}")


if __name__ == "__main__":
    main()
