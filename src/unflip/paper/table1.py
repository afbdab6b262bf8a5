"""Table 1: accuracy on four kinds of Amazon reviews, replayed, drawn afresh, and beside what the table leaves out.

Every fit of a draw comes from one Cholesky factor of one Gram matrix: labels enter only through the
right-hand side, and rows that were drawn twice enter as one row of weight 2. Standardising the
columns on the training rows instead changes that matrix by a rank-one term and a scale, so that it
is not computed again either.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.linalg import cho_factor, cho_solve
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import StandardScaler

from unflip._utils.typing import FloatArray, IntArray
from unflip.datasets import AMAZON_DOMAINS
from unflip.labels.noise import NoiseModel
from unflip.model.classifier import LPClassifier
from unflip.paper import reviews
from unflip.paper.piece import Piece, Settings, Table, Tables, Task, only
from unflip.paper.published import TABLE1, TABLE1_SPREAD
from unflip.paper.variants import VARIANTS, target_columns, targets_of
from unflip.plotting import style

EPS_POS, EPS_NEG = (0.3, 0.4, 0.5), 0.4
SEEDS, DRAWS_PER_SEED = (1, 123, 404), 50
LABEL_FREE, SCALED = "label-free", "{}, scaler on training rows"
REFINED, BALANCED, KNOWN_ORIGIN = "refined", "refined, balanced", "refined, balanced, known origin"
CLEANLAB_POINTS = tuple(
    (C, weight) for C in (1e-4, 1e-3, 1e-2, 1.0) for weight in (None, "balanced")
)
CLEANLAB_DEFAULT = "cleanlab C=1"
_COLUMNS = ["domain", "eps_pos", "method", "draw", "accuracy"]
_FOLDS = 5
_ROUNDING = 1e-10
_TWO_DECIMALS = 0.005 + 1e-9


def noise_at(eps_pos: float) -> NoiseModel:
    """Return the flips of a row of the table."""
    return NoiseModel.binary(eps_pos=eps_pos, eps_neg=EPS_NEG, pi_neg=reviews.PI_NEG)


def tasks(settings: Settings) -> list[Task]:
    """Replay each domain and seed, draw each domain afresh, and try other methods draw by draw."""
    replayed = [
        Task(f"replay-{domain}-{seed}", replay, (domain, seed, DRAWS_PER_SEED))
        for domain in AMAZON_DOMAINS
        for seed in SEEDS
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
    """A draw's Gram matrix, ready for any targets."""

    X: FloatArray
    weights: FloatArray  # how often each row of the file was drawn
    gram: FloatArray

    @classmethod
    def of(cls, X: FloatArray, rows: IntArray) -> Fitted:
        """Sum over the distinct rows."""
        weights = np.bincount(rows, minlength=len(X)).astype(float)
        drawn = weights > 0
        scaled = X[drawn] * np.sqrt(weights[drawn])[:, None]
        return cls(X, weights, scaled.T @ scaled)

    def coef(self, rows: IntArray, columns: FloatArray) -> FloatArray:
        """Ridge weights for every column of targets of the drawn rows."""
        return _ridge(self.gram, self._sums(rows, columns))

    def coef_on_own_scale(
        self, rows: IntArray, columns: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Weights and constants, in the file's columns, where these are standardised on the drawn rows instead."""
        mean = self.weights @ self.X / reviews.N_ROWS
        power = np.diag(self.gram) / reviews.N_ROWS
        varies = (
            power - mean**2 > _ROUNDING * power
        )  # a word that no drawn review holds stays as it is
        scale = np.sqrt(np.where(varies, power - mean**2, 1))
        gram = (self.gram - reviews.N_ROWS * np.outer(mean, mean)) / np.outer(scale, scale)
        sums = (self._sums(rows, columns) - np.outer(mean, columns.sum(axis=0))) / scale[:, None]
        coef = _ridge(gram, sums) / scale[:, None]
        return coef, -mean @ coef

    def _sums(self, rows: IntArray, columns: FloatArray) -> FloatArray:
        """Σ xᵢtᵢ, with the targets of copies added up first."""
        per_row = np.column_stack(
            [np.bincount(rows, column, minlength=len(self.X)) for column in columns.T]
        )
        return np.asarray(self.X.T @ per_row)


def _ridge(gram: FloatArray, sums: FloatArray) -> FloatArray:
    penalised = gram + reviews.N_ROWS * reviews.REG * np.eye(len(gram))
    return np.asarray(
        cho_solve(cho_factor(penalised, check_finite=False), sums, check_finite=False)
    )


def replay(domain: str, seed: int, n_draws: int) -> Tables:
    """Go through the published stream: so many draws of naive, then of unbiased, optimized and oracle."""
    X, y = reviews.standardised(domain)
    stream = reviews.Stream(y, eps_pos=EPS_POS, eps_neg=EPS_NEG, seed=seed)
    rows = []
    for variant in VARIANTS:
        for i in range(n_draws):
            sample = stream.draw()
            true, test = y[sample.rows], y[sample.unseen]
            labels = [true if variant == "oracle" else true ^ flips for flips in sample.flips]
            columns = [
                targets_of(variant, noise_at(e))[seen]
                for e, seen in zip(EPS_POS, labels, strict=True)
            ]
            coef = Fitted.of(X, sample.rows).coef(sample.rows, np.column_stack(columns))
            accuracies = _accuracies(X[sample.unseen] @ coef, test)
            rows += [
                (domain, e, variant, seed, i, a) for e, a in zip(EPS_POS, accuracies, strict=True)
            ]
    return {
        "replay": pd.DataFrame(
            rows, columns=["domain", "eps_pos", "method", "seed", "draw", "accuracy"]
        )
    }


def fresh_draws(domain: str, seed: int, n_draws: int) -> Tables:
    """Draw afresh; every variant with either scaler, and a rule without labels, on the same draws."""
    X, y = reviews.standardised(domain)
    stream = reviews.Stream(y, eps_pos=EPS_POS, eps_neg=EPS_NEG, seed=seed)
    methods = [*VARIANTS, *map(SCALED.format, VARIANTS)]
    rows = []
    for i in range(n_draws):
        sample = stream.draw()
        true, test, fitted = y[sample.rows], y[sample.unseen], Fitted.of(X, sample.rows)
        unseen = X[sample.unseen]
        columns = [
            target_columns(noise_at(e), true, true ^ f)
            for e, f in zip(EPS_POS, sample.flips, strict=True)
        ]
        stacked = np.column_stack(columns)
        own_coef, own_constant = fitted.coef_on_own_scale(sample.rows, stacked)
        scores = (unseen @ fitted.coef(sample.rows, stacked), unseen @ own_coef + own_constant)
        found = np.hstack(
            [_accuracies(s, test).reshape(len(EPS_POS), len(VARIANTS)) for s in scores]
        )
        blind = _accuracies((unseen @ (fitted.weights @ X))[:, None], test)[0]
        for e, accuracies in zip(EPS_POS, found, strict=True):
            rows += [(domain, e, name, i, a) for name, a in zip(methods, accuracies, strict=True)]
            rows.append((domain, e, LABEL_FREE, i, blind))
    return {"fresh": pd.DataFrame(rows, columns=_COLUMNS)}


def refined(domain: str, seed: int, draw: int) -> Tables:
    """LPClassifier, rates and training proportions known: as it comes, for balanced test rows, at the known origin."""
    X, y = reviews.standardised(domain)
    sample = _other_sample(y, seed, draw)
    scaler = StandardScaler().fit(X[sample.rows])
    own_scale = scaler.transform(X)
    rows = []
    for e, flips in zip(EPS_POS, sample.flips, strict=True):
        for name, data, classifier in (
            (REFINED, own_scale, LPClassifier(noise_at(e))),
            (BALANCED, own_scale, LPClassifier(noise_at(e), deployment_priors="balanced")),
            (
                KNOWN_ORIGIN,
                X,
                LPClassifier(noise_at(e), fit_intercept=False, deployment_priors="balanced"),
            ),
        ):
            classifier.fit(data[sample.rows], y[sample.rows] ^ flips)
            rows.append(
                (domain, e, name, draw, classifier.score(data[sample.unseen], y[sample.unseen]))
            )
    return {"others": pd.DataFrame(rows, columns=_COLUMNS)}


def cleanlab(domain: str, seed: int, draw: int) -> Tables:
    """Cleanlab with logistic regression at eight settings; one of them is the default."""
    learning = import_module("cleanlab.classification")
    X, y = reviews.standardised(domain)
    sample = _other_sample(y, seed, draw)
    own_scale = StandardScaler().fit(X[sample.rows]).transform(X)
    train, test = own_scale[sample.rows], own_scale[sample.unseen]
    rows = []
    for e, flips in zip(EPS_POS, sample.flips, strict=True):
        observed = y[sample.rows] ^ flips
        for C, weight in CLEANLAB_POINTS:
            model = LogisticRegression(C=C, class_weight=weight, max_iter=1000)
            probabilities = cross_val_predict(
                model, train, observed, cv=_FOLDS, method="predict_proba"
            )
            learner = learning.CleanLearning(model, find_label_issues_kwargs={"n_jobs": 1})
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore"
                )  # it says that given probabilities are used, as is meant
                learner.fit(train, observed, pred_probs=probabilities)
            accuracy = np.mean(learner.predict(test) == y[sample.unseen])
            rows.append((domain, e, _grid_name(C, weight), draw, accuracy))
    return {"others": pd.DataFrame(rows, columns=_COLUMNS)}


