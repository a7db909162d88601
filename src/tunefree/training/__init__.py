"""Training: from a source of rows to a trained model.

:mod:`training` is the whole of it. :mod:`reading` looks at the first rows, fixes the encoder by them, and reads ahead.

This package may import model_files and what is below it. What is to be noted of rows as they are learned is an observer
of the pass; what decides how rows are read is a field of :class:`tunefree.model_files.plan.Plan`.
"""
