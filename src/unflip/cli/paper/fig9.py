"""Figure 9: three and four classes, from the worst to the best Multi-LPC, and other classifiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unflip import targets as target_values
from unflip import theory
from unflip._utils.typing import FloatArray, IntArray
from unflip.cli.paper.piece import Piece, Settings, Table, Tables, Task, only
from unflip.datasets import make_mixture
from unflip.labels.noise import NoiseModel
from unflip.model.classifier import LPClassifier
from unflip.plotting import style
from unflip.ridge.spectrum.decomposition import decompose

_TRANSITIONS = {
    3: [[0.7, 0.3, 0.0], [0.0, 0.6, 0.4], [0.5, 0.0, 0.5]],
    4: [[0.5, 0.0, 0.5, 0.0], [0.0, 0.7, 0.0, 0.3], [0.0, 0.4, 0.6, 0.0], [0.3, 0.0, 0.0, 0.7]],
}
_PRIORS = {3: [0.3, 0.3, 0.4], 4: [0.3, 0.2, 0.3, 0.2]}
_NOISE = {k: NoiseModel(np.array(_TRANSITIONS[k]), np.array(_PRIORS[k])) for k in _PRIORS}


class Setup(NamedTuple):
    """The paper's settings of Figure 9; keys of the dictionaries are numbers of classes."""

    n_rows: int = 2000
    n_features: int = 200
    n_test: int = 4000
    reg: float = 1.0
    regs: FloatArray = np.logspace(-4, 4, 9)  # of naive and oracle
    n_pairs: int = 5000  # (α, β) of the search
    tau: FloatArray = np.linspace(0, 1, 50)
    # Coordinates of the class means on the first axis.
    positions: Mapping[int, Sequence[float]] = {3: [-2.0, 0.0, 2.0], 4: [-6.0, -2.0, 2.0, 6.0]}
    noise: Mapping[int, NoiseModel] = _NOISE


SETUP = Setup()
CALIBRATED = "Gaussian calibration of one fit"
REFINED = "refined"
BAYES = "Bayes"
WORST = "worst Multi-LPC"
BEST = "best Multi-LPC"
THEORY_BEST = "best Multi-LPC by theory"
ON_SEARCH_ROWS = "{}, on the rows of the search"
WITH_INTERCEPT = "{}, with an intercept"
# Colour, line style and width of the lines; a line that hides another is thinner.
_LOOKS = {
    "naive": ("naive", "-", 1.7),
    "oracle": ("oracle", "-", 1.7),
    CALIBRATED: ("optimized", "-", 3.2),
    REFINED: ("refined", "-", 1.3),
    BAYES: ("refined", ":", 1.3),
}


def class_means(k: int) -> FloatArray:
    """Return the means of the k classes, one row each."""
    return np.outer(SETUP.positions[k], np.eye(SETUP.n_features)[0])


def tasks(settings: Settings) -> list[Task]:
    """Return one task per number of classes and draw, and one per number of classes for theory."""
    draws = [
        Task(f"k{k}-{i}", one_draw, (k, i, settings.seed))
        for k in SETUP.noise
        for i in range(settings.draws)
    ]
    return [*draws, *(Task(f"theory{k}", predicted, (k, settings.seed)) for k in SETUP.noise)]


def rows_and_labels(
    k: int, rng: np.random.Generator
) -> tuple[FloatArray, IntArray, IntArray, FloatArray, IntArray]:
    """Draw training rows with true and observed classes, and test rows with true classes."""
    noise = SETUP.noise[k]
    means = class_means(k)
    priors = noise.known_priors
    p = SETUP.n_features
    X, y = make_mixture(SETUP.n_rows, p, means=means, priors=priors, random_state=rng)
    X_test, y_test = make_mixture(SETUP.n_test, p, means=means, priors=priors, random_state=rng)
    return X, y, noise.flip(y, rng), X_test, y_test


