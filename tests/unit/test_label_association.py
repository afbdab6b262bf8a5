"""Test of association of scores and labels: algebra, null distribution and invariance."""

import numpy as np
import pytest
from scipy.stats import chi2, norm

from support.strategies import permutation, rotation
from unflip import LPClassifier, NoiseModel
from unflip.data.duplicates import DistinctRows
from unflip.datasets import make_mixture
from unflip.labels.classes import contrasts
from unflip.model.refinement.refine import RefinementLoop, refine
from unflip.model.refinement.rounds import NoisyLabels
from unflip.ridge.label_association import (
    _as_normal,
    association,
    loo_operator_diagonals,
    standardised_agreement,
)
from unflip.ridge.selection import corrected_score_parts
from unflip.ridge.spectrum import decompose

REGS = [1e-7, 1e-4, 1e-2, 1.0, 1e2, 1e6]
NOISE = NoiseModel(0.7 * np.eye(3) + 0.1, [0.5, 0.3, 0.2])
ROUNDING = 1e-8  # of a slack of γ = 1e-7, which the diagonals are divided by


def scores_of(X, weights, reg, fit_intercept):
    """Return the spectrum, the distinct rows and the map from targets of members to leave-one-out
    scores."""
    rows = DistinctRows.of(X, weights)
    spectrum = decompose(rows.X, rows.spectrum_weights, fit_intercept=fit_intercept)

    def scores(targets):
        return corrected_score_parts(spectrum, rows, rows.average(targets), np.array([reg]))(
            slice(None)
        )[:, 0, :]

    return spectrum, rows, scores


def dense_map(spectrum, rows, reg):
    """Return N, from the scores minus the mean target for unit vectors as targets."""
    scores = corrected_score_parts(spectrum, rows, np.eye(rows.weights.shape[0]), np.array([reg]))(
        slice(None)
    )[:, 0, :]
    mean = rows.weights / rows.weights.sum() if spectrum.fit_intercept else 0.0
    return scores - mean


def check_algebra(X, weights, reg, fit_intercept):
    spectrum, rows, _ = scores_of(X, weights, reg, fit_intercept)
    dense = dense_map(spectrum, rows, reg)
    root = np.sqrt(rows.weights)
    in_root_weights = root[:, None] * dense / root
    own, power = loo_operator_diagonals(spectrum, rows, reg)
    expected = (in_root_weights**2).sum(axis=1)
    np.testing.assert_allclose(power, expected, rtol=ROUNDING, atol=0)
    np.testing.assert_allclose(own, np.diag(dense), rtol=0, atol=ROUNDING * np.sqrt(expected.max()))
    return own, power


def associated(X, targets, weights=None, *, reg=0.3, fit_intercept=True):
    spectrum, rows, scores = scores_of(X, weights, reg, fit_intercept)
    return association(spectrum, rows, targets, scores(targets), reg)


def draw_rows(n, p, seed=0):
    return np.random.default_rng([seed, n, p]).normal(size=(n, p))


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("n", "p"), [(30, 10), (30, 60)])
@pytest.mark.parametrize("weighted", [False, True])
def test_diagonals_are_those_of_the_dense_map(n, p, fit_intercept, weighted, reg):
    weights = np.random.default_rng(1).uniform(0.5, 2, size=n) if weighted else None
    own, power = check_algebra(draw_rows(n, p), weights, reg, fit_intercept)
    assert (np.abs(own) <= ROUNDING * np.sqrt(power.max())).all()
    assert (power > 0).all()


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("n", "p"), [(30, 10), (30, 60)])
def test_duplicates_left_out_together_do_not_affect_their_scores(n, p, fit_intercept, reg):
    X = draw_rows(n, p)[np.append(np.arange(n), [3, 3, 7])]
    assert (DistinctRows.of(X).leaving_share == 1).all()
    own, power = check_algebra(X, None, reg, fit_intercept)
    assert (np.abs(own) <= ROUNDING * np.sqrt(power.max())).all()


