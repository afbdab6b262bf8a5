"""Base class of the estimators of noise rates, with confidence intervals."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from unflip._utils.arrays import is_foreign, place
from unflip._utils.typing import FloatArray
from unflip._utils.validation import as_number, shown
from unflip.data.training_set import TrainingSet
from unflip.labels.noise import NoiseModel
from unflip.ridge.spectrum.base import Spectrum

#: Value of ``source_`` of rates that were estimated from trusted labels.
TRUSTED_ROWS: Final = "trusted rows"


class AssumedNoiseWarning(UserWarning):
    """Warning that noise rates are assumed, because the data do not identify them."""


class NoiseEstimator(BaseEstimator):
    """Base class of the estimators of noise rates.

    A new estimator implements ``fit(X, y)``, with ``sample_weight`` if it supports weights, and
    sets the attributes below. X is an array or a sparse matrix. If users pass X that is read in
    blocks, such as a memory map, it is `LazyRows`: ``np.asarray(X)`` reads all rows. To support
    rows on a device, the estimator overrides `fit_from_spectrum`.

    An estimator that reads the rates from ``y_trusted`` alone sets ``from_trusted_labels``. It then
    serves the probabilities of any model as well, and votes. With votes only its ``y_trusted`` is
    used, to estimate each annotator: ``fit`` is not called.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        Labels, sorted.
    noise_ : NoiseModel
        The estimated rates and true class proportions. Without priors, `LPClassifier` infers them
        from the observed proportions.
    noise_std_ : ndarray of shape (k, k)
        Standard error of each entry of ``noise_.transition``; for two classes that of ε₊ is
        ``noise_std_[1, 0]`` and that of ε₋ ``noise_std_[0, 1]``.
    rate_covariance_ : ndarray of shape (k, k) or None
        Covariance of the noise rates of the classes, if they are correlated; optional.
    calibration_noise_ : NoiseModel or None
        Noise of the calibration, if that has a simpler structure than ``noise_``; optional.
    source_ : str
        What the rates were estimated from, in a few words; optional. Audits print it.
    assumption_ : str
        What was assumed rather than estimated, as a sentence; empty if nothing was. `LPClassifier`
        warns of it with `AssumedNoiseWarning`, and audits repeat it.
    is_start_ : bool
        Whether the rates are only a start, which `LPClassifier` corrects by the likelihood of the
        labels (`unflip.calibration.likeliest_noise`); optional.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip import LPClassifier, NoiseModel
    >>> from unflip.datasets import make_mixture
    >>> class SymmetricNoise(NoiseEstimator):
    ...     def __init__(self, rate=0.1):
    ...         self.rate = rate
    ...
    ...     def fit(self, X, y):
    ...         self.classes_ = np.unique(y)
    ...         self.noise_ = NoiseModel.binary(eps_pos=self.rate, eps_neg=self.rate)
    ...         self.noise_std_ = np.zeros((2, 2))
    ...         return self
    >>> X, y = make_mixture(200, 20, mean_norm=2.0, random_state=0)
    >>> float(LPClassifier(noise=SymmetricNoise(0.2)).fit(X, y).noise_.eps_pos)
    0.2
    """

    classes_: NDArray[Any]
    noise_: NoiseModel
    noise_std_: FloatArray
    rate_covariance_: FloatArray | None = None
    calibration_noise_: NoiseModel | None = None
    priors: ArrayLike | None = None
    y_trusted: ArrayLike | None = None
    inclusion: ArrayLike | None = None
    source_: str = "estimator"
    assumption_: str = ""
    is_start_: bool = False
    from_trusted_labels: ClassVar[bool] = False

    @property
    def uses_trusted_labels(self) -> bool:
        """Whether the rates come from trusted labels of rows that were sampled."""
        return self.y_trusted is not None and self.source_ == TRUSTED_ROWS

    def __sklearn_tags__(self) -> Tags:
        """Return tags that require y and allow sparse X."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Estimate the noise rates from samples X with observed labels y."""
        # Each estimator has its own; this one documents the signature for those of users.
        raise NotImplementedError(f"{type(self).__name__} does not implement fit.")

    def fit_training_set(self, data: TrainingSet, spectrum: Spectrum) -> Self:
        """Estimate from a prepared training set, with the centred spectrum of its rows at hand.

        Raises `ValueError` if samples have weights or X is on a device, and the estimator does not
        support that.
        """
        if is_foreign(data.X):
            return self.fit_from_spectrum(data, spectrum)
        labels: Any = data.y
        if has_fit_parameter(self, "sample_weight"):
            weighted = {"sample_weight": data.weights}
            return self.fit(data.X, labels, **weighted)
        if not (data.weights == 1).all():
            raise ValueError(
                f"noise={self!r} does not support sample_weight: fit without weights, or repeat "
                "rows."
            )
        return self.fit(data.X, labels)

    def fit_from_spectrum(self, data: TrainingSet, spectrum: Spectrum) -> Self:
        """Estimate from the centred spectrum of the rows, which stay on their device."""
        raise ValueError(
            f"noise={self!r} needs NumPy arrays, but X is a {place(data.X)}: fit the "
            "estimator to a NumPy copy of X and pass its noise_, or pass a NoiseModel."
        )

    def with_trusted(self, y_trusted: ArrayLike, data: TrainingSet, spectrum: Spectrum) -> Self:
        """Return an estimator that is fitted to the same samples with other trusted labels."""
        other: Self = clone(self).set_params(y_trusted=y_trusted)
        return other.fit_training_set(data, spectrum)

    def correct(
        self,
        noise: NoiseModel,
        errors: FloatArray,
        covariance: FloatArray,
        calibration_noise: NoiseModel,
        assumption: str,
    ) -> None:
        """Replace the rates that were a start by those of the largest likelihood."""
        self.noise_ = noise
        self.noise_std_ = errors
        self.rate_covariance_ = covariance
        self.calibration_noise_ = calibration_noise
        self.source_ = "label likelihood"
        self.assumption_ = assumption

    def checked_rates(self, n_classes: int) -> tuple[NoiseModel, FloatArray]:
        """Return `noise_` and `noise_std_`; raise `ValueError` if ``fit`` did not set them."""
        noise = getattr(self, "noise_", None)
        errors: Any = getattr(self, "noise_std_", None)
        shape = (n_classes, n_classes)
        is_noise = isinstance(noise, NoiseModel) and noise.n_classes == n_classes
        if not is_noise or np.shape(errors) != shape:
            raise ValueError(
                f"noise={self!r} must set noise_ to a NoiseModel of {n_classes} classes and "
                f"noise_std_ to an array of shape {shape} in fit."
            )
        return self.noise_, np.asarray(self.noise_std_)

    def interval(self, confidence: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper limits of confidence intervals of the transition matrix.

        Parameters
        ----------
        confidence : float
            Coverage of each interval, strictly between 0 and 1.

        Returns
        -------
        low, high : ndarray of shape (k, k)
            Limits for each entry of ``noise_.transition``.
        """
        check_is_fitted(self)
        half_width = ndtri((1 + checked_confidence(confidence)) / 2) * self.noise_std_
        estimate = self.noise_.transition
        return np.clip(estimate - half_width, 0, 1), np.clip(estimate + half_width, 0, 1)


def checked_confidence(confidence: float) -> float:
    """Return the confidence; raises `ValueError` unless it is strictly between 0 and 1."""
    share = as_number(confidence, "confidence")
    if not 0 < share < 1:
        raise ValueError(
            f"confidence = {shown(confidence)} must lie strictly between 0 and 1, for example 0.95."
        )
    return share
