"""Upper bounds on the loss of the mixture of a pool, relative to its base, its corrections and fixed weights.

The rule is :mod:`tunefree.mixing`. In round t each of N = 3 candidates predicts: the base, and two corrections that
start at the base. Candidate c has weight v_tc, v_1c = 1 / N, and loss l_tc >= 0; the mixed prediction has loss l_t. The
round has the weight h_t > 0, its sample weight divided by the mean so far; a row of weight 0 is not a round. Then

    v'_tc = v_tc exp(-h_t l_tc / a_t + m_t),    m_t = -ln sum_c v_tc exp(-h_t l_tc / a_t),
    v_t+1,c = (1 - 1 / (t + 1)) v'_tc + 1 / ((t + 1) N),

with the unit a_t of losses: for log-loss 1; for numbers 8 times the typical loss of the mixture, round t included.

**Theorem 1** (mixing). For every candidate c and every first round s of 1..T, on any rows whatsoever,

    sum_{t <= T} h_t l_t  <=  sum_{t <= T} h_t l_tc + skipped + gap + a_s C(s, T) + ln(N T) rises,

where ``skipped`` is sum_{t < s} h_t l_t, ``gap`` is sum_{t >= s} max(h_t l_t - a_t m_t, 0), ``rises`` is
sum_{s < t <= T} max(a_t - a_{t-1}, 0), and

    C(s, T) = ln(N s) - sum_{r = s+1..T} ln(1 - (1 - 1 / N) / r),
    C(1, T) = ln N + ln Gamma(T + 1) + ln Gamma(1 + 1 / N) - ln Gamma(T + 1 / N)  <=  ln N + (1 - 1 / N) ln T.

For log-loss a_t = 1, so ``rises`` is 0. If no h_t exceeds 1 (rows without weights), ``gap`` is 0, and s = 1 gives

    sum l_t  <=  sum l_tc + ln 3 + (2 / 3) ln T.

The ln T is the price of the fixed share. Without it ln 3 would suffice, but the rule could not switch to another
candidate later. The account of a mixture holds the sums for one s, chosen during the stream.

*Proof.* v_t+1,c >= v'_tc (1 - (1 - 1 / N) / (t + 1)), as v'_tc <= 1, and v_tc >= 1 / (N t) by the fixed share. With m_t
- h_t l_tc / a_t = ln(v'_tc / v_tc), the sum of rounds i..j telescopes:

    sum_{t = i..j} (m_t - h_t l_tc / a_t)  <=  -ln v_ic - sum_{r = i+1..j} ln(1 - (1 - 1 / N) / r)  <=  C(i, j).

C grows with j, and with i, since C(i + 1, j) - C(i, j) = ln(1 + 1 / (N i)); so C(i, T) <= C(T, T) = ln(N T). Now a_t is
the integral over theta > 0 of 1[a_t > theta], and the rounds of s..T with a_t > theta are intervals: those that begin
at s have measure a_s in theta, those that begin at i > s max(a_i - a_{i-1}, 0). So sum_{t >= s} (a_t m_t - h_t l_tc) <=
a_s C(s, T) + ln(N T) rises. A round with a_t = 0 is in no interval and does not change weights: its loss belongs to
gap. Adding gap bounds sum_{t >= s} h_t l_t; the losses of c before s are at least 0. For h_t <= 1 and log-loss, (sum v
p)^h >= sum v p^h, so h_t l_t <= m_t. In general, by Hoeffding's lemma, gap of a convex loss is at most the sum of h_t^2
R_t^2 / (8 a_t), R_t the range of the candidates' losses. (The code clips exponents at 50 below the best. This makes v'
larger and m_t smaller, so both steps hold; without weights it adds at most e^-50 per round and candidate to gap.) []

A mixture of known rows starts with weight 1 of the base (:mod:`tunefree.pool.contexts`). Then -ln v_1c = 0 for the
base, so the theorem holds unchanged against the base, and for s > 1 against a correction.

**Theorem 2** (fixed weights, classes). A correction adds sum_i w_i x_ik to the base's log-probability of class k, and
takes the softmax. Let u be any fixed weights. The first correction, ScInOL2 with initial wealth epsilon = 1, has

    sum h_t l_t1 - sum h_t l_t(u)  <=  sum_i (epsilon - eta_i + u_i G_i)  <=  B(u, S, first),

and with Theorem 1 the loss of the mixture exceeds the loss of any u by at most the sum of both bounds. eta_i is the
wealth of feature i, G_i minus the sum of gradients h_t g_ti, S_i^2 the sum of their squares plus M_i^2, M_i the largest
h_t times range of x_i over the classes, first_i the first nonzero range, and B is the bound of Kempka, Kotlowski,
Warmuth 2019, Theorem 3.2.

*Proof.* l_t is convex in w, one weight for all classes, with the gradient g_ti = sum_k p_k x_ik - x_iy, an average of
x_iy minus x_iy: no larger than the range of x_i, which is known before the round. So l_t1 - l_t(u) <= sum_i g_ti (w_ti
- u_i), and the theorem holds for each coordinate, for gradients h_t g_ti bounded by M_i. u = 0 is the base, if members'
probabilities sum to 1, so the correction loses at most 1 a feature against it. []

Features, not members, have weights. A generation that replaces another one in a slot continues the same feature; so u
is a fixed weight of, say, "the newest boosted trees". The feature of a sleeping member is 0, for w and for u. A class
that appears later has a bias from then on, which is a new feature with its own wealth. When there are more than 64
classes, biases end and both corrections restart, so the bound covers the rounds since then. Differences are clipped at
10 before they become features, also for u. A round with gradients below 1e-15 is not learned.

For numbers the unit of a correction's loss, twice the typical loss of the base, changes from round to round. Theorem 1
holds with the correction as c, but no bound against u follows. There is no theorem for the second correction, Newton
steps.

References
----------
Vovk: Aggregating strategies (COLT 1990). Herbster, Warmuth: Tracking the best expert (1998). de Rooij, van Erven,
Grünwald, Koolen: Follow the leader if you can, hedge if you must (JMLR 2014), for gaps. Kempka, Kotlowski, Warmuth:
Adaptive scale-invariant online algorithms for learning linear models (ICML 2019).
"""

from __future__ import annotations

import math
from typing import Any

N_CANDIDATES = 3


def interval_cost(start: float, rounds: float) -> float:
    """C(s, T): bound on the mix losses of rounds s to T minus the losses of a candidate, in units of the losses.

    >>> interval_cost(1, 1) == math.log(3)
    True
    >>> round(interval_cost(1, 1000) - math.log(3), 2), round(2 / 3 * math.log(1000), 2)
    (4.49, 4.61)
    """

    def share(t: float) -> float:
        return math.lgamma(t + 1.0) - math.lgamma(t + 1.0 / N_CANDIDATES)

    return math.log(N_CANDIDATES * start) + share(rounds) - share(start)


def mixing_excess(account: Any, rounds: float) -> float:
    """Bound on the loss of a mixture minus the loss of any candidate (Theorem 1), in units of the loss.

    ``rounds`` is T, and ``account`` a :class:`tunefree.mixing.bases.Account`.

    >>> from types import SimpleNamespace
    >>> account = SimpleNamespace(start=[1.0], skipped=[0.0], gap=[0.0], units=[1.0, 0.0, 1.0])
    >>> round(mixing_excess(account, 100), 2)
    4.06
    """
    if rounds == 0.0:
        return 0.0
    mixing = account.units[0] * interval_cost(float(account.start[0]), rounds)
    return float(account.skipped[0] + account.gap[0] + mixing + account.units[1] * math.log(N_CANDIDATES * rounds))
