"""Inspection of estimators that learn row by row: contributions of columns, weights, losses and reports."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from tunefree.core.errors import ModelError
from tunefree.core.registry import Registry
from tunefree.core.rows import n_rows, rows_at
from tunefree.estimators import tables, validation
from tunefree.estimators.model_file import Saving
from tunefree.estimators.parameters import documented
from tunefree.explanation.decomposition import Decomposition
from tunefree.explanation.importance import importance
from tunefree.explanation.members import evenly_spaced
from tunefree.stream.columns import family
from tunefree.stream.frames import read_frame
from tunefree.stream.layout import Layout
from tunefree.training.rises import drifts_of

# Reports stand above the estimators, and are imported when they are asked for.
REPORTS = Registry("kind of report", {"page": "tunefree.report.page:page_of"})
MOST_NUMBERS = 2**28  # that are returned


class Inspected(Saving):
    """Estimators whose models can be inspected; to be inherited before scikit-learn's classes."""

    @documented
    def explain(self, X: Any, as_shap: bool = False) -> Any:
        """Contributions of the columns to the predictions of rows, which add up to these.

        A classifier's predictions are explained as log-odds, a regressor's as numbers, and
        those of losses of counts as logarithms. A contribution is relative to
        the mean over the rows that the estimator keeps for growing trees (a sample of those it learned), and includes
        all codes, one-hot features and words of a column. Where no rows are kept, as with sparse texts and single
        learners, contributions are relative to a row of which nothing is known.

        Parameters
        ----------
        as_shap : bool, default=False
            Whether to return an object for the plots of shap, with the constant as base values. The contributions are
            the same: they add up as Shapley values do, and are computed otherwise.

        Returns
        -------
        pyarrow.Table, or shap.Explanation of shape (n_samples, n_features) or (n_samples, n_features, n_classes)
            ``(constant)`` and the columns, with a row for each row of X; with two classes contributions are to the
            log-odds of the second. With more than two there is a first column ``(class)``, and X has a row for each
            class, in the order of ``classes_``: contributions are to its log-probability minus the mean over all.

        Raises
        ------
        ModelError
            If the estimator has kernels alone.
        ValueError
            If the contributions take more than 2 GiB.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from tunefree import TuneFreeRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> model = TuneFreeRegressor().fit(X, y)
        >>> contributions = model.explain(X[:5])
        >>> contributions.column_names[:4], contributions.num_rows
        (['(constant)', 'age', 'sex', 'bmi'], 5)
        >>> bool(np.allclose(contributions.to_pandas().sum(axis=1), model.predict(X[:5]), rtol=1e-9))
        True
        """
        check_is_fitted(self)
        with self._alone():
            decomposition, rows = decomposition_of(self), X
            X = validation.features(self, X)
            names, n_outputs = decomposition.names, decomposition.model.n_outputs
            if n_rows(X) * len(names) * n_outputs > MOST_NUMBERS:
                raise ValueError(f"contributions of {n_rows(X)} rows take more than 2 GiB; explain fewer at a time")
            contributions = decomposition.contributions(self._formed(X))  # type: ignore[attr-defined]
            if hasattr(self, "_sorted"):
                contributions = self._sorted(contributions.reshape(-1, n_outputs)).reshape(contributions.shape)
        if as_shap:
            return _as_shap(contributions, names[1:], rows, getattr(self, "classes_", None))
        by_term = [pa.array(contributions[:, place].reshape(-1)) for place in range(len(names))]
        if n_outputs == 1:
            return pa.table(by_term, names)
        labels = np.tile(self.classes_, len(contributions))
        return pa.table([pa.array(labels.tolist()), *by_term], ["(class)", *names])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the features, which ``coef_`` has the weights of; ``input_features`` is not used."""
        check_is_fitted(self)
        return np.array(tables.feature_names(self), object)

    @property
    def feature_importances_(self) -> np.ndarray:
        """The importance of each column, (n_features_in_,); importances add up to 1.

        The increase of the mean loss where the column is permuted, or 0 if it is negative, divided by the sum: on
        rows that the trees used do not know. Trees predict the rows that they were grown on better by columns without
        use, too; these rows they do not. It does not depend on the units of the columns. A single linear learner keeps
        no rows, and has none.
        """
        check_is_fitted(self)
        try:
            ranked = importance(decomposition_of(self))
        except ModelError as error:
            raise AttributeError(str(error)) from None
        total = np.zeros(self.n_features_in_)
        in_table = ranked.terms <= len(total)
        total[ranked.terms[in_table] - 1] = np.maximum(ranked.sizes[in_table], 0.0)
        return total / total.sum() if total.sum() > 0.0 else total

    def report(self, test: Any = None, train: Any = None, *, cost: Any = None, class_: Any = None) -> Any:
        """The report of the model as a page of HTML, as `tunefree report` writes it.

        Parameters
        ----------
        test : path, sequence of paths, table or Source, optional
            Data with known targets, on which it is judged.
        train : as ``test``, optional
            Rows that the model has learned: peers learn these, too. Without them it stands beside a constant.
        cost : str or dict, optional
            Costs of mistakes, such as ``"fp=1,fn=5"`` or ``{"fp": 1, "fn": 5}``, by which decisions are judged.
        class_ : optional
            The class that decisions are for; of two classes by default the second.

        Returns
        -------
        tunefree.report.page.Page
            It has ``html``, is written by ``save(path)``, and is shown in notebooks.

        Examples
        --------
        >>> from tunefree import ScInOLClassifier
        >>> page = ScInOLClassifier().fit({"age": [20.0, 60.0] * 100}, ["no", "yes"] * 100).report()
        >>> "scinol2" in page.html
        True
        """
        return REPORTS["page"](self.trained_, test, train, cost, class_)

    @property
    def drifts_(self) -> list[dict[str, Any]]:
        """Rises of the loss along the stream, and the columns that changed most there.

        These are the largest rise and the latest, 64 in all.

        A sequential test of level 0.001 for the whole stream, and anew after each rise, for independent rows. It is
        known of models of :func:`tunefree.train`, and of these as long as they go on by rows of files.

        Returns
        -------
        list of dict
            Each has ``row``, ``file``, ``row_in_file``, ``time`` (by the first column of dates, or None), ``loss`` on
            ``rows`` rows from there, ``loss_before`` on ``rows_before`` rows before, ``rows_compared``,
            ``columns_compared`` and ``changed``: columns whose values, or whose relation to the target, differ most.

        Raises
        ------
        AttributeError
            If the losses were not followed in the order of the rows.

        Examples
        --------
        >>> import tunefree
        >>> model = tunefree.train({"age": [20.0, 60.0] * 100, "rich": ["no", "yes"] * 100}, target="rich")
        >>> model.drifts_
        []
        """
        check_is_fitted(self)
        trained = self._learned
        if trained.rises is None:
            raise AttributeError(
                "there is no drifts_: only `tunefree.train` follows losses in the order of the rows, as in"
                " `tunefree.train(table, target=..., shuffle=False)`; fit() may learn them in an order of its own"
            )
        return drifts_of(trained)

    def history(self) -> Any:
        """Progressive losses of the first pass along the stream, as a table whose ``to_pandas()`` is a data frame.

        Returns
        -------
        pyarrow.Table
            ``rows``, and over the rows so far the means ``loss`` and ``error`` (absolute error in regression). Of each
            ``eval_set`` of ``fit`` ``valid_0_loss`` and ``valid_0_error``: means over the set of the model at that
            point, and in the last row of the finished one.

        Examples
        --------
        >>> from tunefree import ScInOLRegressor
        >>> ScInOLRegressor(passes=1).fit([[0.0], [1.0]] * 50, [0.0, 1.0] * 50).history()["rows"].to_pylist()
        [64, 70, 76, 83, 91, 99, 100]
        """
        check_is_fitted(self)
        return self._learned.progress.history()


def _as_shap(contributions: np.ndarray, names: list[str], X: Any, classes: Any) -> Any:
    """Contributions (n, 1 + d, K) to predictions of rows as shap has them, with the values of these columns."""
    try:
        from shap import Explanation
    except ImportError:
        raise ImportError("as_shap needs shap, which is not installed; pip install shap") from None
    data: Any = None  # of lines of text
    if tables.has_columns(X):
        table = pa.concat_tables([pa.table(chunk.data) for chunk in read_frame(X)])
        columns = [table[name] if name in table.column_names else pa.nulls(len(table), pa.float64()) for name in names]
        are_numbers = all(family(column.type) == "number" for column in columns)
        values = [column.to_numpy() if family(column.type) == "number" else column.to_pylist() for column in columns]
        data = np.array(values, np.float64 if are_numbers else object).T
    elif sparse.issparse(X):
        data = X.toarray()
    elif np.ndim(X) == 2:
        data = np.asarray(X)
    if contributions.shape[2] == 1:
        return Explanation(contributions[:, 1:, 0], contributions[:, 0, 0], data, feature_names=names)
    outputs = list(map(str, classes))
    return Explanation(contributions[:, 1:], contributions[:, 0], data, feature_names=names, output_names=outputs)


def decomposition_of(estimator: Any, X: Any = None) -> Decomposition:
    """The terms of a fitted estimator, relative to means over X, by default over the rows that the estimator keeps."""
    if not isinstance(estimator, Inspected):
        raise ModelError(f"{type(estimator).__name__} is not explained; use an estimator that learns online")
    check_is_fitted(estimator)
    model: Any = estimator._learned.model
    rows = None
    if X is not None:
        X = validation.features(estimator, X)
        rows = estimator._formed(rows_at(X, evenly_spaced(n_rows(X))))  # type: ignore[attr-defined]
    encoder = estimator._encoder
    layout = Layout.of_array(tables.feature_names(estimator)) if encoder is None else Layout.of_encoder(encoder)
    return Decomposition(model, layout, rows)
