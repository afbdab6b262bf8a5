"""KernelFeatures: Nyström features of a stationary kernel."""

from __future__ import annotations

from copy import copy
from typing import Literal, Self

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from unflip._utils.arrays import LARGE_BLOCK, as_numpy, largest_magnitude
from unflip._utils.namespaces import check_reachable, check_same_device, precisions
from unflip._utils.randomness import RandomState, generator
from unflip._utils.typing import Array, IntArray, Rows
from unflip._utils.validation import as_count, as_number, check_choice, check_squares, shown
from unflip.data.duplicates import take_rows
from unflip.data.engines.blocks import BLOCK_VALUES, is_on_host
from unflip.data.input_rows import lazy_for_dask, open_dask, validated
from unflip.data.lazy import LazyRows
from unflip.features.kernels import KERNELS, squared_distances

# Attributes that `transform` needs.
_TRANSFORMING = ("landmarks_", "basis_", "scale_", "n_features_in_", "feature_names_in_")
# Rows whose distances give the median distance. A choice: the median of their 125,000 distances
# varies by about 2%.
_MEDIAN_ROWS = 500
# Rows per landmark among which pivoting chooses. A choice that bounds its time.
_ROWS_PER_PIVOT = 10
# Smallest and largest bandwidth, in median distances. Beyond, kernels are 0 or 1 up to rounding.
_BANDWIDTHS = (1e-6, 1e6)
# Eigenvalues of the landmarks' kernel matrix below this share of the largest are rounding errors.
_SMALLEST_EIGENVALUE = 1e-10


class KernelFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Nyström features of a stationary kernel.

    The inner product of the features of two samples approximates their kernel,

    .. math:: z(x)^\top z(x') \approx k(\lVert x - x' \rVert / b),

    and is exact if one of them is a landmark. With at least as many landmarks as samples the kernel
    of the training samples is exact. A linear classifier on these features is a nonlinear
    classifier of the samples. Labels are not used. Scale the features first, for example with
    `StandardScaler`, because distances depend on their units.

    Parameters
    ----------
    kernel : {"matern", "rbf", "laplace"}, default="matern"
        "rbf" is exp(−d²/2), "matern" is (1 + √3 d) exp(−√3 d), and "laplace" is exp(−d), for
        distances d in units of the bandwidth: from smooth functions to rough ones.
    bandwidth : float, default=1.0
        Bandwidth b in units of the median distance between samples.
    n_components : int, default=500
        Number of landmarks. The time of a fit grows with its square, for all samples.
    landmarks : {"random", "pivoted"}, default="random"
        How landmarks are chosen among the samples. "pivoted" draws each with a probability
        proportional to what the landmarks so far leave unexplained of it (randomly pivoted Cholesky
        decomposition), among at most ten random samples per landmark. That needs fewer landmarks
        if samples lie in clusters of unequal size.
    random_state : int, Generator, RandomState or None, default=0
        Seed of the choice of landmarks.

    Attributes
    ----------
    landmarks_ : array or sparse array of shape (m, p)
        The landmarks, on the device of the samples.
    scale_ : float
        Median distance between samples.
    basis_ : array of shape (m, n_features_out)
        Maps kernel values of a sample and the landmarks to its features.
    n_features_in_ : int
        Number of features of the samples.
    feature_names_in_ : ndarray of shape (p,)
        Names of the features; only if the columns of X have names that are all strings.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip.features import KernelFeatures
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> Z = KernelFeatures("rbf", n_components=50).fit_transform(X)
    >>> distances = np.linalg.norm(X[:, None] - X[None, :], axis=2)
    >>> kernel = np.exp(-(distances**2) / np.median(distances[distances > 0]) ** 2 / 2)
    >>> bool(np.allclose(Z @ Z.T, kernel))
    True
    """

    landmarks_: Rows
    scale_: float
    basis_: Array
    n_features_in_: int

    def __init__(
        self,
        kernel: str = "matern",
        *,
        bandwidth: float = 1.0,
        n_components: int = 500,
        landmarks: Literal["random", "pivoted"] = "random",
        random_state: RandomState = 0,
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.n_components = n_components
        self.landmarks = landmarks
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Choose the landmarks.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Samples, as in `LPClassifier.fit`.
        y : None
            Ignored.

        Returns
        -------
        self
        """
        self._check_parameters()
        check_reachable(X=X)
        rows = validated(self, open_dask(X), dtype=precisions(X))
        rng = generator(self.random_state)
        sample = _take(rows, _sample(rng, rows.shape[0], _MEDIAN_ROWS))
        values = sample.data if issparse(sample) else sample
        check_squares(largest_magnitude(values), int(np.prod(sample.shape)))
        self.scale_ = _median_distance(sample)
        n_landmarks = min(int(self.n_components), int(rows.shape[0]))
        if self.landmarks == "random":
            indices = _sample(rng, rows.shape[0], n_landmarks)
        else:
            indices = self._pivots(rows, n_landmarks, rng)
        self.landmarks_ = _take(rows, indices)
        self.basis_ = _inverse_root(self._kernel_of(self.squared_distances(self.landmarks_)))
        return self

    @lazy_for_dask
    def transform(self, X: ArrayLike) -> Array:
        """Return the features of samples, of shape (n, n_features_out).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Samples, on the device of those of `fit`. A Dask collection gives a Dask array.
        """
        check_is_fitted(self)
        check_reachable(X=X)
        rows = validated(self, X, dtype=precisions(X), reset=False)
        check_same_device(self.basis_, rows, f"{type(self).__name__}.transform")
        xp = array_namespace(self.basis_)
        dtype = xp.float32 if str(rows.dtype).endswith("float32") else xp.float64
        n_rows, n_columns = int(rows.shape[0]), int(self.basis_.shape[1])
        features = xp.empty((n_rows, n_columns), dtype=dtype, device=device(self.basis_))
        block_values = BLOCK_VALUES if is_on_host(self.basis_) else LARGE_BLOCK
        height = max(block_values // int(self.basis_.shape[0]), 1)
        for start in range(0, n_rows, height):
            part = slice(start, min(start + height, n_rows))
            block = self.features_at(self.squared_distances(rows[part, :]))
            features[part, :] = xp.astype(block, dtype, copy=False)
        return features

    def squared_distances(self, X: Rows) -> Array:
        """Return squared distances of rows and landmarks in units of the median distance, (n, m).

        Fits with other kernels or bandwidths, the same samples and the same seed have the same
        distances.
        """
        return squared_distances(X, self.landmarks_) / self.scale_**2

    def features_at(self, squared: Array) -> Array:
        """Return the features of rows at these `squared_distances`."""
        return self._kernel_of(squared) @ self.basis_

    def with_kernel(self, kernel: str) -> Self:
        """Return the features of another kernel, with the landmarks of this fit."""
        if kernel == self.kernel:
            return self
        other = copy(self)
        other.kernel = kernel
        other.basis_ = _inverse_root(other._kernel_of(other.squared_distances(other.landmarks_)))
        return other

    def __sklearn_tags__(self) -> Tags:
        """Return the tags."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.array_api_support = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.basis_.shape[1])

    def _alone(self) -> Self:
        """Return a transformer with the same features, and no attribute of the samples."""
        alone = type(self)(**self.get_params())
        alone.__dict__.update(
            {name: value for name, value in vars(self).items() if name in _TRANSFORMING}
        )
        return alone

    def _check_parameters(self) -> None:
        check_choice(self.kernel, tuple(KERNELS), "kernel")
        check_choice(self.landmarks, ("random", "pivoted"), "landmarks")
        as_count(self.n_components, "n_components", least=1)
        smallest, largest = _BANDWIDTHS
        if not smallest <= as_number(self.bandwidth, "bandwidth") <= largest:
            raise ValueError(
                f"bandwidth = {shown(self.bandwidth)} must be between {smallest:g} and "
                f"{largest:g}, in units of the median distance."
            )

    def _kernel_of(self, squared: Array) -> Array:
        return KERNELS[self.kernel](squared / self.bandwidth**2)

    def _pivots(self, rows: Rows, n_landmarks: int, rng: np.random.Generator) -> IntArray:
        """Return the pivots of a randomly pivoted Cholesky decomposition of the kernel matrix."""
        candidates = _sample(rng, rows.shape[0], _ROWS_PER_PIVOT * n_landmarks)
        sample = _take(rows, candidates)
        X = sample if issparse(sample) else as_numpy(sample)
        factor = np.zeros((X.shape[0], n_landmarks))
        unexplained = np.ones(X.shape[0])
        pivots: list[int] = []
        while len(pivots) < n_landmarks and unexplained.any():
            pivot = int(rng.choice(len(unexplained), p=unexplained / unexplained.sum()))
            step = len(pivots)
            squared = squared_distances(X, X[[pivot]])[:, 0] / self.scale_**2
            column = self._kernel_of(squared) - factor[:, :step] @ factor[pivot, :step]
            factor[:, step] = column / np.sqrt(unexplained[pivot])
            unexplained -= factor[:, step] ** 2
            unexplained[unexplained < _SMALLEST_EIGENVALUE] = 0.0
            pivots.append(pivot)
        return np.sort(candidates[pivots])


def _sample(rng: np.random.Generator, n_rows: int, size: int) -> IntArray:
    """Return the indices of random rows, in ascending order."""
    return np.sort(rng.choice(n_rows, min(size, n_rows), replace=False))


def _take(X: Rows, indices: IntArray) -> Rows:
    """Return these rows in memory."""
    rows = take_rows(X, indices)
    return np.asarray(rows) if isinstance(rows, LazyRows) else rows


def _median_distance(sample: Rows) -> float:
    """Return the median distance between different rows; 1 if all are the same."""
    squared = as_numpy(squared_distances(sample, sample))
    distances = np.sqrt(squared[np.triu_indices(len(squared), 1)])
    largest = distances.max(initial=0.0)
    # Distances of duplicates are rounding errors.
    positive = distances[distances > 1e-7 * largest]
    return float(np.median(positive)) if len(positive) else 1.0


def _inverse_root(kernel: Array) -> Array:
    """Return B with BBᵀ = K⁻¹ for a kernel matrix, without its numerical null space."""
    xp = array_namespace(kernel)
    values, vectors = xp.linalg.eigh(kernel)
    on_host = as_numpy(values)
    first = int(np.searchsorted(on_host, _SMALLEST_EIGENVALUE * on_host[-1], side="right"))
    return vectors[:, first:] / xp.sqrt(values[first:])
