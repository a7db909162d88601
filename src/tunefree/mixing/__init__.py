"""Mixing: combines the predictions of members into one prediction, with weights that are learned row by row.

A base mixture (:mod:`tunefree.mixing.bases`) averages the members. Corrections
(:mod:`tunefree.mixing.corrections`) are learners on the members' predictions that start from the base. The prediction
is a weighted mean of the base and the corrections (:mod:`tunefree.mixing.mixture`).
"""
