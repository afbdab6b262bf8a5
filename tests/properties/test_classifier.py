"""Properties of every fit: equivariance, and valid probabilities."""

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st
from scipy.sparse import csr_array

from support.lazy import Stored
from support.strategies import (
    BOOLS,
    SEEDS,
    close,
    holds,
    instances,
    noise_models,
    permutation,
    rotation,
)
from unflip import LPClassifier, NoiseModel
from unflip.ridge.label_association import UNSURE

# Warnings of few rows and of one-sided targets.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

TABLES = st.sampled_from(["naive", "unbiased", "optimized"])
TARGETS = st.sampled_from(["naive", "unbiased", "optimized", "refined"])
READOUTS = st.sampled_from(["plain", "gaussian"])
#: Regularization strengths in units of the features' variance. Nearly singular fits would have no
#: accurate digits to compare.
RELATIVE_REGS = st.floats(-2, 2).map(lambda exponent: 10.0**exponent)
SMALL = instances(rows=(20, 60), features=(1, 40))
SEVERAL = instances(noise_models(st.just(3)), rows=(30, 60), features=(2, 20))
SAFE = 1e-6  # tolerance of the calibration of two classes
ROUGH = 2e-3  # tolerance of the calibration of three classes
OPTIONS = st.fixed_dictionaries({"targets": TARGETS, "readout": READOUTS, "fit_intercept": BOOLS})
LINEAR = st.fixed_dictionaries(
    {"targets": TABLES, "readout": st.just("plain"), "fit_intercept": BOOLS}
)


def digits(options):
    """Return the tolerance for two equivalent fits."""
    return 1e-8 if options["readout"] == "plain" and options["targets"] != "refined" else SAFE


def fitted(drawn, X=None, y=None, weights=None, *, reg=1.0, scale=1.0, noise=None, **options):
    """Fit with γ in units of the variance of the drawn rows, times scale²."""
    own = scale**2 * reg * drawn.X.var()
    clf = LPClassifier(drawn.noise if noise is None else noise, reg=own, **options)
    return clf.fit(drawn.X if X is None else X, drawn.y if y is None else y, sample_weight=weights)


def assert_sound(clf, drawn):
    """Assert that all results are valid."""
    for table in (clf.predict_proba(drawn.X), clf.label_posterior_, clf.noise_.transition):
        assert ((table >= 0) & (table <= 1)).all()
        close(table.sum(axis=1), np.ones(len(table)), 1e-12)
    for name in (
        "coef_",
        "intercept_",
        "loo_decision_",
        "loo_log_odds_",
        "targets_",
        "noise_std_",
    ):
        assert np.isfinite(getattr(clf, name)).all(), name
    assert 0 <= clf.expected_accuracy_ <= 1
    assert clf.expected_accuracy_std_ >= 0
    assert (clf.noise_std_ >= 0).all()
    assert 0 < clf.n_effective_ <= drawn.n + 1e-9
    best = clf.predict_proba(drawn.X).argmax(axis=1)
    np.testing.assert_array_equal(clf.predict(drawn.X), best)


def renamed(noise, order):
    return NoiseModel(noise.transition[np.ix_(order, order)], noise.priors[order])


@holds(drawn=SMALL, options=OPTIONS, reg=RELATIVE_REGS, seed=SEEDS)
def test_order_of_rows_does_not_matter(drawn, options, reg, seed):
    within = digits(options)
    order = permutation(drawn.n, seed)
    now = fitted(drawn, reg=reg, **options)
    then = fitted(drawn, drawn.X[order], drawn.y[order], reg=reg, **options)
    close(then.decision_function(drawn.X), now.decision_function(drawn.X), within)
    close(then.loo_decision_, now.loo_decision_[order], within)
    close(then.label_posterior_, now.label_posterior_[order], SAFE)
    close(then.expected_accuracy_, now.expected_accuracy_, SAFE)


