"""Sparse rows that no eigendecomposition could take: the whole path against one solver run for each penalty.

`KrylovSpectrum` fits twenty penalties from one Krylov space; scikit-learn's `Ridge(solver="sparse_cg")` is run once for
each, at the same tolerance, in the same process and in turns. Times are processor time. Then: what the coefficients
miss, memory, a default fit of `LPClassifier`, and, on the reviews of `UNFLIP_DATA`, what approximate hat values do to
leave-one-out scores.
"""

import argparse
import gzip
import json
import os
import time
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_limits

from unflip import LPClassifier, NoiseModel
from unflip.rows import DistinctRows
from unflip.selection import candidate_regs
from unflip.spectrum import KrylovSpectrum, decompose, krylov

SHAPE, QUICK, STORED = (50_000, 30_000), (10_000, 6_000), 115
RELATIVE_REGS = np.logspace(-4, 4, 20)  # the range that LPClassifier searches
#: Times faster that the path should be at least, at each tolerance.
LIMITS = {krylov.TOLERANCE: 6.0, 1e-8: 3.0}
NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)


def draw(n_rows, n_words):
    """Rows of unit length with about as many words stored, by Zipf's law and a little by class; and the classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n_rows)
    drawn = rng.poisson(1.15 * STORED, size=n_rows)
    lean, words = 0.15 * rng.normal(size=n_words), np.empty(drawn.sum(), dtype=int)
    for a in (0, 1):
        shares = np.exp((2 * a - 1) * lean) / (10.0 + np.arange(n_words))
        of_class = np.repeat(y == a, drawn)
        words[of_class] = rng.choice(n_words, size=of_class.sum(), p=shares / shares.sum())
    owners = np.repeat(np.arange(n_rows), drawn)
    X = sparse.coo_array((np.ones(len(words)), (owners, words)), shape=(n_rows, n_words)).tocsr()
    X.data = np.log1p(X.data) * np.log(n_rows / np.bincount(X.indices, minlength=n_words).clip(1))[X.indices]
    X.data /= np.repeat(np.sqrt((X**2).sum(axis=1)), np.diff(X.indptr))
    return sparse.csr_matrix(X), y


def path(X, t, regs, tolerance):
    """Fit all penalties from one space; coefficients (p, n_regs)."""
    return KrylovSpectrum(X, fit_intercept=True, tolerance=tolerance).path(t, regs).coef[:, :, 0]


def one_by_one(X, t, regs, tolerance):
    """Fit each penalty on its own."""
    fits = [Ridge(alpha=X.shape[0] * reg, solver="sparse_cg", tol=tolerance).fit(X, t) for reg in regs]
    return np.column_stack([fit.coef_ for fit in fits])


def seconds(function):
    """Processor time of a call, and what it returned."""
    start = time.process_time()
    found = function()
    return time.process_time() - start, found


def compare(X, t, regs, n_repeats):
    """Print the speed of both at each tolerance, and how far the coefficients are from those at a far smaller one."""
    reference = one_by_one(X, t, regs, 1e-13)
    norms = np.linalg.norm(reference, axis=0)
    for tolerance, limit in LIMITS.items():
        runs = {"ours": [], "peer": []}
        for _ in range(n_repeats):
            runs["ours"].append(seconds(lambda tol=tolerance: path(X, t, regs, tol)))
            runs["peer"].append(seconds(lambda tol=tolerance: one_by_one(X, t, regs, tol)))
        times = {name: np.array([spent for spent, _ in found]) for name, found in runs.items()}
        low, middle, high = np.percentile(times["peer"] / times["ours"], [0, 50, 100])
        verdict = "PASS" if middle >= limit else "MISS"
        print(
            f"tolerance {tolerance:.0e}: path {np.median(times['ours']):.2f} s, one by one "
            f"{np.median(times['peer']):.2f} s, {middle:.1f} times faster ({low:.1f} to {high:.1f}), "
            f"at least {limit:g}: {verdict}",
            flush=True,
        )
        for name, found in runs.items():
            missed = np.linalg.norm(found[-1][1] - reference, axis=0) / norms
            print(f"  {name}: coefficients off by {missed.max():.1e} at most, {np.median(missed):.1e} in the median")


def memory(X, y, t, regs):
    """Print peak memory beyond the rows."""
    stored = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    tasks = {"path": lambda: path(X, t, regs, krylov.TOLERANCE), "LPClassifier": lambda: LPClassifier().fit(X, y)}
    for name, task in tasks.items():
        tracemalloc.start()
        task()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(f"memory of {name}: {peak / 2**20:.0f} MiB beyond the rows' {stored / 2**20:.0f} MiB")


def default_fit(X, y, n_repeats):
    """Print the time of a default fit, its accuracy on rows held out, and the sum of hat values that it rests on."""
    observed = NOISE.flip(y, random_state=0)
    n_train = int(0.9 * len(y))
    spent = []
    for _ in range(n_repeats):
        took, fitted = seconds(lambda: LPClassifier().fit(X[:n_train], observed[:n_train]))
        spent.append(took)
    score = fitted.score(X[n_train:], y[n_train:])
    print(
        f"LPClassifier(): {np.median(spent):.1f} s ({min(spent):.1f} to {max(spent):.1f}); accuracy {score:.3f}, "
        f"expected {fitted.expected_accuracy_:.3f} ± {fitted.expected_accuracy_std_:.3f}",
        flush=True,
    )
    known = LPClassifier(NOISE).fit(X[:n_train], observed[:n_train])
    print(
        f"  rates known: accuracy {known.score(X[n_train:], y[n_train:]):.3f}, expected {known.expected_accuracy_:.3f}"
    )
    mean, error = KrylovSpectrum(X[:n_train], fit_intercept=True).mean_hat([fitted.reg_])
    print(f"  mean hat value at its penalty: {mean[0]:.5f} ± {error[0]:.5f}")


def reviews(n_rows):
    """Return word counts of reviews in three forms, without copies, and whether they are favourable."""
    folder = os.environ.get("UNFLIP_DATA")
    if folder is None:
        print("UNFLIP_DATA is not set: no reviews.")
        return
    with gzip.open(Path(folder, "blitzer_sentiment", "reviews.json.gz")) as file:
        found = json.load(file)
    found = [found[i] for i in np.random.default_rng(0).permutation(len(found))[:n_rows]]
    texts, y = [f"{row['title']} {row['text']}" for row in found], np.array([int(row["label"]) > 0 for row in found])
    for name, options in {
        "words and pairs, TF-IDF": {"ngram_range": (1, 2), "min_df": 2, "sublinear_tf": True},
        "frequent words, TF-IDF": {"min_df": 20, "sublinear_tf": True},
        "words, not normalised": {"min_df": 3, "norm": None, "sublinear_tf": True},
    }.items():
        rows = DistinctRows.of(TfidfVectorizer(**options).fit_transform(texts))
        first = np.unique(rows.owner, return_index=True)[1]
        yield name, rows.X, y[first].astype(int)


def left_out(name, X, y):
    """Print what leave-one-out scores lose by approximate hat values, at mean hat values from 0.7 down."""
    t = 2.0 * NOISE.flip(y, random_state=0) - 1
    exact, found = decompose(X), KrylovSpectrum(X, fit_intercept=True)
    print(f"{name}, {X.shape[0]} × {X.shape[1]}:")
    for wanted in (0.7, 0.5, 0.3, 0.1, 0.03):
        reg = found._unit * found._quadrature.shift_of(wanted * len(y)) / found.n
        if not reg:
            continue
        mean, error = found.mean_hat([reg])
        hats = [s.hat_diagonals([[reg]])[0][:, 0] for s in (exact, found)]
        scores = [s.leave_one_out(t, [reg]).label_free_scores[:, 0, 0] for s in (exact, found)]
        spread, missed = hats[0].std(), np.sqrt(np.mean((hats[1] - hats[0]) ** 2))
        rough = np.sqrt(np.mean((scores[1] - scores[0]) ** 2)) / scores[0].std()
        moved = np.corrcoef(scores[1], t)[0, 1] - np.corrcoef(scores[0], t)[0, 1]
        print(
            f"  mean hat value {hats[0].mean():.4f} (said {mean[0]:.4f} ± {error[0]:.4f}); each off by {missed:.4f} "
            f"(their mean alone: {spread:.4f}); scores off by {rough:.3f} of their spread, agreement with labels by "
            f"{moved:+.4f}",
            flush=True,
        )
    best = {}
    for kind, spectrum in (("exact", exact), ("approximate", found)):
        regs = candidate_regs(spectrum)
        scores = spectrum.leave_one_out(t, regs).label_free_scores[:, :, 0]
        best[kind] = regs[np.argmax(np.corrcoef(scores.T, t)[-1, :-1])] / exact.scale
    print(
        f"  best penalty, in typical eigenvalues: {best['exact']:.2g}, by approximate scores {best['approximate']:.2g}"
    )


def main():
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows, one repetition")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    n_repeats = 1 if options.quick else options.repeats
    with threadpool_limits(1):
        X, y = draw(*(QUICK if options.quick else SHAPE))
        regs = KrylovSpectrum(X, fit_intercept=True).scale * RELATIVE_REGS
        print(f"{X.shape[0]} × {X.shape[1]}, {X.nnz / X.shape[0]:.0f} stored a row; {len(regs)} penalties", flush=True)
        compare(X, 2.0 * y - 1, regs, n_repeats)
        default_fit(X, y, n_repeats)
        memory(X, y, 2.0 * y - 1, regs)
        for name, rows, labels in reviews(2000 if options.quick else 4000):
            left_out(name, rows, labels)


if __name__ == "__main__":
    main()
