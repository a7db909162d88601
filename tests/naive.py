"""The papers' algorithms, each in about ten lines of NumPy, to hold the compiled learners against.

Every function takes a stream of dense rows (n, d), a slope function ``slope(t, margins) -> (K,)``, the number of
outputs, and a bound on the absolute slope of each round; it returns the margins (n, K) and the last weights (d, K).
Where the paper assumes slopes of at most 1, it is run on slope / bound and bound * row. Kernel learners take kernel
values in the place of rows.
"""

import numpy as np


def over(numerator, denominator):
    """0/0 = 0, as the papers have it."""
    return np.divide(
        numerator, denominator, out=np.zeros(np.broadcast(numerator, denominator).shape), where=denominator != 0
    )


def scinol1(rows, slope, n_outputs, bounds, epsilon=1.0):
    """Kempka, Kotlowski, Warmuth 2019, Algorithm 1."""
    n, d = rows.shape
    (G, S2), M, beta = np.zeros((2, d, n_outputs)), np.zeros((d, 1)), np.full((d, n_outputs), epsilon)
    margins, w = np.zeros((n, n_outputs)), np.zeros((d, n_outputs))
    for t, (row, bound) in enumerate(zip(rows, bounds, strict=True)):
        x = bound * row[:, None]
        M = np.maximum(M, np.abs(x))
        with np.errstate(divide="ignore", invalid="ignore"):
            beta = np.where(x != 0, np.minimum(beta, epsilon * (S2 + M**2) / (x**2 * (t + 1))), beta)
        theta = over(G, np.sqrt(S2 + M**2))
        w = over(beta * np.sign(theta) * (np.exp(np.abs(theta) / 2) - 1), 2 * np.sqrt(S2 + M**2))
        margins[t] = (w * row[:, None]).sum(0)
        g = slope(t, margins[t]) / bound
        G, S2 = G - g * x, S2 + (g * x) ** 2
    theta = over(G, np.sqrt(S2 + M**2))
    return margins, over(beta * np.sign(theta) * (np.exp(np.abs(theta) / 2) - 1), 2 * np.sqrt(S2 + M**2))


def scinol2(rows, slope, n_outputs, bounds, epsilon=1.0):
    """Kempka, Kotlowski, Warmuth 2019, Algorithm 2."""
    n, d = rows.shape
    (G, S2), M, eta = np.zeros((2, d, n_outputs)), np.zeros((d, 1)), np.full((d, n_outputs), epsilon)
    margins = np.zeros((n, n_outputs))
    for t, (row, bound) in enumerate(zip(rows, bounds, strict=True)):
        x = bound * row[:, None]
        M = np.maximum(M, np.abs(x))
        theta = over(G, np.sqrt(S2 + M**2))
        w = over(np.sign(theta) * np.minimum(np.abs(theta), 1) * eta, 2 * np.sqrt(S2 + M**2))
        margins[t] = (w * row[:, None]).sum(0)
        g = slope(t, margins[t]) / bound
        G, S2, eta = G - g * x, S2 + (g * x) ** 2, eta - g * x * w
    theta = over(G, np.sqrt(S2 + M**2))
    return margins, over(np.sign(theta) * np.minimum(np.abs(theta), 1) * eta, 2 * np.sqrt(S2 + M**2))


def pistol(rows, slope, n_outputs, bounds, a=3.0, b=1.0):
    """Orabona 2014, Algorithm 3 with the linear kernel, each output on its own; rows divided by the largest norm."""
    n, d = rows.shape
    g, A, M = np.zeros((d, n_outputs)), np.zeros(n_outputs), 0.0
    margins, w = np.zeros((n, n_outputs)), np.zeros((d, n_outputs))
    for t, (row, bound) in enumerate(zip(rows, bounds, strict=True)):
        M = max(M, bound * np.linalg.norm(row))
        w = _pistol_weights(g, A, M, a, b)
        margins[t] = row @ w
        s = slope(t, margins[t])
        g, A = g - s * row[:, None], A + np.abs(s) * np.linalg.norm(row)
    return margins, _pistol_weights(g, A, M, a, b)


