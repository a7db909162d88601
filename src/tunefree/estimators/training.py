"""The functions :func:`load` and :func:`train`, which return estimators."""

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
        A fitted estimator of the class that was saved. For a training by a plan, it is a :class:`TuneFreeClassifier` or
        :class:`TuneFreeRegressor`, or with a single learner an :class:`OnlineClassifier` or :class:`OnlineRegressor`.

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
    """Train a model on a table or on files, like `tunefree train`.

    Rows of a table in memory are shuffled, as by ``fit``, unless ``shuffle=False``. Rows of files and streams, with
    groups, or with a plan are learned in their order, unless ``shuffle=True``.

    Parameters
    ----------
    data : Source, table, path, or sequence of paths
        Training data: a source of :func:`tunefree.open_source`, or an argument of it.
    plan : Plan, optional
        The target, the learner and its options.
    callbacks : sequence of Callback, optional
        Called during the training (:mod:`tunefree.training.callbacks`).
    checkpoint : path, optional
        File to which the model is saved during the training.
    save_every : int, default 0
        Rows between checkpoints; 0 for none.
    resume : bool, default False
        Whether to resume from the checkpoint if it exists. The result is identical to an uninterrupted training.
    memory_limit : str, optional
        Limit on the memory of the model, such as 4G; members are suspended to keep it. By default a quarter of RAM.
    **options
        Fields of the plan, such as ``target="income"``, as an alternative to ``plan``.

    Returns
    -------
    estimator
        A fitted estimator, as returned by :func:`load`; ``save`` writes it to a model file.

    Raises
    ------
    DataError, ModelError
        If a row cannot be used, the target has only one class, or an option does not exist.

    Warns
    -----
    DataWarning
        For each of :func:`tunefree.workflows.findings.findings`, such as rare classes, rows sorted by the target, a
        rising loss, and columns that may leak the target.

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
    if not source.files and source.rewindable and options.get("groups") is None:  # rows in memory
        options = {"shuffle": True, **options}
    plan = plan or plan_of(options, on_the_way)
    trained = training.train(source, plan, **on_the_way)
    for finding in findings(trained):
        warn(str(finding))
    return estimator_of(trained)
