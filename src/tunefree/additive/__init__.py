"""Additive models: curves of single columns, and products of two columns' coarse curves."""
