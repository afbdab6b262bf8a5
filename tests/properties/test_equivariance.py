"""Equivariance under class names, row order, and axes, origin and units of the features."""

from dataclasses import dataclass
from functools import cache
from itertools import permutations

import numpy as np
import pytest

from support.strategies import close, permutation, rotation
from unflip import LPClassifier, NoiseModel, audit
from unflip.estimation import (
    Automatic,
    CrossMoment,
    TrustedSubset,
    mean_norm_from_rows,
    spectral_mixture,
)
from unflip.ridge.label_association import SURE

# Warnings of heuristic noise rates and of few rows.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

#: Kinds of rows, and the source of their noise rates.
SOURCES = {"mixture": "mixture", "heavy tails": "label likelihood", "no signal": "no signal"}
KINDS, CLASSES = list(SOURCES), [2, 3, 4]
N, P = 200, 24
EXACT = 1e-6  # tolerance of the calibration
#: Rates from trusted rows are means over a fixed sample of draws, which renaming assigns to other
#: classes: they may differ by the Monte Carlo error, given as a share of their standard error.
MONTE_CARLO = 0.2


def noise_of(n_classes):
    """Return noise of classes of unequal sizes, without symmetries."""
    rng = np.random.default_rng(n_classes)
    transition = 0.8 * np.eye(n_classes) + 0.2 * rng.dirichlet(
        np.full(n_classes, 5.0), size=n_classes
    )
    return NoiseModel(transition, rng.dirichlet(np.full(n_classes, 30.0)))


@cache
def drawn(kind, n_classes):
    """Return rows, true labels and observed labels."""
    rng = np.random.default_rng([KINDS.index(kind), n_classes])
    noise = noise_of(n_classes)
    y = rng.choice(n_classes, size=N, p=noise.priors)
    X = rng.normal(size=(N, P))
    if kind == "mixture":
        X += 4.0 * np.eye(n_classes, P)[y]
    elif kind == "heavy tails":
        X = rng.standard_t(3, size=(N, P)) @ rng.normal(size=(P, P)) / np.sqrt(P)
        X += 5.0 / np.sqrt(P) * rng.normal(size=(n_classes, P))[y]
    return X, y, noise.flip(y, rng)


@dataclass(frozen=True)
class Change:
    """A change of class names, row order and features; each is optional."""

    names: tuple[int, ...]  # class names[b] is called b
    seed: int | None = None  # of the order
    axes: bool = False
    shift: float = 0.0
    scale: float = 1.0

    @property
    def order(self):
        return np.arange(N) if self.seed is None else permutation(N, self.seed)

    def rows(self, X):
        turned = X @ rotation(P, 1) if self.axes else X
        return self.scale * turned[self.order] + self.shift

    def labels(self, y):
        return np.argsort(self.names)[y][self.order]

    def noise(self, noise):
        return NoiseModel(self.table(noise.transition), noise.priors[list(self.names)])

    def table(self, table):
        return table[np.ix_(self.names, self.names)]

    def by_row(self, values):
        return values[np.ix_(self.order, self.names)]


def renamings(n_classes):
    """Return all orders of two or three classes, and two of four."""
    every = [names for names in permutations(range(n_classes)) if names != tuple(range(n_classes))]
    return every if n_classes < 4 else [(1, 0, 2, 3), (3, 0, 1, 2)]


def everything(n_classes):
    """Return all changes combined."""
    return Change(renamings(n_classes)[-1], seed=2, axes=True, shift=-5.0, scale=7.0)


def changes(n_classes):
    """Return single changes and all combined; for three classes every change."""
    same = tuple(range(n_classes))
    alone = [
        Change(same, seed=1),
        Change(same, axes=True),
        Change(same, shift=30.0),
        Change(same, scale=1e-3),
    ]
    names = [Change(names) for names in renamings(n_classes)]
    return [
        *(names if n_classes < 4 else names[:1]),
        *(alone if n_classes == 3 else alone[:1]),
        everything(n_classes),
    ]


CASES = [
    pytest.param(kind, k, change, id=f"{kind}-{k}-{i}")
    for kind in KINDS
    for k in CLASSES
    for i, change in enumerate(changes(k))
]
NOISE_GIVEN = pytest.mark.parametrize("noise_given", [True, False])


def fitted(kind, n_classes, change, noise_given):
    X, _, observed = drawn(kind, n_classes)
    clf = LPClassifier(change.noise(noise_of(n_classes)) if noise_given else "estimate")
    return clf.fit(change.rows(X), change.labels(observed))


@cache
def unchanged(kind, n_classes, noise_given):
    return fitted(kind, n_classes, Change(tuple(range(n_classes))), noise_given)


@pytest.mark.parametrize("n_classes", CLASSES)
@pytest.mark.parametrize("kind", KINDS)
def test_data_have_the_intended_source_of_rates(kind, n_classes):
    clf = unchanged(kind, n_classes, noise_given=False)
    assert clf.noise_estimator_.source_ == SOURCES[kind]
    assert (clf.association_ < SURE) == (kind == "no signal")


