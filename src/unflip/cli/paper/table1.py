"""Table 1: accuracy on four kinds of Amazon reviews, replayed, with new draws, and compared.

Every fit of a draw uses one Cholesky factor of one Gram matrix: labels enter only through the
right-hand side, and a row drawn twice enters as one row of weight 2. Standardising the columns on
the training rows instead changes that matrix by a rank-one term and a scale, so it is not computed
again.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.linalg import cho_factor, cho_solve
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import StandardScaler

from unflip._utils.typing import FloatArray, IntArray
from unflip.cli.paper import reviews
from unflip.cli.paper.piece import Column, Piece, Settings, Table, Tables, Task, only
from unflip.cli.paper.published import TABLE1, TABLE1_SPREAD
from unflip.cli.paper.variants import VARIANTS, target_columns, targets_of
from unflip.datasets import AMAZON_DOMAINS
from unflip.labels.noise import NoiseModel
from unflip.model.classifier import LPClassifier
from unflip.plotting import style


class Setup(NamedTuple):
    """The paper's settings of Table 1."""

    eps_pos: tuple[float, ...] = (0.3, 0.4, 0.5)
    eps_neg: float = 0.4
    seeds: tuple[int, ...] = (1, 123, 404)
    draws_per_seed: int = 50


SETUP = Setup()
WITHOUT_LABELS = "without labels"
SCALED = "{}, scaler on training rows"
REFINED = "refined"
BALANCED = "refined, balanced"
KNOWN_ORIGIN = "refined, balanced, known origin"
#: C and class_weight of the logistic regressions that cleanlab is run with.
CLEANLAB_GRID = tuple((C, weight) for C in (1e-4, 1e-3, 1e-2, 1.0) for weight in (None, "balanced"))
CLEANLAB_DEFAULT = "cleanlab C=1"
_COLUMNS = ["domain", "eps_pos", "method", "draw", "accuracy"]
_TWO_DECIMALS = 0.005 + 1e-9  # largest difference of numbers that agree to two decimals


def noise_at(eps_pos: float) -> NoiseModel:
    """Return the noise model of a row of the table."""
    return NoiseModel.binary(eps_pos=eps_pos, eps_neg=SETUP.eps_neg, pi_neg=reviews.PI_NEG)


def tasks(settings: Settings) -> list[Task]:
    """Return tasks for the published seeds, for new draws, and for other methods."""
    replayed = [
        Task(f"replay-{domain}-{seed}", replay, (domain, seed, SETUP.draws_per_seed))
        for domain in AMAZON_DOMAINS
        for seed in SETUP.seeds
    ]
    fresh = [
        Task(f"fresh-{domain}", fresh_draws, (domain, settings.seed, settings.draws))
        for domain in AMAZON_DOMAINS
    ]
    methods = [refined, cleanlab] if find_spec("cleanlab") else [refined]
    others = [
        Task(f"{method.__name__}-{domain}-{i}", method, (domain, settings.seed, i))
        for method in methods
        for domain in AMAZON_DOMAINS
        for i in range(settings.more["other_draws"])
    ]
    return replayed + fresh + others


