"""The kernels of the papers, as functions of one row (d,) and several (n, d).

Gaussian: Orabona 2014 and Nitanda, Suzuki 2019 write exp(-gamma ||x - z||^2), Lin, Rosasco, Zhou 2016 with
gamma = 1 / (2 sigma^2). Differences are taken before they are squared, so that rows far from 0 lose no digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Kernel = Callable[[np.ndarray, np.ndarray], np.ndarray]


def kernel_of(name: Any, gamma: float | None = None, degree: int = 3, coef0: float = 1.0) -> Kernel:
    """The kernel called ``name``, or the function itself.

    Parameters
    ----------
    name : {"linear", "gaussian", "laplacian", "polynomial"} or callable
    gamma : float, optional
        Of the Gaussian and Laplacian kernels, which need it, and of the polynomial, by default 1.
    degree, coef0
        Of the polynomial (gamma x z + coef0)^degree.

    Examples
    --------
    >>> kernel_of("gaussian", 0.5)(np.array([1.0]), np.array([[1.0], [3.0]])).round(4).tolist()
    [1.0, 0.1353]
    """
    if callable(name):
        return name
    if name in ("gaussian", "laplacian") and not (gamma is not None and gamma > 0.0):
        raise ValueError(f"the {name} kernel has a width that the papers leave to the user: pass gamma, above 0")
    rate = 1.0 if gamma is None else float(gamma)
    known: dict[str, Kernel] = {
        "linear": lambda x, rows: rows @ x,
        "gaussian": lambda x, rows: np.exp(-rate * ((rows - x) ** 2).sum(axis=1)),
        "laplacian": lambda x, rows: np.exp(-rate * np.abs(rows - x).sum(axis=1)),
        "polynomial": lambda x, rows: (rate * (rows @ x) + coef0) ** degree,
    }
    if name not in known:
        raise ValueError(f"unknown kernel {name!r}; choose one of {', '.join(known)}, or pass a function")
    return known[name]
