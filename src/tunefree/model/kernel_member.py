"""A kernel learner as a member of a model: its state, its average, its objective and its calibration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.states import filled, flatten
from tunefree.kernel import contract
from tunefree.kernel.learners import ALL
from tunefree.learners.contract import traits_of
from tunefree.losses.objectives import with_slopes_as_they_come
from tunefree.model import calibration
from tunefree.model.members import Setting, name_of


@dataclass
class KernelMember:
    """One learner of a bank of kernel learners."""

    setting: Setting
    state: Any
    average: contract.Average
    record: contract.Record
    objective: Any
    calibration: Any  # None where margins are predicted as they are

    @classmethod
    def create(cls, setting: Setting, n_outputs: int, objective: Any, n_classes: int | None) -> KernelMember:
        """A member that has seen no row; ``n_classes`` is None where margins are predicted as they are."""
        own = {name: value for name, value in setting.settings.items() if name not in ("width", "growth")}
        try:
            state = ALL[setting.learner].create(n_outputs, **own)
        except TypeError:
            raise ModelError(f"{setting.learner} has no setting among {', '.join(own)}") from None
        average = contract.Average.create(n_outputs, setting.settings.get("growth", 0.0))
        made = calibration.Calibration.create(n_classes) if n_classes is not None else None
        record = contract.Record.create(n_outputs)
        return cls(setting, state, average, record, as_learned(objective, state), made)

    @property
    def name(self) -> str:
        """Learner, parameters and view, in words."""
        return name_of(self.setting)

    @property
    def exponent(self) -> int:
        """log2 of the width: of the gamma of its kernel over that of the bank."""
        return round(np.log2(self.setting.settings.get("width", 1.0)))

    def calibrated(self, margins: np.ndarray, y: np.ndarray, evaluation_weight: np.ndarray) -> np.ndarray:
        """Predictions of margins (n, K), each before the calibration learns its row."""
        if self.calibration is None:
            return margins
        n_outputs = margins.shape[1]
        codes = np.where(y > 0, 1, 0) if n_outputs == 1 else y
        return like_margins(calibration.learn(self.calibration, margins, codes, evaluation_weight), n_outputs)

    def predict(self, margins: np.ndarray) -> np.ndarray:
        """Predictions of the margins (n, K) of new rows."""
        if self.calibration is None:
            return self.objective.predictions_of(margins)
        return like_margins(calibration.log_odds(self.calibration, margins), margins.shape[1])

    def close_record(self) -> None:
        """The certificate is of the rows so far: from here on the learner's sums are of rows that come again as well,
        or of other functions."""
        if hasattr(self.state, "norms") and (self.record.norms < 0.0).any():
            self.record.norms[:], self.record.paths[:] = self.state.norms, self.state.slopes

    def restart_average(self) -> None:
        """Average from here on: functions of a later pass are better than those of the first."""
        self.close_record()
        self.average.shares[()] = self.average.rounds[()] = 0.0

    def add_class(self, objective: Any, placed: np.ndarray, n_classes: int) -> None:
        """Know one more class; new margins are ``placed`` (new K, old K) times the old ones.

        Where the margin of two classes becomes that of class 1 under a softmax, the gradients of the rows before are
        those of class 0 too, with the other sign, which nothing has kept: no certificate holds any more.
        """
        if placed.shape[1] == 1 and placed[0, 0] == 0.0 and self.record.rounds[()] > 0.0:
            self.record.inner[()] = math.inf
        known = self.state, self.average, self.record
        self.state, self.average, self.record = (spread(state, np.abs(placed)) for state in known)
        widened = as_learned(objective, self.state)
        self.objective = widened._replace(steepest=max(widened.steepest, self.objective.steepest))
        if self.calibration is not None:
            self.calibration = calibration.add_classes(self.calibration, n_classes, int(self.record.rounds[()]))

    def save_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header from which :meth:`restore` fills a member of the same setting."""
        arrays: dict[str, np.ndarray] = {}
        scalars: dict[str, float] = {}
        for name in ("state", "average", "record", "calibration"):
            if getattr(self, name) is not None:
                more = flatten(name, getattr(self, name), 2**31)
                arrays, scalars = arrays | more[0], scalars | more[1]
        objective = {name: value for name, value in self.objective._asdict().items() if name != "loss"}
        return arrays, {"scalars": scalars, "objective": objective}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Take over what :meth:`save_state` wrote."""
        for name in ("state", "average", "record", "calibration"):
            if getattr(self, name) is not None:
                setattr(self, name, filled(name, getattr(self, name), arrays, header["scalars"]))
        self.objective = self.objective._replace(**header["objective"])


def as_learned(objective: Any, state: Any) -> Any:
    """The objective as the learner wants it, with slopes clipped at the steepest before or not."""
    return with_slopes_as_they_come(objective) if traits_of(state).takes_slopes_as_they_come else objective


def spread(state: Any, placed: np.ndarray) -> Any:
    """The state with its statistics of each output, (K,) arrays, multiplied by ``placed`` (new K, old K)."""
    return type(state)(*(placed @ value if getattr(value, "ndim", 0) == 1 else value for value in state))


def like_margins(log_odds: np.ndarray, n_outputs: int) -> np.ndarray:
    """Log-odds (n, classes) in the shape of margins (n, K)."""
    return log_odds[:, 1:2] - log_odds[:, :1] if n_outputs == 1 else log_odds
