r"""Class means and covariances of leave-one-out scores from sums alone, without the rows.

Leaving row i out moves its score to tᵢ − (tᵢ − t̂ᵢ)/(1 − Hᵢ). As in generalised cross-validation,
every leverage Hᵢ is replaced by the mean leverage h = Σ s/(s + nγ)/n (plus 1/n for an intercept).
The scores then are

.. math:: s_i = \bar t + \alpha (\hat t_i - \bar t) + \kappa (t_i - \bar t), \qquad
          \alpha = \frac1{1 - h}, \quad \kappa = \frac1{n - 1} - \frac h{1 - h}.

The first term of κ corrects for the leakage of a row's label into the mean of the other rows.
Without an intercept this term is absent and t̄ is 0. So sums over rows of products of scores and
targets follow from those of fitted values and targets, which the Gram matrix and the class sums
give: with Z the class sums in principal coordinates, ZᵀρZ and Zᵀsρ²Z, ρ = 1/(s + nγ).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unflip._utils.arrays import as_numpy
from unflip._utils.typing import FloatArray
from unflip.ridge.contradictions import projection_onto_agreeing
from unflip.ridge.moments import Moments
from unflip.ridge.spectrum.gram import GramSpectrum
from unflip.ridge.spectrum.left_out import SMALLEST_SLACK, CannotLeaveOutError


@dataclass(frozen=True, eq=False)
class ScoreSums:
    """Sums of products of fitted values and targets, for every regularization strength.

    Attributes
    ----------
    table : ndarray of shape (k, r)
        Targets of each observed class, minus their mean if there is an intercept.
    mean_target : ndarray of shape (r,)
        That mean; 0 without an intercept.
    counts : ndarray of shape (k,)
        Weight of each observed class.
    fitted_sums : ndarray of shape (n_regs, k, r)
        Sum of the fitted values, minus the mean target, over each observed class.
    fitted_products : ndarray of shape (n_regs, r, r)
        Products of the fitted values, summed over rows.
    mean_leverage : ndarray of shape (n_regs,)
        Mean leverage h.
    n_effective : float
        Effective sample size.
    fit_intercept : bool
        Whether there is an intercept.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> codes = rng.integers(2, size=200)
    >>> X = rng.normal(size=(200, 3)) + codes[:, None]
    >>> moments = Moments.from_rows(X, codes, n_classes=2)
    >>> spectrum = GramSpectrum.from_moments(moments, fit_intercept=True)
    >>> sums = ScoreSums.of(moments, spectrum, np.array([[-1.0], [1.0]]), np.array([0.1, 1.0]))
    >>> sums.criterion_values(scale_free=True).shape, sums.scores(0).means.shape
    ((2,), (2, 1))
    """

    table: FloatArray
    mean_target: FloatArray
    counts: FloatArray
    fitted_sums: FloatArray
    fitted_products: FloatArray
    mean_leverage: FloatArray
    n_effective: float
    fit_intercept: bool

    @classmethod
    def of(
        cls, moments: Moments, spectrum: GramSpectrum, table: FloatArray, regs: FloatArray
    ) -> ScoreSums:
        """Sum over the rows for a (k, r) table of targets and every regularization strength."""
        counts = as_numpy(moments.counts)
        mean_target = np.zeros(table.shape[1])
        if spectrum.fit_intercept:
            mean_target = counts @ table / moments.n
        centred = table - mean_target
        inverse = as_numpy(spectrum.inverse(regs))
        shrinkage = as_numpy(spectrum.eigenvalues)[:, None] * inverse
        class_sums = as_numpy(spectrum.class_sums(moments))
        rotated = class_sums @ centred
        return cls(
            table=centred,
            mean_target=mean_target,
            counts=counts,
            fitted_sums=np.einsum("pk,pg,pr->gkr", class_sums, inverse, rotated, optimize=True),
            fitted_products=np.einsum(
                "pq,pg,pr->gqr", rotated, shrinkage * inverse, rotated, optimize=True
            ),
            mean_leverage=(shrinkage.sum(axis=0) + spectrum.fit_intercept) / moments.n_effective,
            n_effective=moments.n_effective,
            fit_intercept=spectrum.fit_intercept,
        )

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Whether rows can be left out, at each regularization strength."""
        return np.asarray(1 - self.mean_leverage > SMALLEST_SLACK)

    def criterion_values(self, *, scale_free: bool) -> FloatArray:
        """Return alignment or negative squared error, at each regularization strength.

        These are the criteria of `unflip.ridge.selection`.
        """
        alpha, kappa = self._factors()
        target_power = float(np.sum(self.counts[:, None] * self.table**2))
        fitted_agreement = np.einsum("kr,gkr->g", self.table, self.fitted_sums)
        agreement = alpha * fitted_agreement + kappa * target_power
        score_power = np.trace(self._score_products(alpha, kappa), axis1=1, axis2=2)
        if not scale_free:
            return np.asarray(2 * agreement - score_power - target_power)
        norms = np.sqrt(np.maximum(score_power, 0) * target_power)
        return np.asarray(agreement / np.where(norms > 0, norms, 1.0))

    def scores(self, index: int = 0) -> ClassScores:
        """Return class means and covariance of the scores at one regularization strength.

        Raises `CannotLeaveOutError` if rows cannot be left out, unless all targets are 0.
        """
        present = self.counts > 0
        if not self.usable[index] and self.table[present].any():
            raise CannotLeaveOutError
        alpha, kappa = self._factors()
        fitted = self.fitted_sums[index] / np.where(present, self.counts, 1.0)[:, None]
        means = alpha[index] * fitted + kappa[index] * self.table
        share = self.counts / self.counts.sum()
        centre = share @ means
        # An absent class has no rows to locate it: put it at the centre.
        means = np.where(present[:, None], means, centre)
        products = self._score_products(alpha, kappa)[index] / self.counts.sum()
        total = products - np.outer(centre, centre)
        scores = ClassScores(means + self.mean_target, total, self.table, share, self.n_effective)
        return scores.drop_contradictions()

    def _factors(self) -> tuple[FloatArray, FloatArray]:
        """Return α and κ."""
        slack = np.where(self.usable, 1 - self.mean_leverage, 1.0)
        leakage = 0.0
        if self.fit_intercept and self.n_effective > 1:
            leakage = 1 / (self.n_effective - 1)
        return 1 / slack, leakage - self.mean_leverage / slack

    def _score_products(self, alpha: FloatArray, kappa: FloatArray) -> FloatArray:
        """Products of the scores, minus the mean target, summed over rows, (n_regs, r, r)."""
        mixed = np.einsum("kq,gkr->gqr", self.table, self.fitted_sums)
        targets = (self.counts[:, None] * self.table).T @ self.table
        mixed = (mixed + np.swapaxes(mixed, 1, 2)) / 2  # symmetric except for rounding
        square = (alpha**2)[:, None, None] * self.fitted_products
        square = square + (kappa**2)[:, None, None] * targets
        return np.asarray(square + 2 * (alpha * kappa)[:, None, None] * mixed)


