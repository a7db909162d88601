"""Fitted estimators in model files: the state of an estimator beside its model, and the estimator of a file.

A file of a training by a plan (`tunefree train`, :func:`tunefree.train`) says nothing of an estimator: it becomes the
one with the parameters of the plan.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import tunefree
from tunefree.core.errors import ModelError, warn
from tunefree.core.registry import Registry
from tunefree.core.threads import Turn
from tunefree.estimators import tables
from tunefree.model_files.plan import signs_of
from tunefree.model_files.trained import Trained, ended
from tunefree.pool.options import usual_view
from tunefree.pool.targets import Labels
from tunefree.stream.columns import Number
from tunefree.stream.encoder import TableEncoder
from tunefree.stream.feature_lines import SvmlightEncoder
from tunefree.stream.formats import TABLE
from tunefree.training.targets import class_factors, weights_by_label

ESTIMATORS = Registry(
    "estimator",
    {
        name: f"{module}:{name}"
        for name, module in tunefree.MODULES.items()
        if name.endswith(("Classifier", "Regressor"))
    },
    "tunefree.estimators",
)
_FAMILIES = {"b": "boolean", "i": "number", "u": "number", "f": "number"}  # of targets, by the kinds of their dtypes
_TYPES = {"U": "str", "T": "str", "O": "object"}  # of labels, by kinds of dtypes; others have the names of the dtypes
_LABELS = {str, int, float, bool}  # that files hold
IN_PLANS = {"target": "target", "group": "groups", "exposure": "exposure"}  # roles of columns, by names in plans


class Saving:
    """Estimators that can be written to a model file."""

    _encoder: Any = None  # of tables or lines of text; None of arrays
    _is_sparse = False  # whether a matrix was fitted
    _as_array = False  # whether the encoder's rows are learned as an array, and
    _reads_arrays = False  # whether its columns are those of arrays
    _role_names: Mapping[str, str] = MappingProxyType({})  # of the columns of targets, groups and exposures
    _learned: Trained  # complete only if it is as a file has it
    n_iter_: int
    n_features_in_: int
    classes_: np.ndarray  # of classifiers

    def save(self, path: str | os.PathLike[str], target: str | None = None, only_for_prediction: bool = False) -> None:
        """Write the fitted model to a file, which :func:`tunefree.load` and the command line read.

        The estimator that is loaded goes on as this one would. On the command line, a model of arrays reads tables with
        the columns x0, x1, ..., or with the names in ``feature_names_in_``; one of sparse matrices reads svmlight text,
        in which column j has the index j + 1. Groups and exposures are in columns with the names of their Series, else
        ``"group"`` and ``"exposure"``.

        Parameters
        ----------
        path : path
        target : str, optional
            Name of the column that the model predicts, by default that of the Series ``y``, else ``"target"``. In
            svmlight text, targets have no name.
        only_for_prediction : bool, default=False
            Whether to leave out what only learning and certificates need, of a pool. Corrections of leaves are rounded
            to half precision: probabilities differed by at most 4e-5 on seven tables.

        Raises
        ------
        ModelError
            If the file cannot be written, and an earlier one of this name is untouched; or if the target cannot have
            this name.

        Warns
        -----
        DataWarning
            If files cannot hold a parameter, such as a generator of random numbers, which is then loaded as by default.

        Examples
        --------
        >>> import tempfile, pathlib, tunefree
        >>> X, y = {"age": [20.0, 60.0] * 20, "job": ["cook", "clerk"] * 20}, ["no", "yes"] * 20
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "people.model"
        ...     tunefree.ScInOLClassifier(passes=3).fit(X, y).save(path, target="rich")
        ...     model = tunefree.load(path)
        >>> model, model.predict({"age": [61], "job": ["clerk"]}).tolist()
        (ScInOLClassifier(passes=3), ['yes'])
        """
        with self._alone():
            self._trained(target).save(path, only_for_prediction=only_for_prediction)
        if lost := _parameters(self)[1]:
            problem = f"the file does not keep {', '.join(lost)} of {type(self).__name__}"
            warn(f"{problem}: the estimator that is loaded has the default")

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write the prediction function to a file of ONNX, for runtimes such as ONNX Runtime; needs `tunefree[onnx]`.

        An input is a column, of shape (n, 1): numbers in double precision, NaN where missing, or texts without white
        space around them, empty where missing. A boolean is the text ``"true"`` or ``"false"``. The outputs are
        ``label`` and ``probabilities``, in the order of ``classes_``, or ``prediction``.

        Parameters
        ----------
        path : path

        Raises
        ------
        ModelError
            If the model has columns of texts, lists, dates or times, or kernels, or the file cannot be written.

        Warns
        -----
        DataWarning
            If the model predicts rows that it has learned otherwise than new ones, which the file cannot.

        Examples
        --------
        >>> import tempfile, pathlib, tunefree
        >>> model = tunefree.train({"age": [20.0, 60.0] * 100, "rich": ["no", "yes"] * 100}, target="rich")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "people.onnx"
        ...     model.export(path)
        ...     path.stat().st_size > 0
        True
        """
        for line in exported(self, path):
            warn(line)

    @property
    def trained_(self) -> Trained:
        """The contents of a file: the model with its encoder and its plan, for functions of ``tunefree.workflows``."""
        return self._trained()

    def _trained(self, target: str | None = None) -> Trained:
        check_is_fitted(self)
        trained = self._record()
        if (
            unsaved := next((label for label in trained.model.classes if type(label) not in _LABELS), None)
        ) is not None:
            problem = f"files cannot hold the label {unsaved!r} of type {type(unsaved).__name__}"
            raise ModelError(f"{problem}; fit with labels that are strings or numbers")
        kind, encoder = source_of(self, trained)
        if kind == TABLE:
            encoder = _naming(encoder, self, trained, target)
        elif target is not None:
            raise ModelError(f"lines of {kind} begin with their target, which has no name; leave `target` out")
        names: dict[str, Any] = {name: getattr(encoder, role, None) for role, name in IN_PLANS.items()}
        plan = replace(trained.plan, **names)
        return replace(trained, plan=plan, kind=kind, encoder=encoder, estimator=_described(self))

    def _alone(self) -> Turn:
        """A context in which no other thread changes the model."""
        turn: Turn = self.__dict__.setdefault("_in_turn", Turn())
        return turn

    def _record(self) -> Trained:
        raise NotImplementedError

    def _restore(self, trained: Trained) -> None:
        """Restore the fitted state from a file."""
        described = trained.estimator or {}
        tables.restore(self, trained.encoder, described.get("fitted") or {})


