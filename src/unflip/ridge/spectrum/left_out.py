"""Leave-one-out scores of every row, for every regularization strength and target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, Self

from array_api_compat import array_namespace

from unflip._utils.typing import Array
from unflip.ridge.spectrum.stacks import as_columns

#: Slack 1 − Hᵢ below which a difference counts as rounding error: float64's rounding error, about
#: 1e-16, with a wide margin for sums over many rows and directions.
SMALLEST_SLACK = 1e-10


class CannotLeaveOutError(ValueError):
    """A row alone determines a direction of the fit, so the fit without it does not exist."""

    def __init__(self) -> None:
        super().__init__(
            "A row cannot be left out: at this reg it alone determines a direction of the fit. Use "
            "a larger reg, or more distinct rows."
        )


class LeftOut(Protocol):
    """Exact or approximate leave-one-out scores; see `LeaveOneOut`."""

    @property
    def targets(self) -> Array:
        """Targets of the rows, (m, n_targets)."""

    @property
    def scores(self) -> Array:
        """Score of each row by the fit to all other rows, (m, n_regs, n_targets)."""

    @property
    def corrected_scores(self) -> Array:
        """Scores corrected for leakage of a row's own target through the mean of the others."""

    def of_duplicates(self, owner: Array, targets: Array, share: Array) -> Self:
        """Leave out a share of each row."""


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Exact leave-one-out fits for every (γ, target); see `Spectrum.leave_one_out`."""

    targets: Array  # (m, n_targets)
    residuals: Array  # t − t̂, (m, n_regs, n_targets)
    # 1 − Hᵢ, (m, n_regs): the share of its own target that a row's fit does not reproduce
    slack: Array
    removed: Array  # weight that leaves with each row, (m,)
    mean_target: Array | None  # t̄ with an intercept, (n_targets,)
    n: float
    resolution: float  # slack below this is rounding error

    @property
    def scores(self) -> Array:
        """Score tᵢ − (tᵢ − t̂ᵢ)/(1 − Hᵢ) of each row by the fit to all others.

        Shape (m, n_regs, n_targets); docs/leave_one_out.md has the derivation.
        """
        if float(array_namespace(self.slack).min(self.slack)) <= self.resolution:
            raise CannotLeaveOutError
        scores = self.residuals / self.slack[:, :, None]
        scores -= self.targets[:, None, :]
        scores *= -1  # in place: the array is large
        return scores

    @property
    def corrected_scores(self) -> Array:
        """Leave-one-out scores, corrected for leakage of a row's own target.

        With an intercept the mean target of the remaining rows falls by wᵢ(tᵢ − t̄)/(n − wᵢ) when
        row i is left out, so plain leave-one-out scores depend on the row's own label. This is
        small, but under strong regularization nothing else is left. Adding it back gives
        t̄ + (xᵢ − x̄⁽⁻ⁱ⁾)ᵀβ⁽⁻ⁱ⁾ with the same t̄ for all rows, where row i's own label does not enter.
        """
        scores = self.scores
        if self.mean_target is None:
            return scores
        shift = self.targets - self.mean_target[None, :]
        shift *= (self.removed / (self.n - self.removed))[:, None]
        scores += shift[:, None, :]
        return scores

    def of_duplicates(self, owner: Array, targets: Array, share: Array) -> LeaveOneOut:
        """Leave out a share of each row.

        Row i of the result is a copy of row ``owner[i]`` that has a target of its own and leaves
        with a share of that row's weight.
        """
        xp = array_namespace(self.slack)
        columns = as_columns(targets)
        difference = columns - xp.take(self.targets, owner, axis=0)
        return replace(
            self,
            targets=columns,
            residuals=xp.take(self.residuals, owner, axis=0) + difference[:, None, :],
            slack=(1 - share)[:, None] + share[:, None] * xp.take(self.slack, owner, axis=0),
            removed=share * xp.take(self.removed, owner, axis=0),
        )
