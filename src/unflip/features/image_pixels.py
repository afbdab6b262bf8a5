"""Images of any kind as small arrays of red, green and blue pixels."""

from __future__ import annotations

import warnings
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip._utils.optional import import_optional
from unflip._utils.typing import FloatArray

#: Formats that are opened, by their names in Pillow. Others, such as PostScript, may run programs.
_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
#: Endings of the names of these files.
ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
# Modes of Pillow with more than 8 bits for each pixel, which it would cut off at 255.
_DEEP_MODES = ("I;16", "I;16B", "I;16L", "I;16N", "I", "F")
# An image is first reduced to at least twice the size by whole factors: Pillow documents that 2
# shows no difference, and it is several times faster for photos.
_REDUCING_GAP = 2.0


class UnreadableImageError(ValueError):
    """An image cannot be read; `reason` says why, without the name of the file."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(
            f"X has {name}, which cannot be read as an image ({reason}): replace it, or leave it "
            "out."
        )
        self.reason = reason


def small_pixels(image: Any, size: int) -> NDArray[np.uint8]:
    """Return an image as pixels of shape (size, size, 3), from 0 to 255.

    Files are turned as their EXIF orientation says, transparent parts are white, and the first
    frame of an animation is used. Arrays are scaled by `eight_bit`.

    Parameters
    ----------
    image : str, path or array of shape (height, width), (height, width, 1 | 3 | 4)
        A file, or the pixels.
    size : int
        Height and width of the result.
    """
    pillow = import_optional("PIL.Image", "ImageFeatures")
    if isinstance(image, str | PathLike):
        opened = open_image(image, size)
    else:
        opened = _as_rgb(pillow.fromarray(eight_bit(image)))
    resized = opened.resize((size, size), pillow.Resampling.BILINEAR, reducing_gap=_REDUCING_GAP)
    return np.asarray(resized)


def open_image(path: str | PathLike[str], size: int) -> Any:
    """Return the image of a file in red, green and blue, upright.

    Parameters
    ----------
    path : str or path
        The file.
    size : int
        Smallest height and width, in pixels, that the caller needs: large photos are read at a
        fraction of their size.

    Raises
    ------
    UnreadableImageError
        If the file is missing, damaged, too large, or not an image.
    """
    pillow = import_optional("PIL.Image", "ImageFeatures")
    operations = import_optional("PIL.ImageOps", "ImageFeatures")
    name = fspath(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on damaged metadata, and on large images
            with pillow.open(name, formats=_FORMATS) as image:
                image.draft("RGB", (size, size))  # a JPEG file is then decoded at a reduced size
                return _as_rgb(operations.exif_transpose(image))
    except MemoryError:
        raise
    except Exception as error:  # a damaged file can raise any error
        raise UnreadableImageError(name, _reason(error, pillow)) from None


def _reason(error: Exception, pillow: Any) -> str:
    if isinstance(error, pillow.DecompressionBombError):
        return f"it has more than {2 * pillow.MAX_IMAGE_PIXELS:,} pixels"
    if isinstance(error, import_optional("PIL", "ImageFeatures").UnidentifiedImageError):
        return f"it has none of the formats {', '.join(_FORMATS)}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"it is damaged: {error}"


def _as_rgb(image: Any) -> Any:
    """Return an image of Pillow in red, green and blue; transparent parts are white."""
    pillow = import_optional("PIL.Image", "ImageFeatures")
    if image.mode in _DEEP_MODES:
        return pillow.fromarray(eight_bit(np.asarray(image))).convert("RGB")
    if not image.has_transparency_data:
        return image.convert("RGB")
    with_alpha = image.convert("RGBA")
    white = pillow.new("RGBA", with_alpha.size, "white")
    return pillow.alpha_composite(white, with_alpha).convert("RGB")


def eight_bit(pixels: Any) -> NDArray[np.uint8]:
    """Return pixels from 0 to 255; raise ValueError unless they are an image.

    Numbers that are not 8-bit integers are scaled: from 0 to 1 if all are in this range, else from
    the smallest to the largest.
    """
    values = np.asarray(pixels)
    if values.ndim == 3 and values.shape[2] == 1:
        values = values[:, :, 0]
    is_image = values.ndim == 2 or (values.ndim == 3 and values.shape[2] in (3, 4))
    if not is_image or 0 in values.shape or values.dtype.kind not in "buif":
        raise ValueError(
            f"X has an image of shape {values.shape} and type {values.dtype}: pass files, or "
            "numbers of shape (height, width) or (height, width, 3)."
        )
    if values.dtype == np.uint8:
        return values
    numbers = values.astype(float)
    if not np.isfinite(numbers).all():
        raise ValueError("X has pixels that are NaN or infinite: replace them.")
    lowest = float(numbers.min())
    highest = float(numbers.max())
    if lowest >= 0 and highest <= 1:
        lowest, highest = 0.0, 1.0
    scaled: FloatArray = 255 * (numbers - lowest) / ((highest - lowest) or 1.0)
    return scaled.round().astype(np.uint8)
