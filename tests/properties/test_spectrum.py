"""Properties of ridge fits and leave-one-out scores, for any Gram matrix, storage and precision."""

import array_api_strict
import numpy as np
from hypothesis import strategies as st
from scipy.sparse import csr_array

from support.strategies import BOOLS, REGS, SEEDS, close, holds, instances, permutation, rotation
from unflip import Moments
from unflip.ridge.spectrum import DualSpectrum, GramSpectrum, PrimalSpectrum, decompose

DRAWN = instances()
FACTORS = st.floats(-4, 4).map(lambda exponent: 10.0**exponent)


def normal_equations(X, targets, weights, reg, fit_intercept):
    """Return coefficients and intercepts of a least-squares problem."""
    n, root = weights.sum(), np.sqrt(weights)[:, None]
    mean, level = (
        (weights @ X / n, weights @ targets / n)
        if fit_intercept
        else (0.0 * X[0], 0.0 * targets[0])
    )
    stacked = np.vstack([root * (X - mean), np.sqrt(n * reg) * np.eye(X.shape[1])])
    expected = np.vstack([root * (targets - level), np.zeros((X.shape[1], targets.shape[1]))])
    coef = np.linalg.lstsq(stacked, expected)[0]
    return coef, level - mean @ coef


@holds(drawn=DRAWN, reg=REGS, fit_intercept=BOOLS)
def test_fits_solve_the_least_squares_problem(drawn, reg, fit_intercept):
    path = decompose(drawn.X, drawn.weights, fit_intercept=fit_intercept).path(drawn.targets, [reg])
    coef, intercept = normal_equations(drawn.X, drawn.targets, drawn.weights, reg, fit_intercept)
    close(path.coef[:, 0, :], coef, 1e-8)
    close(path.intercept[0], intercept, 1e-8)


@holds(drawn=DRAWN, reg=REGS, fit_intercept=BOOLS)
def test_both_gram_matrices_give_the_same_fits_and_leave_one_out_scores(drawn, reg, fit_intercept):
    primal, dual = (
        spectrum(drawn.X, drawn.weights, fit_intercept=fit_intercept)
        for spectrum in (PrimalSpectrum, DualSpectrum)
    )
    regs = [reg, 10 * reg]
    one, other = (spectrum.path(drawn.targets, regs) for spectrum in (primal, dual))
    close(other.coef, one.coef, 1e-8)
    close(other.intercept, one.intercept, 1e-8)
    scores = [spectrum.leave_one_out(drawn.targets, regs).scores for spectrum in (primal, dual)]
    close(scores[1], scores[0], 1e-6)  # slack of the primal is a difference and loses digits


@holds(drawn=instances(rows=(20, 40)), reg=REGS, fit_intercept=BOOLS, seed=SEEDS)
def test_leave_one_out_scores_are_those_of_refits(drawn, reg, fit_intercept, seed):
    i, X, targets, weights = seed % drawn.n, drawn.X, drawn.targets, drawn.weights
    actual = decompose(X, weights, fit_intercept=fit_intercept).leave_one_out(targets, [reg])
    rest = np.arange(drawn.n) != i
    kept = reg * weights.sum() / weights[rest].sum()  # the refit keeps nγ
    coef, intercept = normal_equations(X[rest], targets[rest], weights[rest], kept, fit_intercept)
    close(actual.scores[i, 0], X[i] @ coef + intercept, 1e-7)


@holds(drawn=DRAWN, reg=REGS, fit_intercept=BOOLS)
def test_a_fit_keeps_a_share_of_each_direction(drawn, reg, fit_intercept):
    spectrum = decompose(drawn.X, drawn.weights, fit_intercept=fit_intercept)
    shares = spectrum.shrinkage([reg, 10 * reg])
    assert ((shares >= 0) & (shares <= 1)).all()
    assert (shares[:, 1] <= shares[:, 0]).all()
    leverages = spectrum.diagonal(shares)
    assert (leverages >= -1e-12).all()
    assert (leverages <= 1 + 1e-12).all()
    close(leverages.sum(axis=0), shares.sum(axis=0), 1e-9)
    assert (spectrum.variances >= 0).all()
    powers = drawn.weights @ (drawn.X - (spectrum.mean if fit_intercept else 0)) ** 2
    close(spectrum.variances.sum() * spectrum.n, powers.sum(), 1e-10)


@holds(drawn=DRAWN, reg=REGS, fit_intercept=BOOLS, first=st.floats(-5, 5), second=st.floats(-5, 5))
def test_fits_are_linear_in_their_targets(drawn, reg, fit_intercept, first, second):
    spectrum = decompose(drawn.X, fit_intercept=fit_intercept)
    path = spectrum.path(drawn.targets, [reg])
    mixed = spectrum.path(drawn.targets @ [first, second], [reg])
    close(mixed.coef[:, 0, 0], path.coef[:, 0, :] @ [first, second], 1e-9)
    close(mixed.intercept[0], path.intercept[0] @ [first, second], 1e-9)


