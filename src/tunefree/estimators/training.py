"""Doors to models: :func:`load`, and :func:`train` for tables, arrays and files. Both return estimators."""

from __future__ import annotations

import os
import warnings
from typing import Any

from tunefree.core.errors import DataWarning, ModelError
from tunefree.estimators.early_stopping import descend
from tunefree.estimators.model_file import estimator_of
from tunefree.model_files.plan import EARLY_STOPPING, ROW_BY_ROW, Plan, plan_of
from tunefree.model_files.trained import load as load_trained
from tunefree.model_files.trained import refused
from tunefree.stream.source import Source, open_source
from tunefree.training import training
from tunefree.training.remarks import alike_classes, doubts_of_columns, rare_classes


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model file that `tunefree train`, an estimator's ``save`` or :func:`train` wrote.

    Parameters
    ----------
    path : path

    Returns
    -------
    estimator
        Of the class that was saved, fitted, with the parameters that it had. Of a training by a plan it is a
        :class:`TuneFreeClassifier` or :class:`TuneFreeRegressor`; of a single learner an :class:`OnlineClassifier` or
        :class:`OnlineRegressor`; and of one that was stopped early an :class:`IterativeRegularizationClassifier` or
        :class:`IterativeRegularizationRegressor`. A model that was saved only for prediction has no ``partial_fit``.

    Raises
    ------
    ModelError
        If the file cannot be read.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> table = {"age": [20.0, 60.0] * 100, "rich": ["no", "yes"] * 100}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "people.model"
    ...     train(table, target="rich").save(path)
    ...     model = load(path)
    >>> model, model.predict({"age": [19.0, 61.0]}).tolist()
    (TuneFreeClassifier(shuffle=False), ['no', 'yes'])
    >>> model.partial_fit({"age": [40.0]}, ["perhaps"]).classes_.tolist()
    ['no', 'perhaps', 'yes']
    """
    trained = load_trained(path)
    with refused(path):
        return estimator_of(trained)


def train(
    data: Any,
    plan: Plan | None = None,
    watcher: training.Watcher | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    save_every: int | str = 0,
    resume: bool = False,
    memory_limit: str | None = None,
    **options: Any,
) -> Any:
    """Learn a model from a table or from files, as `tunefree train` does.

    Parameters
    ----------
    data : Source, table, path, or sequence of paths
        What :func:`tunefree.open_source` takes or returns.
    plan : Plan, optional
        What is to be learned, and how.
    watcher, checkpoint, save_every, resume, memory_limit
        As in :func:`tunefree.training.training.train`.
    **options
        Fields of the plan, such as ``target="income"``, instead of a plan.

    Returns
    -------
    estimator
        Fitted, as :func:`load` returns it; ``save`` writes a model file.

    Raises
    ------
    DataError, ModelError
        If a row cannot be used, the target has one class only, or there is no such option.

    Warns
    -----
    DataWarning
        For each class of fewer than three rows, where there are more than a thousand and ``classes`` are not given; and
        for whatever is odd about rows that are used.

    Examples
    --------
    >>> table = {"age": [20.0, 60.0] * 100, "rich": ["no", "yes"] * 100}
    >>> train(table, target="rich").predict({"age": [19, 61]}).tolist()
    ['no', 'yes']
    """
    if plan is not None and options:
        raise ModelError(f"pass a plan, or {', '.join(sorted(options))}, not both")
    on_the_way: dict[str, Any] = {"checkpoint": checkpoint, "save_every": save_every, "resume": resume}
    on_the_way |= {"watcher": watcher, "memory_limit": memory_limit}
    plan = plan or plan_of(options, on_the_way)
    source = data if isinstance(data, Source) else open_source(data, is_table=plan.target is not None)
    if plan.learner == EARLY_STOPPING:
        for name in [name for name, value in on_the_way.items() if value]:
            raise ModelError(f"`{name}` {ROW_BY_ROW.says}; leave it out, or {ROW_BY_ROW.remedy}")
        return estimator_of(descend(source, plan))
    trained = training.train(source, plan, **on_the_way)
    lines = [*alike_classes(trained), *rare_classes(trained)]
    for line in [*lines, *map(str, trained.progress.oddities), *map(str, doubts_of_columns(trained))]:
        warnings.warn(line, DataWarning, stacklevel=2)
    return estimator_of(trained)
