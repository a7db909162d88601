"""Lin, Rosasco, Zhou 2016, Figure 2: early stopping of the subgradient method on the Adult census data.

1500 training rows, hinge loss, Gaussian kernel exp(-||x - z||^2 / (2 sigma^2)). The bandwidth sigma is the median
distance between training rows of different labels. The steps are eta_1 t^-theta, where eta_1 is chosen on held-out rows
for each theta.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pyarrow import compute, parquet

from tunefree.papers.experiments import data, descents
from tunefree.papers.experiments.descents import Errors, Sample
from tunefree.papers.experiments.experiment import Arrays, Experiment, Part, Report, Results
from tunefree.papers.kernel.gaussian import Gaussian
from tunefree.papers.kernel.kernels import median_gamma

TARGET, POSITIVE = "income", ">50K"


class Settings(NamedTuple):
    """Sizes; draws of training rows have the seeds 0, 1, ..."""

    thetas: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75)
    etas: tuple[float, ...] = (0.25, 1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0)
    rows: int = 1500
    rows_held_out: int = 300
    test_rows: int = 16_281
    iterations: int = 3000
    draws: int = 5


class Census(NamedTuple):
    """The data in the package, with standardised numbers and one-hot encoded categories."""

    train: Sample
    test: Sample


@cache
def census() -> Census:
    """Read the packaged file."""
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    with as_file(files("tunefree") / "data" / "adult.parquet") as path:
        table = parquet.read_table(path)
    is_train = compute.equal(table["split"], "train").to_numpy()
    y = np.where(compute.equal(table[TARGET], POSITIVE).to_numpy(), 1.0, -1.0)
    names = [name for name in table.column_names if name not in (TARGET, "split")]
    numeric = [name for name in names if data.is_number(table, name)]
    numbers = np.column_stack([table[name].to_numpy() for name in numeric]).astype(np.float64)
    texts = [compute.fill_null(table[name], data.MISSING).to_numpy() for name in names if name not in numeric]
    one_hot = OneHotEncoder(sparse_output=False).fit_transform(np.column_stack(texts))
    x = np.hstack([StandardScaler().fit(numbers[is_train]).transform(numbers), one_hot]).astype(np.float32)
    return Census(Sample(x[is_train], y[is_train]), Sample(x[~is_train], y[~is_train]))


def parts(settings: Settings, results: Results) -> list[Part]:
    """One part for each draw and theta."""
    sizes = {name: getattr(settings, name) for name in ("rows", "rows_held_out", "test_rows", "iterations")}
    return [
        Part(_name(draw, theta), {"draw": draw, "theta": theta, "etas": list(settings.etas), **sizes})
        for draw in range(settings.draws)
        for theta in settings.thetas
    ]


def _name(draw: int, theta: float) -> str:
    return f"theta{theta:g}-draw{draw}"


def work(
    files: dict[str, Path],
    draw: int,
    theta: float,
    etas: list[float],
    rows: int,
    rows_held_out: int,
    test_rows: int,
    iterations: int,
) -> Arrays:
    """Choose eta_1 on held-out rows, then compute the errors along the iterations on all training rows."""
    everything, random = census(), np.random.default_rng(draw)
    chosen = random.permutation(len(everything.train.y))[:rows]
    train = Sample(everything.train.x[chosen], everything.train.y[chosen])
    test = Sample(*(array[:test_rows] for array in everything.test))
    kernel = Gaussian(median_gamma(train.x, train.y, most=rows))
    held, learned = (
        Sample(*(array[some] for array in train)) for some in (slice(rows_held_out), slice(rows_held_out, None))
    )
    trials = [descents.path_of(kernel, learned, held, eta, theta, iterations) for eta in etas]
    eta = etas[int(np.argmin([trial.records["validation_loss"].min() for trial in trials]))]
    errors = descents.errors_of(descents.path_of(kernel, train, test, eta, theta, iterations))
    return {**errors, "eta": np.array(eta), "gamma": np.array(kernel.gamma)}


def lines_of(settings: Settings, results: Results) -> list[Errors]:
    """The errors of all draws for each theta."""
    draws = {theta: [results[_name(draw, theta)] for draw in range(settings.draws)] for theta in settings.thetas}
    return [
        Errors(theta, *(np.array([draw[kind] for draw in of_theta]) for kind in descents.KINDS))
        for theta, of_theta in draws.items()
    ]


def report(settings: Settings, results: Results) -> Report:
    """Two panels, training and test error."""
    lines = lines_of(settings, results)
    etas = [
        sorted(float(results[_name(draw, theta)]["eta"]) for draw in range(settings.draws)) for theta in settings.thetas
    ]
    steps = ", ".join(
        f"{' '.join(f'{eta:g}' for eta in chosen)} for theta = {theta:g}"
        for theta, chosen in zip(settings.thetas, etas, strict=True)
    )
    gammas = [float(results[_name(draw, settings.thetas[0])]["gamma"]) for draw in range(settings.draws)]
    differences = [
        "The paper does not state the encoding of the columns, the number of iterations, the grid of steps, or the "
        "number of draws over which its curves are averaged. Here numbers are standardised and categories one-hot "
        f"encoded. The grid of steps is {' '.join(f'{eta:g}' for eta in settings.etas)}; the step with the least "
        f"held-out loss of an iterate, on {settings.rows_held_out} of the {settings.rows} rows, is used with all of "
        f"them. Curves are means over {settings.draws} draws. "
        f"{descents.DRAWING} The paper's values cannot be read from its figure. Seeds: the number of the draw.",
        *_at_the_edge(settings, etas),
        *descents.not_falling(lines),
        *descents.without_minimum(lines),
    ]
    return descents.report(
        lines,
        reported="As on simulated data, the training error falls with the iterations while the test error has a "
        "minimum; the effect is more evident with larger steps, for theta close to 0.",
        results=f"Errors in per cent, on {settings.test_rows:,} test rows. {descents.described(lines)}. Steps eta_1 "
        f"selected: {steps}. Bandwidths sigma {' '.join(f'{np.sqrt(0.5 / gamma):.3g}' for gamma in gammas)}.",
        differences=differences,
    )


def _at_the_edge(settings: Settings, etas: list[list[float]]) -> list[str]:
    """A sentence where a step at an edge of the grid was chosen, beyond which a better one may lie."""
    edges = min(settings.etas), max(settings.etas)
    at_edges = [f"{theta:g}" for theta, chosen in zip(settings.thetas, etas, strict=True) if set(chosen) & set(edges)]
    return [f"A step at an edge of the grid was chosen for theta = {', '.join(at_edges)}."] if at_edges else []


EXPERIMENT = Experiment(
    name="path-fig2",
    title="Lin, Rosasco, Zhou 2016, Figure 2: errors against iterations on the Adult data",
    full=Settings(),
    quick=Settings(rows=500, rows_held_out=100, test_rows=2000, iterations=1000, draws=2),
    parts=parts,
    work=work,
    report=report,
)
