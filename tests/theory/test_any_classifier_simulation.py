"""NoisyLabelClassifier in simulations: accuracy against the plain classifier, and its estimates."""

from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_circles, make_moons
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from unflip import NoiseModel, NoisyLabelClassifier
from unflip.datasets import make_mixture

# Six hundred rows may leave the noise rates hardly identifiable, which is one of the cases here.
pytestmark = pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")

NOISE = NoiseModel.binary(eps_pos=0.4, eps_neg=0.2)
CLEAN = NoiseModel.none()
N_ROWS = 600
N_SEEDS = 6
# The gains of support vectors differ much between the seeds.
N_SEEDS_OF = {"forest": 6, "boosting": 6, "support vectors": 12}
DRAWS = {
    "moons": lambda n, seed: make_moons(n, noise=0.2, random_state=seed),
    "circles": lambda n, seed: make_circles(n, noise=0.15, factor=0.4, random_state=seed),
}
ESTIMATORS = {
    "forest": RandomForestClassifier(30, random_state=0),
    "boosting": HistGradientBoostingClassifier(max_iter=20),
    "support vectors": SVC(),
}


@cache
def run(name_of_draw, name_of_estimator, noise):
    """Return for each seed: accuracy, plain accuracy, expected accuracy, AUROC of wrong labels."""
    draw, estimator = DRAWS[name_of_draw], ESTIMATORS[name_of_estimator]
    results = []
    for seed in range(N_SEEDS_OF[name_of_estimator]):
        X, y = draw(N_ROWS, seed)
        X_new, y_new = draw(2000, 1000 + seed)
        observed = noise.flip(y, random_state=seed)
        robust = NoisyLabelClassifier(estimator).fit(X, observed)
        plain = clone(estimator).fit(X, observed)
        results.append(
            [
                robust.score(X_new, y_new),
                plain.score(X_new, y_new),
                robust.expected_accuracy_,
                auroc(robust, observed, y),
            ]
        )
    return np.array(results).T


def auroc(robust, observed, y):
    """Return how well the posterior ranks wrong labels first; 1 without wrong labels."""
    if (observed == y).all():
        return 1.0
    own = robust.label_posterior_[np.arange(len(y)), observed]
    return roc_auc_score(observed != y, 1 - own)


def standard_error(values):
    return np.std(values, ddof=1) / np.sqrt(len(values))


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("draw", DRAWS)
def test_it_beats_the_plain_classifier_on_clean_labels(draw, estimator):
    accuracy, plain, _, area = run(draw, estimator, NOISE)
    gain = accuracy - plain
    assert gain.mean() > 2 * standard_error(gain) > 0
    assert gain.mean() > 0.02
    assert area.mean() - 3 * standard_error(area) > 0.85


@pytest.mark.parametrize(
    "estimator",
    [DecisionTreeClassifier(random_state=0), KNeighborsClassifier(1)],
    ids=["tree", "nearest neighbour"],
)
def test_memorized_samples_do_not_raise_the_expected_accuracy(estimator):
    """Predictions for training samples by these classifiers are those that they were fitted to."""
    gaps = []
    for seed in range(8):
        X, y = make_mixture(600, 10, mean_norm=1.5, random_state=seed)
        X_new, y_new = make_mixture(2000, 10, mean_norm=1.5, random_state=1000 + seed)
        observed = NOISE.flip(y, random_state=seed)
        model = NoisyLabelClassifier(estimator, NOISE, features="linear", cv=3)
        model.fit(X, observed)
        gaps.append(model.expected_accuracy_ - model.score(X_new, y_new))
    assert abs(np.mean(gaps)) < 3 * standard_error(np.array(gaps)) + 0.02


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_expected_accuracy_is_that_on_new_samples(estimator):
    """On these data, whose noise rates are hardly identifiable, the error is a few points."""
    accuracy, _, expected, _ = run("moons", estimator, NOISE)[:, :N_SEEDS]
    gap = expected - accuracy
    assert abs(gap.mean()) < 0.05
    assert abs(gap.mean()) < 3 * standard_error(gap)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_nothing_is_lost_without_noise(estimator):
    accuracy, plain, expected, _ = run("moons", estimator, CLEAN)
    gain = accuracy - plain
    assert gain.mean() > -3 * standard_error(gain) - 0.005
    assert abs(np.mean(expected - accuracy)) < 0.02


def category_and_chance(n, seed, n_levels=40, n_chance=6):
    """Return rows whose class is the parity of a category, beside features without information."""
    rng = np.random.default_rng(seed)
    category = rng.integers(n_levels, size=n)
    return np.column_stack([category, rng.normal(size=(n, n_chance))]), category % 2


@pytest.mark.parametrize(
    "last_step",
    [DecisionTreeClassifier(min_samples_leaf=5, random_state=0), LogisticRegression()],
    ids=["tree", "logistic"],
)
def test_a_classifier_may_see_what_the_kernel_does_not(last_step):
    one_hot = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), [0]))
    estimator = make_pipeline(one_hot, last_step)
    gains = []
    for seed in range(8):
        X, y = category_and_chance(800, seed)
        X_new, y_new = category_and_chance(2000, 100 + seed)
        observed = NOISE.flip(y, random_state=seed)
        robust = NoisyLabelClassifier(estimator).fit(X, observed)
        assert robust.cv_share_ > 0.5
        assert auroc(robust, observed, y) > 0.85
        by_kernel = NoisyLabelClassifier(estimator, cv=None).fit(X, observed)
        gains.append(robust.score(X_new, y_new) - by_kernel.score(X_new, y_new))
    assert np.mean(gains) > 2 * standard_error(gains)
    assert np.mean(gains) > 0.02


def levels_and_chance(n, seed, n_levels=60, n_chance=20):
    """Return rows whose class is that of an integer-coded level, drawn at random for each level.

    The levels are those of the seed modulo 100.
    """
    class_of_level = np.random.default_rng(seed % 100).integers(2, size=n_levels)
    rng = np.random.default_rng(seed)
    level = rng.integers(n_levels, size=n)
    return np.column_stack([level, rng.normal(size=(n, n_chance))]), class_of_level[level]


def test_a_first_step_without_signal_does_not_block_the_second():
    estimator = HistGradientBoostingClassifier(max_iter=30, random_state=0)
    noise = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)
    X, y = levels_and_chance(1500, 0)
    X_new, y_new = levels_and_chance(2000, 100)
    observed = noise.flip(y, random_state=0)
    robust = NoisyLabelClassifier(estimator).fit(X, observed)
    assert robust.label_fit_.association_ < 2
    assert robust.cv_share_ > 0.5
    assert robust.association_ > 4
    assert robust.rates_.source == "label likelihood"
    hits = (robust.predict(X_new) == y_new).astype(float)
    gain = hits - (clone(estimator).fit(X, observed).predict(X_new) == y_new)
    assert gain.mean() > 3 * standard_error(gain) > 0


def test_a_classifier_that_sees_less_than_the_kernel_is_rarely_used():
    shares = []
    for seed in range(N_SEEDS):
        X, y = DRAWS["circles"](N_ROWS, seed)
        observed = NOISE.flip(y, random_state=seed)
        robust = NoisyLabelClassifier(LogisticRegression()).fit(X, observed)
        shares.append(robust.cv_share_)
    assert np.mean(shares) < 0.1
