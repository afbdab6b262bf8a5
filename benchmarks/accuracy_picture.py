"""Figure of accuracy.py: accuracy of each method at each pair of noise rates."""

import numpy as np

from cleanlab_grid import BEST_OF_LEVEL
from peers import CLEANLAB, DEFAULT, LOGISTIC, ORACLE, OURS, PRIORS, RATES, RIDGE


def picture(frame, path):
    """Draw the accuracy of each method at each pair of noise rates."""
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    methods = [RATES, PRIORS, DEFAULT, RIDGE, LOGISTIC, CLEANLAB, BEST_OF_LEVEL, ORACLE]
    levels = list(dict.fromkeys(frame["level"]))
    fig, axes = plt.subplots(1, len(levels), figsize=(11, 3.6), sharey=True, layout="constrained")
    for ax, level in zip(axes, levels, strict=True):
        for place, method in enumerate(methods):
            values = frame[(frame["method"] == method) & (frame["level"] == level)]["accuracy"]
            half = 1.96 * values.std() / np.sqrt(max(len(values), 1))
            colour = colour_of(method)
            ax.errorbar(values.mean(), place, xerr=half, fmt="o", color=colour, capsize=3)
        eps_pos, eps_neg = level.split("/")
        ax.set(
            title=f"ε₊ = {eps_pos}, ε₋ = {eps_neg}",
            xlabel="accuracy in %",
            yticks=range(len(methods)),
        )
        ax.grid(axis="x", alpha=0.3)
    axes[0].set_yticklabels(
        [m if m != BEST_OF_LEVEL else "cleanlab, best on test rows" for m in methods]
    )
    axes[0].invert_yaxis()
    fig.savefig(path, dpi=150)
    plt.close(fig)


def colour_of(method):
    """Return the colour of this library, of the oracle, or of the other methods."""
    if method in OURS:
        return "C0"
    return "0.2" if method == ORACLE else "C1"
