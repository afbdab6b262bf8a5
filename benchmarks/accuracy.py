"""How accurate classifiers from noisy labels are: this library beside ridge, logistic regression and cleanlab.

Everything is fitted to the same splits and flips. Differences are paired; their 95% intervals are over draws, or over
test rows where a set has a single draw. cleanlab's best grid point is picked on the test rows, in its favour. Parts
other than ``sklearn`` need the data sets (UNFLIP_DATA), cleanlab comes with the extra ``unflip[benchmark]``.
"""

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import t as student
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.preprocessing import StandardScaler

from peers import (
    CLEANLAB,
    CLEANLAB_GIVEN,
    GRID,
    HAS_CLEANLAB,
    LOGISTIC,
    LOGISTIC_AWARE,
    NOTHING,
    ORACLE,
    OURS,
    PRIORS,
    RATES,
    RIDGE,
    RIDGE_AWARE,
    Draw,
    cross_validated,
    doubts,
    outcomes,
)
from unflip import LPClassifier, NoiseModel
from unflip.datasets import AMAZON_DOMAINS, load_amazon_reviews, load_sentiment_votes

LEVELS = ((0.2, 0.1), (0.3, 0.3), (0.4, 0.1), (0.4, 0.3))
SYMMETRIC = (0.0, 0.1, 0.2)
NEGATIVES = 0.3
FIRST = 12
BINS = 10
DRAW = ["set", "level", "split"]
BEST_OF_ALL, BEST_OF_LEVEL, BEST_OF_SPLIT = (f"cleanlab best per {unit}" for unit in ("part", "level", "split"))
SHOWN = (
    *OURS,
    RIDGE,
    RIDGE_AWARE,
    LOGISTIC,
    LOGISTIC_AWARE,
    CLEANLAB,
    CLEANLAB_GIVEN,
    BEST_OF_ALL,
    BEST_OF_LEVEL,
    BEST_OF_SPLIT,
    ORACLE,
)


# Draws


def split_rows(X, y, n_train, noise, rng, standardise=True):
    """Split at random, standardise by the training rows, flip their labels."""
    order = rng.permutation(len(y))
    train, test = order[:n_train], order[n_train:]
    scaler = StandardScaler(with_mean=standardise, with_std=standardise).fit(X[train])
    observed = noise.flip(y[train], random_state=rng)
    return Draw(scaler.transform(X[train]), y[train], observed, scaler.transform(X[test]), y[test], noise)


def amazon_draws(splits, quick):
    """Amazon reviews, 1600 training rows."""
    yield from review_draws(splits, quick, 1, lambda y, rng: np.arange(len(y)))


def imbalanced_draws(splits, quick):
    """Amazon reviews with 30% negatives, four fifths for training."""
    yield from review_draws(splits, quick, 2, fewer_negatives)


def fewer_negatives(y, rng):
    """Keep all positives, and as many negatives as are 30% of what is kept."""
    positives, negatives = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    n_kept = round(len(positives) * NEGATIVES / (1 - NEGATIVES))
    return np.concatenate([positives, rng.permutation(negatives)[:n_kept]])


def review_draws(splits, quick, seed, choose):
    """Each domain at each pair of rates."""
    for d, domain in enumerate(AMAZON_DOMAINS[: 2 if quick else None]):
        X, y = load_amazon_reviews(domain)
        for r, (eps_pos, eps_neg) in enumerate(LEVELS):
            for split in range(splits):
                rng = np.random.default_rng((seed, d, r, split))
                kept = choose(y, rng)
                noise = NoiseModel.binary(eps_pos=eps_pos, eps_neg=eps_neg)
                yield (
                    (domain, f"{eps_pos:g}/{eps_neg:g}", split),
                    split_rows(X[kept], y[kept], int(0.8 * len(kept)), noise, rng),
                )


def vote_draws(splits, quick):
    """Film reviews with crowd workers' votes for labels: all training rows, realised rates."""
    crowd = load_sentiment_votes()
    scaler = StandardScaler().fit(crowd.X_train)
    X, X_test = scaler.transform(crowd.X_train), scaler.transform(crowd.X_test)
    named = [("least accurate worker", 0, crowd.worst_votes())]
    named += [("random vote", s, crowd.random_votes(np.random.default_rng((3, s)))) for s in range(splits)]
    for name, split, votes in named:
        noise = realised(crowd.y_train, votes)
        level = f"{noise.eps_pos:.2f}/{noise.eps_neg:.2f}" if name != "random vote" else "realised"
        yield (name, level, split), Draw(X, crowd.y_train, votes, X_test, crowd.y_test, noise)


