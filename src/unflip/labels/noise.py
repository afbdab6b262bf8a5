"""The noise model: transition matrix, class priors, and the probabilities derived from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from unflip._utils.randomness import RandomState, seeded
from unflip._utils.typing import FloatArray, IntArray
from unflip._utils.validation import as_array, as_count, as_floats, as_number, check_kind, shown

#: Largest distance from 1 of a sum of probabilities; well above float64 rounding.
_SUM_TOLERANCE = 1e-8
#: Stream of `flip`, an arbitrary number: with the same seed, labels are independent of drawn rows.
_FLIP_STREAM = 0xF11B


@dataclass(frozen=True, eq=False, repr=False)
class Channel:
    """Probability of an observation, such as a label or votes, given the true class of a row.

    Given the true class, observations are independent of the features.

    Parameters
    ----------
    transition : ndarray of shape (k, m)
        P(observation | TRUE class) of m possible observations, each column up to a factor.
    priors : ndarray of shape (k,), optional
        Proportions of the TRUE classes.
    """

    transition: FloatArray
    priors: FloatArray | None = None

    @property
    def rate_derivatives(self) -> FloatArray:
        """Derivative of row a of the transition by the noise rate of true class a, (k, m).

        The rate is the probability of a wrong label. If it changes, wrong labels keep their shares.
        """
        # Noise models and votes define it; other channels are never asked for it.
        raise NotImplementedError(f"{type(self).__name__} does not define noise rates.")

    @property
    def n_classes(self) -> int:
        """Number of classes k."""
        return len(self.transition)

    @property
    def known_priors(self) -> FloatArray:
        """The priors; raises `ValueError` if there are none."""
        if self.priors is None:
            raise ValueError(
                "This NoiseModel has no priors: pass pi_neg= or priors=, or call with_observed() "
                "with the observed class proportions."
            )
        return self.priors

    @property
    def joint(self) -> FloatArray:
        """P(true class, observation), (k, m)."""
        joint: FloatArray = self.known_priors[:, None] * self.transition
        return joint

    @property
    def posterior(self) -> FloatArray:
        """P(true class | observation): row = observed class, column = true class."""
        joint = self.joint
        observed = joint.sum(axis=0)
        if not observed.all():
            never = int(np.flatnonzero(observed == 0)[0])
            raise ValueError(
                f"Label {never} has probability 0 under this transition matrix, so its posterior "
                "is undefined: drop that class, or use a positive probability."
            )
        posterior: FloatArray = (joint / observed).T
        return posterior

    def with_priors(self, priors: ArrayLike) -> Self:
        """Return the same transition with other priors."""
        return replace(self, priors=as_floats(priors, "priors"))

    def means(self, values: FloatArray) -> FloatArray:
        """Return the posterior mean for each observation, (m, r), of values of classes, (k, r)."""
        return np.asarray(self.posterior @ values)


@dataclass(frozen=True, eq=False, repr=False)
class NoiseModel(Channel):
    """Class-conditional label noise.

    Parameters
    ----------
    transition : array-like of shape (k, k)
        ``transition[a, b]`` = P(observed label b | TRUE class a); rows sum to 1.
    priors : array-like of shape (k,), optional
        Proportions of the TRUE classes. Without them, `observed` and `posterior` raise
        `ValueError`; `with_priors` and `with_observed` add them.

    Examples
    --------
    >>> noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.3)
    >>> noise.observed.round(2)
    array([0.49, 0.51])
    >>> noise.posterior.round(2)  # row = observed class, column = true class
    array([[0.43, 0.57],
           [0.18, 0.82]])
    """

    transition: FloatArray
    priors: FloatArray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "transition", _checked_transition(self.transition))
        if self.priors is not None:
            object.__setattr__(
                self, "priors", checked_proportions(self.priors, self.n_classes, "priors")
            )

    @classmethod
    def binary(cls, *, eps_pos: float, eps_neg: float, pi_neg: float | None = None) -> NoiseModel:
        """Return the noise model of two classes, in the order (negative, positive).

        A classifier sorts its labels: the positive class is ``classes_[1]``, the last in sorted
        order ("malignant" of "benign" and "malignant", 1 of 0 and 1).

        Parameters
        ----------
        eps_pos : float
            ε₊ = P(observed negative | true positive).
        eps_neg : float
            ε₋ = P(observed positive | true negative).
        pi_neg : float, optional
            π₁ = P(true negative).
        """
        rate_pos = as_number(eps_pos, "eps_pos")
        rate_neg = as_number(eps_neg, "eps_neg")
        _check_rates(eps_pos=rate_pos, eps_neg=rate_neg)
        transition = np.array([[1 - rate_neg, rate_neg], [rate_pos, 1 - rate_pos]])
        if pi_neg is None:
            return cls(transition)
        share = as_number(pi_neg, "pi_neg")
        if not 0 < share < 1:
            raise ValueError(
                f"pi_neg = {shown(pi_neg)} must lie strictly between 0 and 1: both classes must "
                "exist."
            )
        return cls(transition, np.array([share, 1 - share]))

    @classmethod
    def none(cls, n_classes: int = 2) -> NoiseModel:
        """Return the noise model of clean labels."""
        return cls(np.eye(as_count(n_classes, "n_classes", least=2)))

    @property
    def eps_pos(self) -> float:
        """ε₊ = P(observed negative | true positive), for two classes."""
        return self._rate(1)

    @property
    def eps_neg(self) -> float:
        """ε₋ = P(observed positive | true negative), for two classes."""
        return self._rate(0)

    @property
    def rate_derivatives(self) -> FloatArray:
        """Derivative of row a of the transition by the noise rate of true class a, (k, k)."""
        return shares_of_wrong_labels(self.transition) - np.eye(self.n_classes)

    @property
    def observed(self) -> FloatArray:
        """P(observed label)."""
        proportions: FloatArray = self.joint.sum(axis=0)
        return proportions

    def means(self, values: FloatArray) -> FloatArray:
        """Return the values of the observed classes themselves, (k, r)."""
        return values

    def with_observed(self, observed: ArrayLike) -> NoiseModel:
        """Return the same transition with priors inferred from observed class proportions.

        Solves ``priors @ transition = observed``. Raises `ValueError` if a class gets no prior.
        """
        proportions = checked_proportions(observed, self.n_classes, "observed", allow_zero=True)
        priors = self.inverse_transition.T @ proportions
        for empty in np.flatnonzero(priors <= 0):
            raise ValueError(
                f"The observed class proportions {_rounded(proportions)} leave no true row in "
                f"class {empty} under this noise model: lower its noise rates, or pass the true "
                "class proportions as priors."
            )
        return self.with_priors(priors)

    @property
    def inverse_transition(self) -> FloatArray:
        """Inverse of the transition matrix; raises `ValueError` if it is singular."""
        if np.linalg.cond(self.transition) > 1 / np.finfo(float).eps:
            raise ValueError(
                "The transition matrix is singular: different priors give the same observed class "
                "proportions. Merge those classes, or pass the true class proportions as priors "
                "and use targets='optimized'."
            )
        return np.asarray(np.linalg.inv(self.transition), dtype=float)

    def flip(self, y: ArrayLike, random_state: RandomState = None) -> IntArray:
        """Draw observed labels for true class indices.

        Parameters
        ----------
        y : array-like of int, shape (n,)
            True class indices 0..k-1.
        random_state : int, Generator, RandomState or None
            Source of the draws. They are independent of rows drawn with the same integer seed.

        Returns
        -------
        ndarray of int, shape (n,)
            Observed class indices.

        Examples
        --------
        >>> noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.0)
        >>> noise.flip([0, 0, 1, 1, 1, 1], random_state=0)
        array([0, 0, 0, 0, 0, 1])
        """
        true = _checked_indices(y, self.n_classes)
        uniform = _flip_generator(random_state).random(len(true))
        # Divided by the last sum, so that a uniform just below 1 stays within the last class.
        cumulative = np.cumsum(self.transition, axis=1)
        cumulative /= cumulative[:, -1:]
        observed: IntArray = (uniform[:, None] >= cumulative[true]).sum(axis=1)
        return observed

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NoiseModel):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        priors = ""
        if self.n_classes == 2:
            if self.priors is not None:
                priors = f", pi_neg={float(self.priors[0])!r}"
            return f"NoiseModel.binary(eps_pos={self.eps_pos!r}, eps_neg={self.eps_neg!r}{priors})"
        if self.priors is not None:
            priors = f", priors={self.priors.tolist()}"
        return f"NoiseModel({self.transition.tolist()}{priors})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Unpickling calls the constructor, so that the arrays are read-only again.
        return (NoiseModel, (self.transition, self.priors))

    def _key(self) -> tuple[Any, ...]:
        priors = None if self.priors is None else tuple(self.priors.tolist())
        return (*map(tuple, self.transition.tolist()), priors)

    def _rate(self, true: int) -> float:
        if self.n_classes != 2:
            raise AttributeError(
                f"eps_pos and eps_neg require two classes; this model has {self.n_classes}."
            )
        return float(self.transition[true, 1 - true])


def shares_of_wrong_labels(transition: FloatArray) -> FloatArray:
    """Return the shares of each class among the wrong labels of a true class, 0 on the diagonal.

    A class without wrong labels has equal shares.
    """
    k = len(transition)
    wrong = np.where(np.eye(k, dtype=bool), 0.0, transition)
    rates = wrong.sum(axis=1, keepdims=True)
    equal = (1 - np.eye(k)) / (k - 1)
    return np.where(rates > 0, wrong / np.where(rates > 0, rates, 1.0), equal)


def _checked_transition(transition: ArrayLike) -> FloatArray:
    matrix = as_floats(transition, "transition")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        raise ValueError(
            f"transition has shape {matrix.shape}; it must be k×k with k ≥ 2, row = true class, "
            "column = observed."
        )
    for a, b in np.argwhere(~((matrix >= 0) & (matrix <= 1))):
        raise ValueError(
            f"transition[{a}, {b}] = {matrix[a, b]:g} is not a probability: it must lie in [0, 1]."
        )
    for a in np.flatnonzero(np.abs(matrix.sum(axis=1) - 1) > _SUM_TOLERANCE):
        raise ValueError(
            f"Row {a} of transition sums to {matrix[a].sum():g}: each row (a true class) must sum "
            "to 1."
        )
    if len(matrix) == 2:
        _check_rates(eps_pos=matrix[1, 0], eps_neg=matrix[0, 1])
    matrix.setflags(write=False)
    return matrix


def _check_rates(*, eps_pos: float, eps_neg: float) -> None:
    for name, rate in (("eps_pos", eps_pos), ("eps_neg", eps_neg)):
        if not 0 <= rate <= 1:
            raise ValueError(f"{name} = {rate:g} is not a probability: it must lie in [0, 1].")
    if eps_pos + eps_neg >= 1:
        raise ValueError(
            f"eps_pos + eps_neg = {eps_pos:g} + {eps_neg:g} must be below 1: at 1 or more, labels "
            "are no better than chance, or the two classes are swapped."
        )


def check_noise(noise: object) -> None:
    """Raise `ValueError` if this is not a NoiseModel."""
    example = "for example NoiseModel.binary(eps_pos=0.2, eps_neg=0.1, pi_neg=0.5)"
    check_kind(noise, NoiseModel, "noise", f"pass {example}")


def checked_proportions(
    values: ArrayLike, k: int, name: str, *, allow_zero: bool = False
) -> FloatArray:
    """Return proportions of k classes as a read-only array; raises `ValueError` if invalid."""
    proportions = as_floats(values, name)
    if proportions.shape != (k,):
        raise ValueError(
            f"{name} has shape {proportions.shape}; it needs one entry for each of the {k} classes."
        )
    is_valid = proportions >= 0 if allow_zero else proportions > 0
    for a in np.flatnonzero(~is_valid):
        raise ValueError(f"{name}[{a}] = {proportions[a]:g} must be a positive proportion.")
    if abs(proportions.sum() - 1) > _SUM_TOLERANCE:
        raise ValueError(f"{name} sum to {proportions.sum():g}; they must sum to 1.")
    proportions.setflags(write=False)
    return proportions


def _checked_indices(y: ArrayLike, k: int) -> IntArray:
    true = as_array(y, "y")
    if true.ndim != 1 or (true.size and not np.issubdtype(true.dtype, np.integer)):
        raise ValueError(
            f"flip requires a one-dimensional y of class indices 0..{k - 1}, not {true.dtype} of "
            f"shape {true.shape}: encode the labels first, for example with np.unique(y, "
            "return_inverse=True)[1]."
        )
    for value in true[(true < 0) | (true >= k)]:
        raise ValueError(
            f"Class index {value} is outside 0..{k - 1}, the classes of this noise model: "
            "encode the labels first, for example with np.unique(y, return_inverse=True)[1]."
        )
    return true.astype(np.intp)


def _flip_generator(random_state: RandomState) -> np.random.Generator | np.random.RandomState:
    if isinstance(random_state, np.random.Generator | np.random.RandomState):
        return random_state
    return seeded(random_state, _FLIP_STREAM)


def _rounded(values: FloatArray) -> list[float]:
    return [round(float(value), 4) for value in values]
