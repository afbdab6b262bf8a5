r"""Distribution of the ridge score in the isotropic mixture, with and without an intercept.

With targets t(ỹ), y = ±1, u = ‖μ‖² and the bulk gain q = 1/(1 + γ(1 + δ)):

=================  ===================  ============  ===========
..                 c                    S             v
=================  ===================  ============  ===========
without intercept  E[t·y]               E[t²]         1
with intercept     Cov(t, y)            Var(t)        4π₁π₂
=================  ===================  ============  ===========

.. math::
    m = \frac{c\,u\,q}{1 + v u q}, \qquad
    V = \frac1h \Bigl[ \frac{m^2}{u} + (1 - h)\,(S - 2cm + v m^2) \Bigr], \qquad 1 - h = \eta q^2,

and the score of a new row is N(±m, V) without an intercept, N(E[t] − 2π₂m, V) and N(E[t] + 2π₁m, V)
for the negative and the positive class with one. The first is the paper's Theorem (thm_main) and
Proposition with ν = V + m²; the second is derived in docs/theory/isotropic.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from unflip import targets as target_values
from unflip._utils.typing import FloatArray
from unflip._utils.validation import as_floats
from unflip.labels.noise import NoiseModel
from unflip.theory.model import Mixture, Prediction
from unflip.theory.resolvent import bulk_gain
from unflip.theory.resolvent import h as variance_share

_LABELS = np.array([-1.0, 1.0])


@dataclass(frozen=True)
class TargetMoments:
    """Moments (c, S, v) of targets and true labels that the theory needs, and the mean target."""

    alignment: float  # c
    # S − c²/v, the power of the targets that the true labels do not explain. It is stored because
    # the difference would cancel.
    misfit: float
    label_power: float  # v
    mean: float  # E[t] with an intercept, 0 without

    @property
    def power(self) -> float:
        """S."""
        return self.misfit + self.alignment**2 / self.label_power


def target_moments(targets: ArrayLike, noise: NoiseModel, *, fit_intercept: bool) -> TargetMoments:
    """Return the moments of targets and true labels, centred if an intercept is fitted."""
    values = np.asarray(targets, dtype=float)
    joint = noise.joint
    mean = float(joint.sum(axis=0) @ values) if fit_intercept else 0.0
    label_mean = float(joint.sum(axis=1) @ _LABELS) if fit_intercept else 0.0
    centred = values - mean
    labels = _LABELS - label_mean
    alignment = float(labels @ joint @ centred)
    label_power = float(joint.sum(axis=1) @ labels**2)
    errors = centred - (alignment / label_power) * labels[:, None]
    return TargetMoments(alignment, float((joint * errors**2).sum()), label_power, mean)


def predict_squared(
    mixture: Mixture, *, targets: str | ArrayLike, reg: ArrayLike, fit_intercept: bool
) -> Prediction:
    """Predict for the squared loss, in closed form; parameters as in `unflip.theory.predict`."""
    values = target_values.resolve(targets, mixture.noise)
    moments = target_moments(values, mixture.noise, fit_intercept=fit_intercept)
    return predict_from_moments(moments, mixture, reg, fit_intercept=fit_intercept)


def predict_from_moments(
    moments: TargetMoments, mixture: Mixture, reg: ArrayLike, *, fit_intercept: bool
) -> Prediction:
    """Predict from the moments (c, S, v) of any targets."""
    power = as_floats(mixture.mean_norm, "mean_norm") ** 2
    aspect = as_floats(mixture.aspect, "aspect")
    gain = bulk_gain(aspect, reg)
    share = variance_share(aspect, reg)
    if (share == 0).any():
        raise ValueError(
            "reg = 0 at aspect = 1 has no finite variance: use a positive reg or another aspect."
        )
    mean_per_gain, spread = _scores_per_gain(moments, power, aspect, gain)
    std_per_gain = np.sqrt(spread / share)
    return _prediction(
        moments, mixture.noise.known_priors, gain, mean_per_gain, std_per_gain, fit_intercept
    )


def _scores_per_gain(
    moments: TargetMoments, power: FloatArray, aspect: FloatArray, gain: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """m/q and hV/q², both finite in the limit q → 0 of strong regularization."""
    c, v = moments.alignment, moments.label_power
    whitening = 1 + v * power * gain  # how much more the means' direction is shrunk than the bulk
    shrunk = c / whitening
    # S − 2cm + vm² as a sum of positive terms, since c − vm = c/(1 + vuq). The difference would
    # cancel if the class means are far apart.
    spread = power * shrunk**2 + aspect * (moments.misfit + shrunk**2 / v)
    return power * shrunk, spread


def _prediction(
    moments: TargetMoments,
    priors: FloatArray,
    gain: FloatArray,
    mean_per_gain: FloatArray,
    std_per_gain: FloatArray,
    fit_intercept: bool,
) -> Prediction:
    # Half the distance between the class means is m in both cases; only their centre differs.
    below, above = (2 * priors[1], 2 * priors[0]) if fit_intercept else (1.0, 1.0)
    m = mean_per_gain * gain
    with np.errstate(invalid="ignore"):  # equal targets give 0/0: no separation
        separation = np.where(std_per_gain > 0, 2 * mean_per_gain / std_per_gain, 0.0)
    return Prediction(
        means=(moments.mean - below * m, moments.mean + above * m),
        variance=np.asarray((std_per_gain * gain) ** 2),
        separation=separation,
        priors=priors,
    )