def realised(y, observed):
    """Noise model of the flips that did happen."""
    counts = np.zeros((y.max() + 1, y.max() + 1))
    np.add.at(counts, (y, observed), 1)
    return NoiseModel(counts / counts.sum(axis=1, keepdims=True))


def sklearn_draws(splits, quick):
    """Breast cancer and digits with symmetric noise, 70% for training."""
    cancer, digits = load_breast_cancer(), load_digits()
    pair = np.isin(digits.target, (3, 8))
    sets = {
        "cancer": (cancer.data, cancer.target),
        "digits odd": (digits.data, digits.target % 2),
        "digits 3/8": (digits.data[pair], (digits.target[pair] == 8).astype(int)),
    }
    for d, (name, (X, y)) in enumerate(sets.items()):
        for r, eps in enumerate(SYMMETRIC):
            for split in range(splits):
                rng = np.random.default_rng((4, d, r, split))
                noise = NoiseModel.binary(eps_pos=eps, eps_neg=eps)
                yield (name, f"{eps:g}", split), split_rows(X, y, int(0.7 * len(y)), noise, rng)


# One row for each draw and method


def run(draws):
    """Fit everything to every draw: rows of results, and of claimed and true probabilities."""
    rows, claims = [], []
    for key, draw in draws:
        found = outcomes(draw)
        reference = right(found[0], draw)
        named = dict(zip(DRAW, key, strict=True))
        rows += [named | measures(outcome, draw, reference) for outcome in found]
        claims += [claim for outcome in found if outcome.classifier for claim in claimed(outcome, draw)]
    return pd.DataFrame(rows), pooled_claims(claims)


def right(outcome, draw):
    """Whether each test row is predicted right."""
    return outcome.predicted == draw.y_test


def measures(outcome, draw, reference):
    """Return the measures of one classifier; accuracies in percent."""
    hits = right(outcome, draw)
    return {
        "method": outcome.method,
        "accuracy": 100 * hits.mean(),
        "balanced": 100 * balanced_accuracy_score(draw.y_test, outcome.predicted),
        "auc": roc_auc_score(draw.y_test, outcome.decision),
        "auroc_wrong": best_auroc(outcome.doubts, draw),
        "n_test": len(hits),
        "row_error": 100 * np.std(hits * 1.0 - reference) / np.sqrt(len(hits)),
        "seconds": outcome.seconds,
        **expectation(outcome, hits),
        **outcome.extra,
    }


def best_auroc(forms, draw, rows=slice(None)):
    """AUROC of wrong labels among these rows, by the best form of the doubt; NaN where none is wrong."""
    wrong = (draw.observed != draw.y)[rows]
    return max((roc_auc_score(wrong, doubt[rows]) for doubt in forms), default=np.nan) if wrong.any() else np.nan


def expectation(outcome, hits):
    """Compare the accuracy that a classifier expects with that on the test rows."""
    if outcome.classifier is None:
        return {}
    actual, expected = hits.mean(), outcome.classifier.expected_accuracy_
    chance = expected * (1 - expected) / len(hits)  # variance of the test share if the claim is right
    error = np.sqrt(outcome.classifier.expected_accuracy_std_**2 + chance)
    return {
        "expected": expected,
        "expected_std": outcome.classifier.expected_accuracy_std_,
        "expected_bias": expected - actual,
        "within_two": float(abs(expected - actual) <= 2 * error),
    }


def claimed(outcome, draw):
    """Probabilities that labels of training rows are right and test rows positive, with the truth."""
    certain = 1 - outcome.doubts[0]
    positive = outcome.classifier.predict_proba(draw.X_test)[:, 1]
    return [
        binned(outcome.method, "label right", certain, draw.observed == draw.y),
        binned(outcome.method, "test row positive", positive, draw.y_test == 1),
    ]


def binned(method, kind, probability, truth):
    """Count and sum claimed and true in bins of the claimed probability."""
    place = np.minimum((BINS * probability).astype(int), BINS - 1)
    return pd.DataFrame(
        {
            "method": method,
            "kind": kind,
            "bin": np.arange(BINS),
            "n": np.bincount(place, minlength=BINS),
            "claimed": np.bincount(place, probability, minlength=BINS),
            "true": np.bincount(place, truth, minlength=BINS),
        }
    )


