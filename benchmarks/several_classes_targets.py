"""Targets of several_classes.py, and whether they are reached."""

from cleanlab_grid import BEST_OF_LEVEL, BEST_OF_SPLIT
from measures import wide
from peers import CLEANLAB, CLEANLAB_GIVEN, DEFAULT, RATES
from several_classes_fits import BOTH, OTHERS, TRUSTED
from several_classes_paper import PAPER, THEORY_GAMMAS, N, best_pair, paper_setting
from unflip import targets, theory
from verdicts import mean_and_error, verdict


def judge_paper(frame):
    """Check the accuracy of refined targets in the paper's settings."""
    for name, least in (("3 classes", 77.5), ("4 classes", 96.0)):
        mine = of_method(frame[frame["set"] == name], BOTH)["accuracy"]
        verdict(mine.mean() >= least, f"{name}, {BOTH}, at least {least:g}%", mean_and_error(mine))
    for k in PAPER:
        means, noise = paper_setting(k)
        print(
            f"        {k} classes: Bayes "
            f"{100 * theory.multiclass_bayes_accuracy(means=means, noise=noise):.2f}"
        )
        for gamma in THEORY_GAMMAS:
            table = targets.multi_lpc(*best_pair(k, gamma))
            setting = {"means": means, "n": N, "noise": noise, "reg": gamma, "fit_intercept": True}
            predicted = theory.predict_multiclass(**setting, targets=table)
            print(
                f"        theory at γ = {gamma:g}: its (α, β) {100 * predicted.accuracy:.2f}, "
                f"best decision rule of one fit {100 * predicted.readout_accuracy:.2f}"
            )


def judge_scenes(frame):
    """Check accuracy and AUROC on the scenes, and the gain over cleanlab."""
    mine = of_method(frame, RATES)
    verdict(
        mine["accuracy"].mean() >= 91, f"{RATES}, at least 91%", mean_and_error(mine["accuracy"])
    )
    auroc = mine["auroc_wrong"]
    verdict(
        auroc.mean() >= 0.98,
        f"AUROC of wrong labels, {RATES}, at least .98",
        mean_and_error(auroc, 4),
    )
    for method in (TRUSTED, DEFAULT):
        judge_beyond(frame, method, BEST_OF_SPLIT, 0)


def judge_classics(frame):
    """Check refined targets against the best other option of this library, and cleanlab's best."""
    for name, rows in frame.groupby("set", sort=False):
        means = rows.groupby("method")["accuracy"].mean()
        for rivals in ((DEFAULT, *OTHERS), (CLEANLAB, CLEANLAB_GIVEN, BEST_OF_LEVEL)):
            best = means.reindex(rivals).dropna()
            if len(best):
                judge_beyond(rows, RATES, best.idxmax(), -1, f"{name}: ")


def judge_beyond(frame, a, b, least, prefix=""):
    """Check the mean paired difference a − b against a bound."""
    table = wide(frame)
    if b in table:
        difference = table[a] - table[b]
        what = f"{prefix}{a}, gain over {b} at least {least:+g}"
        verdict(difference.mean() >= least, what, mean_and_error(difference))


def of_method(frame, method):
    """Return the results of one method."""
    return frame[frame["method"] == method]
