"""A kernel learner as a member of a model: its state, its objective and its calibration."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.fields import FEATURE, OUTPUT
from tunefree.core.part import LEARNED, Part, argument, child
from tunefree.core.rows import Rows
from tunefree.losses.objectives import Objective, measured
from tunefree.papers.kernel.pistol import KernelPiSTOL
from tunefree.pool import calibration
from tunefree.pool.linear_members import Setting, name_of
from tunefree.pool.rows import LabelledRows
from tunefree.theory.evidence import Evidence, record_evidence, widened


class KernelMember(Part):
    """One learner of a bank of kernel learners.

    Parameters
    ----------
    setting : Setting
    n_outputs : int
    objective : Objective
    n_classes : int or None
        None where margins are predicted as they are.
    """

    setting = argument()
    objective = child(Objective, LEARNED)
    state = child(KernelPiSTOL, LEARNED, axes={OUTPUT: "K"})
    calibration: calibration.Calibration | None = child(calibration.Calibration, LEARNED, may_be_none=True)
    evidence: Any = child(Evidence, LEARNED, may_be_none=True, axes={FEATURE: 1, OUTPUT: "K"})

    def __init__(self, setting: Setting, n_outputs: int, objective: Objective, n_classes: int | None) -> None:
        self.setting = setting
        settings = {name: value for name, value in setting.settings.items() if name != "width"}
        try:
            self.state = KernelPiSTOL(0, n_outputs, **settings)
        except TypeError:
            raise ModelError(f"{setting.learner} has no setting among {', '.join(settings)}") from None
        self.calibration = None if n_classes is None else calibration.Calibration.create(n_classes)
        self.objective = objective.copied()
        self.evidence = Evidence(1, n_outputs) if objective.task == "classification" else None

    @property
    def name(self) -> str:
        """Learner, parameters and view, in words."""
        return name_of(self.setting)

    @property
    def exponent(self) -> int:
        """log2 of the width: of the gamma of its kernel over that of the bank."""
        return round(np.log2(self.setting.settings.get("width", 1.0)))

    def judged(self, margins: np.ndarray, rows: LabelledRows) -> np.ndarray:
        """Predictions of margins (n, K), each before the calibration learns its row; evidence records the margins."""
        y, evaluation_weight = rows.y, rows.evaluation_weight
        if self.evidence is not None:
            weight = np.where(rows.weight > 0.0, evaluation_weight, 0.0)
            # Of a function in a kernel's space evidence has no sums for features but the constant.
            nowhere = np.zeros(len(y), np.int64)
            no_entries = Rows(nowhere, nowhere, np.zeros(0, np.uint32), np.zeros(0))
            losses = measured(self.objective, y, margins)
            record_evidence(self.evidence, self.objective, no_entries, y, weight, margins, losses)
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

    def begin_pass(self) -> None:
        """Average from here on: later functions are better than those of the first pass, whose certificate ends."""
        if self.evidence is not None:
            self.evidence.inner[0] = math.inf
        self.state.average_weight[0] = 0.0

    def add_class(self, objective: Objective, placed: np.ndarray, n_classes: int) -> None:
        """Know one more class; new margins are ``placed`` (new K, old K) times the old ones.

        Where the margin of two classes becomes that of class 1 under a softmax, the gradients of the rows before are
        those of class 0 too, with the other sign, which nothing has kept: no certificate holds any more.
        """
        was_one = placed.shape[1] == 1 < len(placed)
        steepest, rows = self.objective.steepest, self.evidence.rounds[0]
        if was_one and placed[0, 0] == 0.0 and rows > 0.0:
            self.evidence.inner[0] = math.inf
        self.evidence = widened(self.evidence, 1, len(placed), objective)
        self.state = self.state.with_outputs(len(placed), copies=was_one and placed[0, 0] != 0.0)
        self.objective = objective.copied()
        self.objective.steepest = max(objective.steepest, steepest)
        if self.calibration is not None:
            self.calibration = calibration.add_classes(self.calibration, n_classes, int(rows))


def like_margins(log_odds: np.ndarray, n_outputs: int) -> np.ndarray:
    """Log-odds (n, classes) in the shape of margins (n, K)."""
    return log_odds[:, 1:2] - log_odds[:, :1] if n_outputs == 1 else log_odds
