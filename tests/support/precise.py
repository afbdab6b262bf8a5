"""References in 60 digits, by mpmath: ridge fits from their normal equations, the closed forms of the theory.

The recipe: numbers enter as the exact values of the floats that the library gets, everything is solved in 60 digits by
the plainest formula (no rearrangement against cancellation), and the result is rounded to floats at the end.
"""

import mpmath
import numpy as np

DIGITS = 60


def exact(values):
    """Return floats as an mpmath matrix, or a float as its number."""
    array = np.asarray(values, dtype=float)
    return mpmath.mpf(float(array)) if not array.ndim else mpmath.matrix(array.tolist())


def rounded(matrix):
    """Return an mpmath matrix as an array of floats."""
    return np.array(matrix.tolist(), dtype=float)


def ridge(X, targets, reg, *, fit_intercept=True, weights=None):
    """Solve (Σ wᵢxᵢxᵢᵀ + nγI)β = Σ wᵢxᵢtᵢ about the means; returns coef (p,) and the intercept."""
    with mpmath.workdps(DIGITS):
        n_rows, p = np.shape(X)
        rows, values = exact(X), exact(np.ravel(targets))
        weight = exact(np.ones(n_rows) if weights is None else weights)
        total = mpmath.fsum(weight)
        mean = [mpmath.fsum(weight[i] * rows[i, j] for i in range(n_rows)) / total for j in range(p)]
        level = mpmath.fsum(weight[i] * values[i] for i in range(n_rows)) / total
        if not fit_intercept:
            mean, level = [mpmath.mpf(0)] * p, mpmath.mpf(0)
        centred = mpmath.matrix(n_rows, p)
        for i in range(n_rows):
            for j in range(p):
                centred[i, j] = rows[i, j] - mean[j]
        gram, cross = mpmath.matrix(p, p), mpmath.matrix(p, 1)
        for j in range(p):
            cross[j] = mpmath.fsum(weight[i] * centred[i, j] * (values[i] - level) for i in range(n_rows))
            for k in range(p):
                gram[j, k] = mpmath.fsum(weight[i] * centred[i, j] * centred[i, k] for i in range(n_rows))
            gram[j, j] += total * exact(reg)
        coef = mpmath.lu_solve(gram, cross)
        intercept = level - mpmath.fsum(mean[j] * coef[j] for j in range(p))
        return rounded(coef)[:, 0], float(intercept)


def left_out(X, targets, reg, i, *, fit_intercept=True):
    """Score of row i by the fit to the others, at the same penalty nγ."""
    rest = np.arange(len(X)) != i
    with mpmath.workdps(DIGITS):
        kept = exact(reg) * len(X) / (len(X) - 1)
    coef, intercept = ridge(X[rest], targets[rest], kept, fit_intercept=fit_intercept)
    with mpmath.workdps(DIGITS):
        return float(mpmath.fsum(exact(x) * exact(b) for x, b in zip(X[i], coef, strict=True)) + exact(intercept))


def delta_and_h(aspect, reg):
    """δ and h by the equations as the paper's appendix prints them, δ the positive root of γδ² + (1 + γ − η)δ − η."""
    with mpmath.workdps(DIGITS):
        eta, gamma = exact(aspect), exact(reg)
        if gamma == 0:
            delta = eta / (1 - eta) if eta < 1 else mpmath.inf
            gain = 1 if eta < 1 else 1 / eta  # 1/(1 + γ(1 + δ)), as γδ tends to η − 1
        else:
            root = mpmath.sqrt((eta - gamma - 1) ** 2 + 4 * eta * gamma)
            delta = (eta - gamma - 1 + root) / (2 * gamma)
            gain = 1 / (1 + gamma * (1 + delta))
        return delta, 1 - eta * gain**2, gain


def score_law(mean_norm, aspect, reg, noise, targets, *, fit_intercept):
    """Means of the two classes and variance of the score, by the formulas of docs/theory/isotropic.md."""
    with mpmath.workdps(DIGITS):
        eta, power = exact(aspect), exact(mean_norm) ** 2
        _, h, gain = delta_and_h(aspect, reg)
        values, labels = [exact(t) for t in targets], [mpmath.mpf(-1), mpmath.mpf(1)]
        priors, flips = [exact(prior) for prior in noise.priors], exact(noise.transition)
        cells = [(priors[a] * flips[a, b], labels[a], values[b]) for a in (0, 1) for b in (0, 1)]
        mean = mpmath.fsum(w * t for w, _, t in cells) if fit_intercept else mpmath.mpf(0)
        label_mean = mpmath.fsum(w * y for w, y, _ in cells) if fit_intercept else mpmath.mpf(0)
        c = mpmath.fsum(w * (y - label_mean) * (t - mean) for w, y, t in cells)
        s = mpmath.fsum(w * (t - mean) ** 2 for w, _, t in cells)
        v = mpmath.fsum(w * (y - label_mean) ** 2 for w, y, _ in cells)
        m = c * power * gain / (1 + v * power * gain)
        variance = (m**2 / power + (1 - h) * (s - 2 * c * m + v * m**2)) / h
        below, above = (2 * priors[1], 2 * priors[0]) if fit_intercept else (1, 1)
        separation = 2 * m / mpmath.sqrt(variance)
        return float(mean - below * m), float(mean + above * m), float(variance), float(separation)
