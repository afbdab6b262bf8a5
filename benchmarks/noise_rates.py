"""How well flip rates are estimated: against the paper's method, against counting, and on real data against cleanlab.

``grid`` and ``unknown`` draw Gaussian mixtures, ``trusted`` and ``real`` need the data sets (UNFLIP_DATA); cleanlab
comes with the extra ``unflip[benchmark]``. Errors are against the rates that flips were drawn with, on real data (part
``real``) against the fractions that were flipped in fact.
"""

import argparse
import csv
import importlib.util
import itertools
import os
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import binom, binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import StandardScaler

from unflip import LPClassifier, NoiseModel
from unflip.datasets import AMAZON_DOMAINS, load_amazon_reviews, load_sentiment_votes, make_mixture
from unflip.estimation import CrossMoment, SecondMomentMatching, TrustedSubset

N, P, PI_NEG, EPS_NEG = 1000, 100, 1 / 3, 0.2
EPS_POS, MEAN_NORMS, REGS = np.arange(7) / 10, (1.0, 1.5, 2.0, 3.0), (0.1, 1.0, 10.0)
THREE = np.array([[0.8, 0.15, 0.05], [0.1, 0.6, 0.3], [0.2, 0.1, 0.7]])
THREE_PRIORS = np.array([0.2, 0.3, 0.5])
N_TRAIN, N_TRUSTED = 1600, 100
REAL_RATES = ((0.4, 0.3), (0.3, 0.1))
TEXTS = ("set", "method", "source")
HAS_CLEANLAB = importlib.util.find_spec("cleanlab") is not None
HAS_DATA = bool(os.environ.get("UNFLIP_DATA"))


def verdict(passed, target, reached):
    """Print whether a target was reached."""
    print(f"  {'PASS' if passed else 'MISS'}  {target}: {reached}")


def store(folder, part, rows):
    """Write rows (dictionaries) as CSV."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"noise_rates_{part}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)))
        writer.writeheader()
        writer.writerows({key: rounded(value) for key, value in row.items()} for row in rows)


def rounded(value):
    """Round numbers for a table."""
    return round(float(value), 5) if isinstance(value, float | np.floating) else value


def rms(errors):
    """Root mean square."""
    return float(np.sqrt(np.mean(np.square(errors))))


def covers(estimator, truth):
    """Whether the 95% interval of each entry of the transition holds the truth."""
    low, high = estimator.interval(0.95)
    return (low <= truth) & (truth <= high)


def flipped_shares(y, observed, n_classes=2):
    """Share of each observed label among the rows of each true class: counting with the true labels."""
    return np.array([np.bincount(observed[y == a], minlength=n_classes) / (y == a).sum() for a in range(n_classes)])


def tally(rows, key):
    """Coverage in percent, pooled over all rows with the same value of a column."""
    values = sorted({row[key] for row in rows})
    return ", ".join(f"{v:g}: {100 * np.mean([r['covered'] for r in rows if r[key] == v]):.1f}" for v in values)


def chance_outside(repeats, level):
    """Probability that exact intervals of this level seem to hold the truth in fewer than 90% or more than 99%."""
    seen = np.arange(repeats + 1)
    outside = (seen < 0.9 * repeats) | (seen > 0.99 * repeats)
    return float(binom.pmf(seen, repeats, level)[outside].sum())


def coverage_verdict(rows, repeats, keys):
    """Compare the coverage of every point with 90 to 99%, and with what exact intervals would show."""
    outside = [row for row in rows if not 0.9 <= row["covered"] <= 0.99]
    low, total = sum(row["covered"] < 0.9 for row in rows), len(rows)
    expected = sum(chance_outside(repeats, 0.975 if row.get("eps_pos") == 0 else 0.95) for row in rows)
    pooled = 100 * np.mean([row["covered"] for row in rows])
    verdict(
        not outside,
        "coverage of the 95% interval 90 to 99% at every point",
        f"{len(outside)} of {total} points outside ({low} below, {len(outside) - low} above), "
        f"{expected:.1f} expected of exact intervals; pooled {pooled:.1f}%",
    )
    for key in keys:
        print(f"        pooled by {key}: {tally(rows, key)}")


def draw_mixture(eps_pos, mean_norm, seed):
    """Rows, true and observed labels of the paper's setting."""
    rng = np.random.default_rng(seed)
    X, y = make_mixture(N, P, mean_norm=mean_norm, priors=[PI_NEG, 1 - PI_NEG], random_state=rng)
    noise = NoiseModel.binary(eps_pos=eps_pos, eps_neg=EPS_NEG)
    return X, y, noise.flip(y, random_state=rng), noise


