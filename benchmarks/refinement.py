"""Refined targets by round: accuracy, leave-one-out scores and label leakage.

Gaussian mixtures with 40% negatives, ε₊ = .4 and ε₋ = .3. Noise rates are given. Class priors are
given, or inferred from the noise rates and the observed labels. Label leakage is the correlation of
a score with the row's own label within each true class: 0 for scores independent of the label.
"""

import argparse
from unittest.mock import patch

import numpy as np
from sklearn.metrics import roc_auc_score

import unflip.model.fit_rows
import unflip.model.refinement.refine
from page_tables import short, show
from unflip import LPClassifier, NoiseModel
from unflip.datasets import make_mixture
from verdicts import standard_error

SETTINGS = ((1000, 1000, 2.0), (1000, 200, 1.5))  # n, p, ‖μ‖
ROUNDS = ("first", "second", "third")
EPS_POS = 0.4
EPS_NEG = 0.3
PRIORS = (0.4, 0.6)
N_TEST = 10_000
N_DRAWS = 20
N_QUICK = 2
COMMAND = "python benchmarks/refinement.py"
HEADER = (
    "n, p, ‖μ‖",
    "round",
    "AUC on new rows",
    "AUC of leave-one-out scores",
    "correlation with own label, plain",
    "with the leak removed",
    "accuracy, priors known",
    "expected",
    "accuracy, priors not known",
    "expected",
)


def measured(setting, seed):
    """Return the measures of each round on one draw, (rounds, measures)."""
    n, p, mean_norm = setting
    rng = np.random.default_rng((21, n, p, seed))
    mixture = {"mean_norm": mean_norm, "priors": PRIORS, "random_state": rng}
    X, y = make_mixture(n, p, **mixture)
    X_test, y_test = make_mixture(N_TEST, p, **mixture)
    rates = NoiseModel.binary(eps_pos=EPS_POS, eps_neg=EPS_NEG)
    observed = rates.flip(y, random_state=rng)
    measures = []
    for max_rounds in range(len(ROUNDS)):
        with_priors, last = fitted(rates.with_priors(PRIORS), X, observed, max_rounds)
        without, _ = fitted(rates, X, observed, max_rounds)
        scores = last.scores[:, 0]
        leakage = last.leakage[:, 0]
        measures.append(
            (
                roc_auc_score(y_test, with_priors.decision_function(X_test)),
                roc_auc_score(y, scores),
                within_classes(scores + leakage, observed, y),
                within_classes(scores, observed, y),
                with_priors.score(X_test, y_test),
                with_priors.expected_accuracy_,
                without.score(X_test, y_test),
                without.expected_accuracy_,
            )
        )
    return measures


def fitted(noise, X, observed, max_rounds):
    """Fit with at most ``max_rounds`` rounds after the first; return classifier and last round."""
    rounds = []

    def recorded(*arguments, **options):
        rounds.append(unflip.model.refinement.refine.refine(*arguments, **options))
        return rounds[-1]

    with (
        patch.object(unflip.model.refinement.refine, "MAX_ROUNDS", max_rounds),
        patch.object(unflip.model.fit_rows, "refine", recorded),
    ):
        classifier = LPClassifier(noise).fit(X, observed)
    return classifier, rounds[-1]


def within_classes(scores, observed, y):
    """Return the correlation of scores and observed labels within true classes, averaged."""
    return np.mean([np.corrcoef(scores[y == a], observed[y == a])[0, 1] for a in (0, 1)])


def cells(values):
    """Format the measures of one round, (draws, measures); accuracies with standard errors."""
    means = values.mean(axis=0)
    errors = [standard_error(column) for column in values.T]
    auc, auc_loo, plain, corrected, *accuracies = means
    return (
        short(auc),
        short(auc_loo),
        short(plain, digits=2),
        short(corrected, digits=2),
        short(accuracies[0], errors[4]),
        short(accuracies[1]),
        short(accuracies[2], errors[6]),
        short(accuracies[3]),
    )


def main():
    """Run all settings and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--draws", type=int, default=N_DRAWS, help=f"draws per setting (default: {N_DRAWS})"
    )
    parser.add_argument("--quick", action="store_true", help=f"{N_QUICK} draws: seconds")
    parser.add_argument(
        "--write", action="store_true", help="write the table into docs/refinement.md"
    )
    options = parser.parse_args()
    n_draws = N_QUICK if options.quick else options.draws
    rows = [HEADER]
    for setting in SETTINGS:
        values = np.array([measured(setting, seed) for seed in range(n_draws)])
        name = "{}, {}, {:g}".format(*setting)
        for r, which in enumerate(ROUNDS):
            rows.append(("" if r else name, which, *cells(values[:, r])))
    print(f"{n_draws} draws, {N_TEST} new rows; accuracies ± standard error")
    show("refinement.md", COMMAND, rows, options.write)


if __name__ == "__main__":
    main()
