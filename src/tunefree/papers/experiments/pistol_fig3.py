"""Orabona 2014, Figure 3: one pass of PiSTOL against a support vector machine whose C is chosen by cross-validation.

Appendix C: smoothed hinge, a = 0.25, L = 2, b = sqrt(2 a L T) for T training rows, which the preset "practice" of the
estimator stands for; kernels and values of C in :mod:`tunefree.papers.experiments.matrices`. Each permutation of the
training rows gives nested samples, the first T rows. PiSTOL and our methods are trained at all sizes and on all
permutations. The SVM is trained as long as its cross-validation takes about ten minutes at most, beyond small samples
on the first permutation only. On the same rows with another width only the learners that depend on it run again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tunefree.estimators.pool import TuneFreeClassifier
from tunefree.estimators.tables import as_block
from tunefree.papers.experiments import drawing, matrices
from tunefree.papers.experiments.experiment import Arrays, Claim, Experiment, Point, Report, Results, moments
from tunefree.papers.experiments.matrices import CASES, Case, Matrices
from tunefree.papers.learner_estimators import KernelPiSTOLClassifier

COMPILING_ROWS = 300  # rows of a fit before the timed one, so that times do not include compilation
SPARSE_SHARE = 0.3  # LIBSVM gets sparse rows up to this share of nonzero values
CACHE_MEGABYTES = 1000  # of kernel values, in LIBSVM
CLOSE = 1.0  # percentage points up to which PiSTOL tracks the SVM
TOLERANCE = 0.01  # of LIBLINEAR, whose own default is 0.1


class Method(NamedTuple):
    """A line of the figure."""

    title: str
    key: str  # in ``Scores``
    trained: str  # the method that is trained: both lines of PiSTOL are of the same pass
    style: drawing.Style
    is_ours: bool = False  # not in the paper


METHODS = (
    Method("SVM, C chosen", "svm", "svm", drawing.Style(drawing.BLUE, (), 1.8)),
    Method("PiSTOL, average", "average", "pistol", drawing.Style(drawing.VERMILLION, (), 1.8)),
    Method("PiSTOL, last", "last", "pistol", drawing.Style(drawing.VERMILLION, (2, 1.5), 1.2)),
    Method("our ladder", "ladder", "ladder", drawing.Style(drawing.BLACK, (1.2, 1.2)), True),
    Method("our pool", "pool", "pool", drawing.Style(drawing.BLACK, (6, 2)), True),
)


class Settings(NamedTuple):
    """Sizes; permutations have the seeds 0, 1, ..."""

    smallest: int = 100  # training rows
    sizes: int = 6
    train_rows: int = 0  # 0 for the paper's
    test_rows: int = 0
    permutations: int = 5
    svm_rows: int = 1_300  # with more rows the SVM is trained on the first permutation only
    small_rows: int = 400  # with at most so many rows PiSTOL and the SVM have more permutations
    small_permutations: int = 20
    folds: int = 5


class Scores(NamedTuple):
    """Results on one data set."""

    case: Case
    rows: list[int]  # (sizes,) T
    # All (permutations, sizes); NaN where a method was not trained.
    errors: dict[str, np.ndarray]  # test error by key of a method
    seconds: dict[str, np.ndarray]  # processor time of training, with cross-validation
    costs: np.ndarray  # selected C


def sizes_of(settings: Settings, case: Case) -> list[int]:
    """Numbers of training rows, geometrically spaced."""
    most = min(settings.train_rows or case.rows, case.rows)
    return np.geomspace(min(settings.smallest, most), most, settings.sizes).round().astype(int).tolist()


def parts(settings: Settings, results: Results) -> list[Point]:
    """For each size and permutation PiSTOL, our methods, the SVM for each C, and then the SVM with the selected C.

    Larger sizes come last, so that little is lost where a run ends early.
    """
    parts: list[Point] = []
    for case in CASES:
        for size in sizes_of(settings, case):
            is_small = size <= settings.small_rows
            for run in range(settings.small_permutations if is_small else settings.permutations):
                parts += [_point(case, method, size, run) for method in _methods_of(case, settings, run)]
                if size > (settings.svm_rows if run > 0 else case.svm_rows):
                    continue
                folds = [_point(case, "folds", size, run, cost) for cost in case.costs]
                parts += folds
                if all(point in results for point in folds):
                    parts.append(_point(case, "svm", size, run, _selected(results, case, size, run)))
    return sorted(parts, key=lambda point: point[2])


def _selected(results: Results, case: Case, size: int, run: int) -> float:
    """The C with the least error of cross-validation; 0 where there was none."""
    folds = {cost: results.get(_point(case, "folds", size, run, cost)) for cost in case.costs}
    errors = {cost: float(part["error"]) for cost, part in folds.items() if part is not None}
    return min(errors, key=errors.__getitem__, default=0.0)


def _methods_of(case: Case, settings: Settings, run: int) -> list[str]:
    """The methods that are trained on a sample of a case, the SVM apart."""
    if run >= settings.permutations:
        return ["pistol"]
    return ["pistol", "pool"] if case.kernel == "linear" else ["pistol", "ladder", "pool"]


def _point(case: Case, method: str, size: int, run: int, cost: float = 0.0) -> Point:
    return _named(case, method), method, size, run, cost


def _named(case: Case, method: str) -> str:
    """The name of a case; of our methods, which are not given a width, that of the first case on the same rows."""
    same = [one.name for one in CASES if one.source == case.source]
    return same[0] if method in ("ladder", "pool") else case.name


def work(
    files: dict[str, Path], settings: Settings, name: str, method: str, size: int, run: int, cost: float
) -> Arrays:
    """Train one method on the first rows of a permutation; its test (or cross-validation) error and processor time."""
    case = next(case for case in CASES if case.name == name)
    rows = matrices.prepare(case.source, files[case.source], settings.train_rows, settings.test_rows)
    case = case._replace(gamma=matrices.width(case, rows))
    chosen = np.random.default_rng(run).permutation(len(rows.train_labels))[:size]
    rows = rows._replace(train=rows.train[chosen], train_labels=rows.train_labels[chosen])
    if method == "folds":
        return _cross_validated(case, rows, cost, settings.folds)
    _compile(method, case)
    began = time.process_time()
    functions = fit(method, case, rows.train, rows.train_labels, cost)
    seconds = time.process_time() - began
    wrong = {key: (decide(rows.test) > 0) != (rows.test_labels > 0) for key, decide in functions.items()}
    errors = {key: np.array(np.mean(values)) for key, values in wrong.items()}
    return {**errors, "seconds": np.array(seconds), "cost": np.array(cost)}


@cache
def _compile(method: str, case: Case) -> None:
    """Fit a small sample, so that all code is compiled."""
    random = np.random.default_rng(0)
    few = random.normal(size=(COMPILING_ROWS, 3))
    few = sparse.csr_matrix(few) if case.kernel == "linear" else few
    for decide in fit(method, case, few, np.where(random.random(COMPILING_ROWS) < 0.5, 1.0, -1.0), 1.0).values():
        decide(few)


def fit(method: str, case: Case, X: Any, y: np.ndarray, cost: float) -> dict[str, Callable[[Any], np.ndarray]]:
    """Train a method; its decision functions, by the keys of the figure's lines."""
    if method == "svm":
        machine = _svm(case, cost).fit(_sparse_if_mostly_zero(X), y)
        return {method: lambda new: machine.decision_function(_sparse_if_mostly_zero(new))}
    if method != "pistol":
        ours = (
            TuneFreeClassifier(shuffle=False) if method == "pool" else KernelPiSTOLClassifier(passes=1, shuffle=False)
        )
        return {method: ours.fit(X, y).decision_function}
    gamma: dict[str, Any] = {"gamma": case.gamma} if case.kernel == "rbf" else {}
    model = KernelPiSTOLClassifier(kernel=case.kernel, **gamma, view="raw", passes=1, shuffle=False).fit(X, y)
    last = model._learned.model.predictor.bank.reading(average=False)
    return {
        "average": model.decision_function,
        "last": lambda new: last.predict(as_block(new))[0, :, 0],
    }


