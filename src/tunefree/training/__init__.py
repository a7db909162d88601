"""Training of a model on a source of rows; begin to read at :mod:`tunefree.training.training`."""
