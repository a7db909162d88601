"""Output columns of predictions in files and responses. Commands build their options from it, so it imports little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tunefree.core.errors import ModelError
from tunefree.core.parameters import OUTPUT, Parameters, parameter

CONFORMAL = ("interval", "quantiles", "set")  # columns that quantify uncertainty


@dataclass(frozen=True)
class OutputColumns(Parameters):
    """The columns of each prediction, beside the prediction itself."""

    ids: tuple[str, ...] = parameter(
        (), "Column of the data to write before the predictions, as COL' if COL is taken.", OUTPUT, metavar="COL"
    )
    threshold: float | None = parameter(
        None,
        "Predict the second of two classes if its probability is at least P; by default the more probable one.",
        OUTPUT,
        low=0,
        high=1,
        metavar="P",
    )
    top: int | None = parameter(
        None, "Write the K most probable classes in descending order, instead of all probabilities.", OUTPUT, low=1
    )
    interval: tuple[float, ...] = parameter(
        (), "Prediction intervals of these coverages, such as .9 or .8,.95: columns low[0.9] and high[0.9].", OUTPUT
    )
    quantiles: tuple[float, ...] = parameter(
        (), "Quantiles of the target, such as .1,.5: columns quantile[0.1].", OUTPUT
    )
    set: tuple[float, ...] = parameter(
        (), "Prediction sets of classes, of these coverages, such as .9: columns set[0.9].", OUTPUT
    )
    conditional: str | None = parameter(
        None, "With `set`: ensure the coverage for each class, not only overall.", OUTPUT, choices=("class",)
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in [name for name in CONFORMAL if getattr(self, name)]:
            from tunefree.intervals.conformal import checked_parts

            parts = checked_parts(name, getattr(self, name)).tolist()
            if len({*parts}) < len(parts):
                raise ModelError(f"`{name}` has a number twice")
        if self.conditional is not None and not self.set:
            raise ModelError("`conditional` has no effect without `set`; leave it out, or ask for sets")

    def check(self, model: Any) -> None:
        """Raise a ModelError if a model cannot produce these columns."""
        if model.task == "regression" and (self.threshold is not None or self.top is not None):
            option = "threshold" if self.top is None else "top"
            raise ModelError(f"`{option}` is for classes, and this model predicts numbers; leave it out")
        if self.threshold is not None and len(model.classes) != 2:
            raise ModelError(f"`threshold` is for two classes, and the model has {len(model.classes)}; leave it out")
        asked = [name for name in CONFORMAL if getattr(self, name)]
        if asked and model.pool is None:
            raise ModelError(f"`{asked[0]}` needs the evidence that the pool has; train without `learner`")
        for name in asked:
            if (name == "set") != (model.task == "classification"):
                of, predicts = ("classes", "numbers") if name == "set" else ("numbers", "classes")
                raise ModelError(f"`{name}` is for {of}, and this model predicts {predicts}; leave it out")


PLAIN = OutputColumns()