def _other_sample(y: IntArray, seed: int, draw: int) -> reviews.Sample:
    return reviews.Stream(y, eps_pos=EPS_POS, eps_neg=EPS_NEG, seed=10_000 * seed + draw).draw()


def _grid_name(C: float, weight: str | None) -> str:
    return f"cleanlab C={C:g}{' balanced' if weight else ''}"


def _accuracies(scores: FloatArray, true: IntArray) -> FloatArray:
    return np.asarray(((scores > 0) == (true == 1)[:, None]).mean(axis=0))


def cells(tables: Tables) -> Table:
    """Return the 48 cells: published, replayed, drawn afresh, and how far apart in standard errors."""
    replayed, fresh = _means(tables["replay"]), _means(tables["fresh"])
    of_seeds = (
        100 * tables["replay"].groupby(["domain", "eps_pos", "method", "seed"]).accuracy.mean()
    )
    spreads = of_seeds.groupby(level=[0, 1, 2]).std(ddof=0)
    rows = []
    for e, domain, (j, variant) in product(EPS_POS, AMAZON_DOMAINS, enumerate(VARIANTS)):
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
    grouped = 100 * table.set_index(["domain", "eps_pos", "method"]).accuracy
    found = grouped.groupby(level=[0, 1, 2]).agg(["mean", "std", "count"])
    return found.assign(error=found["std"] / np.sqrt(found["count"]))