def _svm(case: Case, cost: float) -> Any:
    """Support vector machine with the hinge loss: LIBLINEAR for the linear kernel, else LIBSVM."""
    from sklearn.svm import SVC, LinearSVC

    if case.kernel == "linear":
        return LinearSVC(C=cost, loss="hinge", tol=TOLERANCE, max_iter=20_000, random_state=0)
    return SVC(C=cost, kernel=case.kernel, gamma=case.gamma, cache_size=CACHE_MEGABYTES)


def _sparse_if_mostly_zero(X: Any) -> Any:
    return sparse.csr_matrix(X) if sparse.issparse(X) or np.count_nonzero(X) < SPARSE_SHARE * X.size else X


def _cross_validated(case: Case, rows: Matrices, cost: float, folds: int) -> Arrays:
    """Cross-validation error of one C, and the time."""
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    X, y = _sparse_if_mostly_zero(rows.train), rows.train_labels
    began = time.process_time()
    predicted = cross_val_predict(_svm(case, cost), X, y, cv=StratifiedKFold(folds))
    seconds = time.process_time() - began
    return {"error": np.array(np.mean(predicted != y)), "seconds": np.array(seconds)}


def scores_of(settings: Settings, results: Results) -> list[Scores]:
    """The results on each data set."""
    return [_scores(settings, results, case) for case in CASES]


