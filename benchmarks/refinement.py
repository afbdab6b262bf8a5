"""Refined targets round by round: accuracy, leave-one-out scores, and how much of a row's own label is in its score.

Gaussian mixtures with 40% negatives, ε₊ = .4 and ε₋ = .3. Noise rates are known; class priors are known, or follow from
the rates and the observed labels. The correlation of a score with the row's own label is taken within each true class:
it is 0 for scores that are independent of the label.
"""

import argparse
from unittest.mock import patch

import numpy as np
from sklearn.metrics import roc_auc_score

import unflip.refine
import unflip.row_fit
from page_tables import short, show
from unflip import LPClassifier, NoiseModel
from unflip.datasets import make_mixture
from verdicts import standard_error

SETTINGS = ((1000, 1000, 2.0), (1000, 200, 1.5))  # n, p, ‖μ‖
ROUNDS = ("first", "second", "third")
EPS_POS, EPS_NEG, PRIORS = 0.4, 0.3, (0.4, 0.6)
N_TEST, N_DRAWS, N_QUICK = 10_000, 20, 2
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
    found = []
    for max_rounds in range(len(ROUNDS)):
        known, last = fitted(rates.with_priors(PRIORS), X, observed, max_rounds)
        unknown, _ = fitted(rates, X, observed, max_rounds)
        scores, leak = last.scores[:, 0], last.leak[:, 0]
        found.append(
            (
                roc_auc_score(y_test, known.decision_function(X_test)),
                roc_auc_score(y, scores),
                within_classes(scores + leak, observed, y),
                within_classes(scores, observed, y),
                known.score(X_test, y_test),
                known.expected_accuracy_,
                unknown.score(X_test, y_test),
                unknown.expected_accuracy_,
            )
        )
    return found


def fitted(noise, X, observed, max_rounds):
    """Fit with at most so many rounds after the first; return the classifier and its last round."""
    taken = []

    def recorded(*arguments, **options):
        taken.append(unflip.refine.refine(*arguments, **options))
        return taken[-1]

    with (
        patch.object(unflip.refine, "MAX_ROUNDS", max_rounds),
        patch.object(unflip.row_fit, "refine", recorded),
    ):
        classifier = LPClassifier(noise).fit(X, observed)
    return classifier, taken[-1]


def within_classes(scores, observed, y):
    """Correlation of scores with observed labels within a true class, mean of the classes."""
    return np.mean([np.corrcoef(scores[y == a], observed[y == a])[0, 1] for a in (0, 1)])


def cells(values):
    """Write the measures of one round, (draws, measures): accuracies on new rows with their standard errors."""
    means, errors = values.mean(axis=0), [standard_error(column) for column in values.T]
    auc, auc_loo, plain, label_free, known, known_expected, unknown, unknown_expected = means
    return (
        short(auc),
        short(auc_loo),
        short(plain, digits=2),
        short(label_free, digits=2),
        short(known, errors[4]),
        short(known_expected),
        short(unknown, errors[6]),
        short(unknown_expected),
    )


def main():
    """Run all settings and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=N_DRAWS, help=f"draws of each setting, {N_DRAWS} by default")
    parser.add_argument("--quick", action="store_true", help=f"{N_QUICK} draws: seconds")
    parser.add_argument("--write", action="store_true", help="write the table into docs/refinement.md")
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
