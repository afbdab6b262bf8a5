r"""Distribution of the score for smooth convex losses in the isotropic mixture, by a fixed point.

The classifier minimises (1/n) Σ ℓ_t(s_i) + γ‖w‖² over scores s = wᵀx (+ b), with ℓ_t of
`unflip.losses`. Given its true class y, the leave-one-out score of a row is r ~ N(ym + b, σ²). The
fit that includes the row moves its score to ŝ, where ŝ + κℓ_t′(ŝ) = r. Write c = −ℓ_t′(ŝ) for the
negative gradient there. With u = ‖μ‖² and θ = E[ℓ_t″/(1 + κℓ_t″)],

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

# Axes of all arrays of the quadrature: true class, observed class, node.
_LABELS = np.array([-1.0, 1.0])[:, None, None]
# Nodes of the quadrature; a solution must also hold with twice as many. With 128, a test does not
# converge.
_NODES = 256
# Relative residual of the fixed point, and negative curvature due to rounding. Ten times more or
# less changes neither a test of the module nor a predicted accuracy.
_TOLERANCE = 1e-9
_MAX_TARGET_POWER = 1e9  # tests find the fixed point for E[t²] between 1/this and this


def predict_convex(
    mixture: Mixture,
    *,
    targets: str | ArrayLike = "optimized",
    reg: ArrayLike,
    loss: str | Loss,
    fit_intercept: bool = False,
) -> Prediction:
    """Predict for a convex loss, by the fixed point; parameters as in `unflip.theory.predict`.

    γ must be positive and finite, and the loss must have a continuous second derivative.

    Examples
    --------
    >>> from unflip import NoiseModel
    >>> noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)
    >>> mixture = Mixture(mean_norm=2.0, aspect=1.0, noise=noise)
    >>> for name in ("naive", "unbiased", "optimized"):
    ...     prediction = predict_convex(mixture, targets=name, reg=1.0, loss="logistic")
    ...     print(name, prediction.accuracy.round(3))
    naive 0.759
    unbiased 0.795
    optimized 0.876
    """
    check_mixture(mixture)
    values = target_values.resolve(targets, mixture.noise)
    regs = as_floats(reg, "reg")
    for value in regs[~(np.isfinite(regs) & (regs > 0))].ravel():
        raise ValueError(
            f"reg = {value:g} must be positive and finite: it is the regularization strength γ."
        )
    norm, aspect, gamma = np.broadcast_arrays(
        np.asarray(mixture.mean_norm, dtype=float), mixture.aspect, regs
    )
    target_loss = TargetLoss(resolve(loss), values[:, None])
    entries = zip(
        norm.ravel().tolist(), aspect.ravel().tolist(), gamma.ravel().tolist(), strict=True
    )
    solutions = np.array(
        [_Problem(target_loss, mixture.noise, *entry, fit_intercept).solve() for entry in entries]
    )
    half, std, centre = np.moveaxis(solutions.reshape(*norm.shape, 3), -1, 0)
    return Prediction(
        means=(centre - half, centre + half),
        variance=np.asarray(std**2),
        separation=np.asarray(2 * half / std),
        priors=mixture.noise.known_priors,
    )


def optimal_convex_targets(
    mixture: Mixture, *, reg: float, loss: str | Loss, power: float | None = None
) -> FloatArray:
    """Return the targets (t_neg, t_pos) of fixed power E[t²] with the best predicted separation.

    The classifier has no intercept. For the squared loss they are the posterior targets t(ỹ) =
    E[y | ỹ] at any power. For other losses the best direction depends on the power, which acts like
    regularization: no choice of loss, targets and γ beats the posterior targets with the squared
    loss at γ = ∞, and a loss with a bounded derivative approaches that as its targets grow
    (docs/theory/convex.md). So an optimum exists only at a fixed power; with an intercept, not even
    then.

    Parameters
    ----------
    mixture : Mixture
        One setting: ‖μ‖ and η are numbers.
    reg : float
        Regularization strength γ, positive and finite.
    loss : {"squared", "logistic"} or Loss
        As in `predict_convex`.
    power : float, optional
        E[t²]; by default that of the posterior targets.

    Returns
    -------
    ndarray of shape (2,)
        (t_neg, t_pos) with t_neg < t_pos.

    Examples
    --------
    >>> from unflip import NoiseModel
    >>> noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)
    >>> mixture = Mixture(mean_norm=2.0, aspect=1.0, noise=noise)
    >>> print(optimal_convex_targets(mixture, reg=1.0, loss="squared").round(2))
    [0.14 0.65]
    """
    check_mixture(mixture)
    if np.ndim(mixture.mean_norm) or np.ndim(mixture.aspect) or as_floats(reg, "reg").ndim:
        raise ValueError(
            "optimal_convex_targets takes one mean_norm, one aspect and one reg: call it for each "
            "setting."
        )
    posterior = target_values.optimized(mixture.noise)
    root_shares = np.sqrt(mixture.noise.observed)
    if power is None:
        target_power = float(mixture.noise.observed @ posterior**2)
    else:
        target_power = as_number(power, "power")
    if not 1 / _MAX_TARGET_POWER <= target_power <= _MAX_TARGET_POWER:
        raise ValueError(
            f"power = {shown(power)} must lie between {1 / _MAX_TARGET_POWER:g} and "
            f"{_MAX_TARGET_POWER:g}: it is E[t²], about 1."
        )

    def targets_at(angle: float) -> FloatArray:
        direction = np.array([np.cos(angle), np.sin(angle)])
        return np.asarray(np.sqrt(target_power) * direction / root_shares)

    def cost(angle: float) -> float:
        prediction = predict_convex(mixture, targets=targets_at(angle), reg=reg, loss=loss)
        return -float(prediction.separation)

    # t_neg = t_pos at the first angle and again half a turn later. A grid of 11 angles in between
    # finds the highest of several maxima.
    first = np.arctan2(root_shares[1], root_shares[0])
    step = np.pi / 12
    angles = first + np.pi * np.arange(1, 12) / 12
    best = angles[np.argmin([cost(angle) for angle in angles])]
    refined = minimize_scalar(
        cost, bounds=(best - step, best + step), method="bounded", options={"xatol": 1e-7}
    )
    return targets_at(float(refined.x))


def prox(loss: TargetLoss, r: ArrayLike, kappa: float) -> FloatArray:
    """Return ŝ with ŝ + κℓ_t′(ŝ) = r, the score of a row by the fit that includes it.

    The left side has slope at least 1, so the root lies between r and r − κℓ_t′(r). Newton's
    method is used while it stays in that bracket and halves the error, bisection otherwise.

    Parameters
    ----------
    loss : TargetLoss
        A convex ℓ_t; its targets broadcast against `r`.
    r : array-like
        Leave-one-out scores.
    kappa : float
        κ > 0, the leverage of a row.
    """
    start = np.asarray(r, dtype=float)
    pull = kappa * loss.gradient(start)
    s = start = np.broadcast_to(start, pull.shape)
    low = np.minimum(s, s - pull)
    high = np.maximum(s, s - pull)
    previous = np.full(pull.shape, np.inf)
    # 100 bisections reach float64 precision, also at a kink that leaves no exact root.
    for _ in range(100):
        pull = kappa * loss.gradient(s)
        slope = 1 + kappa * loss.curvature(s)
        excess = s + pull - start
        rounding = np.spacing(np.abs(start) + np.abs(pull)) + slope * np.spacing(np.abs(s))
        moving = np.abs(excess) > 8 * rounding
        if not moving.any():
            break
        low = np.where(excess < 0, s, low)
        high = np.where(excess > 0, s, high)
        newton = s - excess / slope
        fast = (newton >= low) & (newton <= high) & (np.abs(excess) < previous / 2)
        s = np.where(moving, np.where(fast, newton, (low + high) / 2), s)
        previous = np.abs(excess)
    return s


@dataclass(frozen=True)
class _Moments:
    """Moments of the negative gradients c = −ℓ_t′(ŝ) that the fixed point needs."""

    stiffness: float  # θ
    mean: float  # E[c]
    alignment: float  # E[cy]
    power: float  # E[c²]


@dataclass(frozen=True)
class _Problem:
    """A fixed point in (log σ, log κ, m/(‖μ‖σ)) and, with an intercept, b/(1 + σ)."""

    loss: TargetLoss
    noise: NoiseModel
    mean_norm: float
    aspect: float
    reg: float
    fit_intercept: bool

    def solve(self) -> tuple[float, float, float]:
        """Return (m, σ, b); raises ValueError if no solution is found."""
        start = self.start()
        half, std, centre = self._mean_std_centre(start)
        # Any loss is quadratic to float64 precision on scores this close to their centre, and an
        # intercept would round their spread away.
        if abs(half) + std < 1e-7:
            return half, std, centre
        solution = self._root(start)
        if solution is None:
            solution = self._continued()
        return self._mean_std_centre(solution)

    def start(self) -> FloatArray:
        """Return the unknowns for the quadratic approximation of ℓ_t at the best constant score.

        It has the slopes of ℓ_t and the mean curvature k there: (k/2)(s − t′)² with t′ = s₀ −
        ℓ_t′(s₀)/k is a ridge problem with regularization strength 2γ/k, where κ = δ/k.
        """
        centre = self._best_constant() if self.fit_intercept else 0.0
        observed = self.noise.observed
        slopes = self.loss.gradient(centre)[:, 0]
        curvature = max(float(observed @ self.loss.curvature(centre)[:, 0]), np.finfo(float).tiny)
        mixture = Mixture(mean_norm=self.mean_norm, aspect=self.aspect, noise=self.noise)
        reg = 2 * self.reg / curvature
        prediction = predict_squared(
            mixture, targets=centre - slopes / curvature, reg=reg, fit_intercept=self.fit_intercept
        )
        leverage = float(delta(self.aspect, reg)) / curvature
        along = 0.0 if self.mean_norm == 0 else float(prediction.separation) / 2 / self.mean_norm
        std = float(np.sqrt(prediction.variance))
        unknowns = [np.log(std), np.log(leverage), along]
        if self.fit_intercept:
            unknowns.append(float(sum(prediction.means)) / 2 / (1 + std))
        return np.array(unknowns)

    def residuals(self, unknowns: FloatArray, n_nodes: int = _NODES) -> FloatArray:
        """Return the relative residuals of the fixed-point equations."""
        log_std, log_leverage, along, centre = self._unpacked(unknowns)
        with np.errstate(all="ignore"):  # a step may overflow; the solver rejects it then
            std = np.exp(log_std)
            leverage = np.exp(log_leverage)
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
        """Return expectations over r and the true and observed class, by the trapezoid rule.

        The variable of integration is asinh ŝ instead of r: then r is explicit, the bend of the
        loss near ŝ = 0 is resolved however wide the scores are, and the rule converges
        geometrically in the number of nodes.
        """
        means = _LABELS * half + centre
        # A Gaussian has less mass beyond 8.5 standard deviations than float64 resolves.
        ends = prox(self.loss, means + std * np.array([-8.5, 8.5]), leverage)
        first = np.arcsinh(ends[..., :1])
        last = np.arcsinh(ends[..., 1:])
        grid = first + (last - first) * np.linspace(0, 1, n_nodes)
        scores = np.sinh(grid)
        pull = -self.loss.gradient(scores)
        curvature = self._checked_curvature(scores)
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
        """Return the constant score of least expected loss, E[ℓ_t′(s₀)] = 0."""

        def slope(score: float) -> float:
            return float(self.noise.observed @ self.loss.gradient(score)[:, 0])

        for reach in 2.0 ** np.arange(11):
            if slope(-reach) < 0 < slope(reach):
                return float(brentq(slope, -reach, reach))
        low, high = np.asarray(self.loss.target)[:, 0]
        raise ValueError(
            f"The {self.loss.loss.name} loss with targets ({low:g}, {high:g}) has no finite "
            "intercept, because no score has their mean: move the targets towards 0, or use "
            "fit_intercept=False."
        )

    def _continued(self) -> FloatArray:
        """Follow the solution from strong regularization, where ℓ_t is nearly quadratic, to γ."""
        for step in np.log([8.0, 2.0, 1.2]):  # of log γ; finer where a coarse step fails
            # Start at γ = 100 or above, where the quadratic approximation is a good guess.
            n_steps = int(np.ceil(np.log(max(100.0 / self.reg, 2.0)) / step))
            regs = self.reg * np.exp(step * np.arange(n_steps, -1, -1))
            path: list[FloatArray] = []
            for reg in regs:
                problem = replace(self, reg=float(reg))
                solution = problem._root(problem._guess(path))
                if solution is None:
                    break
                path.append(solution)
            else:
                return path[-1]
        raise ValueError(
            f"The fixed point of the {self.loss.loss.name} loss was not found at mean_norm = "
            f"{self.mean_norm:g}, aspect = {self.aspect:g}, reg = {self.reg:g}: use a larger reg, "
            "or a loss with a continuous curvature."
        )

    def _guess(self, path: list[FloatArray]) -> FloatArray:
        """Extrapolate the solutions at larger γ linearly in log γ."""
        if not path:
            return self.start()
        if len(path) == 1:
            return path[-1]
        return 2 * path[-1] - path[-2]

    def _root(self, start: FloatArray) -> FloatArray | None:
        """Return the solution by Powell's hybrid method, or None if it fails on twice the nodes."""
        with np.errstate(all="ignore"):  # as in `residuals`
            unknowns = root(self.residuals, start, method="hybr", options={"xtol": 1e-13}).x
        worst = np.abs(self.residuals(unknowns, 2 * _NODES)).max()
        return unknowns if worst < _TOLERANCE else None

    def _mean_std_centre(self, unknowns: FloatArray) -> tuple[float, float, float]:
        log_std, _, along, centre = self._unpacked(unknowns)
        std = float(np.exp(log_std))
        return self.mean_norm * along * std, std, centre

    def _unpacked(self, unknowns: FloatArray) -> tuple[float, float, float, float]:
        log_std, log_leverage, along = unknowns[:3].tolist()
        centre = float(unknowns[3]) * (1 + np.exp(log_std)) if self.fit_intercept else 0.0
        return log_std, log_leverage, along, centre
