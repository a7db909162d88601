"""Generations: batch models of the rows so far, grown on the way, whose leaves go on learning.

Rows become columns (:mod:`columns`), some are kept (:mod:`reservoir`), trees and linear models are grown on them
(:mod:`kinds`), and learners of the papers correct these row by row (:mod:`leaves`, :mod:`generation`).

This package may import learners, losses and core. A new kind of generation is an entry of ``kinds.KINDS``.
"""
