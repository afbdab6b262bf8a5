r"""The law of the score of any smooth convex loss in the isotropic mixture, by a fixed point in four numbers.

The classifier minimises (1/n) Σ ℓ_t(s_i) + γ‖w‖² over scores s = wᵀx (+ b), with ℓ_t of
`unflip.losses`. Given its true class y, the score of a row by the fit to the other rows is r ~ N(ym
+ b, σ²). The fit to all rows moves it to ŝ, where ŝ + κℓ_t′(ŝ) = r, and the row pulls with c =
−ℓ_t′(ŝ). With u = ‖μ‖² and θ = E[ℓ_t″/(1 + κℓ_t″)],

.. math::
    \kappa = \frac{\eta}{\theta + 2\gamma}, \qquad
    m = \frac{u\,E[cy]}{\theta + 2\gamma}, \qquad
    \sigma^2 = \frac{u\,E[cy]^2 + \eta\,E[c^2]}{(\theta + 2\gamma)^2},

and E[c] = 0 where an intercept b is fitted. Derived in docs/theory/convex.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq, minimize_scalar, root

from unflip import targets as target_values
from unflip._utils.typing import FloatArray
from unflip._utils.validation import as_floats, as_number, shown
from unflip.labels.noise import NoiseModel
from unflip.losses import Loss, TargetLoss, resolve
from unflip.theory.isotropic import predict_squared
from unflip.theory.model import Mixture, Prediction, check_mixture
from unflip.theory.resolvent import delta

_LABELS = np.array([-1.0, 1.0])[
    :, None, None
]  # axes: true class, observed class, node of the quadrature
_NODES = 256
_REACH = 8.5  # standard deviations, beyond which a Gaussian has less mass than a float resolves
_BISECTIONS = 100  # enough for the digits of a float, and for where a kink leaves no exact root
_TOLERANCE = 1e-9
_STEPS = np.log([8.0, 2.0, 1.2])  # of log γ, down from a strong penalty
_STRONG = 100.0  # a penalty at which the squared loss is a good start
_QUADRATIC = (
    1e-7  # scores this close to their centre: any loss is quadratic there to as many digits
)
_STRONGEST = 1e9  # E[t²] of targets for which the fixed point is known to be found
_ANGLES = 12  # of targets, to tell the highest hill


def predict_convex(
    mixture: Mixture,
    *,
    targets: str | ArrayLike = "optimized",
    reg: ArrayLike,
    loss: str | Loss,
    fit_intercept: bool = False,
) -> Prediction:
    """Predict for a convex loss, by the fixed point. Parameters are those of `unflip.theory.predict`.

    γ must be positive and finite, and the loss have a continuous curvature.

    Examples
    --------
    >>> from unflip import NoiseModel
    >>> noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)
    >>> mixture = Mixture(mean_norm=2.0, aspect=1.0, noise=noise)
    >>> for name in ("naive", "unbiased", "optimized"):
    ...     print(name, predict_convex(mixture, targets=name, reg=1.0, loss="logistic").accuracy.round(3))
    naive 0.759
    unbiased 0.795
    optimized 0.876
    """
    check_mixture(mixture)
    values = target_values.resolve(targets, mixture.noise)
    penalty = as_floats(reg, "reg")
    for value in penalty[~(np.isfinite(penalty) & (penalty > 0))].ravel():
        raise ValueError(f"reg = {value:g} must be positive and finite: it is the ridge penalty γ.")
    norm, aspect, gamma = np.broadcast_arrays(
        np.asarray(mixture.mean_norm, dtype=float), mixture.aspect, penalty
    )
    laws = np.array(
        [
            _Problem(
                TargetLoss(resolve(loss), values[:, None]), mixture.noise, *entry, fit_intercept
            ).solve()
            for entry in zip(
                norm.ravel().tolist(), aspect.ravel().tolist(), gamma.ravel().tolist(), strict=True
            )
        ]
    )
    half, std, centre = np.moveaxis(laws.reshape(*norm.shape, 3), -1, 0)
    return Prediction(
        means=(centre - half, centre + half),
        variance=np.asarray(std**2),
        separation=np.asarray(2 * half / std),
        priors=mixture.noise.known_priors,
    )


def optimal_convex_targets(
    mixture: Mixture, *, reg: float, loss: str | Loss, power: float | None = None
) -> FloatArray:
    """Find the targets (t_neg, t_pos) of a given strength E[t²] with the best predicted separation, without intercept.

    For the squared loss they are the posterior targets t(ỹ) = E[y | ỹ] at any strength. For other
    losses the best direction depends on the strength, which acts like a penalty: no choice of loss,
    targets and penalty beats the posterior targets with the squared loss at γ = ∞, and a loss of
    bounded slope comes near that as its targets grow (docs/theory/convex.md). So there is a best
    choice only at a given strength; with an intercept, not even then.

    Parameters
    ----------
    mixture : Mixture
        One setting: ‖μ‖ and η are numbers.
    reg : float
        γ, positive and finite.
    loss : {"squared", "logistic"} or Loss
        As in `predict_convex`.
    power : float, optional
        E[t²]; by default that of the posterior targets.

    Returns
    -------
    ndarray of shape (2,)
        (t_neg, t_pos) with t_neg < t_pos.
    """
    check_mixture(mixture)
    if np.ndim(mixture.mean_norm) or np.ndim(mixture.aspect) or as_floats(reg, "reg").ndim:
        raise ValueError(
            "optimal_convex_targets takes one mean_norm, one aspect and one reg: call it for each "
            "setting."
        )
    posterior = target_values.optimized(mixture.noise)
    spread = np.sqrt(mixture.noise.observed)
    strength = (
        float(mixture.noise.observed @ posterior**2) if power is None else as_number(power, "power")
    )
    if not 1 / _STRONGEST <= strength <= _STRONGEST:
        raise ValueError(
            f"power = {shown(power)} must lie between {1 / _STRONGEST:g} and {_STRONGEST:g}: it is "
            "E[t²], about 1."
        )

    def at(angle: float) -> FloatArray:
        return np.asarray(np.sqrt(strength) * np.array([np.cos(angle), np.sin(angle)]) / spread)

    def badness(angle: float) -> float:
        return -float(predict_convex(mixture, targets=at(angle), reg=reg, loss=loss).separation)

    first = np.arctan2(
        spread[1], spread[0]
    )  # where t_neg = t_pos; half a turn on, so are they again
    angles = first + np.pi * np.arange(1, _ANGLES) / _ANGLES
    best = angles[np.argmin([badness(angle) for angle in angles])]
    reach = np.pi / _ANGLES
    found = minimize_scalar(
        badness, bounds=(best - reach, best + reach), method="bounded", options={"xatol": 1e-7}
    )
    return at(float(found.x))


def prox(loss: TargetLoss, r: ArrayLike, kappa: float) -> FloatArray:
    """ŝ with ŝ + κℓ_t′(ŝ) = r, the score of a row by the fit that includes it.

    The left side grows by at least as much as ŝ, so that the root lies between r and r − κℓ_t′(r):
    Newton's steps are taken where they stay in that bracket and halve the error, bisection
    elsewhere.

    Parameters
    ----------
    loss : TargetLoss
        A convex ℓ_t; its targets broadcast against `r`.
    r : array-like
        Scores by the fit to the other rows.
    kappa : float
        κ > 0, the leverage of a row.
    """
    start = np.asarray(r, dtype=float)
    pull = kappa * loss.gradient(start)
    s = start = np.broadcast_to(start, pull.shape)
    low, high = np.minimum(s, s - pull), np.maximum(s, s - pull)
    previous = np.full(pull.shape, np.inf)
    for _ in range(_BISECTIONS):
        pull, slope = kappa * loss.gradient(s), 1 + kappa * loss.curvature(s)
        excess = s + pull - start
        rounding = np.spacing(np.abs(start) + np.abs(pull)) + slope * np.spacing(np.abs(s))
        moving = np.abs(excess) > 8 * rounding
        if not moving.any():
            break
        low, high = np.where(excess < 0, s, low), np.where(excess > 0, s, high)
        newton = s - excess / slope
        fast = (newton >= low) & (newton <= high) & (np.abs(excess) < previous / 2)
        s, previous = np.where(moving, np.where(fast, newton, (low + high) / 2), s), np.abs(excess)
    return s


@dataclass(frozen=True)
class _Moments:
    """What the fixed point needs to know of the pulls c = −ℓ_t′(ŝ)."""

    stiffness: float  # θ
    mean: float  # E[c]
    alignment: float  # E[cy]
    power: float  # E[c²]


@dataclass(frozen=True)
class _Problem:
    """One fixed point, in the unknowns (log σ, log κ, m/(‖μ‖σ)) and, with an intercept, b/(1 + σ)."""

    loss: TargetLoss
    noise: NoiseModel
    mean_norm: float
    aspect: float
    reg: float
    fit_intercept: bool

    def solve(self) -> tuple[float, float, float]:
        """Return (m, σ, b), or an error where no solution is found."""
        start = self.start()
        half, std, centre = self._law(start)
        if abs(half) + std < _QUADRATIC:  # and their spread is lost in the rounding of an intercept
            return half, std, centre
        found = self._root(start)
        return self._law(self._continued() if found is None else found)

    def start(self) -> FloatArray:
        """Solve for the squared loss that has the slopes and the mean curvature of ℓ_t at the best constant score.

        (k/2)(s − t′)² with t′ = s₀ − ℓ_t′(s₀)/k is a ridge problem with the penalty 2γ/k, where κ =
        δ/k.
        """
        centre = self._best_constant() if self.fit_intercept else 0.0
        observed = self.noise.observed
        slopes = self.loss.gradient(centre)[:, 0]
        curvature = max(float(observed @ self.loss.curvature(centre)[:, 0]), np.finfo(float).tiny)
        mixture = Mixture(mean_norm=self.mean_norm, aspect=self.aspect, noise=self.noise)
        reg = 2 * self.reg / curvature
        law = predict_squared(
            mixture, targets=centre - slopes / curvature, reg=reg, fit_intercept=self.fit_intercept
        )
        leverage = float(delta(self.aspect, reg)) / curvature
        along = 0.0 if self.mean_norm == 0 else float(law.separation) / 2 / self.mean_norm
        std = float(np.sqrt(law.variance))
        middle = [float(sum(law.means)) / 2 / (1 + std)] if self.fit_intercept else []
        return np.array([np.log(std), np.log(leverage), along, *middle])

    def residuals(self, unknowns: FloatArray, n_nodes: int = _NODES) -> FloatArray:
        """How far the fixed point is from holding, in relative units."""
        log_std, log_leverage, along, centre = self._unpacked(unknowns)
        with np.errstate(
            all="ignore"
        ):  # steps may leave what floats hold: what is not finite is no solution
            std, leverage = np.exp(log_std), np.exp(log_leverage)
            moments = self.moments(self.mean_norm * along * std, std, centre, leverage, n_nodes)
            stiffness = moments.stiffness + 2 * self.reg
            signal = self.mean_norm * moments.alignment / stiffness
            variance = signal**2 + self.aspect * moments.power / stiffness**2
            balance = [
                np.log(variance) / 2 - log_std,
                log_leverage - np.log(self.aspect / stiffness),
                signal / std - along,
            ]
            if self.fit_intercept:
                balance.append(moments.mean / np.sqrt(moments.power))
        return np.array(balance)

    def moments(
        self, half: float, std: float, centre: float, leverage: float, n_nodes: int
    ) -> _Moments:
        """Take expectations over r and the four pairs of true and observed class, by the trapezoid rule.

        The variable of integration is asinh ŝ instead of r: then r is explicit, the bend of the
        loss near ŝ = 0 is resolved however wide the scores are, and the rule converges
        geometrically in the number of nodes.
        """
        means = _LABELS * half + centre
        ends = prox(self.loss, means + std * np.array([-_REACH, _REACH]), leverage)
        first, last = np.arcsinh(ends[..., :1]), np.arcsinh(ends[..., 1:])
        grid = first + (last - first) * np.linspace(0, 1, n_nodes)
        scores = np.sinh(grid)
        pull, curvature = -self.loss.gradient(scores), self._checked_curvature(scores)
        z = (scores - leverage * pull - means) / std
        slope = 1 + leverage * curvature
        step = (last - first) / (n_nodes - 1)
        weights = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * slope * np.cosh(grid) * step / std
        weights *= self.noise.joint[:, :, None]
        return _Moments(
            stiffness=float((weights * curvature / slope).sum()),
            mean=float((weights * pull).sum()),
            alignment=float((weights * pull * _LABELS).sum()),
            power=float((weights * pull**2).sum()),
        )

    def _checked_curvature(self, scores: FloatArray) -> FloatArray:
        curvature = self.loss.curvature(scores)
        for entry in np.argwhere(curvature < -_TOLERANCE * (1 + np.abs(self.loss.target))):
            target = float(np.asarray(self.loss.target)[entry[1], 0])
            raise ValueError(
                f"The {self.loss.loss.name} loss with target t = {target:g} is not convex: its "
                f"curvature is {curvature[tuple(entry)]:g} at the score {scores[tuple(entry)]:g}; "
                "use targets between −1 and 1."
            )
        return curvature

    def _best_constant(self) -> float:
        """Find the constant score of least expected loss, E[ℓ_t′(s₀)] = 0."""

        def slope(score: float) -> float:
            return float(self.noise.observed @ self.loss.gradient(score)[:, 0])

        for reach in 2.0 ** np.arange(11):
            if slope(-reach) < 0 < slope(reach):
                return float(brentq(slope, -reach, reach))
        low, high = np.asarray(self.loss.target)[:, 0]
        raise ValueError(
            f"The {self.loss.loss.name} loss with targets ({low:g}, {high:g}) has no finite "
            "intercept, because their mean is out of its reach: move the targets towards 0, or use "
            "fit_intercept=False."
        )

    def _continued(self) -> FloatArray:
        """Follow the solution from a strong penalty, where the loss is nearly quadratic, down to γ."""
        for step in _STEPS:
            n_steps = int(np.ceil(np.log(max(_STRONG / self.reg, 2.0)) / step))
            regs = self.reg * np.exp(step * np.arange(n_steps, -1, -1))
            path: list[FloatArray] = []
            for reg in regs:
                here = replace(self, reg=float(reg))
                guess = (
                    here.start()
                    if not path
                    else path[-1]
                    if len(path) == 1
                    else 2 * path[-1] - path[-2]
                )
                found = here._root(guess)
                if found is None:
                    break
                path.append(found)
            else:
                return path[-1]
        raise ValueError(
            f"The fixed point of the {self.loss.loss.name} loss was not found at mean_norm = "
            f"{self.mean_norm:g}, aspect = {self.aspect:g}, reg = {self.reg:g}: use a larger reg, "
            "or a loss with a continuous curvature."
        )

    def _root(self, start: FloatArray) -> FloatArray | None:
        """Newton's method with a trust region; the solution must also hold on twice the nodes."""
        with np.errstate(all="ignore"):  # likewise
            found = root(self.residuals, start, method="hybr", options={"xtol": 1e-13}).x
        worst = np.abs(self.residuals(found, 2 * _NODES)).max()
        return found if worst < _TOLERANCE else None

    def _law(self, unknowns: FloatArray) -> tuple[float, float, float]:
        log_std, _, along, centre = self._unpacked(unknowns)
        std = float(np.exp(log_std))
        return self.mean_norm * along * std, std, centre

    def _unpacked(self, unknowns: FloatArray) -> tuple[float, float, float, float]:
        log_std, log_leverage, along = unknowns[:3].tolist()
        centre = float(unknowns[3]) * (1 + np.exp(log_std)) if self.fit_intercept else 0.0
        return log_std, log_leverage, along, centre