def pooled_claims(claims):
    """Pool bins of all draws; claimed and true become means."""
    pooled = pd.concat(claims).groupby(["method", "kind", "bin"], sort=False).sum().reset_index()
    counts = pooled["n"].clip(lower=1)
    return pooled.assign(claimed=pooled["claimed"] / counts, true=pooled["true"] / counts)


# Tables


def with_best(frame):
    """Add cleanlab's best grid point, picked by test accuracy in three ways; its time is that of the whole search."""
    grid = frame[frame["method"].str.startswith(GRID)]
    if grid.empty:
        return frame
    cost = grid.groupby(DRAW)["seconds"].sum()
    picked = {BEST_OF_ALL: [], BEST_OF_LEVEL: ["set", "level"], BEST_OF_SPLIT: DRAW}
    extra = [searched(best_points(grid, by), cost, name) for name, by in picked.items()]
    return pd.concat([frame, *extra], ignore_index=True)


def best_points(grid, by, measure="accuracy"):
    """Rows of the grid point with the best mean in each group."""
    keys = [grid[key] for key in by]
    means = grid.groupby([*by, "method"])[measure].mean()
    if not by:
        return grid[grid["method"] == means.idxmax()]
    best = means.groupby(by).idxmax().map(lambda index: index[-1])
    wanted = pd.MultiIndex.from_arrays(keys) if len(by) > 1 else keys[0]
    return grid[grid["method"].to_numpy() == best.reindex(wanted).to_numpy()]


def searched(rows, cost, name):
    """Rename rows of grid points and charge them the whole search."""
    seconds = cost.reindex(pd.MultiIndex.from_frame(rows[DRAW])).to_numpy()
    return rows.assign(point=rows["method"], method=name, seconds=seconds)


def wide(frame, measure="accuracy"):
    """One row per draw, one column per method."""
    return frame.pivot(index=DRAW, columns="method", values=measure)


def paired(frame, a, b, measure="accuracy"):
    """Mean of a − b over draws, and half of its 95% interval."""
    table = wide(frame, measure)
    if a not in table or b not in table:
        return np.nan, np.nan
    difference = (table[a] - table[b]).dropna()
    n = len(difference)
    if n == 1:
        error = frame.loc[frame["method"] == b, "row_error"].iloc[0] if a == RATES else np.nan
        return difference.iloc[0], 1.96 * error
    return difference.mean(), student.ppf(0.975, n - 1) * difference.std() / np.sqrt(n)


def print_methods(frame, title):
    """Print all measures of each method and how far this library's are above it."""
    n_draws = len(frame[DRAW].drop_duplicates())
    print(f"\n  {title}, {n_draws} draw{'s' if n_draws > 1 else ''}")
    print(
        f"  {'':26s} accuracy  rates known beyond  nothing known beyond  balanced  AUC    wrong labels  relative time"
    )
    time_ours = frame.loc[frame["method"] == RATES, "seconds"].median()
    for method in SHOWN:
        mine = frame[frame["method"] == method]
        if len(mine):
            means = mine[["accuracy", "balanced", "auc", "auroc_wrong"]].mean()
            auroc = "" if np.isnan(means["auroc_wrong"]) else f"{means['auroc_wrong']:.3f}"
            print(
                f"  {method:26s} {means['accuracy']:7.2f}   {interval(paired(frame, RATES, method)):16s}   "
                f"{interval(paired(frame, NOTHING, method)):19s}  {means['balanced']:7.2f}  {means['auc']:.3f}  "
                f"{auroc:12s}  {mine['seconds'].median() / time_ours:6.1f}"
            )


def interval(found):
    """Write a difference and its interval."""
    middle, half = found
    return "" if np.isnan(middle) else f"{middle:+6.2f}" + ("" if np.isnan(half) else f" ± {half:.2f}")


def print_groups(frame, by, measure="accuracy", digits=2):
    """Print the mean of a measure for each method and group."""
    table = frame.groupby(["method", *by], sort=False)[measure].mean().unstack(by)
    names = [" ".join(column) if isinstance(column, tuple) else column for column in table.columns]
    widths = [max(7, len(name)) for name in names]
    print(f"\n  {measure:26s} " + "  ".join(f"{name:>{w}s}" for name, w in zip(names, widths, strict=True)))
    for method in SHOWN:
        if method in table.index and table.loc[method].notna().any():
            cells = [f"{value:{w}.{digits}f}" for value, w in zip(table.loc[method], widths, strict=True)]
            print(f"  {method:26s} " + "  ".join(cells))