def one_hot_scores(X: FloatArray, observed: IntArray, X_test: FloatArray, k: int) -> FloatArray:
    """Return the scores of test rows for one-hot targets; a table of targets T multiplies them."""
    path = decompose(X, fit_intercept=False).path(np.eye(k)[observed], [SETUP.reg])
    return np.asarray(X_test @ path.coef[:, 0, :])


def pair_accuracy(scores: FloatArray, true: IntArray, pair: FloatArray) -> float:
    """Return the accuracy of a pair (α, β) from the scores for one-hot targets."""
    return float(np.mean((scores @ target_values.multi_lpc(*pair)).argmax(axis=1) == true))


@cache
def extreme_pairs(k: int, seed: int) -> tuple[FloatArray, FloatArray, float, float]:
    """Return the worst and the best pair on the test rows of one data set, and their accuracies.

    This is the paper's search. It tries the naive pair and random pairs in [−2, 2].
    """
    rng = np.random.default_rng([seed, k])
    X, _, observed, X_test, y_test = rows_and_labels(k, rng)
    scores = one_hot_scores(X, observed, X_test, k)
    naive = np.array([[np.ones(k), np.zeros(k)]])
    pairs = np.concatenate([naive, rng.uniform(-2, 2, size=(SETUP.n_pairs - 1, 2, k))])
    accuracy = np.array([pair_accuracy(scores, y_test, pair) for pair in pairs])
    return pairs[accuracy.argmin()], pairs[accuracy.argmax()], accuracy.min(), accuracy.max()


def between(k: int, seed: int) -> list[FloatArray]:
    """Return the pairs from the worst to the best."""
    worst, best, _, _ = extreme_pairs(k, seed)
    return [tau * best + (1 - tau) * worst for tau in SETUP.tau]


def one_draw(k: int, draw: int, seed: int) -> Tables:
    """Return the accuracy on one new data set of the pairs and of the other classifiers."""
    X, y, observed, X_test, y_test = rows_and_labels(k, np.random.default_rng([seed, k, draw]))
    scores = one_hot_scores(X, observed, X_test, k)
    curve = [pair_accuracy(scores, y_test, pair) for pair in between(k, seed)]
    fits = {
        CALIBRATED: LPClassifier(SETUP.noise[k], targets="optimized"),
        REFINED: LPClassifier(SETUP.noise[k]),
    }
    lines = {
        **plain_accuracies(X, {"naive": observed, "oracle": y}, X_test, y_test, k),
        **{name: float(fit.fit(X, observed).score(X_test, y_test)) for name, fit in fits.items()},
    }
    labels = {"k": k, "draw": draw}
    return {
        "curve": pd.DataFrame({**labels, "tau": SETUP.tau, "accuracy": curve}),
        "lines": pd.DataFrame({**labels, "line": list(lines), "accuracy": list(lines.values())}),
    }


def plain_accuracies(
    X: FloatArray, labels: dict[str, IntArray], X_test: FloatArray, y_test: IntArray, k: int
) -> dict[str, float]:
    """Return the accuracy of the argmax at the γ that is best on the test rows."""
    columns = np.hstack([np.eye(k)[own] for own in labels.values()])
    accuracies = {}
    for name, fit_intercept in (("{}", False), (WITH_INTERCEPT, True)):
        path = decompose(X, fit_intercept=fit_intercept).path(columns, SETUP.regs)
        scores = np.tensordot(X_test, path.coef, axes=1) + path.intercept
        for j, own in enumerate(labels):
            largest = scores[:, :, j * k : (j + 1) * k].argmax(axis=2)
            accuracies[name.format(own)] = float((largest == y_test[:, None]).mean(axis=0).max())
    return accuracies


def predicted_accuracy(k: int, pair: FloatArray) -> float:
    """Return the accuracy of a pair by the theory."""
    table = target_values.multi_lpc(*pair)
    return theory.predict_multiclass(
        means=class_means(k), n=SETUP.n_rows, noise=SETUP.noise[k], targets=table, reg=SETUP.reg
    ).accuracy


