"""Small images of rows as data URIs, for pages."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unflip._utils.optional import import_optional

#: Longest side of a thumbnail, in pixels.
SIZE = 96
#: Most thumbnails of a page: with 3 to 4 kB each, they take at most 8 MB. A choice.
MOST_THUMBNAILS = 2000
# Images up to this side are stored without loss; JPEG would blur their few pixels.
_TINY = 32
_JPEG_QUALITY = 80  # of 95; a choice, at which thumbnails of photographs look the same


def thumbnails(images: Sequence[Any], rows: Sequence[int]) -> dict[int, str]:
    """Return a data URI for the image of each of the first rows, by row.

    Parameters
    ----------
    images : sequence of path or array
        Image of each row: a file, or its pixels.
    rows : sequence of int
        Rows to show. Images that cannot be read are left out.
    """
    shown: dict[int, str] = {}
    for row in dict.fromkeys(rows):
        if len(shown) == MOST_THUMBNAILS:
            break
        uri = thumbnail(images[row])
        if uri is not None:
            shown[row] = uri
    return shown


def thumbnail(image: Any) -> str | None:
    """Return an image as a data URI; None if there is none, or its file cannot be read.

    Parameters
    ----------
    image : path, array of shape (height, width) or (height, width, 3), or None
        Pixels of another type than uint8 are scaled: from 0 to 1 if they are in this range, else
        from the darkest to the brightest.
    """
    if image is None:
        return None
    pillow = import_optional("PIL.Image", "The page with images")
    try:
        small = _opened(pillow, image)
    except (OSError, pillow.DecompressionBombError):
        return None
    content = io.BytesIO()
    if max(small.size) <= _TINY:
        small.save(content, "PNG", optimize=True)
        kind = "png"
    else:
        small.save(content, "JPEG", quality=_JPEG_QUALITY, optimize=True)
        kind = "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(content.getvalue()).decode()}"


def _opened(pillow: Any, image: Any) -> Any:
    """Return a small image of Pillow, in shades of grey or in colours."""
    if isinstance(image, str | PathLike):
        with pillow.open(Path(image)) as file:
            file.draft("RGB", (SIZE, SIZE))  # JPEG files are decoded at a fraction of their size
            small = file.convert("L" if file.mode in ("1", "L", "I", "I;16", "F") else "RGB")
    else:
        small = pillow.fromarray(pixels(image))
    small.thumbnail((SIZE, SIZE))
    return small


def pixels(image: Any) -> NDArray[np.uint8]:
    """Return an array as pixels from 0 to 255."""
    values = np.asarray(image)
    is_image = values.ndim == 2 or (values.ndim == 3 and values.shape[2] == 3)
    if not is_image or not values.size or values.dtype.kind not in "biuf":
        raise ValueError(
            f"An image is an array of shape {values.shape} and dtype {values.dtype}: pass numbers "
            "of shape (height, width) or (height, width, 3), or a path."
        )
    if values.dtype == np.uint8:
        return values
    values = np.nan_to_num(values.astype(np.float64), posinf=0.0, neginf=0.0)
    low, high = float(values.min()), float(values.max())
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    scale = 255 / (high - low) if high > low else 0.0
    return np.asarray(((values - low) * scale).round(), dtype=np.uint8)