@pytest.mark.parametrize("reg", REGS)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("n", "p"), [(30, 10), (30, 60)])
def test_duplicates_of_which_some_stay_affect_their_scores(n, p, fit_intercept, reg):
    X = draw_rows(n, p)[np.append(np.arange(n), np.full(11, 3))]
    assert DistinctRows.of(X).leaving_share.min() == pytest.approx(5 / 12)
    own, _ = check_algebra(X, None, reg, fit_intercept)
    assert own[3] > 0
    assert np.argmax(np.abs(own)) == 3


def null_values(rows, n_draws, *, seed, n_classes=3, reg=0.3, fit_intercept=True, weights=None):
    """Return the values for labels drawn independently of the rows."""
    spectrum, distinct, scores = scores_of(rows, weights, reg, fit_intercept)
    table, rng = contrasts(n_classes), np.random.default_rng(seed)
    values = []
    for _ in range(n_draws):
        targets = table[rng.integers(n_classes, size=len(rows))]
        values.append(standardised_agreement(spectrum, distinct, targets, scores(targets), reg)[0])
    return np.array(values)


def check_null(values):
    """Mean 0 and variance at most 1, within four standard errors of the same draws."""
    n = len(values)
    centred = values - values.mean()
    variance = values.var(ddof=1)
    error_of_variance = np.sqrt(((centred**2).var() + variance**2 / n) / n)
    assert abs(values.mean()) < 4 * np.sqrt(variance / n)
    assert variance < 1 + 4 * error_of_variance


@pytest.mark.parametrize("reg", [1e-4, 1e3])
@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("n", "p"), [(80, 30), (60, 200)])
def test_without_signal_the_mean_is_0_and_the_variance_at_most_1(
    n, p, fit_intercept, n_classes, reg
):
    values = null_values(
        draw_rows(n, p), 600, seed=1, n_classes=n_classes, reg=reg, fit_intercept=fit_intercept
    )
    check_null(values)
    # The bound is tight: for symmetric N it is the variance itself.
    assert values.var(ddof=1) > 0.5


@pytest.mark.parametrize("reg", [1e-4, 0.01, 1.0])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_without_signal_the_mean_is_0_for_one_hot_rows(n_classes, reg):
    """Orthogonal rows of different lengths: only the intercept links them."""
    check_null(
        null_values(np.diag(np.linspace(0.5, 2, 60)), 600, seed=2, n_classes=n_classes, reg=reg)
    )


@pytest.mark.parametrize("reg", [1e-4, 0.01, 1.0])
def test_unlinked_rows_have_no_association(reg):
    assert np.abs(null_values(np.eye(60), 20, seed=2, reg=reg)).max() < 1e-5


@pytest.mark.parametrize("n_classes", [2, 4])
def test_without_signal_the_mean_is_0_if_some_duplicates_stay(n_classes):
    """Five of 40 duplicates are left out together; each is a separate observation."""
    values = null_values(np.eye(60)[:, :20], 600, seed=5, n_classes=n_classes, reg=0.3)
    assert abs(values.mean()) < 0.05
    assert values.std() < 1


def test_few_duplicates_count_as_one_row_with_one_label():
    X = draw_rows(40, 20)
    codes = np.random.default_rng(0).integers(2, size=40)
    once, twice = (
        associated(np.tile(X, (times, 1)), contrasts(2)[np.tile(codes, times)]) for times in (1, 2)
    )
    assert twice == pytest.approx(once, rel=1e-9)


@pytest.mark.parametrize(("n_squares", "level"), [(1, 0.00135), (2, 0.01), (30, 0.00135)])
def test_a_chi_square_variable_becomes_normal(n_squares, level):
    value = (chi2.isf(level, n_squares) - n_squares) / np.sqrt(2 * n_squares)
    assert _as_normal(value, np.sqrt(8 / n_squares)) == pytest.approx(norm.isf(level), abs=0.04)
    assert _as_normal(value, 0.0) == value


