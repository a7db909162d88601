"""Weights and importances of fitted estimators, in the units of the columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tunefree.core.errors import ModelError
from tunefree.estimators import tables
from tunefree.estimators.explanation import decomposition_of, layout_of
from tunefree.explanation.decomposition import unit_and_offset
from tunefree.explanation.effective import LARGEST, EffectiveWeights, effective_weights, per_unit


class Weighted:
    """Online estimators, which have a model ``_learned.model``, with weights of features.

    A single learner on raw rows is a linear function, and these are its weights. Of the pool, and of other views, they
    are the weights of the linear function that is nearest to the model (:mod:`tunefree.explanation.effective`):
    share-weighted over the members, with a line for each curve, and without what pairs of columns tell.
    """

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

    def feature_weights(self) -> EffectiveWeights:
        """Weights of all features in the units of the data, also of those that a table's codes and words become.

        Returns
        -------
        EffectiveWeights
            ``names`` of the features, the constant first; ``weights`` of shape (n_names, n_outputs), with one output
            for two classes (the margin of the second) and else one a class, in the order of ``classes_``; and their
            ``fidelity``: ``fidelity.explained`` is the part of the variance of the model's own margins that this linear
            function explains over a sample of the rows that were learned. It is None where the model keeps no sample;
            the function is then exact but for the clipping of views, and for averages of probabilities.

        Raises
        ------
        ModelError
            If no member has weights, as kernels have none.

        Examples
        --------
        >>> from tunefree import OnlineRegressor
        >>> X, y = {"x": [float(i) for i in range(200)]}, [2.0 * i + 100.0 for i in range(200)]
        >>> found = OnlineRegressor("newton", view="steady").fit(X, y).feature_weights()
        >>> found.names, found.weights[1].round(1)
        (['(constant)', 'x'], array([2.]))
        """
        check_is_fitted(self)
        model = self._learned.model
        single = len(model.members) == 1 and model.options.view == "raw" and model.has_weights
        found = self._exact() if single else effective_weights(model, layout_of(self))
        ordered: Any = getattr(self, "_sorted", lambda columns: columns)
        return found._replace(weights=ordered(found.weights))

    def _exact(self) -> EffectiveWeights:
        """The weights of one linear learner on rows as they are."""
        model = self._learned.model
        ((weights, units),) = model.ensemble.linear.weights()
        with np.errstate(over="ignore"):
            relative = np.clip(per_unit(weights, units), -LARGEST, LARGEST)
            relative = model.ensemble.linear.by_feature(relative, model.n_features)
            unit, _ = unit_and_offset(model.objective)
            relative[0] += getattr(model.objective, "centre", 0.0)
            relative = np.clip(relative * unit, -LARGEST, LARGEST)
        return EffectiveWeights(["(constant)", *tables.feature_names(self)], relative, None)

    def _of_columns(self) -> np.ndarray:
        """Weights (d, K), the constant first, where each column is one feature."""
        check_is_fitted(self)
        try:
            found = self.feature_weights()
        except ModelError as error:
            raise AttributeError(str(error)) from None
        if len(found.names) != self.n_features_in_ + 1:
            raise AttributeError(
                "columns of the table are several features each; see feature_weights(), or feature_importances_"
            )
        return found.weights

    @property
    def feature_importances_(self) -> np.ndarray:
        """How much predictions vary with each column, (n_features_in_,); they add up to 1.

        The variance of the column's contributions to the margin over a sample of the rows that were learned, and half
        of that of each pair of it with another column; the square root, divided by the sum. A model that keeps no
        sample, as one on sparse rows or of a single learner, has the largest |weight| of the column's features instead,
        in units of the size of the feature. Neither depends on the units of the columns.
        """
        check_is_fitted(self)
        model = self._learned.model
        try:
            found = decomposition_of(self)
        except ModelError as error:
            raise AttributeError(str(error)) from None
        layout = found.terms.layout
        columns = {name: place for place, name in enumerate(dict.fromkeys(part.column for part in layout.parts))}
        total = np.zeros(len(columns))
        if found.sample is None:
            sizes = np.abs(model.mean_weights()[1:]).max(axis=1)[: len(layout.of_feature) - 1]
            np.maximum.at(total, [columns[layout.parts[k].column] for k in layout.of_feature[1:]], sizes)
        else:
            variances = np.square(found.by_column(found.contributions(found.sample))[:, 1:]).mean(axis=(0, 2))
            total += variances[: len(columns)]
            for pair, variance in enumerate(variances[len(columns) :].tolist()):
                for term in found.terms.of_pair(pair):
                    total[columns[layout.parts[term - 1].column]] += variance / 2.0
            total = np.sqrt(total)
        return total / total.sum() if total.sum() > 0.0 else total
