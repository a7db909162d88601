"""Estimators of Dask collections: `fit` learns their partitions on a cluster, and `predict` returns a collection."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from tunefree.distributed.shards import FEWEST_ROWS
from tunefree.distributed.training import TARGET, train


class _DaskEstimator(BaseEstimator):
    """What both estimators share: a client, and rows of a shard."""

    _task: str

    def fit(self, X: Any, y: Any) -> Any:
        """Learn a model.

        Parameters
        ----------
        X : Dask DataFrame or Dask array of shape (n_samples, n_features)
            Blocks of an array may be sparse matrices of SciPy.
        y : Dask Series or Dask array of shape (n_samples,)
            Partitioned as X is.

        Returns
        -------
        self

        Raises
        ------
        DataError, ModelError
            As :func:`tunefree.distributed.train`.
        """
        from distributed import get_client

        options = {"task": self._task, **self.get_params()}
        client = options.pop("client") or get_client()
        if hasattr(X, "columns"):
            self.local_ = train(client, X.assign(**{TARGET: y}), TARGET, **options)
        else:
            self.local_ = train(client, X, y=y, **options)
        return self

    def _lazily(self, method: str, X: Any, dtype: Any, width: int | None = None) -> Any:
        """The collection of what a method of the local estimator returns for each block or partition."""
        check_is_fitted(self)
        if hasattr(X, "columns"):
            if width is None:
                return X.map_partitions(_called_on_frame, self.local_, method, meta=(None, dtype))
            columns = list(self.local_.classes_)
            meta = dict.fromkeys(columns, "f8")
            return X.map_partitions(_called_on_frame, self.local_, method, columns, meta=meta)
        if X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        if width is None:
            return X.map_blocks(_called, self.local_, method, drop_axis=1, dtype=dtype)
        chunks = (X.chunks[0], (width,))
        return X.map_blocks(_called, self.local_, method, chunks=chunks, dtype=dtype)

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
        raise NotImplementedError

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

    @property
    def classes_(self) -> np.ndarray:
        """The labels."""
        check_is_fitted(self)
        labels: np.ndarray = self.local_.classes_
        return labels

    def predict(self, X: Any) -> Any:
        return self._lazily("predict", X, self.classes_.dtype)

    def predict_proba(self, X: Any) -> Any:
        """Predict the probability of each class.

        Parameters
        ----------
        X : Dask DataFrame or Dask array of shape (n_samples, n_features)

        Returns
        -------
        Dask DataFrame or Dask array of shape (n_samples, n_classes)
        """
        return self._lazily("predict_proba", X, np.float64, len(self.classes_))


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

    def predict(self, X: Any) -> Any:
        return self._lazily("predict", X, np.float64)


def _called(block: Any, local: Any, method: str) -> np.ndarray:
    """What a method returns for a block of rows."""
    predicted: np.ndarray = getattr(local, method)(block)
    return predicted


def _called_on_frame(frame: Any, local: Any, method: str, columns: Any = None) -> Any:
    """What a method returns for a partition, with its index."""
    import pandas

    if columns is None:
        return pandas.Series(getattr(local, method)(frame) if len(frame) else [], index=frame.index)
    predicted = getattr(local, method)(frame) if len(frame) else np.zeros((0, len(columns)))
    return pandas.DataFrame(predicted, index=frame.index, columns=columns)
