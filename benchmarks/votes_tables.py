"""Tables and checks of `votes.py`."""

import numpy as np

from page_tables import show
from verdicts import verdict
from votes_peers import PEERS

COMMAND = "python benchmarks/votes.py"

# Names of the methods of this library, and of the oracle.
VOTES = "unflip, votes"
ONE_MATRIX = "unflip, votes, one matrix for all annotators"
LABELS = "unflip, majority labels"
ORACLE = "true labels"
METHODS = (VOTES, ONE_MATRIX, LABELS, *PEERS, ORACLE)

# Mean number of suspects from which their false discovery rate is judged.
FEWEST_SUSPECTS = 10

# How some methods are shown on the page.
EMPHASIS = {VOTES: "**{}**", ORACLE: "*{}*"}

# What is compared: column of the results, and its name.
MEASURES = {"voted": "relabelled rows", "test": "test rows"}


def print_tables(frame, write):
    """Print all tables and checks."""
    for (name, method), lines in frame.dropna(subset="failure").groupby(["set", "method"]):
        print(f"{method} fails on {name}, {len(lines)} draws: {lines['failure'].iloc[0]}")
    for (is_part, name), draws in frame.groupby([frame["draw"] > 0, "set"], sort=False):
        print_set("four fifths of the rows" if is_part else "all rows", name, draws)
    print_page(frame, write)
    for measure in MEASURES:
        judge_best(frame, measure)
        judge_mean(frame, measure)
    judge_majority(frame)
    print_claims(frame)


def subsets(frame):
    """Return the draws of four fifths of the rows, or draw 0 if there are no others."""
    return frame[frame["draw"] > 0] if frame["draw"].max() > 0 else frame


def means(frame, measure):
    """Return the mean over draws, sets × methods; NaN where a method fails."""
    table = frame.pivot_table(
        index="set",
        columns="method",
        values=measure,
        aggfunc=lambda values: values.mean(skipna=False),
        sort=False,
        dropna=False,
    )
    return table.reindex(columns=METHODS)


def print_set(title, name, frame):
    """Print all measures of one set."""
    print(f"\n{name}, {title}, {frame['draw'].nunique()} draws, means")
    columns = ["voted", "all_rows", "test", "claimed_voted", "claimed_all", "claimed_test"]
    table = frame.groupby("method", sort=False)[[*columns, "auroc", "seconds"]].mean()
    table[columns] *= 100
    print(table.to_string(float_format=lambda value: f"{value:.3f}", na_rep="-"))


def print_page(frame, write):
    """Print the accuracies in percent, AUROC and time, by method and set."""
    draws = subsets(frame)
    actual = {column: means(draws, column) for column in ("voted", "test", "all_rows")}
    claimed = {column: means(draws, f"claimed_{column.removesuffix('_rows')}") for column in actual}
    auroc = means(draws, "auroc").mean(skipna=False)
    seconds = means(draws, "seconds").sum(skipna=False)
    is_full = actual["voted"][VOTES] == actual["all_rows"][VOTES]
    with_gaps = list(is_full.index[~is_full])
    names = [*is_full.index, "mean", *(f"{name}, all rows" for name in with_gaps)]
    lines = [["", *names, "AUROC", "seconds"]]
    for method in METHODS:
        if method in set(draws["method"]):
            cells = accuracies(actual, method, with_gaps)
            ends = [hundredth(auroc[method]), whole(seconds[method])]
            lines.append([EMPHASIS.get(method, "{}").format(method), *cells, *ends])
    lines.insert(2, ["*claimed*", *accuracies(claimed, VOTES, with_gaps), "", ""])
    show("votes.md", COMMAND, lines, write)


def accuracies(tables, method, with_gaps):
    """Return the cells with the accuracies of labels and classifier, and of the labels of all rows.

    The latter are of the sets with rows without votes.
    """
    voted, test, all_rows = (tables[column][method] for column in ("voted", "test", "all_rows"))
    cells = [joined(voted[name], test[name]) for name in voted.index]
    mean = joined(voted.mean(skipna=False), test.mean(skipna=False))
    return [*cells, mean, *(tenth(all_rows[name]) for name in with_gaps)]


def joined(voted, test):
    """Format the accuracies of labels and classifier in percent."""
    return "-" if np.isnan(voted) else f"{tenth(voted)} / {tenth(test)}"


def tenth(value):
    """Format a proportion in percent."""
    return "-" if np.isnan(value) else f"{100 * value:.1f}"


def hundredth(value):
    """Format an AUROC."""
    return "-" if np.isnan(value) else f"{value:.3f}".lstrip("0")


def whole(value):
    """Format seconds."""
    return "-" if np.isnan(value) else f"{value:.0f}"


def paired_error(frame, measure, name, method):
    """Return the standard error of the gain over a method, by the rows of draw 0.

    It takes rows as independent: the variance of the difference of two indicators, over their
    number. Draws of four fifths share most of their rows, so their spread is no standard error.
    """
    line = frame[(frame["draw"] == 0) & (frame["set"] == name) & (frame["method"] == method)]
    n_rows, gained, lost = (
        float(line[column].iloc[0])
        for column in (f"n_{measure}", f"{measure}_gained", f"{measure}_lost")
    )
    mean = (gained - lost) / n_rows
    return float(np.sqrt(((gained + lost) / n_rows - mean**2) / n_rows))


