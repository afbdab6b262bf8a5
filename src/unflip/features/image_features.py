"""ImageFeatures: edges and colours of images, a descriptor that needs no trained network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags

from unflip._utils.typing import FloatArray
from unflip._utils.validation import as_count
from unflip.features.image_pixels import small_pixels

# Settings of Dalal and Triggs (2005), section 6: directions of edges without sign, blocks of 2 x 2
# cells, and the largest value of a normalized block.
_N_DIRECTIONS = 9
_BLOCK = 2
_LARGEST = 0.2
#: Pixels on each side of a cell. Of 4, 8 and 16, chosen on six sets of images with wrong labels
#: (docs/images.md).
CELL = 16
# Contrast, in grey levels of 255, below which edges count as noise; a choice.
_FAINT = 2.5
# Added to the norm when blocks are normalized again, so that those without edges stay near 0; a
# choice.
_DAMPING = 0.02
_N_SHADES = 4  # of each of red, green and blue in the histogram of colours; a choice
# Images whose pixels are in memory at a time, 50 MB in single precision with 4 cells; a choice.
_AT_A_TIME = 128


class ImageFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Edges and colours of images, as features for linear classifiers.

    Each image is reduced to a square. A grid of cells divides it. The features are the histogram of
    the directions of edges in each cell, normalized in blocks of 2 x 2 cells (HOG), the mean colour
    of each cell, and the square roots of the histogram of the colours of the image. They need no
    trained network and no download. Embeddings of a trained network usually separate the classes of
    photos better.

    Scale the features, for example with `StandardScaler`. Nothing is learnt from the images, so
    `fit` only checks the parameters.

    Parameters
    ----------
    n_cells : int, default=4
        Cells on each side of the grid. 4 gives 436 features, 8 gives 2020.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from unflip.features import ImageFeatures
    >>> ImageFeatures().fit_transform(load_digits().images[:10]).shape
    (10, 436)
    """

    def __init__(self, n_cells: int = 4) -> None:
        self.n_cells = n_cells

    def fit(self, X: Any = None, y: object = None) -> Self:
        """Check the parameters.

        Parameters
        ----------
        X, y : None
            Ignored.

        Returns
        -------
        self
        """
        as_count(self.n_cells, "n_cells", least=_BLOCK)
        return self

    def transform(self, X: Sequence[Any] | NDArray[Any]) -> FloatArray:
        """Return the features of images, of shape (n, n_features_out).

        Parameters
        ----------
        X : sequence of str, path or array
            Image files, or arrays of pixels of shape (height, width) or (height, width, 3), which
            may differ in size. 8-bit integers are taken as they are. Other numbers are scaled, from
            0 to 1 if those of an image are in this range, else from its smallest to its largest.
        """
        self.fit()
        images = _as_list(X)
        features = np.empty((len(images), self._n_features_out))
        for start in range(0, len(images), _AT_A_TIME):
            part = slice(start, start + _AT_A_TIME)
            pixels = [small_pixels(image, self.size) for image in images[part]]
            features[part] = _described(np.array(pixels, dtype=np.float32), int(self.n_cells))
        return features

    @property
    def size(self) -> int:
        """Height and width to which images are reduced, in pixels."""
        return CELL * int(self.n_cells)

    @property
    def _n_features_out(self) -> int:
        n_edges = (int(self.n_cells) - _BLOCK + 1) ** 2 * _BLOCK**2 * _N_DIRECTIONS
        return int(n_edges + 3 * int(self.n_cells) ** 2 + _N_SHADES**3)

    def __sklearn_is_fitted__(self) -> bool:
        """Return True: nothing is learnt."""
        return True

    def __sklearn_tags__(self) -> Tags:
        """Return the tags."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags


def _as_list(X: Any) -> list[Any]:
    """Return images as a list; raise TypeError if X is a single file, or no sequence."""
    try:
        if not isinstance(X, str | bytes):
            return list(X)
    except TypeError:  # such as a number
        pass
    raise TypeError(f"X = {X!r} must be a sequence of image files or of arrays of pixels.")


def _described(pixels: NDArray[np.float32], n_cells: int) -> FloatArray:
    """Return the features of pixels of shape (n, size, size, 3)."""
    parts = [_edges(pixels, n_cells), _mean_colours(pixels, n_cells), _colour_histogram(pixels)]
    return np.hstack([part.reshape(len(pixels), -1) for part in parts]).astype(float)


def _edges(pixels: NDArray[np.float32], n_cells: int) -> FloatArray:
    """Return histograms of oriented gradients (HOG), of shape (n, blocks, blocks, 36)."""
    vertical, horizontal = np.gradient(pixels, axis=(1, 2))
    strength = np.hypot(vertical, horizontal)
    strongest = strength.argmax(axis=3)[..., np.newaxis]  # of red, green and blue
    vertical, horizontal, strength = (
        np.take_along_axis(each, strongest, axis=3)[..., 0]
        for each in (vertical, horizontal, strength)
    )
    # Each gradient is divided between the two directions that are nearest to its own.
    place = np.arctan2(vertical, horizontal) % np.pi * (_N_DIRECTIONS / np.pi) - 0.5
    lower = np.floor(place)
    share = place - lower
    histograms = []
    for direction in range(_N_DIRECTIONS):
        weights = (lower % _N_DIRECTIONS == direction) * (1 - share)
        weights += ((lower + 1) % _N_DIRECTIONS == direction) * share
        histograms.append(_means_of_cells(strength * weights, n_cells))
    cells = np.stack(histograms, axis=3)
    n_blocks = n_cells - _BLOCK + 1
    corners = [(i, j) for i in range(_BLOCK) for j in range(_BLOCK)]
    blocks = np.concatenate(
        [cells[:, i : i + n_blocks, j : j + n_blocks] for i, j in corners], axis=3
    )
    clipped = np.minimum(_normalized(blocks, _FAINT), _LARGEST)
    return _normalized(clipped, _DAMPING)


def _normalized(blocks: FloatArray, faint: float) -> FloatArray:
    """Divide blocks by their norm; those with a norm far below `faint` stay near 0."""
    return np.asarray(blocks / np.sqrt((blocks**2).sum(axis=3, keepdims=True) + faint**2))


def _mean_colours(pixels: NDArray[np.float32], n_cells: int) -> FloatArray:
    """Return the mean colour of each cell, from 0 to 1."""
    return _means_of_cells(pixels, n_cells) / 255


def _means_of_cells(values: NDArray[Any], n_cells: int) -> NDArray[Any]:
    """Return means over the cells of images, of shape (n, n_cells, n_cells, ...)."""
    n_images, size, _, *rest = values.shape
    side = size // n_cells
    cells = values.reshape(n_images, n_cells, side, n_cells, side, *rest)
    return np.asarray(cells.mean(axis=(2, 4)))


def _colour_histogram(pixels: NDArray[np.float32]) -> FloatArray:
    """Return the square root of the share of each colour: distances are then Hellinger's."""
    shades = (pixels * (_N_SHADES / 256)).astype(int)
    colours = (shades * (_N_SHADES**2, _N_SHADES, 1)).sum(axis=3).reshape(len(pixels), -1)
    counts = [np.bincount(image, minlength=_N_SHADES**3) for image in colours]
    return np.asarray(np.sqrt(np.array(counts) / colours.shape[1]))