def _pistol_weights(g, A, M, a, b):
    if M == 0:
        return np.zeros_like(g)
    alpha = a * (1 + A / M)
    return g / M**2 * b / alpha * np.exp((g**2).sum(0) / M**2 / (2 * alpha))


def coordinate_pistol(rows, slope, n_outputs, bounds, a=3.0, b=1.0):
    """Orabona 2014, Appendix A: a copy of Algorithm 3 a coordinate."""
    n, d = rows.shape
    g, A, M = np.zeros((d, n_outputs)), np.zeros((d, n_outputs)), np.zeros((d, 1))
    margins = np.zeros((n, n_outputs))
    for t, (row, bound) in enumerate(zip(rows, bounds, strict=True)):
        x = row[:, None]
        M = np.maximum(M, bound * np.abs(x))
        alpha = a * (1 + over(A, M))
        w = over(g, M**2) * b / alpha * np.exp(over(g**2, M**2) / (2 * alpha))
        margins[t] = (w * x).sum(0)
        s = slope(t, margins[t])
        g, A = g - s * x, A + np.abs(s * x)
    alpha = a * (1 + over(A, M))
    return margins, over(g, M**2) * b / alpha * np.exp(over(g**2, M**2) / (2 * alpha))


def nag(rows, slope, n_outputs, bounds, eta=0.5):
    """Ross, Mineiro, Langford 2013, NAG; a round counts as much as its weight."""
    n, d = rows.shape
    w, G, s, N, t = np.zeros((d, n_outputs)), np.zeros((d, n_outputs)), np.zeros((d, 1)), 0.0, 0.0
    margins = np.zeros((n, n_outputs))
    for i, (row, weight) in enumerate(zip(rows, bounds, strict=True)):
        x = row[:, None]
        larger = np.maximum(s, np.abs(x))
        w, s = w * over(s, larger), larger
        margins[i] = (w * x).sum(0)
        t, N = t + weight, N + weight * (over(x, s) ** 2).sum()
        g = slope(i, margins[i])
        G = G + (g * x) ** 2
        w = w - over(eta * np.sqrt(over(t, N)) * g * x, s * np.sqrt(G))
    return margins, w


def sfmd(rows, slope, n_outputs, bounds, eta=1.0):
    """Orabona, Crammer, Cesa-Bianchi 2015; d is that of the rows; S starts at L^2, the bound on a feature's slopes."""
    n, d = rows.shape
    G, S, M, L = np.zeros((d, n_outputs)), np.zeros((d, n_outputs)), np.zeros((d, 1)), np.zeros((d, 1))
    margins, w = np.zeros((n, n_outputs)), np.zeros((d, n_outputs))

    def weights():
        return over(eta * G, np.sqrt(d) * M**2 * np.sqrt(L**2 + S))

    for t, (row, bound) in enumerate(zip(rows, bounds, strict=True)):
        x = row[:, None]
        M, L = np.maximum(M, np.abs(x)), np.where(x != 0, np.maximum(L, bound), L)
        w = weights()
        margins[t] = (w * x).sum(0)
        g = slope(t, margins[t])
        G, S = G - g * x, S + over((g * x) ** 2, M**2)
    return margins, weights()


def cocob(rows, slope, n_outputs, bounds, alpha=100.0):
    """Orabona, Tommasi 2017, Algorithm 2 (COCOB-Backprop)."""
    n, d = rows.shape
    theta, A, R, w, L = *(np.zeros((d, n_outputs)) for _ in range(4)), np.full((d, n_outputs), 1e-8)
    margins = np.zeros((n, n_outputs))
    for t, row in enumerate(rows):
        x = row[:, None]
        margins[t] = (w * x).sum(0)
        c = -slope(t, margins[t]) * x
        L, A = np.maximum(L, np.abs(c)), A + np.abs(c)
        R, theta = np.maximum(R + c * w, 0), theta + c
        w = theta / (L * np.maximum(A + L, alpha * L)) * (L + R)
    return margins, w


