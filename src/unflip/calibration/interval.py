r"""Confidence intervals of shares, and of sums of shares.

A share close to 0 or 1 has a skewed distribution, so its interval is computed on the logit scale.
The interval of a weighted sum of shares follows from those of its parts (MOVER, the "method of
variance estimates recovery" of Zou and Donner, Statistics in Medicine 27, 2008): with the distances
lⱼ of the lower limits, the weights wⱼ and the correlations ρ of the estimates,

.. math:: \text{low} = \hat\theta - \sqrt{\sum_{ij} \rho_{ij} w_i l_i w_j l_j}.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit, ndtri

from unflip._utils.typing import FloatArray

# Shares are clipped to stay this far from 0 and 1, where the logit is infinite.
_LEAST_SHARE = 1e-6


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95% confidence interval.

    Attributes
    ----------
    value : float
        The estimate.
    low, high : float
        Limits of the interval.
    """

    value: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """Length of the interval."""
        return self.high - self.low

    @property
    def std(self) -> float:
        """Standard error of which a normal distribution has an interval of this width."""
        return float(self.width / (2 * normal_quantile(0.95)))

    @property
    def complement(self) -> Interval:
        """Estimate and interval of 1 − value."""
        return Interval(1 - self.value, 1 - self.high, 1 - self.low)

    @property
    def limits(self) -> tuple[float, float]:
        """Lower and upper limit."""
        return self.low, self.high

    @property
    def numbers(self) -> tuple[float, float, float]:
        """Estimate, lower and upper limit."""
        return self.value, self.low, self.high

    def __format__(self, spec: str) -> str:
        """Format the numbers, by default with three decimals."""
        spec = spec or ".3f"
        return f"{self.value:{spec}} [{self.low:{spec}}, {self.high:{spec}}]"

    def __str__(self) -> str:
        return format(self)


def normal_quantile(confidence: float) -> float:
    """Return the half-width of a two-sided interval, in standard errors of a normal variable."""
    return float(ndtri(0.5 + confidence / 2))


def share_interval(
    value: float,
    error: float,
    confidence: float = 0.95,
    *,
    limits: tuple[float, float] | None = None,
) -> Interval:
    """Return the interval of a share with a standard error, on the logit scale.

    A limit is at most 2√(1/(1 − confidence))/3 standard errors away, a bound for all unimodal
    distributions and confidence levels above 5/6 (Vysochanskij and Petunin): an error larger than
    the distance to 0 or 1 makes the logit scale meaningless.

    Parameters
    ----------
    value, error : float
        The share, and its standard error.
    confidence : float
        Confidence level.
    limits : tuple of float, optional
        Interval by a source of error that is not part of `error`.
    """
    share = _clipped(value)
    half_width = normal_quantile(confidence) * error / (share * (1 - share))
    farthest = 2 * error / (3 * np.sqrt(1 - confidence))
    low = max(expit(logit(share) - half_width), _clipped(share - farthest))
    high = min(expit(logit(share) + half_width), _clipped(share + farthest))
    other_low, other_high = (share, share) if limits is None else map(_clipped, limits)
    below = np.hypot(logit(share) - logit(low), logit(share) - logit(other_low))
    above = np.hypot(logit(high) - logit(share), logit(other_high) - logit(share))
    return Interval(share, float(expit(logit(share) - below)), float(expit(logit(share) + above)))


def _clipped(value: float) -> float:
    return float(np.clip(value, _LEAST_SHARE, 1 - _LEAST_SHARE))


def normal_interval(
    value: float, error: float, *, limits: tuple[float, float] | None = None
) -> Interval:
    """Return the interval of a normal estimate; parameters are those of `share_interval`."""
    half_width = normal_quantile(0.95) * error
    low, high = (value, value) if limits is None else limits
    below = float(np.hypot(half_width, value - low))
    above = float(np.hypot(half_width, high - value))
    return Interval(value, value - below, value + above)


def positive_interval(
    value: float, error: float, *, limits: tuple[float, float] | None = None
) -> Interval:
    """Return the interval of a positive estimate on the log scale, as `share_interval`."""
    if not value > 0:
        return Interval(value, value, value)
    half_width = normal_quantile(0.95) * error / value
    low, high = (value, value) if limits is None else limits
    below = np.hypot(half_width, np.log(value / max(low, np.finfo(float).tiny)))
    above = np.hypot(half_width, np.log(high / value))
    return Interval(value, float(value * np.exp(-below)), float(value * np.exp(above)))


def wilson_interval(value: float, n: float, confidence: float = 0.95) -> Interval:
    """Return Wilson's interval of a share that was counted in n independent rows."""
    if n <= 0:
        return Interval(0.5, 0.0, 1.0)
    z = normal_quantile(confidence)
    centre = (value + z**2 / (2 * n)) / (1 + z**2 / n)
    half_width = z * np.sqrt(value * (1 - value) / n + (z / (2 * n)) ** 2) / (1 + z**2 / n)
    return Interval(value, float(centre - half_width), float(centre + half_width))


def sum_of_shares(
    parts: Sequence[Interval],
    weights: Sequence[float],
    correlations: FloatArray,
    certain: float = 0.0,
) -> Interval:
    """Return the interval of ``certain`` + Σ weight·share by MOVER, within 0 and 1.

    Parameters
    ----------
    parts : sequence of Interval
        The shares.
    weights : sequence of float
        Their weights, which with the rows behind `certain` sum to 1.
    correlations : ndarray of shape (n_parts, n_parts)
        Correlations of the estimates.
    certain : float
        Share of all rows that is known.
    """
    value = certain + sum(w * part.value for w, part in zip(weights, parts, strict=True))
    below = np.array([w * (part.value - part.low) for w, part in zip(weights, parts, strict=True)])
    above = np.array([w * (part.high - part.value) for w, part in zip(weights, parts, strict=True)])
    low = value - np.sqrt(max(float(below @ correlations @ below), 0.0))
    high = value + np.sqrt(max(float(above @ correlations @ above), 0.0))
    return Interval(float(value), max(float(low), 0.0), min(float(high), 1.0))