def grid_point(eps_pos, mean_norm, reg, draws):
    """Compare three estimates of ε₊ over the draws, with ‖μ‖ and π known."""
    known = {"mean_norm": mean_norm, "pi_neg": PI_NEG, "reg": reg}
    errors, covered, no_root = [], [], 0
    for seed in draws:
        X, y, observed, noise = draw_mixture(eps_pos, mean_norm, seed)
        cross, matching = CrossMoment(**known).fit(X, observed), SecondMomentMatching(**known).fit(X, observed)
        counted = flipped_shares(y, observed)[1, 0]
        errors.append(np.array([cross.noise_.eps_pos, matching.noise_.eps_pos, counted]) - eps_pos)
        covered.append(covers(cross, noise.transition)[1, 0])
        no_root += not matching.root_inside_
    cross_rmse, matching_rmse, counting_rmse = (rms(column) for column in np.transpose(errors))
    bias = np.mean(errors, axis=0)
    return {
        "eps_pos": float(eps_pos),
        "mean_norm": mean_norm,
        "reg": reg,
        "draws": len(errors),
        "cross_rmse": cross_rmse,
        "matching_rmse": matching_rmse,
        "counting_rmse": counting_rmse,
        "cross_bias": bias[0],
        "matching_bias": bias[1],
        "covered": float(np.mean(covered)),
        "no_root": no_root,
    }


def run_grid(repeats, quick):
    """CrossMoment and SecondMomentMatching at known ‖μ‖ and π, beside counting with the true labels."""
    eps, norms = (EPS_POS[::3], MEAN_NORMS[::2]) if quick else (EPS_POS, MEAN_NORMS)
    rows = [
        grid_point(e, norm, reg, [(1, i, repeat) for repeat in range(repeats)])
        for i, (e, norm, reg) in enumerate(itertools.product(eps, norms, REGS))
    ]
    print_grid(rows, eps, norms)
    judge_grid(rows, repeats)
    return rows


def print_grid(rows, eps, norms):
    """Print one line per ε₊ and ‖μ‖, the penalties beside each other."""
    print(" " * 12 + "".join(f"|{f'γ = {reg:g}':^38s}" for reg in REGS))
    print("  ε₊   ‖μ‖  " + "|  cross  match  count    bias  cover   " * len(REGS))
    for e, norm in itertools.product(eps, norms):
        print(f" {e:.1f}   {norm:.1f}  ", end="")
        for row in (r for r in rows if r["eps_pos"] == e and r["mean_norm"] == norm):
            print(
                f"|  {row['cross_rmse']:.4f} {row['matching_rmse']:.4f} {row['counting_rmse']:.4f} "
                f"{row['cross_bias']:+.4f} {100 * row['covered']:4.0f}%  ",
                end="",
            )
        print()


def judge_grid(rows, repeats):
    """Hold the grid against its targets."""
    noisy = [row for row in rows if row["eps_pos"] > 0]
    ratios = np.array([row["cross_rmse"] / row["counting_rmse"] for row in noisy])
    verdict(
        bool((ratios <= 2).all()),
        "RMSE at most twice that of counting, ε₊ > 0",
        f"mean ratio {ratios.mean():.2f}, largest {ratios.max():.2f}, {int((ratios > 2).sum())} of {len(noisy)} above "
        f"({', '.join(place(row) for row, ratio in zip(noisy, ratios, strict=True) if ratio > 2) or 'none'})",
    )
    largest = max(row["cross_rmse"] for row in rows if row["eps_pos"] == 0)
    print(f"        ε₊ = 0: counting is exact there, no estimate is within twice zero; RMSE up to {largest:.4f}")
    against = np.array([row["cross_rmse"] / row["matching_rmse"] for row in rows])
    verdict(
        bool((against < 1).all()),
        "RMSE below SecondMomentMatching's at every point",
        f"largest ratio {against.max():.2f}",
    )
    verdict(bool(against.mean() <= 0.5), "at most half of it on average", f"mean ratio {against.mean():.2f}")
    judge_bias(rows, repeats)
    coverage_verdict(rows, repeats, ("eps_pos", "mean_norm", "reg"))
    print(
        f"        SecondMomentMatching found no root in {sum(row['no_root'] for row in rows)} of {len(rows) * repeats}"
    )