def test_a_signal_of_duplicates_is_detected():
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(300, 2)).astype(float)
    codes = NoiseModel.binary(eps_pos=0.2, eps_neg=0.2).flip(X[:, 0].astype(int), rng)
    assert associated(X, contrasts(2)[codes], reg=0.01) > 5


def test_without_signal_the_mean_is_0_for_weights():
    weights = np.random.default_rng(3).uniform(0.2, 3, size=60)
    check_null(null_values(draw_rows(60, 40), 600, seed=3, weights=weights))


def labelled():
    X, y = make_mixture(90, 40, means=2.0 * np.eye(3, 40), priors=NOISE.priors, random_state=0)
    return X, NOISE.flip(y, random_state=0)


@pytest.mark.parametrize("fit_intercept", [True, False])
class TestInvariance:
    def value(self, X, codes, weights=None, *, fit_intercept, reg=0.3, table=None):
        table = contrasts(3) if table is None else table
        return associated(X, table[codes], weights, reg=reg, fit_intercept=fit_intercept)

    def test_a_signal_is_detected(self, fit_intercept):
        assert self.value(*labelled(), fit_intercept=fit_intercept) > 3.5

    @pytest.mark.parametrize("factor", [1e-6, 7.0, 1e6])
    def test_scale_of_weights(self, fit_intercept, factor):
        X, codes = labelled()
        weights = np.random.default_rng(1).uniform(0.2, 3, size=len(X))
        now, then = (
            self.value(X, codes, w, fit_intercept=fit_intercept)
            for w in (weights, factor * weights)
        )
        assert then == pytest.approx(now, rel=1e-9)

    @pytest.mark.parametrize("factor", [1e-6, 7.0, 1e6])
    def test_scale_of_features_and_reg(self, fit_intercept, factor):
        X, codes = labelled()
        now = self.value(X, codes, fit_intercept=fit_intercept)
        then = self.value(factor * X, codes, reg=0.3 * factor**2, fit_intercept=fit_intercept)
        assert then == pytest.approx(now, rel=1e-9)

    def test_rotation_of_features(self, fit_intercept):
        X, codes = labelled()
        now, then = (
            self.value(rows, codes, fit_intercept=fit_intercept)
            for rows in (X, X @ rotation(40, 1))
        )
        assert then == pytest.approx(now, rel=1e-9)

    def test_order_of_rows(self, fit_intercept):
        X, codes = labelled()
        order = permutation(len(X), 1)
        now = self.value(X, codes, fit_intercept=fit_intercept)
        assert self.value(X[order], codes[order], fit_intercept=fit_intercept) == pytest.approx(
            now, rel=1e-9
        )

    @pytest.mark.parametrize("names", [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]])
    def test_names_of_classes(self, fit_intercept, names):
        X, codes = labelled()
        now = self.value(X, codes, fit_intercept=fit_intercept)
        assert self.value(X, np.array(names)[codes], fit_intercept=fit_intercept) == pytest.approx(
            now, rel=1e-9
        )

    def test_scale_of_targets(self, fit_intercept):
        X, codes = labelled()
        now = self.value(X, codes, fit_intercept=fit_intercept)
        then = self.value(X, codes, fit_intercept=fit_intercept, table=-3 * contrasts(3))
        assert then == pytest.approx(now, rel=1e-9)

    @pytest.mark.parametrize("duplicates", [2, 4])
    def test_a_weight_equals_duplicates(self, fit_intercept, duplicates):
        X, codes = labelled()
        weights = np.ones(len(X))
        weights[[3, 50]] = duplicates
        repeated = np.repeat(np.arange(len(X)), weights.astype(int))
        once = self.value(X, codes, weights, fit_intercept=fit_intercept)
        often = self.value(X[repeated], codes[repeated], fit_intercept=fit_intercept)
        assert often == pytest.approx(once, rel=1e-9)
        assert once != pytest.approx(self.value(X, codes, fit_intercept=fit_intercept), rel=1e-4)

    def test_zero_weight_rows(self, fit_intercept):
        X, codes = labelled()
        weights = np.ones(len(X))
        weights[60:] = 0.0
        spectrum, rows, scores = scores_of(X, weights, 0.3, fit_intercept)
        targets = contrasts(3)[codes][:60]
        actual = association(spectrum, rows, targets, scores(targets), 0.3)
        assert actual == pytest.approx(
            self.value(X[:60], codes[:60], fit_intercept=fit_intercept), rel=1e-9
        )


