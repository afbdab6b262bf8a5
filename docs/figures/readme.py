"""Figure of README.md: reviews with noisy labels, accuracy and wrong labels found.

Four sets of reviews, 1600 training rows with 400 features, 400 test rows with clean labels; means
over sets and draws. The data are read from the folder of UNFLIP_DATA: see
`unflip.datasets.load_amazon_reviews`.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, train_test_split
from sklearn.preprocessing import StandardScaler

from unflip import LPClassifier, NoiseModel
from unflip.datasets import AMAZON_DOMAINS, load_amazon_reviews
from unflip.plotting.style import COLOURS, FAINT, as_png, new_figure

IMAGE = Path(__file__).parents[1] / "images" / "reviews.png"
EPS_POS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
EPS_NEG = 0.1
LISTED = 300  # suspects at the top of the list
DRAWS = 4
OURS = "unflip, default settings"
USUAL = "logistic regression"
CLEAN = "logistic regression, clean labels"
LOOKS = {
    OURS: (COLOURS["optimized"], "o-"),
    USUAL: (COLOURS["naive"], "s-"),
    CLEAN: (COLOURS["oracle"], "D--"),
}


def main() -> None:
    """Compute, print and draw."""
    warnings.simplefilter("ignore")  # warnings of assumed rates are expected here
    accuracies = {name: np.empty((len(EPS_POS), len(AMAZON_DOMAINS) * DRAWS)) for name in LOOKS}
    wrong = {name: np.empty((len(AMAZON_DOMAINS) * DRAWS, LISTED)) for name in (OURS, USUAL)}
    for i, eps_pos in enumerate(EPS_POS):
        for j in range(len(AMAZON_DOMAINS) * DRAWS):
            results = one_draw(AMAZON_DOMAINS[j % len(AMAZON_DOMAINS)], eps_pos, seed=j)
            for name, (accuracy, precision) in results.items():
                accuracies[name][i, j] = accuracy
                if eps_pos == 0.4 and name in wrong:
                    wrong[name][j] = precision
    for name, values in accuracies.items():
        print(f"{name:36}", values.mean(axis=1).round(3))
    for name, values in wrong.items():
        print(
            f"{name:36} share of wrong labels, first 50, 100, 300:",
            values.mean(axis=0)[[49, 99, 299]].round(3),
        )
    draw(accuracies, wrong)


def one_draw(domain: str, eps_pos: float, seed: int) -> dict[str, tuple[float, np.ndarray]]:
    """Return test accuracy, and the share of wrong labels among the first m suspects."""
    X, y = load_amazon_reviews(domain)
    X, X_test, y, y_test = train_test_split(X, y, train_size=1600, random_state=seed)
    scaler = StandardScaler().fit(X)
    X = scaler.transform(X)
    X_test = scaler.transform(X_test)
    labels = NoiseModel.binary(eps_pos=eps_pos, eps_neg=EPS_NEG).flip(y, random_state=seed)
    rows = np.arange(len(y))

    def precision(probabilities: np.ndarray) -> np.ndarray:
        worst = np.argsort(probabilities[rows, labels])[:LISTED]
        return np.cumsum(labels[worst] != y[worst]) / np.arange(1, LISTED + 1)

    ours = LPClassifier().fit(X, labels)
    usual, clean = (
        GridSearchCV(LogisticRegression(max_iter=1000), {"C": np.logspace(-4, 0, 5)}).fit(X, target)
        for target in (labels, y)
    )
    held_out = cross_val_predict(usual.best_estimator_, X, labels, method="predict_proba")
    return {
        OURS: (ours.score(X_test, y_test), precision(ours.label_posterior_)),
        USUAL: (usual.score(X_test, y_test), precision(held_out)),
        CLEAN: (clean.score(X_test, y_test), np.empty(0)),
    }


def draw(accuracies: dict[str, np.ndarray], wrong: dict[str, np.ndarray]) -> None:
    """Draw both panels and write the figure."""
    figure, (left, right) = new_figure(9.6, 3.5, 1, 2)
    for name, values in accuracies.items():
        colour, line = LOOKS[name]
        error = 2 * values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])
        left.errorbar(
            EPS_POS,
            100 * values.mean(axis=1),
            100 * error,
            fmt=line,
            color=colour,
            label=name,
            capsize=2,
        )
    left.set(
        title="Reviews: accuracy on clean labels, %",
        xlabel="noise rate of positive training labels\n(of negative ones: 0.1)",
    )
    left.legend(loc="lower left")
    for name, values in wrong.items():
        colour, _ = LOOKS[name]
        right.plot(
            np.arange(1, LISTED + 1)[9:], 100 * values.mean(axis=0)[9:], color=colour, label=name
        )
    right.axhline(25, color=FAINT, linestyle=":", label="random order")
    right.set(
        title="Reviews: wrong labels among the first suspects, %",
        xlabel="number of suspects, of 1600 rows\n(noise rates: 0.4 positive, 0.1 negative)",
        ylim=(0, 103),
    )
    right.legend(loc="lower left")
    IMAGE.write_bytes(as_png(figure))


if __name__ == "__main__":
    main()
