r"""Leave-one-out scores without rows: their class means and products, from sums alone.

Leaving row i out moves its score to tᵢ − (tᵢ − t̂ᵢ)/(1 − Hᵢ). Rows of one kind have hat values
close to their mean h = Σ s/(s + nγ)/n (and 1/n for an intercept), as generalised cross-validation
has it. With h for every Hᵢ the scores are

.. math:: s_i = \bar t + \alpha (\hat t_i - \bar t) + \kappa (t_i - \bar t), \qquad
          \alpha = \frac1{1 - h}, \quad \kappa = \frac1{n - 1} - \frac h{1 - h}

(without the first term of κ, which takes back the trace of a row's label on the mean of the others,
and with 0 for t̄, where there is no intercept). So sums over rows of products of scores and targets
follow from those of fitted values and targets, which the Gram matrix and the class sums give: with
Z the class sums in principal coordinates, ZᵀρZ and Zᵀsρ²Z, ρ = 1/(s + nγ).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unflip._utils.arrays import as_numpy
from unflip._utils.typing import FloatArray
from unflip.ridge.contradictions import projection_onto_agreeing
from unflip.ridge.moments import Moments
from unflip.ridge.spectrum.base import SMALLEST_SLACK
from unflip.ridge.spectrum.gram import GramSpectrum
from unflip.ridge.spectrum.left_out import CannotLeaveOutError


@dataclass(frozen=True, eq=False)
class ScoreSums:
    """Products of fitted values and targets of one table, for every penalty, and what leaving a row out makes of them.

    Attributes
    ----------
    table : ndarray of shape (k, r)
        Targets of each observed class, less their mean where there is an intercept.
    mean_target : ndarray of shape (r,)
        That mean; 0 without an intercept.
    counts : ndarray of shape (k,)
        Weight of each observed class.
    with_targets : ndarray of shape (n_regs, k, r)
        Sum of the fitted values, less the mean target, over each observed class.
    power : ndarray of shape (n_regs, r, r)
        Products of the fitted values, summed over rows.
    hat : ndarray of shape (n_regs,)
        Mean hat value.
    n_rows : float
        How many rows of equal weight there are.
    fit_intercept : bool
        Whether there is an intercept.
    """

    table: FloatArray
    mean_target: FloatArray
    counts: FloatArray
    with_targets: FloatArray
    power: FloatArray
    hat: FloatArray
    n_rows: float
    fit_intercept: bool

    @classmethod
    def of(
        cls, moments: Moments, spectrum: GramSpectrum, table: FloatArray, regs: FloatArray
    ) -> ScoreSums:
        """Add up the scores of a table of targets, (k, r), for every penalty."""
        counts, n_rows = as_numpy(moments.counts), moments.n_effective
        mean = counts @ table / moments.n if spectrum.fit_intercept else np.zeros(table.shape[1])
        centred = table - mean
        eigenvalues, inverse = as_numpy(spectrum.eigenvalues), as_numpy(spectrum.inverse(regs))
        class_sums = as_numpy(spectrum.class_sums(moments))
        rotated = class_sums @ centred
        kept = eigenvalues[:, None] * inverse
        return cls(
            table=centred,
            mean_target=mean,
            counts=counts,
            with_targets=np.einsum("pk,pg,pr->gkr", class_sums, inverse, rotated, optimize=True),
            power=np.einsum("pq,pg,pr->gqr", rotated, kept * inverse, rotated, optimize=True),
            hat=(kept.sum(axis=0) + spectrum.fit_intercept) / n_rows,
            n_rows=n_rows,
            fit_intercept=spectrum.fit_intercept,
        )

    @property
    def usable(self) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Whether rows can be left out, at each penalty."""
        return np.asarray(1 - self.hat > SMALLEST_SLACK)

    def merits(self, *, scale_free: bool) -> FloatArray:
        """Alignment of the scores with the targets at each penalty, or minus their squared error.

        These are the criteria of `unflip.ridge.selection`.
        """
        alpha, kappa = self._factors()
        of_targets = float(np.sum(self.counts[:, None] * self.table**2))
        of_fits = np.einsum("kr,gkr->g", self.table, self.with_targets)
        common = alpha * of_fits + kappa * of_targets
        power = np.trace(self._products(alpha, kappa), axis1=1, axis2=2)
        if not scale_free:
            return np.asarray(2 * common - power - of_targets)
        norms = np.sqrt(np.maximum(power, 0) * of_targets)
        return np.asarray(common / np.where(norms > 0, norms, 1.0))

    def scores(self, index: int = 0) -> ClassScores:
        """Return class means and covariance of the scores at one penalty."""
        if (
            not self.usable[index] and self.table[self.counts > 0].any()
        ):  # where nothing is fitted, none is missed
            raise CannotLeaveOutError
        alpha, kappa = self._factors()
        present = self.counts > 0
        fitted = self.with_targets[index] / np.where(present, self.counts, 1.0)[:, None]
        means = alpha[index] * fitted + kappa[index] * self.table
        share = self.counts / self.counts.sum()
        centre = share @ means
        means = np.where(present[:, None], means, centre)  # no row says where an absent class is
        total = self._products(alpha, kappa)[index] / self.counts.sum() - np.outer(centre, centre)
        return ClassScores(
            means + self.mean_target, total, self.table, share, self.n_rows
        ).without_contradictions()

    def _factors(self) -> tuple[FloatArray, FloatArray]:
        slack = np.where(self.usable, 1 - self.hat, 1.0)
        trace = 1 / (self.n_rows - 1) if self.fit_intercept and self.n_rows > 1 else 0.0
        return 1 / slack, trace - self.hat / slack

    def _products(self, alpha: FloatArray, kappa: FloatArray) -> FloatArray:
        """Products of the scores, less the mean target, summed over rows, (n_regs, r, r)."""
        mixed = np.einsum("kq,gkr->gqr", self.table, self.with_targets)
        targets = (self.counts[:, None] * self.table).T @ self.table
        mixed = (mixed + np.swapaxes(mixed, 1, 2)) / 2  # symmetric but for rounding
        square = (alpha**2)[:, None, None] * self.power + (kappa**2)[:, None, None] * targets
        return np.asarray(square + 2 * (alpha * kappa)[:, None, None] * mixed)