@NOISE_GIVEN
@pytest.mark.parametrize(("kind", "n_classes", "change"), CASES)
def test_classifier(kind, n_classes, change, noise_given):
    X, names = drawn(kind, n_classes)[0], list(change.names)
    now, then = (
        unchanged(kind, n_classes, noise_given),
        fitted(kind, n_classes, change, noise_given),
    )
    close(then.noise_.transition, change.table(now.noise_.transition), EXACT)
    close(then.noise_.priors, now.noise_.priors[names], EXACT)
    close(then.noise_std_, change.table(now.noise_std_), EXACT)
    close(then.label_posterior_, change.by_row(now.label_posterior_), EXACT)
    close(then.predict_proba(change.rows(X)), change.by_row(now.predict_proba(X)), EXACT)
    np.testing.assert_array_equal(then.predict(change.rows(X)), change.labels(now.predict(X)))
    close(then.expected_accuracy_, now.expected_accuracy_, EXACT)
    # A root of squares of differences of accuracies, so it is as exact as these.
    assert then.expected_accuracy_std_ == pytest.approx(
        now.expected_accuracy_std_, rel=EXACT, abs=1e-9
    )
    assert then.association_ == pytest.approx(now.association_, rel=EXACT, abs=EXACT)


@NOISE_GIVEN
@pytest.mark.parametrize("n_classes", [2, 3, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_audit(kind, n_classes, noise_given):
    X, _, observed = drawn(kind, n_classes)
    noise = noise_of(n_classes)
    now = audit(X, observed, noise=noise if noise_given else "estimate")
    for change in (Change(renamings(n_classes)[0]), everything(n_classes)):
        option = change.noise(noise) if noise_given else "estimate"
        then = audit(change.rows(X), change.labels(observed), noise=option)
        close(then.noise.transition, change.table(now.noise.transition), EXACT)
        close(then.label_posterior, change.by_row(now.label_posterior), EXACT)
        close(then.expected_accuracy, now.expected_accuracy, EXACT)
        close(then.expected_wrong, now.expected_wrong, EXACT)
        assert then.n_suspects == now.n_suspects
        acted_on = change.order[then.suspects.row[: then.n_suspects]]
        assert set(acted_on) == set(now.suspects.row[: now.n_suspects])


def trusted(y, change):
    """Return the true labels of the first third of the rows, after the change."""
    return np.where(change.order < N // 3, change.labels(y).astype(float), np.nan)


@pytest.mark.parametrize("n_classes", CLASSES)
@pytest.mark.parametrize("kind", KINDS)
def test_estimated_rates(kind, n_classes):
    """With known priors; without, the rates are tested with the classifier."""
    X, _, observed = drawn(kind, n_classes)
    priors = noise_of(n_classes).priors
    now = Automatic(priors=priors).fit(X, observed)
    for change in (Change(renamings(n_classes)[0]), everything(n_classes)):
        then = Automatic(priors=priors[list(change.names)]).fit(
            change.rows(X), change.labels(observed)
        )
        close(then.noise_.transition, change.table(now.noise_.transition), EXACT)
        close(then.noise_std_, change.table(now.noise_std_), EXACT)


@pytest.mark.parametrize("n_classes", CLASSES)
def test_rates_from_clusters(n_classes):
    """For clustered rows only: otherwise EM has several poor optima."""
    X, _, observed = drawn("mixture", n_classes)
    now = CrossMoment().fit(X, observed)
    for change in changes(n_classes):
        then = CrossMoment().fit(change.rows(X), change.labels(observed))
        close(then.noise_.transition, change.table(now.noise_.transition), EXACT)
        close(then.noise_.priors, now.noise_.priors[list(change.names)], EXACT)


@pytest.mark.parametrize("make", [TrustedSubset, lambda y_trusted: Automatic(y_trusted=y_trusted)])
@pytest.mark.parametrize("n_classes", CLASSES)
@pytest.mark.parametrize("kind", KINDS)
def test_rates_from_trusted_rows(kind, n_classes, make):
    X, y, observed = drawn(kind, n_classes)
    same = Change(tuple(range(n_classes)))
    now = make(trusted(y, same)).fit(X, observed)
    for change in changes(n_classes):
        then = make(trusted(y, change)).fit(change.rows(X), change.labels(observed))
        renamed = change.names != same.names
        within = MONTE_CARLO * change.table(now.noise_std_) if renamed else EXACT
        assert (
            np.abs(then.noise_.transition - change.table(now.noise_.transition)) <= within
        ).all()
        assert (np.abs(then.noise_std_ - change.table(now.noise_std_)) <= within).all()


def test_mean_norms():
    X, y, _ = drawn("mixture", 2)
    for change in changes(2):
        close(
            mean_norm_from_rows(change.rows(X), change.labels(y)), mean_norm_from_rows(X, y), EXACT
        )
        close(spectral_mixture(change.rows(X)).mean_norm, spectral_mixture(X).mean_norm, EXACT)
        close(spectral_mixture(change.rows(X)).pi_small, spectral_mixture(X).pi_small, EXACT)
