"""The estimated accuracy of an ordinary logistic regression on clean labels, against the truth."""

import argparse
import os
import warnings

import numpy as np

from draws import review_draws
from page_tables import short, show
from unflip import NoiseModel, audit
from unflip.auditing.ordinary_model import accuracy_of, out_of_fold_classes
from unflip.datasets import make_mixture
from unflip.estimation import AssumedNoiseWarning

RATES = ((0.4, 0.3), (0.3, 0.1))
MIXTURES = ((1000, 100, 1.5), (600, 300, 2.0), (4000, 50, 1.5))  # rows, features, mean norm
DOMAINS = ("kitchen", "books", "dvd")
N_TRAIN = 1600  # reviews
SOURCES = ("given", "estimated")


def mixture_draws(n_draws):
    """Yield name, rates, rows, true and noisy labels, and the noise model of Gaussian mixtures."""
    for n, p, mean_norm in MIXTURES:
        for eps_pos, eps_neg in RATES:
            noise = NoiseModel.binary(eps_pos=eps_pos, eps_neg=eps_neg)
            for seed in range(n_draws):
                X, y = make_mixture(n, p, mean_norm=mean_norm, random_state=seed)
                labels = noise.flip(y, random_state=1000 + seed)
                yield f"mixtures, n = {n}, p = {p}", (eps_pos, eps_neg), X, y, labels, noise


def all_draws(n_draws):
    """Yield the draws of mixtures, and of reviews if there are data."""
    yield from mixture_draws(n_draws)
    if "UNFLIP_DATA" not in os.environ:
        return
    for domain, _, draw, _ in review_draws(DOMAINS, RATES, n_draws, 0, N_TRAIN):
        rates = (draw.noise.eps_pos, draw.noise.eps_neg)
        yield f"reviews, {domain}", rates, draw.X, draw.y, draw.observed, draw.noise


def measured(draw):
    """Return the truth, and for each source of the rates the estimate, its error and coverage."""
    _, _, X, y, labels, noise = draw
    predicted = out_of_fold_classes(X, labels)
    truth = np.mean(predicted == y)
    numbers = [truth]
    for given in (noise, "estimate"):
        interval = accuracy_of(predicted, audit(X, labels, noise=given).evidence)
        numbers += [interval.value, interval.std, interval.low <= truth <= interval.high]
    return numbers


def main():
    """Measure, print and on request write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=20, help="draws of each setting")
    parser.add_argument("--quick", action="store_true", help="two draws of each setting")
    parser.add_argument("--write", action="store_true", help="write the table into docs/report.md")
    options = parser.parse_args()
    warnings.simplefilter("ignore", AssumedNoiseWarning)
    results = {}
    for draw in all_draws(2 if options.quick else options.draws):
        results.setdefault(draw[:2], []).append(measured(draw))
    rows = [["data", "(ε₊, ε₋)", "true", "rates given", "within", "rates estimated", "within"]]
    for (name, rates), values in results.items():
        truth, *others = np.mean(values, axis=0)
        line = [name, f"({short(rates[0], digits=1)}, {short(rates[1], digits=1)})", short(truth)]
        for value, error, coverage in (others[:3], others[3:]):
            line += [short(value, error), f"{coverage:.0%}"]
        rows.append(line)
    show("report.md", "python benchmarks/ordinary_model.py", rows, options.write)


if __name__ == "__main__":
    main()
