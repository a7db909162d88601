"""Learning in reproducing kernel Hilbert spaces: kernels, sums of their values over a support, and the learners."""

from __future__ import annotations

NAMES = ("kernel-pistol", "kernel-sgd", "kernel-regularized-sgd", "kernel-online-regularized", "kernel-perceptron")
