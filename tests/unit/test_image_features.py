"""ImageFeatures: known edges and colours, and image files of all kinds."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from unflip import LPClassifier
from unflip.features import ImageFeatures
from unflip.features.image_pixels import UnreadableImageError, eight_bit, small_pixels

Image = pytest.importorskip("PIL.Image", reason="images need Pillow")

SIZE = 64
N_EDGES = 9 * 4 * 9  # of 4 x 4 cells: blocks, cells of a block, directions
N_MEANS = 3 * 16


def edges(image):
    """Return the histograms of directions, a line for each cell of each block."""
    return ImageFeatures().transform([image])[0, :N_EDGES].reshape(-1, 9)


def waves(degrees):
    """Return a smooth wave along a direction."""
    y, x = np.mgrid[:SIZE, :SIZE]
    along = x * np.cos(np.deg2rad(degrees)) + y * np.sin(np.deg2rad(degrees))
    return 127 + 100 * np.sin(along * 2 * np.pi / 16)


@pytest.mark.parametrize(
    ("degrees", "directions"), [(10, {0}), (50, {2}), (90, {4}), (130, {6}), (0, {0, 8})]
)
def test_edges_are_counted_by_their_direction(degrees, directions):
    """Nine directions of 20 degrees each; 0 is between the last and the first."""
    strength = edges(waves(degrees)).sum(axis=0)
    assert set(np.flatnonzero(strength > 0.5 * strength.max()).tolist()) == directions


def test_edges_do_not_depend_on_contrast():
    strong = waves(63).round().astype(np.uint8)
    weak = (waves(63) / 2).round().astype(np.uint8)
    np.testing.assert_allclose(edges(weak), edges(strong), atol=0.02)


def test_images_without_edges_have_none():
    assert not edges(np.full((SIZE, SIZE), 200, dtype=np.uint8)).any()


def test_colours_of_cells_and_of_the_image():
    rng = np.random.default_rng(0)
    colours = rng.integers(0, 256, (4, 4, 3), dtype=np.uint8)
    image = colours.repeat(16, axis=0).repeat(16, axis=1)
    features = ImageFeatures().transform([image])[0]
    means = features[N_EDGES : N_EDGES + N_MEANS]
    np.testing.assert_allclose(means, colours.ravel() / 255, rtol=1e-6)
    shades = (colours // 64).reshape(-1, 3) @ [16, 4, 1]
    shares = np.bincount(shades, minlength=64) / 16
    np.testing.assert_allclose(features[N_EDGES + N_MEANS :], np.sqrt(shares))


def test_each_image_is_described_by_itself():
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, (9 + i % 5, 12, 3), dtype=np.uint8) for i in range(150)]
    together = ImageFeatures().transform(images)
    np.testing.assert_allclose(
        together[[0, 149]], ImageFeatures().transform([images[0], images[149]])
    )


def test_other_numbers_than_8_bit_integers_are_scaled():
    pixels = np.arange(256, dtype=np.uint8).reshape(16, 16)
    expected = small_pixels(pixels, 16)
    for same in (pixels / 255, pixels.astype(np.uint16) * 257, 3.0 * pixels - 7):
        np.testing.assert_array_equal(small_pixels(same, 16), expected)
    np.testing.assert_array_equal(small_pixels(pixels[..., np.newaxis], 16), expected)
    assert not small_pixels(np.zeros((5, 5)), 16).any()


def test_pixels_between_0_and_1_are_not_stretched():
    np.testing.assert_array_equal(eight_bit(np.array([[0.2, 0.6]])), [[51, 153]])
    np.testing.assert_array_equal(eight_bit(np.array([[3, 5, 7]])), [[0, 128, 255]])
    np.testing.assert_array_equal(eight_bit(np.full((2, 2), 9.0)), np.zeros((2, 2)))


@pytest.mark.parametrize("n_cells", [2, 4, 8])
def test_number_and_names_of_features(n_cells):
    features = clone(ImageFeatures(n_cells))
    n_features = (n_cells - 1) ** 2 * 36 + 3 * n_cells**2 + 64
    images = np.zeros((3, 8, 8))
    assert features.fit_transform(images).shape == (3, n_features)
    assert len(features.get_feature_names_out()) == n_features


def test_a_pipeline_learns_from_arrays_and_files(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 100, (60, 12, 12, 3), dtype=np.uint8)
    labels = np.repeat([0, 1], 30)
    images[labels == 1, :, :, 0] += 120
    files = []
    for i, image in enumerate(images):
        files.append(tmp_path / f"{i}.png")
        Image.fromarray(image).save(files[-1])
    model = make_pipeline(ImageFeatures(), StandardScaler(), LPClassifier(noise=None))
    assert model.fit(images, labels).score(files, labels) == 1.0
    np.testing.assert_array_equal(model.predict_proba(files), model.predict_proba(images))


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((2, 5)), r"shape \(5,\)"),
        ([np.zeros((4, 4, 2))], r"shape \(4, 4, 2\)"),
        ([np.zeros((0, 4))], r"shape \(0, 4\)"),
        ([np.full((4, 4), np.nan)], "NaN or infinite"),
        ([np.array([["a"]])], "and type <U1"),
    ],
)
def test_arrays_that_are_no_images(images, message):
    with pytest.raises(ValueError, match=message):
        ImageFeatures().transform(images)


def test_one_file_is_not_a_sequence_of_files():
    with pytest.raises(TypeError, match="must be a sequence"):
        ImageFeatures().transform("photo.png")


def test_a_grid_needs_two_cells():
    with pytest.raises(ValueError, match="n_cells"):
        ImageFeatures(1).fit()


def rgb():
    """Return an image whose four quarters have different colours."""
    image = np.zeros((SIZE, SIZE, 3), dtype=np.uint8)
    image[:32, :32] = 255, 0, 0
    image[:32, 32:] = 0, 255, 0
    image[32:, :32] = 0, 0, 255
    image[32:, 32:] = 255, 255, 255
    return image


@pytest.mark.parametrize("ending", ["png", "bmp", "gif", "ppm", "tiff", "webp"])
def test_formats_without_loss(tmp_path, ending):
    path = tmp_path / f"image.{ending}"
    Image.fromarray(rgb()).save(path, **({"lossless": True} if ending == "webp" else {}))
    np.testing.assert_array_equal(small_pixels(path, SIZE), rgb())


@pytest.mark.parametrize(("mode", "ending"), [("RGB", "jpg"), ("CMYK", "jpg"), ("CMYK", "tiff")])
def test_formats_of_photos(tmp_path, mode, ending):
    path = tmp_path / f"image.{ending}"
    Image.fromarray(rgb()).convert(mode).save(path)
    error = np.abs(small_pixels(path, SIZE).astype(int) - rgb())
    assert np.median(error) <= 2


def test_large_photos_are_reduced(tmp_path):
    path = tmp_path / "large.jpg"
    Image.fromarray(rgb()).resize((1600, 1200), Image.Resampling.NEAREST).save(path)
    error = np.abs(small_pixels(path, SIZE).astype(int) - rgb())
    assert np.median(error) <= 2


def test_grey_black_and_white_and_palettes(tmp_path):
    grey_levels = np.arange(SIZE * SIZE, dtype=np.uint32).reshape(SIZE, SIZE) // 16 % 256
    image = Image.fromarray(grey_levels.astype(np.uint8))
    for name, saved in {"l": image, "p": image.convert("P"), "1": image.convert("1")}.items():
        path = tmp_path / f"{name}.png"
        saved.save(path)
        expected = np.asarray(saved.convert("RGB"))
        np.testing.assert_array_equal(small_pixels(path, SIZE), expected)


@pytest.mark.parametrize("ending", ["png", "tiff"])
def test_16_bits_are_not_cut_off(tmp_path, ending):
    deep = np.linspace(0, 4095, SIZE * SIZE).astype(np.uint16).reshape(SIZE, SIZE)
    path = tmp_path / f"deep.{ending}"
    Image.fromarray(deep).save(path)
    shown = small_pixels(path, SIZE)
    np.testing.assert_allclose(shown[..., 0], deep / 4095 * 255, atol=0.51)


def test_transparent_parts_are_white(tmp_path):
    clear = np.dstack([rgb(), np.full((SIZE, SIZE), 255, dtype=np.uint8)])
    clear[:32, :32, 3] = 0
    expected = rgb()
    expected[:32, :32] = 255
    Image.fromarray(clear).save(tmp_path / "clear.png")
    np.testing.assert_array_equal(small_pixels(tmp_path / "clear.png", SIZE), expected)
    palette = Image.fromarray(rgb()).quantize(4)
    palette.save(tmp_path / "palette.png", transparency=palette.getpixel((0, 0)))
    np.testing.assert_array_equal(small_pixels(tmp_path / "palette.png", SIZE), expected)


def test_photos_are_upright(tmp_path):
    turned = Image.fromarray(rgb()).transpose(Image.Transpose.ROTATE_90)
    exif = Image.Exif()
    exif[0x0112] = 6  # the orientation: turn by 90 degrees to the right to see it upright
    turned.save(tmp_path / "turned.png", exif=exif)
    np.testing.assert_array_equal(small_pixels(tmp_path / "turned.png", SIZE), rgb())


def test_the_first_frame_of_an_animation(tmp_path):
    frames = [Image.fromarray(rgb()), Image.new("RGB", (SIZE, SIZE))]
    frames[0].save(tmp_path / "two.gif", save_all=True, append_images=frames[1:])
    np.testing.assert_array_equal(small_pixels(tmp_path / "two.gif", SIZE), rgb())


def test_files_that_cannot_be_read_are_named(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (SIZE, SIZE, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "whole.png")
    content = (tmp_path / "whole.png").read_bytes()
    (tmp_path / "half.png").write_bytes(content[: len(content) // 2])
    (tmp_path / "text.jpg").write_text("no image")
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "script.png").write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n")
    for name, reason in {
        "half.png": "it is damaged",
        "text.jpg": "none of the formats",
        "empty.png": "none of the formats",
        "script.png": "none of the formats",
        "missing.png": "No such file",
    }.items():
        with pytest.raises(UnreadableImageError, match=reason) as error:
            ImageFeatures().transform([tmp_path / "whole.png", tmp_path / name])
        assert str(tmp_path / name) in str(error.value)


def test_images_that_would_fill_the_memory_are_not_opened(tmp_path, monkeypatch):
    Image.fromarray(rgb()).save(tmp_path / "large.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", SIZE * SIZE - 1)  # a warning of Pillow
    np.testing.assert_array_equal(small_pixels(tmp_path / "large.png", SIZE), rgb())
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", SIZE * SIZE // 2 - 1)  # an error of Pillow
    with pytest.raises(UnreadableImageError, match="more than 4,094 pixels"):
        small_pixels(tmp_path / "large.png", SIZE)
