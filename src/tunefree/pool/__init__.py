"""The pool: online learners and generations on one pass, mixed by rules that learn.

:mod:`tunefree.pool.pool` is the loop over rows; :mod:`tunefree.pool.slots` says who its members are;
:mod:`tunefree.pool.model` shows it to the commands and estimators as the models before it.

This package may import generations, mixing, the papers' packages, core, and the linear members of ``model``.
"""
