"""Tables that no linear classifier fits: kernels, and any classifier, trained on noisy labels.

`LPClassifier(features="auto")` and `NoisyLabelClassifier` against forests, boosting, support vector
machines, networks and logistic regression: each plain, with thresholds corrected by the true class
proportions, and inside cleanlab's CleanLearning. All are fitted to the same splits and noisy
labels. The sets are scikit-learn's, and tables in the folder that UNFLIP_DATA names. Noise levels
are the rates of the positive and the negative class; several classes have uniform noise of the
first rate. cleanlab comes with the extra ``unflip[benchmark]``.
"""

import csv
import warnings
from functools import partial

import joblib
import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from any_model_fits import jobs, results
from any_model_tables import print_accuracy
from parts import announced, parsed
from timing import measure, peak_memory
from unflip import LPClassifier
from unflip.features import KernelFeatures
from verdicts import verdict

PARTS = ("accuracy", "speed", "memory")
FIELDS = (
    *("set", "level", "draw", "classes", "n_test", "model", "method", "features"),
    *("accuracy", "expected", "expected_std", "auroc", "share", "seconds"),
)
LARGEST_FLOORS = 8
LARGEST_MEMORY = 3


def accuracy(options):
    """Accuracy on clean test rows, expected accuracy, and AUROC of the wrong labels."""
    path = options.out / "any_model.csv"
    if not options.stored:
        run_all(path, options.draws or (1 if options.quick else 10), options.jobs)
    print_accuracy(pd.read_csv(path), options.write)


def run_all(path, n_draws, n_jobs):
    """Run the draws that are not stored yet, and store each when it is done."""
    path.parent.mkdir(parents=True, exist_ok=True)
    done = set()
    if path.exists():
        stored = pd.read_csv(path)
        done = set(stored[["set", "level", "draw"]].itertuples(index=False, name=None))
    open_jobs = [job for job in jobs(n_draws) if job not in done]
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not done:
            writer.writeheader()
        parallel = joblib.Parallel(n_jobs, return_as="generator_unordered")
        for rows in parallel(joblib.delayed(results)(*job) for job in open_jobs):
            writer.writerows(rows)
            file.flush()


def noisy_shells(n_rows, n_features):
    """Return rows whose class depends on the size of four features, with 20% wrong labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_features))
    y = np.abs(X[:, :4]).sum(axis=1) > 3
    return X, y ^ (rng.random(n_rows) < 0.2)


def speed(options):
    """Time of 5000 rows × 20 features with 500 landmarks, in floors of the kernel features."""
    X, y = noisy_shells(5000, 20)
    Z = KernelFeatures().fit_transform(X)
    functions = {
        "floor: Gram matrix and eigh of the features": lambda: np.linalg.eigh(Z.T @ Z),
        "kernel features": lambda: KernelFeatures().fit_transform(X),
        "fit, one kernel": partial(LPClassifier(features="matern").fit, X, y),
        "fit, linear": partial(LPClassifier().fit, X, y),
        "fit, features chosen": partial(LPClassifier(features="auto").fit, X, y),
    }
    with threadpool_limits(1):
        seconds = np.median(measure(list(functions.values()), 5), axis=0)
    floors = dict(zip(functions, seconds / seconds[0], strict=True))
    for name, value in floors.items():
        print(f"  {name:46s} {value:6.2f}")
    one_kernel = floors["fit, one kernel"] - floors["kernel features"]
    choice = floors["fit, features chosen"] - one_kernel
    verdict(
        choice <= LARGEST_FLOORS,
        f"choosing and computing the features: ≤ {LARGEST_FLOORS} floors",
        f"{choice:.2f}",
    )


def memory(options):
    """Peak memory of 100,000 rows × 50 features with 1000 landmarks, relative to the rows."""
    n_rows = 10_000 if options.quick else 100_000
    X, y = noisy_shells(n_rows, 50)
    classifier = LPClassifier(features=KernelFeatures(n_components=1000))
    peak = peak_memory(lambda: classifier.fit(X, y)) / X.nbytes
    if options.quick:
        print(f"  {n_rows} rows: {peak:.2f} times the rows")
        return
    verdict(peak <= LARGEST_MEMORY, f"≤ {LARGEST_MEMORY} times the rows", f"{peak:.2f}")


def main():
    """Run the parts, print their tables and store the results."""
    options = parsed(
        __doc__,
        PARTS,
        ("--draws", "draws of each set and noise level"),
        "one draw of each set and level: a quarter of an hour on two cores",
        stored=True,
        write="write the tables into docs/kernels.md and docs/any_classifier.md",
        jobs=True,
    )
    warnings.simplefilter("ignore")
    functions = {"accuracy": accuracy, "speed": speed, "memory": memory}
    for part in options.parts or PARTS:
        with announced(part, functions[part].__doc__):
            functions[part](options)


if __name__ == "__main__":
    main()
