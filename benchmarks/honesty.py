"""Honest numbers: audits and evaluations with 0 to 200 checked rows, against the truth.

Sets with labels of real annotators, and controls with class-conditional noise, from UNFLIP_DATA.
Rows to check are drawn by `check_next`.
"""

import numpy as np
import pandas as pd

import honesty_audits
import honesty_evaluations
import honesty_stopping
from page_tables import short, show
from parts import announced, has_data, parsed
from verdicts import verdict

PAGE = "checked_rows.md"
EVALUATION_PAGE = "evaluation.md"
COMMAND = "python benchmarks/honesty.py"
# Suspects from which on a set has a false discovery rate.
FEWEST_SUSPECTS = 10
KINDS = {"real": "real labels", "control": "controls"}
# Targets at 50, 100 and 200 checks: errors of the accuracy and of the share of wrong labels.
ACCURACY_ERRORS = {50: 0.03, 100: 0.022, 200: 0.017}
WRONG_ERRORS = {50: 0.03, 100: 0.025, 200: 0.018}


def judge_audits(lines, write):
    """Print the tables of the audits, with PASS or MISS for each target."""
    sets = by_set(lines)
    show(PAGE, f"{COMMAND} audits", audit_table(sets), write)
    show(PAGE, f"{COMMAND} sets", set_table(sets), write)
    for checks in honesty_audits.CHECKS:
        real = sets[(sets.kind == "real") & (sets.checks == checks)]
        control = sets[(sets.kind == "control") & (sets.checks == checks)]
        rates = real[real.n_suspects >= FEWEST_SUSPECTS].false_discovery_rate
        flips = control[control.n_suspects >= FEWEST_SUSPECTS].false_discovery_rate
        limits = (
            ("error of the accuracy", real.error.mean(), "<=", ACCURACY_ERRORS[checks]),
            ("coverage", real.covered.mean(), ">=", 0.94),
            ("coverage of the worst set", real.covered.min(), ">=", 0.86),
            ("width relative to counting", real.relative_width.mean(), "<=", 0.8),
            ("false discovery rate", rates.mean(), "<=", 0.09),
            ("false discovery rate of the worst set", rates.max(), "<=", 0.14),
            (
                "error of the share of wrong labels",
                real.wrong_error.mean(),
                "<=",
                WRONG_ERRORS[checks],
            ),
            ("coverage of the share of wrong labels", real.wrong_covered.mean(), ">=", 0.93),
            ("checked rows: accuracy beyond that of others", real.leak.abs().mean(), "<=", 0.03),
            ("controls: log-loss beyond noise rates", control.log_loss_change.mean(), "<=", 0.005),
            ("the same, worst set", control.log_loss_change.max(), "<=", 0.005),
            (
                "controls: AUROC below noise rates, worst set",
                -control.auroc_change.min(),
                "<=",
                0.007,
            ),
            ("controls: false discovery rate of the worst set", flips.max(), "<=", 0.14),
        )
        print_verdicts(f"{checks} checks", limits)
    unchecked = sets[sets.checks == 0]
    widest = unchecked[unchecked.kind == "control"].width.max()
    limits = [
        (
            f"{name}: coverage of every set",
            unchecked[unchecked.kind == kind].covered.min(),
            ">=",
            1.0,
        )
        for kind, name in KINDS.items()
    ]
    photographs = unchecked[unchecked.set == "photographs, synthetic noise"]
    print_verdicts(
        "0 checks",
        [
            *limits,
            ("controls: width", widest, "<=", 0.4),
            (
                "synthetic photographs: error of the accuracy",
                photographs.class_conditional_error.abs().max(),
                "<=",
                0.02,
            ),
        ],
    )


def print_verdicts(heading, limits):
    """Print PASS or MISS for values with limits."""
    print(heading)
    for name, value, relation, limit in limits:
        passed = value <= limit if relation == "<=" else value >= limit
        verdict(passed, f"{name} {relation} {short(limit)}", short(value))


