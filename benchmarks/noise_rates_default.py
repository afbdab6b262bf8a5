"""Part ``default``: noise rates, expected accuracy and suspects with default settings."""

import time
import warnings
from functools import partial

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import RidgeClassifierCV
from sklearn.preprocessing import StandardScaler

from draws import Draw, flipped_shares, realised, review_draws, split_rows
from noise_rates_real import cleanlab_noise
from page_tables import short, show
from peers import ALPHAS, HAS_CLEANLAB
from unflip import LPClassifier, NoiseModel, audit
from unflip.datasets import AMAZON_DOMAINS, load_scene_votes, load_sentiment_votes
from unflip.estimation import AssumedNoiseWarning, Automatic
from verdicts import verdict

LEVELS = ((0.4, 0.3), (0.4, 0.1), (0.3, 0.1), (0.2, 0.1))
CANCER_LEVELS = ((0.4, 0.2), (0.3, 0.3), (0.2, 0.1), (0.1, 0.1))
# Classes, rows per class, and distance of the class means from the origin.
MIXTURES = (
    (2, 100, 1.5),
    (2, 100, 2.5),
    (3, 100, 2.5),
    (10, 30, 4.0),
    (10, 100, 3.5),
    (26, 30, 5.0),
    (26, 60, 5.0),
)
FALSE_DISCOVERY_RATE = 0.1


def run_default(repeats, quick, write=False):
    """Default settings against the true noise rates, cleanlab and the rough start."""
    sets = all_sets(quick)
    rows = []
    print(
        "  set                  source            error of T: default  start  cleanlab   wrong: "
        "true  said   accuracy  expected (covered)   FDR: default  rates known"
    )
    for name, draw_of in sets.items():
        generators = [np.random.default_rng((15, number)) for number in range(repeats)]
        draws = [measured(draw_of(rng)) for rng in generators]
        rows.append(summary(name, draws))
        print_row(rows[-1])
    judge(rows)
    if HAS_CLEANLAB and not quick:
        show("noise_rates.md", "python benchmarks/noise_rates.py default", page_table(rows), write)
    return rows


def all_sets(quick):
    """Return functions that draw each set from a random generator, by name."""
    sets = {f"digits {eps:g}": partial(digits, eps) for eps in (0.0, 0.1, 0.3, 0.5)}
    sets |= {f"iris {eps:g}": partial(classic, load_iris, eps) for eps in (0.0, 0.3)}
    sets |= {f"wine {eps:g}": partial(classic, load_wine, eps) for eps in (0.0, 0.3)}
    for k, per_class, norm in MIXTURES[1::3] if quick else MIXTURES:
        for kind in ("isotropic", "correlated"):
            name = f"{kind} k={k}, {per_class}, {norm:g}"
            sets[name] = partial(mixture, k, per_class, norm, kind)
    levels = ((0.0, 0.0), *CANCER_LEVELS[:: 4 if quick else 1])
    sets |= {f"cancer {a:g}/{b:g}": partial(cancer, a, b) for a, b in levels}
    for domain in AMAZON_DOMAINS[:: 4 if quick else 1]:
        for a, b in LEVELS[:: 2 if quick else 1]:
            sets[f"{domain} {a:g}/{b:g}"] = partial(reviews, domain, a, b)
    return sets | {"scenes, one vote": scenes, "sentences, one vote": sentences}


def uniform(k, eps):
    """Return noise that moves a label to any other class alike."""
    return NoiseModel((1 - eps) * np.eye(k) + eps / (k - 1) * (1 - np.eye(k)))


def digits(eps, rng):
    """Digits, half of them for training."""
    data = load_digits()
    half = len(data.target) // 2
    return split_rows(data.data / 16, data.target, half, uniform(10, eps), rng, standardise=False)


