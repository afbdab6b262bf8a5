"""Rows are identified by position: the index of a Series or DataFrame does not matter."""

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

quiet = pytest.mark.filterwarnings("ignore::UserWarning")  # of assumed noise rates


def shuffled(values):
    """Return a Series or a DataFrame with a shuffled index."""
    values = np.asarray(values)
    if values.ndim == 1:
        return pandas.Series(values, index=np.resize(SHUFFLED, len(values)))
    return pandas.DataFrame(
        values, index=SHUFFLED, columns=[f"c{j}" for j in range(values.shape[1])]
    )


def unchanged(values):
    return values


def votes(wrap):
    rows = np.repeat(np.arange(N), 3)
    annotators = np.tile(np.arange(3), N)
    return Votes.from_table(wrap(rows), wrap(annotators), wrap(VOTED.ravel()))


CALLS = {
    "audit": lambda wrap: audit(wrap(X), wrap(Y)).label_posterior,
    "audit, trusted": lambda wrap: audit(wrap(X), wrap(Y), trusted=wrap(TRUSTED)).label_posterior,
    "audit, trusted beside noise": lambda wrap: (
        audit(X, Y, noise=NOISE, trusted=wrap(TRUSTED)).label_posterior
    ),
    "audit, groups": lambda wrap: audit(wrap(X), wrap(Y), groups=wrap(GROUPS)).label_posterior,
    "audit, trusted in groups": lambda wrap: (
        audit(wrap(X), wrap(Y), trusted=wrap(TRUSTED), groups=wrap(GROUPS)).label_posterior
    ),
    "audit, votes": lambda wrap: audit(wrap(X), votes(wrap)).label_posterior,
    "audit_scores": lambda wrap: audit_scores(wrap(PROBABILITIES), wrap(Y)).label_posterior,
    "audit_scores, trusted": lambda wrap: (
        audit_scores(wrap(PROBABILITIES), wrap(Y), trusted=wrap(TRUSTED)).label_posterior
    ),
    "fit": lambda wrap: LPClassifier(NOISE).fit(wrap(X), wrap(Y), wrap(WEIGHTS)).coef_,
    "fit, trusted": lambda wrap: (
        LPClassifier(estimation.TrustedSubset(wrap(TRUSTED)))
        .fit(wrap(X), wrap(Y), wrap(WEIGHTS))
        .coef_
    ),
    "partial_fit": lambda wrap: (
        LPClassifier(NOISE, targets="naive")
        .partial_fit(wrap(X), wrap(Y), [0, 1], wrap(WEIGHTS))
        .coef_
    ),
    "score": lambda wrap: LPClassifier(NOISE).fit(X, Y).score(wrap(X), wrap(TRUE), wrap(WEIGHTS)),
    "flip": lambda wrap: NOISE.flip(wrap(TRUE), random_state=0),
    "Automatic": lambda wrap: (
        estimation.Automatic(y_trusted=wrap(TRUSTED))
        .fit(wrap(X), wrap(Y), wrap(WEIGHTS))
        .noise_.transition
    ),
    "TrustedSubset": lambda wrap: (
        estimation.TrustedSubset(wrap(TRUSTED))
        .fit(wrap(X), wrap(Y), wrap(WEIGHTS))
        .noise_.transition
    ),
    "CrossMoment": lambda wrap: (
        estimation.CrossMoment(mean_norm=2.0, pi_neg=0.5).fit(wrap(X), wrap(Y)).noise_.transition
    ),
    "SecondMomentMatching": lambda wrap: (
        estimation.SecondMomentMatching(mean_norm=2.0, pi_neg=0.5)
        .fit(wrap(X), wrap(Y))
        .noise_.transition
    ),
    "estimate_mixture": lambda wrap: estimation.estimate_mixture(wrap(X), wrap(Y), NOISE).mean,
    "mean_norm_from_rows": lambda wrap: estimation.mean_norm_from_rows(wrap(X), wrap(TRUE)),
    "Votes.from_table": lambda wrap: votes(wrap).counts,
    "Votes.from_columns": lambda wrap: Votes.from_columns(wrap(VOTED)).counts,
    "Votes.__getitem__": lambda wrap: votes(unchanged)[wrap(GROUPS < 9)].counts,
    "Moments.from_rows": lambda wrap: Moments.from_rows(wrap(X), wrap(Y), 2, wrap(WEIGHTS)).scatter,
    "Moments.from_chunks": lambda wrap: (
        Moments.from_chunks([(wrap(X), wrap(Y), wrap(WEIGHTS))]).scatter
    ),
}


@quiet
@pytest.mark.parametrize("name", CALLS)
def test_the_index_does_not_matter(name):
    expected = CALLS[name](unchanged)
    actual = CALLS[name](shuffled)
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-9)


@quiet
def test_plots_identify_rows_by_position():
    pytest.importorskip("matplotlib")
    from unflip.plotting import AccuracyPathDisplay, ScoreDistributionDisplay

    fitted = LPClassifier(NOISE).fit(X, Y)
    named = LPClassifier(NOISE).fit(shuffled(X), shuffled(Y))
    first, second = (
        ScoreDistributionDisplay.from_estimator(fitted, wrap(Y)) for wrap in (unchanged, shuffled)
    )
    np.testing.assert_allclose(second.shares_, first.shares_)
    first = AccuracyPathDisplay.from_estimator(fitted, X, Y, regs=[0.1, 1.0])
    second = AccuracyPathDisplay.from_estimator(named, shuffled(X), shuffled(Y), regs=[0.1, 1.0])
    np.testing.assert_allclose(second.accuracies["refined"], first.accuracies["refined"], rtol=1e-6)


def test_a_page_shows_texts_and_ids_by_position(tmp_path):
    pytest.importorskip("jinja2")
    actual = audit(X, Y, noise=NOISE)
    texts, ids = ([f"{kind} of row {i}" for i in range(N)] for kind in ("text", "id"))
    actual.to_html(tmp_path / "page.html", texts=shuffled(texts), ids=shuffled(ids))
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    shown = json.loads(re.search(r'id="report-data">(.*?)</script>', page)[1])["suspects"]
    assert len(shown["row"]) > 3
    assert shown["text"] == [f"text of row {row}" for row in shown["row"]]
    assert shown["id"] == [f"id of row {row}" for row in shown["row"]]


@quiet
def test_masked_trusted_labels_are_missing_in_groups_too():
    masked = np.ma.masked_array(TRUE, mask=np.isnan(TRUSTED))
    masked.data[masked.mask] = 1 - TRUE[masked.mask]  # masked values must not be used
    expected, actual = (
        audit(X, Y, trusted=trusted, groups=GROUPS).label_posterior for trusted in (TRUSTED, masked)
    )
    np.testing.assert_allclose(actual, expected)