def cocob_original(rows, slope, n_outputs, bounds):
    """Orabona, Tommasi 2017, Algorithm 1 (COCOB), with L the largest bound * |x| so far."""
    n, d = rows.shape
    theta, A, R, L = *(np.zeros((d, n_outputs)) for _ in range(3)), np.zeros((d, 1))
    margins = np.zeros((n, n_outputs))

    def weights():
        sigmoid = 1 / (1 + np.exp(-2 * over(theta, A + L)))
        return over(L + R, L) * (2 * sigmoid - 1)

    for t, (row, bound) in enumerate(zip(rows, bounds, strict=True)):
        x = row[:, None]
        L = np.maximum(L, bound * np.abs(x))
        w = weights()
        margins[t] = (w * x).sum(0)
        c = -slope(t, margins[t]) * x
        theta, A, R = theta + c, A + np.abs(c), R + c * w
    return margins, weights()


def kotlowski(rows, slope, n_outputs, bounds, alpha=9 / 8, epsilon=1.0):
    """Kotlowski 2017, Algorithm 1; d is that of the rows; the last weights have no x in the exponent."""
    n, d = rows.shape
    h, S2 = np.zeros((d, n_outputs)), np.zeros((d, 1))
    margins = np.zeros((n, n_outputs))

    def weights(t, x):
        return epsilon / (t * d) * over(h, alpha * S2) * np.exp(over(h**2 + x**2, 2 * alpha * S2))

    for t, (row, bound) in enumerate(zip(rows, bounds, strict=True)):
        x = bound * row[:, None]
        S2 = S2 + x**2
        margins[t] = (weights(t + 1, x) * row[:, None]).sum(0)
        h = h - slope(t, margins[t]) * row[:, None]
    return margins, weights(n, 0.0)


def newton(rows, slope, n_outputs, bounds, variance=1.0, curvature=None):
    """Online Newton steps, one matrix an output; a weight has precision unit^2 / variance at first."""
    n, d = rows.shape
    unit, w, C = np.zeros(d), np.zeros((d, n_outputs)), np.zeros((n_outputs, d, d))
    margins = np.zeros((n, n_outputs))
    for t, (row, weight) in enumerate(zip(rows, bounds, strict=True)):
        for j in np.flatnonzero((np.abs(row) > 8 * unit) & (row != 0)):
            unit[j], C[:, j], C[:, :, j], w[j] = 2.0 ** max(np.frexp(abs(row[j]) / 8)[1], 0), 0.0, 0.0, 0.0
            C[:, j, j] = variance / unit[j] ** 2
        margins[t] = row @ w
        g, s = slope(t, margins[t]), curvature(t, margins[t])
        for k in range(n_outputs):
            steepness = g[k] ** 2 / weight
            along = C[k] @ row
            spread = row @ along
            w[:, k] -= along * g[k] / (1 + max(s[k], steepness) * spread)
            more = s[k] if s[k] > 0 else steepness
            C[k] -= np.outer(along, along) * more / (1 + more * spread)
    return margins, w


def _gradient_descent(rows, slope, n_outputs, step):
    """Every learner below: margins w.x, then w changes by step(t, x, g)."""
    n, d = rows.shape
    margins, w = np.zeros((n, n_outputs)), np.zeros((d, n_outputs))
    for t, row in enumerate(rows):
        x = row[:, None]
        margins[t] = (w * x).sum(0)
        w = w + step(t, x, slope(t, margins[t]))
    return margins, w


def ogd(rows, slope, n_outputs, bounds, eta=1.0):
    """Zinkevich 2003, with rate eta / sqrt(t)."""
    return _gradient_descent(rows, slope, n_outputs, lambda t, x, g: -eta / np.sqrt(t + 1) * g * x)


def coordinate_ogd(rows, slope, n_outputs, bounds, eta=0.1):
    """Kempka, Kotlowski, Warmuth 2019, Section 2: a fixed rate a coordinate, here (d, K) or one number."""
    return _gradient_descent(rows, slope, n_outputs, lambda t, x, g: -eta * g * x)


