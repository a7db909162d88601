"""The figures and tables of the papers, computed anew: one file for each, and the list of all.

A figure joins by a module with an ``Experiment`` called EXPERIMENT and its name in ``MODULES``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tunefree.core.errors import ModelError

if TYPE_CHECKING:
    from tunefree.reproduce.experiment import Experiment

# In the order in which --all runs them; experiments that share parts side by side.
MODULES = {
    "scinol-table2": "scinol_table2",
    "scinol-fig1": "scinol_fig1",
    "scinol-fig2": "scinol_fig2",
    "scinol-fig4": "scinol_fig4",
    "pistol-fig2": "pistol_fig2",
    "pistol-fig3": "pistol_fig3",
    "sgd-fig1": "sgd_fig1",
    "sgd-fig2": "sgd_fig2",
    "path-fig1": "path_fig1",
    "path-fig2": "path_fig2",
}


def experiments(names: list[str]) -> list[Experiment]:
    """The experiments of these names.

    Raises
    ------
    ModelError
        If there is none of a name.

    Examples
    --------
    >>> experiments(["scinol-table2"])[0].title
    'Kempka, Kotlowski, Warmuth 2019, Table 2: the data sets'
    """
    if unknown := [name for name in names if name not in MODULES]:
        raise ModelError(f"no experiment is called {unknown[0]!r}; there are {', '.join(MODULES)}")
    return [import_module(f"tunefree.reproduce.{MODULES[name]}").EXPERIMENT for name in names]
