"""`unflip audit` on files: wrong labels among the first suspects, time and memory.

The whole program is run and its ``--json`` output is read. Part ``decisions`` measures the gain of
decisions on suspects. The reviews need their data set, ``blitzer_sentiment`` in the folder of
UNFLIP_DATA. By default 30% of the positive and 10% of the negative labels are flipped, with fixed
seeds.
"""

import argparse
import csv
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from unflip import LPClassifier, NoiseModel
from unflip.datasets import make_mixture
from unflip.estimation import AssumedNoiseWarning
from unflip.estimation.given_rates import GivenRates
from unflip.features.word_features import fit_words

NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)
NAMES = np.array(["negative", "positive"])
RATES = ["--eps", "negative=0.1,positive=0.3"]
LIMIT_SECONDS = 60  # longest time of an audit
LIMIT_SHARE = 0.9  # smallest share of wrong labels among the first N_FIRST suspects
N_FIRST = 200
WORDS_PER_PIECE = 22
N_TRAINING = 1400
N_DECIDED = 300


def reviews():
    """Return all reviews, or None without the data."""
    path = Path(os.environ.get("UNFLIP_DATA", "")) / "blitzer_sentiment" / "reviews.json.gz"
    if not path.is_file():
        print(
            "No file blitzer_sentiment/reviews.json.gz in the folder of UNFLIP_DATA: parts that "
            "need it are skipped."
        )
        return None
    with gzip.open(path) as file:
        return json.load(file)