def by_set(lines):
    """Return the means over the draws of each set and number of checks."""
    lines = lines.assign(
        error=lines.accuracy_error.abs(),
        covered=lines.accuracy_covered,
        width=lines.accuracy_width,
        relative_width=lines.accuracy_width / lines.wilson_width,
        class_conditional_error=lines.class_conditional_error,
        wrong_error=lines.wrong_error.abs(),
        leak=lines.accuracy_of_checked - lines.accuracy_if_unchecked,
        log_loss_change=lines.log_loss - lines.log_loss_before,
        auroc_change=lines.auroc - lines.auroc_before,
        false_discovery_rate=lines.false_discoveries / lines.n_suspects.replace(0, np.nan),
    )
    keys = ["kind", "set", "checks"]
    return lines.groupby(keys, sort=False).mean(numeric_only=True).reset_index()


def audit_table(sets):
    """Return the lines of the table of means over the sets."""
    header = (
        "sets",
        "checks",
        "accuracy: error",
        "coverage",
        "width (relative)",
        "wrong labels: error",
        "coverage",
        "FDR",
        "log-loss (by noise rates)",
        "calibration error",
    )
    rows = [header]
    for (kind, checks), group in sets.groupby(["kind", "checks"], sort=False):
        rates = group[group.n_suspects >= FEWEST_SUSPECTS].false_discovery_rate
        relative = "" if not checks else f" ({short(group.relative_width.mean(), digits=2)})"
        rows.append(
            (
                f"{group.set.nunique()} {KINDS[kind]}",
                str(checks),
                short(group.error.mean()),
                with_worst(group.covered.mean(), group.covered.min()),
                short(group.width.mean()) + relative,
                short(group.wrong_error.mean()),
                with_worst(group.wrong_covered.mean(), group.wrong_covered.min()),
                with_worst(rates.mean(), rates.max()) if checks and len(rates) else "",
                f"{short(group.log_loss.mean())} ({short(group.log_loss_before.mean())})",
                short(group.calibration_error.mean()),
            )
        )
    return rows


def with_worst(mean, worst):
    """Format a mean with the worst set in brackets."""
    return f"{short(mean, digits=2)} ({short(worst, digits=2)})"


def set_table(sets):
    """Return the lines of the table of single sets with 100 checks."""
    header = (
        "set",
        "accuracy",
        "error by noise rates",
        "error",
        "coverage",
        "width",
        "suspects",
        "FDR",
        "0 checks: interval contains it",
    )
    rows = [header]
    unchecked = sets[sets.checks == 0].set_index("set")
    for line in sets[sets.checks == 100].itertuples():
        has_suspects = line.n_suspects >= FEWEST_SUSPECTS
        before = unchecked.loc[line.set]
        rows.append(
            (
                line.set,
                short(line.accuracy),
                short(abs(before.class_conditional_error)),
                short(line.error),
                short(line.covered, digits=2),
                short(line.width),
                f"{line.n_suspects:.0f}",
                short(line.false_discovery_rate, digits=2) if has_suspects else "",
                "yes" if before.covered == 1 else "no",
            )
        )
    return rows