@holds(drawn=SMALL, options=OPTIONS, reg=RELATIVE_REGS, seed=SEEDS)
def test_renaming_classes_renames_predictions(drawn, options, reg, seed):
    order = permutation(drawn.n_classes, seed)  # class order[b] is called b
    now = fitted(drawn, reg=reg, **options)
    then = fitted(
        drawn, y=np.argsort(order)[drawn.y], noise=renamed(drawn.noise, order), reg=reg, **options
    )
    close(then.predict_proba(drawn.X), now.predict_proba(drawn.X)[:, order], SAFE)
    close(then.label_posterior_, now.label_posterior_[:, order], SAFE)
    close(then.expected_accuracy_, now.expected_accuracy_, SAFE)


@holds(drawn=SMALL, options=OPTIONS, reg=RELATIVE_REGS, seed=SEEDS)
def test_rotated_features_give_the_same_decisions(drawn, options, reg, seed):
    within = digits(options)
    axes = rotation(drawn.p, seed)
    now, then = (fitted(drawn, X, reg=reg, **options) for X in (drawn.X, drawn.X @ axes))
    close(then.coef_ @ axes.T, now.coef_, within)
    close(then.loo_decision_, now.loo_decision_, within)


@holds(drawn=SMALL, options=OPTIONS, reg=RELATIVE_REGS, seed=SEEDS)
def test_order_of_features_does_not_matter(drawn, options, reg, seed):
    within = digits(options)
    order = permutation(drawn.p, seed)
    now, then = (fitted(drawn, X, reg=reg, **options) for X in (drawn.X, drawn.X[:, order]))
    close(then.coef_, now.coef_[:, order], within)
    close(then.intercept_, now.intercept_, within)


@holds(
    drawn=SMALL, options=OPTIONS, reg=RELATIVE_REGS, scale=st.floats(-6, 6).map(lambda e: 10.0**e)
)
def test_rescaled_features_and_reg_change_nothing(drawn, options, reg, scale):
    within = digits(options)
    now = fitted(drawn, reg=reg, **options)
    then = fitted(drawn, scale * drawn.X, reg=reg, scale=scale, **options)
    close(scale * then.coef_, now.coef_, within)
    close(then.loo_decision_, now.loo_decision_, within)
    close(then.predict_proba(scale * drawn.X), now.predict_proba(drawn.X), SAFE)


@holds(
    drawn=SMALL, targets=TARGETS, readout=READOUTS, reg=RELATIVE_REGS, value=st.floats(-1e3, 1e3)
)
def test_intercept_absorbs_constant_columns_and_shifts(drawn, targets, readout, reg, value):
    options = {"targets": targets, "readout": readout, "fit_intercept": True, "reg": reg}
    within = digits(options)
    now = fitted(drawn, **options)
    constant = np.column_stack([drawn.X, np.full(drawn.n, value)])
    padded = fitted(drawn, constant, **options)
    close(padded.coef_[:, :-1], now.coef_, within)
    close(padded.coef_[:, -1], 0 * now.coef_[:, 0], 1e-9)
    moved = fitted(drawn, drawn.X + value, **options)
    close(moved.coef_, now.coef_, within)
    close(moved.decision_function(drawn.X + value), now.decision_function(drawn.X), within)


@holds(drawn=SMALL, options=OPTIONS, reg=RELATIVE_REGS, where=st.floats(0, 1))
def test_zero_column_changes_nothing(drawn, options, reg, where):
    within = digits(options)
    column = int(where * drawn.p)
    now = fitted(drawn, reg=reg, **options)
    then = fitted(drawn, np.insert(drawn.X, column, 0.0, axis=1), reg=reg, **options)
    close(np.delete(then.coef_, column, axis=1), now.coef_, within)
    assert np.abs(then.coef_[:, column]).max() <= 1e-12 * np.abs(now.coef_).max()


@holds(drawn=SMALL, options=OPTIONS, reg=RELATIVE_REGS, count=st.integers(2, 4))
def test_weights_equal_duplicates(drawn, options, reg, count):
    within = digits(options)
    weights = np.ones(drawn.n)
    weights[3] = count
    repeated = np.append(np.arange(drawn.n), np.full(count - 1, 3))
    once = fitted(drawn, weights=weights, reg=reg, **options)
    often = fitted(drawn, drawn.X[repeated], drawn.y[repeated], reg=reg, **options)
    # If features take few values, a duplicate counts as another observation, and a weight does not.
    # So the evidence of a signal differs, which matters where it is weak.
    both = np.array([once.association_, often.association_])
    assume(both.min() > UNSURE or np.ptp(both) <= 1e-9)
    close(often.coef_, once.coef_, within)
    close(often.decision_function(drawn.X), once.decision_function(drawn.X), within)


