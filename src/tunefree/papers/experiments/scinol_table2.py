"""Kempka, Kotlowski, Warmuth 2019, Table 2: features, records, classes and scale of the data sets.

The scale is the largest L2 norm of a feature over the smallest that is not 0.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.rows import Block
from tunefree.papers.experiments import drawing
from tunefree.papers.experiments.data import ALL, LACKS, prepare
from tunefree.papers.experiments.experiment import Arrays, Claim, Experiment, Point, Report, Results


class Reported(NamedTuple):
    """A row of the paper's table."""

    features: int
    records: int
    classes: int
    scale: float


PAPER = {
    "Bank": Reported(53, 41188, 2, 6.05e5),
    "Census": Reported(381, 299285, 2, 1.81e6),
    "Covertype": Reported(54, 581012, 7, 1.31e6),
    "Madelon": Reported(500, 2600, 2, 1.09),
    "MNIST": Reported(728, 70000, 10, 5.83e3),
    "Shuttle": Reported(9, 58000, 7, 7.46),
}
CLOSE = 0.01  # relative difference of scales up to which they agree


class Settings(NamedTuple):
    """No settings: both sizes use the whole data sets."""


def parts(settings: Settings, results: Results) -> list[Point]:
    """One part for each data set."""
    return [(name,) for name in ALL]


def work(files: dict[str, Path], settings: Settings, name: str) -> Arrays:
    """Norms of all features, and the counts in the table."""
    prepared = prepare(name, files[name])
    squares = sum(_squares(rows, prepared.n_features) for rows in (prepared.train, prepared.test))
    records = len(prepared.train_classes) + len(prepared.test_classes)
    categorical = prepared.train.codes.shape[1]
    counts = [records, len(prepared.labels), 0 if ALL[name].indicators else categorical]
    return {"norms": np.sqrt(squares), "counts": np.array(counts)}


def _squares(rows: Block, n_features: int) -> np.ndarray:
    """The sum of squares of each feature except the constant."""
    squares = np.bincount(rows.codes.ravel(), minlength=n_features).astype(np.float64)
    squares += np.bincount(rows.features, rows.values**2, n_features)
    squares[rows.columns] += (rows.numbers**2).sum(axis=0)
    return squares[1:]


def measured(results: Results) -> dict[str, dict[str, Any]]:
    """The table computed from the data."""
    table = {}
    for name in ALL:
        norms, (records, classes, categorical) = results[name,]["norms"], results[name,]["counts"].tolist()
        positive = norms[norms > 0.0]
        scale = float(positive.max() / positive.min())
        table[name] = {"features": len(norms), "never 0": len(positive), "categorical": categorical}
        table[name] |= {"records": records, "classes": classes, "scale": scale}
    return table


def report(settings: Settings, results: Results) -> Report:
    """The paper's table and ours, and a figure of the norms of the features."""
    table = measured(results)
    numbers = []
    for name, ours in table.items():
        theirs = {f"{key} (paper)": value for key, value in PAPER[name]._asdict().items()}
        numbers.append(
            {"set": name, **theirs, **{("features not all 0" if k == "never 0" else k): v for k, v in ours.items()}}
        )
    return Report(
        draw=lambda figure: _draw(figure, results),
        inches=(7.2, 3.6),
        numbers=numbers,
        claims=[_claim(name, PAPER[name]._asdict(), ours) for name, ours in table.items()],
        differences=" ".join(f"{name} is replaced: {data.stand_in}." for name, data in ALL.items() if data.stand_in),
    )


def _claim(name: str, paper: dict[str, Any], ours: dict[str, Any]) -> Claim:
    counts = all(ours[key] == paper[key] for key in ("features", "records", "classes"))
    return Claim(f"{name}: {_line(paper)}", counts and abs(ours["scale"] / paper["scale"] - 1.0) < CLOSE, _line(ours))


def _line(line: dict[str, Any]) -> str:
    counts = f"{line['features']} features, {line['records']:,} records, {line['classes']} classes"
    return f"{counts}, scale {line['scale']:.3g}"


def _draw(figure: Any, results: Results) -> None:
    """The sorted norms of the features of each data set; their largest ratio is the scale in the table."""
    axes = figure.add_axes((0.1, 0.14, 0.7, 0.76))
    drawing.frame(axes, "Norms of the features", "rank of the feature, from 0 to 1", "L2 norm of the column")
    ends = []
    colors = (drawing.BLUE, drawing.VERMILLION, drawing.GREEN, drawing.PURPLE, drawing.ORANGE, drawing.BLACK)
    dashes: tuple[tuple[float, ...], ...] = ((), (6, 2), (2, 1.5), (6, 2, 1.5, 2), (10, 2), (1, 1))
    for name, color, dash in zip(ALL, colors, dashes, strict=True):
        norms = np.sort(results[name,]["norms"][results[name,]["norms"] > 0.0])
        axes.plot(np.linspace(0.0, 1.0, len(norms)), norms, **drawing.Style(color, dash).options)
        scale = norms[-1] / norms[0]
        ends.append(drawing.EndLabel(float(norms[-1]), f"{name}: scale {scale:,.3g}", color))
    axes.set_yscale("log")
    axes.set_xlim(0.0, 1.0)
    drawing.plain_numbers(axes.yaxis)
    drawing.label_ends(axes, ends)


EXPERIMENT = Experiment(
    name="scinol-table2",
    title="Kempka, Kotlowski, Warmuth 2019, Table 2: the data sets",
    quick=Settings(),
    parts=parts,
    work=work,
    report=report,
    sets=tuple(ALL),
    lacks=LACKS,
)
