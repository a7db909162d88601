"""Stopping times, step sizes and rates of the excess risk for the subgradient method (early stopping).

Lin, Rosasco, Zhou: Iterative regularization for learning with convex loss functions (JMLR 17, 2016): Theorems 4, 7, 8,
11, 12, Corollaries 5, 6, 9, 10 and Lemmas 17, 19, 20. Their assumptions on the unknown distribution:

    beta   exponent of the approximation error, in (0, 1]; 1 if the best predictor lies in the space       (8)
    tau    exponent of the variance, in [0, 1]; 0 always holds for Lipschitz losses, 1 for the square loss (5)
    zeta   exponent of the capacity, in (0, 2); the limit 2 assumes nothing                                (9)

The step of Theorem 12 is (10) with c_q = 1/2 for the hinge, which (4) allows and the proof of Theorem 11 takes. With it
(21), the bound kappa on subgradients by (kappa + 1) / 2, holds for kappa <= 1 only. Steps here are those of c_q = 1,
half as large, for which it always holds. Two printed statements are corrected. Corollary 10 omits the factor L = 2 of
the square loss. The first bound of Lemma 20 has one step too many (f_T is the iterate after T - 1 steps). In both cases
the condition that the proof needs is used.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.numbers import LARGEST_EXPONENT, MOST
from tunefree.papers.growth import Growth, at_zero, growth, variance_exponent
from tunefree.theory.bounds import Bound, no_bound

OUTPUTS = ("last", "average", "best")
PAPER = "Lin, Rosasco, Zhou 2016"


class StoppingTime(NamedTuple):
    """A stopping time and its rate: excess risk <= C m^-rate (times ln m) with high probability."""

    iterations: int  # T = ceil(m^exponent), at most about the largest finite number
    exponent: float  # gamma
    rate: float  # alpha
    logarithm: bool  # whether there is a further factor ln m
    theta: float  # steps are eta_1 t^-theta
    source: str  # the statement of the paper


def usual_theta(loss: Any, bound: float = 1.0) -> float:
    """Step decay with the earliest stopping time at the best rate: 0 for smooth losses, else (q + 1) / (q + 2).

    Parameters
    ----------
    loss : loss
    bound : float, default 1
        Largest absolute target.

    Examples
    --------
    >>> from tunefree.losses import Hinge, Logistic
    >>> usual_theta(Hinge()), usual_theta(Logistic())
    (0.5, 0.0)
    """
    q = _growth(loss, bound).power
    return 0.0 if loss.smoothness < math.inf else (q + 1.0) / (q + 2.0)


def stopping_time(
    samples: float,
    loss: Any,
    *,
    theta: float | None = None,
    beta: float = 1.0,
    tau: float | None = None,
    zeta: float = 2.0,
    output: str = "last",
    smooth: bool | None = None,
) -> StoppingTime:
    """Number of iterations after which to stop, and the rate of the excess risk.

    Smooth losses use Theorem 8 (and Corollaries 9 and 10). Other losses use Theorem 4 for the last iterate (Corollaries
    5 and 6, and Theorem 11 for the hinge), and Theorem 7 for the average or the best iterate.

    Parameters
    ----------
    samples : float
        m, at least 1.
    loss : loss
        Its growth exponent q and its smoothness determine the theorem.
    theta : float, optional
        Decay of the steps eta_1 t^-theta: in [0, 1) for smooth losses, else in (q / (q + 1), 1). Default: see
        :func:`usual_theta`.
    beta : float, default 1
        Exponent of the approximation error, in (0, 1].
    tau : float, optional
        Exponent of the variance, in [0, 1]. Default: 1 for the square loss, 0 for others. The value 0 is proved for
        Lipschitz losses; for losses that are neither square nor Lipschitz it is an assumption.
    zeta : float, default 2
        Exponent of the capacity, in (0, 2]; the limit 2 assumes nothing.
    output : {"last", "average", "best"}, default "last"
        Which iterate is used. Theorem 8 is proved for the last one. For the other two it follows from Lemma 20, since
        their empirical error is no larger (best) or satisfies a bound of the same order (average).
    smooth : bool, optional
        Whether to use Theorem 8. Default: whether the slope of the loss is Lipschitz continuous.

    Examples
    --------
    Corollary 6: a Lipschitz loss, steps eta_1 / sqrt(t), T = ceil(m^(2/3)), rate m^(-1/3) ln m.

    >>> from tunefree.losses import Hinge, Square
    >>> stopping_time(1000, Hinge(), theta=0.5)[:4]
    (100, 0.6666666666666666, 0.3333333333333333, True)

    Corollary 10: the square loss, constant steps, T = ceil(m^(2 / ((beta + 1) (zeta + 2)))).

    >>> stopping_time(10_000, Square(), zeta=0.5)[:4]
    (40, 0.4, 0.4, False)
    """
    q = _growth(loss, 1.0).power
    smooth = loss.smoothness < math.inf if smooth is None else smooth
    tau = variance_exponent(loss) if tau is None else tau
    theta = (0.0 if smooth else (q + 1.0) / (q + 2.0)) if theta is None else float(theta)
    _check(samples, theta, beta, tau, zeta, output, 0.0 if smooth else q / (q + 1.0), smooth)
    variance, capacity = 2.0 - tau + 0.5 * zeta * tau, q * (1.0 + 0.5 * zeta)
    edge = (q + 1.0) / (q + 2.0)
    # Below the edge, the approximation error has this factor in (11) and (12).
    slow = 1.0 if smooth or theta >= edge else (theta * (1.0 + q) - q) / (1.0 - theta)
    exponent = 2.0 / (1.0 - theta) / ((1.0 + 2.0 * beta * slow) * variance + capacity)
    rate = beta / (beta * variance + 0.5 * (variance + capacity) / slow)
    logarithm = not smooth and (theta <= edge if output == "last" else theta == edge)
    source = "Theorem 8" if smooth else "Theorem 4" if output == "last" else "Theorem 7"
    return StoppingTime(_iterations(samples, exponent), exponent, rate, logarithm, theta, source)


def hinge_schedule(samples: float, beta: float, epsilon: float) -> StoppingTime:
    """Theorem 12, for the hinge loss: a stopping time that depends on m alone, T = ceil(m^(2/3 + epsilon)).

    The decay of the steps depends on the distribution instead. The excess misclassification error is at most a constant
    times m^(epsilon/4 - 1/3).

    Parameters
    ----------
    samples : float
        m, at least 1.
    beta : float
        Exponent of the approximation error, above (4 - 3 epsilon) / (4 + 6 epsilon) and below 1.
    epsilon : float
        Between 0 and 1/3.

    Examples
    --------
    >>> schedule = hinge_schedule(1000, beta=0.95, epsilon=0.1)
    >>> round(schedule.theta, 6), round(schedule.exponent, 6), round(schedule.rate, 6)
    (0.550225, 0.766667, 0.308333)
    """
    if not 0.0 < epsilon < 1.0 / 3.0:
        raise ValueError(f"epsilon must lie between 0 and 1/3, not {epsilon}")
    least = (4.0 - 3.0 * epsilon) / (4.0 + 6.0 * epsilon)
    if not least < beta < 1.0:
        raise ValueError(f"beta must lie between {least:.6g} and 1 for this epsilon, not {beta}")
    theta = (4.0 * beta - 1.0 + 3.0 * epsilon * (2.0 * beta + 1.0)) / ((2.0 * beta + 1.0) * (2.0 + 3.0 * epsilon))
    exponent = 2.0 / 3.0 + epsilon
    return StoppingTime(
        _iterations(samples, exponent), exponent, 1.0 / 3.0 - 0.25 * epsilon, False, theta, "Theorem 12"
    )


def largest_step(
    loss: Any, theta: float, kappa: float, bound: float = 1.0, outputs: int = 1, softmax: bool = False
) -> float:
    """Largest eta_1 that the theorems allow: by Theorem 8 for smooth losses, else by (10).

    Parameters
    ----------
    loss : loss
    theta : float
        Decay of the steps.
    kappa : float
        sup_x sqrt(K(x, x)).
    bound : float, default 1
        Largest absolute target.
    outputs : int, default 1
        Number of margins with a loss each: |V|_0 is then that of the sum of the losses.
    softmax : bool, default False
        Whether the margins have one loss in common, the multinomial logistic one. Its slopes are 1/2-Lipschitz, not
        1/4-Lipschitz as those of the logistic loss of two classes, and |V|_0 is the logarithm of their number.

    Examples
    --------
    >>> from tunefree.losses import Hinge, Logistic
    >>> largest_step(Hinge(), 0.5, kappa=1.0), round(largest_step(Logistic(), 0.0, kappa=1.0), 4)
    (0.125, 0.7213)
    >>> largest_step(Logistic(), 0.0, kappa=4.0, outputs=3, softmax=True)
    0.125
    """
    if softmax:
        return min((1.0 - theta) / (2.0 * math.log(outputs)), 2.0 / (kappa * kappa))
    if loss.smoothness < math.inf:
        return min((1.0 - theta) / (2.0 * outputs * at_zero(loss, bound)), 1.0 / (loss.smoothness * kappa * kappa))
    steep = math.sqrt(outputs) * gradient_bound(_growth(loss, bound), kappa)
    return min(math.sqrt(0.5 * (1.0 - theta)) / steep, (1.0 - theta) / (4.0 * outputs * at_zero(loss, bound)))


def gradient_bound(slopes: Growth, kappa: float) -> float:
    """Bound on the norm of the gradient divided by max(1, ||f||^q), as required in (21).

    The paper has c_q (kappa + 1)^(q+1). For 0 < q < 1 and large kappa this is less than c_q (kappa + kappa^(q+1)),
    which its proof needs. The larger of the two is returned.
    """
    q, constant = slopes
    printed = (kappa + 1.0) ** (q + 1.0)
    return constant * (max(printed, kappa + kappa ** (q + 1.0)) if q > 0.0 else printed)


def optimisation_bound(
    iterations: int,
    loss: Any,
    *,
    theta: float,
    step: float,
    kappa: float,
    radius: float,
    bound: float = 1.0,
    output: str = "last",
) -> float:
    """A priori bound on the empirical error minus that of any predictor of norm at most ``radius``.

    Smooth losses use Lemma 20. Other losses use Lemma 19 for the average and the best iterate, and Lemma 17 for the
    last one. The last term of Lemma 17 is omitted: it is at most 0 for the best predictor of norm ``radius`` as long as
    no iterate has a larger norm. The average iterate of a smooth loss is not treated in the paper. Its bound follows
    from the sum in the proof of Lemma 20, as long as no iterate has a larger norm.

    Parameters
    ----------
    iterations : int
        T, at least 3.
    loss : loss
    theta, step : float
        Steps are step t^-theta; ``step`` must not exceed :func:`largest_step`.
    kappa : float
        sup_x sqrt(K(x, x)).
    radius : float
        Norm of the comparators.
    bound : float, default 1
        Largest absolute target.
    output : {"last", "average", "best"}, default "last"

    Examples
    --------
    >>> from tunefree.losses import Logistic
    >>> round(optimisation_bound(101, Logistic(), theta=0.0, step=0.5, kappa=1.0, radius=2.0), 6)
    0.04
    """
    if iterations < 3 or output not in OUTPUTS:
        raise ValueError(f"there must be at least 3 iterations, and output one of {', '.join(OUTPUTS)}")
    T = float(iterations)
    if loss.smoothness < math.inf:
        mass = step * sum(t**-theta for t in range(1, iterations))
        if output != "average":
            return radius**2 / (2.0 * mass)
        # Lemma 20 bounds the sum of eta_t (error of f_{t+1}). The average has the errors of f_t, so f_1 = 0 is added.
        return (0.5 * radius**2 + step * at_zero(loss, bound)) / (mass + step * T**-theta)
    slopes = _growth(loss, bound)
    q, decay = slopes.power, (2.0 + slopes.power) * theta - slopes.power  # q* in the proof of Lemma 17
    scale = step * gradient_bound(slopes, kappa) ** 2
    if decay > 1.0:
        factor, last, mean = 1.0 / (decay - 1.0) * T ** (theta - 1.0), decay + 2.0**decay, 3.0 * decay
    elif decay == 1.0:
        factor, last, mean = math.log(T) * T ** (theta - 1.0), 6.0, 3.0
    else:
        factor, last, mean = T ** (q - theta * (1.0 + q)) / (1.0 - decay), 2.0**decay + 3.0, 3.0
        factor *= math.log(T) if output == "last" else 1.0
    if output == "last":
        return (radius**2 / (2.0 * step) + scale * last) * factor
    return (2.0 * radius**2 / step + scale * mean) * factor


def descends(records: np.ndarray) -> bool:
    """Whether each step lowered the empirical error by half its squared length over eta_t, as Lemma 20 assumes."""
    step, norm, error = records["step"][:-1], records["norm"], records["training_loss"]
    length = np.maximum(norm[1:] ** 2 - norm[:-1] ** 2 + 2.0 * step * records["inner"][:-1], 0.0)
    return bool((np.diff(error) <= -0.5 * length / step + 1e-9 * (1.0 + error[:-1])).all())


def lemma_bound(
    records: np.ndarray, loss: Any, *, theta: float, kappa: float, radius: float, bound: float, output: str
) -> Bound:
    """The bound on the empirical error of an output minus that of functions of norm ``radius``: Lemmas 17, 19 and 20.

    Parameters
    ----------
    records : (T,) array
        Of the path up to the output.
    loss : loss
        Of one output.
    theta, kappa, radius, bound, output
        See :func:`optimisation_bound`.
    """
    if len(records) < 3:
        return no_bound("the lemmas are of at least 3 iterations")
    step, is_smooth = float(records["step"][0]), loss.smoothness < math.inf
    if growth(loss, bound).power == math.inf:
        return no_bound(f"no power bounds the slopes of the {type(loss).__name__} loss")
    largest = largest_step(loss, theta, kappa, bound)
    if step > largest * (1.0 + 1e-12) and not (is_smooth and descends(records)):
        return no_bound(f"the lemmas assume eta_1 <= {largest:.6g}, and it is {step:.6g}")
    value = optimisation_bound(
        len(records), loss, theta=theta, step=step, kappa=kappa, radius=radius, bound=bound, output=output
    )
    lemma = "Lemma 20" if is_smooth else "Lemma 17" if output == "last" else "Lemma 19"
    needs_norms = output == "average" if is_smooth else output == "last"
    assumes = "no iterate has a larger norm than the function" if needs_norms else ""
    return Bound(value, f"{PAPER}, {lemma}", assumes)


def _growth(loss: Any, bound: float) -> Growth:
    of_loss = growth(loss, bound)
    if of_loss.power == math.inf:
        raise ValueError(f"no power bounds the slopes of the {type(loss).__name__} loss: the theorems do not cover it")
    return of_loss


def _iterations(samples: float, exponent: float) -> int:
    power = samples**exponent if exponent * math.log(samples) <= LARGEST_EXPONENT else MOST
    # The factor keeps rounding errors from raising a power that is an integer to the next integer.
    return max(math.ceil(power * (1.0 - 1e-12)), 1)


def _check(
    samples: float, theta: float, beta: float, tau: float, zeta: float, output: str, least: float, closed: bool
) -> None:
    if not (samples >= 1 and math.isfinite(samples)):
        raise ValueError(f"there must be at least one sample, not {samples}")
    if output not in OUTPUTS:
        raise ValueError(f"output must be one of {', '.join(OUTPUTS)}, not {output!r}")
    if not (theta < 1.0 and (theta >= least if closed else theta > least)):
        raise ValueError(f"theta must be {'at least' if closed else 'above'} {least:.6g} and below 1, not {theta}")
    for name, number, inside in (
        ("beta must lie in (0, 1]", beta, 0.0 < beta <= 1.0),
        ("tau must lie in [0, 1]", tau, 0.0 <= tau <= 1.0),
        ("zeta must lie in (0, 2]", zeta, 0.0 < zeta <= 2.0),
    ):
        if not inside:
            raise ValueError(f"{name}, not {number}")
