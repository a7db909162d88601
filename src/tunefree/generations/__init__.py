"""Generations: batch models that are grown during the stream on the rows so far, and whose leaves keep learning.

Rows become columns (:mod:`columns`), and some rows are kept (:mod:`reservoir`). Trees and linear models are grown on
them (:mod:`kinds`), and online learners correct their predictions row by row (:mod:`leaves`, :mod:`generation`).

This package may import learners, losses and core. A new kind of generation is an entry of ``kinds.KINDS``.
"""
