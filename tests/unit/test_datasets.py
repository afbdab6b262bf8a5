"""Datasets: make_mixture, make_messages, and the loaders."""

from dataclasses import replace

import numpy as np
import pytest

from support.amazon import needs_data
from unflip.datasets import (
    AMAZON_DOMAINS,
    CrowdLabels,
    load_amazon_reviews,
    load_scene_votes,
    load_sentiment_votes,
    make_messages,
    make_mixture,
)


def test_binary_mixture_has_the_stated_means_and_proportions():
    X, y = make_mixture(20_000, 5, mean_norm=3.0, priors=[0.3, 0.7], random_state=0)
    assert y.mean() == pytest.approx(0.7, abs=4 * np.sqrt(0.21 / 20_000))
    means = np.array([X[y == a].mean(axis=0) for a in (0, 1)])
    np.testing.assert_allclose(
        means, 3 / np.sqrt(5) * np.array([[-1], [1]]) * np.ones(5), atol=4 / np.sqrt(6000)
    )
    np.testing.assert_allclose(np.cov((X - means[y]).T), np.eye(5), atol=0.05)


@pytest.mark.parametrize("shared", [True, False])
def test_custom_means_and_covariances(shared):
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(3, 4, 4))
    covariances = factors @ factors.transpose(0, 2, 1)
    means = 5 * rng.normal(size=(3, 4))
    X, y = make_mixture(
        60_000,
        4,
        means=means,
        covariances=covariances[0] if shared else covariances,
        random_state=1,
    )
    for a in range(3):
        expected = covariances[0 if shared else a]
        np.testing.assert_allclose(X[y == a].mean(axis=0), means[a], atol=0.1)
        np.testing.assert_allclose(
            np.cov(X[y == a].T), expected, atol=0.06 * np.abs(expected).max()
        )


@pytest.mark.parametrize("source", [np.random.default_rng, np.random.RandomState, int])
def test_draws_are_reproducible_with_seed(source):
    first, second = (make_mixture(10, 3, random_state=source(7)) for _ in range(2))
    np.testing.assert_array_equal(first[0], second[0])


@needs_data
@pytest.mark.parametrize("domain", AMAZON_DOMAINS)
def test_amazon_reviews(domain):
    X, y = load_amazon_reviews(domain)
    assert X.shape[1] == 400
    assert len(X) == len(y)
    assert abs(y.mean() - 0.5) < 0.001
    assert 0.9 < (X == 0).mean() < 0.95


@needs_data
def test_sentiment_votes():
    crowd = load_sentiment_votes()
    assert crowd.X_train.shape == (4999, 384)
    assert crowd.X_test.shape == (5661, 384)
    accuracy = [
        np.mean(votes == crowd.y_train) for votes in (crowd.random_votes(0), crowd.worst_votes())
    ]
    assert accuracy[0] == pytest.approx(0.79, abs=0.02)
    assert accuracy[1] == pytest.approx(0.5953, abs=0.001)
    np.testing.assert_array_equal(crowd.random_votes(3), crowd.random_votes(3))


@needs_data
def test_scene_votes():
    crowd = load_scene_votes()
    assert crowd.X_train.shape == (1000, 512)
    assert crowd.X_test.shape == (1188, 512)
    assert crowd.X_train.min() >= 0
    assert set(crowd.vote) == set(crowd.y_train) == set(crowd.y_test) == set(range(8))
    assert len(crowd.vote) == 2547
    assert len(set(crowd.annotator)) == 59
    assert np.mean(crowd.vote == crowd.y_train[crowd.item]) == pytest.approx(0.740, abs=5e-4)


def test_scene_votes_of_a_folder(tmp_path):
    folder = tmp_path / "labelme_mturk"
    folder.mkdir()
    rng = np.random.default_rng(0)
    rows = {f"X_{part}": rng.random((3, 2)).astype(np.float16) for part in ("train", "test")}
    votes = np.array([[-1, 2], [0, -1], [1, 1]], dtype=np.int8)
    labels = {f"y_{part}": np.array([2, 0, 1], dtype=np.int8) for part in ("train", "test")}
    np.savez(folder / "data.npz", votes=votes, **rows, **labels)
    crowd = load_scene_votes(data_home=tmp_path)
    np.testing.assert_array_equal(crowd.X_test, rows["X_test"].astype(float))
    assert crowd.X_train.dtype == float
    assert crowd.item.tolist() == [0, 1, 2, 2]
    assert crowd.annotator.tolist() == [1, 0, 0, 1]
    assert crowd.vote.tolist() == [2, 0, 1, 1]
    assert crowd.random_votes(0).tolist() == [2, 0, 1]


def test_messages_are_informative_and_reproducible():
    texts, y = make_messages(400, random_state=0)
    again, y_again = make_messages(400, random_state=0)
    assert texts == again
    assert y.tolist() == y_again.tolist()
    about_delivery = np.array(["the parcel is late" in text for text in texts])
    assert about_delivery[y == 1].mean() > 2 * about_delivery[y == 0].mean() > 0


@pytest.mark.parametrize("load", [load_sentiment_votes, load_scene_votes])
def test_missing_votes_error_names_source(load, tmp_path, monkeypatch):
    monkeypatch.delenv("UNFLIP_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=f"UNFLIP_DATA.*{load.__name__}"):
        load()
    with pytest.raises(FileNotFoundError, match=f"does not exist.*{load.__name__}"):
        load(data_home=tmp_path)


def test_one_vote_per_sample_is_selected():
    crowd = CrowdLabels(
        np.zeros((3, 1)),
        np.array([0, 1, 1]),
        np.zeros((0, 1)),
        np.array([], dtype=int),
        item=np.array([0, 0, 1, 2, 2]),
        annotator=np.array([0, 1, 1, 0, 1]),
        vote=np.array([0, 1, 1, 1, 0]),
    )
    assert crowd.worst_votes().tolist() == [1, 1, 0]  # annotator 1 is right once in three
    assert {tuple(crowd.random_votes(seed)) for seed in range(40)} == {
        (a, 1, b) for a in (0, 1) for b in (0, 1)
    }
    with pytest.raises(ValueError, match="1 training samples have no vote"):
        replace(crowd, y_train=np.array([0, 1, 1, 0])).worst_votes()
