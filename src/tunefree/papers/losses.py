"""The losses of the papers for one round: values and subgradients in K margins.

With one margin, a loss is named as in :mod:`tunefree.losses`, or an object with ``value(y, p)`` and ``slope(y, p)``.
With more than two classes, it is the multinomial logistic loss (Kempka, Kotlowski, Warmuth 2019, Appendix G).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tunefree.losses import kind_of, loss_of, names


class OneMargin:
    """A loss of one margin, for labels -1 and +1 or for numbers."""

    n_outputs = 1

    def __init__(self, loss: Any, name: str) -> None:
        self.loss, self.name = loss, name
        self.lipschitz = float(getattr(loss, "lipschitz", math.inf))

    def value(self, y: float, margins: np.ndarray) -> float:
        """l(y, p)."""
        return float(self.loss.value(y, float(margins[0])))

    def slope(self, y: float, margins: np.ndarray) -> np.ndarray:
        """Return a subgradient (1,) with respect to p."""
        return np.array([self.loss.slope(y, float(margins[0]))])


class Multinomial:
    """-p_y + ln sum_k exp(p_k), for classes 0 .. K - 1; the largest component of its gradient is at most 1."""

    name, lipschitz = "logistic", 1.0

    def __init__(self, n_outputs: int) -> None:
        self.n_outputs = n_outputs

    def value(self, y: float, margins: np.ndarray) -> float:
        """l(y, p)."""
        peak = margins.max()
        return float(np.log(np.exp(margins - peak).sum()) + (peak - margins[int(y)]))

    def slope(self, y: float, margins: np.ndarray) -> np.ndarray:
        """softmax(p) - onehot(y)."""
        slopes = np.exp(margins - margins.max())
        slopes /= slopes.sum()
        slopes[int(y)] -= 1.0
        return slopes


def check_finite(name: str, numbers: np.ndarray) -> np.ndarray:
    """Return an array; raise a ValueError that names its first row with a number that is not finite."""
    if not np.isfinite(numbers).all():
        row = int(np.argwhere(~np.isfinite(numbers))[0][0])
        raise ValueError(f"row {row} of {name} holds a number that is not finite; fill in missing values")
    return numbers


def loss_and_targets(loss: Any, y: Any) -> tuple[Any, np.ndarray]:
    """Return a loss object, and the targets in the form that it takes.

    Classes are numbered in the order of their labels. Two classes become -1 and +1.

    Examples
    --------
    >>> loss_and_targets("hinge", ["no", "yes", "no"])[1].tolist()
    [-1.0, 1.0, -1.0]
    >>> loss_and_targets("logistic", [7, 8, 9])[0].n_outputs
    3
    >>> loss_and_targets("absolute", [0.5, 2.0])[1].tolist()
    [0.5, 2.0]
    """
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"the targets have shape {y.shape}; pass one target for each row")
    if not isinstance(loss, str):
        return OneMargin(loss, type(loss).__name__), check_finite("y", y.astype(np.float64))
    name = kind_of(loss)
    is_classification = name in names("classification")
    if not is_classification and name not in names("regression"):
        known = ", ".join(dict.fromkeys(names("classification") + names("regression")))
        raise ValueError(f"there is no loss {name!r}; choose one of {known}")
    if not is_classification or (loss == "square" and np.issubdtype(y.dtype, np.number)):
        return OneMargin(loss_of("regression", loss), loss), check_finite("y", y.astype(np.float64))
    if y.dtype.kind == "f":
        check_finite("y", y)
    try:
        labels, codes = np.unique(y, return_inverse=True)
    except TypeError:
        raise ValueError("the labels of y have several types, or some are missing; pass strings or numbers") from None
    if len(labels) > 2:
        if loss != "logistic":
            raise ValueError(f"the {loss} loss is of two classes, and there are {len(labels)}: use 'logistic'")
        return Multinomial(len(labels)), codes.astype(np.float64)
    if len(labels) == 2:
        return OneMargin(loss_of("classification", loss), loss), 2.0 * codes - 1.0
    if len(labels) == 1 and labels[0] in (-1, 1):
        return OneMargin(loss_of("classification", loss), loss), y.astype(np.float64)
    raise ValueError(f"there are {len(labels)} classes; classification needs at least two, or labels of -1 and +1")