def _scores(settings: Settings, results: Results, case: Case) -> Scores:
    sizes = sizes_of(settings, case)
    runs = range(max(settings.permutations, settings.small_permutations))

    def gathered(method: str, kind: str, cost: float = 0.0) -> np.ndarray:
        def value(size: int, run: int) -> float:
            chosen = _selected(results, case, size, run) if method == "svm" else cost
            part = results.get(_point(case, method, size, run, chosen))
            return np.nan if part is None else float(part[kind])

        return np.array([[value(size, run) for size in sizes] for run in runs])

    errors = {method.key: gathered(method.trained, method.key) for method in METHODS}
    fit = gathered("svm", "seconds")
    search = sum((gathered("folds", "seconds", cost) for cost in case.costs), np.zeros_like(fit))
    seconds = {method.key: gathered(method.trained, "seconds") for method in METHODS}
    return Scores(case, sizes, errors, seconds | {"svm": search + fit}, gathered("svm", "cost"))


def report(settings: Settings, results: Results) -> Report:
    """A panel for each data set and width."""
    scores = scores_of(settings, results)
    return Report(
        draw=lambda figure: _draw(figure, scores),
        inches=(23.0, 4.3),
        numbers=_numbers(scores),
        claims=[claim for scored in scores for claim in _claims(scored)],
        differences=_differences(settings, scores),
    )


def _claims(scored: Scores) -> list[Claim]:
    """The paper's claims on a data set, at its smallest size and at its largest one with an SVM."""
    behind, of = excess_over_svm(scored, "average"), scored.case.title
    last = int(np.flatnonzero(~np.isnan(behind))[-1])
    few, many = (f"{behind[i]:+.2f} points of test error against the SVM at {scored.rows[i]:,} rows" for i in (0, last))
    machine, pistol = (float(scored.seconds[key][0, last]) for key in ("svm", "average"))
    if scored.case.kernel == "linear":
        tracks = Claim(f"{of}: PiSTOL has a worse constant than the tuned SVM", bool(behind[last] > 0.0), many)
    else:
        tracks = Claim(f"{of}: PiSTOL closely tracks the tuned SVM", bool(behind[last] < CLOSE), many)
    times = f"{pistol:.3g} and {machine:.3g} s of processor time at {scored.rows[last]:,} rows, first permutation"
    return [
        tracks,
        Claim(f"{of}: it has an advantage where there are few samples", bool(behind[0] < 0.0), few),
        Claim(f"{of}: it takes a fraction of the time of cross-validation and training", pistol < machine, times),
    ]


def excess_over_svm(scored: Scores, key: str) -> np.ndarray:
    """Test error minus that of the SVM in percentage points (sizes,), over the permutations with an SVM; else NaN."""
    differences = 100 * (scored.errors[key] - scored.errors["svm"])
    kept = ~np.isnan(differences).all(axis=0)
    excess = np.full(len(scored.rows), np.nan)
    excess[kept] = np.nanmean(differences[:, kept], axis=0)
    return excess


