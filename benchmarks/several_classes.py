"""More than two classes: this library beside the paper's Multi-LPC, ridge, logistic regression and cleanlab.

Everything is fitted to the same rows and labels of a draw. Tables give means and standard errors over draws;
differences are paired. Picked on the test rows, in favour of the rivals: cleanlab's best grid point, and of the paper's
rules the penalty of naive and oracle and the best (α, β). The part ``scenes`` needs its data set (UNFLIP_DATA),
cleanlab comes with the extra ``unflip[benchmark]``.
"""

import argparse
import os
import time
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.linear_model import Ridge

from accuracy import (
    BEST_OF_LEVEL,
    BEST_OF_SPLIT,
    DRAW,
    best_auroc,
    expectation,
    print_points,
    realised,
    right,
    split_rows,
    verdict,
    wide,
    with_best,
)
from peers import (
    CLEANLAB,
    CLEANLAB_GIVEN,
    GRID,
    HAS_CLEANLAB,
    LOGISTIC,
    NOTHING,
    ORACLE,
    PRIORS,
    RATES,
    RIDGE,
    Draw,
    Outcome,
    cleanlab_peers,
    fitted,
    linear_peers,
    timed,
)
from unflip import LPClassifier, NoiseModel, targets, theory
from unflip.datasets import load_scene_votes, make_mixture
from unflip.estimation import TrustedSubset

N, P, N_TEST = 2000, 200, 4000
#: Places of the means on the first axis, flips (row = true class) and proportions of the paper's settings.
PAPER = {
    3: ([-2, 0, 2], [[0.7, 0.3, 0], [0, 0.6, 0.4], [0.5, 0, 0.5]], [0.3, 0.3, 0.4]),
    4: (
        [-6, -2, 2, 6],
        [[0.5, 0, 0.5, 0], [0, 0.7, 0, 0.3], [0, 0.4, 0.6, 0], [0.3, 0, 0, 0.7]],
        [0.3, 0.2, 0.3, 0.2],
    ),
}
GAMMAS = np.logspace(-4, 4, 9)
N_PAIRS, PAIRS_GAMMA = 5000, 1.0
THEORY_GAMMAS = (1.0, 10.0)
CS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
N_TRUSTED = 100
EPS = 0.3

BOTH, TRUSTED, BALANCED = "rates and priors known", f"{N_TRUSTED} trusted rows", "nothing known, balanced"
OPTIMIZED, OPTIMIZED_PLAIN = "optimized, gaussian", "optimized, plain"
UNBIASED_PLAIN, NAIVE_PLAIN, REFINED_PLAIN = "unbiased, plain", "naive, plain", "refined, plain"
REFINED = (RATES, BOTH, TRUSTED, PRIORS, NOTHING, BALANCED)
OTHERS = (OPTIMIZED, REFINED_PLAIN, OPTIMIZED_PLAIN, UNBIASED_PLAIN, NAIVE_PLAIN)
PAPER_NAIVE, PAPER_ORACLE, PAPER_PAIRS = "paper's naive", "paper's oracle", "best of 5000 (α, β)"
PAPER_ROWS = tuple(name + end for name in (PAPER_NAIVE, PAPER_PAIRS, PAPER_ORACLE) for end in ("", ", no intercept"))
THEORY_ROWS = tuple(f"theory's (α, β), γ = {gamma:g}" for gamma in THEORY_GAMMAS)
PEERS = (RIDGE, LOGISTIC, CLEANLAB, CLEANLAB_GIVEN, BEST_OF_LEVEL, BEST_OF_SPLIT, ORACLE)
SHOWN = (*REFINED, *OTHERS, *THEORY_ROWS, *PAPER_ROWS, *PEERS)


# Draws: a key, the rows and labels, and what is to be fitted to them


def paper_draws(n_draws, quick):
    """Gaussian classes with the means, flips and proportions of the paper's appendix."""
    for k in PAPER:
        means, noise = paper_setting(k)
        for seed in range(n_draws):
            rng = np.random.default_rng((11, k, seed))
            X, y = make_mixture(N, P, means=means, priors=noise.priors, random_state=rng)
            X_test, y_test = make_mixture(N_TEST, P, means=means, priors=noise.priors, random_state=rng)
            draw = Draw(X, y, noise.flip(y, rng), X_test, y_test, noise)
            yield (f"{k} classes", "paper", seed), draw, paper_outcomes


