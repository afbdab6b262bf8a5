"""The same data and seed give the same results: repeated, in another process, and in threads."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from threadpoolctl import threadpool_info, threadpool_limits

from unflip import LPClassifier, Moments, NoiseModel, audit, audit_scores, theory
from unflip.datasets import make_mixture
from unflip.estimation import Automatic, CrossMoment, SecondMomentMatching, TrustedSubset

NOISE = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1, pi_neg=0.4)
THREE = NoiseModel([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]], [0.3, 0.3, 0.4])
CLASSIFIERS = {
    "refined": lambda: LPClassifier(NOISE),
    "estimated": lambda: LPClassifier(),
    "plain": lambda: LPClassifier(NOISE, targets="unbiased", readout="plain"),
    "logistic": lambda: LPClassifier(NOISE, loss="logistic", reg=0.1),
    "trusted": lambda: LPClassifier(TrustedSubset(draw()[2][:30].tolist() + [None] * 90)),
}
ESTIMATORS = {
    "CrossMoment": lambda: CrossMoment(),
    "SecondMomentMatching": lambda: SecondMomentMatching(mean_norm=1.5, pi_neg=0.4),
    "TrustedSubset": lambda: TrustedSubset(draw()[2][:30].tolist() + [None] * 90),
    "Automatic": lambda: Automatic(),
}
SHAPES = {"tall": (120, 20), "wide": (120, 200)}
LARGE = (300, 250)  # enough for products to use several threads
#: Tolerance between numbers of threads: rounding errors, which iterations amplify by their
#: condition.
APART = {"plain": 1e-12, "logistic": 1e-10, "refined": 1e-8}
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # assumed noise rates


@cache
def draw(shape="tall"):
    n, p = SHAPES.get(shape, LARGE)
    X, y = make_mixture(n, p, mean_norm=1.5, priors=NOISE.priors, random_state=0)
    return X, NOISE.flip(y, random_state=0), y


def fitted_values(clf, X):
    """Return all results of a fit as one vector."""
    parts = [
        clf.coef_,
        clf.intercept_,
        clf.loo_decision_,
        clf.label_posterior_,
        clf.predict_proba(X),
        clf.targets_,
    ]
    scalars = [clf.reg_, clf.expected_accuracy_, clf.expected_accuracy_std_]
    return np.concatenate([np.ravel(part) for part in (*parts, clf.noise_std_, scalars)])


def audited(report):
    return np.concatenate(
        [report.label_posterior.ravel(), report.suspects.probability, [report.expected_wrong]]
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_two_fits_are_bitwise_equal(name, shape):
    X, observed, _ = draw(shape)
    first, second = (fitted_values(CLASSIFIERS[name]().fit(X, observed), X) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_two_estimates_are_bitwise_equal(name):
    X, observed, _ = draw()
    first, second = (ESTIMATORS[name]().fit(X, observed) for _ in range(2))
    np.testing.assert_array_equal(first.noise_.transition, second.noise_.transition)
    np.testing.assert_array_equal(first.noise_std_, second.noise_std_)


def test_several_classes_sparse_rows_and_audits_are_bitwise_equal():
    X, true = make_mixture(90, 10, means=np.eye(3, 10) * 3, priors=THREE.priors, random_state=0)
    observed = THREE.flip(true, random_state=0)
    for rows in (X, csr_array(np.where(np.abs(X) > 1, X, 0))):
        fits = [
            fitted_values(LPClassifier(THREE, targets="optimized").fit(rows, observed), rows)
            for _ in range(2)
        ]
        np.testing.assert_array_equal(*fits)
    np.testing.assert_array_equal(*(audited(audit(X, observed, noise=THREE)) for _ in range(2)))


def test_seeds_give_the_same_stream():
    assert make_mixture(5, 3, mean_norm=1.0, random_state=7)[0].tobytes() == (
        make_mixture(5, 3, mean_norm=1.0, random_state=7)[0].tobytes()
    )
    y = np.zeros(1000, dtype=int)
    np.testing.assert_array_equal(NOISE.flip(y, 7), NOISE.flip(y, 7))
    assert (NOISE.flip(y, 7) != NOISE.flip(y, 8)).any()
    fitted = TrustedSubset(draw()[2][:30].tolist() + [None] * 90).fit(*draw()[:2])
    np.testing.assert_array_equal(
        fitted.suggest(10, random_state=3), fitted.suggest(10, random_state=3)
    )


_PROGRAM = """
import json, warnings
import numpy as np
from unflip import LPClassifier, NoiseModel, audit
from unflip.datasets import make_mixture
warnings.simplefilter("ignore")
noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1, pi_neg=0.4)
results = {}
for n, p in ((120, 20), (120, 200)):
    X, y = make_mixture(n, p, mean_norm=1.5, priors=noise.priors, random_state=0)
    observed = noise.flip(y, random_state=0)
    for name, option in (("given", noise), ("estimated", "estimate")):
        clf = LPClassifier(option).fit(X, observed)
        posterior = clf.label_posterior_[:, 0].tolist()
        results[f"{p} {name}"] = [*clf.coef_[0].tolist(), *posterior, clf.reg_]
    results[f"{p} audit"] = audit(X, observed).label_posterior[:, 1].tolist()
