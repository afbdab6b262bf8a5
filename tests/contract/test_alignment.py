"""What is passed beside the samples is positional, or has their pandas index."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from unflip import LPClassifier, NoisyLabelClassifier, audit, audit_scores, evaluate
from unflip.datasets import make_mixture
from unflip.estimation import TrustedSubset

pandas = pytest.importorskip("pandas")
N = 60
NAMES = np.random.default_rng(0).permutation(1000)[:N]
X, Y = make_mixture(N, 4, mean_norm=2.0, random_state=0)
WEIGHTS = np.ones(N)
GROUPS = np.arange(N) // 2
TRUSTED = np.where(np.arange(N) < 30, Y, None)
PROBABILITIES = np.column_stack([1 - Y, Y]) * 0.8 + 0.1


def named(values, names=NAMES):
    return (pandas.DataFrame if np.ndim(values) == 2 else pandas.Series)(values, index=names)


#: A call of each door, and what it takes beside the samples.
DOORS = {
    "fit": (lambda X, **beside: LPClassifier().fit(X, **beside), "y", {"sample_weight": WEIGHTS}),
    "trusted noise": (
        lambda X, y, y_trusted: LPClassifier(TrustedSubset(y_trusted)).fit(X, y),
        "y",
        {"y_trusted": TRUSTED},
    ),
    "any classifier": (
        lambda X, **beside: NoisyLabelClassifier(LogisticRegression()).fit(X, **beside),
        "y",
        {"sample_weight": WEIGHTS, "groups": GROUPS, "pred_probs": PROBABILITIES},
    ),
    "audit": (audit, "y", {"trusted": TRUSTED, "inclusion": WEIGHTS, "groups": GROUPS}),
    "scores": (
        lambda X, **beside: audit_scores(X, **beside),
        "y",
        {"trusted": TRUSTED, "inclusion": WEIGHTS},
    ),
    "evaluate": (
        lambda X, **beside: evaluate(X, **beside),
        "labels",
        {"trusted": TRUSTED, "inclusion": WEIGHTS},
    ),
}
CASES = [(door, name) for door, (_, labels, others) in DOORS.items() for name in (labels, *others)]


@pytest.mark.parametrize(("door", "name"), CASES)
def test_another_index_is_an_error(door, name):
    call, labels, others = DOORS[door]
    samples = PROBABILITIES if door in ("scores", "evaluate") else X
    arguments = {labels: Y, **others}
    arguments[name] = named(arguments[name], NAMES[::-1])
    with pytest.raises(ValueError, match=rf"\w+ and {name} have different pandas indexes"):
        call(named(samples), **arguments)


@pytest.mark.parametrize("names", [NAMES, np.arange(N), pandas.RangeIndex(N)])
def test_the_same_index_and_positions_are_fine(names):
    expected = LPClassifier().fit(X, Y, WEIGHTS)
    # An index that counts from 0 says nothing: it is that of a frame made from an array.
    for X_names, weights in ((names, named(WEIGHTS, names)), (pandas.RangeIndex(N), WEIGHTS)):
        fitted = LPClassifier().fit(named(X, X_names), named(Y, names), weights)
        np.testing.assert_allclose(fitted.coef_, expected.coef_, rtol=1e-10)


def test_the_numbers_of_rows_in_another_order_are_an_error():
    order = np.random.default_rng(0).permutation(N)
    with pytest.raises(ValueError, match=r"align them first, for example with y.reindex\(X.index"):
        LPClassifier().fit(pandas.DataFrame(X), pandas.Series(Y)[order])
