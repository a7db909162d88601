"""Model files: their contents, and writing, reading and checking them, see :mod:`tunefree.model_files.trained`."""
