"""The output of `unflip demo theory` on the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from unflip.cli.demo.theory_check import SETUP, Comparison, Demo, targets_at

_console = Console()


def show(result: Demo) -> None:
    """Print the accuracies that the theory predicts, and those of the simulation."""
    _console.print(
        f"\n{SETUP.n_rows} rows, {SETUP.n_features} features, two Gaussian classes "
        f"{2 * SETUP.mean_norm:g} standard deviations apart.\nClass proportions: "
        f"{SETUP.priors[0]:.0%} negative, {SETUP.priors[1]:.0%} positive. Noise rates: "
        f"{SETUP.eps_pos:.0%} of the positive and {SETUP.eps_neg:.0%} of the negative rows have a "
        "wrong label.\n"
    )
    _console.print(_table(result))
    oracle, naive, optimized = (
        result.at_headline(name).simulated for name in ("oracle", "naive", "optimized")
    )
    _console.print(
        f"\nLabel noise costs plain ridge {100 * (oracle - naive):.1f} points of accuracy. "
        "Regression on the posterior mean of the true label, the optimized target, recovers "
        f"{100 * (optimized - naive):.1f}. Both optimized targets are positive here, because most "
        "rows with a negative label are truly positive.\nThe last two rows fit an intercept. The "
        "other rows use the known origin, the midpoint of the class means, which adds "
        f"{100 * (optimized - result.with_intercept.simulated):.1f} points to the optimized "
        "targets.\nLPClassifier() estimates the noise rates and chooses the regularization "
        "strength. It regresses on refined targets, one per row, for which there is no prediction. "
        "It also sets the threshold by the class proportions, unlike the oracle, so it can be "
        "slightly more accurate.\n"
    )


def _table(result: Demo) -> Table:
    table = Table(title="Accuracy on clean labels, predicted by the theory and simulated")
    table.add_column("fit")
    for heading in ("targets t₋, t₊", "origin", "predicted", "simulated"):
        table.add_column(heading, justify="right")
    notes = {"oracle": " (clean labels)", "naive": " (plain ridge)"}
    for variant in result.curves:
        _add_row(table, variant, notes.get(variant, ""), "known", result.at_headline(variant))
    _add_row(table, "optimized", "", "intercept", result.with_intercept)
    table.add_row("LPClassifier()", "refined", "intercept", "", _simulated(result.default))
    return table


def _add_row(table: Table, variant: str, note: str, origin: str, comparison: Comparison) -> None:
    t_neg, t_pos = targets_at(variant, SETUP.eps_pos)
    table.add_row(
        variant + note,
        f"{t_neg:+.2f}, {t_pos:+.2f}",
        origin,
        f"{comparison.predicted:.1%}",
        _simulated(comparison),
    )


def _simulated(comparison: Comparison) -> str:
    return f"{comparison.simulated:.1%} ± {comparison.standard_error:.1%}"
