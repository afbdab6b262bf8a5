"""Whom to ask next: gains by enumeration, costs, and invalid input."""

import math

import numpy as np
import pytest

from unflip import NoiseModel, Votes, audit
from unflip.auditing import next_votes as module
from unflip.auditing.next_votes import next_votes
from unflip.datasets import make_mixture
from unflip.labels.annotators import Annotators
from unflip.labels.shared_difficulty import SharedDifficulty

K, W, N = 3, 5, 120


def draw(*, with_difficulty=False):
    """Return annotators, their votes, and class probabilities that the votes do not exclude."""
    rng = np.random.default_rng(0)
    transitions = rng.dirichlet(np.ones(K), size=(W, K)) * 0.5 + 0.5 * np.eye(K)
    labels = rng.integers(K, size=(N, W)).astype(object)
    labels[rng.random((N, W)) < 0.6] = None
    votes = Votes.from_columns(labels, list("abcde"))
    annotators = Annotators(votes.annotators, transitions, np.full(K, 1 / K), 0 * transitions)
    if with_difficulty:
        margins = rng.normal(size=(N, K))
        difficulty = SharedDifficulty.of(0.7, 0.3, margins, transitions)
        annotators = Annotators(
            votes.annotators,
            transitions,
            np.full(K, 1 / K),
            0 * transitions,
            difficulty=difficulty,
        )
    return annotators, votes, rng.dirichlet(np.ones(K), size=N)


def entropy(probabilities):
    return -sum(p * math.log2(p) for p in probabilities if p > 0)


def gain_written_out(annotators, votes, posterior, i, w):
    """Return the entropy now, less the mean entropy after a vote of annotator w on row i."""
    mean = 0.0
    for b in range(K):
        joint = np.empty(K)
        for a in range(K):
            density, at_z = np.ones(1), annotators.transitions[w, a, b] * np.ones(1)
            if annotators.difficulty is not None:
                by_difficulty = annotators.by_difficulty()[0]
                margin = annotators.difficulty.margins[i, a]
                z = np.linspace(-3.6, 3.6, 13)
                density = np.exp(-((z - 0.3 * margin) ** 2) / (2 * (1 - 0.3**2)))
                for own in np.flatnonzero(votes.row == i):
                    density *= by_difficulty[votes.annotator[own], a, votes.label[own]]
                density /= density.sum()
                at_z = by_difficulty[w, a, b]
            joint[a] = posterior[i, a] * (density @ at_z)
        mean += joint.sum() * entropy(joint / joint.sum())
    return entropy(posterior[i]) - mean


@pytest.mark.parametrize("with_difficulty", [False, True])
@pytest.mark.parametrize("costs", [None, {"a": 0.5, "c": 3.0, "e": math.inf}])
def test_the_best_votes_of_all_are_chosen(with_difficulty, costs, monkeypatch):
    monkeypatch.setattr(module, "_BATCH", 10)
    annotators, votes, posterior = draw(with_difficulty=with_difficulty)
    table = next_votes(annotators, votes, posterior, 8, costs)
    each = np.array([(costs or {}).get(name, 1.0) for name in "abcde"])
    values = np.zeros((N, W))
    for i in range(N):
        for w in set(range(W)) - set(votes.annotator[votes.row == i]):
            values[i, w] = gain_written_out(annotators, votes, posterior, i, w) / each[w]
    best = np.argsort(-values.max(axis=1))[:8]
    np.testing.assert_array_equal(table.row, best)
    np.testing.assert_array_equal(table.annotator, np.array(list("abcde"))[values[best].argmax(1)])
    np.testing.assert_allclose(table.gain / table.cost, values[best].max(axis=1), rtol=1e-8)


def test_no_row_is_left_to_ask_about():
    votes = Votes.from_columns([[0, 1], [1, 1]])
    noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.2, pi_neg=0.5)
    annotators = Annotators.from_noise(noise, votes)
    assert len(next_votes(annotators, votes, np.full((2, 2), 0.5), 2, None)) == 0


def test_an_audit_asks_about_unclear_rows():
    X, y = make_mixture(300, 10, mean_norm=1.5, random_state=0)
    rng = np.random.default_rng(0)
    skills = np.array([0.9, 0.6, 0.75])
    labels = np.where(rng.random((300, 3)) < skills, y[:, None], 1 - y[:, None]).astype(object)
    labels[np.arange(300), rng.integers(3, size=300)] = None
    votes = Votes.from_columns(labels, ["Ann", "Bob", "Cleo"])
    result = audit(X, votes)
    asked = result.ask_next(20)
    assert len(set(asked.row.tolist())) == 20
    assert (np.diff(asked.gain) <= 0).all()
    unclear = 1 - result.label_posterior.max(axis=1)
    assert unclear[asked.row].mean() > 3 * unclear.mean()
    assert "Ann" not in result.ask_next(20, costs={"Ann": math.inf}).annotator.tolist()


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ({"Zoe": 1.0}, "costs names 'Zoe'|costs names \\['Zoe'\\]"),
        ({"a": 0.0}, "must be positive, and finite for at least one annotator"),
        (dict.fromkeys("abcde", math.inf), "finite for at least one annotator"),
        ({"a": "dear"}, "costs\\['a'\\]"),
    ],
)
def test_invalid_costs(costs, message):
    annotators, votes, posterior = draw()
    with pytest.raises(ValueError, match=message):
        next_votes(annotators, votes, posterior, 3, costs)


def test_nobody_to_ask():
    X, y = make_mixture(200, 5, mean_norm=2.0, random_state=0)
    with pytest.raises(ValueError, match="audit Votes instead of labels"):
        audit(X, y, noise=None).ask_next(1)
    rng = np.random.default_rng(0)
    row = np.repeat(np.arange(200), 2)
    unknown = audit(
        X, Votes.from_table(row, None, np.where(rng.random(400) < 0.8, y[row], 1 - y[row]))
    )
    with pytest.raises(ValueError, match="pass annotators= to Votes"):
        unknown.ask_next(1)
    columns = np.where(rng.random((200, 4)) < 0.5, y[:, None], None)
    rules = audit(X, Votes.from_columns(columns, abstentions=True))
    with pytest.raises(ValueError, match="there is nobody to ask"):
        rules.ask_next(1)
