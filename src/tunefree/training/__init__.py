"""Training of a model on a source of rows; the entry point is :mod:`tunefree.training.training`."""