def print_claims(claims, methods):
    """Print claimed and true shares side by side."""
    for kind in claims["kind"].unique():
        print(f"\n  {kind}: claimed/true share in percent, and rows, by tenth of the claimed probability")
        for method in methods:
            mine = claims[(claims["method"] == method) & (claims["kind"] == kind)]
            shares = [
                f"{100 * row.claimed:3.0f}/{100 * row.true:3.0f}" if row.n else "   -   " for row in mine.itertuples()
            ]
            print(f"  {method:18s} " + "  ".join(shares))
            print(f"  {'':18s} " + "  ".join(f"{row.n:7d}" for row in mine.itertuples()))


def print_points(frame):
    """Print the grid points of cleanlab."""
    grid = frame[frame["method"].str.startswith(GRID)].groupby("method", sort=False)
    means = grid[["accuracy", "auroc_wrong"]].mean()
    cells = (
        f"{name.removeprefix(GRID)} {row['accuracy']:.2f} (wrong labels {row['auroc_wrong']:.3f})"
        for name, row in means.iterrows()
    )
    print("\n  cleanlab, accuracy by C: " + "; ".join(cells))


def print_oddities(frame):
    """Print what this library's classifiers warned of, their penalties and estimated rates."""
    for method in OURS:
        mine = frame[frame["method"] == method]
        texts = mine["warnings"].dropna()
        print(
            f"  {method:18s} log10 of reg {np.log10(mine['reg']).min():.1f} to {np.log10(mine['reg']).max():.1f}, "
            f"{len(texts)} warnings" + "".join(f"; {text}" for text in texts.unique()[:3])
        )


# Targets


def verdict(passed, target, reached):
    """Print whether a target was reached."""
    print(f"  {'PASS' if passed else 'MISS'}  {target}: {reached}")


def judge_difference(frame, a, b, least, most=np.inf, what=None):
    """Hold the mean paired difference a − b against bounds."""
    found = paired(frame, a, b)
    if np.isnan(found[0]):
        return
    bounds = f"at least {least:+g}" if most == np.inf else f"{least:+g} to {most:+g}"
    verdict(least <= found[0] <= most, what or f"{a} beyond {b} {bounds}", interval(found))


def judge_amazon(frame):
    """Targets of the balanced reviews."""
    for best in (BEST_OF_ALL, BEST_OF_LEVEL):
        judge_difference(frame, RATES, best, 0)
    judge_difference(frame, RATES, RIDGE, 11)
    judge_difference(frame, RATES, ORACLE, -2.6)
    judge_difference(frame, PRIORS, RATES, -0.4, 0.4)
    judge_difference(frame, NOTHING, RIDGE, 9.5)
    judge_difference(frame, NOTHING, CLEANLAB, 7)


def judge_imbalanced(frame):
    """Targets of the imbalanced reviews."""
    for best in (BEST_OF_ALL, BEST_OF_LEVEL):
        judge_difference(frame, RATES, best, 0)
        judge_difference(frame, PRIORS, best, 0)
    print(f"        nothing known beyond cleanlab default {interval(paired(frame, NOTHING, CLEANLAB))}")


def judge_votes(frame):
    """Targets of the crowd workers' votes."""
    for name, least in (("least accurate worker", 71.5), ("random vote", 74.3)):
        mine = frame[(frame["set"] == name) & (frame["method"] == RATES)]["accuracy"]
        verdict(mine.mean() >= least, f"{name}, rates known, at least {least}%", f"{mine.mean():.2f}")


def judge_sklearn(frame):
    """Targets of breast cancer and digits, each set and level against the better aware peer."""
    for (name, level), rows in frame.groupby(["set", "level"], sort=False):
        means = rows.groupby("method")["accuracy"].mean()
        better = means[[RIDGE_AWARE, LOGISTIC_AWARE]].idxmax()
        judge_difference(rows, RATES, better, -1, what=f"{name} at {level}: rates known beyond {better} at least -1")


def judge_wrong_labels(frame):
    """AUROC of wrong labels against cleanlab's, its default and its best grid point for each set and level."""
    grid = frame[frame["method"].str.startswith(GRID) & frame["auroc_wrong"].notna()]
    if grid.empty:
        return
    peers = {"default": frame[frame["method"] == CLEANLAB]}
    peers["best grid point by AUROC"] = best_points(grid, ["part", "set", "level"], "auroc_wrong")
    by = ["part", "set", "level"]
    for method in (RATES, PRIORS, NOTHING):
        mine = frame[frame["method"] == method].groupby(by)["auroc_wrong"].mean()
        for peer, rows in peers.items():
            gain = (mine - rows.groupby(by)["auroc_wrong"].mean()).dropna()
            name = f"AUROC of wrong labels, {method}, beyond cleanlab's {peer}"
            verdict(gain.min() >= -0.01, f"{name} at least -.01", f"{gain.min():+.3f} at {' '.join(gain.idxmin())}")
            verdict(gain.mean() >= 0.03, f"{name} on average at least .03", f"{gain.mean():+.3f}")