def judge_evaluations(lines, write):
    """Print the tables of the evaluations and comparisons, with PASS or MISS."""
    lines = lines.assign(size=lines.error.abs())
    metrics = lines[lines.metric != "difference"]
    keys = ["scores", "checks", "metric", "set", "model"]
    means = metrics.groupby(keys, sort=False).mean(numeric_only=True).reset_index()
    # Of means, because counting gives an interval of length 0 if all checked rows agree.
    means = means.assign(relative_width=means.width / means.counted_width)
    show(EVALUATION_PAGE, f"{COMMAND} evaluations", evaluation_table(means), write)
    limits = []
    for (checks, metric), group in means[
        (means.scores == "probabilities") & (means.checks > 0)
    ].groupby(["checks", "metric"], sort=False):
        name = f"{checks} checks, {metric}"
        limits.append((f"{name}: coverage", group.covered.mean(), ">=", 0.93))
        if checks >= 100:
            limits.append((f"{name}: width", group.relative_width.mean(), "<=", 0.8))
    print_verdicts("evaluations", limits)
    pairs = lines[lines.metric == "difference"]
    apart = pairs[pairs.truth.abs() > honesty_evaluations.APART]
    show(EVALUATION_PAGE, f"{COMMAND} comparisons", comparison_table(pairs, apart), write)
    chosen = apart[apart.checks == 200].chosen.astype(float).mean()
    print_verdicts("comparisons", [("200 checks: right model chosen", chosen, ">=", 0.95)])


def evaluation_table(means):
    """Return the lines of the table of metrics."""
    rows = [("scores", "checks", "metric", "error", "coverage (worst model)", "width", "relative")]
    for (scores, checks, metric), group in means.groupby(
        ["scores", "checks", "metric"], sort=False
    ):
        relative = group.relative_width.mean()
        rows.append(
            (
                scores,
                str(checks),
                metric.replace("_", " "),
                short(group["size"].mean()),
                with_worst(group.covered.mean(), group.covered.min()),
                short(group.width.mean()),
                "" if np.isnan(relative) else short(relative, digits=2),
            )
        )
    return rows


def comparison_table(pairs, apart):
    """Return the lines of the table of pairs of models."""
    rows = [("checks", "pairs", "coverage", "width", "right one chosen")]
    for name, some in (("all", pairs), (f"{honesty_evaluations.APART:.0%} apart or more", apart)):
        for checks, group in some.groupby("checks"):
            rows.append(
                (
                    str(checks),
                    f"{name} ({group.groupby(['set', 'model']).ngroups})",
                    short(group.covered.astype(float).mean(), digits=2),
                    short(group.width.mean()),
                    short(group.chosen.astype(float).mean(), digits=2),
                )
            )
    return rows


def judge_stopping(lines, write):
    """Print the table of predicted intervals, with PASS or MISS."""
    rows = [("set", "checks", "width", "after 100 more: predicted", "actual", "right decisions")]
    for (name, checks), group in lines.groupby(["set", "checks"], sort=False):
        rows.append(
            (
                name,
                str(checks),
                short(group.width.mean()),
                short(group.predicted.mean()),
                short(group.actual.mean()),
                short(group.is_right.mean(), digits=2),
            )
        )
    show(PAGE, f"{COMMAND} stopping", rows, write)
    each = lines.groupby("set").is_right.mean()
    print_verdicts("stopping", [("right decisions, worst set", each.min(), ">=", 0.9)])


# For each part: what runs it, what prints it, draws of a full run, draws of a quick run.
PARTS = {
    "audits": (honesty_audits.run, judge_audits, 50, 2),
    "evaluations": (honesty_evaluations.run, judge_evaluations, 50, 2),
    "stopping": (honesty_stopping.run, judge_stopping, 50, 5),
}


def main():
    """Run the parts, print their tables and store their lines."""
    options = parsed(
        __doc__,
        PARTS,
        ("--draws", "draws of the checks of each set"),
        "two draws of each set",
        stored=True,
        write=f"write the tables into docs/{PAGE} and docs/{EVALUATION_PAGE}",
    )
    for part in options.parts or PARTS:
        run, judge, full, quick = PARTS[part]
        path = options.out / f"honesty_{part}.csv"
        if not options.stored:
            if not has_data(part):
                continue
            draws = options.draws or (quick if options.quick else full)
            with announced(part, f"{draws} draws of each set"):
                options.out.mkdir(parents=True, exist_ok=True)
                pd.DataFrame(list(run(draws))).to_csv(path, index=False)
        judge(pd.read_csv(path), options.write)


if __name__ == "__main__":
    main()