@dataclass(frozen=True, eq=False)
class Fitted:
    """Gram matrix of a draw, for fits to any targets."""

    X: FloatArray
    weights: FloatArray  # how often each row of the file was drawn
    gram: FloatArray

    @classmethod
    def of(cls, X: FloatArray, rows: IntArray) -> Fitted:
        """Return the Gram matrix of the drawn rows, duplicates weighted."""
        weights = np.bincount(rows, minlength=len(X)).astype(float)
        drawn = weights > 0
        scaled = X[drawn] * np.sqrt(weights[drawn])[:, None]
        return cls(X, weights, scaled.T @ scaled)

    def coef(self, rows: IntArray, columns: FloatArray) -> FloatArray:
        """Return ridge coefficients for every column of targets of the drawn rows."""
        return _ridge(self.gram, self._sums(rows, columns))

    def coef_on_own_scale(
        self, rows: IntArray, columns: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return coefficients and intercepts for columns standardised on the drawn rows instead."""
        mean = self.weights @ self.X / reviews.N_ROWS
        power = np.diag(self.gram) / reviews.N_ROWS
        # Constant columns are not scaled; a relative variance below 1e-10 is rounding error.
        varies = power - mean**2 > 1e-10 * power
        scale = np.sqrt(np.where(varies, power - mean**2, 1))
        gram = (self.gram - reviews.N_ROWS * np.outer(mean, mean)) / np.outer(scale, scale)
        sums = (self._sums(rows, columns) - np.outer(mean, columns.sum(axis=0))) / scale[:, None]
        coef = _ridge(gram, sums) / scale[:, None]
        return coef, -mean @ coef

    def _sums(self, rows: IntArray, columns: FloatArray) -> FloatArray:
        """Return Σ xᵢtᵢ, with the targets of duplicates summed first."""
        per_row = np.column_stack(
            [np.bincount(rows, column, minlength=len(self.X)) for column in columns.T]
        )
        return np.asarray(self.X.T @ per_row)


def _ridge(gram: FloatArray, sums: FloatArray) -> FloatArray:
    regularized = gram + reviews.N_ROWS * reviews.REG * np.eye(len(gram))
    factor = cho_factor(regularized, check_finite=False)
    return np.asarray(cho_solve(factor, sums, check_finite=False))


def replay(domain: str, seed: int, n_draws: int) -> Tables:
    """Replay the published stream: `n_draws` of naive, then of unbiased, optimized and oracle."""
    X, y = reviews.standardised(domain)
    stream = reviews.Stream(y, eps_pos=SETUP.eps_pos, eps_neg=SETUP.eps_neg, seed=seed)
    rows = []
    for variant in VARIANTS:
        for i in range(n_draws):
            sample = stream.draw()
            true = y[sample.rows]
            labels = [true if variant == "oracle" else true ^ flips for flips in sample.flips]
            columns = [
                targets_of(variant, noise_at(e))[observed]
                for e, observed in zip(SETUP.eps_pos, labels, strict=True)
            ]
            coef = Fitted.of(X, sample.rows).coef(sample.rows, np.column_stack(columns))
            accuracies = _accuracies(X[sample.unseen] @ coef, y[sample.unseen])
            rows += [
                (domain, e, variant, seed, i, accuracy)
                for e, accuracy in zip(SETUP.eps_pos, accuracies, strict=True)
            ]
    names = ["domain", "eps_pos", "method", "seed", "draw", "accuracy"]
    return {"replay": pd.DataFrame(rows, columns=names)}


def fresh_draws(domain: str, seed: int, n_draws: int) -> Tables:
    """Return accuracies on new draws of every variant with both scalers, and without labels."""
    X, y = reviews.standardised(domain)
    stream = reviews.Stream(y, eps_pos=SETUP.eps_pos, eps_neg=SETUP.eps_neg, seed=seed)
    methods = [*VARIANTS, *map(SCALED.format, VARIANTS)]
    rows = []
    for i in range(n_draws):
        sample = stream.draw()
        true = y[sample.rows]
        X_test, y_test = X[sample.unseen], y[sample.unseen]
        fitted = Fitted.of(X, sample.rows)
        columns = np.column_stack(
            [
                target_columns(noise_at(e), true, true ^ flips)
                for e, flips in zip(SETUP.eps_pos, sample.flips, strict=True)
            ]
        )
        coef = fitted.coef(sample.rows, columns)
        scaled_coef, intercept = fitted.coef_on_own_scale(sample.rows, columns)
        shape = (len(SETUP.eps_pos), len(VARIANTS))
        plain = _accuracies(X_test @ coef, y_test).reshape(shape)
        scaled = _accuracies(X_test @ scaled_coef + intercept, y_test).reshape(shape)
        without_labels = _accuracies((X_test @ (fitted.weights @ X))[:, None], y_test)[0]
        for e, accuracies in zip(SETUP.eps_pos, np.hstack([plain, scaled]), strict=True):
            rows += [
                (domain, e, name, i, accuracy)
                for name, accuracy in zip(methods, accuracies, strict=True)
            ]
            rows.append((domain, e, WITHOUT_LABELS, i, without_labels))
    return {"fresh": pd.DataFrame(rows, columns=_COLUMNS)}


def refined(domain: str, seed: int, draw: int) -> Tables:
    """Return accuracies of LPClassifier with known noise rates and training priors.

    With default settings, for balanced test rows, and for balanced test rows at the known origin.
    """
    X, y = reviews.standardised(domain)
    sample = _other_sample(y, seed, draw)
    own_scale = StandardScaler().fit(X[sample.rows]).transform(X)
    balanced = {"deployment_priors": "balanced"}
    options: tuple[tuple[str, FloatArray, dict[str, Any]], ...] = (
        (REFINED, own_scale, {}),
        (BALANCED, own_scale, balanced),
        (KNOWN_ORIGIN, X, {**balanced, "fit_intercept": False}),
    )
    rows = []
    for e, flips in zip(SETUP.eps_pos, sample.flips, strict=True):
        for name, data, parameters in options:
            classifier = LPClassifier(noise_at(e), **parameters)
            classifier.fit(data[sample.rows], y[sample.rows] ^ flips)
            accuracy = classifier.score(data[sample.unseen], y[sample.unseen])
            rows.append((domain, e, name, draw, accuracy))
    return {"others": pd.DataFrame(rows, columns=_COLUMNS)}


def cleanlab(domain: str, seed: int, draw: int) -> Tables:
    """Return accuracies of cleanlab with logistic regression at eight settings."""
    learning = import_module("cleanlab.classification")
    X, y = reviews.standardised(domain)
    sample = _other_sample(y, seed, draw)
    own_scale = StandardScaler().fit(X[sample.rows]).transform(X)
    train, test = own_scale[sample.rows], own_scale[sample.unseen]
    rows = []
    for e, flips in zip(SETUP.eps_pos, sample.flips, strict=True):
        observed = y[sample.rows] ^ flips
        for C, weight in CLEANLAB_GRID:
            model = LogisticRegression(C=C, class_weight=weight, max_iter=1000)
            probabilities = cross_val_predict(model, train, observed, cv=5, method="predict_proba")
            learner = learning.CleanLearning(model, find_label_issues_kwargs={"n_jobs": 1})
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "pred_probs are used", which is intended
                learner.fit(train, observed, pred_probs=probabilities)
            accuracy = np.mean(learner.predict(test) == y[sample.unseen])
            rows.append((domain, e, _grid_name(C, weight), draw, accuracy))
    return {"others": pd.DataFrame(rows, columns=_COLUMNS)}


def _other_sample(y: IntArray, seed: int, draw: int) -> reviews.Sample:
    return reviews.Stream(
        y, eps_pos=SETUP.eps_pos, eps_neg=SETUP.eps_neg, seed=10_000 * seed + draw
    ).draw()


def _grid_name(C: float, weight: str | None) -> str:
    return f"cleanlab C={C:g}{' balanced' if weight else ''}"


def _accuracies(scores: FloatArray, true: IntArray) -> FloatArray:
    return np.asarray(((scores > 0) == (true == 1)[:, None]).mean(axis=0))


def cells(tables: Tables) -> Table:
    """Return the 48 cells: published, replayed, of new draws, and their deviation."""
    replayed = _means(tables["replay"])
    fresh = _means(tables["fresh"])
    by_seed = tables["replay"].groupby(["domain", "eps_pos", "method", "seed"]).accuracy
    spreads = (100 * by_seed.mean()).groupby(level=[0, 1, 2]).std(ddof=0)
    rows = []
    for e, domain, (j, variant) in product(SETUP.eps_pos, AMAZON_DOMAINS, enumerate(VARIANTS)):
        key = (domain, e, variant)
        old, new = replayed.loc[key], fresh.loc[key]
        rows.append(
            {
                "eps_pos": e,
                "domain": domain,
                "variant": variant,
                "published": TABLE1[e][domain][j],
                "replayed": old["mean"],
                "published_spread": TABLE1_SPREAD[e][domain][j],
                "replayed_spread": spreads[key],
                "fresh": new["mean"],
                "standard_error": np.hypot(old["error"], new["error"]),
            }
        )
    table = pd.DataFrame(rows)
    return table.assign(deviation=(table.fresh - table.published) / table.standard_error)


def _means(table: Table) -> Table:
    """Return mean accuracy in percent and its standard error by domain, ε₊ and method."""
    accuracy = 100 * table.set_index(["domain", "eps_pos", "method"]).accuracy
    means = accuracy.groupby(level=[0, 1, 2]).agg(["mean", "std", "count"])
    return means.assign(error=means["std"] / np.sqrt(means["count"]))


def _all_means(tables: Tables) -> Column:
    """Return the mean accuracy in percent on new draws, of all methods."""
    return pd.concat([_means(tables["fresh"]), _means(tables["others"])])["mean"].sort_index()


def _averages(tables: Tables) -> Table:
    """Return the mean over the four domains, one row per ε₊ and one column per method."""
    every = pd.concat([tables["fresh"], tables["others"]])
    return 100 * every.groupby(["eps_pos", "method"]).accuracy.mean().unstack()


def _best_cleanlab(averages: Table) -> Table:
    """Return the best accuracy of cleanlab's grid at each ε₊, chosen on the test rows."""
    grid = averages[[name for name in averages if name.startswith("cleanlab")]]
    return grid.max(axis=1)


def draw(tables: Tables) -> Figure:
    """Plot published cells as rings, new draws as markers, and the additional methods."""
    figure, axes = style.new_figure(11, 5.0, 1, len(SETUP.eps_pos), sharey=True)
    table = cells(tables)
    means = _all_means(tables)
    places = np.arange(len(AMAZON_DOMAINS))
    black = style.COLOURS["refined"]
    star = style.MARKERS["refined"]
    for ax, e in zip(axes, SETUP.eps_pos, strict=True):

        def accuracies(method: str, e: float = e) -> list[float]:
            return [means.loc[(domain, e, method)] for domain in AMAZON_DOMAINS]

        for j, variant in enumerate(VARIANTS):
            own = only(table, eps_pos=e, variant=variant)
            x = places + 0.11 * (j - 3)
            colour = style.COLOURS[variant]
            ax.plot(x, own.published, "o", mfc="none", mec=colour, ms=10, mew=1.2)
            ax.plot(x, own.fresh, style.MARKERS[variant], color=colour, ms=4.5, label=variant)
        without_labels = accuracies(WITHOUT_LABELS)
        ax.plot(
            places + 0.14,
            without_labels,
            "_",
            color=style.INK,
            ms=11,
            mew=2,
            label="rule without labels",
        )
        scaled = accuracies(SCALED.format("optimized"))
        name = "all three, scaler on training rows"
        ax.plot(places + 0.25, scaled, "P", color=style.CENTRED, ms=6, label=name)
        for name, fill in ((BALANCED, black), (KNOWN_ORIGIN, "white")):
            ax.plot(places + 0.36, accuracies(name), star, color=black, mfc=fill, ms=8, label=name)
        style.set_title(ax, f"ε₊ = {e:g}, ε₋ = {SETUP.eps_neg:g}")
        ax.set_xticks(places, AMAZON_DOMAINS)
        ax.set_xlim(-0.5, len(places) - 0.4)
        ax.grid(False, axis="x")
    axes[0].set_ylabel("test accuracy, %  (rings: published)")
    style.legend_below(figure, axes[0], 4)
    return figure


def summary(tables: Tables) -> Table:
    """Return the published and replayed table, and the columns of additional methods."""
    table = cells(tables)
    means = _all_means(tables)
    rows = []
    for e, domain in product(SETUP.eps_pos, AMAZON_DOMAINS):
        own = only(table, eps_pos=e, domain=domain).set_index("variant")
        accuracy = means.loc[(domain, e)]
        row: dict[str, object] = {"ε₊": e, "domain": domain}
        for name in VARIANTS:
            row[name] = f"{own.published[name]:.2f} → {own.replayed[name]:.2f}"
        row[WITHOUT_LABELS] = accuracy[WITHOUT_LABELS]
        row["all three, scaler on training rows"] = accuracy[SCALED.format("optimized")]
        for name in (REFINED, BALANCED, KNOWN_ORIGIN):
            row[name] = accuracy[name]
        if CLEANLAB_DEFAULT in accuracy:
            row["cleanlab"] = accuracy[CLEANLAB_DEFAULT]
            grid = [accuracy[_grid_name(C, weight)] for C, weight in CLEANLAB_GRID]
            row["cleanlab, best"] = max(grid)
        rows.append(row)
    return pd.DataFrame(rows)


def notes(tables: Tables) -> list[str]:
    """Return sentences on the cells that agree, and on the effect of the protocol."""
    table = cells(tables)
    averages = _averages(tables)
    equal = int(((table.replayed - table.published).abs() <= _TWO_DECIMALS).sum())
    off = table[(table.replayed_spread - table.published_spread).abs() > _TWO_DECIMALS]
    worst = table.loc[table.deviation.abs().idxmax()]
    fresh = tables["fresh"]
    pivot = fresh.pivot_table(
        index=["domain", "eps_pos", "draw"], columns="method", values="accuracy"
    )
    scaled = pivot[[SCALED.format(name) for name in VARIANTS if name != "oracle"]]
    apart = 100 * float((scaled.max(axis=1) - scaled.min(axis=1)).max())

    def over_rates(column: str) -> str:
        return "/".join(f"{averages[column][e]:.1f}" for e in SETUP.eps_pos)

    sentences = [
        f"The published random stream, replayed, gives {equal} of {len(table)} cells to two "
        "decimals (published → replayed in the table). It is plain accuracy at γ = 100 in every "
        "cell, where the caption says “optimal γ”.",
        "The number after ± in the table is the standard deviation of the three seeds' means: "
        f"{len(table) - len(off)} of {len(table)} agree to two decimals{_exceptions(off)}.",
        f"With {fresh.draw.nunique()} fresh draws a cell is at most {abs(worst.deviation):.1f} "
        f"standard errors from the published one ({worst.variant}, {worst.domain}, ε₊ = "
        f"{worst.eps_pos:g}).",
        "The rows are drawn with replacement and standardised on all rows of the balanced file, "
        "test rows included. The test rows are those never drawn: about 65% of them are negative, "
        "but 30% of the training rows.",
        "So the mean of the training rows already points along μ: the rule sign(x·mean), which "
        f"uses no labels, has accuracy {over_rates(WITHOUT_LABELS)} at ε₊ = .3/.4/.5 on average "
        f"over the four sets, the optimized classifier {over_rates('optimized')}.",
        "With the scaler fitted on the training rows, as in practice, naive, unbiased and "
        f"optimized coincide (their accuracies differ by at most {apart:.2f} points in any draw) "
        f"and have accuracy {over_rates(SCALED.format('optimized'))}.",
        "On the same rows the refined classifier, which knows the noise rates and the 30% as the "
        f"optimized one does, has accuracy {over_rates(REFINED)} with default settings, because "
        "its threshold expects 30% of negatives among the test rows, too, and "
        f'{over_rates(BALANCED)} with deployment_priors="balanced" '
        f"({tables['others'].draw.nunique()} draws per cell). With the known origin, as in the "
        f"published protocol, it has {over_rates(KNOWN_ORIGIN)}.",
    ]
    if CLEANLAB_DEFAULT in averages:
        best = "/".join(f"{value:.1f}" for value in _best_cleanlab(averages))
        sentences.append(
            "cleanlab with logistic regression has accuracy "
            f"{over_rates(CLEANLAB_DEFAULT)} with default settings and {best} at the best of "
            f"{len(CLEANLAB_GRID)} settings, chosen on the test rows."
        )
    else:
        sentences.append(
            "cleanlab was not installed, so its columns are missing: "
            'pip install "unflip[benchmark]", then --again.'
        )
    return sentences


def _exceptions(cells_off: Table) -> str:
    """Return a text with the cells whose ± differs from the printed one."""
    return "".join(
        f"; {cell.variant}, {cell.domain}, ε₊ = {cell.eps_pos:g} is {cell.replayed_spread:.2f}, "
        f"printed {cell.published_spread:.2f}"
        for cell in cells_off.itertuples()
    )


PIECE = Piece(
    name="table1",
    title="Table 1. Accuracy on Amazon reviews",
    paper="n = 1600, p = 400, π₁ = .3, ε₋ = .4, ε₊ = .3, .4, .5, “optimal γ”; 3 seeds. The "
    "optimized approach has the best accuracy, close to the oracle, which is trained with the true "
    "labels, even under strong noise.",
    full=Settings(draws=150, seed=7, more={"other_draws": 25}),
    quick=Settings(draws=40, seed=7, more={"other_draws": 2}),
    tasks=tasks,
    draw=draw,
    summary=summary,
    notes=notes,
    needs_data=(reviews.FOLDER,),
)