def _averages(tables: Tables) -> Table:
    """Return the mean over the four domains, a row for each ε₊ and a column for each method."""
    every = pd.concat([tables["fresh"], tables["others"]])
    return 100 * every.groupby(["eps_pos", "method"]).accuracy.mean().unstack()


def _best_cleanlab(averages: Table) -> Table:
    """Return the best column of cleanlab's grid at each ε₊, picked on the test rows."""
    grid = averages[[name for name in averages if name.startswith("cleanlab")]]
    return grid.max(axis=1)


def draw(tables: Tables) -> Figure:
    """Draw published cells as rings, fresh draws as markers, and beside them what the table leaves out."""
    figure, axes = style.new_figure(11, 5.0, 1, len(EPS_POS), sharey=True)
    found, fresh, others = cells(tables), _means(tables["fresh"]), _means(tables["others"])
    places = np.arange(len(AMAZON_DOMAINS))
    for ax, e in zip(axes, EPS_POS, strict=True):
        for j, variant in enumerate(VARIANTS):
            own = only(found, eps_pos=e, variant=variant)
            x, colour = places + 0.11 * (j - 3), style.COLOURS[variant]
            ax.plot(x, own.published, "o", mfc="none", mec=colour, ms=10, mew=1.2)
            ax.plot(x, own.fresh, style.MARKERS[variant], color=colour, ms=4.5, label=variant)
        blind = [fresh.loc[(domain, e, LABEL_FREE)]["mean"] for domain in AMAZON_DOMAINS]
        ax.plot(places + 0.14, blind, "_", color=style.INK, ms=11, mew=2, label="label-free rule")
        scaled = [
            fresh.loc[(domain, e, SCALED.format("optimized"))]["mean"] for domain in AMAZON_DOMAINS
        ]
        ax.plot(
            places + 0.25,
            scaled,
            "P",
            color=style.CENTRED,
            ms=6,
            label="all three, scaler on training rows",
        )
        for name, fill in ((BALANCED, style.COLOURS["refined"]), (KNOWN_ORIGIN, "white")):
            ours = [others.loc[(domain, e, name)]["mean"] for domain in AMAZON_DOMAINS]
            ax.plot(
                places + 0.36,
                ours,
                style.MARKERS["refined"],
                color=style.COLOURS["refined"],
                mfc=fill,
                ms=8,
                label=name,
            )
        style.set_title(ax, f"ε₊ = {e:g}, ε₋ = {EPS_NEG:g}")
        ax.set_xticks(places, AMAZON_DOMAINS)
        ax.set_xlim(-0.5, len(places) - 0.4)
        ax.grid(False, axis="x")
    axes[0].set_ylabel("test accuracy, %  (rings: published)")
    style.legend_below(figure, axes[0], 4)
    return figure