print(json.dumps(results))
"""


def test_fresh_processes_are_bitwise_equal():
    """On one thread, for any hash seed of Python."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    answers = [
        subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            env={**os.environ, **threads, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    ]
    assert json.loads(answers[0]) == json.loads(answers[1])


def on_threads(n_threads, work):
    """Run a function with so many threads of the linear algebra library."""
    with threadpool_limits(n_threads):
        pools = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
        assert set(pools) <= {n_threads}
        return work()


@pytest.mark.parametrize("shape", [*SHAPES, "large"])
@pytest.mark.parametrize("name", APART)
def test_one_and_two_threads_agree(name, shape):
    X, observed, _ = draw(shape)
    clf = CLASSIFIERS[name]().set_params(reg=0.1)
    one, two = (on_threads(n_threads, lambda: clone(clf).fit(X, observed)) for n_threads in (1, 2))
    for attribute in ("coef_", "intercept_", "loo_decision_", "label_posterior_"):
        expected = getattr(one, attribute)
        atol = (1e-8 if attribute == "label_posterior_" else APART[name]) * np.abs(expected).max()
        np.testing.assert_allclose(
            getattr(two, attribute), expected, rtol=0, atol=atol, err_msg=attribute
        )


def test_moments_on_one_and_two_threads_agree():
    X, observed, _ = draw("large")
    sums = [
        on_threads(n_threads, lambda: Moments.from_chunks([(X, observed)]).scatter)
        for n_threads in (1, 2)
    ]
    np.testing.assert_allclose(sums[1], sums[0], rtol=0, atol=1e-12 * np.abs(sums[0]).max())


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_concurrent_predictions_agree(name):
    X, observed, _ = draw()
    clf = CLASSIFIERS[name]().fit(X, observed)
    expected = [clf.predict_proba(X), clf.decision_function(X), clf.predict(X)]
    state = {
        key: np.array(value, copy=True)
        for key, value in vars(clf).items()
        if isinstance(value, np.ndarray)
    }

    def answers(_):
        return [clf.predict_proba(X), clf.decision_function(X), clf.predict(X)]

    with ThreadPoolExecutor(8) as pool:
        for results in pool.map(answers, range(64)):
            for one, other in zip(results, expected, strict=True):
                np.testing.assert_array_equal(one, other)
    for key, value in state.items():
        np.testing.assert_array_equal(vars(clf)[key], value)


def test_concurrent_fits_and_audits_agree():
    X, observed, _ = draw()
    expected = (
        fitted_values(LPClassifier(NOISE).fit(X, observed), X),
        audited(audit(X, observed, noise=NOISE)),
    )

    def answers(_):
        return fitted_values(LPClassifier(NOISE).fit(X, observed), X), audited(
            audit(X, observed, noise=NOISE)
        )

    with ThreadPoolExecutor(8) as pool:
        for results in pool.map(answers, range(16)):
            for one, other in zip(results, expected, strict=True):
                np.testing.assert_array_equal(one, other)


def test_global_random_state_is_unchanged():
    X, observed, y = draw()
    np.random.seed(5)  # noqa: NPY002  # the legacy state must not change
    before = np.random.get_state()  # noqa: NPY002  # the legacy state must not change
    for make in (*CLASSIFIERS.values(), *ESTIMATORS.values()):
        make().fit(X, observed)
    audit(X, observed)
    probabilities = LPClassifier(NOISE).fit(X, observed).predict_proba(X)
    audit_scores(probabilities, observed, noise=NOISE)
    NOISE.flip(y)
    make_mixture(20, 3, mean_norm=1.0)
    TrustedSubset(y[:30].tolist() + [None] * 90).fit(X, observed).suggest(5)
    theory.plan(n=100, p=10, mean_norm=1.0, noise=NOISE).equivalent_rows(10)
    after = np.random.get_state()  # noqa: NPY002  # the legacy state must not change
    assert before[0] == after[0]
    np.testing.assert_array_equal(before[1], after[1])
    assert before[2:] == after[2:]
