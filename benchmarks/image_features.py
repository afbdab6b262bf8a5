"""How well wrong labels of images are ranked with the features of images, for several choices.

Five sets of images, of which nothing is downloaded: scikit-learn's digits; letters drawn in random
fonts and colours on photos; discs of three colours on photos; and patches of three photos, which
differ in colour and texture, in colour and in grey. A quarter of the labels are replaced by another
class, chosen at random. Figures are means over draws of the labels: average precision of the
ranking by P(label wrong), and the share of rows whose most likely true class is right.
"""

import argparse
import time
import warnings

import matplotlib
import numpy as np
from matplotlib import cbook
from PIL import Image, ImageDraw, ImageFont
from sklearn.datasets import load_digits, load_sample_images
from sklearn.metrics import average_precision_score
from sklearn.preprocessing import StandardScaler

from unflip import NoiseModel, audit
from unflip.estimation.noise_estimator import AssumedNoiseWarning
from unflip.features import ImageFeatures
from unflip.features.image_pixels import small_pixels

NOISE_RATE = 0.25
SIDE = 96  # pixels of the drawn images
LETTERS = "ABEGKRS8"
FONTS = ("DejaVuSans", "DejaVuSerif", "DejaVuSansMono", "DejaVuSans-Bold", "STIXGeneral")
COLOURS = ((200, 50, 40), (190, 170, 60), (80, 160, 60))
N_EDGES = 9 * 4 * 9  # features of 4 x 4 cells
N_MEANS = 3 * 4**2


def photos():
    """Return three photos as arrays."""
    with cbook.get_sample_data("grace_hopper.jpg") as file:
        return [*load_sample_images().images, np.asarray(Image.open(file).convert("RGB"))]


def patch(photo, size, rng):
    """Return a random square of a photo."""
    top, left = (int(rng.integers(length - size)) for length in photo.shape[:2])
    return photo[top : top + size, left : left + size]


def digits(rng):
    """Return the images and classes of scikit-learn's digits."""
    return load_digits(return_X_y=False).images, load_digits().target


def patches(rng):
    """Return patches of three photos."""
    classes = np.repeat(range(3), 250)
    sources = photos()
    return [patch(sources[label], 64, rng) for label in classes], classes


def grey_patches(rng):
    """Return the same patches without colours."""
    images, classes = patches(rng)
    return [image.mean(axis=2).astype(np.uint8) for image in images], classes


def letters(rng):
    """Return letters in random fonts, colours, sizes and positions on photos."""
    classes = np.repeat(range(len(LETTERS)), 120)
    return [drawn_letter(LETTERS[label], photos()[0], rng) for label in classes], classes


def drawn_letter(letter, photo, rng):
    """Return a letter on a patch of a photo."""
    font = f"{matplotlib.get_data_path()}/fonts/ttf/{rng.choice(FONTS)}.ttf"
    mask = Image.new("L", (SIDE, SIDE))
    ImageDraw.Draw(mask).text(
        (int(rng.integers(18, 30)), int(rng.integers(8, 18))),
        letter,
        fill=255,
        font=ImageFont.truetype(font, int(rng.integers(48, 70))),
    )
    image = Image.fromarray(patch(photo, SIDE, rng).copy())
    ink = tuple(int(value) for value in rng.integers(0, 256, 3))
    image.paste(Image.new("RGB", image.size, ink), mask=mask.rotate(float(rng.normal(0, 8))))
    return np.asarray(image)


def discs(rng):
    """Return discs whose colour is the class, in random light, on photos."""
    classes = np.repeat(range(len(COLOURS)), 300)
    return [drawn_disc(COLOURS[label], photos()[1], rng) for label in classes], classes


def drawn_disc(colour, photo, rng):
    """Return a disc on a patch of a photo."""
    image = Image.fromarray(patch(photo, SIDE, rng).copy())
    radius = int(rng.integers(18, 38))
    x, y = rng.integers(35, 60, 2)
    lit = np.array(colour) * rng.uniform(0.55, 1.2) + rng.normal(0, 18, 3)
    box = (x - radius, y - radius, x + radius, y + radius)
    ImageDraw.Draw(image).ellipse(box, fill=tuple(int(v) for v in lit.clip(0, 255)))
    return np.asarray(image)


SETS = {
    "digits": digits,
    "letters": letters,
    "discs": discs,
    "patches": patches,
    "grey patches": grey_patches,
}


def choices(images):
    """Return the features to compare, by name."""
    coarse = ImageFeatures().fit_transform(images)
    edges, means, shades = np.split(coarse, [N_EDGES, N_EDGES + N_MEANS], axis=1)
    return {
        "pixels 16 x 16": np.array([small_pixels(each, 16).ravel() for each in images]) / 255,
        "edges": edges,
        "edges, mean colours": np.hstack([edges, means]),
        "edges, histogram": np.hstack([edges, shades]),
        "all, 4 x 4 cells": coarse,
        "all, 8 x 8 cells": ImageFeatures(8).fit_transform(images),
    }


def figures(X, true, seed):
    """Return the average precision of the ranking, and the accuracy of the most likely classes."""
    k = len(np.unique(true))
    transition = np.full((k, k), NOISE_RATE / (k - 1))
    np.fill_diagonal(transition, 1 - NOISE_RATE)
    observed = NoiseModel(transition).flip(true, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumedNoiseWarning)
        result = audit(X, observed)
    wrong = 1 - result.label_posterior[np.arange(len(true)), observed]
    right = np.mean(result.label_posterior.argmax(axis=1) == true)
    return average_precision_score(observed != true, wrong), right


def main():
    """Print average precision and accuracy for each set and choice of features."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=5, help="draws of the labels")
    n_draws = parser.parse_args().draws
    print("average precision of the ranking / accuracy of the most likely true classes, percent\n")
    for name, make in SETS.items():
        images, true = make(np.random.default_rng(0))
        start = time.process_time()
        ImageFeatures().fit_transform(images)
        per_image = 1000 * (time.process_time() - start) / len(images)
        print(f"{name}: {len(images)} images, {per_image:.1f} ms of CPU time per image")
        for choice, values in choices(images).items():
            X = StandardScaler().fit_transform(values)
            precision, accuracy = 100 * np.mean(
                [figures(X, true, seed) for seed in range(n_draws)], axis=0
            )
            print(f"  {choice:20} p = {X.shape[1]:4}  {precision:5.1f} / {accuracy:5.1f}")


if __name__ == "__main__":
    main()
