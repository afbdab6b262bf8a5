"""Outliers and near-duplicates: AUROC and time, beside cleanlab's check of nearest neighbours."""

import time
import warnings

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors

from outlier_sets import duplicate_sets, outlier_sets
from page_tables import short, show
from parts import announced, has_data, parsed
from timing import draw, floor, measure
from unflip import unusual_rows
from verdicts import verdict

COMMAND = "python benchmarks/outliers.py"
PAGE = "coming_from_cleanlab.md"
# Rows and features of the timed problems.
SHAPES = ((2000, 400), (5000, 384), (10_000, 400), (10_000, 1000), (1000, 2000), (1797, 64))
QUICK_SHAPES = SHAPES[:2]
LARGEST_COST = 1.5  # floors
# A smaller difference of AUROC counts as equal.
EQUAL = 0.005


def cleanlab_scores(X, issue):
    """Return cleanlab's score of each row, low for issues."""
    from cleanlab import Datalab

    lab = Datalab({"row": np.arange(len(X))}, verbosity=0)
    lab.find_issues(features=X, issue_types={issue: {}})
    return lab.get_issues(issue)[f"{issue}_score"].to_numpy()


def auroc(is_issue, scores):
    """Return the AUROC of scores that are low for issues."""
    return roc_auc_score(is_issue, -scores)


def run_outliers(n_draws, quick):
    """Rows of other origin among others, 3%; labels with 20% noise."""
    lines = []
    for seed in range(n_draws):
        for kind, name, X, is_outlier, labels in outlier_sets(seed):
            lines.append(
                (
                    kind,
                    name,
                    auroc(is_outlier, cleanlab_scores(X, "outlier")),
                    auroc(is_outlier, unusual_rows(X).outlier_score),
                    auroc(is_outlier, unusual_rows(X, labels).outlier_score),
                )
            )
    return pd.DataFrame(lines, columns=["kind", "set", "cleanlab", "unlabelled", "unflip"])


def run_duplicates(n_draws, quick):
    """Near-copies of 3% of the rows."""
    lines = []
    for seed in range(n_draws):
        for kind, name, X, is_copy in duplicate_sets(seed):
            unusual = unusual_rows(X)
            lines.append(
                (
                    kind,
                    name,
                    auroc(is_copy, cleanlab_scores(X, "near_duplicate")),
                    auroc(is_copy, unusual.near_duplicate_score),
                )
            )
    return pd.DataFrame(lines, columns=["kind", "set", "cleanlab", "unflip"])


def run_time(n_repeats, quick):
    """Processor time in floors: one Gram matrix and its eigendecomposition."""
    lines = []
    for n, p in QUICK_SHAPES if quick else SHAPES:
        X, _ = draw(n, p)
        labels = np.random.default_rng(0).integers(5, size=n)

        def search(X=X):
            NearestNeighbors(n_neighbors=10, metric="cosine").fit(X).kneighbors()

        functions = [
            lambda X=X: floor(X),
            lambda X=X, labels=labels: unusual_rows(X, labels),
            search,
        ]
        seconds = np.median(measure(functions, n_repeats, clock=time.process_time), axis=0)
        lines.append((n, p, *seconds))
    return pd.DataFrame(lines, columns=["n", "p", "floor", "unflip", "cleanlab"])


def tell_outliers(frame, write):
    """Print the AUROC of each kind of outliers."""
    header = ("outliers", "sets", "cleanlab", "unflip without labels", "unflip with labels")
    tell(frame, header, ("cleanlab", "unlabelled", "unflip"), "outliers", write)


def tell_duplicates(frame, write):
    """Print the AUROC of each kind of near-copies."""
    header = ("near-copies", "sets", "cleanlab", "unflip")
    tell(frame, header, ("cleanlab", "unflip"), "duplicates", write)


def tell(frame, header, methods, part, write):
    """Print mean AUROCs by kind, and on how many sets unflip's is at least that of cleanlab."""
    of_sets = frame.groupby(["kind", "set"], sort=False)[list(methods)].mean()
    rows = [header]
    for kind, mine in of_sets.groupby(level="kind", sort=False):
        rows.append((kind, str(len(mine)), *(short(mine[method].mean()) for method in methods)))
    rows.append(("all", str(len(of_sets)), *(short(of_sets[method].mean()) for method in methods)))
    show(PAGE, f"{COMMAND} {part}", rows, write)
    difference = of_sets["unflip"] - of_sets["cleanlab"]
    n_equal = int((difference >= -EQUAL).sum())
    verdict(
        difference.mean() >= 0,
        "mean AUROC at least cleanlab's",
        f"{short(of_sets['unflip'].mean())} against {short(of_sets['cleanlab'].mean())}",
    )
    verdict(
        n_equal == len(difference),
        f"AUROC at least cleanlab's, less {EQUAL}, on every set",
        f"{n_equal} of {len(difference)} sets",
    )
    for (kind, name), lost in difference[difference < -EQUAL].sort_values().items():
        print(f"        {short(lost)}  {kind}: {name}")


def tell_time(frame, write):
    """Print the cost in floors."""
    rows = [("rows × features", "floor", "unflip, in floors", "cleanlab's search, in floors")]
    for line in frame.itertuples():
        ratios = (line.unflip / line.floor, line.cleanlab / line.floor)
        shape = f"{line.n} × {line.p}"
        rows.append((shape, f"{1000 * line.floor:.3g} ms", *(f"{each:.1f}" for each in ratios)))
        verdict(ratios[0] <= LARGEST_COST, f"{shape}, {LARGEST_COST} floors", f"{ratios[0]:.2f}")
    show(PAGE, f"{COMMAND} time", rows, write)


# For each part: what runs it, what prints it, draws or repeats of a full and of a quick run.
PARTS = {
    "outliers": (run_outliers, tell_outliers, 3, 1),
    "duplicates": (run_duplicates, tell_duplicates, 3, 1),
    "time": (run_time, tell_time, 5, 3),
}


def main():
    """Run the parts, print their tables and store them."""
    options = parsed(
        __doc__,
        PARTS,
        ("--draws", "draws of each set, or repeats of each time"),
        "one draw of each set: a minute",
        stored=True,
        write="write the tables into docs/coming_from_cleanlab.md",
    )
    warnings.simplefilter("ignore")  # of cleanlab and its dependencies
    options.out.mkdir(parents=True, exist_ok=True)
    for part in options.parts or PARTS:
        if part != "time" and not options.stored and not has_data(part):
            continue
        run, tell_part, full, short_run = PARTS[part]
        path = options.out / f"outliers_{part}.csv"
        with announced(part, run.__doc__):
            if not options.stored:
                n_draws = options.draws or (short_run if options.quick else full)
                run(n_draws, options.quick).to_csv(path, index=False)
            tell_part(pd.read_csv(path), options.write)


if __name__ == "__main__":
    main()
