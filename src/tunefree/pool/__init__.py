"""The model, and the pool: online learners and generations on one pass, mixed by rules that learn.

:mod:`tunefree.pool.model` is the model of commands and estimators. :mod:`tunefree.pool.pool` is the loop over rows, and
:mod:`tunefree.pool.slots` says who its members are. :mod:`tunefree.pool.single` is a learner that predicts alone.
"""