@dataclass(frozen=True, eq=False)
class ClassScores:
    """What is known of leave-one-out scores at one penalty.

    Attributes
    ----------
    means : ndarray of shape (k, r)
        Mean scores of each observed class.
    total : ndarray of shape (r, r)
        Covariance of the scores of all rows.
    targets : ndarray of shape (k, r)
        What the observed classes were fitted to.
    share : ndarray of shape (k,)
        Share of each observed class.
    n_rows : float
        How many rows of equal weight there are.
    """

    means: FloatArray
    total: FloatArray
    targets: FloatArray
    share: FloatArray
    n_rows: float

    @property
    def centre(self) -> FloatArray:
        """Mean score of all rows."""
        return np.asarray(self.share @ self.means)

    @property
    def within(self) -> FloatArray:
        """Covariance of the scores within an observed class, the mean over these."""
        apart = self.means - self.centre
        return np.asarray(self.total - (self.share * apart.T) @ apart)

    def without_contradictions(self) -> ClassScores:
        """Drop directions that contradict the labels; see `unflip.ridge.contradictions`."""
        if self.means.shape[1] == 1:
            return self
        labels = self.targets - self.share @ self.targets
        weighted = self.share[:, None] * labels
        onto = projection_onto_agreeing(
            self.total,
            (self.means - self.centre).T @ weighted,
            labels.T @ weighted,
            self.n_rows,
        )
        if onto is None:
            return self
        return replace(self, means=self.means @ onto, total=onto @ self.total @ onto)
