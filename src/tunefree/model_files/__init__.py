"""Model files: their contents, and how they are written, read and checked, see :mod:`tunefree.model_files.trained`."""