def judge_bias(rows, repeats):
    """Hold the bias of CrossMoment against its target, and say what the number of draws leaves open."""
    large = [row for row in rows if abs(row["cross_bias"]) >= 0.01]
    worst = max(rows, key=lambda row: abs(row["cross_bias"]))
    verdict(
        not large,
        "|bias| < 0.01",
        f"largest {worst['cross_bias']:+.4f} at {place(worst)}, standard error "
        f"{worst['cross_rmse'] / repeats**0.5:.4f}; {len(large)} points at 0.01 or more "
        f"({', '.join(place(row) for row in large) or 'none'})",
    )


def place(row):
    """Name a point of the grid."""
    return f"ε₊={row['eps_pos']:g} ‖μ‖={row['mean_norm']:g}" + (f" γ={row['reg']:g}" if "reg" in row else "")


def unknown_point(eps_pos, mean_norm, draws):
    """CrossMoment with nothing known."""
    errors, covered = [], []
    for seed in draws:
        X, y, observed, noise = draw_mixture(eps_pos, mean_norm, seed)
        found = CrossMoment().fit(X, observed)
        counted = flipped_shares(y, observed)[1, 0]
        estimate = [found.noise_.eps_pos, found.noise_.eps_neg, found.mean_norm_, found.noise_.priors[0], counted]
        errors.append(np.array(estimate) - [eps_pos, EPS_NEG, mean_norm, PI_NEG, eps_pos])
        covered.append(covers(found, noise.transition)[[1, 0], [0, 1]])
    names = ("eps_pos", "eps_neg", "mean_norm", "pi_neg", "counting")
    spread = {f"{name}_rmse": rms(column) for name, column in zip(names, np.transpose(errors), strict=True)}
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
    """Try CrossMoment on three classes, orthogonal means of length 3; also return the coverage of each entry."""
    means = np.zeros((3, 150))
    means[np.arange(3), np.arange(3)] = 3.0
    errors, counted, priors, covered = [], [], [], []
    for repeat in range(repeats):
        rng = np.random.default_rng((3, repeat))
        X, y = make_mixture(1500, 150, means=means, priors=THREE_PRIORS, random_state=rng)
        observed = NoiseModel(THREE).flip(y, random_state=rng)
        found = CrossMoment().fit(X, observed)
        errors.append(np.abs(found.noise_.transition - THREE))
        counted.append(np.abs(flipped_shares(y, observed, 3) - THREE))
        priors.append(np.abs(found.noise_.priors - THREE_PRIORS))
        covered.append(covers(found, THREE))
    found = {
        "classes": 3,
        "mae": float(np.mean(errors)),
        "largest_mae": float(np.mean(errors, axis=0).max()),
        "counting_mae": float(np.mean(counted)),
        "priors_mae": float(np.mean(priors)),
        "covered": float(np.mean(covered)),
    }
    return found, 100 * np.mean(covered, axis=0)


def run_unknown(repeats, quick):
    """CrossMoment with nothing known, for two classes and for three."""
    eps, norms = (EPS_POS[::3], MEAN_NORMS[1::2]) if quick else (EPS_POS, MEAN_NORMS[1:])
    rows = [
        unknown_point(e, norm, [(2, i, repeat) for repeat in range(repeats)])
        for i, (e, norm) in enumerate(itertools.product(eps, norms))
    ]
    print("  ε₊   ‖μ‖   RMSE of ε₊  counting  ε₋       ‖μ‖      π₁       bias ε₊  cover ε₊  ε₋")
    for row in rows:
        spread = [row[f"{name}_rmse"] for name in ("eps_pos", "counting", "eps_neg", "mean_norm", "pi_neg")]
        print(
            f" {row['eps_pos']:.1f}   {row['mean_norm']:.1f}         " + "   ".join(f"{error:.4f}" for error in spread),
            f"  {row['eps_pos_bias']:+.4f}   {100 * row['covered']:3.0f}%     {100 * row['eps_neg_covered']:3.0f}%",
        )
    worst = max(rows, key=lambda row: row["eps_pos_rmse"])
    verdict(worst["eps_pos_rmse"] <= 0.05, "RMSE of ε₊ at most 0.05", f"{worst['eps_pos_rmse']:.4f} at {place(worst)}")
    coverage_verdict(rows, repeats, ("eps_pos", "mean_norm"))
    three, entries = three_classes(repeats)
    report_three(three, entries)
    return [*rows, three]


