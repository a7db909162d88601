"""Weights and importances of fitted estimators, in the units of the columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tunefree.core.errors import ModelError
from tunefree.estimators import tables
from tunefree.estimators.explanation import decomposition_of
from tunefree.explanation.importance import importance
from tunefree.explanation.weights import Weights, linear_weights


class Weighted:
    """Online estimators, which have a model ``_learned.model``: importances, and weights of single linear learners."""

    _learned: Any
    n_features_in_: int

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the features that have weights: of an array its columns, of a table what the encoder makes of them.

        Parameters
        ----------
        input_features : array-like of str, optional
            Not used.

        Returns
        -------
        ndarray of str objects
        """
        check_is_fitted(self)
        return np.array(tables.feature_names(self), object)

    def feature_weights(self) -> Weights:
        """Weights of all features of a single linear learner on raw rows, in the units of the data.

        They include those of what a table's codes and words become.

        Returns
        -------
        Weights
            ``names`` of the features, the constant first; ``weights`` of shape (n_names, n_outputs), with one output
            for two classes (the margin of the second) and else one a class, in the order of ``classes_``.

        Raises
        ------
        ModelError
            If the estimator is a pool, has another view, or kernels.

        Examples
        --------
        >>> from tunefree import OnlineRegressor
        >>> X, y = {"x": [float(i) for i in range(200)]}, [2.0 * i + 100.0 for i in range(200)]
        >>> names, weights = OnlineRegressor("newton").fit(X, y).feature_weights()
        >>> names, weights.shape
        (['(constant)', 'x'], (2, 1))
        """
        check_is_fitted(self)
        names, weights = linear_weights(self._learned.model, tables.feature_names(self))
        ordered: Any = getattr(self, "_sorted", lambda columns: columns)
        return Weights(names, ordered(weights))

    def _of_columns(self) -> np.ndarray:
        """Weights (d, K), the constant first, where each column is one feature."""
        check_is_fitted(self)
        try:
            weights = self.feature_weights().weights
        except ModelError as error:
            raise AttributeError(str(error)) from None
        if len(weights) != self.n_features_in_ + 1:
            raise AttributeError(
                "columns of the table are several features each; see feature_weights(), or feature_importances_"
            )
        return weights

    @property
    def feature_importances_(self) -> np.ndarray:
        """How much each column contributes to predictions, (n_features_in_,); they add up to 1.

        The mean absolute contribution of the column (see :meth:`explain`) over the rows that the estimator keeps,
        divided by the sum. A single linear learner keeps none: it has the largest |weight| of the column's features, in
        units of the size of the feature. Neither depends on the units of the columns.
        """
        check_is_fitted(self)
        model = self._learned.model
        try:
            decomposition = decomposition_of(self)
            columns = decomposition.names[1 : 1 + self.n_features_in_]
            total = np.zeros(1 + len(columns))
            if decomposition.reference.rows is None and model.has_weights:
                sizes = np.abs(model.mean_weights()).max(axis=1)
                term_of = decomposition.term_of_feature
                np.maximum.at(total, term_of, sizes[: len(term_of)])
            else:
                columns_by_size = importance(decomposition)
                in_table = columns_by_size.terms <= len(columns)
                total[columns_by_size.terms[in_table]] = columns_by_size.sizes[in_table]
        except ModelError as error:
            raise AttributeError(
                f"{error}, to explain or CurveDisplay: importances are of rows that are kept"
            ) from None
        total = total[1:]
        return total / total.sum() if total.sum() > 0.0 else total
