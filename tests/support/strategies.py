"""Random instances for property tests: noise models, rows with noisy labels, ways to cut and turn
them.

Hypothesis picks shapes, rates, kinds of features and a seed; NumPy draws the numbers from that
seed. So instances are drawn fast and shrink to small shapes, and an example that fails can be made
again from its report.
"""

from dataclasses import dataclass
from itertools import pairwise

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from unflip import NoiseModel

_PHASES = [hypothesis.Phase.explicit, hypothesis.Phase.generate, hypothesis.Phase.shrink]
_COMMON = {"derandomize": True, "deadline": None, "database": None, "phases": _PHASES}
hypothesis.settings.register_profile("quick", max_examples=8, **_COMMON)
hypothesis.settings.register_profile("thorough", max_examples=200, **_COMMON)

KINDS = ("gaussian", "heavy tails", "few values", "correlated", "uneven")
SEEDS = st.integers(0, 2**32 - 1)
RATES = st.floats(0, 0.45)
SHARES = st.floats(0.1, 0.9)
REGS = st.floats(-3, 3).map(lambda exponent: 10.0**exponent)
ASPECTS = st.floats(-2, 2).map(lambda exponent: 10.0**exponent)
NORMS = st.floats(0.1, 5)
BOOLS = st.booleans()
CLASSES = st.integers(2, 5)


def holds(**strategies):
    """Make a test of a check that must hold for whatever the strategies give: quick of few
    examples, slow of 200."""

    def decorate(check):
        of_few, of_many = (
            hypothesis.settings(hypothesis.settings.get_profile(name))(
                hypothesis.given(**strategies)(check)
            )
            for name in ("quick", "thorough")
        )
        tiers = [
            pytest.param(of_few, id="quick"),
            pytest.param(of_many, id="thorough", marks=pytest.mark.slow),
        ]

        @pytest.mark.parametrize("examples", tiers)
        def test(examples):
            examples()

        test.__doc__ = check.__doc__
        return test

    return decorate


@dataclass(frozen=True)
class Instance:
    """Rows with observed labels 0, …, k − 1, each class at least twice, and their noise."""

    kind: str
    noise: NoiseModel
    seed: int
    n: int
    p: int

    @property
    def _generator(self):
        return np.random.default_rng([self.seed, self.n, self.p])

    @property
    def n_classes(self):
        return self.noise.n_classes

    @property
    def X(self):  # noqa: N802  # scikit-learn's name for rows
        rng, k = self._generator, self.n_classes
        rows = _rows(self.kind, self.n, self.p, rng)
        return rows + rng.normal(size=(k, self.p))[self.true] * rows.std()

    @property
    def true(self):
        drawn = np.random.default_rng([self.seed, 1]).choice(
            self.n_classes, size=self.n, p=self.noise.priors
        )
        drawn[: 2 * self.n_classes] = np.tile(np.arange(self.n_classes), 2)
        return drawn

    @property
    def y(self):
        flipped = self.noise.flip(self.true, np.random.default_rng([self.seed, 2]))
        flipped[: 2 * self.n_classes] = np.tile(np.arange(self.n_classes), 2)
        return flipped

    @property
    def weights(self):
        return np.random.default_rng([self.seed, 3]).uniform(0.2, 3.0, size=self.n)

    @property
    def targets(self):
        return np.random.default_rng([self.seed, 4]).normal(size=(self.n, 2))


def _rows(kind, n, p, rng):
    if kind == "heavy tails":
        return rng.standard_t(3, size=(n, p))
    if kind == "few values":
        return rng.integers(-2, 3, size=(n, p)).astype(float)
    rows = rng.normal(size=(n, p))
    if kind == "correlated":
        return rows @ rng.normal(size=(p, p)) / np.sqrt(p) + rng.normal(size=(n, 1))
    if kind == "uneven":
        return rows * np.logspace(-2, 2, p)
    return rows


@st.composite
def binary_noise(draw, rates=RATES, shares=SHARES):
    """Noise of two classes, with proportions."""
    return NoiseModel.binary(eps_pos=draw(rates), eps_neg=draw(rates), pi_neg=draw(shares))


@st.composite
def noise_models(draw, classes=CLASSES, most=0.4):
    """Noise of k classes, with proportions: at most that share of each class is flipped, in any
    directions."""
    k, rng = draw(classes), np.random.default_rng(draw(SEEDS))
    flipped = draw(st.floats(0, most)) * rng.uniform(size=(k, 1))
    transition = (1 - flipped) * np.eye(k) + flipped * rng.dirichlet(np.ones(k), size=k)
    return NoiseModel(
        transition / transition.sum(axis=1, keepdims=True), rng.dirichlet(np.full(k, 5.0))
    )


def instances(noise=None, rows=(20, 80), features=(1, 60), kinds=KINDS):
    """Rows with noisy labels, by default of two classes."""
    return st.builds(
        Instance,
        kind=st.sampled_from(kinds),
        noise=binary_noise() if noise is None else noise,
        seed=SEEDS,
        n=st.integers(*rows),
        p=st.integers(*features),
    )


def several_classes():
    """Rows of three or four classes."""
    return instances(noise_models(st.integers(3, 4)), rows=(40, 80), features=(2, 30))


def rotation(size, seed):
    """Return a random orthogonal matrix."""
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))[0]


def permutation(size, seed):
    """Return a random order."""
    return np.random.default_rng(seed).permutation(size)


def cuts(size, seed, parts=4):
    """Cut a range into some neighbouring slices, none empty."""
    rng = np.random.default_rng(seed)
    inner = np.sort(rng.choice(np.arange(1, size), size=min(parts, size) - 1, replace=False))
    ends = [0, *inner.tolist(), size]
    return [slice(*pair) for pair in pairwise(ends)]


def close(found, expected, digits=1e-9):
    """Assert that arrays agree to so much of the largest magnitude expected."""
    expected = np.asarray(expected, dtype=float)
    unit = float(np.abs(expected).max(initial=0.0)) or 1.0
    np.testing.assert_allclose(np.asarray(found, dtype=float), expected, rtol=0, atol=digits * unit)