def summary(tables: Tables) -> Table:
    """Return the table as published and as replayed, then the columns that it leaves out."""
    found, fresh, others = cells(tables), _means(tables["fresh"]), _means(tables["others"])
    averages = _averages(tables)
    rows = []
    for e in EPS_POS:
        for domain in AMAZON_DOMAINS:
            own = only(found, eps_pos=e, domain=domain).set_index("variant")
            cell: dict[str, object] = {"ε₊": e, "domain": domain}
            cell |= {
                f"{name}": f"{own.published[name]:.2f} → {own.replayed[name]:.2f}"
                for name in VARIANTS
            }
            cell["label-free"] = fresh.loc[(domain, e, LABEL_FREE)]["mean"]
            cell["all three, scaler on training rows"] = fresh.loc[
                (domain, e, SCALED.format("optimized"))
            ]["mean"]
            cell |= {
                name: others.loc[(domain, e, name)]["mean"]
                for name in (REFINED, BALANCED, KNOWN_ORIGIN)
            }
            if CLEANLAB_DEFAULT in averages:
                cell["cleanlab"] = others.loc[(domain, e, CLEANLAB_DEFAULT)]["mean"]
                cell["cleanlab, best"] = max(
                    others.loc[(domain, e, _grid_name(C, weight))]["mean"]
                    for C, weight in CLEANLAB_POINTS
                )
            rows.append(cell)
    return pd.DataFrame(rows)


