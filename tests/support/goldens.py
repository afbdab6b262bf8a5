"""What is stored as golden results, and how each is computed; `make golden` remakes them."""

import json

import numpy as np
import pytest

pytest.importorskip("pandas", reason="needs the extra unflip[cli]")
pytest.importorskip("matplotlib", reason="needs the extra unflip[cli]")

from sklearn.preprocessing import StandardScaler

from support.paper import Table1
from unflip import LPClassifier, NoiseModel, datasets, estimation, theory
from unflip.cli.paper import cross_entropy, fig1, fig2, fig3, fig5, fig7, fig8, fig9, table1
from unflip.cli.paper.piece import gather
from unflip.cli.paper.variants import VARIANTS, predict

EPS_NEG, EPS_POS_OF_TABLE, REG_OF_TABLE = 0.4, (0.3, 0.4, 0.5), 100.0


def predictions():
    """Accuracy and risk that the theory predicts over a grid of settings."""
    table = {}
    for eps_pos, eps_neg, pi_neg in ((0.4, 0.3, 0.3), (0.2, 0.2, 0.5), (0.6, 0.2, 1 / 3)):
        noise = NoiseModel.binary(eps_pos=eps_pos, eps_neg=eps_neg, pi_neg=pi_neg)
        mixture = theory.Mixture(mean_norm=[[1.0], [2.0]], aspect=[0.1, 1.0, 10.0], noise=noise)
        for targets in ("naive", "unbiased", "optimized"):
            for fit_intercept in (False, True):
                p = theory.predict(mixture, targets=targets, reg=1.0, fit_intercept=fit_intercept)
                noise_key = f"eps=({eps_pos:g}, {eps_neg:g}) pi_neg={pi_neg:.3g}"
                key = f"{noise_key} {targets} intercept={fit_intercept}"
                table[key] = {"accuracy": p.accuracy.tolist(), "risk": p.risk.tolist()}
    return table


def classifier():
    """A fit from end to end: choice of the penalty, coefficients, leave-one-out decisions,
    probabilities."""
    noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.2)
    X, y = datasets.make_mixture(120, 60, mean_norm=2.0, priors=[0.4, 0.6], random_state=7)
    observed = noise.flip(y, random_state=7)
    table = {}
    for readout in ("plain", "gaussian"):
        for fit_intercept in (False, True):
            clf = LPClassifier(noise, readout=readout, fit_intercept=fit_intercept).fit(X, observed)
            table[f"{readout} intercept={fit_intercept}"] = {
                "reg": clf.reg_,
                "coef": clf.coef_[0, :5].tolist(),
                "intercept": clf.intercept_.tolist(),
                "loo_decision": clf.loo_decision_[:5].tolist(),
                "proba": clf.predict_proba(X[:5])[:, 1].tolist(),
                "priors": clf.noise_.priors.tolist(),
            }
    return table


def noise_rates():
    """Rates and standard errors by each estimator, on one mixture."""
    X, y = datasets.make_mixture(400, 80, mean_norm=2.0, priors=[0.4, 0.6], random_state=7)
    observed = NoiseModel.binary(eps_pos=0.3, eps_neg=0.2).flip(y, random_state=7)
    estimators = {
        "second moments": estimation.SecondMomentMatching(mean_norm=2.0, pi_neg=0.4),
        "cross moment, all known": estimation.CrossMoment(mean_norm=2.0, pi_neg=0.4),
        "cross moment, proportions known": estimation.CrossMoment(pi_neg=0.4),
        "cross moment, nothing known": estimation.CrossMoment(),
        "trusted rows": estimation.TrustedSubset(np.where(np.arange(400) % 5 == 0, y, np.nan)),
        "automatic": estimation.Automatic(),
    }
    table = {}
    for name, estimator in estimators.items():
        estimator.fit(X, observed)
        table[name] = {
            "transition": estimator.noise_.transition.tolist(),
            "std": estimator.noise_std_.tolist(),
        }
    return table


def table1_first_draws():
    """Accuracy of the first draw of each variant, seed 1, on all sets and rates of Table 1."""
    return {
        f"{domain} eps_pos={eps_pos}": {
            variant: accuracies[0]
            for variant, accuracies in table1_accuracies(domain, eps_pos, seed=1, n_draws=1).items()
        }
        for domain in datasets.AMAZON_DOMAINS
        for eps_pos in EPS_POS_OF_TABLE
    }


