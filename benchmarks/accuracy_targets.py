"""Targets of accuracy.py, and whether they are reached."""

import numpy as np

from accuracy_tables import interval, paired, print_groups
from cleanlab_grid import BEST_OF_ALL, BEST_OF_LEVEL, best_points, grid_rows
from peers import CLEANLAB, DEFAULT, LOGISTIC_AWARE, ORACLE, OURS, PRIORS, RATES, RIDGE, RIDGE_AWARE
from verdicts import verdict


def judge_amazon(frame):
    """Targets of the balanced reviews."""
    for best in (BEST_OF_ALL, BEST_OF_LEVEL):
        judge_difference(frame, RATES, best, 0)
    judge_difference(frame, RATES, RIDGE, 11)
    judge_difference(frame, RATES, ORACLE, -2.6)
    judge_difference(frame, PRIORS, RATES, -0.4, 0.4)
    judge_difference(frame, DEFAULT, RIDGE, 9.5)
    judge_difference(frame, DEFAULT, CLEANLAB, 7)


def judge_imbalanced(frame):
    """Targets of the imbalanced reviews."""
    for best in (BEST_OF_ALL, BEST_OF_LEVEL):
        judge_difference(frame, RATES, best, 0)
        judge_difference(frame, PRIORS, best, 0)
    print(
        f"        {DEFAULT}: gain over cleanlab default "
        f"{interval(paired(frame, DEFAULT, CLEANLAB))}"
    )


def judge_votes(frame):
    """Targets of the annotators' votes."""
    for name, least in (("least accurate annotator", 71.5), ("random vote", 74.3)):
        mine = frame[(frame["set"] == name) & (frame["method"] == RATES)]["accuracy"]
        verdict(mine.mean() >= least, f"{name}, {RATES}, at least {least}%", f"{mine.mean():.2f}")


def judge_sklearn(frame):
    """Targets of breast cancer and digits, against the better peer with a noise-aware threshold."""
    for (name, level), rows in frame.groupby(["set", "level"], sort=False):
        means = rows.groupby("method")["accuracy"].mean()
        better = means[[RIDGE_AWARE, LOGISTIC_AWARE]].idxmax()
        judge_difference(
            rows,
            RATES,
            better,
            -1,
            what=f"{name} at {level}: {RATES}, gain over {better} at least -1",
        )


def judge_difference(frame, a, b, least, most=np.inf, what=None):
    """Check the mean paired difference a − b against bounds."""
    difference = paired(frame, a, b)
    if np.isnan(difference[0]):
        return
    bounds = f"at least {least:+g}" if most == np.inf else f"{least:+g} to {most:+g}"
    verdict(
        least <= difference[0] <= most,
        what or f"{a}, gain over {b} {bounds}",
        interval(difference),
    )


def judge_wrong_labels(frame):
    """Compare AUROC of wrong labels with cleanlab's, at its default and its best grid points."""
    grid = grid_rows(frame[frame["auroc_wrong"].notna()])
    if grid.empty:
        return
    peers = {"default": frame[frame["method"] == CLEANLAB]}
    peers["best grid point by AUROC"] = best_points(grid, ["part", "set", "level"], "auroc_wrong")
    by = ["part", "set", "level"]
    for method in (RATES, PRIORS, DEFAULT):
        mine = frame[frame["method"] == method].groupby(by)["auroc_wrong"].mean()
        for peer, rows in peers.items():
            gain = (mine - rows.groupby(by)["auroc_wrong"].mean()).dropna()
            name = f"AUROC of wrong labels, {method}, gain over cleanlab's {peer}"
            verdict(
                gain.min() >= -0.01,
                f"{name} at least -.01",
                f"{gain.min():+.3f} at {' '.join(gain.idxmin())}",
            )
            verdict(gain.mean() >= 0.03, f"{name} on average at least .03", f"{gain.mean():+.3f}")


def judge_expected(frame):
    """Check the bias of the expected accuracy, and how often it is within two standard errors."""
    for method in OURS:
        mine = frame[frame["method"] == method]
        groups = mine.groupby(["part", "set", "level"])[["expected_bias", "within_two"]].mean()
        bias = groups["expected_bias"].mean()
        within = groups["within_two"].mean()
        worst = groups["expected_bias"].abs().idxmax()
        reached = f"{bias:+.4f}; worst {groups['expected_bias'][worst]:+.3f} at {' '.join(worst)}"
        if method == RATES:
            verdict(abs(bias) <= 0.01, f"bias of expected accuracy, {method}, within ±.01", reached)
            verdict(within >= 0.9, "within two standard errors in 90%", f"{100 * within:.1f}%")
        else:
            print(
                f"        {method}: bias {reached}; within two standard errors {100 * within:.1f}%"
            )
    rows = frame[frame["method"].isin(OURS)]
    for part, mine in rows.groupby("part", sort=False):
        print_groups(part, mine, "expected_bias", 3)
        print_groups(part, mine, "within_two", 2)
