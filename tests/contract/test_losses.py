"""LPClassifier with losses other than the squared one: reference models, scores and errors."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit, ndtr
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import check_estimator

from unflip import LPClassifier, NoiseModel, targets, theory
from unflip.datasets import make_mixture
from unflip.estimation import TrustedSubset
from unflip.losses import LOGISTIC, SQUARED, Loss, TargetLoss

NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1, pi_neg=0.5)
THREE = NoiseModel([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.15, 0.15, 0.7]], [0.3, 0.3, 0.4])
X, TRUE = make_mixture(150, 40, mean_norm=1.5, random_state=0)
OBSERVED = NOISE.flip(TRUE, 0)
X3, TRUE3 = make_mixture(240, 20, means=np.pad(2 * np.eye(3), ((0, 0), (0, 17))), random_state=0)
OBSERVED3 = THREE.flip(TRUE3, 0)


def lopsided(s, y):
    """Return softplus(−ys)²: smooth, curved for wrong scores only; not always convex with noise."""
    return np.logaddexp(0, -y * s) ** 2


def lopsided_gradient(s, y):
    return -2 * y * np.logaddexp(0, -y * s) * expit(-y * s)


def lopsided_curvature(s, y):
    return 2 * expit(-y * s) ** 2 + 2 * np.logaddexp(0, -y * s) * expit(y * s) * expit(-y * s)


LOPSIDED = Loss("lopsided", lopsided, lopsided_gradient, lopsided_curvature)

SMOOTH_HINGE = Loss(
    "smooth hinge",
    lambda s, y: np.where(y * s <= 0, 0.5 - y * s, np.maximum(1 - y * s, 0) ** 2 / 2),
    lambda s, y: -y * np.clip(1 - y * s, 0, 1),
    lambda s, y: np.where((y * s > 0) & (y * s < 1), 1.0, 0.0),
)
HINGE = Loss(
    "hinge",
    lambda s, y: np.maximum(1 - y * s, 0),
    lambda s, y: -y * np.where(y * s < 1, 1.0, 0.0),
    lambda s, y: 0 * (y * s),
)


def huber(width):
    return Loss(
        "Huber",
        lambda s, y: np.where(
            np.abs(s - y) < width, (s - y) ** 2 / 2, width * (np.abs(s - y) - width / 2)
        ),
        lambda s, y: np.clip(s - y, -width, width),
        lambda s, y: np.where(np.abs(s - y) < width, 1.0, 0.0),
    )


def logistic(reg, n, fit_intercept):
    return LogisticRegression(
        C=1 / (2 * n * reg), fit_intercept=fit_intercept, solver="newton-cholesky", tol=1e-10
    )


class TestNaivePlainFitsEqualLogisticRegression:
    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("weighted", [True, False])
    @pytest.mark.parametrize("reg", [0.01, 1.0])
    @pytest.mark.parametrize(
        "data", [(X, OBSERVED), (X[:30], OBSERVED[:30]), (X3, OBSERVED3)], ids=["2", "n<p", "3"]
    )
    def test_coefficients(self, data, reg, weighted, fit_intercept):
        rows, labels = data
        weights = np.random.default_rng(0).uniform(0.5, 2, size=len(rows)) if weighted else None
        options = {
            "targets": "naive",
            "readout": "plain",
            "reg": reg,
            "fit_intercept": fit_intercept,
        }
        clf = LPClassifier(None, loss="logistic", **options).fit(rows, labels, weights)
        n = len(rows) if weights is None else weights.sum()
        reference = logistic(reg, n, fit_intercept).fit(rows, labels, weights)
        np.testing.assert_allclose(
            clf.coef_, reference.coef_, rtol=1e-6, atol=1e-6 * np.abs(reference.coef_).max()
        )
        np.testing.assert_allclose(clf.intercept_, reference.intercept_, atol=1e-6)
        np.testing.assert_array_equal(clf.predict(rows), reference.predict(rows))

    def test_leave_one_out(self):
        clf = LPClassifier(None, targets="naive", readout="plain", loss="logistic", reg=0.1).fit(
            X, OBSERVED
        )
        refitted = np.empty(150)
        for i in range(150):
            others = np.arange(150) != i
            refitted[i] = (
                logistic(0.1, 150, True)
                .fit(X[others], OBSERVED[others])
                .decision_function(X[[i]])[0]
            )
        assert np.abs(clf.loo_decision_ - refitted).max() < 0.02 * refitted.std()


@pytest.mark.parametrize("readout", ["plain", "gaussian"])
@pytest.mark.parametrize("name", ["naive", "unbiased", "optimized", "refined"])
class TestSquaredLossObjectEqualsSquaredLoss:
    """The general solver agrees with the closed form."""

    def test_same_fit(self, name, readout):
        mine = Loss("squared again", SQUARED.value, SQUARED.gradient, SQUARED.curvature)
        options = {"targets": name, "readout": readout, "reg": 0.3}
        closed, solved = (
            LPClassifier(NOISE, loss=loss, **options).fit(X, OBSERVED) for loss in ("squared", mine)
        )
        for attribute in ("coef_", "loo_decision_", "label_posterior_", "expected_accuracy_"):
            np.testing.assert_allclose(
                getattr(solved, attribute), getattr(closed, attribute), rtol=1e-6, atol=1e-7
            )


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("readout", ["plain", "gaussian"])
@pytest.mark.parametrize("name", ["naive", "unbiased", "optimized", "refined"])
@pytest.mark.parametrize(
    "data", [(NOISE, X, OBSERVED, TRUE), (THREE, X3, OBSERVED3, TRUE3)], ids=["2", "3"]
)
def test_all_methods_work(data, name, readout, fit_intercept):
    noise, rows, labels, y = data
    options = {"targets": name, "readout": readout, "fit_intercept": fit_intercept}
    clf = LPClassifier(noise, loss="logistic", **options).fit(rows, labels)
    assert clf.label_posterior_.shape == (len(y), noise.n_classes)
    np.testing.assert_array_equal(clf.predict(rows), clf.predict_proba(rows).argmax(axis=1))
    assert clf.score(rows, y) > (0.75 if readout == "gaussian" else 0.5)
    assert roc_auc_score(labels != y, 1 - clf.label_posterior_[np.arange(len(y)), labels]) > 0.8


def test_targets_by_rho_equal_logistic_regression_on_weighted_duplicates():
    """τ and 1 − τ are weights of two duplicates of each row with either label, if positive."""
    values = targets.from_rho(-0.2, -0.1)
    assert (np.abs(values) < 1).all()
    clf = LPClassifier(NOISE, targets=values, readout="plain", loss="logistic", reg=0.1).fit(
        X, OBSERVED
    )
    tau = (1 + values[OBSERVED]) / 2
    twice = np.vstack([X, X])
    reference = logistic(0.1, 150, True).fit(twice, np.repeat([1, 0], 150), np.append(tau, 1 - tau))
    np.testing.assert_allclose(clf.coef_, reference.coef_, rtol=1e-5, atol=1e-7)


def test_targets_outside_the_labels_minimise_the_perturbed_loss():
    clf = LPClassifier(NOISE, targets="unbiased", readout="plain", loss="logistic", reg=0.1).fit(
        X, OBSERVED
    )
    perturbed = TargetLoss(LOGISTIC, clf.targets_[OBSERVED])
    assert clf.targets_.max() > 1
    pulls = perturbed.gradient(X @ clf.coef_[0] + clf.intercept_[0])
    np.testing.assert_allclose(X.T @ pulls / 150 + 0.2 * clf.coef_[0], 0, atol=1e-6)
    assert abs(pulls.mean()) < 1e-6


def test_accuracy_matches_the_theory():
    noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)
    mixture = theory.Mixture(mean_norm=2.0, aspect=1.0, noise=noise)
    actual = {name: [] for name in ("naive", "unbiased", "optimized")}
    for seed in range(8):
        rows, y = make_mixture(400, 400, mean_norm=2.0, priors=noise.priors, random_state=seed)
        observed = noise.flip(y, seed)
        for name, accuracies in actual.items():
            options = {"targets": name, "readout": "plain", "reg": 1.0, "fit_intercept": False}
            coef = LPClassifier(noise, loss="logistic", **options).fit(rows, observed).coef_[0]
            signal = 2.0 / 20 * coef.sum() / np.linalg.norm(coef)
            accuracies.append(ndtr(signal))
    for name, accuracies in actual.items():
        expected = theory.predict(mixture, targets=name, reg=1.0, loss="logistic").accuracy
        error = np.std(accuracies, ddof=1) / np.sqrt(8)
        assert abs(np.mean(accuracies) - expected) < 4 * error + 2 / 400, name
    assert np.mean(actual["optimized"]) > np.mean(actual["unbiased"]) + 0.05


@pytest.mark.parametrize("readout", ["plain", "gaussian"])
@pytest.mark.parametrize("name", ["naive", "refined"])
def test_small_regs_are_compared(name, readout):
    """The informative feature has a small scale, so only a small reg allows its coefficient."""
    rng = np.random.default_rng(0)
    rows, new = rng.normal(size=(2, 4000, 5)) * [1, 1, 1, 1, 0.05]
    y, y_new = (rng.random(4000) < expit(80 * part[:, 4] + part[:, 0]) for part in (rows, new))
    clf = LPClassifier(None, loss="logistic", targets=name, readout=readout).fit(rows, y)
    assert clf.score(new, y_new) > 0.86


class TestRegByTheory:
    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("scale", [1.0, 3.0])
    def test_two_classes(self, scale, fit_intercept):
        """It is γ* of features of variance 1, in units of their variance."""
        rows, y = make_mixture(600, 60, mean_norm=2.0, random_state=0)
        options = {"targets": "naive", "loss": "logistic", "fit_intercept": fit_intercept}
        clf = LPClassifier(NOISE, reg="theory", **options).fit(scale * rows, NOISE.flip(y, 0))
        mixture = theory.Mixture(mean_norm=2.0, aspect=0.1, noise=NOISE)
        np.testing.assert_allclose(
            clf.reg_, scale**2 * theory.optimal_reg(mixture, **options), rtol=0.02
        )

    @pytest.mark.parametrize(
        ("noise", "n_classes", "readout", "message"),
        [
            (
                NOISE,
                2,
                "plain",
                "supports readout='plain' with an intercept only for the squared loss",
            ),
            (THREE, 3, "gaussian", "supports only the squared loss for more than two classes"),
        ],
    )
    def test_other_settings_raise(self, noise, n_classes, readout, message):
        means = np.pad(3 * np.eye(n_classes), ((0, 0), (0, 20 - n_classes)))
        rows, y = make_mixture(600, 20, means=means, random_state=0)
        with pytest.raises(ValueError, match=message):
            LPClassifier(noise, loss="logistic", reg="theory", readout=readout).fit(
                rows, noise.flip(y, 0)
            )


def test_sparse_rows_and_trusted_rows():
    rows = np.where(np.abs(X) > 1, X, 0.0)
    dense, from_sparse = (
        LPClassifier(NOISE, loss="logistic").fit(part, OBSERVED)
        for part in (rows, sparse.csr_array(rows))
    )
    np.testing.assert_allclose(from_sparse.coef_, dense.coef_, rtol=1e-6, atol=1e-9)
    trusted = TrustedSubset(np.where(np.arange(150) < 60, TRUE.astype(object), None))
    clf = LPClassifier(trusted, loss="logistic").fit(X, OBSERVED)
    np.testing.assert_array_equal(clf.label_posterior_[:60].argmax(axis=1), TRUE[:60])


class TestCustomLoss:
    def test_the_loss_is_minimised(self):
        clf = LPClassifier(NOISE, targets="optimized", readout="plain", loss=LOPSIDED, reg=0.1).fit(
            X, OBSERVED
        )
        perturbed = TargetLoss(LOPSIDED, clf.targets_[OBSERVED])
        pulls = perturbed.gradient(X @ clf.coef_[0] + clf.intercept_[0])
        np.testing.assert_allclose(X.T @ pulls / 150 + 0.2 * clf.coef_[0], 0, atol=1e-6)

    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("name", ["naive", "refined"])
    @pytest.mark.parametrize(
        "loss", [SMOOTH_HINGE, huber(1.0), huber(0.3)], ids=["hinge", "Huber 1", "Huber .3"]
    )
    def test_a_loss_may_be_straight_near_zero(self, loss, name, fit_intercept):
        clf = LPClassifier(
            NOISE, targets=name, loss=loss, fit_intercept=fit_intercept, readout="plain"
        )
        clf.fit(X, OBSERVED)
        assert clf.score(X, TRUE) > 0.85
        perturbed = TargetLoss(loss, clf.targets_ if name == "refined" else clf.targets_[OBSERVED])
        pulls = perturbed.gradient(X @ clf.coef_[0] + clf.intercept_[0])
        np.testing.assert_allclose(X.T @ pulls / 150 + 2 * clf.reg_ * clf.coef_[0], 0, atol=1e-6)

    def test_a_loss_may_be_straight_at_every_row(self):
        """Balanced classes have a constant score of zero, where the loss has no curvature."""
        rows, y = make_mixture(100, 5, mean_norm=2.0, random_state=0)
        even = np.concatenate([np.flatnonzero(y == a)[:40] for a in (0, 1)])
        clf = LPClassifier(None, targets="naive", loss=huber(0.3), reg=100.0).fit(
            rows[even], y[even]
        )
        assert np.isfinite(clf.loo_decision_).all()
        assert clf.score(rows, y) > 0.9

    def test_refined(self):
        assert LPClassifier(NOISE, loss=LOPSIDED).fit(X, OBSERVED).score(X, TRUE) > 0.85


@pytest.mark.parametrize(
    ("options", "data", "message"),
    [
        (
            {"loss": "hinge"},
            (X, OBSERVED),
            r"loss='hinge' is not a valid value: use 'squared', 'logistic' or an unflip",
        ),
        (
            {"targets": "unbiased", "reg": 0.0},
            (X, OBSERVED),
            r"unbounded below, .* use a positive reg",
        ),
        (
            {"targets": (-1.0, 4.0)},
            (X, OBSERVED),
            r"no intercept is finite: use targets='optimized'",
        ),
        (
            {"loss": LOPSIDED, "targets": "unbiased"},
            (X, OBSERVED),
            r"is not convex: use targets within \[-1, 1\]",
        ),
        (
            {"noise": None, "targets": "naive"},
            (X, TRUE, np.where(TRUE == 1, 1e-15, 1.0)),
            r"no intercept is finite: a class has almost no weight, so drop it, or use fit_inter",
        ),
        (
            {"loss": HINGE, "targets": "naive"},
            (X, OBSERVED),
            r"The hinge loss has a mean curvature of 0 between",
        ),
        (
            {"noise": THREE, "loss": LOPSIDED},
            (X3, OBSERVED3),
            r"by loss as given, but y has 3 .* the name of a loss",
        ),
        ({"noise": THREE, "targets": 2 * np.eye(3)}, (X3, OBSERVED3), r"make each row sum to 1"),
        ({"targets": "naive", "reg": 0.0}, (X[:50], TRUE[:50]), r"use a positive reg"),
    ],
)
def test_fits_without_a_solution_raise(options, data, message):
    with pytest.raises(ValueError, match=message):
        LPClassifier(**{"noise": NOISE, "loss": "logistic", **options}).fit(*data)


MILD = NoiseModel.binary(eps_pos=0.1, eps_neg=0.05)
COMBINATIONS = [
    LPClassifier(
        noise, targets=name, readout=readout, fit_intercept=fit_intercept, loss=loss, reg=reg
    )
    for (noise, name, reg), readout, fit_intercept, loss in product(
        [
            (MILD, "unbiased", 0.1),
            (None, "naive", "loo"),
            (None, "refined", "loo"),
            (MILD, "refined", 0.1),
        ],
        ("plain", "gaussian"),
        (True, False),
        ("logistic",),
    )
] + [LPClassifier(loss="logistic"), LPClassifier(MILD, loss=LOPSIDED)]


@pytest.mark.filterwarnings("ignore:Can't check dok sparse matrix:UserWarning")
@pytest.mark.filterwarnings(
    "ignore:Both targets:UserWarning", "ignore:.*of the fitted scores:UserWarning"
)
@pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
@pytest.mark.parametrize(
    "estimator", COMBINATIONS, ids=lambda e: f"{e.targets}-{e.readout}-{e.fit_intercept}-{e.reg}"
)
def test_every_check_of_scikit_learn_passes(estimator):
    results = check_estimator(estimator, on_skip=None)
    assert {result["status"] for result in results} <= {"passed", "skipped"}