def _differences(settings: Settings, scores: list[Scores]) -> str:
    sentences = [f"{scored.case.stand_in}." for scored in scores if scored.case.stand_in]
    sentences.append(
        "The paper does not state which iterate of PiSTOL it plots, so both are shown; its parameters a and b in the "
        "experiments are outside the conditions of its theorems. The linear SVM is LIBLINEAR's, with the hinge loss; "
        "the paper used LIBSVM throughout, so the times of the linear SVM cannot be compared. PiSTOL is compiled code "
        "here and was Matlab code in the paper. Times are processor times. Our ladder and "
        "pool are not given the kernel's width, and see standardised rows. The sample sizes are our choice. Seeds: the "
        "number of the permutation."
    )
    if settings.train_rows:
        sentences.append(f"At most {settings.train_rows:,} training rows: this is not the paper's size.")
    sentences.append(
        f"There are {settings.permutations} permutations, of PiSTOL and the SVM {settings.small_permutations} up to "
        f"{settings.small_rows:,} rows; the SVM has all of them up to {settings.svm_rows:,} rows, and the first one "
        "while its cross-validation takes about ten minutes at most."
    )
    return " ".join(sentences)


def _numbers(scores: list[Scores]) -> list[dict[str, Any]]:
    rows = []
    for scored in scores:
        for method in METHODS:
            for i, size in enumerate(scored.rows):
                kept = ~np.isnan(scored.errors[method.key][:, i])
                if not kept.any():
                    continue
                errors, seconds = scored.errors[method.key][kept, i], scored.seconds[method.key][kept, i]
                row = {"set": scored.case.title, "method": method.title, "rows": size, "runs": len(errors)}
                row |= moments("error", errors) | {"seconds_mean": float(seconds.mean())}
                costs = " ".join(f"{cost:g}" for cost in sorted(scored.costs[kept, i].tolist()))
                rows.append(row | {"C": costs if method.key == "svm" else ""})
    return rows


def _draw(figure: Any, scores: list[Scores]) -> None:
    panels = figure.subplots(1, len(scores), gridspec_kw={"wspace": 1.5})
    for place, (axes, scored) in enumerate(zip(panels, scores, strict=True)):
        kernel = "Gaussian kernel" if scored.case.kernel == "rbf" else "linear kernel"
        drawing.frame(axes, f"{scored.case.title} ({kernel})", "training rows", "test error (%)" if place == 0 else "")
        axes.set_xscale("log")
        drawing.plain_numbers(axes.xaxis)
        axes.set_xlim(scored.rows[0], scored.rows[-1])
        ends = [_line(axes, scored, method) for method in METHODS if not np.isnan(scored.errors[method.key]).all()]
        drawing.label_ends(axes, ends, 0.07)


def _line(axes: Any, scored: Scores, method: Method) -> drawing.EndLabel:
    """Draw a method's line as far as it was trained; its label tells the time at its last size."""
    kept = ~np.isnan(scored.errors[method.key]).all(axis=0)
    errors, rows = 100 * scored.errors[method.key][:, kept], np.array(scored.rows)[kept]
    mean, deviation = np.nanmean(errors, axis=0), np.nanstd(errors, axis=0)
    drawing.band(axes, rows, mean, deviation, method.style)
    taken = _duration(float(np.nanmean(scored.seconds[method.key][:, kept][:, -1])))
    at = f", {rows[-1]:,} rows" if rows[-1] < scored.rows[-1] else ""
    text = f"{method.title} {mean[-1]:.1f}" + (f" ({taken}{at})" if method.key != "last" else "")
    return drawing.EndLabel(float(mean[-1]), text, method.style.color, method.is_ours)


def _duration(seconds: float) -> str:
    """Format a duration.

    Examples
    --------
    >>> _duration(0.0312), _duration(139.2), _duration(7300.0)
    ('0.031 s', '139 s', '2 h')
    """
    if seconds < 600.0:
        return f"{seconds:.2g} s" if seconds < 100.0 else f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 6000.0 else f"{seconds / 3600.0:.2g} h"


EXPERIMENT = Experiment(
    name="pistol-fig3",
    title="Orabona 2014, Figure 3: one pass of PiSTOL against a cross-validated SVM",
    quick=Settings(sizes=3, train_rows=1200, test_rows=1000, permutations=2, small_permutations=2),
    parts=parts,
    work=work,
    report=report,
    sets=tuple(dict.fromkeys(case.source for case in CASES)),
    lacks="the SVM where it takes far more than ten minutes",
)
