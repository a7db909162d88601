"""Theory: the papers' bounds and rates as functions, and certificates of learned models.

``evidence`` computes the certificate of a sequence of predictions against linear models. ``bounds`` has the regret
bounds of linear learners, ``risk`` the online-to-batch bound on the risk, and ``mixing`` bounds the loss of a mixture
of members. What only the papers need is in :mod:`tunefree.papers`.
"""
