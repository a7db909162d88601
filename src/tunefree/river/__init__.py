"""Online learners for river (`pip install 'tunefree[river]'`): one row, a dict, at a time."""

from __future__ import annotations

from tunefree.river.scinol import ScInOLClassifier, ScInOLRegressor

__all__ = ["ScInOLClassifier", "ScInOLRegressor"]
