"""Fitted estimators in model files: saving the state of an estimator next to its model, and restoring it.

The file of a training by a plan (`tunefree train`, :func:`tunefree.train`) describes no estimator. It is loaded as the
estimator with the parameters of the plan.
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
from tunefree.core.parameters import naming
from tunefree.core.registry import Registry
from tunefree.core.threads import Turn
from tunefree.estimators import tables
from tunefree.model_files.plan import signs_of
from tunefree.model_files.trained import Trained, ended
from tunefree.pool.options import usual_view
from tunefree.pool.targets import Labels
from tunefree.stream.encoder import TableEncoder
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
_FAMILIES = {"b": "boolean", "i": "number", "u": "number", "f": "number"}  # kind of dtype -> type of targets in files
_TYPES = {"U": "str", "T": "str", "O": "object"}  # kind of dtype -> type of labels; others are saved by dtype name
_LABELS = {str, int, float, bool}  # types of labels that files can hold
PLAN_FIELDS = {"target": "target", "group": "groups", "exposure": "exposure"}  # role of a column -> field of the plan


class Saving:
    """Mixin of estimators that can be written to a model file."""

    _encoder: Any = None  # encoder of tables or lines of text; None for arrays
    _is_sparse = False  # whether a sparse matrix was fitted
    _as_array = False  # whether encoded rows are learned as an array
    _reads_arrays = False  # whether the encoder's columns come from arrays
    fit_intercept = True  # for estimators without this parameter
    _role_names: Mapping[str, str] = MappingProxyType({})  # role (target, group, exposure) -> name of its column
    _learned: Trained  # marked complete only once it equals the contents of a file
    n_iter_: int
    n_features_in_: int
    classes_: np.ndarray  # classifiers only

    def save(self, path: str | os.PathLike[str], target: str | None = None, only_for_prediction: bool = False) -> None:
        """Write the fitted model to a file that :func:`tunefree.load` and the command line can read.

        The loaded estimator continues exactly like this one. On the command line, a model fitted on arrays reads tables
        with columns x0, x1, ..., or with the names in ``feature_names_in_``. A model fitted on sparse matrices reads
        svmlight text, in which column j has index j + 1. The columns of groups and exposures have the names of the
        Series that were passed, else ``"group"`` and ``"exposure"``.

        Parameters
        ----------
        path : path
        target : str, optional
            Name of the target column, by default the name of the Series ``y``, else ``"target"``. Targets in svmlight
            text have no name.
        only_for_prediction : bool, default=False
            Whether to leave out the state of a pool that only learning and certificates need. Corrections of leaves
            are rounded to half precision: probabilities differed by at most 4e-5 on seven tables.

        Raises
        ------
        ModelError
            If the file cannot be written, in which case an existing file is not changed; or if the target cannot have
            this name.

        Warns
        -----
        DataWarning
            If a parameter cannot be saved, such as a random number generator. It has its default after loading.

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
        with self._lock():
            self._trained(target).save(path, only_for_prediction=only_for_prediction)
        if lost := _parameters(self)[1]:
            problem = f"the file does not keep {', '.join(lost)} of {type(self).__name__}"
            warn(f"{problem}: the estimator that is loaded has the default")

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write the prediction function to an ONNX file, for runtimes such as ONNX Runtime; needs `tunefree[onnx]`.

        Each column is an input of shape (n, 1): double-precision numbers, with NaN if missing, or strings without
        surrounding white space, empty if missing. A boolean is the string ``"true"`` or ``"false"``. The outputs are
        ``label`` and ``probabilities``, in the order of ``classes_``, or ``prediction``.

        Parameters
        ----------
        path : path

        Raises
        ------
        ModelError
            If the model has columns of text, lists, dates or times, or kernels, or the file cannot be written.

        Warns
        -----
        DataWarning
            If the model predicts learned rows differently from new ones; the exported function cannot.

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
        with naming("tunefree.train"):
            lines = exported(self, path)
        for line in lines:
            warn(line)

    @property
    def trained_(self) -> Trained:
        """The model with its encoder and plan, as saved in files; functions of ``tunefree.workflows`` take it."""
        return self._trained()

    def _trained(self, target: str | None = None) -> Trained:
        check_is_fitted(self)
        trained = self._record()
        if unsaved := [label for label in trained.model.classes if type(label) not in _LABELS]:
            problem = f"files cannot hold the label {unsaved[0]!r} of type {type(unsaved[0]).__name__}"
            raise ModelError(f"{problem}; fit with labels that are strings or numbers")
        kind, encoder = trained.kind or ("svmlight" if self._is_sparse else TABLE), tables.encoder_of(self)
        if kind == TABLE:
            encoder = _with_role_names(encoder, self, trained, target)
        elif target is not None:
            raise ModelError(f"lines of {kind} begin with their target, which has no name; leave `target` out")
        names: dict[str, Any] = {name: getattr(encoder, role, None) for role, name in PLAN_FIELDS.items()}
        plan = replace(trained.plan, **names)
        return replace(trained, plan=plan, kind=kind, encoder=encoder, estimator=_described(self))

    def _lock(self) -> Turn:
        turn: Turn = self.__dict__.setdefault("_model_lock", Turn())
        return turn

    def _record(self) -> Trained:
        raise NotImplementedError

    def _restore(self, trained: Trained) -> None:
        """Restore the fitted state from the contents of a file."""
        described = trained.estimator or {}
        tables.restore(self, trained.encoder, described.get("fitted") or {})