def report_three(result, entries):
    """Print what was found for three classes."""
    print(
        f"  three classes: MAE of a transition entry {result['mae']:.4f} (counting with true labels "
        f"{result['counting_mae']:.4f}), of the worst entry {result['largest_mae']:.4f}, of a class proportion "
        f"{result['priors_mae']:.4f}"
    )
    inside = bool(((entries >= 90) & (entries <= 99)).all())
    verdict(inside, "coverage of its nine entries 90 to 99%", f"mean {entries.mean():.1f}%, {entries.round().tolist()}")


def split(X, y, rng):
    """Rows and labels of a random training and test part, standardised by the training rows."""
    order = rng.permutation(len(X))
    train, test = order[:N_TRAIN], order[N_TRAIN:]
    scaler = StandardScaler().fit(X[train])
    return scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test]


def trust(y, rng):
    """Return the labels of some random rows, NaN for the others."""
    y_trusted = np.full(len(y), np.nan)
    chosen = rng.choice(len(y), N_TRUSTED, replace=False)
    y_trusted[chosen] = y[chosen]
    return y_trusted


def count_trusted(y_trusted, observed):
    """Rates (ε₊, ε₋) by counting in the trusted rows, and Wilson's intervals, as rows (estimate, low, high)."""
    found = []
    for a in (1, 0):
        wrong = observed[y_trusted == a] != a
        ends = binomtest(int(wrong.sum()), len(wrong)).proportion_ci(method="wilson")
        found.append((wrong.mean(), ends.low, ends.high))
    return np.array(found)


def ask_trusted(X, y_trusted, observed):
    """Return the same from `TrustedSubset`."""
    estimator = TrustedSubset(y_trusted).fit(X, observed)
    low, high = estimator.interval(0.95)
    rates = estimator.noise_.transition
    return np.array([(table[1, 0], table[0, 1]) for table in (rates, low, high)]).T


def run_trusted(repeats, quick):
    """TrustedSubset with 100 random trusted rows of each Amazon set, beside counting in the same rows."""
    eps_pos, eps_neg = REAL_RATES[0]
    rows = []
    for d, domain in enumerate(AMAZON_DOMAINS[:1] if quick else AMAZON_DOMAINS):
        X, y = load_amazon_reviews(domain)
        found = []
        for repeat in range(repeats):
            rng = np.random.default_rng((4, d, repeat))
            X_train, y_train, _, _ = split(X, y, rng)
            observed = NoiseModel.binary(eps_pos=eps_pos, eps_neg=eps_neg).flip(y_train, random_state=rng)
            y_trusted = trust(y_train, rng)
            found.append([ask_trusted(X_train, y_trusted, observed), count_trusted(y_trusted, observed)])
        rows += trusted_rows(domain, np.array(found), np.array([eps_pos, eps_neg]))
    print_trusted(rows)
    ours = [row for row in rows if row["method"] == "TrustedSubset"]
    worst = max(ours, key=lambda row: row["mae"])
    verdict(worst["mae"] <= 0.06, "MAE of each rate at most 0.06", f"largest {worst['mae']:.4f}, {worst['domain']}")
    coverage_verdict(ours, repeats, ())
    return rows


def trusted_rows(domain, found, truth):
    """Summarise results of shape (draws, method, rate, (estimate, low, high))."""
    estimate, low, high = np.moveaxis(found, -1, 0)
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
            f"  {row['domain']:8s} {row['rate']:8s} {row['method']:13s} {row['mae']:.4f}  {row['bias']:+.4f}  "
            f"{100 * row['covered']:5.1f}%  {row['width']:.3f}"
        )


def cleanlab_noise(X, observed):
    """Return the transition and priors that cleanlab finds from cross-validated probabilities of a logistic model."""
    from cleanlab.count import compute_confident_joint, estimate_latent

    logistic = LogisticRegression(max_iter=10_000)
    probabilities = cross_val_predict(logistic, X, observed, cv=5, method="predict_proba")
    priors, given_true, _ = estimate_latent(compute_confident_joint(observed, probabilities), observed)
    return {"noise": given_true.T, "priors": priors}