def adagrad(rows, slope, n_outputs, bounds, eta=0.5):
    """Duchi, Hazan, Singer 2011."""
    squares = np.zeros((rows.shape[1], n_outputs))

    def step(t, x, g):
        nonlocal squares
        squares = squares + (g * x) ** 2
        return -eta * over(g * x, np.sqrt(squares))

    return _gradient_descent(rows, slope, n_outputs, step)


def adam(rows, slope, n_outputs, bounds, eta=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8):
    """Kingma, Ba 2015, Algorithm 1."""
    m, v = np.zeros((rows.shape[1], n_outputs)), np.zeros((rows.shape[1], n_outputs))

    def step(t, x, g):
        nonlocal m, v
        m, v = beta1 * m + (1 - beta1) * g * x, beta2 * v + (1 - beta2) * (g * x) ** 2
        return -eta * (m / (1 - beta1 ** (t + 1))) / (np.sqrt(v / (1 - beta2 ** (t + 1))) + epsilon)

    return _gradient_descent(rows, slope, n_outputs, step)


def perceptron(rows, slope, n_outputs, bounds):
    """Orabona 2014, Algorithm 2 with the linear kernel."""
    margins, f, _ = kernel_perceptron(rows @ rows.T, slope, n_outputs, bounds)
    return margins, rows.T @ f


def kernel_pistol(gram, slope, n_outputs, bounds, a=0.125, b=0.0):
    """Orabona 2014, Algorithm 3, each output on its own; kernel values are divided by the largest norm, squared.

    Like all twins of kernel learners it takes the matrix of all kernel values (n, n), and returns the margins (n, K),
    and the coefficients (n, K) of the last function and of the average of f_1 .. f_n, in which f_t counts its bound.
    Rows of bound 0 are not learned.
    """
    n = len(gram)
    g, A, M, T = np.zeros((n, n_outputs)), np.zeros(n_outputs), 0.0, 0
    total, shares = np.zeros((n, n_outputs)), 0.0

    def function():
        if M == 0:
            return np.zeros_like(g)
        alpha, squares = a * (1 + A / M), (g * (gram @ g)).sum(0) / M**2
        return g / M**2 * (b or np.sqrt(2 * a * T)) / alpha * np.exp(squares / (2 * alpha))

    margins = np.zeros((n, n_outputs))
    for t, bound in enumerate(bounds):
        if bound > 0:
            M, T = max(M, bound * np.sqrt(gram[t, t])), T + 1
        f = function()
        margins[t] = gram[t] @ f
        if bound > 0:
            s = slope(t, margins[t])
            total, shares = total + bound * f, shares + bound
            g[t], A = -s, A + np.abs(s) * np.sqrt(gram[t, t])
    return margins, function(), total / shares


def _kernel_descent(gram, slope, n_outputs, bounds, step, shrink=lambda t: 1.0):
    """Margins, and f_{t+1} = shrink(t) f_t + step(bound, t, margins, slopes) at row t, averaged by their bounds."""
    f = np.zeros((len(gram), n_outputs))
    margins, total, t = np.zeros_like(f), np.zeros_like(f), 0
    for i, bound in enumerate(bounds):
        margins[i] = gram[i] @ f
        if bound > 0:
            total, t = total + bound * f, t + 1
            f = shrink(t) * f
            f[i] = step(bound, t, margins[i], slope(i, margins[i]))
    return margins, f, total / np.sum(bounds)


def kernel_sgd(gram, slope, n_outputs, bounds, eta=1.0):
    """Orabona 2014, Algorithm 1, with the sign of a descent."""
    return _kernel_descent(gram, slope, n_outputs, bounds, lambda bound, t, margins, g: -eta * g)


