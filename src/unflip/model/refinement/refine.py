r"""A target for each row: the observed label and the leave-one-out score, combined by Bayes, refitted and repeated.

Round r regresses on targets t⁽ʳ⁾ and gets leave-one-out scores s⁽ʳ⁾ = L⁽ʳ⁾t⁽ʳ⁾, where L has no
diagonal. A read-out of the scores (`unflip.calibration.log_odds`) gives P(y | sᵢ), the observed
label makes it qᵢ = P(y | sᵢ, ỹᵢ), and the next targets are the posterior means. All rounds share
one eigendecomposition.

**The leak.** In the first round row i's label has no part in its score. From then on the other
rows' targets contain it: label i moved score j through Lⱼᵢ, that moved target j, and target j moves
score i through Lᵢⱼ. To first order in one row's label, with g the mean derivative of targets by
scores and Δᵢ what the label adds to row i's own target,

.. math:: \text{leak}_i^{(r)} = \sum_{m=1}^{r} \Bigl[ L^{(r)} \prod_{j=1}^{m} g^{(r-j+1)} L^{(r-j)} \Bigr]_{ii}
          \Delta_i^{(r-m)}.

L is (H − chP)/d with the hat matrix H without the intercept's share, its diagonal h and the slack d
of leaving a row out; with an intercept P centres the targets and cᵢ = n/(n − wᵢ), without one both
are 1. Products of hat matrices share eigenvectors, so their diagonals come from the spectrum as hat
values do; only for rows in between are h and d replaced by means. The same holds with −R = H − P
and its diagonal −d in the place of H and h, which loses no digits where rows are fitted closely.
Subtracting the leak gives scores in which, to first order, row i's own label has no part. They are
what read-outs are fitted to, what rounds are compared by, and what is reported.

**Other losses** refine by the squared loss, whose rounds cost next to nothing, and fit the last
targets themselves. Near its minimum such a fit answers to its targets as a ridge fit does, of
penalty 2γC̄⁻¹ and C̄⁻¹R̄ times as much (see `unflip.ridge.solvers.ApproximateLeaveOneOut`), so the
leak has the same form along each axis of the mean curvature C̄.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from array_api_compat import array_namespace, device

from unflip._utils.arrays import TINY, as_numpy, at_least, like, one_hot, pick
from unflip._utils.typing import Array, FloatArray
from unflip.calibration.coupling import Coupling, uncoupled
from unflip.calibration.log_odds import Calibration
from unflip.calibration.observations import Observations
from unflip.data.duplicates import DistinctRows
from unflip.labels.classes import UNCHECKED, contrasts
from unflip.labels.noise import Channel
from unflip.model.refinement.ridge_coupling import ridge_coupling
from unflip.model.refinement.rounds import (
    Round,
    best_convex_reg,
    calibrated,
    without_contradictions,
)
from unflip.ridge.label_association import PROBABLE, association
from unflip.ridge.selection import (
    best_reg,
    canonical_correlation,
    constant_scores,
    corrected_score_parts,
    loo_alignment,
    searched_reg,
    without_copies,
)
from unflip.ridge.solvers.convex_fits import ConvexFits
from unflip.ridge.solvers.leave_one_out import ApproximateLeaveOneOut
from unflip.ridge.spectrum.base import Spectrum

MAX_ROUNDS = 2
#: Penalties tried in each round, relative to that of the round before: refined targets carry less noise.
RELATIVE_REGS = np.array([0.25, 0.5, 1.0, 2.0, 4.0])
#: Agreement with the labels that a round may lose and still be taken, in standard errors 1/√n of a correlation.
_TOLERATED_LOSS = 2.0
_SETTLED = 1e-6
# of agreement with the labels by refinement: more was seen where first scores are rounding errors
_MOST_GROWTH = 3.0


def refine(
    fits: Spectrum | ConvexFits,
    rows: DistinctRows,
    codes: Array,
    noise: Channel,
    regs: FloatArray,
    *,
    search: bool,
    scale_free: bool = True,
    truth: Array | None = None,
    infer_priors: bool = False,
    priors_known: bool = False,
) -> Round:
    """Refine the targets until the scores agree less with the observed labels, at most twice.

    Agreement, the correlation of the two (the canonical one for more than two classes), is right
    under label noise, as `unflip.ridge.selection` explains, because the scores are free of the
    row's own label; so a round that loses more than a little of it has drifted, and is not taken.

    Parameters
    ----------
    fits : Spectrum or ConvexFits
        Spectrum of the distinct rows, or the fits of another loss.
    rows : DistinctRows
        The rows.
    codes : array of shape (n_positive,)
        What was observed of each member, as a column of the noise's table: its label, or its votes.
    noise : Channel
        With priors.
    regs : ndarray
        Penalties of that loss for the first round: the one with the best agreement is taken.
    search : bool
        Whether later rounds may move away from it.
    scale_free : bool
        Whether the scores are read in a way that their scale does not change; otherwise the penalty
        is the one with the smallest squared error (see `unflip.ridge.selection`).
    truth : array of shape (n_positive,), optional
        True class of each member, `UNCHECKED` where it is not known; the targets of the others are
        their true labels.
    infer_priors : bool
        Whether the priors merely explain the observed proportions, so that scores may correct them.
    priors_known : bool
        Whether they are known from elsewhere than the labels.
    """
    spectrum, convex = (fits, None) if isinstance(fits, Spectrum) else (fits.spectrum, fits)
    stiffness = 1.0 if convex is None else convex.stiffness(noise.n_classes - 1)
    regs = regs / stiffness
    loop = _Loop(spectrum, rows, codes, noise, scale_free, truth, infer_priors, priors_known)
    current = loop.first(regs)
    best, tolerated = current.alignment, _TOLERATED_LOSS / np.sqrt(rows.n_effective)
    for _ in range(MAX_ROUNDS):
        following = loop.next(current, _nearby(current.reg, regs, search))
        if following is None or following.alignment < best - tolerated:
            break
        current, best = following, max(best, following.alignment)
    if convex is None:
        return current
    return loop.last(
        current,
        convex,
        stiffness * _nearby(current.reg, regs, search) if search else stiffness * regs,
    )


def _nearby(reg: float, regs: FloatArray, search: bool) -> FloatArray:
    """Penalties around one, none smaller than those of the first round: rows must not be fitted exactly."""
    return np.unique(np.maximum(reg * (RELATIVE_REGS if search else np.ones(1)), regs.min()))


def known_rows(posterior: Array, truth: Array | None) -> Array:
    """Replace the posterior of rows whose true class is known, if there are any, by certainty."""
    if truth is None:
        return posterior
    xp = array_namespace(posterior)
    checked = (truth != UNCHECKED)[:, None]
    return xp.where(checked, one_hot(xp.where(truth > 0, truth, 0), posterior.shape[1]), posterior)


class _Loop:
    """The rounds so far, as far as leaks depend on them."""

    def __init__(
        self,
        spectrum: Spectrum,
        rows: DistinctRows,
        codes: Array,
        noise: Channel,
        scale_free: bool = True,
        truth: Array | None = None,
        infer_priors: bool = False,
        priors_known: bool = False,
    ) -> None:
        self._spectrum, self._rows, self._codes, self._noise = spectrum, rows, codes, noise
        self._scale_free = scale_free
        self._infer_priors = infer_priors
        self._observations = Observations(
            codes, rows.member_weights, rows.n_effective, priors_known
        )
        self._truth = truth
        self._contrasts = contrasts(noise.n_classes)
        self._labels = rows.average(pick(noise.means(self._contrasts), codes))
        self._hats: list[_Hat] = []
        self._own_parts: list[Array] = []  # Δ, per distinct row
        self._derivatives: list[FloatArray] = []  # g of each round but the first
        self._association = self._first_agreement = 0.0  # of the first round
        self._is_close = False  # whether rows are fitted closely, in the first round

    def first(self, regs: FloatArray) -> Round:
        expected = self._noise.known_priors @ self._contrasts
        posterior = known_rows(pick(self._noise.posterior, self._codes), self._truth)
        targets = posterior @ like(self._contrasts, posterior)
        return self._fit(targets, targets - like(expected, targets), regs, 0)

    def next(self, before: Round, regs: FloatArray) -> Round | None:
        """Run another round; None where the targets do not change any more."""
        targets, derivative = self._targets_after(before)
        if float(array_namespace(targets).max(abs(targets - before.targets))) < _SETTLED:
            return None
        self._derivatives.append(derivative)
        own_part = targets - before.reading.probabilities @ like(self._contrasts, targets)
        return self._fit(targets, own_part, regs, before.index + 1)

    def _targets_after(self, before: Round) -> tuple[Array, FloatArray]:
        """Return the posterior means of the contrasts after a round, and their mean derivative by the scores."""
        posterior = known_rows(before.reading.posterior(self._codes, before.noise), self._truth)
        weights = self._rows.member_weights
        share = weights / array_namespace(weights).sum(weights)
        mean, products = map(as_numpy, (share @ posterior, (posterior.T * share) @ posterior))
        derivative = before.reading.model.slopes @ (np.diag(mean) - products) @ self._contrasts
        return posterior @ like(self._contrasts, posterior), derivative

    def last(self, current: Round, fits: ConvexFits, regs: FloatArray) -> Round:
        """Fit the targets of the current round with another loss, instead of the squared one."""
        means = self._rows.average(current.targets)
        if len(regs) > 1:

            def label_free(compared: ConvexFits, reg: float) -> Array:
                return self._convex_scores(compared, means, np.array([reg]), current.index)[0]

            weights = self._rows.weights
            best = best_convex_reg(
                fits, means, regs, label_free, self._labels, weights, self._scale_free
            )
            regs = np.array([best])
        scores, leak = (
            part[:, 0, :] for part in self._convex_scores(fits, means, regs, current.index)
        )
        scores = without_contradictions(scores, self._labels, self._rows.weights)
        reading, noise = self._calibrated(scores, uncoupled(self._rows, scores))
        return replace(
            current,
            reg=float(regs[0]),
            scores=scores,
            reading=reading,
            leak=leak,
            alignment=np.nan,
            noise=noise,
        )

    def _convex_scores(
        self, fits: ConvexFits, means: Array, regs: FloatArray, index: int
    ) -> tuple[Array, Array]:
        left_out = without_copies(fits.leave_one_out(means, regs), self._rows.leaving_share)
        leak = self._leak(_convex_answers(self._spectrum, left_out, regs, self._is_close), index)
        return left_out.corrected_scores - leak, leak

    def _fit(self, targets: Array, own_part: Array, regs: FloatArray, index: int) -> Round:
        """Fit these targets, of which `own_part` is what the row's own label adds to them."""
        means = self._rows.average(targets)
        reg = self._best(means, regs, index)
        if not index:
            self._is_close = _is_close(self._spectrum, reg)
        hat = _Hat.of(self._spectrum, reg, close=self._is_close)
        leak = self._leak([_Answer(hat, np.eye(targets.shape[1])[None, :, :])], index)
        scores = corrected_score_parts(self._spectrum, self._rows, means, reg)(slice(None))
        scores -= leak
        self._hats.append(hat)
        self._own_parts.append(self._rows.average(own_part))
        if not index:
            constant = constant_scores(self._spectrum, self._rows, reg)
            self._association = association(
                self._spectrum, self._rows, targets, scores[:, 0, :], float(reg[0]), constant
            )
        chosen = without_contradictions(scores[:, 0, :], self._labels, self._rows.weights)
        coupling = ridge_coupling(self._spectrum, self._rows, own_part, float(reg[0]))
        reading, noise = self._calibrated(chosen, coupling)
        agreement, fit_intercept = (
            self._agreement(chosen, centred=True),
            self._spectrum.fit_intercept,
        )
        if not index:
            self._first_agreement = agreement
        return Round(
            targets=targets,
            reg=float(reg[0]),
            scores=chosen,
            reading=reading,
            leak=leak[:, 0, :],
            index=index,
            alignment=agreement if fit_intercept else self._agreement(chosen, centred=False),
            noise=noise,
            association=self._association,
            support=self._support(agreement),
        )

    def _support(self, agreement: float) -> float:
        """Return the association of the first round, times what scores agree more with the labels than its do."""
        first = self._first_agreement
        return (
            self._association * min(agreement / first, _MOST_GROWTH)
            if 0 < first < agreement
            else self._association
        )

    def _best(self, means: Array, regs: FloatArray, index: int) -> FloatArray:
        """Return the one of these penalties whose scores are best, in an array."""
        if not index:  # nothing leaks
            labels, scale_free = self._labels, self._scale_free
            targets = labels if scale_free else means
            return searched_reg(
                self._spectrum, self._rows, means, regs, labels=targets, scale_free=scale_free
            )
        if len(regs) == 1:
            return regs
        scores, columns = (
            corrected_score_parts(self._spectrum, self._rows, means, regs),
            np.eye(means.shape[1])[None, :, :],
        )

        def without_leak(rows: slice) -> Array:
            hat = _Hat.of(self._spectrum, regs, rows, close=self._is_close)
            return scores(rows) - self._leak([_Answer(hat, columns)], index, rows)

        fit_intercept, targets = (
            self._spectrum.fit_intercept,
            self._labels if self._scale_free else means,
        )
        weights = self._rows.weights
        best = best_reg(
            without_leak, targets, weights, scale_free=self._scale_free, centred=fit_intercept
        )
        return regs[[best]]

    def _agreement(self, scores: Array, *, centred: bool) -> float:
        """Return how much scores agree with the labels: to compare rounds by."""
        labels, weights = self._labels, self._rows.weights
        if scores.shape[1] > 1:
            return canonical_correlation(scores, labels, weights, centred=centred)
        return float(
            loo_alignment(lambda rows: scores[rows, None, :], labels, weights, centred=centred)[0]
        )

    def _calibrated(self, scores: Array, coupling: Coupling) -> tuple[Calibration, Channel]:
        infer_priors = self._infer_priors and self._association >= PROBABLE
        return calibrated(
            scores,
            self._rows,
            coupling,
            self._observations,
            self._noise,
            infer_priors=infer_priors,
        )

    def _leak(self, answers: list[_Answer], index: int, rows: slice = slice(None)) -> Array:
        """Part that a row's own label has in its scores after so many rounds, (m, n_regs, k − 1), of some rows."""
        slack = answers[0].hat.slack
        hats = [hat.of_rows(rows) for hat in self._hats]
        shape = (*slack.shape, self._contrasts.shape[1])
        leak = array_namespace(slack).zeros(shape, dtype=slack.dtype, device=device(slack))
        for answer in answers:
            if index >= 1:
                through = self._through(index - 1, rows, self._derivatives[index - 1])
                leak += answer.to(through, self._there_and_back(answer.hat, hats[index - 1], rows))
            if index >= 2:
                derivative = self._derivatives[index - 2] @ self._derivatives[index - 1]
                through = self._through(index - 2, rows, derivative)
                diagonal = self._round_three(answer.hat, hats[index - 1], hats[index - 2], rows)
                leak += answer.to(through, diagonal)
        return leak

    def _there_and_back(self, last: _Hat, first: _Hat, rows: slice) -> Array:
        """Diagonal of L₁L₀, (m, n_regs): ((H₁H₀)ᵢᵢ − cᵢh₁ᵢh₀ᵢ)/(d₁ᵢd̄₀)."""
        both = self._diagonals([last.regs, first.regs], rows=rows)[0]
        scale = 1 / self._spectrum.unfitted(rows)[:, None]
        return (both - scale * last.own * first.own) / (last.slack * first.mean_slack)

    def _round_three(self, last: _Hat, middle: _Hat, first: _Hat, rows: slice) -> Array:
        """Diagonal of L₂L₁L₀, (m, n_regs): what products of three hat matrices have without a row that follows itself.

        L₂ is exact, L₁ has no diagonal on average, and that of L₀ is taken off.
        """
        k, j, i = last.regs, middle.regs, first.regs
        all_three, last_two, outer, first_two = self._diagonals(
            [k, j, i], [k, j], [k, i], [j, i], rows=rows
        )
        unfitted = self._spectrum.unfitted(rows)[:, None]
        mean = 1 / (1 - self._spectrum.fit_intercept / self._spectrum.n_rows)
        of_last = last.own / unfitted
        of_first = first.own + mean * first.mean_own * (1 - unfitted)
        product = all_three - of_last * first_two - of_first * (last_two - of_last * middle.own)
        product -= mean * middle.mean_own * (outer - of_last * first.own)
        return product / (last.slack * middle.mean_slack * first.mean_slack)

    def _diagonals(self, *products: Sequence[FloatArray], rows: slice) -> list[Array]:
        """Diagonals of products of hat matrices, or of minus the residual makers in their place."""
        if not self._is_close:
            return self._spectrum.hat_diagonals(*products, rows=rows)
        found = self._spectrum.residual_diagonals(*products, rows=rows)
        return [
            (-1) ** len(product) * diagonal
            for product, diagonal in zip(products, found, strict=True)
        ]

    def _through(self, index: int, rows: slice, derivative: FloatArray) -> Array:
        """Return what the own parts of some rows in a round make of their targets, (m, k − 1)."""
        own_part = self._own_parts[index][rows, :]
        return own_part @ like(derivative, own_part)