def predicted(k: int, seed: int) -> Tables:
    """Return the predicted curve, the limits by theory, and the accuracies found by the search."""
    curve = [predicted_accuracy(k, pair) for pair in between(k, seed)]
    best = theory.optimal_multi_lpc(
        means=class_means(k), noise=SETUP.noise[k], n=SETUP.n_rows, reg=SETUP.reg
    )
    _, _, lowest, highest = extreme_pairs(k, seed)
    values = {
        BAYES: theory.multiclass_bayes_accuracy(means=class_means(k), noise=SETUP.noise[k]),
        THEORY_BEST: predicted_accuracy(k, np.array(best)),
        ON_SEARCH_ROWS.format(WORST): lowest,
        ON_SEARCH_ROWS.format(BEST): highest,
    }
    return {
        "theory": pd.DataFrame({"k": k, "tau": SETUP.tau, "predicted": curve}),
        "limits": pd.DataFrame({"k": k, "line": list(values), "accuracy": list(values.values())}),
    }


def points(tables: Tables) -> Table:
    """Return the simulated and predicted curves."""
    simulated = tables["curve"].groupby(["k", "tau"]).accuracy.agg(["mean", "sem"])
    return simulated.join(tables["theory"].set_index(["k", "tau"])).reset_index()


def draw(tables: Tables) -> Figure:
    """Plot one panel per number of classes."""
    figure, axes = style.new_figure(11, 5.0, 1, len(SETUP.noise), sharey=True)
    for ax, k in zip(axes, SETUP.noise, strict=True):
        _draw_panel(ax, only(points(tables), k=k), _lines(tables, k))
        style.set_title(ax, f"k = {k} classes")
        ax.set_xlabel("τ: from the worst (α, β) to the best")
    axes[0].set_ylabel("test accuracy")
    style.legend_below(figure, axes[0], 4)
    return figure


def _draw_panel(ax: Axes, curve: Table, lines: Table) -> None:
    for name, (variant, dashes, width) in _LOOKS.items():
        own = lines.loc[name]
        colour = style.COLOURS[variant]
        ax.axhline(own["mean"], color=colour, ls=dashes, lw=width, label=name)
        if own["sem"] > 0:
            low = own["mean"] - 2 * own["sem"]
            high = own["mean"] + 2 * own["sem"]
            ax.axhspan(low, high, color=colour, alpha=0.2, lw=0)
    colour = style.COLOURS["LPC"]
    ax.plot(curve.tau, curve.predicted, color=colour, label="Multi-LPC, theory")
    ax.errorbar(
        curve.tau,
        curve["mean"],
        yerr=2 * curve["sem"],
        fmt=style.MARKERS["LPC"],
        color=colour,
        markersize=3.5,
        elinewidth=1,
        label="Multi-LPC, simulation ± 2 standard errors",
    )
    ax.set_ylim(0, 1.02)


def _lines(tables: Tables, k: int) -> Table:
    """Return the mean accuracy of everything that is not a curve, and its standard error."""
    lines = pd.concat([only(tables["lines"], k=k), only(tables["limits"], k=k)])
    return lines.groupby("line", sort=False).accuracy.agg(["mean", "sem"])


def accuracies(tables: Tables) -> Table:
    """Return the mean accuracy of everything, its standard error, and the theory's prediction."""
    rows = []
    for k in SETUP.noise:
        curve = only(points(tables), k=k)
        for name, own in ((WORST, curve.iloc[0]), (BEST, curve.iloc[-1])):
            rows.append((k, name, own["mean"], own["sem"], own["predicted"]))
        rows += [
            (k, name, own["mean"], own["sem"], np.nan) for name, own in _lines(tables, k).iterrows()
        ]
    return pd.DataFrame(
        rows, columns=["k", "classifier", "accuracy", "standard_error", "predicted"]
    )


