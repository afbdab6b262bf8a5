"""Tables and checks of any_model.py."""

import numpy as np

from any_model_fits import (
    CLEANLAB,
    KERNEL,
    LEVELS,
    LINEAR,
    LINEAR_PRIORS,
    MODELS,
    ONE,
    ONE_PRIORS,
    PLAIN,
    PRIORS,
    RATES,
    SIX,
    SIX_PRIORS,
    THRESHOLDS,
    UNKNOWN,
)
from page_tables import show
from verdicts import standard_error, verdict

COMMAND = "python benchmarks/any_model.py"
HARD = (".3/.1", ".4/.2")
OURS = (UNKNOWN, PRIORS, RATES)
LINEARS = (LINEAR, LINEAR_PRIORS)
AROUND = (PLAIN, CLEANLAB, ONE, SIX, THRESHOLDS, ONE_PRIORS, SIX_PRIORS)


def print_accuracy(frame, write):
    """Print all tables and checks."""
    print_means(frame, write)
    judge_kernels(frame)
    judge_cells(frame)
    judge_expected(frame)
    judge_wrong_labels(frame)
    judge_linear(frame)
    judge_models(frame)
    judge_time(frame)


def cell_means(frame, measure="accuracy"):
    """Return the mean over draws of each set and level, by model and method."""
    return frame.pivot_table(
        index=["set", "level"], columns=["model", "method"], values=measure, aggfunc="mean"
    )


def level_means(frame, measure="accuracy"):
    """Return the mean over sets by level (rows), and by model and method (columns)."""
    return cell_means(frame, measure).groupby(level="level").mean().loc[list(LEVELS)]


def print_means(frame, write):
    """Print the accuracies by noise level, in percent: kernels and the best peers, each model."""
    means = 100 * level_means(frame)
    lines = [[f"**unflip, kernel, {method}**", *tenths(means[(KERNEL, method)])] for method in OURS]
    lines += [[f"unflip, {method}", *tenths(means[(KERNEL, method)])] for method in LINEARS]
    for method in (PLAIN, CLEANLAB, THRESHOLDS):
        of_models = means[[(model, method) for model in MODELS]]
        best = zip(tenths(of_models.max(axis=1)), of_models.idxmax(axis=1), strict=True)
        lines.append([f"best model, {method}", *(f"{value} ({key[0]})" for value, key in best)])
    show("kernels.md", COMMAND, [["", *LEVELS], *lines], write)
    lines = [
        [f"**{model}**" if method == PLAIN else "", method, *tenths(means[(model, method)])]
        for model in MODELS
        for method in AROUND
    ]
    show("any_classifier.md", COMMAND, [["", "", *LEVELS], *lines], write)


def tenths(values):
    """Format percentages."""
    return [f"{value:.1f}" for value in values]


def peers(with_thresholds):
    """Return the models and methods that unflip is compared with."""
    methods = (PLAIN, CLEANLAB, THRESHOLDS) if with_thresholds else (PLAIN, CLEANLAB)
    return [(model, method) for model in MODELS for method in methods]


def judge_kernels(frame):
    """Check the mean accuracy of the kernel fit against every peer."""
    means = 100 * level_means(frame)
    for method, with_thresholds in ((UNKNOWN, False), (PRIORS, True)):
        ours = means[(KERNEL, method)]
        best = means[peers(with_thresholds)].max(axis=1)
        names = means[peers(with_thresholds)].idxmax(axis=1)
        for level in LEVELS:
            target = 0.0 if level in HARD else -0.5
            gain = ours[level] - best[level]
            verdict(
                gain >= target,
                f"kernel, {method}, at {level}: ≥ best peer {target:+g}",
                f"{gain:+.2f} (best peer: {', '.join(names[level])})",
            )


def judge_cells(frame):
    """Check on how many sets and levels the kernel fit is best or within its error of the best."""
    for method, with_thresholds in ((UNKNOWN, False), (PRIORS, True)):
        wide = frame.pivot_table(
            index=["set", "level", "draw"], columns=["model", "method"], values="accuracy"
        )
        wins = []
        for _, cell in wide.groupby(level=["set", "level"]):
            best = cell[peers(with_thresholds)].mean().idxmax()
            gain = (cell[(KERNEL, method)] - cell[best]).to_numpy()
            wins.append(gain.mean() + np.nan_to_num(standard_error(gain)) >= 0)
        verdict(
            np.mean(wins) >= 0.6,
            f"kernel, {method}: best, or within a standard error of the best peer, ≥ 60% of cells",
            f"{np.mean(wins):.0%} of {len(wins)}",
        )


