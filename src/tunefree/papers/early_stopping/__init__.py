"""Iterative regularization: the subgradient method, and the spaces it descends in."""
