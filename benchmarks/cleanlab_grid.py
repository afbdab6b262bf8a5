"""The best of cleanlab's grid points, chosen on the test rows in its favour."""

import pandas as pd

from measures import DRAW
from peers import GRID

BEST_OF_ALL = "cleanlab best per part"
BEST_OF_LEVEL = "cleanlab best per level"
BEST_OF_SPLIT = "cleanlab best per split"


def grid_rows(frame):
    """Return the results of all grid points."""
    return frame[frame["method"].str.startswith(GRID)]


def with_best(frame):
    """Add cleanlab's best grid points by test accuracy; their time is that of the whole search."""
    grid = grid_rows(frame)
    if grid.empty:
        return frame
    cost = grid.groupby(DRAW)["seconds"].sum()
    picked = {BEST_OF_ALL: [], BEST_OF_LEVEL: ["set", "level"], BEST_OF_SPLIT: DRAW}
    extra = [searched(best_points(grid, by), cost, name) for name, by in picked.items()]
    return pd.concat([frame, *extra], ignore_index=True)


def best_points(grid, by, measure="accuracy"):
    """Return the results of the grid point with the best mean in each group."""
    keys = [grid[key] for key in by]
    means = grid.groupby([*by, "method"])[measure].mean()
    if not by:
        return grid[grid["method"] == means.idxmax()]
    best = means.groupby(by).idxmax().map(lambda index: index[-1])
    wanted = pd.MultiIndex.from_arrays(keys) if len(by) > 1 else keys[0]
    return grid[grid["method"].to_numpy() == best.reindex(wanted).to_numpy()]


def searched(rows, cost, name):
    """Rename results of grid points, and set their time to that of the whole search."""
    seconds = cost.reindex(pd.MultiIndex.from_frame(rows[DRAW])).to_numpy()
    return rows.assign(point=rows["method"], method=name, seconds=seconds)


def print_points(frame):
    """Print the accuracy of each grid point, and its AUROC of wrong labels."""
    means = grid_rows(frame).groupby("method", sort=False)[["accuracy", "auroc_wrong"]].mean()
    cells = (
        f"{name.removeprefix(GRID)} {row['accuracy']:.2f} (wrong labels {row['auroc_wrong']:.3f})"
        for name, row in means.iterrows()
    )
    print("\n  cleanlab, accuracy by C: " + "; ".join(cells))
