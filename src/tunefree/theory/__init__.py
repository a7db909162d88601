"""Certificates of learned models, bounds on their losses and risk, and tests for changes along a stream."""
