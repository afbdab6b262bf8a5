"""`unflip audit` on files: how many of its first suspects are wrong indeed, how long it takes, and how it grows.

Figures are those of the whole program, started anew and read through ``--json``, but for part ``decisions``: what
decisions on suspects are worth. The reviews need their data set: ``blitzer_sentiment`` in the folder that UNFLIP_DATA
names. Labels are flipped at known seeds: 30% of the positive ones and 10% of the negative ones, if not said otherwise.
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
from unflip.estimation.given import GivenRates
from unflip.files.features import Features, fit_features

NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)
NAMES = np.array(["negative", "positive"])
RATES = ["--eps", "negative=0.1,positive=0.3"]
LIMIT_SECONDS, LIMIT_SHARE, N_FIRST = 60, 0.9, 200
WORDS_PER_PIECE = 22
N_TRAINING, N_DECIDED = 1400, 300


def reviews():
    """All reviews, or None where the data are not there."""
    path = Path(os.environ.get("UNFLIP_DATA", "")) / "blitzer_sentiment" / "reviews.json.gz"
    if not path.is_file():
        print("UNFLIP_DATA names no folder with blitzer_sentiment/reviews.json.gz: parts that need it are left out.")
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
    """Run the program; return its answer, the seconds it took, and those of a processor that it used."""
    command = [sys.executable, "-m", "unflip", "audit", str(path), "--label", "label", "--json", *options]
    begin, before = time.perf_counter(), os.times()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds, after = time.perf_counter() - begin, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout), seconds, used


def shares(answer, wrong):
    """Share of wrong labels among the first 200 rows listed, and among the suspects to act on."""
    rows = np.array([line["row"] for line in answer["suspects"]])
    return wrong[rows[:N_FIRST]].mean(), wrong[rows[: answer["n_suspects"]]].mean()


def part_reviews(folder, n_seeds, domain):
    """Reviews of one kind of product as texts, rates estimated and given."""
    found = reviews()
    if found is None:
        return
    chosen = [review for review in found if review["domain"] == domain]
    texts, true = [f"{r['title']}\n{r['text']}" for r in chosen], np.array([r["label"] for r in chosen])
    print(f"\n{domain}: {len(texts)} reviews; share of wrong labels among the first {N_FIRST}, and among the suspects")
    print(f"{'rates':<10}{'seed':>5}{'first 200':>11}{'suspects':>10}{'number':>8}{'seconds':>9}{'processor':>11}")
    for mode, options in {"estimated": [], "given": RATES}.items():
        lines = []
        for seed in range(n_seeds):
            observed = NOISE.flip(true, random_state=seed)
            path = folder / "reviews.csv"
            write(path, ["text", "label"], [texts, NAMES[observed]])
            answer, seconds, used = audited(path, "--text", "text", *options)
            lines.append((*shares(answer, observed != true), answer["n_suspects"], seconds, used))
            print(line(mode, seed, lines[-1]), flush=True)
        least, longest = min(line[0] for line in lines), max(line[3] for line in lines)
        verdict = "PASS" if np.mean(lines, axis=0)[0] >= LIMIT_SHARE and longest < LIMIT_SECONDS else "MISS"
        print(line(mode, "mean", np.mean(lines, axis=0)))
        print(f"  {verdict}: lowest {least:.3f}, longest {longest:.1f} s")


def line(mode, seed, figures):
    """One line of the table."""
    first, all_of_them, number, seconds, used = figures
    return f"{mode:<10}{seed:>5}{first:>11.3f}{all_of_them:>10.3f}{number:>8.0f}{seconds:>9.1f}{used:>11.1f}"


def part_decisions(n_splits):
    """Worth of decisions on suspects: expected, on clean rows, and of fits to the corrected labels instead."""
    found = reviews()
    if found is None:
        return
    print(f"\n{N_DECIDED} suspects decided truly, {N_TRAINING} training rows; points, means of {n_splits} splits")
    for domain, noise in {"kitchen": NOISE, "books": NoiseModel.binary(eps_pos=0.4, eps_neg=0.3)}.items():
        chosen = [review for review in found if review["domain"] == domain]
        texts, true = [f"{r['title']}\n{r['text']}" for r in chosen], np.array([r["label"] for r in chosen])
        _, X = fit_features(Features(kind="text", columns=("text",)), texts)
        for mode, rates in {"estimated": "estimate", "given": noise}.items():
            lines = [decided(X, true, noise, rates, seed) for seed in range(n_splits)]
            names = ("expected_gain", "gain", "accuracy", "of_corrected_labels", "left_wrong")
            figures = (f"{name} {100 * value:.1f}" for name, value in zip(names, np.mean(lines, axis=0), strict=True))
            print(f"{domain:<8} rates {mode:<10}", ", ".join(figures), flush=True)


def decided(X, true, noise, rates, seed):
    """One split: expected and true gain, accuracy so and by fitting to the corrected labels, labels left wrong."""
    rows = np.random.default_rng(seed).permutation(len(true))
    train, test = rows[:N_TRAINING], rows[N_TRAINING:]
    observed = noise.flip(true[train], random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumedNoiseWarning)
        before = LPClassifier(rates).fit(X[train], observed)
        worst = np.argsort(before.label_posterior_[np.arange(len(train)), observed])[:N_DECIDED]
        truth, corrected = np.full(len(train), None), observed.copy()
        truth[worst] = corrected[worst] = true[train][worst]
        after = LPClassifier(GivenRates(before.noise_, before.noise_std_, truth)).fit(X[train], observed)
        instead = LPClassifier().fit(X[train], corrected)
    scores = [fitted.score(X[test], true[test]) for fitted in (before, after, instead)]
    expected = after.expected_accuracy_ - before.expected_accuracy_
    return expected, scores[1] - scores[0], scores[1], scores[2], np.mean(corrected != true[train])


def part_rows(folder, n_rows):
    """Many rows: numbers, and pieces of reviews."""
    X, true = make_mixture(n_rows, 100, mean_norm=1.5, random_state=0)
    observed = NOISE.flip(true, random_state=0)
    path = folder / "numbers.csv"
    write(path, [*(f"x{j}" for j in range(100)), "label"], [*X.round(5).T, NAMES[observed]])
    show("100 numeric columns", path, observed != true)
    found = reviews()
    if found is None:
        return
    pieces, labels = [], []
    for review in found:
        words = f"{review['title']} {review['text']}".split()
        cut = [" ".join(words[i : i + WORDS_PER_PIECE]) for i in range(0, len(words), WORDS_PER_PIECE)]
        pieces += cut
        labels += [review["label"]] * len(cut)
    chosen = np.random.default_rng(0).permutation(len(pieces))[:n_rows]
    true = np.array(labels)[chosen]
    observed = NOISE.flip(true, random_state=0)
    path = folder / "pieces.csv"
    write(path, ["text", "label"], [[pieces[i] for i in chosen], NAMES[observed]])
    show(f"texts of {WORDS_PER_PIECE} words", path, observed != true, "--text", "text")


def show(name, path, wrong, *options):
    """Audit a file and print what that took."""
    for mode, rates in {"estimated": [], "given": RATES}.items():
        answer, seconds, used = audited(path, *options, *rates)
        first, _ = shares(answer, wrong)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20  # of the largest so far
        print(
            f"{len(wrong)} rows, {name}, rates {mode}: {seconds:.0f} s ({used:.0f} s of a processor), "
            f"at most {peak:.1f} GiB, "
            f"first {N_FIRST} wrong: {first:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=["reviews", "decisions", "rows"], action="append")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--domain", default="kitchen", choices=["books", "dvd", "electronics", "kitchen"])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--quick", action="store_true", help="two seeds, one split, 5000 rows")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for part in asked.part or ["reviews", "decisions", "rows"]:
            if part == "reviews":
                part_reviews(Path(scratch), 2 if asked.quick else asked.seeds, asked.domain)
            elif part == "decisions":
                part_decisions(1 if asked.quick else asked.seeds)
            else:
                part_rows(Path(scratch), 5000 if asked.quick else asked.rows)
