"""Learners in spaces of functions: kernels, finite dictionaries, and the subgradient method in both."""
