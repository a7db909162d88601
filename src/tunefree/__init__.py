"""tunefree: linear and kernel predictors from streams and tables, with nothing to tune."""
