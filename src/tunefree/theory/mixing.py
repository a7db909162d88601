"""Upper bounds on the loss of the mixture of a pool, relative to its base, its corrections and fixed weights.

The rule is :mod:`tunefree.mixing`. In round t each of N = 3 candidates predicts: the base, and two corrections that
begin at it. Candidate c has weight v_tc, v_1c = 1 / N, and loss l_tc >= 0; what is predicted has loss l_t. The round
counts h_t > 0, its weight over the mean so far; a row of weight 0 is no round. After it

    v'_tc = v_tc exp(-h_t l_tc / a_t + m_t),    m_t = -ln sum_c v_tc exp(-h_t l_tc / a_t),
    v_t+1,c = (1 - 1 / (t + 1)) v'_tc + 1 / ((t + 1) N),

with the unit a_t of losses: for log-loss 1; for numbers 8 times the typical loss of the mixture, round t included.

**Theorem 1** (mixing). For every candidate c and every first round s of 1..T, on any rows whatsoever,

    sum_{t <= T} h_t l_t  <=  sum_{t <= T} h_t l_tc + skipped + gap + a_s C(s, T) + ln(N T) rises,

where ``skipped`` is sum_{t < s} h_t l_t, ``gap`` is sum_{t >= s} max(h_t l_t - a_t m_t, 0), ``rises`` is
sum_{s < t <= T} max(a_t - a_{t-1}, 0), and

    C(s, T) = ln(N s) - sum_{r = s+1..T} ln(1 - (1 - 1 / N) / r),
    C(1, T) = ln N + ln Gamma(T + 1) + ln Gamma(1 + 1 / N) - ln Gamma(T + 1 / N)  <=  ln N + (1 - 1 / N) ln T.

For log-loss a_t = 1, so nothing rises; where no h_t exceeds 1 (rows without weights) there is no gap, and s = 1 gives

    sum l_t  <=  sum l_tc + ln 3 + (2 / 3) ln T.

The ln T is the price of the fixed share. Without it ln 3 alone would do, and the rule could not turn to another
candidate later. The account of a mixture holds the sums for one s, chosen on the way.

*Proof.* v_t+1,c >= v'_tc (1 - (1 - 1 / N) / (t + 1)), as v'_tc <= 1, and v_tc >= 1 / (N t), which the share deals out.
With m_t - h_t l_tc / a_t = ln(v'_tc / v_tc), the sum of rounds i..j telescopes:

    sum_{t = i..j} (m_t - h_t l_tc / a_t)  <=  -ln v_ic - sum_{r = i+1..j} ln(1 - (1 - 1 / N) / r)  <=  C(i, j).

C grows with j, and with i, since C(i + 1, j) - C(i, j) = ln(1 + 1 / (N i)); so C(i, T) <= C(T, T) = ln(N T). Now
a_t is the integral over theta > 0 of 1[a_t > theta], and the rounds of s..T with a_t > theta are intervals: those that
begin at s have measure a_s in theta, those that begin at i > s max(a_i - a_{i-1}, 0). So sum_{t >= s} (a_t m_t - h_t
l_tc) <= a_s C(s, T) + ln(N T) rises. Where a_t = 0 the round is in no interval, and weights learn nothing: its loss is
gap. To sum_{t >= s} h_t l_t add gap; losses of c before s are at least 0. For h_t <= 1 and log-loss,
(sum v p)^h >= sum v p^h, so h_t l_t <= m_t. In general, by Hoeffding's lemma, gap of a convex loss is at most the sum
of h_t^2 R_t^2 / (8 a_t), R_t the range of the candidates' losses. (The code cuts exponents at 50 below the best. That
makes v' larger and m_t smaller, so both steps hold; of a gap without weights it is e^-50 a round and candidate.) []

A mixture of known rows begins with the weight 1 of the base (:mod:`tunefree.pool.contexts`). Then -ln v_1c = 0 for the
base, so against it the theorem holds as it stands; against a correction for s > 1.

**Theorem 2** (fixed weights, classes). A correction adds sum_i w_i x_ik to the base's log-probability of class k, and
takes the softmax. Let u be any fixed weights. Then the first correction, ScInOL2 with initial wealth epsilon = 1, has

    sum h_t l_t1 - sum h_t l_t(u)  <=  sum_i (epsilon - eta_i + u_i G_i)  <=  B(u, S, first),

and with Theorem 1 the mixture exceeds any u by at most both together. eta_i is the wealth of feature i, G_i minus the
sum of gradients h_t g_ti, S_i^2 the sum of their squares plus M_i^2, M_i the largest h_t times range of x_i over the
classes, first_i the first one that is not 0, and B is the bound of Kempka, Kotlowski, Warmuth 2019, Theorem 3.2.

*Proof.* l_t is convex in w, one weight for all classes, with the gradient g_ti = sum_k p_k x_ik - x_iy, an average of
x_iy minus x_iy: no larger than the range of x_i, which is known before the round. So l_t1 - l_t(u) <= sum_i g_ti (w_ti
- u_i), and each coordinate is that theorem's, for gradients h_t g_ti bounded by M_i. u = 0 is the base, if members'
probabilities sum to 1, so the correction loses at most 1 a feature against it. []

Features, not members, have weights. A generation that takes over a slot is the same feature, before and after; so u is
fixed weights on "the newest boosted trees", whichever these are. The feature of a member that sleeps is 0, for w and
for u. A class that comes later has a bias from then on, which is a new feature with wealth of its own. When there are
more than 64 classes biases end and both corrections start anew, so the bound is of the rounds since. Differences are
clipped at 10 before they are features: u acts on what is clipped. A round whose gradients are below 1e-15 teaches
nothing, and what it could add to the sums is rounding.

**Theorem 3** (fixed weights, numbers). In round t let b be the base's prediction, r its residual, V(z) the loss of
b + r z in units of twice the base's typical loss, all as before the round. A correction has z = sum_i w_i x_i, and
predicts what is nearest to b + r z within the range of the targets so far, widened by half on both sides; it learns the
slope V'(z) clipped to s, at the steepest before. With V_t1 the loss of what it predicts in these units, for any u

    sum h_t V_t1  <=  sum h_t V_t(u x) + sum_i (epsilon - eta_i + u_i G_i) + sum h_t k_t(u),
    k_t(u) = V_t1 - V(z) + (V'(z) - s) (z - u x).

The second term of k_t is 0 unless the slope is steeper than all before, and |V'(z) - s| adds up to the steepest slope
at the end. V_t1 <= V(z) unless the target lies beyond this range, on the side where z does; and then V_t1 <= V(0).
Rounds before which the base lost nothing have no unit, and teach nothing; |z| is at most 1e30.

*Proof.* V(z) - V(u x) <= V'(z) (z - u x), and s (z - u x) is what the learner bets on. Both the prediction and b lie
within the range, so the one at its end next to the target is the better of the two. []

These units change from round to round, and not as those of Theorem 1 do: of natural losses Theorem 1 holds, with the
correction for c, but no bound against u follows. The second correction, Newton steps, has no theorem here.

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

    It learned T rounds, and has an account (:class:`tunefree.mixing.bases.Account`).

    >>> from types import SimpleNamespace
    >>> account = SimpleNamespace(start=[1.0], skipped=[0.0], gap=[0.0], units=[1.0, 0.0, 1.0])
    >>> round(mixing_excess(account, 100), 2)
    4.06
    """
    if rounds == 0.0:
        return 0.0
    mixing = account.units[0] * interval_cost(float(account.start[0]), rounds)
    return float(account.skipped[0] + account.gap[0] + mixing + account.units[1] * math.log(N_CANDIDATES * rounds))
