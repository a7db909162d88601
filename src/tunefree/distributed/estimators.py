"""Estimators of Dask collections: `fit` learns their partitions on a cluster, and `predict` returns a collection."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from tunefree.distributed.shards import FEWEST_ROWS
from tunefree.distributed.training import TARGET, train


class _DaskEstimator(BaseEstimator):
    """The base class of both estimators: a client, and rows of a shard."""

    _task: str

    def fit(self, X: Any, y: Any) -> Any:
        """Learn a model; errors are those of :func:`tunefree.distributed.train`.

        Parameters
        ----------
        X : Dask DataFrame or Dask array of shape (n_samples, n_features)
            Blocks of an array may be sparse matrices of SciPy.
        y : Dask Series or Dask array of shape (n_samples,)
            Partitioned as X is.

        Returns
        -------
        self
        """
        from distributed import get_client

        options = {"task": self._task, **self.get_params()}
        client = options.pop("client") or get_client()
        if hasattr(X, "columns"):
            self.local_ = train(client, X.assign(**{TARGET: y}), TARGET, **options)
        else:
            self.local_ = train(client, X, y=y, **options)
        if self._task == "classification":
            self.classes_ = np.asarray(self.local_.classes_)
        return self

    def predict(self, X: Any) -> Any:
        """Predict the target of each row.

        Parameters
        ----------
        X : Dask DataFrame or Dask array of shape (n_samples, n_features)

        Returns
        -------
        Dask Series or Dask array of shape (n_samples,)
            Nothing is computed before it is asked for.
        """
        check_is_fitted(self)
        return self._lazily("predict", X, getattr(self.local_, "classes_", np.zeros(0)).dtype)

    def _lazily(self, method: str, X: Any, dtype: Any, columns: list[Any] | None = None) -> Any:
        """The collection of what a method of the local estimator returns for each block or partition."""
        if hasattr(X, "columns"):
            meta = (None, dtype) if columns is None else dict.fromkeys(columns, dtype)
            return X.map_partitions(_called_on_frame, self.local_, method, columns, meta=meta)
        if X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        shape = {"drop_axis": 1} if columns is None else {"chunks": (X.chunks[0], (len(columns),))}
        return X.map_blocks(lambda block, local: getattr(local, method)(block), self.local_, dtype=dtype, **shape)

    def save(self, path: Any) -> None:
        """Write the model to a file, as `tunefree train` does."""
        check_is_fitted(self)
        self.local_.save(path)


class DaskTuneFreeClassifier(ClassifierMixin, _DaskEstimator):
    """A classifier of Dask collections, with nothing to tune.

    Parameters
    ----------
    client : distributed.Client, optional
        By default the one that is current.
    shard_rows : int, default 16384
        Rows that a shard has at least; smaller neighbouring partitions are joined.
    class_weight : dict, "balanced" or None, default None
        What rows of a class weigh more or less.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    local_ : TuneFreeClassifier
        The model, which predicts rows in memory.
    """

    _task = "classification"

    def __init__(self, client: Any = None, shard_rows: int = FEWEST_ROWS, class_weight: Any = None) -> None:
        self.client, self.shard_rows, self.class_weight = client, shard_rows, class_weight

    def predict_proba(self, X: Any) -> Any:
        """Predict the probability of each class.

        Parameters
        ----------
        X : Dask DataFrame or Dask array of shape (n_samples, n_features)

        Returns
        -------
        Dask DataFrame or Dask array of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        return self._lazily("predict_proba", X, np.float64, list(self.classes_))


class DaskTuneFreeRegressor(RegressorMixin, _DaskEstimator):
    """A regressor of Dask collections, with nothing to tune.

    Parameters
    ----------
    client : distributed.Client, optional
        By default the one that is current.
    shard_rows : int, default 16384
        Rows that a shard has at least; smaller neighbouring partitions are joined.
    loss : str, default "square"
        As in :class:`tunefree.TuneFreeRegressor`.

    Attributes
    ----------
    local_ : TuneFreeRegressor
        The model, which predicts rows in memory.
    """

    _task = "regression"

    def __init__(self, client: Any = None, shard_rows: int = FEWEST_ROWS, loss: str = "square") -> None:
        self.client, self.shard_rows, self.loss = client, shard_rows, loss


def _called_on_frame(frame: Any, local: Any, method: str, columns: Any = None) -> Any:
    """The result of a method for a partition, with its index."""
    import pandas

    if columns is None:
        return pandas.Series(getattr(local, method)(frame) if len(frame) else [], index=frame.index)
    predicted = getattr(local, method)(frame) if len(frame) else np.zeros((0, len(columns)))
    return pandas.DataFrame(predicted, index=frame.index, columns=columns)
