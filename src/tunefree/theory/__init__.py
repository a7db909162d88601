"""What the papers prove, as functions: when to stop, how fast the risk falls, and what can be measured.

``early_stopping`` is Lin, Rosasco, Zhou 2016; ``sgd_rates`` is Nitanda, Suzuki 2019; ``excess`` measures excess risk
and excess error where the Bayes rule is known.
"""

from tunefree.theory.early_stopping import (
    StoppingTime,
    hinge_schedule,
    largest_step,
    optimisation_bound,
    stopping_time,
    usual_theta,
)
from tunefree.theory.excess import Estimate, bregman, excess_error, excess_risk, excess_risk_by_bregman
from tunefree.theory.sgd_rates import (
    least_offset,
    logistic_rate,
    sgd_rate,
    sgd_rounds,
    sgd_threshold,
    variance_constant,
)

__all__ = [
    "Estimate",
    "StoppingTime",
    "bregman",
    "excess_error",
    "excess_risk",
    "excess_risk_by_bregman",
    "hinge_schedule",
    "largest_step",
    "least_offset",
    "logistic_rate",
    "optimisation_bound",
    "sgd_rate",
    "sgd_rounds",
    "sgd_threshold",
    "stopping_time",
    "usual_theta",
    "variance_constant",
]