def judge_expected(frame):
    """Bias of the expected accuracy and how often it lies within two standard errors, over all sets and levels."""
    for method in OURS:
        mine = frame[frame["method"] == method]
        groups = mine.groupby(["part", "set", "level"])[["expected_bias", "within_two"]].mean()
        bias, within, worst = groups["expected_bias"].mean(), groups["within_two"].mean(), groups["expected_bias"].abs()
        reached = f"{bias:+.4f}; worst {groups['expected_bias'][worst.idxmax()]:+.3f} at {' '.join(worst.idxmax())}"
        if method == RATES:
            verdict(abs(bias) <= 0.01, f"bias of expected accuracy, {method}, within ±.01", reached)
            verdict(within >= 0.9, "within two standard errors in 90%", f"{100 * within:.1f}%")
        else:
            print(f"        {method}: bias {reached}; within two standard errors {100 * within:.1f}%")
    rows = frame[frame["method"].isin(OURS)]
    for part, mine in rows.groupby("part", sort=False):
        print_groups(mine, ["level"] if part in ("amazon", "imbalanced") else ["set", "level"], "expected_bias", 3)
        print_groups(mine, ["level"] if part in ("amazon", "imbalanced") else ["set", "level"], "within_two", 2)


# Parts


def report(part, frame, claims):
    """Print the tables and verdicts of one part."""
    by = ["level"] if part in ("amazon", "imbalanced") else ["set", "level"]
    if part in ("amazon", "imbalanced"):
        print_methods(frame, part)
    else:
        for name, rows in frame.groupby("set", sort=False):
            print_methods(rows, name)
    print_groups(frame, by)
    print_groups(frame, by, "auroc_wrong", 3)
    if HAS_CLEANLAB:
        print_points(frame)
    print_claims(claims, OURS[:3])
    print()
    print_oddities(frame)
    {
        "amazon": judge_amazon,
        "imbalanced": judge_imbalanced,
        "votes": judge_votes,
        "sklearn": judge_sklearn,
    }[part](frame)


def colon_rows(path):
    """Rank the labels of the colon tissues by doubt."""
    with np.load(path) as content:
        X, y, suspect, names = np.log(content["X"].astype(float)), content["y"], content["suspect"], content["names"]
    X = (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)
    X = StandardScaler().fit_transform(X)
    y = y.astype(np.intp)
    symmetric = NoiseModel.binary(eps_pos=0.1, eps_neg=0.1)
    found = {
        "nothing known": doubt_of(LPClassifier(), X, y),
        "symmetric noise 0.1": doubt_of(LPClassifier(symmetric), X, y),
        "optimized targets, 0.1": doubt_of(LPClassifier(symmetric, targets="optimized"), X, y),
    }
    if HAS_CLEANLAB:
        draw = Draw(X, y, y, X, y, symmetric)
        found[CLEANLAB] = doubts(y, cross_validated((1.0, None), draw))[0]
    frames = [
        pd.DataFrame({"method": m, "sample": names, "suspect": suspect, "doubt": d, "rank": ranks(d)})
        for m, d in found.items()
    ]
    return pd.concat(frames)


def doubt_of(classifier, X, y):
    """Fit and return the probability that each label is wrong."""
    return 1 - classifier.fit(X, y).label_posterior_[np.arange(len(y)), y]


def ranks(doubt):
    """Rank 1 is the most doubtful."""
    return np.argsort(np.argsort(-doubt, kind="stable"), kind="stable") + 1


def report_colon(frame):
    """Print where the suspects rank."""
    for method, rows in frame.groupby("method", sort=False):
        places = rows[rows["suspect"]].sort_values("rank")
        n_found = int((places["rank"] <= FIRST).sum())
        text = ", ".join(f"{row.sample} {row.rank} ({row.doubt:.2f})" for row in places.itertuples(index=False))
        reached = f"{n_found}; rank (doubt): {text}"
        if method in ("nothing known", "symmetric noise 0.1"):
            verdict(n_found >= 8, f"{method}: at least 8 of 9 suspects among the first {FIRST}", reached)
        else:
            print(f"        {method}: {reached}")