def methods(X, y, observed, truth, rng):
    """Return options of the classifiers to compare, by name; y are the true labels."""
    named = {
        "none": {"noise": None},
        "default": {},
        "priors": {"priors": np.bincount(y) / len(y)},
        "trusted": {"noise": TrustedSubset(trust(y, rng))},
    }
    if HAS_CLEANLAB:
        named["cleanlab"] = cleanlab_noise(X, observed)
    return named | {"true rates": {"noise": truth}}


def compare(name, X, y, observed, X_test, y_test, rng):
    """Fit every classifier to one draw; one row for each."""
    truth = flipped_shares(y, observed)
    rows = []
    for method, options in methods(X, y, observed, truth, rng).items():
        transition, (covered, width), accuracy, source = outcome(options, truth, X, observed, X_test, y_test)
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


def outcome(options, truth, X, observed, X_test, y_test):
    """Transition, intervals, accuracy in percent and source of the rates; NaN where rates are refused (sum over 1)."""
    classifier = LPClassifier(**options)
    try:
        classifier.fit(X, observed)
    except ValueError:
        return np.asarray(options.get("noise", np.full((2, 2), np.nan))), (np.nan, np.nan), np.nan, ""
    estimator = classifier.noise_estimator_
    accuracy = 100 * classifier.score(X_test, y_test)
    return classifier.noise_.transition, intervals(estimator, truth), accuracy, getattr(estimator, "source_", "")


def intervals(estimator, truth):
    """Share of the two rates that their 95% intervals hold, and mean width of these."""
    if estimator is None:
        return np.nan, np.nan
    low, high = estimator.interval(0.95)
    flips = ~np.eye(2, dtype=bool)
    return covers(estimator, truth)[flips].mean(), (high - low)[flips].mean()


def amazon_draws(repeats, quick):
    """Compare on every Amazon set at two pairs of rates; a new split and new flips in every draw."""
    rows = []
    for d, domain in enumerate(AMAZON_DOMAINS[:1] if quick else AMAZON_DOMAINS):
        X, y = load_amazon_reviews(domain)
        for r, (eps_pos, eps_neg) in enumerate(REAL_RATES):
            for repeat in range(repeats):
                rng = np.random.default_rng((5, d, r, repeat))
                X_train, y_train, X_test, y_test = split(X, y, rng)
                observed = NoiseModel.binary(eps_pos=eps_pos, eps_neg=eps_neg).flip(y_train, random_state=rng)
                name = f"{domain} ({eps_pos:g}, {eps_neg:g})"
                rows += compare(name, X_train, y_train, observed, X_test, y_test, rng)
    return rows


def sentiment_draws(repeats):
    """Compare on votes of crowd workers; a random 80% of the training sentences in every draw."""
    crowd = load_sentiment_votes()
    rows = []
    for kind in ("random vote", "worst vote"):
        for repeat in range(repeats):
            rng = np.random.default_rng((6, repeat))
            votes = crowd.random_votes(rng) if kind == "random vote" else crowd.worst_votes()
            kept = rng.permutation(len(votes))[: int(0.8 * len(votes))]
            scaler = StandardScaler().fit(crowd.X_train[kept])
            X, X_test = scaler.transform(crowd.X_train[kept]), scaler.transform(crowd.X_test)
            rows += compare(f"votes, {kind}", X, crowd.y_train[kept], votes[kept], X_test, crowd.y_test, rng)
    return rows


def run_real(repeats, quick):
    """Rates and accuracy on real data, by what is known."""
    if not HAS_CLEANLAB:
        print('  cleanlab is not installed (pip install "unflip[benchmark]"): left out')
    draws = amazon_draws(repeats, quick) + sentiment_draws(repeats)
    sets = list(dict.fromkeys(row["set"] for row in draws))
    rows = [summary for name in sets for summary in summarise([row for row in draws if row["set"] == name])]
    print_real(rows)
    judge_real(rows)
    return rows


