"""Part ``unknown``: noise rates estimated without any given values, two and three classes."""

import itertools

import numpy as np

from draws import flipped_shares
from noise_rates_errors import coverage_verdict, covers, rms
from noise_rates_mixtures import EPS_NEG, EPS_POS, MEAN_NORMS, PI_NEG, draw_mixture, place
from unflip import NoiseModel
from unflip.datasets import make_mixture
from unflip.estimation import CrossMoment
from verdicts import verdict

# Transition matrix and class priors of the mixture with three classes.
THREE = np.array([[0.8, 0.15, 0.05], [0.1, 0.6, 0.3], [0.2, 0.1, 0.7]])
THREE_PRIORS = np.array([0.2, 0.3, 0.5])


def run_unknown(repeats, quick):
    """CrossMoment without given values, for two classes and for three."""
    eps, norms = (EPS_POS[::3], MEAN_NORMS[1::2]) if quick else (EPS_POS, MEAN_NORMS[1:])
    rows = [
        unknown_point(e, norm, [(2, i, repeat) for repeat in range(repeats)])
        for i, (e, norm) in enumerate(itertools.product(eps, norms))
    ]
    print_unknown(rows)
    judge_unknown(rows, repeats)
    three, entries = three_classes(repeats)
    report_three(three, entries)
    return [*rows, three]


def print_unknown(rows):
    """Print one line per ε₊ and ‖μ‖."""
    print("  ε₊   ‖μ‖   RMSE of ε₊  counting  ε₋       ‖μ‖      π₁       bias ε₊  cover ε₊  ε₋")
    for row in rows:
        spread = [
            row[f"{name}_rmse"]
            for name in ("eps_pos", "counting", "eps_neg", "mean_norm", "pi_neg")
        ]
        print(
            f" {row['eps_pos']:.1f}   {row['mean_norm']:.1f}         "
            + "   ".join(f"{error:.4f}" for error in spread),
            f"  {row['eps_pos_bias']:+.4f}   {100 * row['covered']:3.0f}%     "
            f"{100 * row['eps_neg_covered']:3.0f}%",
        )


def judge_unknown(rows, repeats):
    """Check two classes against their targets."""
    worst = max(rows, key=lambda row: row["eps_pos_rmse"])
    verdict(
        worst["eps_pos_rmse"] <= 0.05,
        "RMSE of ε₊ at most 0.05",
        f"{worst['eps_pos_rmse']:.4f} at {place(worst)}",
    )
    coverage_verdict(rows, repeats, ("eps_pos", "mean_norm"))


def unknown_point(eps_pos, mean_norm, draws):
    """Return errors and coverage of CrossMoment without given values, over the draws."""
    errors = []
    covered = []
    for seed in draws:
        X, y, observed, noise = draw_mixture(eps_pos, mean_norm, seed)
        estimator = CrossMoment().fit(X, observed)
        estimate = [
            estimator.noise_.eps_pos,
            estimator.noise_.eps_neg,
            estimator.mean_norm_,
            estimator.noise_.priors[0],
            flipped_shares(y, observed)[1, 0],
        ]
        errors.append(np.array(estimate) - [eps_pos, EPS_NEG, mean_norm, PI_NEG, eps_pos])
        covered.append(covers(estimator, noise.transition)[[1, 0], [0, 1]])
    names = ("eps_pos", "eps_neg", "mean_norm", "pi_neg", "counting")
    spread = {
        f"{name}_rmse": rms(column)
        for name, column in zip(names, np.transpose(errors), strict=True)
    }
    return {
        "eps_pos": float(eps_pos),
        "mean_norm": mean_norm,
        "classes": 2,
        **spread,
        "eps_pos_bias": np.mean(errors, axis=0)[0],
        "covered": float(np.mean(covered, axis=0)[0]),
        "eps_neg_covered": float(np.mean(covered, axis=0)[1]),
    }


def three_classes(repeats):
    """Return errors of CrossMoment for three orthogonal means of length 3, and its coverage."""
    means = np.zeros((3, 150))
    means[np.arange(3), np.arange(3)] = 3.0
    errors = []
    counted = []
    priors = []
    covered = []
    for repeat in range(repeats):
        rng = np.random.default_rng((3, repeat))
        X, y = make_mixture(1500, 150, means=means, priors=THREE_PRIORS, random_state=rng)
        observed = NoiseModel(THREE).flip(y, random_state=rng)
        estimator = CrossMoment().fit(X, observed)
        errors.append(np.abs(estimator.noise_.transition - THREE))
        counted.append(np.abs(flipped_shares(y, observed, 3) - THREE))
        priors.append(np.abs(estimator.noise_.priors - THREE_PRIORS))
        covered.append(covers(estimator, THREE))
    summary = {
        "classes": 3,
        "mae": float(np.mean(errors)),
        "largest_mae": float(np.mean(errors, axis=0).max()),
        "counting_mae": float(np.mean(counted)),
        "priors_mae": float(np.mean(priors)),
        "covered": float(np.mean(covered)),
    }
    return summary, 100 * np.mean(covered, axis=0)


def report_three(result, entries):
    """Print the results for three classes, and check the coverage."""
    print(
        f"  three classes: MAE of a transition entry {result['mae']:.4f} (counting with true "
        f"labels {result['counting_mae']:.4f}), of the worst entry {result['largest_mae']:.4f}, of "
        f"a class proportion {result['priors_mae']:.4f}"
    )
    inside = bool(((entries >= 90) & (entries <= 99)).all())
    verdict(
        inside,
        "coverage of the nine entries is 90 to 99%",
        f"mean {entries.mean():.1f}%, {entries.round().tolist()}",
    )