def exported(estimator: Any, path: str | os.PathLike[str]) -> list[str]:
    """Write an ONNX file; return notes on rows for which it may differ from the estimator."""
    try:
        from tunefree.export.model import export
    except ModuleNotFoundError as error:
        if error.name != "onnx":
            raise
        raise ModelError("onnx is not installed; pip install 'tunefree[onnx]'") from None

    with estimator._lock():
        return export(estimator.trained_, path, getattr(estimator, "classes_", np.zeros(0)).tolist())


def estimator_of(trained: Trained) -> Any:
    """Return the estimator of a model file, or the estimator that corresponds to a plan."""
    described, model = trained.estimator or _estimator_of(trained), trained.model
    ending = "Classifier" if model.task == "classification" else "Regressor"
    if not ESTIMATORS[described["class"]].__name__.endswith(ending):
        raise ModelError(f"{described['class']} has a model of {model.task}")
    estimator = model.estimator if model.kind == "path" else unfitted(described["class"], described["parameters"])
    estimator._restore(trained if trained.progress.complete else ended(trained))
    return estimator


def unfitted(name: str, parameters: dict[str, Any]) -> Any:
    """Return an unfitted estimator of a class, with parameters in the form of files."""
    return ESTIMATORS[name](**{parameter: _restored(value) for parameter, value in parameters.items()})


def labels_of(classes: list[Any], described: dict[str, Any] | None) -> np.ndarray:
    """Return labels as an array of their original dtype."""
    kind, types = ((described or {}).get("fitted") or {}).get("labels"), {type(label) for label in classes}
    return np.array(classes, "object" if kind is None and len(types) > 1 and types != {int, float} else kind)


def _estimator_of(trained: Trained) -> dict[str, Any]:
    """Return the description, as in files, of the estimator that corresponds to a plan."""
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
    """Return the description of an estimator in the form of files, without its model."""
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
    """Return the parameters of an estimator in the form of files, and the names of parameters that cannot be saved."""
    plain, lost = {}, []
    for name, value in estimator.get_params(deep=False).items():
        try:
            plain[name] = _plain(value)
        except TypeError:
            lost.append(name)
    return plain, lost


def _plain(value: Any) -> Any:
    """Return a parameter in the form of files; raise a TypeError if files cannot hold it."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, dict):  # JSON keys are strings, and labels may be numbers
        return {"pairs": [[_plain(part) for part in pair] for pair in value.items()]}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if value is not None and not isinstance(value, (bool, int, float, str)):
        raise TypeError(f"files cannot hold {value!r}")
    return value


def _restored(value: Any) -> Any:
    """Return the parameter that :func:`_plain` converted."""
    if isinstance(value, dict):
        return {_restored(key): _restored(part) for key, part in value["pairs"]}
    return [_restored(part) for part in value] if isinstance(value, list) else value


def _with_role_names(encoder: TableEncoder, estimator: Any, trained: Trained, target: str | None) -> TableEncoder:
    """Return the encoder with the names of the target, group and exposure columns, made distinct from its columns."""
    column_names = [column.name for column in encoder.columns]
    if target in column_names:
        raise ModelError(f"`target` {target!r} is the name of a column that the model predicts from; name another")
    in_plan = {role: name for role, field in PLAN_FIELDS.items() if (name := getattr(trained.plan, field)) is not None}
    names = {"target": "target", **estimator._role_names, **in_plan} | ({"target": target} if target else {})
    for role, name in names.items():
        while name in column_names:
            name += "_"
        names[role] = name
        column_names.append(name)
    if all(getattr(encoder, role) == name for role, name in names.items()):
        return encoder
    family = _FAMILIES.get(getattr(estimator, "classes_", np.zeros(0)).dtype.kind, "string")
    renamed = copy.copy(encoder)
    vars(renamed).update(names, target_family=family)
    return renamed
