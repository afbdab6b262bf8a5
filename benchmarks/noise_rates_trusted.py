"""Part ``trusted``: noise rates of Amazon reviews from 100 trusted labels, and by counting."""

import numpy as np
from scipy.stats import binomtest

from draws import split_rows, trusted_labels
from noise_rates_errors import coverage_verdict
from unflip import NoiseModel
from unflip.datasets import AMAZON_DOMAINS, load_amazon_reviews
from unflip.estimation import TrustedSubset
from verdicts import verdict

N_TRAIN = 1600
N_TRUSTED = 100
EPS_POS = 0.4
EPS_NEG = 0.3


def run_trusted(repeats, quick):
    """TrustedSubset with 100 random trusted labels per Amazon set, and counting in these."""
    rows = []
    for d, domain in enumerate(AMAZON_DOMAINS[:1] if quick else AMAZON_DOMAINS):
        X, y = load_amazon_reviews(domain)
        draws = [both(X, y, np.random.default_rng((4, d, repeat))) for repeat in range(repeats)]
        rows += trusted_rows(domain, np.array(draws), np.array([EPS_POS, EPS_NEG]))
    print_trusted(rows)
    judge_trusted(rows, repeats)
    return rows


def both(X, y, rng):
    """Estimate the noise rates of one draw from trusted labels, and by counting in them."""
    draw = split_rows(X, y, N_TRAIN, NoiseModel.binary(eps_pos=EPS_POS, eps_neg=EPS_NEG), rng)
    y_trusted = trusted_labels(draw.y, N_TRUSTED, rng)
    return [ask_trusted(draw.X, y_trusted, draw.observed), count_trusted(y_trusted, draw.observed)]


def ask_trusted(X, y_trusted, observed):
    """Return (ε₊, ε₋) by `TrustedSubset`, as rows (estimate, low, high)."""
    estimator = TrustedSubset(y_trusted).fit(X, observed)
    low, high = estimator.interval(0.95)
    rates = estimator.noise_.transition
    return np.array([(table[1, 0], table[0, 1]) for table in (rates, low, high)]).T


def count_trusted(y_trusted, observed):
    """Return the same by counting in the trusted rows, with Wilson intervals."""
    rates = []
    for a in (1, 0):
        wrong = observed[y_trusted == a] != a
        ends = binomtest(int(wrong.sum()), len(wrong)).proportion_ci(method="wilson")
        rates.append((wrong.mean(), ends.low, ends.high))
    return np.array(rates)


def trusted_rows(domain, draws, truth):
    """Summarise draws of shape (draws, method, rate, (estimate, low, high))."""
    estimate, low, high = np.moveaxis(draws, -1, 0)
    covered = (low <= truth) & (truth <= high)
    return [
        {
            "domain": domain,
            "method": method,
            "rate": rate,
            "mae": float(np.abs(estimate - truth)[:, m, r].mean()),
            "bias": float((estimate - truth)[:, m, r].mean()),
            "covered": float(covered[:, m, r].mean()),
            "width": float((high - low)[:, m, r].mean()),
        }
        for r, rate in enumerate(("eps_pos", "eps_neg"))
        for m, method in enumerate(("TrustedSubset", "counting"))
    ]


def print_trusted(rows):
    """Print the table of the part."""
    print("  domain   rate     method         MAE     bias     cover   mean width")
    for row in rows:
        print(
            f"  {row['domain']:8s} {row['rate']:8s} {row['method']:13s} {row['mae']:.4f}  "
            f"{row['bias']:+.4f}  {100 * row['covered']:5.1f}%  {row['width']:.3f}"
        )


def judge_trusted(rows, repeats):
    """Check the error and the coverage against their targets."""
    ours = [row for row in rows if row["method"] == "TrustedSubset"]
    worst = max(ours, key=lambda row: row["mae"])
    verdict(
        worst["mae"] <= 0.06,
        "MAE of each rate at most 0.06",
        f"largest {worst['mae']:.4f}, {worst['domain']}",
    )
    coverage_verdict(ours, repeats, ())
