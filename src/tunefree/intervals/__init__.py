"""Conformal prediction: intervals and sets of classes that contain the target with a requested probability."""
