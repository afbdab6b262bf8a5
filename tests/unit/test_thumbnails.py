"""Thumbnails of images as data URIs."""

import base64
import io

import numpy as np
import pytest

pytest.importorskip("PIL.Image", reason="needs the extra unflip[cli]")

from PIL import Image

from unflip.auditing.html.thumbnails import SIZE, thumbnail, thumbnails


def opened(uri):
    kind, content = uri.removeprefix("data:image/").split(";base64,")
    return kind, Image.open(io.BytesIO(base64.b64decode(content)))


def test_small_arrays_are_stored_without_loss():
    image = np.arange(64).reshape(8, 8)
    kind, small = opened(thumbnail(image))
    assert kind == "png"
    np.testing.assert_array_equal(np.asarray(small), np.round(image * 255 / 63))


def test_large_images_keep_their_shape():
    kind, small = opened(thumbnail(np.zeros((300, 600, 3), dtype=np.uint8)))
    assert (kind, small.size) == ("jpeg", (SIZE, SIZE // 2))


@pytest.mark.parametrize("mode", ["RGB", "L", "P", "RGBA", "1", "CMYK"])
def test_files_of_any_mode(tmp_path, mode):
    path = tmp_path / ("image.tiff" if mode == "CMYK" else "image.png")
    Image.new(mode, (200, 100)).save(path)
    assert opened(thumbnail(path))[1].size == (SIZE, SIZE // 2)


def test_files_that_cannot_be_read_have_no_thumbnail(tmp_path):
    (tmp_path / "broken.png").write_bytes(b"no image")
    images = [tmp_path / "missing.png", tmp_path / "broken.png", None, np.zeros((2, 2))]
    assert list(thumbnails(images, [0, 1, 2, 3, 3])) == [3]


@pytest.mark.parametrize("image", [np.zeros(4), np.zeros((2, 2, 2)), np.array([["a"]])])
def test_other_arrays_raise(image):
    with pytest.raises(ValueError, match=r"numbers of shape \(height, width\)"):
        thumbnail(image)
