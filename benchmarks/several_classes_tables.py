"""Tables of several_classes.py."""

from cleanlab_grid import BEST_OF_LEVEL, BEST_OF_SPLIT, grid_rows, print_points
from measures import DRAW, wide
from page_tables import show
from peers import CLEANLAB, CLEANLAB_GIVEN, LOGISTIC, ORACLE, RATES, RIDGE
from several_classes_fits import BOTH, OTHERS, REFINED, THEORY_ROWS
from several_classes_paper import (
    NO_INTERCEPT,
    PAPER,
    PAPER_NAIVE,
    PAPER_ORACLE,
    PAPER_PAIRS,
    PAPER_ROWS,
    WITH_INTERCEPT,
    paper_setting,
)
from unflip import theory
from verdicts import mean_and_error

PEERS = (RIDGE, LOGISTIC, CLEANLAB, CLEANLAB_GIVEN, BEST_OF_LEVEL, BEST_OF_SPLIT, ORACLE)
SHOWN = (*REFINED, *OTHERS, *THEORY_ROWS, *PAPER_ROWS, *PEERS)

PAPER_COMMAND = "python benchmarks/several_classes.py paper"
#: Pages with the table of the paper's settings, and the name of this library's row there.
PAPER_PAGES = {"several_classes.md": "**refined**", "peers.md": "**unflip**"}
PAPER_WORDS = {
    PAPER_ORACLE: "the paper's oracle: clean labels, best of 9 γ",
    PAPER_PAIRS: "the paper's Multi-LPC: best of 5000 (α, β)",
    PAPER_NAIVE: "the paper's naive: noisy labels, best of 9 γ",
}


def print_tables(frame):
    """Print all tables of one part."""
    for name, rows in frame.groupby("set", sort=False):
        print_methods(rows, name)
        if len(grid_rows(rows)):
            print_points(rows)
    print()
    print_warnings(frame)


def print_methods(frame, title):
    """Print the measures of each method, and the gain of given noise rates over it."""
    table = wide(frame)
    n_draws = len(frame[DRAW].drop_duplicates())
    print(f"\n  {title}, {n_draws} draw{'s' if n_draws > 1 else ''}; mean ± standard error")
    print(
        f"  {'':42s} {'accuracy':14s} {'gain, rates given':19s} {'wrong labels':16s} "
        f"{'expected − actual':18s} time"
    )
    time_ours = frame.loc[frame["method"] == RATES, "seconds"].median()
    for method in SHOWN:
        mine = frame[frame["method"] == method]
        if len(mine):
            print(
                f"  {method:42s} {mean_and_error(mine['accuracy']):14s} "
                f"{mean_and_error(table[RATES] - table[method]) if method != RATES else '':19s} "
                f"{mean_and_error(mine['auroc_wrong'], 3):16s} "
                f"{mean_and_error(100 * mine['expected_bias']):18s} "
                f"{mine['seconds'].median() / time_ours:.1f}"
            )


def print_warnings(frame):
    """Print the warnings of this library's classifiers, except those of assumed rates."""
    for method, mine in frame[frame["warnings"].notna()].groupby("method", sort=False):
        print(f"  {method}: {len(mine)} warnings; " + "; ".join(mine["warnings"].unique()[:3]))


def show_paper(frame, write):
    """Print the table of the paper's settings, and write it into the pages on request."""
    for page, name in PAPER_PAGES.items():
        rows = [("", *(f"{k} classes" for k in PAPER))]
        rows.append((name, *(f"**{cell}**" for cell in paper_cells(frame, BOTH))))
        for method, words in PAPER_WORDS.items():
            rows.append((words, *paper_cells(frame, method + NO_INTERCEPT)))
            rows.append(
                ("the same with an intercept", *paper_cells(frame, method + WITH_INTERCEPT))
            )
        rows.append(("*Bayes, means known*", *(f"*{100 * bayes_accuracy(k):.1f}*" for k in PAPER)))
        show(page, PAPER_COMMAND, rows, write)


def paper_cells(frame, method):
    """Format mean and standard error of the accuracy in each of the paper's settings."""
    mine = frame[frame["method"] == method]
    return [mean_and_error(mine.loc[mine["set"] == f"{k} classes", "accuracy"], 1) for k in PAPER]


def bayes_accuracy(k):
    """Return the accuracy of Bayes' rule in the paper's setting."""
    means, noise = paper_setting(k)
    return theory.multiclass_bayes_accuracy(means=means, noise=noise)