def classic(load, eps, rng):
    """Return iris or wine, half of the rows for training."""
    data = load()
    return split_rows(data.data, data.target, len(data.target) // 2, uniform(3, eps), rng)


def cancer(eps_pos, eps_neg, rng):
    """Breast cancer, half of the rows for training."""
    data = load_breast_cancer()
    noise = NoiseModel.binary(eps_pos=eps_pos, eps_neg=eps_neg)
    return split_rows(data.data, data.target, len(data.target) // 2, noise, rng)


def mixture(k, per_class, norm, kind, rng):
    """Gaussian classes with half as many features as rows; 30% of the labels are wrong."""
    n = k * per_class
    p = n // 2
    means = rng.normal(size=(k, p))
    means *= norm / np.linalg.norm(means, axis=1, keepdims=True)
    scales = np.ones(p) if kind == "isotropic" else 1 / np.sqrt(1 + np.arange(p) / 20)

    def rows_of(y):
        return (rng.normal(size=(len(y), p)) + means[y]) * scales

    y = rng.integers(k, size=n)
    y_test = rng.integers(k, size=2000)
    noise = uniform(k, 0.3)
    return Draw(rows_of(y), y, noise.flip(y, rng), rows_of(y_test), y_test, noise)


def reviews(domain, eps_pos, eps_neg, rng):
    """Amazon reviews, four fifths for training."""
    seed = int(rng.integers(2**31))
    ((_, _, draw, _),) = review_draws([domain], [(eps_pos, eps_neg)], 1, seed)
    return draw


def scenes(rng):
    """Photographs with one random vote of an annotator."""
    crowd = load_scene_votes()
    votes = crowd.random_votes(rng)
    noise = realised(crowd.y_train, votes)
    return Draw(
        np.sqrt(crowd.X_train), crowd.y_train, votes, np.sqrt(crowd.X_test), crowd.y_test, noise
    )


def sentences(rng):
    """Sentences of film reviews with one random vote of an annotator."""
    crowd = load_sentiment_votes()
    votes = crowd.random_votes(rng)
    scaler = StandardScaler().fit(crowd.X_train)
    noise = realised(crowd.y_train, votes)
    return Draw(
        scaler.transform(crowd.X_train),
        crowd.y_train,
        votes,
        scaler.transform(crowd.X_test),
        crowd.y_test,
        noise,
    )


def measured(draw):
    """Fit and audit one draw; return its figures."""
    truth = flipped_shares(draw.y, draw.observed, int(draw.y.max()) + 1)
    known, known_seconds = fitted(draw, draw.noise)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        default, seconds = fitted(draw, "estimate")
    warned = any(issubclass(w.category, AssumedNoiseWarning) for w in caught)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = Automatic().fit(draw.X, draw.observed)
        theirs = {}
        if HAS_CLEANLAB:
            cleanlab = cleanlab_noise(draw.X, draw.observed)["noise"]
            theirs["cleanlab_error"] = transition_error(cleanlab, truth)
    accuracy = default.score(draw.X_test, draw.y_test)
    sampling = np.sqrt(accuracy * (1 - accuracy) / len(draw.y_test))
    error = np.hypot(default.expected_accuracy_std_, sampling)
    rates = 1 - np.diag(default.noise_.transition)
    gaps = np.abs(rates - (1 - np.diag(truth)))
    ridge = RidgeClassifierCV(ALPHAS).fit(draw.X, draw.y)
    return theirs | {
        "source": default.noise_estimator_.source_,
        "rows": len(draw.y),
        "error": transition_error(default.noise_.transition, truth),
        "start_error": transition_error(start.noise_.transition, truth),
        "rates_covered": np.mean(gaps <= 1.96 * np.diag(default.noise_std_) + 1e-9),
        "wrong": np.mean(draw.y != draw.observed),
        "said_wrong": 1 - np.mean(default.label_posterior_[np.arange(len(draw.y)), draw.observed]),
        "accuracy": 100 * accuracy,
        "accuracy_known": 100 * known.score(draw.X_test, draw.y_test),
        "accuracy_clean_ridge": 100 * ridge.score(draw.X_test, draw.y_test),
        "expected": 100 * default.expected_accuracy_,
        "covered": abs(default.expected_accuracy_ - accuracy) <= 1.96 * error,
        "expected_known": 100 * known.expected_accuracy_,
        "seconds": seconds,
        "known_seconds": known_seconds,
        "warned": warned,
        **discoveries("", draw, "estimate"),
        **discoveries("_known", draw, draw.noise),
    }


def fitted(draw, noise):
    """Return the classifier, and the processor seconds of its fit."""
    start = time.process_time()
    classifier = LPClassifier(noise).fit(draw.X, draw.observed)
    return classifier, time.process_time() - start


def discoveries(suffix, draw, noise):
    """Return the number of suspects of an audit, and how many of them have a right label."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = audit(
            draw.X, draw.observed, noise=noise, false_discovery_rate=FALSE_DISCOVERY_RATE
        )
    rows = report.suspects.row[: report.n_suspects]
    right = int(np.sum(draw.y[rows] == draw.observed[rows]))
    return {f"suspects{suffix}": len(rows), f"false{suffix}": right}


def transition_error(transition, truth):
    """Return the mean over true classes of the summed error of the wrong labels' shares."""
    error = np.abs(transition - truth)
    np.fill_diagonal(error, 0.0)
    return float(error.sum(axis=1).mean())


def summary(name, draws):
    """Average the figures of the draws of one set."""
    row = {"set": name, "draws": len(draws), "source": draws[0]["source"]}
    row |= {
        key: float(np.mean([draw[key] for draw in draws])) for key in draws[0] if key != "source"
    }
    for suffix in ("", "_known"):
        shares = [draw[f"false{suffix}"] / max(draw[f"suspects{suffix}"], 1) for draw in draws]
        row[f"false_discovery{suffix}"] = float(np.mean(shares))
    row["seconds"] = float(np.median([draw["seconds"] for draw in draws]))
    row["known_seconds"] = float(np.median([draw["known_seconds"] for draw in draws]))
    return row


def print_row(row):
    """Print the averages of one set."""
    cleanlab = f"{row['cleanlab_error']:.3f}" if "cleanlab_error" in row else "     "
    print(
        f"  {row['set']:20s} {row['source']:17s}            {row['error']:.3f}    "
        f"{row['start_error']:.3f}  {cleanlab}            {row['wrong']:.3f} "
        f"{row['said_wrong']:.3f}   {row['accuracy']:5.1f}     {row['expected']:5.1f} "
        f"({row['covered']:.0%})            {row['false_discovery']:.2f}      "
        f"   {row['false_discovery_known']:.2f}",
        flush=True,
    )


def page_table(rows):
    """Return the table of the page on noise rates; pairs of rates and reviews are averaged."""
    groups = {}
    for row in rows:
        domain = row["set"].split()[0]
        name = f"reviews {row['set'].split()[1]}" if domain in AMAZON_DOMAINS else row["set"]
        groups.setdefault(name, []).append(row)
    columns = {
        "error": ("error", 3),
        "start": ("start_error", 3),
        "cleanlab": ("cleanlab_error", 3),
        "wrong labels": ("wrong", 3),
        "estimated": ("said_wrong", 3),
        "accuracy": ("accuracy", 1),
        "rates known": ("accuracy_known", 1),
        "expected": ("expected", 1),
    }
    lines = [["data", *columns]]
    for name, group in groups.items():
        means = {key: np.mean([row[key] for row in group]) for key, _ in columns.values()}
        cells = [
            short(means[key]) if digits == 3 else f"{means[key]:.1f}"
            for key, digits in columns.values()
        ]
        lines.append([name, *cells])
    return lines


def judge(rows):
    """Check the targets; sets labelled by annotators have noise that is not class-conditional."""
    flipped = [row for row in rows if "vote" not in row["set"]]
    several = [row for row in flipped if not is_binary(row) and row["source"] != "mixture"]
    ratio = np.mean([row["error"] for row in several])
    ratio /= np.mean([row["start_error"] for row in several])
    verdict(ratio <= 0.5, "several classes: error of T at most half of the start's", f"{ratio:.2f}")
    if HAS_CLEANLAB:
        all_at_most("error of T at most cleanlab's", flipped, "error", limit_key="cleanlab_error")
    gaps = {
        "|said wrong − wrong| at most 0.03": ("said_wrong", "wrong", 0.03),
        "|expected − accuracy| at most 3 points": ("expected", "accuracy", 3.0),
    }
    for target, (first, second, limit) in gaps.items():
        measured_gaps = {row["set"]: abs(row[first] - row[second]) for row in flipped}
        report_worst(target, measured_gaps, limit)
    covered = np.mean([row["covered"] for row in flipped])
    verdict(covered >= 0.9, "95% intervals of the accuracy cover at least 90%", f"{covered:.0%}")
    covered = np.mean([row["rates_covered"] for row in flipped])
    verdict(covered >= 0.9, "95% intervals of the rates cover at least 90%", f"{covered:.0%}")
    real = [row for row in flipped if "k=" not in row["set"] and row["wrong"] > 0]
    for suffix, kind in (("", "nothing known"), ("_known", "rates known")):
        shares = {row["set"]: row[f"false_discovery{suffix}"] for row in real}
        report_worst(f"false discovery rate at most 0.13, {kind}", shares, 0.13)
    large = {row["set"]: row for row in flipped if row["rows"] >= 1000}
    ratios = {name: row["seconds"] / row["known_seconds"] for name, row in large.items()}
    report_worst("time at most 1.6 times that with known rates, from 1000 rows on", ratios, 1.6)
    clean = [row for row in flipped if row["wrong"] == 0]
    suspects = sum(row["suspects"] for row in clean) / len(clean)
    print(f"  no noise: {suspects:.1f} suspects on average, all of them false")
    report_worst("no noise: at most 1% said wrong", by_set(clean, "said_wrong"), 0.01)
    report_worst("no noise: no warning", by_set(clean, "warned"), 0.0)
    loss = {row["set"]: row["accuracy_clean_ridge"] - row["accuracy"] for row in clean}
    report_worst("no noise: at most 0.3 points below ridge", loss, 0.3)


def is_binary(row):
    """Return whether a set has two classes."""
    return row["set"].split()[0] in (*AMAZON_DOMAINS, "cancer") or "k=2," in row["set"]


def by_set(rows, key):
    """Return one figure of each set."""
    return {row["set"]: row[key] for row in rows}


def all_at_most(target, rows, key, limit_key):
    """Check that a figure is at most another on every set."""
    above = [row["set"] for row in rows if row[key] > row[limit_key] + 0.005]
    reached = f"{len(rows) - len(above)} of {len(rows)} sets"
    verdict(not above, target, reached + (f"; not {', '.join(above)}" if above else ""))


def report_worst(target, values, limit):
    """Check that no value is above a limit; name the sets above it and the largest value."""
    above = [name for name, value in values.items() if value > limit]
    worst = max(values, key=values.get)
    mean = np.mean(list(values.values()))
    reached = f"mean {mean:.3f}, largest {values[worst]:.3f} on {worst}"
    verdict(not above, target, reached + (f"; above on {len(above)} sets" if above else ""))
