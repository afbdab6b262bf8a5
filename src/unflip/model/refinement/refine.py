r"""Refinement: each row gets its own target, from its label and its leave-one-out score.

Round r regresses on targets t⁽ʳ⁾ and gets leave-one-out scores s⁽ʳ⁾ = L⁽ʳ⁾t⁽ʳ⁾, where L has no
diagonal. A calibration of the scores (`unflip.calibration.log_odds`) gives P(y | sᵢ), Bayes' rule
with the observed label gives qᵢ = P(y | sᵢ, ỹᵢ), and the next targets are the posterior means. All
rounds share one eigendecomposition.

**Label leakage.** In the first round, score i does not depend on label i. From then on it does,
through the targets of other rows: label i moved score j by Lⱼᵢ, that moved target j, and target j
moves score i by Lᵢⱼ. To first order in one row's label, with gᵢ the derivative of targets by scores
around row i and Δᵢ what the label adds to row i's own target,

.. math:: \text{leakage}_i^{(r)} = \sum_{m=1}^{r} \Bigl[ L^{(r)} \prod_{j=1}^{m} g_i^{(r-j+1)}
          L^{(r-j)} \Bigr]_{ii} \Delta_i^{(r-m)}.

The derivative of a row is that of its posterior, which is small if the row is certain. In a linear
fit all rows together return a label, and gᵢ is the mean derivative. In a local fit, such as that of
a kernel, a label comes back through the neighbours of its row, which are as certain as the row
itself: the mean corrects too little where rows are uncertain. There gᵢ is the mean derivative times
Gᵢ, the uncertainty around row i: 1 − Σ q² relative to its mean, predicted at row i by a
leave-one-out fit with the γ of the round whose posterior it is, and by the regression on that fit.
It takes two more passes over the rows in each round. Linear fits do without: there Gᵢ is near 1,
and changed the correlation of scores with labels of the same true class by less than 0.001.

L is (H − chP)/d with the hat matrix H without the intercept's share, its diagonal h (the leverages)
and the slack d of leaving a row out. With an intercept P centres the targets and cᵢ = n/(n − wᵢ),
without one both are 1. Products of hat matrices share eigenvectors, so their diagonals come from
the spectrum as leverages do. Only for intermediate rows are h and d replaced by means. The same
holds with −R = H − P and its diagonal −d in the place of H and h, which is accurate if rows are
fitted closely. The scores minus the leakage do not depend on the row's own label, to first order.
Calibrations are fitted to them, rounds are compared by them, and they are reported.

**Other losses** refine with the squared loss, whose rounds are fast, and fit the last targets
themselves. Near its minimum such a fit responds to its targets as a ridge fit does, with
regularization strength 2γC̄⁻¹ and C̄⁻¹R̄ times as much (see
`unflip.ridge.solvers.ApproximateLeaveOneOut`). So the leakage has the same form along each axis of
the mean curvature C̄.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from array_api_compat import array_namespace, device

from unflip._utils.arrays import TINY, as_numpy, at_least, like, one_hot, pick
from unflip._utils.progress import tracked
from unflip._utils.typing import Array, FloatArray
from unflip.calibration.coupling import uncoupled
from unflip.labels.classes import contrasts
from unflip.labels.codes import UNCHECKED
from unflip.model.refinement.ridge_coupling import ridge_coupling
from unflip.model.refinement.rounds import (
    NoisyLabels,
    Round,
    best_convex_reg,
    calibrate_members,
    drop_contradictions,
)
from unflip.ridge.label_association import association
from unflip.ridge.selection import (
    best_reg_index,
    canonical_correlation,
    constant_scores,
    corrected_score_parts,
    loo_alignment,
    select_reg,
    without_duplicates,
)
from unflip.ridge.solvers.approximate_leave_one_out import ApproximateLeaveOneOut
from unflip.ridge.solvers.convex_fits import ConvexFits
from unflip.ridge.spectrum.base import Spectrum

#: Rounds after the first at most; benchmarks/refinement.py shows what each of them gains.
MAX_ROUNDS = 2
#: Regularization strengths tried in each round, relative to that of the round before. Refined
#: targets have less noise.
RELATIVE_REGS = np.array([0.25, 0.5, 1.0, 2.0, 4.0])
# Largest loss of correlation with the labels, in standard errors 1/√n, at which a round is kept.
_TOLERATED_LOSS = 2.0
# Largest factor by which refinement may raise the association. More was seen only if the scores of
# the first round were rounding errors.
_MAX_SUPPORT_GROWTH = 3.0


def refine(
    fits: Spectrum | ConvexFits,
    labels: NoisyLabels,
    regs: FloatArray,
    *,
    search: bool,
    scale_free: bool = True,
) -> Round:
    """Refine the targets at most twice, while the scores agree with the observed labels.

    Agreement is the correlation of scores and labels (the canonical correlation for more than two
    classes). It is valid under label noise, as `unflip.ridge.selection` explains, because the
    scores are corrected for leakage. So a round that loses more of it than chance explains has
    drifted, and is dropped.

    Parameters
    ----------
    fits : Spectrum or ConvexFits
        Spectrum of the distinct rows, or the fits of another loss.
    labels : NoisyLabels
        Labels of the distinct rows. Trusted labels become targets as they are.
    regs : ndarray
        Regularization strengths of that loss for the first round, which takes the one with the best
        agreement.
    search : bool
        Whether later rounds may take other regularization strengths.
    scale_free : bool
        Whether decisions do not depend on the scale of the scores. Otherwise the regularization
        strength has the smallest squared error (see `unflip.ridge.selection`).
    """
    if isinstance(fits, Spectrum):
        spectrum = fits
        stiffness = 1.0
    else:
        spectrum = fits.spectrum
        stiffness = fits.stiffness(labels.noise.n_classes - 1)
    regs = regs / stiffness
    tolerance = _TOLERATED_LOSS / np.sqrt(labels.rows.n_effective)
    loop = RefinementLoop(spectrum, labels, scale_free)
    current = loop.first(regs)
    best_alignment = current.alignment
    for _ in tracked(range(MAX_ROUNDS), "Rounds of refinement"):
        following = loop.next(current, _nearby_regs(current.reg, regs, search))
        if following is None or following.alignment < best_alignment - tolerance:
            break
        current = following
        best_alignment = max(best_alignment, following.alignment)
    if isinstance(fits, Spectrum):
        return current
    last_regs = _nearby_regs(current.reg, regs, search) if search else regs
    return loop.last(current, fits, stiffness * last_regs)


def _nearby_regs(reg: float, regs: FloatArray, search: bool) -> FloatArray:
    """Return regularization strengths near `reg`; below `regs` rows might be interpolated."""
    factors = RELATIVE_REGS if search else np.ones(1)
    return np.unique(np.maximum(reg * factors, regs.min()))


def with_trusted_labels(posterior: Array, truth: Array | None) -> Array:
    """Replace the posterior of rows whose true class is known by certainty."""
    if truth is None:
        return posterior
    xp = array_namespace(posterior)
    is_checked = (truth != UNCHECKED)[:, None]
    certain = one_hot(xp.where(truth > 0, truth, 0), posterior.shape[1])
    return xp.where(is_checked, certain, posterior)


class RefinementLoop:
    """Rounds of refinement, with the history that the leakage depends on."""

    def __init__(self, spectrum: Spectrum, labels: NoisyLabels, scale_free: bool = True) -> None:
        self._spectrum = spectrum
        self._labels = labels
        self._rows = labels.rows
        self._scale_free = scale_free
        self._contrasts = contrasts(labels.noise.n_classes)
        # What scores are to agree with: mean contrasts of the observed labels.
        self._label_means = self._rows.average(
            pick(labels.noise.means(self._contrasts), labels.codes)
        )
        # Of each round so far: the hat matrix H, the label effects Δ per distinct row, and, from
        # the second round on, the mean derivative and, for local fits, Gᵢ.
        self._hats: list[_Hat] = []
        self._label_effects: list[Array] = []
        self._derivatives: list[FloatArray] = []
        self._local_factors: list[Array] = []
        # Of the first round.
        self._association = 0.0
        self._first_agreement = 0.0
        self._is_close = False

    def first(self, regs: FloatArray) -> Round:
        """Run the first round, whose targets are posterior means given the labels alone."""
        labels = self._labels
        expected = labels.noise.known_priors @ self._contrasts
        posterior = pick(labels.noise.posterior, labels.codes)
        posterior = with_trusted_labels(posterior, labels.truth)
        targets = posterior @ like(self._contrasts, posterior)
        return self._run(targets, targets - like(expected, targets), regs, 0)

    def next(self, before: Round, regs: FloatArray) -> Round | None:
        """Run another round; return None if the targets have converged."""
        posterior = before.calibration.posterior(self._labels.codes, before.noise)
        posterior = with_trusted_labels(posterior, self._labels.truth)
        targets = posterior @ like(self._contrasts, posterior)
        if float(array_namespace(targets).max(abs(targets - before.targets))) < 1e-6:
            return None
        slopes = before.calibration.model.slopes
        self._derivatives.append(slopes @ self._covariance(posterior) @ self._contrasts)
        if self._labels.is_local:
            self._local_factors.append(self._local_factor(posterior, before.index))
        expected = before.calibration.probabilities @ like(self._contrasts, targets)
        return self._run(targets, targets - expected, regs, before.index + 1)

    def last(self, current: Round, fits: ConvexFits, regs: FloatArray) -> Round:
        """Fit the targets of the current round with another loss, instead of the squared one."""
        means = self._rows.average(current.targets)
        weights = self._rows.weights
        if len(regs) > 1:

            def corrected_scores(compared: ConvexFits, reg: float) -> Array:
                return self._convex_scores(compared, means, np.array([reg]), current.index)[0]

            best = best_convex_reg(
                fits, means, regs, corrected_scores, self._label_means, weights, self._scale_free
            )
            regs = np.array([best])
        all_scores, leakage = self._convex_scores(fits, means, regs, current.index)
        scores = drop_contradictions(all_scores[:, 0, :], self._label_means, weights)
        labels = self._labels
        if labels.rate_prior is not None:  # a later round may have been dropped
            labels = replace(labels, noise=current.noise)
        calibration, noise, rate_covariance = calibrate_members(
            scores, labels, uncoupled(self._rows, scores), self._association
        )
        return replace(
            current,
            reg=float(regs[0]),
            scores=scores,
            calibration=calibration,
            leakage=leakage[:, 0, :],
            alignment=np.nan,
            noise=noise,
            rate_covariance=rate_covariance,
        )

    def _covariance(self, posterior: Array) -> FloatArray:
        """Return the mean covariance matrix of the classes given the posterior."""
        share = self._labels.shares
        mean = as_numpy(share @ posterior)
        products = as_numpy((posterior.T * share) @ posterior)
        return np.asarray(np.diag(mean) - products)

    def _local_factor(self, posterior: Array, index: int) -> Array:
        """Return Gᵢ, the relative uncertainty around a row after a round, (m, 1)."""
        xp = array_namespace(posterior)
        uncertainty = self._rows.average(1 - xp.sum(posterior**2, axis=1)[:, None])
        share = self._rows.weights / xp.sum(self._rows.weights)
        excess = uncertainty / at_least(share @ uncertainty, TINY) - 1
        regs = self._hats[index].regs
        scores = corrected_score_parts(self._spectrum, self._rows, excess, regs)
        predicted = scores(slice(None))[:, 0, :]
        slope = (share @ (predicted * excess)) / at_least(share @ predicted**2, TINY)
        factor = 1 + at_least(slope, 0.0) * predicted
        return xp.clip(factor, 1 + xp.min(excess), 1 + xp.max(excess))

    def _run(self, targets: Array, label_effects: Array, regs: FloatArray, index: int) -> Round:
        """Fit the targets; `label_effects` are Δ, what its own label adds to each target."""
        rows = self._rows
        means = rows.average(targets)
        reg = self._select_reg(means, regs, index)
        gamma = float(reg[0])
        if index == 0:
            self._is_close = _is_close(self._spectrum, reg)
        hat = _Hat.of(self._spectrum, reg, close=self._is_close)
        leakage = self._leakage([_Response(hat, np.eye(targets.shape[1])[None, :, :])], index)
        all_scores = corrected_score_parts(self._spectrum, rows, means, reg)(slice(None))
        all_scores -= leakage
        scores = all_scores[:, 0, :]
        self._hats.append(hat)
        self._label_effects.append(rows.average(label_effects))
        if index == 0:
            constant = constant_scores(self._spectrum, rows, reg)
            self._association = association(self._spectrum, rows, targets, scores, gamma, constant)
        scores = drop_contradictions(scores, self._label_means, rows.weights)
        coupling = ridge_coupling(self._spectrum, rows, label_effects, gamma)
        calibration, noise, rate_covariance = calibrate_members(
            scores, self._labels, coupling, self._association
        )
        if self._labels.rate_prior is not None:
            self._labels = replace(self._labels, noise=noise)  # where the next round starts
        agreement = self._agreement(scores, centred=True)
        alignment = agreement
        if not self._spectrum.fit_intercept:
            alignment = self._agreement(scores, centred=False)
        if index == 0:
            self._first_agreement = agreement
        return Round(
            targets=targets,
            reg=gamma,
            scores=scores,
            calibration=calibration,
            leakage=leakage[:, 0, :],
            index=index,
            alignment=alignment,
            noise=noise,
            rate_covariance=rate_covariance,
            association=self._association,
            support=self._support(agreement),
        )

    def _select_reg(self, means: Array, regs: FloatArray, index: int) -> FloatArray:
        """Return the regularization strength whose scores are best, in an array."""
        references = self._label_means if self._scale_free else means
        if index == 0:  # nothing leaks
            return select_reg(
                self._spectrum,
                self._rows,
                means,
                regs,
                labels=references,
                scale_free=self._scale_free,
            )
        if len(regs) == 1:
            return regs
        plain_scores = corrected_score_parts(self._spectrum, self._rows, means, regs)
        columns = np.eye(means.shape[1])[None, :, :]

        def corrected_scores(part: slice) -> Array:
            hat = _Hat.of(self._spectrum, regs, part, close=self._is_close)
            return plain_scores(part) - self._leakage([_Response(hat, columns)], index, part)

        best = best_reg_index(
            corrected_scores,
            references,
            self._rows.weights,
            scale_free=self._scale_free,
            centred=self._spectrum.fit_intercept,
        )
        return regs[[best]]

    def _agreement(self, scores: Array, *, centred: bool) -> float:
        """Return the correlation of scores and labels, by which rounds are compared."""
        labels = self._label_means
        weights = self._rows.weights
        if scores.shape[1] > 1:
            return canonical_correlation(scores, labels, weights, centred=centred)
        correlations = loo_alignment(
            lambda part: scores[part, None, :], labels, weights, centred=centred
        )
        return float(correlations[0])

    def _support(self, agreement: float) -> float:
        """Return the association of the first round, times the growth of the agreement since."""
        first = self._first_agreement
        if not 0 < first < agreement:
            return self._association
        return self._association * min(agreement / first, _MAX_SUPPORT_GROWTH)

    def _convex_scores(
        self, fits: ConvexFits, means: Array, regs: FloatArray, index: int
    ) -> tuple[Array, Array]:
        """Return corrected scores of another loss and their leakage, (m, n_regs, n_scores) each."""
        left_out = without_duplicates(fits.leave_one_out(means, regs), self._rows.leaving_share)
        responses = _convex_responses(self._spectrum, left_out, regs, self._is_close)
        leakage = self._leakage(responses, index)
        return left_out.corrected_scores - leakage, leakage

    def _leakage(self, responses: list[_Response], index: int, part: slice = slice(None)) -> Array:
        """Return the leakage of labels into scores of round `index`, (m, n_regs, k − 1).

        `responses` are those of the scores to their targets, for the distinct rows in `part`.
        """
        slack = responses[0].hat.slack
        hats = [hat.of_rows(part) for hat in self._hats]
        shape = (*slack.shape, self._contrasts.shape[1])
        leakage = array_namespace(slack).zeros(shape, dtype=slack.dtype, device=device(slack))
        for response in responses:
            if index >= 1:
                changes = self._target_changes(index - 1, index - 1, part)
                diagonal = self._two_round_diagonal(response.hat, hats[index - 1], part)
                leakage += response.to(changes, diagonal)
            if index >= 2:
                changes = self._target_changes(index - 2, index - 1, part)
                diagonal = self._three_round_diagonal(
                    response.hat, hats[index - 1], hats[index - 2], part
                )
                leakage += response.to(changes, diagonal)
        return leakage

    def _target_changes(self, first: int, last: int, part: slice) -> Array:
        """Return the label effects Δ of a round times gᵢ of the rounds to `last`, (m, k − 1)."""
        changes = self._label_effects[first][part, :]
        for derivative in self._derivatives[first : last + 1]:
            changes = changes @ like(derivative, changes)
        for factor in self._local_factors[first : last + 1]:
            changes = factor[part, :] * changes
        return changes

    def _two_round_diagonal(self, last: _Hat, first: _Hat, part: slice) -> Array:
        """Return the diagonal of L₁L₀, (m, n_regs): ((H₁H₀)ᵢᵢ − cᵢh₁ᵢh₀ᵢ)/(d₁ᵢd̄₀)."""
        products = self._diagonals([last.regs, first.regs], part=part)[0]
        scale = 1 / self._spectrum.unfitted(part)[:, None]
        numerator = products - scale * last.diagonal * first.diagonal
        return numerator / (last.slack * first.mean_slack)

    def _three_round_diagonal(self, last: _Hat, middle: _Hat, first: _Hat, part: slice) -> Array:
        """Return the diagonal of L₂L₁L₀, (m, n_regs), without paths that stay at a row.

        L₂ is exact, L₁ has no diagonal on average, and the diagonal of L₀ is subtracted.
        """
        k, j, i = last.regs, middle.regs, first.regs
        all_three, last_two, outer, first_two = self._diagonals(
            [k, j, i], [k, j], [k, i], [j, i], part=part
        )
        unfitted = self._spectrum.unfitted(part)[:, None]
        mean_scale = 1 / (1 - self._spectrum.fit_intercept / self._spectrum.n_rows)
        of_last = last.diagonal / unfitted
        of_first = first.diagonal + mean_scale * first.mean_diagonal * (1 - unfitted)
        numerator = all_three - of_last * first_two
        numerator = numerator - of_first * (last_two - of_last * middle.diagonal)
        numerator -= mean_scale * middle.mean_diagonal * (outer - of_last * first.diagonal)
        return numerator / (last.slack * middle.mean_slack * first.mean_slack)

    def _diagonals(self, *products: Sequence[FloatArray], part: slice) -> list[Array]:
        """Return diagonals of products of hat matrices, or of −R in their place."""
        if not self._is_close:
            return self._spectrum.hat_diagonals(*products, rows=part)
        diagonals = self._spectrum.residual_diagonals(*products, rows=part)
        return [
            (-1) ** len(product) * diagonal
            for product, diagonal in zip(products, diagonals, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class _Hat:
    """Diagonal of the hat matrix, or of −R in its place, and the slack, for each γ."""

    regs: FloatArray
    diagonal: Array  # (m, n_regs)
    slack: Array  # (m, n_regs)
    mean_diagonal: Array  # (n_regs,), over all rows that it was computed for
    mean_slack: Array  # (n_regs,)

    @classmethod
    def of(
        cls, spectrum: Spectrum, regs: FloatArray, part: slice = slice(None), *, close: bool = False
    ) -> _Hat:
        leverage, slack = spectrum.leverage_and_slack(regs, part)
        slack = at_least(slack, TINY)
        diagonal = -slack if close else leverage
        mean = array_namespace(slack).mean
        return cls(regs, diagonal, slack, mean(diagonal, axis=0), mean(slack, axis=0))

    def of_rows(self, part: slice) -> _Hat:
        """Return the diagonals of the rows in a slice, with the means over all rows."""
        return replace(self, diagonal=self.diagonal[part, :], slack=self.slack[part, :])


@dataclass(frozen=True, eq=False)
class _Response:
    """The response of scores to targets: a hat matrix times a matrix on the targets' columns."""

    hat: _Hat
    columns: FloatArray  # (n_regs, n_scores, n_scores), or (1, n_scores, n_scores) for all γ

    def to(self, target_changes: Array, diagonal: Array) -> Array:
        """Return the change of the scores, (m, n_regs, n_scores), by a diagonal (m, n_regs)."""
        columns = like(self.columns, target_changes)
        product = array_namespace(target_changes).tensordot
        return diagonal[:, :, None] * product(target_changes, columns, axes=((1,), (1,)))


def _convex_responses(
    spectrum: Spectrum, left_out: ApproximateLeaveOneOut, regs: FloatArray, close: bool
) -> list[_Response]:
    """Return the response along each axis of the mean curvature."""
    curvatures, axes = np.linalg.eigh(left_out.mean_curvature)
    responses = []
    for b in range(axes.shape[2]):
        axis = axes[:, :, b]
        columns = np.einsum(
            "gca,gc,gb->gab", left_out.mean_response, axis / curvatures[:, [b]], axis
        )
        hat = _Hat.of(spectrum, 2 * regs / curvatures[:, b], close=close)
        responses.append(_Response(hat, columns))
    return responses


def _is_close(spectrum: Spectrum, reg: FloatArray) -> bool:
    """Whether fits reproduce most of a row's own target on average."""
    slack = spectrum.residual_diagonals([reg])[0]
    return float(array_namespace(slack).mean(slack)) < 1 / 2