def table1_accuracies(domain, eps_pos, *, seed, n_draws):
    """Replay Table 1's protocol for one seed: naive, unbiased, optimized and oracle, in that order
    on one stream."""
    X, y = datasets.load_amazon_reviews(domain)
    X = StandardScaler().fit_transform(X)  # on all rows, test rows included, as the paper did
    noise = NoiseModel.binary(eps_pos=eps_pos, eps_neg=EPS_NEG, pi_neg=0.3)
    stream = Table1(y, eps_pos=eps_pos, eps_neg=EPS_NEG, seed=seed)
    accuracies = {}
    for variant in ("naive", "unbiased", "optimized", "oracle"):
        accuracies[variant] = [
            _accuracy(variant, X, y, noise, *stream.draw()) for _ in range(n_draws)
        ]
    return accuracies


def _accuracy(variant, X, y, noise, rows, observed, unseen):
    labels, targets = (y[rows], "naive") if variant == "oracle" else (observed, variant)
    clf = LPClassifier(
        noise, targets=targets, readout="plain", reg=REG_OF_TABLE, fit_intercept=False
    )
    return float(np.mean(clf.fit(X[rows], labels).predict(X[unseen]) == y[unseen]))


def table1_cells():
    """The 48 cells of Table 1: published, replayed on the published stream, and drawn afresh (150
    draws)."""
    settings = table1.PIECE.full
    parts = [
        table1.replay(domain, seed, 50)
        for domain in datasets.AMAZON_DOMAINS
        for seed in table1.SETUP.seeds
    ]
    parts += [
        table1.fresh_draws(domain, settings.seed, settings.draws)
        for domain in datasets.AMAZON_DOMAINS
    ]
    return {
        f"{cell.domain} {cell.eps_pos} {cell.variant}": {
            name: getattr(cell, name)
            for name in (
                "published",
                "replayed",
                "replayed_spread",
                "fresh",
                "standard_error",
                "deviation",
            )
        }
        for cell in table1.cells(gather(parts)).itertuples()
    }


def figure_curves():
    """Every theory curve of Figures 1, 2, 3, 5, 7, 8 and 9, at every fifth or so of its points."""
    curves = {}
    for p in fig1.SETUP.dimensions:
        for variant in VARIANTS:
            setup = fig1.SETUP
            law = predict(
                variant,
                setup.noise,
                mean_norm=setup.mean_norm,
                aspect=p / setup.n_rows,
                reg=setup.reg,
            )
            curves[f"fig1 p={p} {variant}"] = [float(law.mean), float(law.variance)]
    for p in fig2.SETUP.dimensions:
        for variant in fig2.CURVES:
            curves[f"fig2 p={p} {variant}"] = [
                fig2.predicted_at(variant, p, rate) for rate in fig2.SETUP.eps_pos[::6]
            ]
    for p in fig3.SETUP.dimensions:
        curves[f"fig3 p={p}"] = fig3.predicted_at(p, fig3.SETUP.simulated_rho[::4]).tolist()
    for n, p in fig5.SETUP.sizes:
        for size in fig5.SETUP.mean_norms:
            for variant in VARIANTS:
                regs = fig5.SETUP.regs[::4]
                law = predict(variant, fig5.SETUP.noise, mean_norm=size, aspect=p / n, reg=regs)
                curves[f"fig5 n={n} mean_norm={size} {variant}"] = law.accuracy.tolist()
    for figure, size, aspect in ((fig7, fig7.SETUP.mean_norm, 1.0), (fig8, 1.12, 0.25)):
        accuracies = cross_entropy.predicted(
            figure.SETUP.noise, figure.SETUP.n_steps, mean_norm=size, aspect=aspect
        )
        curves[f"{figure.PIECE.name} mean_norm={size}"] = accuracies[
            [*range(0, 50, 7), 50, 51, 52]
        ].tolist()
    for k in fig9.SETUP.noise:
        pairs = np.random.default_rng(k).uniform(-2, 2, size=(5, 2, k))
        curves[f"fig9 k={k}"] = [fig9.predicted_accuracy(k, pair) for pair in pairs]
    return json.loads(json.dumps(curves))


#: File name (without .json), how to compute it, whether it needs real data, whether it is slow.
GOLDENS = [
    ("predictions", predictions, False, False),
    ("classifier", classifier, False, False),
    ("noise_rates", noise_rates, False, False),
    ("table1_first_draws", table1_first_draws, True, False),
    ("figure_curves", figure_curves, False, False),
    ("table1_cells", table1_cells, True, True),
]
