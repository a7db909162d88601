"""How tight the printed bounds are: each beside what it bounds, on census rows, breast cancer and independent rows.

``python benchmarks/tightness.py`` prints the table of docs/results.md. Comparators are fitted to the same rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib.resources import as_file, files
from typing import Any, NamedTuple

import numpy as np
from common import parser_of
from pyarrow import parquet
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from tunefree import KernelPiSTOLClassifier
from tunefree.core import rows
from tunefree.learners.scinol import ScInOL2
from tunefree.losses import Logistic, SmoothedHinge
from tunefree.losses.objectives import Objective, measured
from tunefree.papers import FixedRates, Perceptron, SubgradientMethod, oracle, play
from tunefree.papers.learners.pistol import CoordinatePiSTOL, PiSTOL
from tunefree.papers.learners.scinol1 import ScInOL1
from tunefree.papers.pistol_risk import averaged_sgd_excess, constants_of, pistol_parameter, smooth_regret_bound
from tunefree.papers.scinol import scinol1_bound, scinol2_bound
from tunefree.pool import passes
from tunefree.pool.model import Model
from tunefree.pool.targets import Labels
from tunefree.theory.bounds import paper_bound
from tunefree.theory.evidence import Evidence, certify, record_evidence
from tunefree.theory.mixing import mixing_excess
from tunefree.theory.risk import Progressive

LOSS = Logistic()
RIDGE = 0.05  # of a comparator that would else be very large
TABLE: dict[str, dict[str, str]] = {}  # cells by bound and data set


class Rows(NamedTuple):
    """A data set; the first column is the constant."""

    title: str
    X: np.ndarray
    y: np.ndarray  # -1 and +1


def census(n: int) -> Rows:
    """Numbers of the data in the package, in their own units."""
    with as_file(files("tunefree") / "data" / "adult.parquet") as path:
        table = parquet.read_table(path).slice(0, n)
    names = [c for c in table.column_names if str(table.schema.field(c).type).startswith(("int", "float"))]
    X = np.column_stack([np.ones(n), *(table[c].to_numpy().astype(float) for c in names)])
    y = np.where(np.array(table["income"].to_pylist()) == ">50K", 1.0, -1.0)
    return Rows(f"census, {n:,} rows, {len(names)} numbers", X, y)


def cancer() -> Rows:
    """Breast cancer, 30 numbers in their own units."""
    X, y = load_breast_cancer(return_X_y=True)
    return Rows(f"breast cancer, {len(y)} rows, 30 numbers", np.c_[np.ones(len(y)), X], 2.0 * y - 1.0)


def independent(n: int, d: int = 10) -> Rows:
    """Independent rows whose labels follow a logistic model."""
    rng = np.random.default_rng(0)
    X = np.c_[np.ones(n), rng.normal(size=(n, d))]
    u = np.r_[0.0, rng.normal(size=d) / np.sqrt(d)]
    return Rows(
        f"independent, {n:,} rows, {d} numbers", X, np.where(rng.random(n) < 1 / (1 + np.exp(-X @ u)), 1.0, -1.0)
    )


def fitted(data: Rows) -> np.ndarray:
    """The comparator: logistic regression on the same rows, hardly regularised."""
    scale = data.X.std(0) + (data.X.std(0) == 0)
    model = LogisticRegression(C=1e3, fit_intercept=False, max_iter=5000).fit(data.X / scale, data.y)
    return model.coef_[0] / scale


def learned(state: Any, objective: Any, X: np.ndarray, y: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
    """The objective after one pass, predictions and losses."""
    block, predictions = rows.dense(X[:, 1:], intercept=True), np.empty((len(y), 1))
    passes.learn(state, objective, block, y, np.ones(len(y)), predictions)
    return objective, predictions, measured(objective, y, predictions)


def of_linear(data: Rows) -> None:
    """Theorems of linear learners and the certificate, for the logistic loss."""
    X, y, u, d = data.X, data.y, fitted(data), data.X.shape[1]
    best, objective = float(np.logaddexp(0.0, -y * (X @ u)).sum()), Objective("classification", LOSS)
    states = {
        "ScInOL1": ScInOL1(d),
        "ScInOL2": ScInOL2(d),
        "PiSTOL, theory": PiSTOL(d, a=pistol_parameter()),
        "coordinate PiSTOL, theory": CoordinatePiSTOL(d, a=pistol_parameter()),
    }
    for name, state in states.items():
        _, predictions, losses = learned(state, objective, X, y)
        regret = float(losses.sum()) - best
        slopes = -y / (1.0 + np.exp(y * predictions[:, 0]))
        scales = np.sqrt(((slopes[:, None] * X) ** 2).sum(0) + np.abs(X).max(0) ** 2)
        if name == "ScInOL1":
            row(data, f"{name}, Theorem 3.1", regret, scinol1_bound(u, scales, len(y)))
        if name == "ScInOL2":
            first = np.abs(X[np.argmax(X != 0, axis=0), np.arange(d)])
            row(data, f"{name}, Theorem 3.2", regret, scinol2_bound(u, scales, first))
        row(data, f"{name}, `paper_bound`", regret, paper_bound(state, objective, u))
        evidence = Evidence(d)
        record_evidence(
            evidence, objective, rows.dense(X[:, 1:], intercept=True), y, np.ones(len(y)), predictions, losses
        )
        row(data, f"{name}, certificate", regret, certify(evidence, objective).regret(u))
        if name == "ScInOL2":
            risk = Progressive(ceiling=1.0)
            wrong = (predictions[:, 0] > 0) != (y > 0)
            risk.add(np.ones(len(y)), wrong)
            row(data, "error of the pass, 95 % bound on the risk", wrong.mean(), float(risk.bound(0.05) or np.nan))


def of_oracle(data: Rows) -> None:
    """Gradient descent with the rates that are best in hindsight, and the Perceptron."""
    X, y, u = data.X, data.y, fitted(data)
    result = play(FixedRates(0.0), X, y)
    for _ in range(5):  # rates depend on the slopes of the run with them
        result = play(oracle(result, u), X, y)
    row(data, "coordinate OGD, oracle rates, (4)", result.regret(u), float(result.bound(u).value or np.nan))
    result = play(Perceptron(), X, y)
    row(data, "Perceptron, (5), mistakes", result.mistakes, float(result.bound(u).value or np.nan))


def of_square_loss(data: Rows) -> None:
    """Averaged SGD at the best rate, the mean progressive loss against the best linear function."""
    X = data.X / np.linalg.norm(data.X, axis=1).max()
    u = np.linalg.lstsq(X.T @ X + 1e-3 * np.eye(X.shape[1]), X.T @ data.y, rcond=None)[0]
    eta = min(0.5 * float(np.linalg.norm(u)) / np.sqrt(len(X)), 0.25)
    w, losses = np.zeros(X.shape[1]), np.empty(len(X))
    for t, (x, label) in enumerate(zip(X, data.y, strict=True)):
        losses[t] = (label - w @ x) ** 2
        w += 2.0 * eta * (label - w @ x) * x
    excess = float(losses.mean() - np.mean((data.y - X @ u) ** 2))
    bound = averaged_sgd_excess(float(np.linalg.norm(u)), len(X), eta)
    row(data, "averaged SGD, (3) at its best rate, a row", excess, bound)


def of_functions(data: Rows, n: int = 3000) -> None:
    """Kernel PiSTOL with the preset theory, against the SVM of a norm."""
    X, y = (data.X[:n, 1:] - data.X[:n, 1:].mean(0)) / data.X[:n, 1:].std(0), data.y[:n]
    model = KernelPiSTOLClassifier(preset="theory", gamma=0.5 / X.shape[1], view="raw", passes=1, shuffle=False).fit(
        X, y
    )
    (certificate,) = model.certificates_
    machine = SVC(C=1.0, kernel="rbf", gamma=certificate.gamma).fit(X, y)
    machine_margins = machine.decision_function(X) - machine.intercept_[0]
    support, dual = machine.support_vectors_, machine.dual_coef_[0]
    norm = float(np.sqrt(dual @ (machine.decision_function(support) - machine.intercept_[0])))
    other = sum(SmoothedHinge().value(*pair) for pair in zip(y, machine_margins, strict=True))
    regret = certificate.loss - other
    row(data, "kernel PiSTOL, theory, Theorem 1", regret, certificate.theorem(norm))
    least = certificate.weight * certificate.lower_bound(norm)
    row(data, "kernel PiSTOL, theory, certificate", regret, certificate.loss - least)


def of_smooth_losses(data: Rows) -> None:
    """Corollary 1 of Orabona 2014, on rows divided by their norms: PiSTOL with the smoothed hinge."""
    X = data.X / np.linalg.norm(data.X, axis=1, keepdims=True)
    loss = SmoothedHinge()

    def total(u: np.ndarray) -> tuple[float, np.ndarray]:
        margins = data.y * (X @ u)
        each = np.where(margins >= 0.0, np.maximum(1.0 - margins, 0.0) ** 2, 1.0 - 2.0 * margins)
        slopes = -2.0 * np.clip(1.0 - margins, 0.0, 1.0)
        return float(each.sum() + RIDGE * u @ u), X.T @ (data.y * slopes) + 2.0 * RIDGE * u

    fit = minimize(total, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B")
    u = fit.x
    state = PiSTOL(X.shape[1] + 1, a=pistol_parameter())
    predictions = np.empty((len(X), 1))
    objective = Objective("classification", loss)
    passes.learn(state, objective, rows.dense(X, intercept=False), data.y, np.ones(len(X)), predictions)
    other = float(fit.fun - RIDGE * u @ u)
    constants = constants_of(loss, pistol_parameter(), loss.lipschitz)
    bound = smooth_regret_bound(float(np.linalg.norm(u)), other, len(X), constants)
    regret = float(measured(objective, data.y, predictions).sum()) - other
    row(data, "PiSTOL, theory, rows of norm 1, Corollary 1", regret, bound)


def of_mixing(data: Rows) -> None:
    """The mixture of the pool against its base, both predicting each row before it is learned."""
    model = Model("classification", n_features=data.X.shape[1])
    model.learn(rows.dense(data.X[:, 1:]), Labels.of(data.y.astype(int).astype(str)), np.ones(len(data.y)))
    mixture = model.pool.contexts[0].mixture
    base, mixed = mixture.account.losses
    row(data, "pool, cost of mixing", float(mixed - base), mixing_excess(mixture.account, int(mixture.top.rounds[0])))


def of_iterations(data: Rows) -> None:
    """The subgradient method after 200 iterations against 3,000, on standardised columns."""
    X = StandardScaler().fit_transform(data.X)
    X[:, 0] = 1.0
    short, long = (SubgradientMethod().run(X, data.y, iterations, loss="logistic") for iterations in (200, 3000))
    error = short.error(short.last) - long.error(long.last)
    row(data, "early stopping, optimisation error, Lemma 20", error, short.bound(long.last).value)


def row(data: Rows, bound_of: str, value_of: float, bound: float) -> None:
    """A cell of the table: a value, the bound on it, and their ratio."""
    ratio = f" ({bound / value_of:.3g})" if value_of > 0 else ""
    TABLE.setdefault(bound_of, {})[data.title] = f"{value_of:.4g} / {bound:.4g}{ratio}"


BEYOND = (of_smooth_losses, of_mixing, of_iterations)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    quick = parser_of(__doc__).parse_args(arguments).quick
    warnings.simplefilter("ignore")
    sets = (independent(300),) if quick else (independent(10_000), census(20_000), cancer())
    for data in sets:
        for measure in (of_linear, of_oracle, of_square_loss, of_functions, *BEYOND):
            measure(data)
    print("| bound | " + " | ".join(data.title for data in sets) + " |\n|" + "---|" * (len(sets) + 1))
    for bound_of, cells in TABLE.items():
        print(f"| {bound_of} | " + " | ".join(cells[data.title] for data in sets) + " |")


if __name__ == "__main__":
    main()
