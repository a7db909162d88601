"""What a model file holds, and how it is written, read and checked.

A :class:`tunefree.model_files.trained.Trained` is a model with the encoder of its rows, the plan of its training
(:mod:`plan`) and how far that has come (:mod:`progress`). A file is its arrays with a header. Nothing is made of a file
before :mod:`schemas` has checked each part, and nothing is returned before it has checked them together.

This package may import pool and what is below it. A part that is added to models declares its state itself
(:mod:`tunefree.core.part`), a new kind of model is an entry of ``schemas.KINDS``, and an option of a training a field
of ``Plan``.
"""
