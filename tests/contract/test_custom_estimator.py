"""A noise estimator that a user writes works wherever those of the library do."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from unflip import LPClassifier, NoiseModel, audit
from unflip.datasets import make_mixture
from unflip.estimation import NoiseEstimator

NOISE = NoiseModel.binary(eps_pos=0.2, eps_neg=0.2)
X, Y = make_mixture(400, 30, mean_norm=2.0, random_state=0)
OBSERVED = NOISE.flip(Y, random_state=0)


class Symmetric(NoiseEstimator):
    def __init__(self, rate=0.2):
        self.rate = rate

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.noise_ = NoiseModel.binary(eps_pos=self.rate, eps_neg=self.rate)
        self.noise_std_ = np.full((2, 2), 0.01)
        return self


class Assumed(Symmetric):
    source_ = "a rule of thumb"
    assumption_ = "Noise is symmetric."


def test_its_rates_are_used_and_priors_are_inferred():
    classifier = LPClassifier(noise=Symmetric()).fit(X, OBSERVED)
    expected = LPClassifier(noise=NOISE).fit(X, OBSERVED)
    np.testing.assert_allclose(classifier.noise_.priors, expected.noise_.priors, rtol=1e-12)
    assert classifier.noise_.eps_pos == 0.2
    assert (classifier.noise_std_ == 0.01).all()


@pytest.mark.parametrize(
    ("estimator", "source"),
    [(Symmetric(), "estimated by the noise estimator"), (Assumed(), "a rule of thumb")],
)
def test_audits_say_where_the_rates_come_from(estimator, source, tmp_path):
    pytest.importorskip("jinja2", reason="the page needs unflip[cli]")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Assumed has an assumption
        report = audit(X, OBSERVED, noise=estimator)
    assert source in str(report)
    report.to_html(tmp_path / "report.html")
    assert source in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_groups_do_not_replace_its_rates_by_a_heuristic():
    groups = np.arange(len(X)) // 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Assumed has an assumption
        report = audit(X, OBSERVED, noise=Assumed(0.1), groups=groups)
    assert report.noise_source == "a rule of thumb"
    assert report.noise.eps_pos == 0.1


class WithoutSelf(Symmetric):
    def fit(self, X, y):
        super().fit(X, y)


def test_fit_need_not_return_the_estimator():
    assert LPClassifier(noise=WithoutSelf()).fit(X, OBSERVED).noise_.eps_pos == 0.2


class WithoutErrors(Symmetric):
    def fit(self, X, y):
        self.noise_ = NOISE


class WithErrorsOfOneClass(Symmetric):
    def fit(self, X, y):
        super().fit(X, y)
        self.noise_std_ = np.zeros(2)


class WithThreeClasses(Symmetric):
    def fit(self, X, y):
        self.noise_ = NoiseModel.none(3)
        self.noise_std_ = np.zeros((3, 3))


class WithoutNoise(Symmetric):
    def fit(self, X, y):
        return self


@pytest.mark.parametrize(
    "estimator", [WithoutErrors(), WithErrorsOfOneClass(), WithThreeClasses(), WithoutNoise()]
)
def test_an_estimator_that_does_not_keep_the_contract_is_named(estimator):
    expected = (
        rf"noise={type(estimator).__name__}\(\) must set noise_ to a NoiseModel of 2 classes and "
        r"noise_std_ to an array of shape \(2, 2\)"
    )
    with pytest.raises(ValueError, match=expected):
        LPClassifier(noise=estimator).fit(X, OBSERVED)


class FromScikitLearn(Symmetric):
    def fit(self, X, y):
        super().fit(X, y)
        self.model_ = LogisticRegression().fit(X, y)


def test_rows_of_a_memory_map_can_be_read(tmp_path):
    rows = np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", dtype=float, shape=X.shape)
    rows[:] = X
    lazily = LPClassifier(noise=FromScikitLearn()).fit(rows, OBSERVED)
    at_once = LPClassifier(noise=FromScikitLearn()).fit(X, OBSERVED)
    np.testing.assert_array_equal(
        lazily.noise_estimator_.model_.coef_, at_once.noise_estimator_.model_.coef_
    )
