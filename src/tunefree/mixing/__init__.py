"""Mixing: members' predictions become one prediction, by rules that learn row by row.

A base mixture (:mod:`tunefree.mixing.bases`) averages the members. Corrections
(:mod:`tunefree.mixing.corrections`) are learners of this package on the members' predictions, which begin at the base.
Weights on base and corrections have the last word (:mod:`tunefree.mixing.mixture`).
"""
