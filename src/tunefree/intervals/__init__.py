"""Conformal prediction: intervals and sets of classes that hold the target as often as asked for."""
