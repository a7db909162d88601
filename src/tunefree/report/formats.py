"""Formats of numbers and models as text; a fact stores a number and its format."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.workflows.metrics import Measure

ABSENT = "-"


@dataclass(frozen=True)
class Format:
    """A format of numbers, and of the value of a :class:`tunefree.workflows.metrics.Measure`.

    The ends of an interval have as many decimals as the value.

    >>> COUNT(1234), PERCENT(0.125), FIGURES(0.25), COUNT(None), PERCENT(float("nan"))
    ('1,234', '12.50 %', '0.2500', '-', '-')
    >>> PERCENT.interval(Measure(0.5, 0.4, 0.6)), PERCENT.with_half(Measure(0.5, 0.4, 0.6))
    ('40.00 to 60.00 %', '50.00 ± 10.00 %')
    >>> FIGURES(54321.0), FIGURES.interval(Measure(0.08772, 0.0847912, 0.1)), FIGURES(1e-7)
    ('54,321', '0.08479 to 0.10000', '1.000e-07')
    """

    spec: str = ""  # Python format specification; empty for significant digits
    scale: float = 1.0  # factor of the number
    unit: str = ""  # suffix
    digits: int = 4
    sign: str = ""  # "+" to write the sign of positive numbers

    def __call__(self, value: Any) -> str:
        number = value.value if isinstance(value, Measure) else value
        return ABSENT if is_absent(number) else f"{self.scale * number:{self.spec_of(number)}}{self.unit}"

    def spec_of(self, number: float) -> str:
        """The format of a number, and of the ends of its interval."""
        size = abs(self.scale * number)
        if self.spec or not math.isfinite(size):
            return self.spec
        if size and not 1e-4 <= size < 1e6:
            return f"{self.sign}.{self.digits - 1}e"
        return f"{self.sign},.{max(self.digits - 1 - math.floor(math.log10(size)), 0) if size else self.digits}f"

    def interval(self, measure: Any) -> str:
        """The interval of a measure; empty if unknown, and for other values."""
        if not isinstance(measure, Measure) or measure.low is None or measure.high is None:
            return ""
        spec = self.spec_of(measure.value)
        return f"{self.scale * measure.low:{spec}} to {self.scale * measure.high:{spec}}{self.unit}"

    def with_ends(self, measure: Measure | None) -> str:
        """The value of a measure with its interval in brackets, without the unit inside.

        >>> PERCENT.with_ends(Measure(0.5, 0.4, 0.6)), PERCENT.with_ends(None)
        ('50.00 % (40.00 to 60.00)', '-')
        """
        ends = self.interval(measure)
        return self(measure) + (f" ({ends.removesuffix(self.unit) if self.unit else ends})" if ends else "")

    def with_half(self, measure: Any) -> str:
        """The value of a measure and half the width of its interval."""
        if not (self.interval(measure) and measure):
            return self(measure)
        spec, half = self.spec_of(measure.value), (measure.high - measure.low) / 2
        return f"{self.scale * measure.value:{spec}} ± {self.scale * half:{spec}}{self.unit}"


COUNT = Format(",.0f")
WEIGHT = Format(",.6g")  # sums of row weights
PERCENT, TENTHS_OF_PERCENT = Format(".2f", 100.0, " %"), Format(".1f", 100.0, " %")
SHARE = Format("", 100.0, " %", digits=3)
FIGURES = Format()  # four significant digits
TWO, THREE = Format(digits=2), Format(digits=3)
SIGNED = Format(sign="+")
RATIO = Format(".2f")


def is_absent(value: Any) -> bool:
    """Whether a value is None or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def weight(total: Any) -> str:
    """Format a sum of row weights, as a count if it is an integer.

    >>> weight(1200.0), weight(0.5)
    ('1,200', '0.5')
    """
    return (WEIGHT if total % 1 else COUNT)(total)


def with_error(number: float, error: float) -> str:
    """A number and its standard error, with as many decimals as the first digit of the error has.

    >>> with_error(1.0004, 0.002), with_error(0.9, 0.1), with_error(12.3, 4.0), with_error(1.0, 0.0)
    ('1.000 ± 0.002', '0.9 ± 0.1', '12 ± 4', '1 ± 0')
    """
    decimals = max(0, -math.floor(math.log10(error))) if error > 0.0 else 0
    return f"{number:.{decimals}f} ± {error:.{decimals}f}"


def text(value: Any) -> str:
    """Convert a value to text; names are separated by commas."""
    if is_absent(value):
        return ABSENT
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def first(n: int, counts: bool = False) -> Any:
    """A format of lists that writes the first ``n`` names, with the total number of longer lists if ``counts``.

    >>> first(2)(["a", "b", "c"]), first(3)([1, 2]), first(2, True)(["a", "b", "c"])
    ('a, b, ...', '1, 2', '3: a, b, ...')
    """

    def write(names: list[Any]) -> str:
        is_long = len(names) > n
        return (f"{len(names):,}: " if counts and is_long else "") + text(names[:n]) + (", ..." if is_long else "")

    return write


def goal_of(trained: Trained, so_far: str = "") -> str:
    """The task, the target, and its classes."""
    model, target = trained.model, trained.plan.target
    goal = f"{model.task} of " + (f"'{target}'" if target else "the label")
    if model.task == "regression":
        return goal
    return f"{goal} ({len(model.classes)} classes{so_far}: {first(4)(model.classes)})"


def loss_name(model: Any) -> str:
    """The name of the loss that is minimised."""
    return str(model.options.loss or ("square" if model.task == "regression" else "logistic"))


def weights_named(plan: Plan, weight: np.ndarray | None = None) -> str:
    """A phrase on the weights of rows; empty if they are equal.

    ``weight``: the weights (n,) of the rows; by default rows are weighted if the plan names a column.

    >>> weights_named(Plan(sample_weight="w")), weights_named(Plan(sample_weight="w"), np.ones(3))
    ("column 'w'", '')
    >>> weights_named(Plan(), np.array([1.0, 2.0]))
    'the importance in its line'
    """
    is_weighted = plan.sample_weight is not None if weight is None else bool((weight != 1.0).any())
    names = [repr(name) for name in (plan.sample_weight, plan.exposure) if name is not None]
    column = f"column {' and '.join(names)}" if names else "the importance in its line"
    return column if is_weighted else ""


def learner_name(model: Any) -> str:
    """The learner, and whether its weights are averaged."""
    return f"{model.options.learner}{', averaged' if model.options.average else ''}"


def describe(trained: Trained) -> str:
    """One line on the target, the loss and the learner."""
    goal = goal_of(trained, "" if trained.progress.complete else " so far")
    return f"{goal}; loss {loss_name(trained.model)}, learner {learner_name(trained.model)}"


def without_weights(model: Any) -> str:
    """The reason why features have no weights in a model, as a sentence."""
    if model.pool is not None:
        return "Features have no weights: the model is a mixture of trees and linear learners."
    support = model.n_support if model.kind == "path" else model.predictor.bank.n_support
    return f"Features have no weights: the model is made of {support:,} rows, in the space of a kernel."


def sentence(text: str) -> str:
    """Capitalise the first letter of a text.

    >>> sentence("from Bath")
    'From Bath'
    """
    return text[:1].upper() + text[1:]