@holds(drawn=DRAWN, reg=REGS, fit_intercept=BOOLS)
def test_sparse_rows_are_dense_rows(drawn, reg, fit_intercept):
    X = np.where(np.abs(drawn.X) > np.median(np.abs(drawn.X)), drawn.X, 0.0)
    dense, sparse = (
        decompose(rows, drawn.weights, fit_intercept=fit_intercept) for rows in (X, csr_array(X))
    )
    close(sparse.path(drawn.targets, [reg]).coef, dense.path(drawn.targets, [reg]).coef, 1e-9)
    close(
        sparse.leave_one_out(drawn.targets, [reg]).scores,
        dense.leave_one_out(drawn.targets, [reg]).scores,
        1e-7,
    )
    assert sparse.n_varying == dense.n_varying


@holds(drawn=DRAWN, reg=REGS, fit_intercept=BOOLS)
def test_another_array_library_gives_the_same(drawn, reg, fit_intercept):
    strict = array_api_strict.asarray
    ours = decompose(drawn.X, drawn.weights, fit_intercept=fit_intercept)
    other = decompose(strict(drawn.X), strict(drawn.weights), fit_intercept=fit_intercept)
    path, theirs = ours.path(drawn.targets, [reg]), other.path(strict(drawn.targets), [reg])
    close(theirs.coef, path.coef, 1e-10)
    close(theirs.intercept, path.intercept, 1e-10)
    scores = other.leave_one_out(strict(drawn.targets), [reg]).scores
    close(scores, ours.leave_one_out(drawn.targets, [reg]).scores, 1e-9)


@holds(drawn=DRAWN, reg=REGS, fit_intercept=BOOLS)
def test_single_and_double_precision_agree(drawn, reg, fit_intercept):
    single = drawn.X.astype(np.float32)
    ours, theirs = (
        decompose(rows, fit_intercept=fit_intercept) for rows in (single.astype(np.float64), single)
    )
    # How much a change of the rows changes the coefficients.
    amplified = 1 + np.sqrt(ours.variances.max() / reg)
    single_precision = np.finfo(np.float32).eps * amplified
    close(
        theirs.path(drawn.targets, [reg]).coef,
        ours.path(drawn.targets, [reg]).coef,
        10 * single_precision,
    )


@holds(drawn=DRAWN, reg=REGS, fit_intercept=BOOLS)
def test_moments_give_the_same_fits(drawn, reg, fit_intercept):
    values = np.array([[-1.0, 0.5], [1.0, 2.0]])
    moments = Moments.from_rows(drawn.X, drawn.y, 2, sample_weight=drawn.weights)
    of_sums = GramSpectrum.from_moments(moments, fit_intercept=fit_intercept).solve(
        moments, values, [reg]
    )
    of_rows = decompose(drawn.X, drawn.weights, fit_intercept=fit_intercept).path(
        values[drawn.y], [reg]
    )
    close(of_sums.coef, of_rows.coef, 1e-8)
    close(of_sums.intercept, of_rows.intercept, 1e-8)


@holds(drawn=DRAWN, reg=REGS, fit_intercept=BOOLS, scale=FACTORS, seed=SEEDS)
def test_fits_rotate_and_scale_with_the_rows(drawn, reg, fit_intercept, scale, seed):
    axes, order = rotation(drawn.p, seed), permutation(drawn.n, seed)
    now = decompose(drawn.X, drawn.weights, fit_intercept=fit_intercept).path(drawn.targets, [reg])
    turned = decompose(
        scale * (drawn.X @ axes)[order], drawn.weights[order], fit_intercept=fit_intercept
    )
    then = turned.path(drawn.targets[order], [scale**2 * reg])
    close(scale * (axes @ then.coef[:, 0, :]), now.coef[:, 0, :], 1e-8)
    close(then.intercept, now.intercept, 1e-8)


@holds(drawn=DRAWN, reg=REGS, factor=FACTORS, fit_intercept=BOOLS)
def test_only_ratios_of_weights_matter(drawn, reg, factor, fit_intercept):
    now, then = (
        decompose(drawn.X, weights, fit_intercept=fit_intercept).path(drawn.targets, [reg])
        for weights in (drawn.weights, factor * drawn.weights)
    )
    moments = (drawn.X.T * drawn.weights) @ drawn.X / drawn.weights.sum()
    eigenvalues = np.maximum(np.linalg.eigvalsh(moments), 0) + reg
    condition = eigenvalues[-1] / eigenvalues[0]
    close(then.coef, now.coef, drawn.p * np.finfo(float).eps * condition + 1e-12)
