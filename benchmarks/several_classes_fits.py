"""Methods for more than two classes: this library with different inputs, and its peers."""

import numpy as np

from measures import best_auroc
from peers import DEFAULT, HAS_CLEANLAB, PRIORS, RATES, cleanlab_peers, fitted, linear_peers
from several_classes_paper import THEORY_GAMMAS, WITH_INTERCEPT, best_pair, paper_rules
from unflip import LPClassifier, targets
from unflip.estimation import TrustedSubset

CS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
N_TRUSTED = 100

# Names of the methods in tables: what is given, or targets and readout.
BOTH = "noise rates and priors given"
TRUSTED = f"{N_TRUSTED} trusted labels"
BALANCED = "default, balanced"
OPTIMIZED = "optimized, gaussian"
OPTIMIZED_PLAIN = "optimized, plain"
UNBIASED_PLAIN = "unbiased, plain"
NAIVE_PLAIN = "naive, plain"
REFINED_PLAIN = "refined, plain"
REFINED = (RATES, BOTH, TRUSTED, PRIORS, DEFAULT, BALANCED)
OTHERS = (OPTIMIZED, REFINED_PLAIN, OPTIMIZED_PLAIN, UNBIASED_PLAIN, NAIVE_PLAIN)
THEORY_ROWS = tuple(f"theory's (α, β), γ = {gamma:g}{WITH_INTERCEPT}" for gamma in THEORY_GAMMAS)


def paper_outcomes(draw):
    """Fit this library and the paper's rules."""
    noise = draw.noise
    classifiers = {
        BOTH: LPClassifier(noise),
        RATES: LPClassifier(noise.transition),
        DEFAULT: LPClassifier(),
        OPTIMIZED: LPClassifier(noise, targets="optimized"),
        UNBIASED_PLAIN: LPClassifier(noise, targets="unbiased", readout="plain"),
        NAIVE_PLAIN: LPClassifier(noise, targets="naive", readout="plain"),
    }
    for name, gamma in zip(THEORY_ROWS, THEORY_GAMMAS, strict=True):
        table = targets.multi_lpc(*best_pair(noise.n_classes, gamma))
        classifiers[name] = LPClassifier(noise, targets=table, readout="plain", reg=gamma)
    return all_fitted(classifiers, draw) + paper_rules(draw)


def scene_outcomes(draw, y_trusted):
    """Fit this library with different inputs, and the peers; AUROC is without trusted rows."""
    trusted = fitted(TRUSTED, LPClassifier(TrustedSubset(y_trusted)), draw)
    trusted.extra["auroc_wrong"] = best_auroc(trusted.p_wrong, draw, np.isnan(y_trusted))
    classifiers = {
        RATES: LPClassifier(draw.noise),
        PRIORS: LPClassifier(priors=draw.priors),
        DEFAULT: LPClassifier(),
        BALANCED: LPClassifier(deployment_priors="balanced"),
    }
    return [trusted, *all_fitted(classifiers, draw), *peers(draw)]


def classic_outcomes(draw):
    """Fit all choices of targets and readout, and the peers."""
    classifiers = {
        RATES: LPClassifier(draw.noise),
        BOTH: LPClassifier(draw.noise, priors=draw.priors),
        PRIORS: LPClassifier(priors=draw.priors),
        DEFAULT: LPClassifier(),
        OPTIMIZED: LPClassifier(draw.noise, targets="optimized"),
        REFINED_PLAIN: LPClassifier(draw.noise, readout="plain"),
        OPTIMIZED_PLAIN: LPClassifier(draw.noise, targets="optimized", readout="plain"),
        UNBIASED_PLAIN: LPClassifier(draw.noise, targets="unbiased", readout="plain"),
        NAIVE_PLAIN: LPClassifier(draw.noise, targets="naive", readout="plain"),
    }
    return all_fitted(classifiers, draw) + peers(draw)


def all_fitted(classifiers, draw):
    """Fit classifiers of this library to a draw."""
    return [fitted(name, classifier, draw) for name, classifier in classifiers.items()]


def peers(draw):
    """Fit ridge, logistic regression and, if installed, cleanlab."""
    return linear_peers(draw) + (cleanlab_peers(draw, CS) if HAS_CLEANLAB else [])