def exported(estimator: Any, path: str | os.PathLike[str]) -> list[str]:
    """Write a file of ONNX; returns lines on rows that it may predict otherwise than the estimator."""
    try:
        from tunefree.export.model import export
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "onnx":
            raise
        raise ModelError("onnx is not installed; pip install 'tunefree[onnx]'") from None

    with estimator._alone():
        return export(estimator.trained_, path, getattr(estimator, "classes_", np.zeros(0)).tolist())


def estimator_of(trained: Trained) -> Any:
    """The estimator that a file holds, or that the plan of a training stands for."""
    described, model = trained.estimator or _estimator_of(trained), trained.model
    ending = "Classifier" if model.task == "classification" else "Regressor"
    if not ESTIMATORS[described["class"]].__name__.endswith(ending):
        raise ModelError(f"{described['class']} has a model of {model.task}")
    estimator = model.estimator if model.kind == "path" else unfitted(described["class"], described["parameters"])
    estimator._restore(trained if trained.progress.complete else ended(trained))
    return estimator


def unfitted(name: str, parameters: dict[str, Any]) -> Any:
    """The estimator of a class with parameters as files have them."""
    return ESTIMATORS[name](**{parameter: _restored(value) for parameter, value in parameters.items()})


def labels_of(classes: list[Any], described: dict[str, Any] | None) -> np.ndarray:
    """Labels as an array of the type that they had."""
    kind, types = ((described or {}).get("fitted") or {}).get("labels"), {type(label) for label in classes}
    return np.array(classes, "object" if kind is None and len(types) > 1 and types != {int, float} else kind)


