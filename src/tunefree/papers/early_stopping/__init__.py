"""Iterative regularization: the subgradient method, and the spaces it descends in."""

EARLY_STOPPING = "early-stopping"  # the learner, as plans name it