def write(path, header, columns):
    """Write a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(zip(*columns, strict=True))


def audited(path, *options):
    """Run the program; return its JSON output, wall-clock seconds and CPU seconds."""
    command = [
        sys.executable,
        "-m",
        "unflip",
        "audit",
        str(path),
        "--label",
        "label",
        "--json",
        *options,
    ]
    begin = time.perf_counter()
    before = os.times()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - begin
    after = os.times()
    used = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout), seconds, used


def shares(answer, wrong):
    """Return the share of wrong labels among the first 200 rows, and among the suspects."""
    rows = np.array([line["row"] for line in answer["suspects"]])
    return wrong[rows[:N_FIRST]].mean(), wrong[rows[: answer["n_suspects"]]].mean()


def part_reviews(folder, n_seeds, domain):
    """Audit the reviews of one kind of product as texts, noise rates estimated and given."""
    all_reviews = reviews()
    if all_reviews is None:
        return
    texts, true = of_domain(all_reviews, domain)
    print(
        f"\n{domain}: {len(texts)} reviews; share of wrong labels among the first {N_FIRST}, and "
        "among the suspects"
    )
    print(
        f"{'rates':<10}{'seed':>5}{'first 200':>11}{'suspects':>10}{'number':>8}"
        f"{'seconds':>9}{'CPU':>11}"
    )
    for mode, options in {"estimated": [], "given": RATES}.items():
        lines = []
        for seed in range(n_seeds):
            observed = NOISE.flip(true, random_state=seed)
            path = folder / "reviews.csv"
            write(path, ["text", "label"], [texts, NAMES[observed]])
            answer, seconds, used = audited(path, "--text", "text", *options)
            lines.append((*shares(answer, observed != true), answer["n_suspects"], seconds, used))
            print(line(mode, seed, lines[-1]), flush=True)
        least = min(line[0] for line in lines)
        longest = max(line[3] for line in lines)
        means = np.mean(lines, axis=0)
        verdict = "PASS" if means[0] >= LIMIT_SHARE and longest < LIMIT_SECONDS else "MISS"
        print(line(mode, "mean", means))
        print(f"  {verdict}: lowest {least:.3f}, longest {longest:.1f} s")


def of_domain(all_reviews, domain):
    """Return the texts and the labels of one domain."""
    chosen = [review for review in all_reviews if review["domain"] == domain]
    texts = [f"{review['title']}\n{review['text']}" for review in chosen]
    return texts, np.array([review["label"] for review in chosen])


def line(mode, seed, figures):
    """Format one line of the table."""
    first, suspects, number, seconds, used = figures
    return (
        f"{mode:<10}{seed:>5}{first:>11.3f}{suspects:>10.3f}{number:>8.0f}"
        f"{seconds:>9.1f}{used:>11.1f}"
    )


def part_decisions(n_splits):
    """Gain of decisions on suspects: expected, measured, and with a fit to corrected labels."""
    all_reviews = reviews()
    if all_reviews is None:
        return
    print(
        f"\n{N_DECIDED} suspects checked, {N_TRAINING} training rows; percentage points, means of "
        f"{n_splits} splits"
    )
    for domain, noise in {
        "kitchen": NOISE,
        "books": NoiseModel.binary(eps_pos=0.4, eps_neg=0.3),
    }.items():
        texts, true = of_domain(all_reviews, domain)
        _, X = fit_words(texts, "column 'text'")
        for mode, rates in {"estimated": "estimate", "given": noise}.items():
            lines = [decided(X, true, noise, rates, seed) for seed in range(n_splits)]
            names = ("expected_gain", "gain", "accuracy", "of_corrected_labels", "left_wrong")
            figures = (
                f"{name} {100 * value:.1f}"
                for name, value in zip(names, np.mean(lines, axis=0), strict=True)
            )
            print(f"{domain:<8} rates {mode:<10}", ", ".join(figures), flush=True)


def decided(X, true, noise, rates, seed):
    """Return gains and accuracies of one split.

    These are the expected and the measured gain, the accuracy with the checked labels, the accuracy
    of a fit to the corrected labels instead, and the share of labels that remain wrong.
    """
    rows = np.random.default_rng(seed).permutation(len(true))
    train = rows[:N_TRAINING]
    test = rows[N_TRAINING:]
    observed = noise.flip(true[train], random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumedNoiseWarning)
        before = LPClassifier(rates).fit(X[train], observed)
        worst = np.argsort(before.label_posterior_[np.arange(len(train)), observed])[:N_DECIDED]
        truth = np.full(len(train), None)
        corrected = observed.copy()
        truth[worst] = corrected[worst] = true[train][worst]
        after = LPClassifier(GivenRates(before.noise_, before.noise_std_, truth)).fit(
            X[train], observed
        )
        instead = LPClassifier().fit(X[train], corrected)
    scores = [fitted.score(X[test], true[test]) for fitted in (before, after, instead)]
    expected = after.expected_accuracy_ - before.expected_accuracy_
    return expected, scores[1] - scores[0], scores[1], scores[2], np.mean(corrected != true[train])


def part_rows(folder, n_rows):
    """Audit many rows: numbers, and pieces of reviews."""
    X, true = make_mixture(n_rows, 100, mean_norm=1.5, random_state=0)
    observed = NOISE.flip(true, random_state=0)
    path = folder / "numbers.csv"
    write(path, [*(f"x{j}" for j in range(100)), "label"], [*X.round(5).T, NAMES[observed]])
    show("100 numeric columns", path, observed != true)
    all_reviews = reviews()
    if all_reviews is None:
        return
    pieces = []
    labels = []
    for review in all_reviews:
        words = f"{review['title']} {review['text']}".split()
        cut = [
            " ".join(words[i : i + WORDS_PER_PIECE]) for i in range(0, len(words), WORDS_PER_PIECE)
        ]
        pieces += cut
        labels += [review["label"]] * len(cut)
    chosen = np.random.default_rng(0).permutation(len(pieces))[:n_rows]
    true = np.array(labels)[chosen]
    observed = NOISE.flip(true, random_state=0)
    path = folder / "pieces.csv"
    write(path, ["text", "label"], [[pieces[i] for i in chosen], NAMES[observed]])
    show(f"texts of {WORDS_PER_PIECE} words", path, observed != true, "--text", "text")


def show(name, path, wrong, *options):
    """Audit a file, and print the time and memory."""
    for mode, rates in {"estimated": [], "given": RATES}.items():
        answer, seconds, used = audited(path, *options, *rates)
        first, _ = shares(answer, wrong)
        # Peak of the largest child process so far.
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
        print(
            f"{len(wrong)} rows, {name}, rates {mode}: {seconds:.0f} s ({used:.0f} s of CPU time), "
            f"peak {peak:.1f} GiB, wrong labels among the first {N_FIRST}: {first:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--part",
        choices=["reviews", "decisions", "rows"],
        action="append",
        help="part to run, can be repeated; all by default",
    )
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds (default: 5)")
    parser.add_argument(
        "--domain",
        default="kitchen",
        choices=["books", "dvd", "electronics", "kitchen"],
        help="product of the reviews (default: kitchen)",
    )
    parser.add_argument("--rows", type=int, default=50_000, help="rows of part rows (50000)")
    parser.add_argument("--quick", action="store_true", help="two seeds, one split, 5000 rows")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for part in arguments.part or ["reviews", "decisions", "rows"]:
            if part == "reviews":
                part_reviews(
                    Path(scratch), 2 if arguments.quick else arguments.seeds, arguments.domain
                )
            elif part == "decisions":
                part_decisions(1 if arguments.quick else arguments.seeds)
            else:
                part_rows(Path(scratch), 5000 if arguments.quick else arguments.rows)
