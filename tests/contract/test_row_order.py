"""Rows are told apart by their position: the index of a pandas Series or DataFrame changes nothing."""

import json
import re

import numpy as np
import pytest

from unflip import LPClassifier, Moments, NoiseModel, Votes, audit, audit_scores, estimation
from unflip.datasets import make_mixture

pandas = pytest.importorskip("pandas")

N = 80
X, TRUE = make_mixture(N, 6, mean_norm=2.0, random_state=0)
NOISE = NoiseModel.binary(eps_pos=0.2, eps_neg=0.2)
Y = NOISE.flip(TRUE, random_state=0)
TRUSTED = np.where(np.arange(N) % 2, TRUE, np.nan)
GROUPS = np.arange(N) // 4
WEIGHTS = np.random.default_rng(0).uniform(0.5, 2, size=N)
PROBABILITIES = np.column_stack([0.8 - 0.6 * Y, 0.2 + 0.6 * Y])
VOTED = np.random.default_rng(2).integers(2, size=(N, 3))
SHUFFLED = np.random.default_rng(1).permutation(N)

quiet = pytest.mark.filterwarnings("ignore::UserWarning")  # of assumed rates: said as ever


def shuffled(values):
    """Return a Series or a DataFrame whose index names other rows than the positions do."""
    values = np.asarray(values)
    if values.ndim == 1:
        return pandas.Series(values, index=np.resize(SHUFFLED, len(values)))
    return pandas.DataFrame(
        values, index=SHUFFLED, columns=[f"c{j}" for j in range(values.shape[1])]
    )


def as_they_are(values):
    return values


def votes(given):
    rows, annotators = np.repeat(np.arange(N), 3), np.tile(np.arange(3), N)
    return Votes.from_table(given(rows), given(annotators), given(VOTED.ravel()))


CALLS = {
    "audit": lambda given: audit(given(X), given(Y)).label_posterior,
    "audit, trusted": lambda given: (
        audit(given(X), given(Y), trusted=given(TRUSTED)).label_posterior
    ),
    "audit, trusted beside noise": lambda given: (
        audit(X, Y, noise=NOISE, trusted=given(TRUSTED)).label_posterior
    ),
    "audit, groups": lambda given: audit(given(X), given(Y), groups=given(GROUPS)).label_posterior,
    "audit, trusted in groups": lambda given: (
        audit(given(X), given(Y), trusted=given(TRUSTED), groups=given(GROUPS)).label_posterior
    ),
    "audit, votes": lambda given: audit(given(X), votes(given)).label_posterior,
    "audit_scores": lambda given: audit_scores(given(PROBABILITIES), given(Y)).label_posterior,
    "audit_scores, trusted": lambda given: (
        audit_scores(given(PROBABILITIES), given(Y), trusted=given(TRUSTED)).label_posterior
    ),
    "fit": lambda given: LPClassifier(NOISE).fit(given(X), given(Y), given(WEIGHTS)).coef_,
    "fit, trusted": lambda given: (
        LPClassifier(estimation.TrustedSubset(given(TRUSTED)))
        .fit(given(X), given(Y), given(WEIGHTS))
        .coef_
    ),
    "partial_fit": lambda given: (
        LPClassifier(NOISE, targets="naive")
        .partial_fit(given(X), given(Y), [0, 1], given(WEIGHTS))
        .coef_
    ),
    "score": lambda given: (
        LPClassifier(NOISE).fit(X, Y).score(given(X), given(TRUE), given(WEIGHTS))
    ),
    "flip": lambda given: NOISE.flip(given(TRUE), random_state=0),
    "Automatic": lambda given: (
        estimation.Automatic(y_trusted=given(TRUSTED))
        .fit(given(X), given(Y), given(WEIGHTS))
        .noise_.transition
    ),
    "TrustedSubset": lambda given: (
        estimation.TrustedSubset(given(TRUSTED))
        .fit(given(X), given(Y), given(WEIGHTS))
        .noise_.transition
    ),
    "CrossMoment": lambda given: (
        estimation.CrossMoment(mean_norm=2.0, pi_neg=0.5).fit(given(X), given(Y)).noise_.transition
    ),
    "SecondMomentMatching": lambda given: (
        estimation.SecondMomentMatching(mean_norm=2.0, pi_neg=0.5)
        .fit(given(X), given(Y))
        .noise_.transition
    ),
    "estimate_mixture": lambda given: estimation.estimate_mixture(given(X), given(Y), NOISE).mean,
    "mean_norm_from_rows": lambda given: estimation.mean_norm_from_rows(given(X), given(TRUE)),
    "Votes.from_table": lambda given: votes(given).counts,
    "Votes.from_columns": lambda given: Votes.from_columns(given(VOTED)).counts,
    "Votes.__getitem__": lambda given: votes(as_they_are)[given(GROUPS < 9)].counts,
    "Moments.from_rows": lambda given: (
        Moments.from_rows(given(X), given(Y), 2, given(WEIGHTS)).scatter
    ),
    "Moments.from_chunks": lambda given: (
        Moments.from_chunks([(given(X), given(Y), given(WEIGHTS))]).scatter
    ),
}


@quiet
@pytest.mark.parametrize("name", CALLS)
def test_an_index_changes_nothing(name):
    expected, found = CALLS[name](as_they_are), CALLS[name](shuffled)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@quiet
def test_plots_take_rows_by_position():
    pytest.importorskip("matplotlib")
    from unflip.plotting import AccuracyPathDisplay, ScoreDistributionDisplay

    fitted = LPClassifier(NOISE).fit(X, Y)
    named = LPClassifier(NOISE).fit(shuffled(X), shuffled(Y))
    first, second = (
        ScoreDistributionDisplay.from_estimator(fitted, given(Y))
        for given in (as_they_are, shuffled)
    )
    np.testing.assert_allclose(second.shares_, first.shares_)
    first = AccuracyPathDisplay.from_estimator(fitted, X, Y, regs=[0.1, 1.0])
    second = AccuracyPathDisplay.from_estimator(named, shuffled(X), shuffled(Y), regs=[0.1, 1.0])
    np.testing.assert_allclose(second.accuracies["refined"], first.accuracies["refined"], rtol=1e-6)


def test_a_page_shows_texts_and_ids_by_position(tmp_path):
    pytest.importorskip("jinja2")
    found = audit(X, Y, noise=NOISE)
    texts, ids = ([f"{kind} of row {i}" for i in range(N)] for kind in ("text", "id"))
    found.to_html(tmp_path / "page.html", texts=shuffled(texts), ids=shuffled(ids))
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    shown = json.loads(re.search(r'id="report-data">(.*?)</script>', page)[1])["suspects"]
    assert len(shown["row"]) > 3
    assert shown["text"] == [f"text of row {row}" for row in shown["row"]]
    assert shown["id"] == [f"id of row {row}" for row in shown["row"]]


@quiet
def test_a_mask_over_trusted_labels_counts_in_groups_too():
    masked = np.ma.masked_array(TRUE, mask=np.isnan(TRUSTED))
    masked.data[masked.mask] = 1 - TRUE[masked.mask]  # what a mask hides must not be read
    expected, found = (
        audit(X, Y, trusted=given, groups=GROUPS).label_posterior for given in (TRUSTED, masked)
    )
    np.testing.assert_allclose(found, expected)
