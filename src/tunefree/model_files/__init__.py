"""Model files: their contents, and how they are written, read and checked, see :mod:`tunefree.model_files.trained`.

Nothing is made of a file before :mod:`schemas` has checked each part, and nothing is returned before it has checked
them together. A part that is added to models declares its state itself (:mod:`tunefree.core.part`), a new kind of model
is an entry of ``schemas.KINDS``, and an option of a training a field of ``Plan``.
"""