def _estimator_of(trained: Trained) -> dict[str, Any]:
    """The estimator that would learn with a plan's learner, as files have it."""
    plan, task = trained.plan, trained.model.task
    parameters: dict[str, Any] = {"categorical": list(plan.categorical) or None, "text": list(plan.text) or None}
    parameters |= {"shuffle": plan.shuffle, "random_state": plan.random_state}
    if plan.is_pool:
        parameters["monotone"] = signs_of(plan.monotone) or None
    else:
        parameters |= {"learner": plan.learner, "settings": dict(plan.settings) or None}
        parameters |= {"view": plan.view or usual_view(plan.learner), "passes": plan.passes, "average": plan.average}
    if task == "regression" or not plan.is_pool:
        parameters |= {"loss": plan.loss or ("square" if task == "regression" else "logistic")}
    if task == "classification" and plan.class_weight:
        classes = trained.model.classes
        factors = class_factors(weights_by_label(plan.class_weight), Labels(classes, np.arange(len(classes))))
        parameters |= {"class_weight": dict(zip(classes, factors.tolist(), strict=True))}
    name = ("TuneFree" if plan.is_pool else "Online") + ("Classifier" if task == "classification" else "Regressor")
    return {"class": name, "parameters": {key: _plain(value) for key, value in parameters.items()}}


def _described(estimator: Any) -> dict[str, Any]:
    """An estimator without its model, as files have it."""
    name = next((cls.__name__ for cls in type(estimator).__mro__ if cls.__name__ in ESTIMATORS), None)
    if name is None:
        raise ModelError(f"estimators of {type(estimator).__name__} cannot be saved; save one of tunefree's")
    labels = getattr(estimator, "classes_", None)
    return {
        "class": name,
        "parameters": _parameters(estimator)[0],
        "fitted": {
            "rows": "encoded" if estimator._encoder is not None else "matrix" if estimator._is_sparse else "array",
            "as_array": estimator._as_array,
            "of_arrays": estimator._reads_arrays,
            "has_names": hasattr(estimator, "feature_names_in_"),
            "rounds": int(getattr(estimator, "t_", 0)),
            "passes": int(estimator.n_iter_) if hasattr(estimator, "t_") else 1,
            "labels": None if labels is None else _TYPES.get(labels.dtype.kind, labels.dtype.name),
        },
    }


def _parameters(estimator: Any) -> tuple[dict[str, Any], list[str]]:
    """The parameters of an estimator as files hold them, and the names of those that files cannot hold."""
    plain, lost = {}, []
    for name, value in estimator.get_params(deep=False).items():
        try:
            plain[name] = _plain(value)
        except TypeError:
            lost.append(name)
    return plain, lost


def _plain(value: Any) -> Any:
    """A parameter as files hold it, else a TypeError: keys of JSON are strings, and labels may be numbers."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, dict):
        return {"pairs": [[_plain(part) for part in pair] for pair in value.items()]}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if value is not None and not isinstance(value, (bool, int, float, str)):
        raise TypeError(f"files cannot hold {value!r}")
    return value


def _restored(value: Any) -> Any:
    """The parameter that :func:`_plain` wrote down."""
    if isinstance(value, dict):
        return {_restored(key): _restored(part) for key, part in value["pairs"]}
    return [_restored(part) for part in value] if isinstance(value, list) else value


def source_of(estimator: Any, trained: Trained) -> tuple[str, Any]:
    """The kind of rows that the model reads, and their encoder."""
    encoder = estimator._encoder or trained.encoder
    if encoder is not None:
        return trained.kind or TABLE, encoder
    if estimator._is_sparse:
        return "svmlight", SvmlightEncoder.of_indices(estimator.n_features_in_)
    return TABLE, TableEncoder([Number(name) for name in tables.feature_names(estimator)])


def _naming(encoder: TableEncoder, estimator: Any, trained: Trained, target: str | None) -> TableEncoder:
    """The encoder with the names of the target, groups and exposures: as asked for, else those that they had."""
    column_names = [column.name for column in encoder.columns]
    if target in column_names:
        raise ModelError(f"`target` {target!r} is the name of a column that the model predicts from; name another")
    in_plan = {role: name for role, field in IN_PLANS.items() if (name := getattr(trained.plan, field)) is not None}
    names = {"target": "target", **estimator._role_names, **in_plan} | ({"target": target} if target else {})
    for role, name in names.items():
        while name in column_names:
            name += "_"
        names[role] = name
        column_names.append(name)
    if all(getattr(encoder, role) == name for role, name in names.items()):
        return encoder
    family = _FAMILIES.get(getattr(estimator, "classes_", np.zeros(0)).dtype.kind, "string")
    named = copy.copy(encoder)
    vars(named).update(names, target_family=family)
    return named
