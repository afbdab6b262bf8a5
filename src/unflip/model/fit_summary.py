"""What notebooks show of a fitted classifier, above scikit-learn's diagram."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from unflip._utils.arrays import as_numpy
from unflip.labels.noise import NoiseModel

_MOST_RATES = 6  # classes whose noise rate is shown; a choice


def fit_summary(classifier: Any) -> str:
    """Return expected accuracy and noise rates as an HTML paragraph; empty before `fit`.

    Parameters
    ----------
    classifier : LPClassifier or NoisyLabelClassifier
        The classifier.
    """
    if not hasattr(classifier, "noise_"):
        return ""
    sentences = [_rates(classifier.classes_, classifier.noise_, as_numpy(classifier.noise_std_))]
    accuracy = classifier.expected_accuracy_
    if not np.isnan(accuracy):
        error = classifier.expected_accuracy_std_
        condition = ", if noise depends on the class alone"
        if hasattr(classifier, "expected_accuracy_interval_"):  # by trusted labels
            interval = classifier.expected_accuracy_interval_
            condition = f" (95% interval {interval.low:.1%} to {interval.high:.1%})"
        figure = f"<b>{accuracy:.1%}</b> ± {error:.1%}{condition}"
        sentences.insert(0, f"Expected accuracy on clean labels: {figure}.")
    return f"<p>{' '.join(sentences)} ± is one standard error.</p>"


def _rates(classes: Any, noise: NoiseModel, errors: Any) -> str:
    rates = 1 - np.diag(noise.transition)
    shown = np.sort(np.argsort(-rates, kind="stable")[:_MOST_RATES])
    labels = as_numpy(classes)[shown].tolist()
    figures = [
        f"{escape(str(label))}: {rates[a]:.0%} ± {errors[a, a]:.0%}"
        for label, a in zip(labels, shown.tolist(), strict=True)
    ]
    which = "Noise rates by true class"
    if len(rates) > _MOST_RATES:
        which = f"The {_MOST_RATES} largest noise rates of {len(rates)} classes"
    return f"{which}: {', '.join(figures)}."
