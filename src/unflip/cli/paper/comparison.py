"""Comparison of simulated points with predicted curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from unflip._utils.typing import FloatArray
from unflip.cli.paper.piece import Table
from unflip.plotting import style


def comparison_rows(
    labels: Mapping[str, object], draws: FloatArray, predicted: FloatArray, x: FloatArray
) -> Table:
    """Return one row per point of a curve.

    Parameters
    ----------
    labels : mapping
        Columns that identify the curve.
    draws : ndarray of shape (n_draws, n_points)
        Simulated values.
    predicted, x : ndarray of shape (n_points,)
        Predicted values and their positions.
    """
    return pd.DataFrame(
        {
            **labels,
            "x": x,
            "simulated": draws.mean(axis=0),
            "standard_error": draws.std(axis=0, ddof=1) / np.sqrt(len(draws)),
            "predicted": predicted,
            "draws": len(draws),
        }
    )


def largest_deviations(table: Table, curve: Sequence[str]) -> Table:
    """Return the largest |simulated − predicted| of every curve, also in standard errors."""
    difference = (table.simulated - table.predicted).abs()
    # A standard error below 1e-12 is rounding error.
    standard_errors = difference / np.maximum(table.standard_error, 1e-12)
    marked = table.assign(difference=difference, standard_errors=standard_errors)
    rows = marked.loc[marked.groupby(list(curve), sort=False).standard_errors.idxmax()]
    largest = marked.groupby(list(curve), sort=False).difference.max()
    return pd.DataFrame(
        {
            **{name: rows[name].to_numpy() for name in curve},
            "largest, in standard errors": rows.standard_errors.to_numpy(),
            "at": rows.x.to_numpy(),
            "difference there": rows.difference.to_numpy(),
            "largest difference": largest.to_numpy(),
        }
    )


def draw_curve(ax: Axes, points: Table, variant: str, *, label: str | None = None) -> None:
    """Plot the theory as a line and the simulation as markers with ± 2 standard errors."""
    colour = style.COLOURS[variant]
    ax.plot(points.x, points.predicted, color=colour)
    ax.errorbar(
        points.x,
        points.simulated,
        yerr=2 * points.standard_error,
        fmt=style.MARKERS[variant],
        color=colour,
        markersize=4,
        elinewidth=1,
        capsize=1.5,
        label=label or variant,
    )


def worst_sentence(deviations: Table) -> str:
    """Return a sentence about the largest difference between simulation and theory."""
    column = "largest, in standard errors"
    position = int(deviations[column].argmax())
    names = deviations.columns[: deviations.columns.get_loc(column)]
    curve = ", ".join(f"{name} = {deviations[name].iloc[position]}" for name in names)
    worst = deviations.iloc[position]
    within = (deviations[column] <= 4).sum()
    return (
        f"The largest |simulation − theory| on any curve is {worst[column]:.1f} standard errors "
        f"({worst['difference there']:.2g}, {curve}, at {worst['at']:.3g}); {within} of "
        f"{len(deviations)} curves stay within 4 everywhere."
    )