def test_the_intercept_absorbs_a_shift():
    X, codes = labelled()
    now, then = (associated(rows, contrasts(3)[codes]) for rows in (X, X + 100.0))
    assert then == pytest.approx(now, rel=1e-8)


def test_almost_equal_rows_have_no_association():
    assert (
        abs(
            associated(
                np.ones((20, 3)) * (1 + 1e-15 * np.arange(20))[:, None], draw_rows(20, 1), reg=1.0
            )
        )
        < 3
    )


def test_predictions_scale_with_the_association_of_refined_scores():
    X, codes = labelled()
    posterior = NOISE.posterior[codes]
    first = associated(X, posterior @ contrasts(3))
    for targets in ("optimized", "refined"):
        clf = LPClassifier(NOISE, reg=0.3, targets=targets).fit(X, codes)
        assert clf.association_ == pytest.approx(first, rel=1e-9)
    spectrum, rows = decompose(X), DistinctRows.of(X)
    noise, regs = NOISE, np.array([0.3])
    labels = NoisyLabels(rows, codes, noise)
    loop = RefinementLoop(spectrum, labels)
    last = refine(spectrum, labels, regs, search=False)
    assert last.support == pytest.approx(
        first * last.alignment / loop.first(regs).alignment, rel=1e-9
    )
    assert last.support > last.association == pytest.approx(first, rel=1e-9)


def test_rows_of_tiny_weight_do_not_count():
    X = draw_rows(60, 30)
    codes = np.random.default_rng(0).integers(2, size=60)
    rng = np.random.default_rng(1)
    more, labels = (
        np.vstack([X, rng.normal(size=(600, 30))]),
        np.append(codes, rng.integers(2, size=600)),
    )
    weights = np.append(np.ones(60), np.full(600, 1e-7))
    values = []
    for rows, targets, weight in (
        (X, contrasts(2)[codes], None),
        (more, contrasts(2)[labels], weights),
    ):
        spectrum, distinct, scores = scores_of(rows, weight, 0.3, fit_intercept=True)
        values.append(standardised_agreement(spectrum, distinct, targets, scores(targets), 0.3)[0])
    assert values[1] == pytest.approx(values[0], abs=1e-3)


def test_without_signal_the_mean_is_0_for_unequal_weights():
    weights = np.append(np.ones(20), np.full(60, 0.02))
    values = null_values(draw_rows(80, 40), 600, seed=4, weights=weights)
    assert abs(values.mean()) < 4 * values.std() / np.sqrt(len(values))
    assert values.std() < 1.1


def test_without_an_intercept_a_nonzero_mean_is_no_signal():
    rng = np.random.default_rng(0)
    actual = []
    for _ in range(20):
        X, y = 1 + rng.normal(size=(120, 30)), (rng.random(120) < 0.8).astype(int)
        noise = NoiseModel.binary(eps_pos=0.1, eps_neg=0.1)
        actual.append(
            LPClassifier(noise, fit_intercept=False, reg=1.0)
            .fit(X, noise.flip(y, rng))
            .association_
        )
    assert np.max(actual) < 3


def test_an_outlier_does_not_hide_the_signal():
    X, y = make_mixture(200, 20, mean_norm=3.0, random_state=0)
    X = np.column_stack([X, np.zeros(200)])
    X[0, -1] = 1e6
    noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.2)
    clf = LPClassifier(noise, fit_intercept=False).fit(X, noise.flip(y, random_state=0))
    assert clf.association_ > 4
