"""What leaving a row out does to its score, for every penalty and target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, Self

from array_api_compat import array_namespace

from unflip._utils.typing import Array
from unflip.ridge.spectrum.stacks import as_columns


class CannotLeaveOutError(ValueError):
    """A row alone determines a direction of the fit, so that without it there is none to score the row by."""

    def __init__(self) -> None:
        super().__init__(
            "A row cannot be left out: at this reg it alone determines a direction of the fit. Use "
            "a larger reg, or more distinct rows."
        )


class LeftOut(Protocol):
    """Scores of rows by fits to the other rows, exact or not; see `LeaveOneOut`."""

    @property
    def targets(self) -> Array:
        """Targets of the rows, (m, n_targets)."""

    @property
    def scores(self) -> Array:
        """Score of each row by the fit to all other rows, (m, n_regs, n_targets)."""

    @property
    def corrected_scores(self) -> Array:
        """The same without the trace that a row's own target leaves on the others' mean."""

    def of_copies(self, owner: Array, targets: Array, share: Array) -> Self:
        """Leave out parts of rows."""


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """What every row's fit to the others is made of, for every (γ, target); see `Spectrum.leave_one_out`."""

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
        """Score of each row by the fit to all other rows, (m, n_regs, n_targets)."""
        if float(array_namespace(self.slack).min(self.slack)) <= self.resolution:
            raise CannotLeaveOutError
        scores = self.residuals / self.slack[:, :, None]
        scores -= self.targets[:, None, :]
        scores *= -1  # in place: scores of many rows and penalties are large
        return scores

    @property
    def corrected_scores(self) -> Array:
        """Leave-one-out scores without the trace that a row's own target leaves on the others' mean.

        With an intercept the mean target of the remaining rows falls by wᵢ(tᵢ − t̄)/(n − wᵢ) when
        row i is left out, which ties plain leave-one-out scores to the row's own label. That is
        small, but under a strong penalty it is all that is left. Adding it back leaves t̄ + (xᵢ −
        x̄⁽⁻ⁱ⁾)ᵀβ⁽⁻ⁱ⁾ with one t̄ for all rows, in which row i's own label has no part.
        """
        scores = self.scores
        if self.mean_target is None:
            return scores
        shift = self.targets - self.mean_target[None, :]
        shift *= (self.removed / (self.n - self.removed))[:, None]
        scores += shift[:, None, :]
        return scores

    def of_copies(self, owner: Array, targets: Array, share: Array) -> LeaveOneOut:
        """Leave out parts of rows.

        Row i of the result is a copy of row ``owner[i]`` that has a target of its own and leaves
        with a share of that row's weight.
        """
        xp = array_namespace(self.slack)
        columns = as_columns(targets)
        own = columns - xp.take(self.targets, owner, axis=0)
        return replace(
            self,
            targets=columns,
            residuals=xp.take(self.residuals, owner, axis=0) + own[:, None, :],
            slack=(1 - share)[:, None] + share[:, None] * xp.take(self.slack, owner, axis=0),
            removed=share * xp.take(self.removed, owner, axis=0),
        )
