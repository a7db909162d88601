"""Doors to models: :func:`load`, and :func:`train` for tables, arrays and files. Both return estimators."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from tunefree.core.errors import ModelError, warn
from tunefree.estimators.model_file import estimator_of
from tunefree.model_files.plan import Plan, plan_of
from tunefree.model_files.trained import load as load_trained
from tunefree.model_files.trained import refused
from tunefree.stream.source import open_source
from tunefree.training import training
from tunefree.workflows.findings import findings


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model file that `tunefree train`, an estimator's ``save`` or :func:`train` wrote.

    Parameters
    ----------
    path : path

    Returns
    -------
    estimator
        Of the class that was saved, fitted. Of a training by a plan it is a :class:`TuneFreeClassifier` or
        :class:`TuneFreeRegressor`; of a single learner an :class:`OnlineClassifier` or :class:`OnlineRegressor`.

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
    (TuneFreeClassifier(), ['no', 'yes'])
    >>> model.partial_fit({"age": [40.0]}, ["perhaps"]).classes_.tolist()
    ['no', 'perhaps', 'yes']
    """
    trained = load_trained(path)
    with refused(path):
        return estimator_of(trained)


def train(
    data: Any,
    plan: Plan | None = None,
    callbacks: Sequence[training.Callback] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    save_every: int = 0,
    resume: bool = False,
    memory_limit: str | None = None,
    **options: Any,
) -> Any:
    """Learn a model from a table or from files, as `tunefree train` does.

    The rows of a table in memory are learned in an order that is drawn, as by ``fit``, unless ``shuffle=False``. Rows
    of files and streams, of groups, and for a plan are learned as they come, unless ``shuffle=True``.

    Parameters
    ----------
    data : Source, table, path, or sequence of paths
        What :func:`tunefree.open_source` takes or returns.
    plan : Plan, optional
        What is to be learned, and how.
    callbacks : sequence of Callback, optional
        Called as the training goes on (:mod:`tunefree.training.callbacks`).
    checkpoint : path, optional
        File to which the model is saved on the way.
    save_every : int, default 0
        Rows between checkpoints; 0 for none.
    resume : bool, default False
        Resume from the checkpoint if there is one. The model ends as if it had never been interrupted, to the byte.
    memory_limit : str, optional
        What the model may take, such as 4G; parts of it sleep before it does. By default a quarter of the memory.
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
        For each of :func:`tunefree.workflows.findings.findings`, such as rare classes, rows that are sorted by the
        target, a loss that rises, and columns that may give the target away.

    Examples
    --------
    >>> table = {"age": [20.0, 60.0] * 100, "rich": ["no", "yes"] * 100}
    >>> train(table, target="rich").predict({"age": [19, 61]}).tolist()
    ['no', 'yes']
    """
    if not isinstance(plan, Plan | None):
        problem = f"`plan` is of type {type(plan).__name__}"
        raise ModelError(f"{problem}; pass one table, and name its column to predict by `target`")
    if plan is not None and options:
        raise ModelError(f"pass a plan, or {', '.join(sorted(options))}, not both")
    on_the_way: dict[str, Any] = {"checkpoint": checkpoint, "save_every": save_every, "resume": resume}
    on_the_way |= {"callbacks": callbacks, "memory_limit": memory_limit}
    target = options.get("target") if plan is None else plan.target
    source = open_source(data, is_table=target is not None)
    if not source.files and source.rewindable and options.get("groups") is None:  # in memory: their order is drawn
        options = {"shuffle": True, **options}
    plan = plan or plan_of(options, on_the_way)
    trained = training.train(source, plan, **on_the_way)
    for finding in findings(trained):
        warn(str(finding))
    return estimator_of(trained)
