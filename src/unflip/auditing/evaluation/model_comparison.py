"""`compare`: which of two models is better on true labels, from noisy labels and checked rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from numpy.typing import ArrayLike

from unflip._utils.alignment import check_aligned
from unflip._utils.optional import import_optional
from unflip._utils.typing import FloatArray
from unflip.auditing.evaluation import evaluation_prose as prose
from unflip.auditing.evaluation.class_contrast import ClassContrast
from unflip.auditing.evaluation.evaluation_input import CheckedLabels
from unflip.auditing.evaluation.model_evaluation import best_truth
from unflip.auditing.evaluation.sampled_checks import warn_if_selected
from unflip.auditing.evaluation.soft_metrics import ScoredModel
from unflip.auditing.evaluation.uncertain_truth import UncertainTruth
from unflip.calibration.interval import Interval, normal_interval
from unflip.calibration.true_class import TrueClassModel

_HEADER = ["metric", "value", "low", "high"]


def compare(
    scores_a: ArrayLike,
    scores_b: ArrayLike,
    labels: ArrayLike,
    trusted: ArrayLike | None = None,
    *,
    inclusion: ArrayLike | None = None,
) -> Comparison:
    """Estimate by how much model A is better than model B on true labels.

    Both are compared on the same rows, so the interval of the difference is narrower than those of
    the two models.

    Parameters
    ----------
    scores_a, scores_b : array-like of shape (n, k) or (n,)
        Probabilities or predictions of the two models, as in `evaluate`.
    labels, trusted, inclusion
        Noisy labels and checked rows, as in `evaluate`.

    Returns
    -------
    Comparison
        Differences of the metrics, A − B, with 95% intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from unflip import compare
    >>> rng = np.random.default_rng(0)
    >>> positive = rng.random(2000)
    >>> true = (rng.random(2000) < positive).astype(int)
    >>> labels = np.where(rng.random(2000) < 0.2, 1 - true, true)
    >>> trusted = np.full(2000, None)
    >>> trusted[:200] = true[:200]  # the rows are in random order
    >>> worse = np.clip(positive + rng.normal(0, 0.4, 2000), 0, 1)
    >>> result = compare(positive, worse, labels, trusted)
    >>> result.better
    'a'
    """
    check_aligned(
        scores_a=scores_a, scores_b=scores_b, labels=labels, trusted=trusted, inclusion=inclusion
    )
    checked = CheckedLabels.of(labels, trusted, inclusion, "compare")
    first = checked.scored(scores_a, "scores_a")
    second = checked.scored(scores_b, "scores_b")
    fitted = TrueClassModel.fit(
        checked.with_scores(first, second), checked.truth, inclusion=checked.inclusion
    )
    if checked.inclusion is None:
        warn_if_selected(fitted)
    contrast = ClassContrast(first.predicted, second.predicted)
    return Comparison(checked, first, second, best_truth(fitted, [contrast], checked))


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Result of `compare`: differences of the metrics of two models, A − B.

    Parameters
    ----------
    checked : CheckedLabels
        Noisy labels and checked rows.
    first, second : ScoredModel
        Predictions of models A and B.
    truth : UncertainTruth
        True classes that the differences are computed from.
    """

    checked: CheckedLabels
    first: ScoredModel
    second: ScoredModel
    truth: UncertainTruth

    @cached_property
    def difference(self) -> Interval:
        """Difference in accuracy."""
        return self.truth.difference(self.first.predicted, self.second.predicted)

    @property
    def better(self) -> str | None:
        """'a' or 'b', the model of higher accuracy; None if the interval contains 0."""
        if self.difference.low > 0:
            return "a"
        return "b" if self.difference.high < 0 else None

    @cached_property
    def differences(self) -> dict[str, Interval]:
        """Differences of all metrics that both models have, by name."""
        others = {name: self._difference(name) for name in self.first.common_metrics(self.second)}
        return {"accuracy": self.difference, **others}

    def to_frame(self) -> Any:
        """Return the differences as a pandas DataFrame: metric, value, low, high."""
        return import_optional("pandas", "to_frame").DataFrame(self._lines, columns=_HEADER)

    @property
    def _lines(self) -> list[tuple[str, float, float, float]]:
        return [(name, *interval.numbers) for name, interval in self.differences.items()]

    def _repr_html_(self) -> str:
        return prose.html_table(prose.verdict(self), _HEADER, self._lines)

    def __str__(self) -> str:
        lines = [
            f"{prose.METRICS[name]}, A − B: {interval:+.3f}"
            for name, interval in self.differences.items()
        ]
        return "\n".join([prose.verdict(self), *lines])

    def __repr__(self) -> str:
        n = len(self.checked.codes)
        return f"<Comparison on {n} rows: difference={self.difference:+.3f}>"

    def _difference(self, name: str) -> Interval:
        masses = self.truth.masses
        gradient = self.first.gradient(name, masses) - self.second.gradient(name, masses)

        def difference(soft_truth: FloatArray) -> float:
            return self.first.metric(name, soft_truth) - self.second.metric(name, soft_truth)

        spread = self.truth.spread(difference, gradient)
        return normal_interval(difference(masses), spread.error, limits=spread.limits)
