"""Contributions of columns and of pairs of columns to the predictions of an online estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tunefree.core.errors import ModelError
from tunefree.estimators import tables, validation
from tunefree.explanation.decomposition import Decomposition, evenly_spaced
from tunefree.stream.layout import Layout

MOST_NUMBERS = 2**28  # that are returned


class Explaining:
    """Estimators that tell what columns contribute.

    They have a model, ``_learned.model``, and blocks of rows, as :class:`tunefree.estimators.base.OnlineEstimator`.
    """

    def explain(self, X: Any) -> tuple[list[str], np.ndarray]:
        """Contributions of the columns, and of pairs of columns, to the margins of rows.

        They add up to the share-weighted margin f(x) = sum_m share_m * margin_m(x) of the members that have weights of
        columns: the log-odds, or in regression the prediction, but for members with a kernel, and for what the mixture
        does beyond averaging margins. A contribution is relative to its mean over the rows that were learned (over a
        sample of them; contributions of a single learner are relative to a number of 0 in its view). What a pair tells
        of one of its columns is counted to the column.

        Parameters
        ----------
        X : {array-like, sparse matrix, table} of shape (n_samples, n_features)

        Returns
        -------
        names : list of str
            ``(constant)``, the columns, and pairs such as ``age & height``.
        contributions : ndarray of shape (n_samples, n_terms) or (n_samples, n_terms, n_classes)
            With two classes to the margin of the second. With more than two, the margin of a class is relative to the
            mean over all classes.

        Raises
        ------
        ModelError
            If no member has weights of columns, as kernels have none.
        ValueError
            If the contributions take more than 2 GiB.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from tunefree import TuneFreeRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> model = TuneFreeRegressor().fit(X, y)
        >>> names, contributions = model.explain(X[:5])
        >>> names[:4], contributions.shape[0]
        (['(constant)', 'age', 'sex', 'bmi'], 5)
        >>> bool(abs(contributions.sum(axis=1) - model.predict(X[:5])).max() < 5.0)
        True
        """
        found = decomposition_of(self)
        X = self._prepared(validation.features(self, X))  # type: ignore[attr-defined]
        names, n_outputs = found.column_names, found.model.n_outputs
        if X.shape[0] * len(found.terms.names) * n_outputs > MOST_NUMBERS:
            raise ValueError(f"contributions of {X.shape[0]} rows take more than 2 GiB; explain fewer at a time")
        blocks = self._blocks(X, validation.as_given(np.ones(X.shape[0])))  # type: ignore[attr-defined]
        parts = [found.by_column(found.contributions(block)) for _, block in blocks]
        contributions = np.concatenate([np.empty((0, len(names), n_outputs)), *parts])
        if hasattr(self, "_sorted"):
            contributions = self._sorted(contributions.reshape(-1, n_outputs)).reshape(contributions.shape)
        return names, contributions[:, :, 0] if n_outputs == 1 else contributions


def decomposition_of(estimator: Any, X: Any = None) -> Decomposition:
    """The terms of a fitted estimator.

    Parameters
    ----------
    estimator : online estimator
    X : array-like, optional
        Rows over which terms have mean 0; by default those that the estimator has sampled.

    Raises
    ------
    ModelError
        If the estimator has no terms.
    """
    if not isinstance(estimator, Explaining):
        raise ModelError(f"{type(estimator).__name__} has no members with shares; use an estimator that learns online")
    check_is_fitted(estimator)
    model: Any = estimator._learned.model  # type: ignore[attr-defined]
    rows = None
    if X is not None:
        X = validation.features(estimator, X)
        X = X[evenly_spaced(X.shape[0])]
        rows = validation.block(X, estimator._intercept(), model.ensemble.is_sparse)  # type: ignore[attr-defined]
    return Decomposition(model, layout_of(estimator), rows)


def layout_of(estimator: Any) -> Layout:
    """Which features belong to which columns of a fitted estimator."""
    encoder = tables.encoder_of(estimator)
    return Layout.of_array(tables.feature_names(estimator)) if encoder is None else Layout.of_encoder(encoder)
