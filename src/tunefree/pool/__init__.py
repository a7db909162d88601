"""The model, and the pool: online learners and generations trained in one pass, and mixed with learned weights.

:mod:`tunefree.pool.model` is the model of commands and estimators. :mod:`tunefree.pool.pool` is the loop over rows, and
:mod:`tunefree.pool.slots` lists its members. :mod:`tunefree.pool.single` is a learner that predicts alone.
"""
