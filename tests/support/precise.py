"""References in 60 digits, by mpmath: ridge fits from their normal equations, the closed forms of
the theory.

The recipe: numbers enter as the exact values of the floats that the library gets, everything is
solved in 60 digits by the plainest formula (no rearrangement against cancellation), and the result
is rounded to floats at the end.
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


def ridge(X, targets, reg, *, fit_intercept=True):
    """Solve (Σ xᵢxᵢᵀ + nγI)β = Σ xᵢtᵢ about the means; returns coef (p,) and the intercept."""
    with mpmath.workdps(DIGITS):
        rows, values = exact(X), exact(np.ravel(targets))
        mean, level = means(rows), means(values)[0]
        if not fit_intercept:
            mean, level = 0 * mean, mpmath.mpf(0)
        centred = rows - mpmath.ones(rows.rows, 1) * mean
        gram, cross = centred.T * centred, centred.T * (values - level)
        coef = mpmath.lu_solve(gram + rows.rows * exact(reg) * mpmath.eye(rows.cols), cross)
        return rounded(coef)[:, 0], float(level - (mean * coef)[0])


def ridge_of_counts(X, targets, reg):
    """Solve the same, with an intercept, for integer features, whose products are exact.

    The smaller of the two Gram matrices is solved: that of the rows gives β = Xᵀα of centred α.
    """
    X, n = np.asarray(X, dtype=np.int64), len(X)
    with mpmath.workdps(DIGITS):
        classes, codes, counts = np.unique(targets, return_inverse=True, return_counts=True)
        level = (
            mpmath.fsum(exact(t) * int(count) for t, count in zip(classes, counts, strict=True)) / n
        )
        if n > X.shape[1]:
            total, mean = exact(X.sum(axis=0)), exact(X.sum(axis=0)) / n
            gram = exact(X.T @ X) - total * mean.T + n * exact(reg) * mpmath.eye(X.shape[1])
            sums = [exact(X[codes == c].sum(axis=0)) for c in range(len(classes))]
            cross = (
                sum((exact(t) * part for t, part in zip(classes, sums, strict=True)), 0 * mean)
                - level * total
            )
            return rounded(mpmath.lu_solve(gram, cross))[:, 0]
        centring = mpmath.eye(n) - mpmath.ones(n) / n
        gram = centring * exact(X @ X.T) * centring + n * exact(reg) * mpmath.eye(n)
        alpha = centring * mpmath.lu_solve(gram, centring * exact(targets))
        return X.T @ rounded(alpha)[:, 0]


def means(rows):
    """Return the mean of each column, as a matrix of one row."""
    return mpmath.ones(1, rows.rows) * rows / rows.rows


def left_out(X, targets, reg, i, *, fit_intercept=True):
    """Return the leave-one-out score of row i, with the same nγ."""
    rest = np.arange(len(X)) != i
    kept = reg * len(X) / (len(X) - 1)
    coef, intercept = ridge(X[rest], targets[rest], kept, fit_intercept=fit_intercept)
    return X[i] @ coef + intercept


def delta_and_h(aspect, reg):
    """Return δ and h of the paper's appendix; δ is the positive root of γδ² + (1 + γ − η)δ − η."""
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
    """Return class means and variance of the score, by docs/theory/isotropic.md."""
    with mpmath.workdps(DIGITS):
        power = exact(mean_norm) ** 2
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
