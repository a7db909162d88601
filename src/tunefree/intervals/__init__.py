"""Conformal prediction: intervals around numbers, and sets of classes, that hold the target as often as asked for.

Each row was predicted before it was learned, and tells by its score how far off that was. Quantiles of these scores
turn a prediction into an interval or a set (:mod:`tunefree.intervals.conformal`); for numbers a score is in units that
depend on the row (:mod:`tunefree.intervals.widths`). While a stream goes on the quantiles follow what was covered
(:mod:`tunefree.intervals.adaptive`).
"""
