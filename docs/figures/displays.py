"""Figure of docs/displays.md: every display on simulated data, one panel each."""

from io import BytesIO
from pathlib import Path

import numpy as np
from matplotlib import pyplot
from PIL import Image

from unflip import LPClassifier, NoiseModel, audit, theory
from unflip.datasets import make_mixture
from unflip.plotting import (
    AccuracyPathDisplay,
    NoiseMatrixDisplay,
    PlanDisplay,
    ScoreDistributionDisplay,
    SuspectsDisplay,
)
from unflip.plotting.style import as_png, house_look

IMAGE = Path(__file__).parents[1] / "images" / "displays.png"


def main():
    """Draw the panels and write them."""
    X, y = make_mixture(800, 200, mean_norm=1.5, priors=(0.4, 0.6), random_state=1)
    noise = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1, pi_neg=0.4)
    labels = np.array(["ham", "spam"])[noise.flip(y, random_state=1)]
    report = audit(X, labels)
    clf = LPClassifier().fit(X, labels)
    with house_look():
        figure, axes = pyplot.subplots(2, 3, figsize=(12.6, 6.8), layout="constrained")
        NoiseMatrixDisplay.from_estimator(clf, ax=axes[0, 0])
        ScoreDistributionDisplay.from_estimator(clf, labels, ax=axes[0, 1])
        SuspectsDisplay.from_audit(report, ax=axes[0, 2])
        AccuracyPathDisplay.from_estimator(clf, X, labels, ax=axes[1, 0])
        mixture = theory.Mixture(mean_norm=1.5, aspect=200 / 800, noise=noise)
        AccuracyPathDisplay.from_mixture(mixture, ax=axes[1, 1])
        PlanDisplay.from_audit(report, ax=axes[1, 2])
    picture = Image.open(BytesIO(as_png(figure)))
    # A palette of 256 colours halves the file size.
    picture.convert("RGB").quantize(256, method=Image.Quantize.MAXCOVERAGE).save(
        IMAGE, optimize=True
    )


if __name__ == "__main__":
    main()