def scene_draws(n_draws, quick):
    """Photographs of eight kinds of scenes, one random vote of a crowd worker each; square roots of the features."""
    crowd = load_scene_votes()
    X, X_test = np.sqrt(crowd.X_train), np.sqrt(crowd.X_test)
    for seed in range(n_draws):
        votes = crowd.random_votes(np.random.default_rng((12, seed)))
        draw = Draw(X, crowd.y_train, votes, X_test, crowd.y_test, realised(crowd.y_train, votes))
        chosen = np.random.default_rng((13, seed)).choice(len(X), N_TRUSTED, replace=False)
        yield ("scenes", "votes", seed), draw, lambda draw, chosen=chosen: scene_outcomes(draw, chosen)


def classic_draws(n_draws, quick):
    """Iris, wine and digits of scikit-learn, half for training, 30% of the labels flipped to any other class."""
    sets = {"iris": load_iris(), "wine": load_wine(), "digits": load_digits()}
    for d, (name, data) in enumerate(sets.items()):
        k = len(data.target_names)
        noise = NoiseModel((1 - EPS) * np.eye(k) + EPS / (k - 1) * (1 - np.eye(k)))
        X = data.data / 16 if name == "digits" else data.data
        for seed in range(n_draws):
            rng = np.random.default_rng((14, d, seed))
            draw = split_rows(X, data.target, len(X) // 2, noise, rng, standardise=name != "digits")
            yield (name, f"{EPS:g}", seed), draw, classic_outcomes


def paper_setting(k):
    """Return the class means and the noise model for k = 3 or 4."""
    places, transition, priors = PAPER[k]
    return np.outer(places, np.eye(P)[0]), NoiseModel(transition, priors)


# What is fitted


def paper_outcomes(draw):
    """Fit this library, and the paper's rules with their choices made on the test rows."""
    noise = draw.noise
    classifiers = {
        BOTH: LPClassifier(noise),
        RATES: LPClassifier(noise.transition),
        NOTHING: LPClassifier(),
        OPTIMIZED: LPClassifier(noise, targets="optimized"),
        UNBIASED_PLAIN: LPClassifier(noise, targets="unbiased", readout="plain"),
        NAIVE_PLAIN: LPClassifier(noise, targets="naive", readout="plain"),
    }
    for name, gamma in zip(THEORY_ROWS, THEORY_GAMMAS, strict=True):
        table = targets.multi_lpc(*best_pair(noise.n_classes, gamma))
        classifiers[name] = LPClassifier(noise, targets=table, readout="plain", reg=gamma)
    found = [fitted(name, classifier, draw) for name, classifier in classifiers.items()]
    for end, fit_intercept in (("", True), (", no intercept", False)):
        found += [
            best_gamma(PAPER_NAIVE + end, draw, draw.observed, fit_intercept),
            best_of_pairs(PAPER_PAIRS + end, draw, fit_intercept),
            best_gamma(PAPER_ORACLE + end, draw, draw.y, fit_intercept),
        ]
    return found


@cache
def best_pair(k, gamma):
    """(α, β) with the best predicted accuracy in the paper's setting."""
    means, noise = paper_setting(k)
    return theory.optimal_multi_lpc(means=means, n=N, noise=noise, reg=gamma, fit_intercept=True)


def one_hot_scores(draw, labels, gamma, fit_intercept):
    """Scores of the test rows by ridge regression on one-hot labels."""
    k = draw.noise.n_classes
    ridge = Ridge(alpha=len(labels) * gamma, fit_intercept=fit_intercept).fit(draw.X, np.eye(k)[labels])
    return ridge.predict(draw.X_test)


def best_gamma(method, draw, labels, fit_intercept):
    """Ridge regression on one-hot labels at the penalty that does best on the test rows."""
    tried, seconds = timed(lambda: [one_hot_scores(draw, labels, gamma, fit_intercept) for gamma in GAMMAS])
    return Outcome(method, max(tried, key=lambda scores: (scores.argmax(axis=1) == draw.y_test).mean()), seconds)


def best_of_pairs(method, draw, fit_intercept):
    """Pick the pair that does best on the test rows, of many at random and the naive one; one fit serves all."""
    k = draw.noise.n_classes
    rng = np.random.default_rng((15, k))
    pairs = np.vstack([np.repeat([1.0, 0.0], k), rng.uniform(-2, 2, size=(N_PAIRS - 1, 2 * k))])
    scores = one_hot_scores(draw, draw.observed, PAIRS_GAMMA, fit_intercept)
    best, seconds = timed(lambda: max(pairs, key=lambda pair: (of_pair(scores, pair) == draw.y_test).mean()))
    return Outcome(method, scores @ targets.multi_lpc(*np.split(best, 2)), seconds)


def of_pair(scores, pair):
    """Classes that a pair (α, β) predicts from one-hot scores."""
    return (scores @ targets.multi_lpc(*np.split(pair, 2))).argmax(axis=1)


def scene_outcomes(draw, chosen):
    """Fit this library with more and less knowledge, and the peers; trusted rows are not in their own AUROC."""
    y_trusted = np.full(len(draw.y), np.nan)
    y_trusted[chosen] = draw.y[chosen]
    trusted = fitted(TRUSTED, LPClassifier(TrustedSubset(y_trusted)), draw)
    trusted.extra["auroc_wrong"] = best_auroc(trusted.doubts, draw, np.isnan(y_trusted))
    classifiers = {
        RATES: LPClassifier(draw.noise),
        PRIORS: LPClassifier(priors=shares(draw)),
        NOTHING: LPClassifier(),
        BALANCED: LPClassifier(deployment_priors="balanced"),
    }
    return [trusted] + [fitted(name, classifier, draw) for name, classifier in classifiers.items()] + peers(draw)


def classic_outcomes(draw):
    """Every choice of targets and read-outs, and the peers."""
    classifiers = {
        RATES: LPClassifier(draw.noise),
        BOTH: LPClassifier(draw.noise, priors=shares(draw)),
        PRIORS: LPClassifier(priors=shares(draw)),
        NOTHING: LPClassifier(),
        OPTIMIZED: LPClassifier(draw.noise, targets="optimized"),
        REFINED_PLAIN: LPClassifier(draw.noise, readout="plain"),
        OPTIMIZED_PLAIN: LPClassifier(draw.noise, targets="optimized", readout="plain"),
        UNBIASED_PLAIN: LPClassifier(draw.noise, targets="unbiased", readout="plain"),
        NAIVE_PLAIN: LPClassifier(draw.noise, targets="naive", readout="plain"),
    }
    return [fitted(name, classifier, draw) for name, classifier in classifiers.items()] + peers(draw)


def shares(draw):
    """Proportions of the true classes."""
    return np.bincount(draw.y) / len(draw.y)


def peers(draw):
    """Fit ridge, logistic regression and, where it is installed, cleanlab."""
    return linear_peers(draw) + (cleanlab_peers(draw, CS) if HAS_CLEANLAB else [])


# One row for each draw and method


def run(draws):
    """Fit what belongs to each draw."""
    rows = []
    for key, draw, fit_all in draws:
        named = dict(zip(DRAW, key, strict=True))
        rows += [named | measures(outcome, draw) for outcome in fit_all(draw)]
    return pd.DataFrame(rows)


def measures(outcome, draw):
    """Return the measures of one classifier; accuracies in percent."""
    hits = right(outcome, draw)
    return {
        "method": outcome.method,
        "accuracy": 100 * hits.mean(),
        "auroc_wrong": best_auroc(outcome.doubts, draw),
        "seconds": outcome.seconds,
        **expectation(outcome, hits),
        **outcome.extra,
    }


# Tables


def mean_and_error(values, digits=2):
    """Write a mean and its standard error."""
    values = values.dropna()
    if values.empty:
        return ""
    error = values.std() / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{values.mean():.{digits}f}" + ("" if np.isnan(error) else f" ± {error:.{digits}f}")


def print_methods(frame, title):
    """Print the measures of each method, and how far refined targets with known rates are above it."""
    table, n_draws = wide(frame), len(frame[DRAW].drop_duplicates())
    print(f"\n  {title}, {n_draws} draw{'s' if n_draws > 1 else ''}; mean ± standard error")
    print(f"  {'':34s} {'accuracy':14s} {'rates known beyond':19s} {'wrong labels':16s} {'expected − actual':18s} time")
    time_ours = frame.loc[frame["method"] == RATES, "seconds"].median()
    for method in SHOWN:
        mine = frame[frame["method"] == method]
        if len(mine):
            print(
                f"  {method:34s} {mean_and_error(mine['accuracy']):14s} "
                f"{mean_and_error(table[RATES] - table[method]) if method != RATES else '':19s} "
                f"{mean_and_error(mine['auroc_wrong'], 3):16s} {mean_and_error(100 * mine['expected_bias']):18s} "
                f"{mine['seconds'].median() / time_ours:.1f}"
            )


def print_warnings(frame):
    """Print what this library's classifiers warned of, beyond assumed rates."""
    for method, mine in frame[frame["warnings"].notna()].groupby("method", sort=False):
        print(f"  {method}: {len(mine)} warnings; " + "; ".join(mine["warnings"].unique()[:3]))


# Targets


def judge_paper(frame):
    """Accuracy of refined targets in the paper's settings."""
    for name, least in (("3 classes", 77.5), ("4 classes", 96.0)):
        mine = of_method(frame[frame["set"] == name], BOTH)["accuracy"]
        verdict(mine.mean() >= least, f"{name}, {BOTH}, at least {least:g}%", mean_and_error(mine))
    for k in PAPER:
        means, noise = paper_setting(k)
        print(f"        {k} classes: Bayes {100 * theory.multiclass_bayes_accuracy(means=means, noise=noise):.2f}")
        for gamma in THEORY_GAMMAS:
            table = targets.multi_lpc(*best_pair(k, gamma))
            setting = {"means": means, "n": N, "noise": noise, "reg": gamma, "fit_intercept": True}
            predicted = theory.predict_multiclass(**setting, targets=table)
            print(
                f"        theory at γ = {gamma:g}: its (α, β) {100 * predicted.accuracy:.2f}, "
                f"any read-out of one fit {100 * predicted.readout_accuracy:.2f}"
            )


def judge_scenes(frame):
    """Accuracy and AUROC on the scenes, and the distance to cleanlab."""
    mine = of_method(frame, RATES)
    verdict(mine["accuracy"].mean() >= 91, "rates known, at least 91%", mean_and_error(mine["accuracy"]))
    auroc = mine["auroc_wrong"]
    verdict(auroc.mean() >= 0.98, "AUROC of wrong labels, rates known, at least .98", mean_and_error(auroc, 4))
    for method in (TRUSTED, NOTHING):
        judge_beyond(frame, method, BEST_OF_SPLIT, 0)


def judge_classics(frame):
    """Distance of refined targets to the best mean of this library's options that know as much, and of cleanlab."""
    for name, rows in frame.groupby("set", sort=False):
        means = rows.groupby("method")["accuracy"].mean()
        for rivals in ((NOTHING, *OTHERS), (CLEANLAB, CLEANLAB_GIVEN, BEST_OF_LEVEL)):
            best = means.reindex(rivals).dropna()
            if len(best):
                judge_beyond(rows, RATES, best.idxmax(), -1, f"{name}: ")


def judge_beyond(frame, a, b, least, prefix=""):
    """Hold the mean paired difference a − b against a bound."""
    table = wide(frame)
    if b in table:
        difference = table[a] - table[b]
        what = f"{prefix}{a} beyond {b} at least {least:+g}"
        verdict(difference.mean() >= least, what, mean_and_error(difference))


def of_method(frame, method):
    """Rows of one method."""
    return frame[frame["method"] == method]


# Parts: draws, verdicts, how many draws, and how many in a quick run


PARTS = {
    "paper": (paper_draws, judge_paper, 20, 2),
    "scenes": (scene_draws, judge_scenes, 10, 1),
    "classics": (classic_draws, judge_classics, 30, 2),
}


def results(part, options):
    """Run a part and store it, or read what is stored."""
    path = options.out / f"several_classes_{part}.csv"
    if not options.stored:
        draws, _, full, short = PARTS[part]
        frame = run(draws(options.draws or (short if options.quick else full), options.quick))
        frame.round(5).to_csv(path, index=False)
    return with_best(pd.read_csv(path, dtype={"level": str}))


def report(part, frame):
    """Print the tables and verdicts of one part."""
    for name, rows in frame.groupby("set", sort=False):
        print_methods(rows, name)
        if rows["method"].str.startswith(GRID).any():
            print_points(rows)
    print()
    print_warnings(frame)
    PARTS[part][1](frame)


def parsed():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"any of {', '.join(PARTS)}; all by default")
    parser.add_argument("--draws", type=int, help="draws of each set")
    parser.add_argument("--quick", action="store_true", help="one or two draws: a minute or two")
    parser.add_argument("--stored", action="store_true", help="run nothing, print the tables of stored results")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for the CSV files")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown part {', '.join(sorted(unknown))}: use {', '.join(PARTS)}")
    return options


def main():
    """Run the parts, print their tables and store them."""
    options = parsed()
    warnings.simplefilter("ignore", UserWarning)  # this library's are stored with the results
    warnings.simplefilter("ignore", FutureWarning)
    options.out.mkdir(parents=True, exist_ok=True)
    for part in options.parts or PARTS:
        if part == "scenes" and not options.stored and not os.environ.get("UNFLIP_DATA"):
            print(f"{part}: left out, set UNFLIP_DATA to the folder with the data sets")
            continue
        start = time.perf_counter()
        print(f"{part}: {PARTS[part][0].__doc__}")
        report(part, results(part, options))
        print(f"  ({time.perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
