"""Fitted estimators as model files, which the command line and :func:`tunefree.load` read."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tunefree.core import storage
from tunefree.core.errors import DataWarning
from tunefree.estimators import tables
from tunefree.stream.columns import Number
from tunefree.stream.features import TableEncoder
from tunefree.stream.svmlight import SvmlightEncoder

_FAMILIES = {"b": "boolean", "i": "number", "u": "number", "f": "number"}  # of targets, by the kinds of their dtypes
LOST = (
    "the file keeps what predicts, not {} of {}: tunefree.load returns a model that does not learn; pickle the"
    " estimator to keep all of it"
)


class Saving:
    """Estimators that can be written to a model file."""

    def save(self, path: str | os.PathLike[str], target: str | None = None) -> None:
        """Write the fitted model to a file, which `tunefree predict` and :func:`tunefree.load` read.

        A model of arrays reads tables with the columns x0, x1, ..., or with the names in ``feature_names_in_``; one of
        sparse matrices reads svmlight text, in which column j has the index j + 1. The parameters of the estimator
        and the state of its random numbers are not kept, so :func:`tunefree.load` returns a model that predicts and
        does not learn. Pickle the estimator to keep all of it.

        Parameters
        ----------
        path : path
        target : str, optional
            Name of the column that the model predicts, with which `tunefree evaluate` finds it.

        Raises
        ------
        ModelError
            If the file cannot be written; an earlier one of this name is untouched.

        Warns
        -----
        DataWarning
            What is not kept.

        Examples
        --------
        >>> import tempfile, pathlib, tunefree
        >>> X, y = {"age": [20.0, 60.0] * 20, "job": ["cook", "clerk"] * 20}, ["no", "yes"] * 20
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "people.model"
        ...     tunefree.ScInOLClassifier().fit(X, y).save(path, target="rich")
        ...     tunefree.load(path).predict({"age": [61], "job": ["clerk"]}).tolist()
        ['yes']
        """
        check_is_fitted(self)
        kind, encoder = _source(self, target)
        parts, header = self._parts_of_file(encoder, target)
        storage.save_parts(path, {**parts, "encoder": encoder.state()}, header | {"source": kind})
        lost = "parameters and partial_fit" if hasattr(self, "partial_fit") else "parameters and the path"
        warnings.warn(LOST.format(lost, type(self).__name__), DataWarning, stacklevel=2)

    def _parts_of_file(self, encoder: Any, target: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
        """The model as a part of a file, and what else the header of the file says."""
        raise NotImplementedError


def _source(estimator: Any, target: str | None) -> tuple[str, Any]:
    """The kind of rows that the model reads, and their encoder."""
    encoder = tables.encoder_of(estimator)
    if encoder is None and estimator._is_sparse:
        return "svmlight", SvmlightEncoder.of_indices(estimator.n_features_in_)
    if encoder is None:
        encoder = TableEncoder([Number(name) for name in tables.feature_names(estimator)])
    family = _FAMILIES.get(getattr(estimator, "classes_", np.zeros(0)).dtype.kind, "string")
    made = TableEncoder(encoder.columns, target, None if target is None else family)
    made.restore_ids(encoder.state()[0])
    return "table", made
