"""What the first pass over the rows proves: evidence for certificates, and progressive losses that bound risks."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from tunefree.core.states import filled, flatten
from tunefree.losses.objectives import chosen
from tunefree.model.group import LabelledRows
from tunefree.model.options import ModelOptions
from tunefree.theory.evidence import Certificate, Evidence, certify, record_evidence, widened
from tunefree.theory.risk import Progressive

MOST_NATS = 10.0  # log-losses are cut there where the risk of predictions is bounded


class FirstPassRecord:
    """Sums over the rows of the first pass, each predicted before it was learned.

    Parameters
    ----------
    options : ModelOptions
    n_features, n_outputs : int

    Attributes
    ----------
    evidence : Evidence
    risks : dict of str to Progressive
        ``"error"`` and ``"log_loss"``, for classes.
    """

    def __init__(self, options: ModelOptions, n_features: int, n_outputs: int) -> None:
        self.evidence = Evidence.create(n_features, n_outputs)
        self.risks = {"error": Progressive(), "log_loss": Progressive(MOST_NATS)}
        self._of_classes, self._of_log_losses = options.task == "classification", not options.is_calibrated

    def reserve_features(self, n_features: int, n_outputs: int, objective: Any) -> None:
        """Have room for at least so many features; the room doubles, so that the cost of copies stays small."""
        room = len(self.evidence.coordinates)
        if n_features > room:
            self.evidence = widened(self.evidence, max(n_features, 2 * room), n_outputs, objective)

    def add_outputs(self, n_outputs: int, objective: Any) -> None:
        """Have more outputs; ``objective`` is that of the predictions from now on."""
        self.evidence = widened(self.evidence, len(self.evidence.coordinates), n_outputs, objective)

    def add(self, objective: Any, rows: LabelledRows, predictions: np.ndarray, row_losses: np.ndarray) -> None:
        """Add rows, with their predictions (n, K) and the losses of these."""
        X, y, _, weight = rows
        record_evidence(self.evidence, objective, X, y, weight, predictions, row_losses)
        if self._of_classes:
            codes = np.where(y > 0, 1, 0) if predictions.shape[1] == 1 else y
            kept = weight > 0
            self.risks["error"].add(weight[kept], (chosen(predictions) != codes)[kept])
            if self._of_log_losses:
                self.risks["log_loss"].add(weight[kept], row_losses[kept])

    def certificate(self, n_features: int, objective: Any) -> Certificate:
        """What is known of every linear model on these rows."""
        evidence = self.evidence
        known = {name: getattr(evidence, name)[:n_features] for name in ("features", "coordinates")}
        return certify(evidence._replace(**known), objective)

    def save_state(self, n_features: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header from which :meth:`restore` makes the same record."""
        arrays = flatten("evidence", self.evidence, n_features)[0]
        return arrays, {"risks": {name: asdict(risk) for name, risk in self.risks.items()}}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Take over what :meth:`save_state` wrote."""
        self.evidence = filled("evidence", self.evidence, arrays, {})
        self.risks = {name: Progressive(**risk) for name, risk in header["risks"].items()}