@dataclass(frozen=True, eq=False)
class _Hat:
    """The hat matrix for each penalty, or minus the residual maker in its place: its diagonal, and the slack."""

    regs: FloatArray
    own: Array  # (m, n_regs)
    slack: Array
    mean_own: Array  # (n_regs,), over the rows it was made of
    mean_slack: Array

    @classmethod
    def of(
        cls, spectrum: Spectrum, regs: FloatArray, rows: slice = slice(None), *, close: bool = False
    ) -> _Hat:
        own, slack = spectrum.hat_and_slack(regs, rows)
        slack = at_least(slack, TINY)
        own = -slack if close else own
        mean = array_namespace(slack).mean
        return cls(regs, own, slack, mean(own, axis=0), mean(slack, axis=0))

    def of_rows(self, rows: slice) -> _Hat:
        """Return the diagonals of some rows, with the means of all."""
        return replace(self, own=self.own[rows, :], slack=self.slack[rows, :])


@dataclass(frozen=True, eq=False)
class _Answer:
    """How scores answer to targets: the hat matrix times what it does to the targets' columns."""

    hat: _Hat
    columns: FloatArray  # (n_regs, n_scores, n_scores), or one for all penalties

    def to(self, through: Array, diagonal: Array) -> Array:
        """Return what reaches the scores, (m, n_regs, n_scores), of targets' changes, by a diagonal (m, n_regs)."""
        columns = like(self.columns, through)
        return diagonal[:, :, None] * array_namespace(through).tensordot(
            through, columns, axes=((1,), (1,))
        )


def _convex_answers(
    spectrum: Spectrum, left_out: ApproximateLeaveOneOut, regs: FloatArray, close: bool
) -> list[_Answer]:
    """Return an answer for each axis of the mean curvature."""
    curvatures, axes = np.linalg.eigh(left_out.mean_curvature)
    answers = []
    for b in range(axes.shape[2]):
        axis = axes[:, :, b]
        columns = np.einsum(
            "gca,gc,gb->gab", left_out.mean_response, axis / curvatures[:, [b]], axis
        )
        answers.append(
            _Answer(_Hat.of(spectrum, 2 * regs / curvatures[:, b], close=close), columns)
        )
    return answers


def _is_close(spectrum: Spectrum, reg: FloatArray) -> bool:
    """Whether fits reproduce most of a row's own target on average."""
    slack = spectrum.residual_diagonals([reg])[0]
    return float(array_namespace(slack).mean(slack)) < 1 / 2
