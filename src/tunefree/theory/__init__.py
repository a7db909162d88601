"""Theory: the papers' bounds and rates as functions, and certificates of learned models.

``evidence`` computes the certificate of a sequence of predictions against linear models. ``kernel_certificates`` does
so against functions of a reproducing kernel Hilbert space. ``bounds`` has the regret bounds, and ``risk`` the
online-to-batch bound on the risk; ``pistol_risk`` is Orabona 2014 for finite numbers of rounds. ``stopping_times`` is
Lin, Rosasco, Zhou 2016; ``sgd_rates`` is Nitanda, Suzuki 2019. ``excess`` estimates excess risk and excess
classification error where the Bayes rule is known. ``mixing`` bounds the loss of a mixture of members.
"""
