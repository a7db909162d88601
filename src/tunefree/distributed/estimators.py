"""Estimators of Dask collections: `fit` learns their partitions on a cluster, and `predict` returns a collection."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from tunefree.distributed.collections import TARGET
from tunefree.distributed.dask_training import train
from tunefree.distributed.shards import FEWEST_ROWS
from tunefree.workflows.trained_estimators import TrainedClassifier, TrainedRegressor


class _DaskEstimator(BaseEstimator):
    """What both estimators share.

    Parameters
    ----------
    client : distributed.Client, optional
        By default the one that is current.
    shard_rows : int, default 16384
        Rows that a shard has at least; smaller neighbouring partitions are joined.
    """

    _task: str
    _local: Any

    def __init__(self, client: Any = None, shard_rows: int = FEWEST_ROWS) -> None:
        self.client, self.shard_rows = client, shard_rows

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

        client = get_client() if self.client is None else self.client
        if hasattr(X, "columns"):
            table = X.assign(**{TARGET: y})
            found = train(client, table, TARGET, task=self._task, shard_rows=self.shard_rows)
        else:
            found = train(client, X, y=y, task=self._task, shard_rows=self.shard_rows)
        self.local_ = self._local(found)
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

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    local_ : TrainedClassifier
        The model, which predicts rows in memory.
    """

    _task, _local = "classification", TrainedClassifier

    @property
    def classes_(self) -> np.ndarray:
        """The labels."""
        check_is_fitted(self)
        found: np.ndarray = self.local_.classes_
        return found

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

    Attributes
    ----------
    local_ : TrainedRegressor
        The model, which predicts rows in memory.
    """

    _task, _local = "regression", TrainedRegressor

    def predict(self, X: Any) -> Any:
        return self._lazily("predict", X, np.float64)


def _called(block: Any, local: Any, method: str) -> np.ndarray:
    """What a method returns for a block of rows."""
    found: np.ndarray = getattr(local, method)(block)
    return found


def _called_on_frame(frame: Any, local: Any, method: str, columns: Any = None) -> Any:
    """What a method returns for a partition, with its index."""
    import pandas

    if columns is None:
        return pandas.Series(getattr(local, method)(frame) if len(frame) else [], index=frame.index)
    found = getattr(local, method)(frame) if len(frame) else np.zeros((0, len(columns)))
    return pandas.DataFrame(found, index=frame.index, columns=columns)
