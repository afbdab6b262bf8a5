"""Accuracy on clean labels: this library, ridge, logistic regression and cleanlab.

All methods are fitted to the same splits and the same noisy labels. Differences are paired. Their
95% confidence intervals are over draws, or over test rows if a set has a single draw. cleanlab's
best grid point is chosen on the test rows, in its favour. Parts other than ``sklearn`` need the
data sets (UNFLIP_DATA). cleanlab comes with the extra ``unflip[benchmark]``.
"""

import warnings

import pandas as pd

from accuracy_colon import run_colon
from accuracy_draws import amazon_draws, imbalanced_draws, sklearn_draws, vote_draws
from accuracy_measures import run
from accuracy_picture import picture
from accuracy_tables import print_tables
from accuracy_targets import (
    judge_amazon,
    judge_expected,
    judge_imbalanced,
    judge_sklearn,
    judge_votes,
    judge_wrong_labels,
)
from cleanlab_grid import with_best
from parts import announced, has_data, parsed

# For each part: its draws, its PASS or MISS checks, splits of a full run, splits of a quick run.
PARTS = {
    "amazon": (amazon_draws, judge_amazon, 20, 2),
    "imbalanced": (imbalanced_draws, judge_imbalanced, 20, 2),
    "votes": (vote_draws, judge_votes, 20, 2),
    "sklearn": (sklearn_draws, judge_sklearn, 30, 3),
}
COLON = "colon"


def results(part, options):
    """Run a part and store its results, or read the stored ones."""
    table = options.out / f"accuracy_{part}.csv"
    bins = options.out / f"accuracy_{part}_reliability.csv"
    if not options.stored:
        draws, _, full, short = PARTS[part]
        n_splits = options.splits or (short if options.quick else full)
        frame, claims = run(draws(n_splits, options.quick))
        frame.round(5).to_csv(table, index=False)
        claims.round(5).to_csv(bins, index=False)
    return with_best(pd.read_csv(table, dtype={"level": str})), pd.read_csv(bins)


def report(part, options):
    """Print the tables and checks of one part; return its results."""
    draws, judge, _, _ = PARTS[part]
    with announced(part, draws.__doc__):
        frame, claims = results(part, options)
        print_tables(part, frame, claims)
        judge(frame)
        if part == "amazon":
            picture(frame, options.out / "accuracy.png")
    return frame.assign(part=part)


def report_all(frames):
    """Print the checks over all parts."""
    everything = pd.concat(frames, ignore_index=True)
    print("over all parts:")
    judge_wrong_labels(everything)
    judge_expected(everything)


def main():
    """Run the parts, print their tables and store them."""
    options = parsed(
        __doc__,
        (*PARTS, COLON),
        ("--splits", "draws of each set and level"),
        "fewer sets and draws: a minute or two",
        stored=True,
    )
    # Estimated noise rates always warn. Other warnings of this library are stored.
    warnings.simplefilter("ignore", UserWarning)
    warnings.simplefilter("ignore", FutureWarning)
    options.out.mkdir(parents=True, exist_ok=True)
    frames = []
    for part in options.parts or (*PARTS, COLON):
        if part != "sklearn" and not options.stored and not has_data(part):
            continue
        if part == COLON:
            run_colon(options)
        else:
            frames.append(report(part, options))
    if frames:
        report_all(frames)


if __name__ == "__main__":
    main()
