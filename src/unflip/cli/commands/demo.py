"""unflip demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from unflip._utils.atomic_files import write_atomically
from unflip.cli.demo import theory_check as story
from unflip.cli.terminal import check_out, fail, working

_console = Console()


def demo(
    out: Annotated[Path, typer.Option(help="Where to write the picture (PNG).")] = Path(
        "unflip-demo.png"
    ),
) -> None:
    """Show what label noise does, what each variant gets, and what the theory predicted."""
    check_out(out, [".png"])
    with working("Simulating flipped labels"):
        try:
            from unflip.cli.demo.picture import (
                picture,
            )  # matplotlib takes a second that other commands need not wait
        except ModuleNotFoundError as missing:
            fail(f'demo needs {missing.name}; install it with: pip install "unflip[cli]"')
        result = story.run()
        write_atomically(out, picture(result))
    _console.print(
        f"\n{story.N_ROWS} rows, {story.N_FEATURES} features, two Gaussian classes "
        f"{2 * story.MEAN_NORM:g} standard deviations apart.\n{story.EPS_POS:.0%} of the positive "
        f"and {story.EPS_NEG:.0%} of the negative labels are flipped.\n"
    )
    _console.print(_table(result))
    oracle, naive, optimized = (
        result.at_headline(name).simulated for name in ("oracle", "naive", "optimized")
    )
    _console.print(
        f"\nFlips cost plain ridge {100 * (oracle - naive):.1f} points of accuracy; regressing on "
        f"the mean true label given the observed one brings {100 * (optimized - naive):.1f} "
        "back.\nThe last row does not know that the origin is the midpoint between the classes: "
        f"that knowledge is worth {100 * (optimized - result.with_intercept.simulated):.1f} "
        "points.\n"
    )
    _console.print(f"Picture: {out}", soft_wrap=True, highlight=False, markup=False)


def _table(result: story.Demo) -> Table:
    table = Table(title="Accuracy on clean labels")
    table.add_column("fit")
    for heading in ("targets t₋, t₊", "origin", "predicted", "simulated"):
        table.add_column(heading, justify="right")
    notes = {"oracle": " (no flips)", "naive": " (plain ridge)"}
    for variant in result.curves:
        _add_row(table, variant, notes.get(variant, ""), "known", result.at_headline(variant))
    _add_row(table, "optimized", "", "found", result.with_intercept)
    return table


def _add_row(
    table: Table, variant: str, note: str, origin: str, comparison: story.Comparison
) -> None:
    t_neg, t_pos = story.targets_at(variant, story.EPS_POS)
    simulated = f"{comparison.simulated:.1%} ± {comparison.standard_error:.1%}"
    table.add_row(
        variant + note,
        f"{t_neg:+.2f}, {t_pos:+.2f}",
        origin,
        f"{comparison.predicted:.1%}",
        simulated,
    )
