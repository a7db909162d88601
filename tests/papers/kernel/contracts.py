"""Teaching banks of kernel learners, and what their functions are made of, for the tests of kernels."""

from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.spatial.distance import cdist

from tests.strategies import Stream, as_dense
from tunefree import losses
from tunefree.core.rows import n_rows
from tunefree.losses.objectives import Objective
from tunefree.papers.kernel import kernel_bank
from tunefree.papers.kernel.kernel_bank import KernelBank, KernelConfig
from tunefree.papers.kernel.points import points
from tunefree.pool.linear_group import Setting
from tunefree.pool.rows import LabelledRows

# Few, since each is compiled for each learner.
OBJECTIVES = {
    "binary": Objective("classification", losses.SmoothedHinge()),
    "against": Objective("classification", losses.SmoothedHinge()),
    "multinomial": Objective("classification"),
}


def drawn(seed: int, n: int, d: int = 4, kind: str = "binary", distinct: float = 1.0, weighted: bool = True) -> Stream:
    """Rows of classes that no hyperplane parts, some of weight 0; fewer distinct ones come again."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.8)
    X = X[rng.integers(0, max(1, int(distinct * n)), n)] if distinct < 1.0 else X
    score = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n)
    n_outputs = 1 if kind == "binary" else 3
    y = np.where(score > 0, 1.0, -1.0) if kind == "binary" else np.digitize(score, [-0.3, 0.3]).astype(float)
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], n) if weighted else np.ones(n)
    return Stream(X, y, weight, n_outputs, OBJECTIVES[kind])


def gram(X: np.ndarray, Z: np.ndarray, name: str, gamma: float, degree: int = 3, constant: float = 1.0) -> np.ndarray:
    """Kernel values (n, m) by their definitions."""
    if name == "rbf":
        return np.exp(-gamma * cdist(X, Z, "sqeuclidean"))
    if name == "laplacian":
        return np.exp(-gamma * cdist(X, Z, "cityblock"))
    return (gamma * X @ Z.T + constant) ** degree if name == "poly" else X @ Z.T


def frozen_after(n: int) -> Any:
    """A context in which banks settle on their first n rows."""
    return patch.object(kernel_bank, "WARMUP_ROWS", n)


def bank_of(
    data: Stream,
    learner: str = "kernel-pistol",
    kernel_config: KernelConfig = KernelConfig("rbf", 0.5),  # noqa: B008
    widths: tuple[float, ...] = (1.0,),
    average: bool = True,
    view: str = "raw",
    n_classes: int | None = None,
    **settings: float,
) -> KernelBank:
    """A bank that has seen nothing."""
    member_settings = [Setting(learner, {**settings, "width": width}, view) for width in widths]
    return KernelBank(member_settings, kernel_config, data.objective, data.n_outputs, n_classes, average)


def teach(bank: KernelBank, block: Any, data: Stream, again: bool = False) -> Any:
    """What each learner predicted (M, n, K) before it learned a row."""
    predictions = np.empty((len(bank.members), n_rows(block), bank.n_outputs))
    bank.learn(LabelledRows(block, data.y, data.weight), predictions, again)
    return predictions


def taught(data: Stream, block: Any = None, **options: Any) -> tuple[KernelBank, np.ndarray]:
    """A bank that settled on its first row, after one pass, and what it predicted; 0 of the first row."""
    bank = bank_of(data, **options)
    with frozen_after(1):
        predictions = teach(bank, as_dense(data.X) if block is None else block, data)
    return bank, np.nan_to_num(predictions)


def by_row(bank: KernelBank, block: Any) -> np.ndarray:
    """Coefficients (M, n, K) with which the bank predicts, at the first of the rows that are the same."""
    rows = points(block, bank._kernel(1.0))
    first: dict[bytes, int] = {}
    for i, key in enumerate(rows.keys()):
        first.setdefault(key, i)
    expansion, found = bank.expansion, np.zeros((len(bank.members), rows.size, bank.n_outputs))
    for terms, coefficients in zip((expansion.support, expansion.block), bank._coefficients(), strict=True):
        for place, key in enumerate(terms.points.keys()):
            found[:, first[key]] += coefficients[:, :, place]
    return found