def picture(frame, path):
    """Draw the accuracy of each method at each level."""
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    methods = [RATES, PRIORS, NOTHING, RIDGE, LOGISTIC, CLEANLAB, BEST_OF_LEVEL, ORACLE]
    levels = list(dict.fromkeys(frame["level"]))
    fig, axes = plt.subplots(1, len(levels), figsize=(11, 3.6), sharey=True, layout="constrained")
    for ax, level in zip(axes, levels, strict=True):
        for place, method in enumerate(methods):
            values = frame[(frame["method"] == method) & (frame["level"] == level)]["accuracy"]
            half = 1.96 * values.std() / np.sqrt(max(len(values), 1))
            colour = "C0" if method in OURS else "0.2" if method == ORACLE else "C1"
            ax.errorbar(values.mean(), place, xerr=half, fmt="o", color=colour, capsize=3)
        eps_pos, eps_neg = level.split("/")
        ax.set(title=f"ε₊ = {eps_pos}, ε₋ = {eps_neg}", xlabel="accuracy in %", yticks=range(len(methods)))
        ax.grid(axis="x", alpha=0.3)
    axes[0].set_yticklabels([m if m != BEST_OF_LEVEL else "cleanlab, best on the test rows" for m in methods])
    axes[0].invert_yaxis()
    fig.savefig(path, dpi=150)
    plt.close(fig)


# Draws of each part, how many splits, and how many in a quick run.
PARTS = {
    "amazon": (amazon_draws, 20, 2),
    "imbalanced": (imbalanced_draws, 20, 2),
    "votes": (vote_draws, 20, 2),
    "sklearn": (sklearn_draws, 30, 3),
}


def results(part, options):
    """Run a part and store it, or read what is stored."""
    table, bins = (options.out / f"accuracy_{part}{kind}.csv" for kind in ("", "_reliability"))
    if not options.stored:
        draws, full, short = PARTS[part]
        frame, claims = run(draws(options.splits or (short if options.quick else full), options.quick))
        frame.round(5).to_csv(table, index=False)
        claims.round(5).to_csv(bins, index=False)
    return with_best(pd.read_csv(table, dtype={"level": str})), pd.read_csv(bins)


def run_colon(options):
    """Rank suspects and store the ranks."""
    table = options.out / "accuracy_colon.csv"
    if not options.stored:
        path = Path(os.environ["UNFLIP_DATA"]) / "colon_alon" / "data.npz"
        if not path.is_file():
            print(f"  left out: no {path}")
            return
        colon_rows(path).round(5).to_csv(table, index=False)
    report_colon(pd.read_csv(table))


def parsed():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"any of {', '.join(PARTS)}, colon; all by default")
    parser.add_argument("--splits", type=int, help="draws of each set and level")
    parser.add_argument("--quick", action="store_true", help="fewer sets and draws: a minute or two")
    parser.add_argument("--stored", action="store_true", help="run nothing, print the tables of stored results")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for the CSV files")
    options = parser.parse_args()
    if unknown := set(options.parts) - {*PARTS, "colon"}:
        parser.error(f"unknown part {', '.join(sorted(unknown))}: use {', '.join(PARTS)}, colon")
    return options


def main():
    """Run the parts, print their tables and store them."""
    options = parsed()
    # Estimated rates always warn; other warnings of this library are stored with the results.
    warnings.simplefilter("ignore", UserWarning)
    warnings.simplefilter("ignore", FutureWarning)
    options.out.mkdir(parents=True, exist_ok=True)
    frames = []
    for part in options.parts or (*PARTS, "colon"):
        if part != "sklearn" and not options.stored and not os.environ.get("UNFLIP_DATA"):
            print(f"{part}: left out, set UNFLIP_DATA to the folder with the data sets")
            continue
        start = time.perf_counter()
        print(f"{part}: {PARTS[part][0].__doc__ if part in PARTS else 'suspects among the colon tissues.'}")
        if part == "colon":
            run_colon(options)
            continue
        frame, claims = results(part, options)
        frames.append(frame.assign(part=part))
        report(part, frame, claims)
        if part == "amazon":
            picture(frame, options.out / "accuracy.png")
        print(f"  ({time.perf_counter() - start:.0f} s)")
    if frames:
        everything = pd.concat(frames, ignore_index=True)
        print("over all parts:")
        judge_wrong_labels(everything)
        judge_expected(everything)


if __name__ == "__main__":
    main()
