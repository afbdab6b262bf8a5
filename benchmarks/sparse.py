"""Large sparse rows: twenty values of `reg` from one Krylov space, against scikit-learn.

`KrylovSpectrum` fits twenty values of `reg` from one Krylov space. scikit-learn's
`Ridge(solver="sparse_cg")` is run once for each value, at the same tolerance, in the same process
and in turns. Times are CPU times. The script also measures the error of the coefficients, memory, a
default fit of `LPClassifier`, and, on the reviews of `UNFLIP_DATA`, the effect of approximate
leverages on leave-one-out scores.
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
from unflip.data.duplicates import DistinctRows
from unflip.ridge.selection import candidate_regs
from unflip.ridge.spectrum import KrylovSpectrum, decompose, krylov

SHAPE = (50_000, 30_000)
QUICK = (10_000, 6_000)
STORED = 115  # stored values per row, about
RELATIVE_REGS = np.logspace(-4, 4, 20)  # the range that LPClassifier searches
#: Smallest ratio of scikit-learn's time to ours, by tolerance.
LIMITS = {krylov.TOLERANCE: 6.0, 1e-8: 3.0}
NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)


def draw(n_rows, n_words):
    """Draw word counts by Zipf's law, which differ a little by class, as rows of unit length."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n_rows)
    drawn = rng.poisson(1.15 * STORED, size=n_rows)
    lean = 0.15 * rng.normal(size=n_words)
    words = np.empty(drawn.sum(), dtype=int)
    for a in (0, 1):
        shares = np.exp((2 * a - 1) * lean) / (10.0 + np.arange(n_words))
        of_class = np.repeat(y == a, drawn)
        words[of_class] = rng.choice(n_words, size=of_class.sum(), p=shares / shares.sum())
    owners = np.repeat(np.arange(n_rows), drawn)
    X = sparse.coo_array((np.ones(len(words)), (owners, words)), shape=(n_rows, n_words)).tocsr()
    X.data = (
        np.log1p(X.data)
        * np.log(n_rows / np.bincount(X.indices, minlength=n_words).clip(1))[X.indices]
    )
    X.data /= np.repeat(np.sqrt((X**2).sum(axis=1)), np.diff(X.indptr))
    return sparse.csr_matrix(X), y


def path(X, t, regs, tolerance):
    """Fit all values of reg from one Krylov space; return coefficients, (p, n_regs)."""
    return KrylovSpectrum(X, fit_intercept=True, tolerance=tolerance).path(t, regs).coef[:, :, 0]


def one_by_one(X, t, regs, tolerance):
    """Fit each value of reg separately."""
    fits = [
        Ridge(alpha=X.shape[0] * reg, solver="sparse_cg", tol=tolerance).fit(X, t) for reg in regs
    ]
    return np.column_stack([fit.coef_ for fit in fits])


def seconds(function):
    """Return the CPU time of a call, and its result."""
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def compare(X, t, regs, n_repeats):
    """Print times and errors of both methods; the reference has a tolerance of 1e-13."""
    reference = one_by_one(X, t, regs, 1e-13)
    norms = np.linalg.norm(reference, axis=0)
    for tolerance, limit in LIMITS.items():
        runs = {"ours": [], "peer": []}
        for _ in range(n_repeats):
            runs["ours"].append(seconds(lambda tol=tolerance: path(X, t, regs, tol)))
            runs["peer"].append(seconds(lambda tol=tolerance: one_by_one(X, t, regs, tol)))
        times = {name: np.array([spent for spent, _ in pairs]) for name, pairs in runs.items()}
        low, middle, high = np.percentile(times["peer"] / times["ours"], [0, 50, 100])
        verdict = "PASS" if middle >= limit else "MISS"
        print(
            f"tolerance {tolerance:.0e}: one Krylov space {np.median(times['ours']):.2f} s, "
            f"sparse_cg {np.median(times['peer']):.2f} s, ratio {middle:.1f} ({low:.1f} to "
            f"{high:.1f}), at least {limit:g}: {verdict}",
            flush=True,
        )
        for name, pairs in runs.items():
            missed = np.linalg.norm(pairs[-1][1] - reference, axis=0) / norms
            print(
                f"  {name}: error of the coefficients at most {missed.max():.1e}, median "
                f"{np.median(missed):.1e}"
            )


def memory(X, y, t, regs):
    """Print the peak memory beyond the rows."""
    stored = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    tasks = {
        "path": lambda: path(X, t, regs, krylov.TOLERANCE),
        "LPClassifier": lambda: LPClassifier().fit(X, y),
    }
    for name, task in tasks.items():
        tracemalloc.start()
        task()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(f"memory of {name}: {peak / 2**20:.0f} MiB beyond {stored / 2**20:.0f} MiB of rows")


