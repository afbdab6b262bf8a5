"""Small images of rows as data URIs, for pages."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from os import PathLike
from typing import Any

from unflip._utils.optional import import_optional
from unflip.features.image_pixels import UnreadableImageError, eight_bit, open_image

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
        A file, or pixels.
    """
    if image is None:
        return None
    try:
        small = _opened(image)
    except UnreadableImageError:
        return None
    small.thumbnail((SIZE, SIZE))
    content = io.BytesIO()
    if max(small.size) <= _TINY:
        small.save(content, "PNG", optimize=True)
        kind = "png"
    else:
        small.save(content, "JPEG", quality=_JPEG_QUALITY, optimize=True)
        kind = "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(content.getvalue()).decode()}"


def _opened(image: Any) -> Any:
    """Return an image of Pillow."""
    if isinstance(image, str | PathLike):
        return open_image(image, SIZE)
    return import_optional("PIL.Image", "The page with images").fromarray(eight_bit(image))
