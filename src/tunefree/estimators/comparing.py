"""Comparison of a model with peers and other estimators: :func:`compare`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from tunefree.core.errors import ModelError
from tunefree.model_files.plan import Plan
from tunefree.stream.batch import BadRows
from tunefree.stream.frames import read_frame
from tunefree.stream.source import open_source
from tunefree.workflows import trials
from tunefree.workflows.paired import PairedComparison, Truth
from tunefree.workflows.peers import by_class


def compare(
    model: Any,
    X: Any,
    y: Any,
    others: Sequence[Any] | Mapping[str, Any] = (),
    *,
    train: tuple[Any, Any] | None = None,
    sample_weight: Any = None,
    groups: Any = None,
    in_order: bool = False,
    peers: bool = True,
    n_jobs: int | None = None,
) -> PairedComparison:
    """Compare a model with others on the same rows.

    The others are a constant, a logistic or ridge regression, a random forest and gradient boosting of scikit-learn,
    and any further estimators. Fitted models are evaluated without refitting. Other models are fitted on ``train``;
    if it is not given, all models are evaluated by 5-fold cross-validation, and none may be fitted.

    Parameters
    ----------
    model : estimator
        An estimator of this package or of scikit-learn.
    X : table or array of shape (n, d)
        Rows on which models are evaluated. Fitted models should not have learned them.
    y : array of shape (n,)
        Targets of the rows of X.
    others : sequence or dict of estimators, optional
        Further models; the keys of a dict are their names. Classifiers need ``predict_proba``.
    train : tuple of X and y, optional
        Training rows.
    sample_weight, groups : arrays of shape (n,), optional
        Weights and groups of the rows of X. Cross-validation splits no group; intervals assume independent groups.
    in_order : bool, default=False
        Whether rows are in the order of time. Cross-validation then trains on earlier rows only.
    peers : bool, default=True
        Whether to include the models of scikit-learn.
    n_jobs : int, optional
        Number of processors; by default all.

    Returns
    -------
    PairedComparison
        ``table()`` has ``loss``, ``error``, ``better`` and ``seconds`` of each model, and differences from the first
        model with simultaneous 95 % intervals; ``sentence`` summarises it.

    Raises
    ------
    ModelError, DataError
        If a model is not fitted and there are no rows to learn, or rows cannot be used.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> y = np.where(X[:, 0] > 0.0, "yes", "no")
    >>> comparison = compare(LogisticRegression(), X, y, peers=False, others={"inert": LogisticRegression(C=1e-9)})
    >>> comparison.table()["better"].to_pylist()
    ['', 'LogisticRegression']
    """
    if n_jobs == 0:
        raise ModelError("`n_jobs` must not be 0; pass -1 for all processors")
    estimators = _named(model, others)
    is_class = _is_classification(estimators)
    fitted = [name for name, estimator in estimators.items() if _is_fitted(estimator)]
    if train is None and fitted and (len(fitted) < len(estimators) or len(estimators) == 1):
        unfitted = next((name for name in estimators if name not in fitted), "peers")
        remedy = "pass `train=(X, y)`, or for cross-validation sklearn.base.clone(model)"
        raise ModelError(f"{fitted[0]} is fitted, and nothing says which rows {unfitted} should learn; {remedy}")
    if train is None and in_order and fitted:
        raise ModelError("`in_order` is for cross-validation, and the models are fitted; leave it out")
    name = getattr(y, "name", None)
    target = name if isinstance(name, str) and name else "the target"
    plan = Plan(target=target, task="classification" if is_class else "regression", **_options_of(model))
    parts = [] if train is None else [_data(*train, plan)]
    parts.append(_data(X, y, plan, sample_weight))
    for part in parts[1:]:
        if part.table.column_names != parts[0].table.column_names:
            raise ModelError("the rows of `train` have other columns than X; pass the same columns in the same order")
    codes = None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    if codes is not None and len(codes) != len(parts[-1].weight):
        raise ModelError("`groups` must have a value for each row")
    known = {name: np.asarray(estimators[name].classes_).tolist() if is_class else [] for name in fitted}
    options = {"sample_weight": sample_weight, "groups": groups} if train is None else {}
    start = 0 if train is None else len(parts[0].weight)

    def entrant(name: str, truth: Truth, learned: np.ndarray, judged: np.ndarray) -> np.ndarray:
        """Predict rows by an estimator, which learns rows of the first table before unless it is fitted."""
        model = estimators[name]
        if name not in fitted:
            further = {key: values for key, values in options.items() if values is not None}
            further = {key: _at(further[key], learned) for key in further if has_fit_parameter(model, key)}
            model = clone(model).fit(*(_at(values, learned) for values in train or (X, y)), **further)
        rows = _at(X, judged - start)
        if truth.task == "classification":
            return by_class(np.asarray(model.predict_proba(rows)), np.asarray(model.classes_).tolist(), truth.classes)
        return np.asarray(model.predict(rows), np.float64).reshape(-1)

    entrants: dict[str, trials.Learn] = {name: partial(entrant, name) for name in estimators}
    return trials.run(parts, entrants, known, codes, peers, in_order, n_jobs)


def _is_classification(estimators: dict[str, Any]) -> bool:
    """Return whether all estimators are classifiers; raise a ModelError if they cannot be compared."""
    for name, estimator in estimators.items():
        if not hasattr(estimator, "fit"):
            raise ModelError(f"{name} is no estimator; pass one, as tunefree.load(path) returns it")
    is_class = is_classifier(next(iter(estimators.values())))
    for name, estimator in estimators.items():
        if is_classifier(estimator) != is_class:
            raise ModelError(f"{name} predicts {'numbers' if is_class else 'classes'}, and the model does not")
        if is_class and not hasattr(estimator, "predict_proba"):
            raise ModelError(f"{name} has no predict_proba, by which it is judged; leave it out")
    return is_class


def _named(model: Any, others: Sequence[Any] | Mapping[str, Any]) -> dict[str, Any]:
    """Return the estimators by unique names, the model first."""
    estimators = {type(model).__name__: model}
    pairs = others.items() if isinstance(others, Mapping) else ((type(other).__name__, other) for other in others)
    for name, estimator in pairs:
        number, unique_name = 2, str(name)
        while unique_name in estimators:
            unique_name, number = f"{name} {number}", number + 1
        estimators[unique_name] = estimator
    return estimators


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def _options_of(model: Any) -> dict[str, Any]:
    """Return the parameters of a tunefree model for columns and the loss, which its peers use, too."""
    if not hasattr(model, "_learner"):
        return {}
    names = {name: getattr(model, name, None) for name in ("categorical", "text", "loss")}
    return {name: value for name, value in names.items() if value is not None and not callable(value)}


def _data(X: Any, y: Any, plan: Plan, sample_weight: Any = None) -> trials.Data:
    """Read the rows and their targets as a table for the peers."""
    batches = [chunk.data.replace_schema_metadata(None) for chunk in read_frame(X, name="X")]
    table = pa.concat_tables([pa.Table.from_batches([batch]) for batch in batches], promote_options="permissive")
    target = np.asarray(y)
    if len(target) != table.num_rows or target.ndim != 1:
        raise ModelError(f"X has {table.num_rows:,} rows, and y the shape {target.shape}; pass a target for each row")
    table = table.append_column(str(plan.target), pa.array(target, from_pandas=True))
    data = trials.read(open_source(table), plan, BadRows(options=()))
    if sample_weight is None:
        return data
    weight = np.asarray(sample_weight, np.float64)
    if weight.shape != data.weight.shape or not (np.isfinite(weight) & (weight >= 0.0)).all():
        raise ModelError("`sample_weight` must have a number of at least 0 for each row")
    return data._replace(weight=weight)


def _at(values: Any, rows: np.ndarray) -> Any:
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    if isinstance(values, Mapping):
        return {name: _at(column, rows) for name, column in values.items()}
    if isinstance(values, (pa.Table, pa.Array, pa.ChunkedArray)):
        return values.take(rows)
    return (np.asarray(values) if isinstance(values, (list, tuple)) else values)[rows]