@dataclass(frozen=True, eq=False)
class ClassScores:
    """Moments of leave-one-out scores at one regularization strength.

    Attributes
    ----------
    means : ndarray of shape (k, r)
        Mean scores of each observed class.
    total : ndarray of shape (r, r)
        Covariance of the scores of all rows.
    targets : ndarray of shape (k, r)
        Targets of the observed classes.
    share : ndarray of shape (k,)
        Proportion of each observed class.
    n_effective : float
        Effective sample size.
    """

    means: FloatArray
    total: FloatArray
    targets: FloatArray
    share: FloatArray
    n_effective: float

    @property
    def centre(self) -> FloatArray:
        """Mean score of all rows."""
        return np.asarray(self.share @ self.means)

    @property
    def within(self) -> FloatArray:
        """Covariance of the scores within an observed class, averaged over the classes."""
        deviations = self.means - self.centre
        return np.asarray(self.total - (self.share * deviations.T) @ deviations)

    def drop_contradictions(self) -> ClassScores:
        """Drop directions that contradict the labels; see `unflip.ridge.contradictions`."""
        if self.means.shape[1] == 1:
            return self
        labels = self.targets - self.share @ self.targets
        weighted = self.share[:, None] * labels
        projection = projection_onto_agreeing(
            self.total,
            (self.means - self.centre).T @ weighted,
            labels.T @ weighted,
            self.n_effective,
        )
        if projection is None:
            return self
        return replace(
            self, means=self.means @ projection, total=projection @ self.total @ projection
        )