def notes(tables: Tables) -> list[str]:
    """Count the cells that agree, and say what the table owes to its protocol."""
    found, averages = cells(tables), _averages(tables)
    equal = int(((found.replayed - found.published).abs() <= _TWO_DECIMALS).sum())
    off = found[(found.replayed_spread - found.published_spread).abs() > _TWO_DECIMALS]
    worst = found.loc[found.deviation.abs().idxmax()]
    fresh = tables["fresh"]
    pivot = fresh.pivot_table(
        index=["domain", "eps_pos", "draw"], columns="method", values="accuracy"
    )
    scaled = pivot[[SCALED.format(name) for name in VARIANTS if name != "oracle"]]
    apart = 100 * float((scaled.max(axis=1) - scaled.min(axis=1)).max())

    def over_rates(column: str) -> str:
        return "/".join(f"{averages[column][e]:.1f}" for e in EPS_POS)

    sentences = [
        f"The published random stream, replayed, gives {equal} of {len(found)} cells to two "
        "decimals (published → replayed in the table). It is plain accuracy at γ = 100 in every "
        "cell, where the caption says “optimal γ”.",
        "What the table prints after ± is the standard deviation of the three seeds' means: "
        f"{len(found) - len(off)} of {len(found)} agree to two decimals{_exceptions(off)}.",
        f"With {fresh.draw.nunique()} fresh draws a cell is at most {abs(worst.deviation):.1f} "
        f"standard errors from the published one ({worst.variant}, {worst.domain}, ε₊ = "
        f"{worst.eps_pos:g}).",
        "The rows are drawn with replacement and standardised on all rows of the balanced file, "
        "test rows included; the test rows are those never drawn, about 65% negative, while 30% of "
        "the training rows are.",
        "So the mean of the training rows already points along μ: the label-free rule sign(x·mean) "
        f"scores {over_rates(LABEL_FREE)} at ε₊ = .3/.4/.5 on average over the four sets, the "
        f"optimized classifier {over_rates('optimized')}.",
        "With the scaler fitted on the training rows, as in practice, naive, unbiased and "
        f"optimized coincide (their accuracies differ by at most {apart:.2f} points in any draw) "
        f"and score {over_rates(SCALED.format('optimized'))}.",
        "On the same rows the refined classifier, which knows the rates and the 30% as the optimized one does, scores "
        f"{over_rates(REFINED)} as it comes, for its threshold expects 30% of negatives among the test rows, too, and "
        f'{over_rates(BALANCED)} with deployment_priors="balanced" ({tables["others"].draw.nunique()} draws per cell). '
        f"Given the origin as well, as in the published protocol, it scores {over_rates(KNOWN_ORIGIN)}.",
    ]
    if CLEANLAB_DEFAULT in averages:
        best = "/".join(f"{value:.1f}" for value in _best_cleanlab(averages))
        sentences.append(
            f"cleanlab with logistic regression scores {over_rates(CLEANLAB_DEFAULT)} as it comes "
            f"and {best} at the best of {len(CLEANLAB_POINTS)} settings, picked on the test rows."
        )
    else:
        sentences.append(
            'cleanlab was not installed, so its columns are left out: pip install "unflip[benchmark]", then --again.'
        )
    return sentences


def _exceptions(cells_off: Table) -> str:
    """Name the cells whose ± is not the one printed."""
    return "".join(
        f"; {cell.variant}, {cell.domain}, ε₊ = {cell.eps_pos:g} is {cell.replayed_spread:.2f} "
        f"where {cell.published_spread:.2f} is printed"
        for cell in cells_off.itertuples()
    )


PIECE = Piece(
    name="table1",
    title="Table 1. Accuracy on Amazon reviews",
    paper="n = 1600, p = 400, π₁ = .3, ε₋ = .4, ε₊ = .3, .4, .5, “optimal γ”; 3 seeds. The optimized approach has "
    "the best accuracy, close to the oracle, which is trained with the true labels, even under strong noise.",
    full=Settings(draws=150, seed=7, more={"other_draws": 25}),
    quick=Settings(draws=40, seed=7, more={"other_draws": 2}),
    tasks=tasks,
    draw=draw,
    summary=summary,
    notes=notes,
    needs_data=(reviews.FOLDER,),
)