def peers_of(table):
    """Return the peers that a table of means has."""
    return table[[peer for peer in PEERS if peer in table and table[peer].notna().any()]]


def judge_best(frame, measure):
    """Check each set against its best peer; the standard error is that of `paired_error`."""
    table = means(subsets(frame), measure)
    for name, best in peers_of(table).idxmax(axis=1).items():
        gain = table.loc[name, VOTES] - table.loc[name, best]
        error = paired_error(frame, measure, name, best)
        verdict(
            gain >= -error,
            f"{name}, {MEASURES[measure]}: ≥ best peer − 1 standard error by rows",
            f"{100 * gain:+.1f} ± {100 * error:.1f} ({best})",
        )


def judge_mean(frame, measure):
    """Check the mean over sets against every peer; on the sets on which it works, if it fails."""
    table = means(subsets(frame), measure)
    gains = 100 * peers_of(table).rsub(table[VOTES], axis=0).mean()
    closest = gains.idxmin()
    verdict(
        gains.min() > 0,
        f"mean over sets, {MEASURES[measure]}: > best peer",
        f"{gains.min():+.1f} ({closest}); "
        + ", ".join(f"{peer} {gain:+.1f}" for peer, gain in gains.items() if peer != closest),
    )


def judge_majority(frame):
    """Check that nothing is less accurate than majority labels with logistic regression."""
    for measure, what in (*MEASURES.items(), ("all_rows", "all rows")):
        table = means(subsets(frame), measure)
        gains = 100 * (table[VOTES] - table["majority"])
        verdict(
            gains.min() >= 0,
            f"{what}: ≥ majority labels and logistic regression on every set",
            ", ".join(f"{name} {gain:+.1f}" for name, gain in gains.items()),
        )


def print_claims(frame):
    """Print claimed minus true accuracy, without a target."""
    print(f"\n  {VOTES}: claimed − true accuracy in percentage points, mean over all draws")
    for name, mine in frame[frame["method"] == VOTES].groupby("set", sort=False):
        errors = {
            "rows with votes": mine["claimed_voted"] - mine["voted"],
            "all rows": mine["claimed_all"] - mine["all_rows"],
            "test rows": mine["claimed_test"] - mine["test"],
        }
        parts = [f"{what} {100 * error.mean():+.1f}" for what, error in errors.items()]
        error = 100 * mine["claimed_test_std"].mean()
        print(f"        {name}: {', '.join(parts)} (its standard error: {error:.1f})")


def print_audits(frame, write):
    """Print what audits claim with and without checked rows, and check it."""
    checked = frame[frame["checks"] > 0]
    unchecked = frame[frame["checks"] == 0].set_index("set")
    rows = [
        [
            *("labels", "right, %", "without checks", "95% interval"),
            *("error with 100 checks", "covered", "suspects", "false"),
        ]
    ]
    found, rates = {}, {}
    for name, lines in checked.groupby("set", sort=False):
        error = (lines["claimed"] - lines["labels"]).abs()
        covered = lines["labels"].between(lines["low"], lines["high"])
        found[name] = f"{lines['false_discoveries'].sum()} of {lines['n_suspects'].sum()}"
        if lines["n_suspects"].mean() >= FEWEST_SUSPECTS:
            rates[name] = lines["false_discoveries"].sum() / lines["n_suspects"].sum()
        first = unchecked.loc[name]
        rows.append(
            [
                name,
                tenth(first["labels"]),
                tenth(first["claimed"]),
                f"{tenth(first['low'])}–{tenth(first['high'])}",
                tenth(error.mean()),
                f"{covered.sum()} of {len(lines)}",
                f"{lines['n_suspects'].mean():.0f}",
                found[name],
            ]
        )
    show("votes.md", f"{COMMAND} audits", rows, write)
    for what, claimed, low, high in (
        ("labels", "claimed", "low", "high"),
        ("predictions", "claimed_predictions", "low_predictions", "high_predictions"),
    ):
        gaps = (checked[claimed] - checked[what]).abs().groupby(checked["set"], sort=False).mean()
        verdict(gaps.max() <= 0.03, f"|claimed − true share of right {what}| ≤ .03", listed(gaps))
        outside = unchecked[~unchecked[what].between(unchecked[low], unchecked[high])]
        verdict(
            outside.empty,
            f"without checks, the interval contains the share of right {what} on every set",
            ", ".join(outside.index) or f"{len(unchecked)} of {len(unchecked)}",
        )
    verdict(
        max(rates.values()) <= 0.13,
        f"false discovery rate ≤ .13, of sets with {FEWEST_SUSPECTS} suspects or more",
        f"{listed(rates)}; of all: {', '.join(f'{name} {text}' for name, text in found.items())}",
    )
    alone = {
        name: f"{line['false_discoveries']:.0f} of {line['n_suspects']:.0f}"
        for name, line in unchecked.iterrows()
    }
    print(f"        without checks: {', '.join(f'{name} {text}' for name, text in alone.items())}")


def listed(values):
    """Format a value for each set."""
    return ", ".join(f"{name} {value:.3f}" for name, value in values.items())
