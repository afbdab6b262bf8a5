"""More than two classes: known models, two classes as a special case, and the paper's settings."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.utils.estimator_checks import check_estimator

from support.multiclass import paper_setting
from unflip import LPClassifier, NoiseModel, audit, targets, theory
from unflip.datasets import make_mixture
from unflip.estimation import CrossMoment, TrustedSubset

MEANS = np.pad(1.5 * np.array([[1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9]]), ((0, 0), (0, 18)))
NOISE = NoiseModel([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.15, 0.15, 0.7]], [0.3, 0.3, 0.4])
NAMES = np.array(["cat", "dog", "eel"])


def draw(n, seed, p=20, noise=NOISE):
    X, y = make_mixture(
        n,
        p,
        means=np.pad(MEANS[:, :2], ((0, 0), (0, p - 2))),
        priors=noise.priors,
        random_state=seed,
    )
    return X, y, noise.flip(y, seed)


X, TRUE, OBSERVED = draw(400, 0)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shape", [(60, 8), (15, 30)])
@pytest.mark.parametrize("weighted", [True, False])
class TestPlainScoresMatchRidge:
    def fitted(self, shape, fit_intercept, weighted, table):
        rng = np.random.default_rng(0)
        rows, codes = rng.normal(size=shape) + 1, rng.permutation(np.arange(shape[0]) % 3)
        weights = rng.uniform(0.5, 2, size=shape[0]) if weighted else np.ones(shape[0])
        options = {"readout": "plain", "reg": 0.3, "fit_intercept": fit_intercept}
        clf = LPClassifier(NOISE, targets=table, **options).fit(rows, NAMES[codes], weights)
        return clf, rows, codes, weights

    @pytest.mark.parametrize("name", ["naive", "unbiased", "optimized", "multi_lpc"])
    def test_fitted(self, shape, fit_intercept, weighted, name):
        table = targets.multi_lpc([1, 0.5, 2], [0.1, -0.3, 0]) if name == "multi_lpc" else name
        clf, rows, codes, weights = self.fitted(shape, fit_intercept, weighted, table)
        values = table if name == "multi_lpc" else targets.NAMED[name](NOISE)
        np.testing.assert_allclose(clf.targets_, values, atol=1e-12)
        alpha = 0.3 * weights.sum()
        ridge = Ridge(alpha=alpha, fit_intercept=fit_intercept).fit(rows, values[codes], weights)
        np.testing.assert_allclose(clf.coef_, ridge.coef_, atol=1e-10)
        np.testing.assert_allclose(clf.intercept_, ridge.intercept_, atol=1e-10)
        np.testing.assert_array_equal(clf.predict(rows), NAMES[ridge.predict(rows).argmax(axis=1)])

    def test_leave_one_out(self, shape, fit_intercept, weighted):
        clf, rows, codes, weights = self.fitted(shape, fit_intercept, weighted, "unbiased")
        values, alpha = clf.targets_[codes], 0.3 * weights.sum()
        for i in range(shape[0]):
            kept = np.arange(shape[0]) != i
            ridge = Ridge(alpha=alpha, fit_intercept=fit_intercept)
            alone = ridge.fit(rows[kept], values[kept], weights[kept]).predict(rows[[i]])[0]
            np.testing.assert_allclose(clf.loo_decision_[i], alone, atol=1e-9)


class TestTwoClasses:
    """A 2×2 table equals the binary targets given by the difference of its columns."""

    noise = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1, pi_neg=0.4)

    @pytest.mark.parametrize("readout", ["plain", "gaussian"])
    @pytest.mark.parametrize("name", ["naive", "unbiased", "optimized"])
    def test_tables_and_values_agree(self, readout, name):
        X, y = make_mixture(150, 30, mean_norm=1.5, random_state=0)
        codes = self.noise.flip(y, 0)
        table = targets.resolve_table(name, self.noise)
        first, second = (
            LPClassifier(self.noise, targets=t, readout=readout, reg=0.5).fit(X, codes)
            for t in (name, table)
        )
        np.testing.assert_allclose(second.coef_, first.coef_, rtol=1e-10)
        np.testing.assert_allclose(second.label_posterior_, first.label_posterior_, atol=1e-10)

    def test_a_class_of_negligible_prior_changes_nothing(self):
        """The other two classes have the coefficients of a binary fit."""
        X, y = make_mixture(200, 20, mean_norm=2.0, random_state=0)
        two = LPClassifier(self.noise, targets="unbiased", readout="plain", reg=0.5).fit(
            X, self.noise.flip(y, 0)
        )
        table = np.zeros((3, 3))
        table[:2, :2], table[2, 2] = self.noise.inverse_transition, 1.0
        codes = np.append(self.noise.flip(y, 0), 2)
        weights = np.append(np.ones(200), 1e-13)
        three = LPClassifier(None, targets=table, readout="plain", reg=0.5)
        three.fit(np.vstack([X, X[:1] + 1e-3]), codes, weights)
        difference = three.coef_[1] - three.coef_[0]
        np.testing.assert_allclose(difference, two.coef_[0], atol=1e-10)


def test_named_targets_share_one_calibration():
    """Every invertible table has the same scores in other axes, and so the same calibration."""
    probabilities = [
        LPClassifier(NOISE, targets=name, reg=0.5).fit(X, OBSERVED).predict_proba(X)
        for name in (
            "naive",
            "unbiased",
            "optimized",
            targets.multi_lpc([1, 0.5, 2], [0.1, -0.3, 0]),
        )
    ]
    for other in probabilities[1:]:
        # EM stops when directions change by less than 1e-5.
        np.testing.assert_allclose(other, probabilities[0], atol=5e-3)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("readout", ["plain", "gaussian"])
@pytest.mark.parametrize("name", ["naive", "unbiased", "optimized", "refined"])
def test_combinations_of_parameters(name, readout, fit_intercept):
    labels = NAMES[OBSERVED]
    clf = LPClassifier(NOISE, targets=name, readout=readout, fit_intercept=fit_intercept).fit(
        X, labels
    )
    assert clf.coef_.shape == (3, 20)
    assert clf.intercept_.shape == (3,)
    assert (
        clf.loo_decision_.shape
        == clf.decision_function(X).shape
        == clf.label_posterior_.shape
        == (400, 3)
    )
    assert clf.loo_log_odds_.shape == (400, 2)
    assert clf.targets_.shape == ((400, 3) if name == "refined" else (3, 3))
    probability = clf.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    np.testing.assert_array_equal(clf.predict(X), NAMES[probability.argmax(axis=1)])
    np.testing.assert_array_equal(clf.predict(X), NAMES[clf.decision_function(X).argmax(axis=1)])
    assert clf.expected_accuracy_std_ > 0


def test_refined_targets_are_posteriors():
    clf = LPClassifier(NOISE).fit(X, OBSERVED)
    np.testing.assert_allclose(clf.targets_.sum(axis=1), 1)
    assert roc_auc_score(TRUE != OBSERVED, 1 - clf.targets_[np.arange(400), OBSERVED]) > 0.8


def test_relabelling_classes_changes_nothing():
    order = np.array([2, 0, 1])  # class a is called order[a]
    turned = NoiseModel(NOISE.transition[np.ix_([1, 2, 0], [1, 2, 0])], NOISE.priors[[1, 2, 0]])
    first = LPClassifier(NOISE).fit(X, OBSERVED)
    second = LPClassifier(turned).fit(X, order[OBSERVED])
    np.testing.assert_allclose(second.predict_proba(X)[:, order], first.predict_proba(X), atol=1e-8)


def test_refinement_does_not_harm_clean_labels():
    """Without noise, refined targets are within a point of the posterior targets, the labels."""
    clf = LPClassifier(None).fit(X, TRUE)
    new, y, _ = draw(4000, 1)
    plain = LPClassifier(None, targets="naive").fit(X, TRUE)
    assert clf.score(new, y) > plain.score(new, y) - 0.01


def test_probabilities_and_posteriors_are_calibrated():
    rows, y, observed = draw(3000, 2, p=100)
    clf = LPClassifier(NOISE).fit(rows, observed)
    new, y_new, _ = draw(6000, 3, p=100)
    for probability, truth in ((clf.predict_proba(new), y_new), (clf.label_posterior_, y)):
        sure, right = probability.max(axis=1), probability.argmax(axis=1) == truth
        for low in (0.4, 0.6, 0.8):
            inside = (sure >= low) & (sure < low + 0.2)
            assert (
                abs(right[inside].mean() - sure[inside].mean())
                < 4 * 0.5 / np.sqrt(inside.sum()) + 0.02
            )
    accuracy = accuracy_score(y_new, clf.predict(new))
    assert abs(accuracy - clf.expected_accuracy_) < 3 * clf.expected_accuracy_std_


def test_costs_and_deployment_priors_move_predictions():
    clf = LPClassifier(NOISE, reg=0.5).fit(X, OBSERVED)
    costs = np.array([[0, 1, 1], [1, 0, 1], [9, 9, 0.0]])
    careful = LPClassifier(NOISE, reg=0.5, costs=costs).fit(X, OBSERVED)
    expected = clf.predict_proba(X) @ costs
    np.testing.assert_array_equal(careful.predict(X), expected.argmin(axis=1))
    assert (careful.predict(X) == 2).sum() > (clf.predict(X) == 2).sum()
    moved = (
        LPClassifier(NOISE, reg=0.5, deployment_priors=[0.1, 0.1, 0.8])
        .fit(X, OBSERVED)
        .predict_proba(X)
    )
    odds = clf.predict_proba(X) * np.array([0.1, 0.1, 0.8]) / NOISE.priors
    np.testing.assert_allclose(moved, odds / odds.sum(axis=1, keepdims=True), atol=1e-10)


@pytest.mark.parametrize("noise", [NOISE.transition, CrossMoment(), "estimate", None])
def test_every_kind_of_noise(noise):
    rows, _, observed = draw(1500, 4, p=60)
    new, y, _ = draw(2000, 5, p=60)
    assert LPClassifier(noise).fit(rows, observed).score(new, y) > 0.75


def test_trusted_rows_have_certain_posteriors():
    trusted = np.where(np.arange(400) < 120, TRUE.astype(object), None)
    clf = LPClassifier(TrustedSubset(trusted)).fit(X, OBSERVED)
    np.testing.assert_array_equal(clf.label_posterior_[:120].argmax(axis=1), TRUE[:120])
    assert (clf.label_posterior_[:120].max(axis=1) == 1).all()


class TestRegByTheory:
    def test_matches_the_theory(self):
        rows, _, observed = draw(1500, 4, p=60)
        clf = LPClassifier(NOISE, reg="theory").fit(rows, observed)
        expected = theory.optimal_multiclass_reg(
            means=np.pad(MEANS, ((0, 0), (0, 40))), n=1500, noise=NOISE, fit_intercept=True
        )
        best = {
            reg: theory.predict_multiclass(
                means=np.pad(MEANS, ((0, 0), (0, 40))),
                n=1500,
                noise=NOISE,
                reg=reg,
                fit_intercept=True,
            ).readout_accuracy
            for reg in (clf.reg_, expected)
        }
        assert best[clf.reg_] > best[expected] - 1e-3

    def test_needs_an_intercept(self):
        rows, _, observed = draw(1500, 4, p=60)
        with pytest.raises(ValueError, match="only with an intercept: use fit_intercept=True"):
            LPClassifier(NOISE, reg="theory", fit_intercept=False).fit(rows, observed)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"noise": NoiseModel.binary(eps_pos=0.1, eps_neg=0.1)},
            r"by noise as given, but y has 3 classes",
        ),
        ({"noise": NOISE, "targets": (-1, 1)}, r"by targets as given, but y has 3 classes"),
        (
            {"noise": NOISE, "targets": np.eye(3)[:, :2]},
            r"3 classes need 3 scores, so give a 3×3 table",
        ),
        ({"noise": NOISE, "targets": np.ones((3, 3))}, r"same row for every observed class"),
        ({"noise": NOISE, "costs": 1 - np.eye(2)}, r"by costs as given, but y has 3 classes"),
        (
            {"noise": NOISE, "costs": 1 - np.eye(2), "deployment_priors": [0.5, 0.5]},
            r"by deployment_priors and costs as given, but y has 3 classes",
        ),
        ({"noise": NOISE, "deployment_priors": [1, 0, 0]}, r"deployment_priors\[1\] = 0"),
    ],
)
def test_raises_if_parameters_do_not_match_the_classes(options, message):
    with pytest.raises(ValueError, match=message):
        LPClassifier(**options).fit(X, OBSERVED)


@pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
@pytest.mark.filterwarnings(
    "ignore:.*of the fitted scores:UserWarning", "ignore:Can't check dok sparse:UserWarning"
)
@pytest.mark.parametrize("readout", ["plain", "gaussian"])
@pytest.mark.parametrize("name", ["naive", "refined"])
def test_scikit_learn_checks_with_several_classes(name, readout):
    estimator = LPClassifier(None, targets=name, readout=readout)
    assert clone(estimator).__sklearn_tags__().classifier_tags.multi_class
    statuses = {result["status"] for result in check_estimator(estimator, on_skip=None)}
    assert statuses <= {"passed", "skipped"}


@pytest.mark.parametrize(("n_classes", "least"), [(3, 0.775), (4, 0.96)])
def test_settings_of_the_paper(n_classes, least):
    means, noise = paper_setting(n_classes)
    accuracies = []
    for seed in range(3):
        rows, y = make_mixture(2000, 200, means=means, priors=noise.priors, random_state=seed)
        new, y_new = make_mixture(
            4000, 200, means=means, priors=noise.priors, random_state=100 + seed
        )
        accuracies.append(LPClassifier(noise).fit(rows, noise.flip(y, seed)).score(new, y_new))
    assert np.mean(accuracies) > least - 2 * np.std(accuracies, ddof=1) / np.sqrt(3)
    assert np.mean(accuracies) < theory.multiclass_bayes_accuracy(means=means, noise=noise) + 0.01


class TestAudit:
    def test_of_three_classes(self):
        rows, y, observed = draw(1500, 6, p=60)
        report = audit(rows, NAMES[observed], noise=NOISE)
        chosen = report.suspects[: report.n_suspects]
        wrong = (observed != y)[chosen.row]
        assert wrong.mean() > 0.9 - 3 * np.sqrt(0.09 / len(chosen))
        assert (chosen.proposed[wrong] == NAMES[y[chosen.row]][wrong]).mean() > 0.9
        assert abs(report.expected_wrong - (observed != y).sum()) < 4 * max(
            report.expected_wrong_std, 10
        )

    def test_groups_of_three_classes(self):
        rows, y, observed = draw(300, 7, p=10)
        doubled, groups = np.vstack([rows, rows + 1e-6]), np.tile(np.arange(300), 2)
        report = audit(doubled, np.tile(observed, 2), noise=NOISE, groups=groups)
        wrong = np.tile(observed != y, 2)
        assert (
            roc_auc_score(wrong, 1 - report.label_posterior[np.arange(600), np.tile(observed, 2)])
            > 0.8
        )

    def test_rates_from_the_labels(self):
        rows, y, observed = draw(400, 8)
        report = audit(rows * np.linspace(0.3, 2, 20), observed)
        assert report.noise_source == "label likelihood"
        realised = [np.mean(observed[y == a] != a) for a in range(3)]
        gaps = 1 - np.diag(report.noise.transition) - realised
        assert (np.abs(gaps) < 3 * np.diag(report.noise_std)).all()


class TestFewDirections:
    """More classes than directions with signal: label leakage must be corrected."""

    @pytest.mark.parametrize(
        ("p", "loss"),
        [(2, "squared"), (5, "squared"), (25, "squared"), (5, "logistic"), (25, "logistic")],
    )
    def test_accuracy_matches_discriminant_analysis_and_its_estimate(self, p, loss):
        rng = np.random.default_rng(0)
        means = np.pad(3 * rng.normal(size=(8, 2)), ((0, 0), (0, p - 2)))
        noise = NoiseModel(0.8 * np.eye(8) + 0.2 / 7 * (1 - np.eye(8)), np.full(8, 1 / 8))
        rows, y = make_mixture(800, p, means=means, random_state=1)
        new, y_new = make_mixture(4000, p, means=means, random_state=2)
        observed = noise.flip(y, 3)
        clf = LPClassifier(noise, loss=loss).fit(rows, observed)
        discriminant = LinearDiscriminantAnalysis().fit(rows, observed)
        accuracy = clf.score(new, y_new)
        assert accuracy > discriminant.score(new, y_new) - 0.02
        assert abs(accuracy - clf.expected_accuracy_) < 3 * clf.expected_accuracy_std_ + 0.02

    def test_random_labels_are_not_evidence(self):
        rng = np.random.default_rng(0)
        noise = NoiseModel(0.8 * np.eye(10) + 0.02 * (1 - np.eye(10)) / 0.9, np.full(10, 0.1))
        rows, labels = rng.normal(size=(600, 40)), rng.integers(10, size=600)
        clf = LPClassifier(noise).fit(rows, labels)
        assert clf.expected_accuracy_ < 0.2
        assert (
            np.column_stack([np.zeros(600), clf.loo_log_odds_]).argmax(axis=1) == labels
        ).mean() < 0.2

    def test_warns_of_too_few_rows(self):
        rows, labels = np.random.default_rng(0).normal(size=(100, 30)), np.arange(100) % 10
        with pytest.warns(
            UserWarning, match=r"100 rows are few for 10 classes, whose calibration has 81 slopes"
        ):
            LPClassifier(None).fit(rows, labels)


class TestProportions:
    def test_without_noise_are_the_observed_proportions(self):
        labels = np.repeat([0, 1, 2], [200, 99, 1])
        rows = np.random.default_rng(0).normal(size=(300, 5))
        np.testing.assert_allclose(
            LPClassifier(None).fit(rows, labels).noise_.priors, [200 / 300, 99 / 300, 1 / 300]
        )

    def test_class_that_seems_empty_by_chance_keeps_one_row(self):
        transition = np.array([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]])
        labels = np.repeat([0, 1, 2], [150, 100, 45])  # a fifth of the others alone would give 50
        rows = np.random.default_rng(0).normal(size=(295, 5)) + labels[:, None]
        with pytest.warns(
            UserWarning,
            match="leave no true row in class 2, by chance or because the rates are too",
        ):
            clf = LPClassifier(transition).fit(rows, labels)
        assert 0 < clf.noise_.priors[2] < 0.1
