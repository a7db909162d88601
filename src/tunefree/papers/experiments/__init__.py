"""Reproduction of the papers' figures and tables: one module for each, and their list.

To add a figure, write a module with an ``Experiment`` named EXPERIMENT and list it in ``NAMES``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tunefree.core.errors import ModelError

if TYPE_CHECKING:
    from tunefree.papers.experiments.experiment import Experiment

# In the order in which --all runs them. Experiments that share parts are adjacent.
NAMES = (
    "scinol-table2",
    "scinol-fig1",
    "scinol-fig2",
    "scinol-fig4",
    "pistol-fig2",
    "pistol-fig3",
    "sgd-fig1",
    "sgd-fig2",
    "path-fig1",
    "path-fig2",
)


def experiments(names: list[str]) -> list[Experiment]:
    """The experiments of some names.

    Raises
    ------
    ModelError
        If a name is unknown.

    Examples
    --------
    >>> experiments(["scinol-table2"])[0].title
    'Kempka, Kotlowski, Warmuth 2019, Table 2: the data sets'
    """
    if unknown := [name for name in names if name not in NAMES]:
        raise ModelError(f"no experiment is called {unknown[0]!r}; there are {', '.join(NAMES)}")
    return [import_module(f"tunefree.papers.experiments.{name.replace('-', '_')}").EXPERIMENT for name in names]
