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
from tunefree.papers.experiments.descents import Sample
from tunefree.papers.experiments.experiment import Arrays, Experiment, Report, Results
from tunefree.papers.kernel.kernels import median_gamma
from tunefree.papers.kernel.usual import Gaussian

TARGET, POSITIVE = "income", ">50K"


class Settings(NamedTuple):
    """Sizes; the training rows of runs are drawn with seeds 0, 1, ..."""

    thetas: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75)
    etas: tuple[float, ...] = (0.25, 1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0)
    rows: int = 1500
    rows_held_out: int = 300
    test_rows: int = 16_281
    iterations: int = 3000
    runs: int = 5


@cache
def census() -> tuple[Sample, Sample]:
    """The training and test rows in the package, with standardised numbers and one-hot encoded categories."""
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
    return Sample(x[is_train], y[is_train]), Sample(x[~is_train], y[~is_train])


def work(files: dict[str, Path], settings: Settings, run: int, theta: float) -> Arrays:
    """Choose eta_1 on held-out rows, then compute the errors along the iterations on all training rows."""
    all_train, all_test = census()
    chosen = np.random.default_rng(run).permutation(len(all_train.y))[: settings.rows]
    train = Sample(*(array[chosen] for array in all_train))
    test = Sample(*(array[: settings.test_rows] for array in all_test))
    kernel = Gaussian(median_gamma(train.x, train.y, most=settings.rows))
    held, learned = (
        Sample(*(array[some] for array in train))
        for some in (slice(settings.rows_held_out), slice(settings.rows_held_out, None))
    )
    trials = [descents.path_of(kernel, learned, held, eta, theta, settings.iterations) for eta in settings.etas]
    eta = settings.etas[int(np.argmin([trial.records["validation_loss"].min() for trial in trials]))]
    errors = descents.errors_of(descents.path_of(kernel, train, test, eta, theta, settings.iterations))
    return {**errors, "eta": np.array(eta), "gamma": np.array(kernel.gamma)}


def report(settings: Settings, results: Results) -> Report:
    """Two panels, training and test error."""
    runs = range(settings.runs)
    etas = [sorted(float(results[run, theta]["eta"]) for run in runs) for theta in settings.thetas]
    gammas = [float(results[run, settings.thetas[0]]["gamma"]) for run in runs]
    steps = ", ".join(
        f"{' '.join(f'{eta:g}' for eta in chosen)} for theta = {theta:g}"
        for theta, chosen in zip(settings.thetas, etas, strict=True)
    )
    return descents.report(
        descents.lines_of(settings, results),
        [],
        "The paper does not state the encoding of the columns, the number of iterations, the grid of steps, or the "
        "number of draws over which its curves are averaged. Here numbers are standardised and categories one-hot "
        f"encoded. The grid of steps is {' '.join(f'{eta:g}' for eta in settings.etas)}; the step with the least "
        f"held-out loss of an iterate, on {settings.rows_held_out} of the {settings.rows} rows, is used with all of "
        f"them: {steps}. Bandwidths sigma are {' '.join(f'{np.sqrt(0.5 / gamma):.3g}' for gamma in gammas)}. Curves "
        f"are means over {settings.runs} draws. {descents.DRAWING} The paper's values cannot be read from its figure. "
        "Seeds: the number of the run.",
    )


EXPERIMENT = Experiment(
    name="path-fig2",
    title="Lin, Rosasco, Zhou 2016, Figure 2: errors against iterations on the Adult data",
    quick=Settings(rows=500, rows_held_out=100, test_rows=2000, iterations=1000, runs=2),
    parts=descents.parts,
    work=work,
    report=report,
)