def default_fit(X, y, n_repeats):
    """Print time, accuracy on held-out rows and mean leverage of a default fit."""
    observed = NOISE.flip(y, random_state=0)
    n_train = int(0.9 * len(y))
    spent = []
    for _ in range(n_repeats):
        took, fitted = seconds(lambda: LPClassifier().fit(X[:n_train], observed[:n_train]))
        spent.append(took)
    score = fitted.score(X[n_train:], y[n_train:])
    print(
        f"LPClassifier(): {np.median(spent):.1f} s ({min(spent):.1f} to {max(spent):.1f}); "
        f"accuracy {score:.3f}, expected {fitted.expected_accuracy_:.3f} ± "
        f"{fitted.expected_accuracy_std_:.3f}",
        flush=True,
    )
    informed = LPClassifier(NOISE).fit(X[:n_train], observed[:n_train])
    print(
        f"  noise rates given: accuracy {informed.score(X[n_train:], y[n_train:]):.3f}, expected "
        f"{informed.expected_accuracy_:.3f}"
    )
    mean, error = KrylovSpectrum(X[:n_train], fit_intercept=True).mean_leverage([fitted.reg_])
    print(f"  mean leverage at its reg: {mean[0]:.5f} ± {error[0]:.5f}")


def reviews(n_rows):
    """Yield word counts of reviews in three forms, without duplicates, and their labels."""
    folder = os.environ.get("UNFLIP_DATA")
    if folder is None:
        print("UNFLIP_DATA is not set: reviews are skipped.")
        return
    with gzip.open(Path(folder, "blitzer_sentiment", "reviews.json.gz")) as file:
        all_reviews = json.load(file)
    order = np.random.default_rng(0).permutation(len(all_reviews))[:n_rows]
    sample = [all_reviews[i] for i in order]
    texts = [f"{review['title']} {review['text']}" for review in sample]
    y = np.array([int(review["label"]) > 0 for review in sample])
    for name, options in {
        "words and pairs, TF-IDF": {"ngram_range": (1, 2), "min_df": 2, "sublinear_tf": True},
        "frequent words, TF-IDF": {"min_df": 20, "sublinear_tf": True},
        "words, not normalised": {"min_df": 3, "norm": None, "sublinear_tf": True},
    }.items():
        rows = DistinctRows.of(TfidfVectorizer(**options).fit_transform(texts))
        first = np.unique(rows.owner, return_index=True)[1]
        yield name, rows.X, y[first].astype(int)


def left_out(name, X, y):
    """Print the error of leave-one-out scores with approximate leverages, by mean leverage."""
    t = 2.0 * NOISE.flip(y, random_state=0) - 1
    exact = decompose(X)
    approximate = KrylovSpectrum(X, fit_intercept=True)
    print(f"{name}, {X.shape[0]} × {X.shape[1]}:")
    for wanted in (0.7, 0.5, 0.3, 0.1, 0.03):
        reg = approximate._unit * approximate._quadrature.shift_of(wanted * len(y)) / approximate.n
        if not reg:
            continue
        mean, error = approximate.mean_leverage([reg])
        both = (exact, approximate)
        leverages = [s.hat_diagonals([[reg]])[0][:, 0] for s in both]
        scores = [s.leave_one_out(t, [reg]).corrected_scores[:, 0, 0] for s in both]
        spread = leverages[0].std()
        missed = np.sqrt(np.mean((leverages[1] - leverages[0]) ** 2))
        rough = np.sqrt(np.mean((scores[1] - scores[0]) ** 2)) / scores[0].std()
        moved = np.corrcoef(scores[1], t)[0, 1] - np.corrcoef(scores[0], t)[0, 1]
        print(
            f"  mean leverage {leverages[0].mean():.4f} (estimated {mean[0]:.4f} ± "
            f"{error[0]:.4f}); error of single leverages {missed:.4f} (if all are set to the mean: "
            f"{spread:.4f}); error of scores {rough:.3f} of their standard deviation; change of "
            f"their correlation with the labels {moved:+.4f}",
            flush=True,
        )
    best = {}
    for kind, spectrum in (("exact", exact), ("approximate", approximate)):
        regs = candidate_regs(spectrum)
        scores = spectrum.leave_one_out(t, regs).corrected_scores[:, :, 0]
        best[kind] = regs[np.argmax(np.corrcoef(scores.T, t)[-1, :-1])] / exact.scale
    print(
        f"  best reg, in typical eigenvalues: {best['exact']:.2g}, by approximate scores "
        f"{best['approximate']:.2g}"
    )


def main():
    """Measure and print everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows, one repetition")
    parser.add_argument("--repeats", type=int, default=3, help="repetitions (default: 3)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    n_repeats = 1 if options.quick else options.repeats
    with threadpool_limits(1):
        X, y = draw(*(QUICK if options.quick else SHAPE))
        regs = KrylovSpectrum(X, fit_intercept=True).scale * RELATIVE_REGS
        print(
            f"{X.shape[0]} × {X.shape[1]}, {X.nnz / X.shape[0]:.0f} stored values per row; "
            f"{len(regs)} values of reg",
            flush=True,
        )
        compare(X, 2.0 * y - 1, regs, n_repeats)
        default_fit(X, y, n_repeats)
        memory(X, y, 2.0 * y - 1, regs)
        for name, rows, labels in reviews(2000 if options.quick else 4000):
            left_out(name, rows, labels)


if __name__ == "__main__":
    main()
