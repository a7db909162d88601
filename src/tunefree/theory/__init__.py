"""Theory: the papers' bounds and rates as functions, and certificates of learned models.

``evidence`` computes the certificate of a sequence of predictions against linear models. ``kernel_certificates`` does
so against functions of a reproducing kernel Hilbert space. ``bounds`` has the regret bounds, and ``risk`` the
online-to-batch bound on the risk. ``stopping_times`` is Lin, Rosasco, Zhou 2016; ``sgd_rates`` is Nitanda, Suzuki 2019.
``excess`` estimates excess risk and excess classification error where the Bayes rule is known.
"""

from tunefree.theory.bounds import (
    drift_of_mean,
    growing_pistol_bound,
    log_phi,
    paper_bound,
    pistol_bound,
    pistol_parameter,
    scinol1_bound,
    scinol2_bound,
)
from tunefree.theory.evidence import Certificate, Evidence, best_lower_bound, certify, widened
from tunefree.theory.excess import Estimate, bregman, excess_error, excess_risk, excess_risk_by_bregman
from tunefree.theory.kernel_certificates import KernelCertificate
from tunefree.theory.risk import Progressive
from tunefree.theory.sgd_rates import (
    least_offset,
    logistic_rate,
    sgd_rate,
    sgd_rounds,
    sgd_threshold,
    variance_constant,
)
from tunefree.theory.stopping_times import (
    StoppingTime,
    hinge_schedule,
    largest_step,
    optimisation_bound,
    stopping_time,
    usual_theta,
)

__all__ = [
    "Certificate",
    "Estimate",
    "Evidence",
    "KernelCertificate",
    "Progressive",
    "StoppingTime",
    "best_lower_bound",
    "bregman",
    "certify",
    "drift_of_mean",
    "excess_error",
    "excess_risk",
    "excess_risk_by_bregman",
    "growing_pistol_bound",
    "hinge_schedule",
    "largest_step",
    "least_offset",
    "log_phi",
    "logistic_rate",
    "optimisation_bound",
    "paper_bound",
    "pistol_bound",
    "pistol_parameter",
    "scinol1_bound",
    "scinol2_bound",
    "sgd_rate",
    "sgd_rounds",
    "sgd_threshold",
    "stopping_time",
    "usual_theta",
    "variance_constant",
    "widened",
]
