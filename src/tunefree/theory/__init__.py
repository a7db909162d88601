"""Theory: the papers' bounds and rates as functions, and certificates of learned models.

``evidence`` computes the certificate of a sequence of predictions against linear models. ``kernel_certificates`` does
so against functions of a reproducing kernel Hilbert space. ``bounds`` has the regret bounds, and ``risk`` the
online-to-batch bound on the risk; ``pistol_risk`` is Orabona 2014 for finite numbers of rounds. ``stopping_times`` is
Lin, Rosasco, Zhou 2016; ``sgd_rates`` is Nitanda, Suzuki 2019. ``excess`` estimates excess risk and excess
classification error where the Bayes rule is known. ``mixing`` bounds the loss of a mixture of members.
"""

from tunefree.theory.bounds import (
    drift_of_mean,
    growing_pistol_bound,
    log_phi,
    oracle_bound,
    paper_bound,
    pistol_bound,
    pistol_parameter,
    scinol1_bound,
    scinol2_bound,
)
from tunefree.theory.evidence import Certificate, Evidence, best_lower_bound, certify, widened
from tunefree.theory.excess import Estimate, bregman, excess_error, excess_risk, excess_risk_by_bregman
from tunefree.theory.kernel_certificates import KernelCertificate
from tunefree.theory.mixing import correction_excess, interval_cost, mixing_excess
from tunefree.theory.pistol_risk import (
    averaged_sgd_excess,
    constants_of,
    excess_error_bound,
    excess_risk_bound,
    excess_risk_rate,
    lipschitz_excess_risk_bound,
    perceptron_mistakes,
    smooth_regret_bound,
    smooth_risk_bound,
)
from tunefree.theory.risk import Progressive
from tunefree.theory.sgd_rates import (
    least_offset,
    logistic_rate,
    sgd_penalty,
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
    "averaged_sgd_excess",
    "best_lower_bound",
    "bregman",
    "certify",
    "constants_of",
    "correction_excess",
    "drift_of_mean",
    "excess_error",
    "excess_error_bound",
    "excess_risk",
    "excess_risk_bound",
    "excess_risk_by_bregman",
    "excess_risk_rate",
    "growing_pistol_bound",
    "hinge_schedule",
    "interval_cost",
    "largest_step",
    "least_offset",
    "lipschitz_excess_risk_bound",
    "log_phi",
    "logistic_rate",
    "mixing_excess",
    "optimisation_bound",
    "oracle_bound",
    "paper_bound",
    "perceptron_mistakes",
    "pistol_bound",
    "pistol_parameter",
    "scinol1_bound",
    "scinol2_bound",
    "sgd_penalty",
    "sgd_rate",
    "sgd_rounds",
    "sgd_threshold",
    "smooth_regret_bound",
    "smooth_risk_bound",
    "stopping_time",
    "usual_theta",
    "variance_constant",
    "widened",
]