def judge_expected(frame):
    """Check the expected accuracies."""
    frame = frame.assign(error=frame["expected"] - frame["accuracy"])
    frame = frame[frame["model"] == KERNEL]
    for method in OURS + LINEARS:
        rows = frame[frame["method"] == method]
        error = rows["error"]
        text = (
            f"{error.abs().mean():.3f}, bias {error.mean():+.3f}; {mean_sampling_error(rows):.3f} "
            "of it would remain with the true accuracy, by the number of test rows; "
            f"{coverage(rows):.0%} within 2 standard errors"
        )
        if method in OURS:
            target = f"kernel, {method}: |expected − true accuracy| ≤ .03"
            verdict(error.abs().mean() <= 0.03, target, text)
        else:
            print(f"        {method}: {text}")


def coverage(rows):
    """Return the share of errors of at most 2 standard errors, those of the test rows included."""
    variance = rows["accuracy"] * (1 - rows["accuracy"]) / rows["n_test"]
    return float((rows["error"].abs() <= 2 * np.sqrt(rows["expected_std"] ** 2 + variance)).mean())


def mean_sampling_error(rows):
    """Return the mean absolute error of the accuracy on the test rows."""
    variance = rows["accuracy"] * (1 - rows["accuracy"]) / rows["n_test"]
    return float((np.sqrt(2 / np.pi) * np.sqrt(variance)).mean())


def judge_wrong_labels(frame):
    """Check the AUROC of the wrong labels against cleanlab's best score of any model."""
    means = cell_means(frame, "auroc").dropna()
    ours = means[(KERNEL, UNKNOWN)]
    each = means[[(model, CLEANLAB) for model in MODELS]]
    best = each.mean().idxmax()
    gain = ours.mean() - each.mean().max()
    verdict(gain >= 0.02, f"AUROC ≥ .02 above cleanlab with {best[0]}", f"{gain:+.3f}")
    gain = (ours - each.max(axis=1)).mean()
    print(f"        above the best of all models in each cell: {gain:+.3f}")


def judge_linear(frame):
    """Print the sets on which the chosen features are less accurate than linear ones."""
    means = 100 * cell_means(frame).groupby(level="set").mean()[KERNEL]
    for chosen, linear in ((UNKNOWN, LINEAR), (PRIORS, LINEAR_PRIORS)):
        gain = (means[chosen] - means[linear]).sort_values()
        losses = ", ".join(f"{name} {value:+.1f}" for name, value in gain[gain < -0.2].items())
        print(f"        chosen features, {chosen}: less accurate than linear on {losses or 'none'}")


def judge_models(frame):
    """Check each model inside unflip against CleanLearning around it, and against itself."""
    several = frame[frame["classes"] > 2]
    means = 100 * level_means(frame)
    uniform = 100 * level_means(several)
    for model in MODELS:
        for method in (ONE, SIX):
            ours = (model, method)
            peer = (model, CLEANLAB)
            gains = {
                f"at {level}": means.loc[level, ours] - means.loc[level, peer] for level in HARD
            }
            level = ".3/.1"
            gains["several classes at .3"] = uniform.loc[level, ours] - uniform.loc[level, peer]
            for where, gain in gains.items():
                verdict(gain > 0, f"{model}, {method}, {where}: > CleanLearning", f"{gain:+.2f}")
            loss = means.loc["none", ours] - means.loc["none", (model, PLAIN)]
            verdict(loss >= -0.3, f"{model}, {method}, no noise: ≥ plain − .3", f"{loss:+.2f}")


def judge_time(frame):
    """Check the time of a kernel fit against CleanLearning around boosting, set by set."""
    times = frame.pivot_table(
        index="set", columns=["model", "method"], values="seconds", aggfunc="median"
    )
    ratio = times[(KERNEL, UNKNOWN)] / times[("boosting", CLEANLAB)]
    verdict(
        ratio.max() <= 1,
        "kernel fit, features chosen: ≤ the time of CleanLearning(boosting) on every set",
        f"{ratio.max():.2f} at most ({ratio.idxmax()}), median {ratio.median():.2f}",
    )