def summarise(draws):
    """Average the draws of one set, method by method; accuracies over those where the rates could be used."""
    plain = np.array([row["accuracy"] for row in draws if row["method"] == "none"])
    summaries = []
    for method in dict.fromkeys(row["method"] for row in draws):
        mine = [row for row in draws if row["method"] == method]
        errors = np.array([[row[e] - row[f"true_{e}"] for e in ("eps_pos", "eps_neg")] for row in mine])
        columns = {key: np.array([row[key] for row in mine]) for key in mine[0] if key not in TEXTS}
        used = ~np.isnan(columns["accuracy"])
        gains = (columns["accuracy"] - plain)[used]
        summaries.append(
            {
                "set": mine[0]["set"],
                "method": method,
                "draws": len(mine),
                "refused": int((~used).sum()),
                **{key: mean(column[used] if key == "accuracy" else column) for key, column in columns.items()},
                "mae": float(np.abs(errors).mean()),
                "gain": mean(gains),
                "gain_error": float(gains.std(ddof=1) / np.sqrt(len(gains))) if len(gains) > 1 else np.nan,
                "sources": "/".join(sorted({row["source"] for row in mine} - {""})),
            }
        )
    return summaries


def mean(values):
    """Mean, NaN of nothing."""
    return float(np.mean(values)) if len(values) else np.nan


def print_real(rows):
    """Print a block of methods for each set."""
    print("  method       ε₊    ε₋    MAE of rates  cover (width)   accuracy   beyond noise=None")
    for name in dict.fromkeys(row["set"] for row in rows):
        block = [row for row in rows if row["set"] == name]
        print(f"  {name}: flipped in fact {block[0]['true_eps_pos']:.3f}, {block[0]['true_eps_neg']:.3f}")
        for row in block:
            cover = "" if np.isnan(row["covered"]) else f"{100 * row['covered']:5.1f}% ({row['width']:.2f})"
            print(
                f"    {row['method']:10s} {row['eps_pos']:.3f} {row['eps_neg']:.3f} {row['mae']:.3f}         "
                f"{cover:14s}  {row['accuracy']:5.2f}      {row['gain']:+5.2f} ± {row['gain_error']:.2f}  "
                + row["sources"]
                + (f"unusable in {row['refused']} of {row['draws']} draws" if row["refused"] else "")
            )


def judge_real(rows):
    """Hold the default against its target, and name what fails where."""
    losses = {row["set"]: row["gain"] for row in rows if row["method"] == "default"}
    worst = min(losses, key=losses.get)
    verdict(
        losses[worst] >= -1, "default at most 1 point below noise=None on every set", f"{losses[worst]:+.2f} on {worst}"
    )
    for method in dict.fromkeys(row["method"] for row in rows):
        mine = [row for row in rows if row["method"] == method]
        print(
            f"  {method:10s} mean over sets: MAE of rates {np.mean([row['mae'] for row in mine]):.3f}, "
            f"gain {np.nanmean([row['gain'] for row in mine]):+.2f}; {failures(mine) or 'no failure'}"
        )


def failures(rows):
    """Say in words where a method fails: rates off by more than 0.1, intervals too narrow, accuracy lost."""
    kinds = {
        "rates off by more than 0.1": [row["set"] for row in rows if row["mae"] > 0.1],
        "coverage below 90%": [row["set"] for row in rows if row["covered"] < 0.9],
        "rates that sum to over 1 in some draws": [row["set"] for row in rows if row["refused"]],
        "accuracy below noise=None by over a point": [row["set"] for row in rows if row["gain"] < -1],
    }
    return "; ".join(f"{kind}: {', '.join(sets)}" for kind, sets in kinds.items() if sets)


# What each part runs, how often, and how often in a quick run.
PARTS = {
    "grid": (run_grid, 100, 20),
    "unknown": (run_unknown, 100, 20),
    "trusted": (run_trusted, 200, 50),
    "real": (run_real, 50, 5),
}


def main():
    """Run the parts, print their tables and store them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"any of {', '.join(PARTS)}; all by default")
    parser.add_argument("--repeats", type=int, help="draws of each point or set")
    parser.add_argument("--quick", action="store_true", help="fewer points and draws: a minute or two")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for the CSV files")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown part {', '.join(sorted(unknown))}: use {', '.join(PARTS)}")
    # What estimators assume, and where there is no root, is counted here instead.
    warnings.simplefilter("ignore", UserWarning)
    for part in options.parts or PARTS:
        run, full, short = PARTS[part]
        repeats = options.repeats or (short if options.quick else full)
        if part in ("trusted", "real") and not HAS_DATA:
            print(f"{part}: left out, set UNFLIP_DATA to the folder with the data sets")
            continue
        start = time.perf_counter()
        print(f"{part}: {run.__doc__} {repeats} draws of each.")
        store(options.out, part, run(repeats, options.quick))
        print(f"  ({time.perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
