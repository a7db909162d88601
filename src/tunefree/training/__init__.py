"""From a source of rows to a trained model: :mod:`tunefree.training.training` is the whole of it."""
