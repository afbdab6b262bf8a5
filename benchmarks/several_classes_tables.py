"""Tables of accuracies with more than two classes."""

from cleanlab_grid import BEST_OF_LEVEL, BEST_OF_SPLIT, grid_rows, print_points
from measures import DRAW, wide
from peers import CLEANLAB, CLEANLAB_GIVEN, LOGISTIC, ORACLE, RATES, RIDGE
from several_classes_fits import OTHERS, REFINED, THEORY_ROWS
from several_classes_paper import PAPER_ROWS
from verdicts import mean_and_error

PEERS = (RIDGE, LOGISTIC, CLEANLAB, CLEANLAB_GIVEN, BEST_OF_LEVEL, BEST_OF_SPLIT, ORACLE)
SHOWN = (*REFINED, *OTHERS, *THEORY_ROWS, *PAPER_ROWS, *PEERS)


def print_tables(frame):
    """Print all tables of one part."""
    for name, rows in frame.groupby("set", sort=False):
        print_methods(rows, name)
        if len(grid_rows(rows)):
            print_points(rows)
    print()
    print_warnings(frame)


def print_methods(frame, title):
    """Print the measures of each method, and how far refined targets with known rates are above it."""
    table, n_draws = wide(frame), len(frame[DRAW].drop_duplicates())
    print(f"\n  {title}, {n_draws} draw{'s' if n_draws > 1 else ''}; mean ± standard error")
    print(f"  {'':34s} {'accuracy':14s} {'rates known beyond':19s} {'wrong labels':16s} {'expected − actual':18s} time")
    time_ours = frame.loc[frame["method"] == RATES, "seconds"].median()
    for method in SHOWN:
        mine = frame[frame["method"] == method]
        if len(mine):
            print(
                f"  {method:34s} {mean_and_error(mine['accuracy']):14s} "
                f"{mean_and_error(table[RATES] - table[method]) if method != RATES else '':19s} "
                f"{mean_and_error(mine['auroc_wrong'], 3):16s} {mean_and_error(100 * mine['expected_bias']):18s} "
                f"{mine['seconds'].median() / time_ours:.1f}"
            )


def print_warnings(frame):
    """Print what this library's classifiers warned of, beyond assumed rates."""
    for method, mine in frame[frame["warnings"].notna()].groupby("method", sort=False):
        print(f"  {method}: {len(mine)} warnings; " + "; ".join(mine["warnings"].unique()[:3]))
