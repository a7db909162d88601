"""Iterative regularization: stopping times, steps and bounds of the subgradient method, and its estimators."""