def kernel_regularized_sgd(gram, slope, n_outputs, bounds, penalty=1e-3, offset=3.0):
    """Nitanda, Suzuki 2019, Algorithm 1; f_t counts gamma + t - 1 times its weight, and f_{T+1} that of row T."""
    f = np.zeros((len(gram), n_outputs))
    margins, total, shares, T = np.zeros_like(f), np.zeros_like(f), 0.0, 0
    for t, bound in enumerate(bounds):
        margins[t] = gram[t] @ f
        if bound > 0:
            T += 1
            total, shares = total + bound * (offset + T - 1) * f, shares + bound * (offset + T - 1)
            eta, last = 2 / (penalty * (offset + T)), bound
            f = (1 - eta * penalty) * f
            f[t] = -eta * slope(t, margins[t])
    return margins, f, (total + last * (offset + T) * f) / (shares + last * (offset + T))


def kernel_online_regularized(gram, slope, n_outputs, bounds, eta=1.0, theta=0.5, penalty=0.01, kappa=0.25):
    """Lin, Rosasco, Zhou 2016, (15), with eta_t = eta t^-theta and lambda_t = penalty t^-kappa."""

    def step(bound, t, margins, g):
        return -eta * t**-theta * g

    def shrink(t):
        return 1 - eta * t**-theta * penalty * t**-kappa

    return _kernel_descent(gram, slope, n_outputs, bounds, step, shrink)


def kernel_perceptron(gram, slope, n_outputs, bounds):
    """Orabona 2014, Algorithm 2; an output is told its label by the sign of the slope."""

    def step(bound, t, margins, g):
        return bound * np.where(np.sign(margins) != -np.sign(g), -np.sign(g), 0.0)

    return _kernel_descent(gram, slope, n_outputs, bounds, step)


def subgradient(gram, slopes, etas, n_outputs=1):
    """Lin, Rosasco, Zhou 2016, (1): the coefficients (n, K) of f_1, f_2, .., one for each step.

    ``slopes(margins)`` are those of all rows, times their weights.
    """
    c, iterates = np.zeros((len(gram), n_outputs)), []
    for eta in etas:
        iterates.append(c)
        c = c - eta * slopes(gram @ c)
    return iterates


def steady(column, widest=8.0, haste=3.0):
    """One dense column as the steady view shows it: (x - centre) / distance, both running means of what was cut at
    ``widest`` distances, with weights like t^2; zeros tell nothing of the distance."""
    centre, distance, count, shown = 0.0, 0.0, 0, []
    for t, x in enumerate(column, start=1):
        reach = widest * distance if distance > 0 else abs(x - centre)
        centre += haste / (t + haste - 1) * float(np.clip(x - centre, -reach, reach))
        if x != 0:
            count += 1
            away = abs(x) if t == 1 else abs(x - centre)
            cut = min(away, widest * distance) if distance > 0 else away
            distance = distance + haste / (count + haste - 1) * (cut - distance) if distance > 0 else away
        shown.append(float(np.clip((x - centre) / distance, -widest, widest)) if distance > 0 else 0.0)
    return np.array(shown), centre, distance


def steady_entries(sparse_rows, widest=8.0, haste=3.0):
    """The entries of sparse rows, none of which is 0, as the steady view shows them: in units of the running mean of
    rows' mean sizes, or of an eighth of the row's own where that is larger."""
    typical, count, shown = 0.0, 0, []
    for entries in sparse_rows:
        if len(entries):
            count += 1
            mean = np.abs(entries).mean()
            cut = min(mean, widest * typical) if typical > 0 else mean
            typical = typical + haste / (count + haste - 1) * (cut - typical) if typical > 0 else mean
            shown.append(np.asarray(entries) / max(typical, mean / widest))
        else:
            shown.append(np.empty(0))
    return shown, typical


ALL = {
    "scinol1": scinol1,
    "scinol2": scinol2,
    "pistol": pistol,
    "coordinate-pistol": coordinate_pistol,
    "nag": nag,
    "cocob": cocob,
    "cocob-original": cocob_original,
    "kotlowski": kotlowski,
    "newton": newton,
    "ogd": ogd,
    "adagrad": adagrad,
    "adam": adam,
}