@holds(
    drawn=SMALL,
    options=OPTIONS,
    reg=RELATIVE_REGS,
    factor=st.floats(-100, 100).map(lambda e: 10.0**e),
)
def test_only_ratios_of_weights_matter_and_zero_weight_means_absent(drawn, options, reg, factor):
    within = digits(options)
    weights = drawn.weights
    weights[-3:] = 0.0
    kept = slice(0, -3)
    now = fitted(drawn, drawn.X[kept], drawn.y[kept], weights[kept], reg=reg, **options)
    scaled = fitted(drawn, weights=factor * weights, reg=reg, **options)
    close(scaled.coef_, now.coef_, within)
    close(scaled.decision_function(drawn.X), now.decision_function(drawn.X), within)


@holds(drawn=SMALL, options=OPTIONS, reg=st.one_of(RELATIVE_REGS, st.just("loo")), weighted=BOOLS)
def test_results_are_finite_probabilities(drawn, options, reg, weighted):
    weights = drawn.weights if weighted else None
    clf = LPClassifier(drawn.noise, reg=reg if reg == "loo" else reg * drawn.X.var(), **options)
    clf.fit(drawn.X, drawn.y, sample_weight=weights)
    assert_sound(clf, drawn)


@holds(drawn=SMALL, options=OPTIONS)
def test_predictions_do_not_depend_on_other_rows(drawn, options):
    clf = fitted(drawn, **options)
    together = clf.predict_proba(drawn.X)
    alone = np.vstack([clf.predict_proba(row[None, :]) for row in drawn.X[:5]])
    close(alone, together[:5], 1e-12)
    for rows in (
        np.asfortranarray(drawn.X),
        np.repeat(drawn.X, 2, axis=0)[::2],
        csr_array(drawn.X),
    ):
        close(clf.predict_proba(rows), together, 1e-12)


@holds(drawn=SMALL, options=OPTIONS, reg=RELATIVE_REGS)
def test_all_storage_types_give_the_same_fit(drawn, options, reg):
    within = digits(options)
    X = np.where(np.abs(drawn.X) > np.median(np.abs(drawn.X)), drawn.X, 0.0)
    in_memory = fitted(drawn, X, reg=reg, **options)
    for rows in (csr_array(X), Stored(X), np.asfortranarray(X)):
        other = fitted(drawn, rows, reg=reg, **options)
        close(other.coef_, in_memory.coef_, within)
        close(other.label_posterior_, in_memory.label_posterior_, SAFE)


@holds(
    drawn=instances(kinds=("few values",)),
    options=OPTIONS,
    dtype=st.sampled_from([np.int8, np.int64, bool]),
)
def test_integers_equal_floats(drawn, options, dtype):
    X = (np.round(drawn.X) % 2 if dtype is bool else np.round(drawn.X).clip(-100, 100)).astype(
        dtype
    )
    given_rows, floats = (fitted(drawn, rows, **options) for rows in (X, X.astype(float)))
    np.testing.assert_array_equal(given_rows.coef_, floats.coef_)
    np.testing.assert_array_equal(given_rows.predict_proba(X), floats.predict_proba(X))


@holds(drawn=SMALL, options=LINEAR, reg=RELATIVE_REGS)
def test_single_precision_agrees_to_single_precision(drawn, options, reg):
    double, single = (
        fitted(drawn, drawn.X.astype(kind), reg=reg, **options) for kind in (np.float64, np.float32)
    )
    close(single.coef_, double.coef_, 1e-4)
    assert single.coef_.dtype == np.float64


