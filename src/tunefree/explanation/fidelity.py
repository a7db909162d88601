"""How faithful the terms of a model are: how much of the variance of its own margins they explain."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.numbers import within
from tunefree.explanation.decomposition import Decomposition
from tunefree.losses.objectives import chosen


@dataclass
class Fidelity:
    """Sums over rows of what the model and its terms say.

    Examples
    --------
    >>> fidelity = Fidelity()
    >>> fidelity.add(np.array([[1.0], [-3.0]]), np.array([[2.0], [-6.0]]))
    >>> fidelity.explained, fidelity.agreement
    (0.0, 1.0)
    >>> fidelity.scale, fidelity.explained_if_scaled
    (0.5, 1.0)
    """

    rows: int = 0
    agreeing: int = 0  # rows of which both choose the same class
    sums: float | np.ndarray = 0.0  # (K,) of margins
    fitted_sums: float | np.ndarray = 0.0  # (K,) of those of the terms
    squares: float = 0.0  # of margins
    fitted_squares: float = 0.0
    products: float = 0.0
    difference_sums: float | np.ndarray = 0.0  # (K,) of margins minus those of the terms
    difference_squares: float = 0.0

    def add(self, margins: np.ndarray, fitted: np.ndarray) -> None:
        """Count rows, of which the model has ``margins`` (n, K), and the terms ``fitted`` (n, K)."""
        margins, fitted = within(margins), within(fitted)
        self.rows += len(margins)
        self.agreeing += int((chosen(margins) == chosen(fitted)).sum())
        self.sums, self.fitted_sums = self.sums + margins.sum(axis=0), self.fitted_sums + fitted.sum(axis=0)
        self.squares += float((margins**2).sum())
        self.fitted_squares += float((fitted**2).sum())
        self.products += float((margins * fitted).sum())
        self.difference_sums = self.difference_sums + (margins - fitted).sum(axis=0)
        self.difference_squares += float(((margins - fitted) ** 2).sum())

    def _covariance(self, products: float, sums: Any, other_sums: Any) -> float:
        """Sum of products of what deviates from the means; NaN if it is rounding."""
        found = products - float(np.sum(sums * other_sums)) / max(self.rows, 1)
        return found if abs(found) > 1e-12 * abs(products) else math.nan

    @property
    def explained(self) -> float:
        """The part R^2 of the variance of the margins that the terms explain; NaN if margins do not vary.

        It is 1 - Var(margin - f) / Var(margin), so a constant difference does not count.
        """
        unexplained = self.difference_squares - float(np.sum(np.square(self.difference_sums))) / max(self.rows, 1)
        return 1.0 - max(unexplained, 0.0) / self._covariance(self.squares, self.sums, self.sums)

    @property
    def scale(self) -> float:
        """The factor with which the margins of the terms are nearest to those of the model, up to constants."""
        common = self._covariance(self.products, self.sums, self.fitted_sums)
        return common / self._covariance(self.fitted_squares, self.fitted_sums, self.fitted_sums)

    @property
    def explained_if_scaled(self) -> float:
        """The part of the variance that the terms explain when they are multiplied by ``scale``."""
        common = self._covariance(self.products, self.sums, self.fitted_sums)
        return self.scale * common / self._covariance(self.squares, self.sums, self.sums)

    @property
    def agreement(self) -> float:
        """The share of the rows of which both choose the same class."""
        return self.agreeing / self.rows if self.rows else math.nan


class Ranking(NamedTuple):
    """The terms of a model by importance, the constant left out."""

    terms: np.ndarray  # (t,) their places among all terms
    names: list[str]
    importance: np.ndarray  # (t,) standard deviation of the contribution, over the rows and the classes
    explained: np.ndarray  # (t,) part of the variance of the model's margins that the terms explain up to this one
    fidelity: Fidelity  # of all terms


def ranking(decomposition: Decomposition, output: int | None = None) -> Ranking:
    """Rank the terms by how much they vary over the sample of a decomposition.

    Parameters
    ----------
    decomposition : Decomposition
    output : int, optional
        The margin to rank them for; by default all.

    Returns
    -------
    Ranking

    Raises
    ------
    ModelError
        If there is no sample.
    """
    rows = decomposition.reference
    outputs = slice(None) if output is None else slice(output, output + 1)
    found, margins = decomposition.contributions(rows)[:, :, outputs], decomposition.margins(rows)[:, outputs]
    importance = np.sqrt((found[:, 1:] ** 2).mean(axis=(0, 2)))
    order = 1 + np.argsort(-importance, kind="stable")
    order = order[importance[order - 1] > 0.0]
    names, fitted, explained = decomposition.terms.names, found[:, 0].copy(), []
    for term in order.tolist():
        fitted += found[:, term]
        explained.append(measured(margins, fitted).explained)
    whole = measured(margins, found.sum(axis=1))
    return Ranking(order, [names[term] for term in order], importance[order - 1], np.array(explained), whole)


def measured(margins: np.ndarray, fitted: np.ndarray) -> Fidelity:
    """How faithful margins (n, K) of terms are to those of a model."""
    fidelity = Fidelity()
    fidelity.add(margins, fitted)
    return fidelity
