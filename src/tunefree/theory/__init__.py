"""Theory: the papers' bounds and rates as functions, and certificates of learned models.

``evidence`` computes the certificate of a sequence of predictions against linear models. ``kernel_certificates`` does
so against functions of a reproducing kernel Hilbert space. ``bounds`` has the regret bounds, and ``risk`` the
online-to-batch bound on the risk. ``stopping_times`` is Lin, Rosasco, Zhou 2016. ``mixing`` bounds the loss of a
mixture of members. What only the papers need is in :mod:`tunefree.papers`.
"""