def summary(tables: Tables) -> Table:
    """Return the accuracy of everything as text, ± its standard error for means over draws."""
    table = accuracies(tables)
    text = table.accuracy.map("{:.3f}".format)
    text += table.standard_error.map(" ± {:.3f}".format).where(table.standard_error.notna(), "")
    text += table.predicted.map(" (theory {:.3f})".format).where(table.predicted.notna(), "")
    columns = {f"k = {k}": text[table.k == k].to_numpy() for k in SETUP.noise}
    names = table.classifier[table.k == table.k.iloc[0]].to_numpy()
    return pd.DataFrame({"accuracy": names, **columns})


def notes(tables: Tables) -> list[str]:
    """Return sentences on the agreement with the theory and the distance to the Bayes accuracy."""
    accuracy = accuracies(tables).set_index(["k", "classifier"]).accuracy
    curve = points(tables)
    difference = (curve["mean"] - curve.predicted).abs()
    error = (difference / curve["sem"]).groupby(curve.k).max()

    def both(name: str) -> str:
        return " and ".join(f"{accuracy[(k, name)]:.3f}" for k in SETUP.noise)

    return [
        "Choosing (α, β) is choosing a linear transformation of the scores of one fit. With k = 3 "
        f"and 4 the best of {SETUP.n_pairs} pairs has accuracy {both(BEST)} on new data, the plain "
        f"oracle {both('oracle')}, naive {both('naive')}. The Gaussian calibration of one fit to "
        f"the same noisy labels has {both(CALIBRATED)}, the refined fit {both(REFINED)}; the Bayes "
        f"rule, with known means, {both(BAYES)}. Our two use no true label and choose nothing on "
        f"test rows, but know the noise rates. {_unchanged_sentence(tables)}",
        "The oracle is not an upper bound: it has clean labels, but takes the largest of k scores "
        "without thresholds, which never predicts classes whose means lie between those of other "
        "classes.",
        "The theory's curve, computed without data, is at most "
        f"{' and '.join(f'{100 * gap:.1f}' for gap in difference.groupby(curve.k).max())} points "
        f"or {' and '.join(f'{value:.1f}' for value in error)} standard errors from the simulated "
        f"one. By the theory the best possible pair has {both(THEORY_BEST)}: a search on test "
        f"labels finds nothing better. On the rows of the search the best of {SETUP.n_pairs} has "
        f"{both(ON_SEARCH_ROWS.format(BEST))}.",
        "The paper's formula has no intercept, and neither have the curve, naive and oracle here. "
        f"With an intercept naive has {both(WITH_INTERCEPT.format('naive'))} and the oracle "
        f"{both(WITH_INTERCEPT.format('oracle'))}.",
        f"{tables['curve'].draw.nunique()} draws here, 3 seeds in the paper, whose numbers are not "
        "published. We search once for each k. Unknown: the paper's test set (here "
        f"{SETUP.n_test} rows with priors π) and its nine γ for naive and oracle (here 10⁻⁴ to "
        "10⁴). Rows of ε are true classes (the text says the opposite), and the second ‖μ₃‖ of k = "
        "4 is ‖μ₄‖.",
    ]


def _unchanged_sentence(tables: Tables) -> str:
    """Return a sentence on how often refinement does not change the accuracy."""
    wide = tables["lines"].pivot_table(index=["k", "draw"], columns="line", values="accuracy")
    equal = (wide[CALIBRATED] == wide[REFINED]).groupby("k").sum()
    counts = " and ".join(f"{equal[k]} (k = {k})" for k in SETUP.noise)
    return f"Both have the same accuracy in {counts} of {tables['curve'].draw.nunique()} draws."


PIECE = Piece(
    name="fig9",
    title="Figure 9. Three and four classes",
    paper="n = 2000, p = 200, three seeds. Multi-LPC with α and β between the worst (τ = 0) and "
    "the best (τ = 1) of a grid of 5000: the best improves on naive and even approaches the "
    "oracle.",
    full=Settings(draws=40, seed=9),
    quick=Settings(draws=4, seed=9),
    tasks=tasks,
    draw=draw,
    summary=summary,
    notes=notes,
)