@holds(drawn=instances(features=(1, 20)), reg=RELATIVE_REGS, fit_intercept=BOOLS, targets=TABLES)
def test_table_of_two_scores_equals_the_binary_fit(drawn, reg, fit_intercept, targets):
    """The argmax of two scores is the sign of their difference."""
    options = {"readout": "plain", "fit_intercept": fit_intercept, "reg": reg}
    binary = fitted(drawn, targets=targets, **options)
    values = binary.targets_
    table = np.array([[-values[0], values[0]], [-values[1], values[1]]]) / 2
    two_scores = fitted(drawn, targets=table, **options)
    close(two_scores.coef_, binary.coef_, 1e-9)
    close(two_scores.predict_proba(drawn.X), binary.predict_proba(drawn.X), 1e-9)


@holds(drawn=SMALL, reg=RELATIVE_REGS, targets=TARGETS, fit_intercept=BOOLS)
def test_passing_the_fitted_priors_changes_little(drawn, reg, targets, fit_intercept):
    options = {"reg": reg, "targets": targets, "fit_intercept": fit_intercept}
    now = fitted(drawn, **options)
    even_costs = 1 - np.eye(drawn.n_classes)
    then = fitted(drawn, deployment_priors=now.noise_.priors, costs=even_costs, **options)
    close(then.decision_function(drawn.X), now.decision_function(drawn.X), 1e-9)
    np.testing.assert_array_equal(then.predict(drawn.X), now.predict(drawn.X))


@holds(
    drawn=instances(rows=(30, 60), features=(1, 20)),
    reg=st.floats(0.1, 10),
    seed=SEEDS,
    fit_intercept=BOOLS,
)
def test_logistic_fit_is_equivariant(drawn, reg, seed, fit_intercept):
    options = {
        "loss": "logistic",
        "targets": "optimized",
        "fit_intercept": fit_intercept,
        "readout": "plain",
    }
    within = digits(options)
    axes, order = rotation(drawn.p, seed), permutation(drawn.n, seed)
    now = fitted(drawn, reg=reg, **options)
    then = fitted(drawn, 10 * (drawn.X @ axes)[order], drawn.y[order], reg=reg, scale=10, **options)
    close(10 * then.coef_ @ axes.T, now.coef_, within)
    exchanged = fitted(drawn, y=1 - drawn.y, noise=renamed(drawn.noise, [1, 0]), reg=reg, **options)
    close(-exchanged.coef_, now.coef_, within)
    assert np.isfinite(now.loo_decision_).all()


@holds(drawn=SEVERAL, targets=TABLES, reg=RELATIVE_REGS, seed=SEEDS)
def test_several_classes_are_equivariant(drawn, targets, reg, seed):
    order, axes, names = (permutation(drawn.n, seed), rotation(drawn.p, seed), permutation(3, seed))
    options = {"targets": targets, "readout": "plain", "reg": reg}
    now = fitted(drawn, **options)
    assert_sound(now, drawn)
    then = fitted(drawn, 10 * (drawn.X @ axes)[order], drawn.y[order], scale=10, **options)
    close(10 * then.coef_ @ axes.T, now.coef_, 1e-8)
    close(then.loo_decision_, now.loo_decision_[order], 1e-8)
    close(then.label_posterior_, now.label_posterior_[order], ROUGH)
    other = fitted(
        drawn, y=np.argsort(names)[drawn.y], noise=renamed(drawn.noise, names), **options
    )
    close(other.coef_, now.coef_[names], 1e-8)
    close(other.label_posterior_, now.label_posterior_[:, names], ROUGH)


@holds(drawn=SEVERAL, reg=RELATIVE_REGS, fit_intercept=BOOLS)
def test_refined_targets_of_several_classes_are_probabilities(drawn, reg, fit_intercept):
    clf = fitted(drawn, targets="refined", reg=reg, fit_intercept=fit_intercept)
    assert_sound(clf, drawn)
    assert ((clf.targets_ >= -1e-12) & (clf.targets_ <= 1 + 1e-12)).all()
    close(clf.targets_.sum(axis=1), np.ones(drawn.n), 1e-12)


@holds(drawn=SMALL)
def test_transition_matrix_equals_noise_model(drawn):
    table, priors = drawn.noise.transition, drawn.noise.priors
    as_model, as_table = (
        fitted(drawn, noise=noise, priors=priors) for noise in (NoiseModel(table), table)
    )
    np.testing.assert_array_equal(as_table.coef_, as_model.coef_)
