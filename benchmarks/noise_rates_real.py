"""Part ``real``: noise rates and accuracy on reviews and annotators' votes, by input."""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import StandardScaler

from draws import Draw, flipped_shares, realised, review_draws, trusted_labels
from noise_rates_errors import covers
from noise_rates_real_tables import judge_real, print_real, summarise
from noise_rates_trusted import N_TRAIN, N_TRUSTED
from peers import HAS_CLEANLAB
from unflip import LPClassifier
from unflip.datasets import AMAZON_DOMAINS, load_sentiment_votes
from unflip.estimation import TrustedSubset

LEVELS = ((0.4, 0.3), (0.3, 0.1))


def run_real(repeats, quick):
    """Noise rates and accuracy on real data, by what is given."""
    if not HAS_CLEANLAB:
        print('  cleanlab is not installed (pip install "unflip[benchmark]"): skipped')
    draws = amazon_draws(repeats, quick) + sentiment_draws(repeats)
    sets = list(dict.fromkeys(row["set"] for row in draws))
    rows = [
        summary
        for name in sets
        for summary in summarise([row for row in draws if row["set"] == name])
    ]
    print_real(rows)
    judge_real(rows)
    return rows


def amazon_draws(repeats, quick):
    """Compare on the Amazon sets at two pairs of noise rates, with a new split in every draw."""
    rows = []
    domains = AMAZON_DOMAINS[:1] if quick else AMAZON_DOMAINS
    for domain, _, draw, rng in review_draws(domains, LEVELS, repeats, 5, N_TRAIN):
        rows += compare(f"{domain} ({draw.noise.eps_pos:g}, {draw.noise.eps_neg:g})", draw, rng)
    return rows


def sentiment_draws(repeats):
    """Compare on annotators' votes, with a random 80% of the training sentences in every draw."""
    crowd = load_sentiment_votes()
    rows = []
    for kind in ("random vote", "worst vote"):
        for repeat in range(repeats):
            rng = np.random.default_rng((6, repeat))
            votes = crowd.random_votes(rng) if kind == "random vote" else crowd.worst_votes()
            kept = rng.permutation(len(votes))[: int(0.8 * len(votes))]
            scaler = StandardScaler().fit(crowd.X_train[kept])
            X = scaler.transform(crowd.X_train[kept])
            X_test = scaler.transform(crowd.X_test)
            y = crowd.y_train[kept]
            observed = votes[kept]
            draw = Draw(X, y, observed, X_test, crowd.y_test, realised(y, observed))
            rows += compare(f"votes, {kind}", draw, rng)
    return rows


def compare(name, draw, rng):
    """Fit all classifiers to one draw; return one row for each."""
    truth = flipped_shares(draw.y, draw.observed)
    rows = []
    for method, options in methods(draw, truth, rng).items():
        transition, (covered, width), accuracy, source = outcome(options, truth, draw)
        rows.append(
            {
                "set": name,
                "method": method,
                "eps_pos": transition[1, 0],
                "eps_neg": transition[0, 1],
                "true_eps_pos": truth[1, 0],
                "true_eps_neg": truth[0, 1],
                "covered": covered,
                "width": width,
                "accuracy": accuracy,
                "source": source,
            }
        )
    return rows


def methods(draw, truth, rng):
    """Return the options of the compared classifiers, by name."""
    named = {
        "none": {"noise": None},
        "default": {},
        "priors": {"priors": draw.priors},
        "trusted": {"noise": TrustedSubset(trusted_labels(draw.y, N_TRUSTED, rng))},
    }
    if HAS_CLEANLAB:
        named["cleanlab"] = cleanlab_noise(draw.X, draw.observed)
    return named | {"true rates": {"noise": truth}}


def cleanlab_noise(X, observed):
    """Return cleanlab's transition matrix and priors, from out-of-fold logistic probabilities."""
    from cleanlab.count import compute_confident_joint, estimate_latent

    logistic = LogisticRegression(max_iter=10_000)
    probabilities = cross_val_predict(logistic, X, observed, cv=5, method="predict_proba")
    priors, given_true, _ = estimate_latent(
        compute_confident_joint(observed, probabilities), observed
    )
    return {"noise": given_true.T, "priors": priors}


def outcome(options, truth, draw):
    """Return transition, intervals, accuracy in percent and source of the noise rates.

    They are NaN if the classifier raises ValueError, because noise rates sum to more than 1.
    """
    classifier = LPClassifier(**options)
    try:
        classifier.fit(draw.X, draw.observed)
    except ValueError:
        transition = np.asarray(options.get("noise", np.full((2, 2), np.nan)))
        return transition, (np.nan, np.nan), np.nan, ""
    estimator = classifier.noise_estimator_
    accuracy = 100 * classifier.score(draw.X_test, draw.y_test)
    return (
        classifier.noise_.transition,
        intervals(estimator, truth),
        accuracy,
        getattr(estimator, "source_", ""),
    )


def intervals(estimator, truth):
    """Return the coverage of the two 95% confidence intervals, and their mean width."""
    if estimator is None:
        return np.nan, np.nan
    low, high = estimator.interval(0.95)
    off_diagonal = ~np.eye(2, dtype=bool)
    return covers(estimator, truth)[off_diagonal].mean(), (high - low)[off_diagonal].mean()
