"""The formatted numbers of the audit page: its cards and tables."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from unflip._utils.record_tables import lines_of
from unflip.auditing import prose
from unflip.auditing.findings import MOST_RATES
from unflip.auditing.report import Audit
from unflip.calibration.interval import Interval

MOST_ANNOTATORS = 100  # lines of the table of annotators
_HEAT_STEPS = 10  # shades of a matrix, as in style.css
# Most probabilities that are calibrated again for the sensitivity table: these take 10 to 20 s.
_MOST_CALIBRATED = 2**24
_Z_95 = 1.96  # standard errors either side of a 95% confidence interval


@dataclass(frozen=True)
class Card:
    """One number at the top of the page, with a sentence about it."""

    heading: str
    figure: str
    unit: str
    sentence: str = ""


@dataclass(frozen=True)
class Cell:
    """One entry of a shaded matrix of true classes, such as the transition matrix."""

    figure: str
    error: str  # ± its standard error; empty if it has none
    interval: str  # empty if it has none
    heat: int  # shade, as of `heat`
    is_noise: bool  # whether it is off the diagonal


def cards(audit: Audit) -> list[Card]:
    """Return the `figures`, with a sentence about each."""
    sentences = [
        prose.noise(audit),
        f"{prose.accuracy(audit)} {ordinary(audit)}".strip(),
        prose.suspects(audit),
    ]
    return [
        replace(card, sentence=sentence)
        for card, sentence in zip(figures(audit), sentences, strict=True)
    ]


def figures(audit: Audit) -> list[Card]:
    """Return the share of wrong labels, the expected accuracy and the number of suspects."""
    n = int(audit.evidence.labelled.sum())
    wrong = audit.evidence.true_class.correct_labels.complement
    return [
        Card(
            "Label noise",
            f"{audit.expected_wrong / n:.1%}",
            _unit(audit, "of the labels are wrong", audit.expected_wrong_std / n, wrong),
        ),
        Card(
            "Expected accuracy",
            percent(audit.expected_accuracy),
            _unit(
                audit,
                "on clean labels",
                audit.expected_accuracy_std,
                audit.expected_accuracy_interval,
            ),
        ),
        Card(
            "Suspects",
            f"{audit.n_suspects:,}",
            "label to review" if audit.n_suspects == 1 else "labels to review",
        ),
    ]


def ordinary(audit: Audit) -> str:
    """Return the accuracy of an ordinary model on these labels; empty if it is not known."""
    if not audit.evidence.has_signal or audit.ordinary_accuracy_interval is None:
        return ""
    interval = audit.ordinary_accuracy_interval
    return (
        "For comparison: an ordinary logistic regression, cross-validated on these labels, gets "
        f"{interval.value:.1%} right (95% interval {interval.low:.0%} to {interval.high:.0%})."
    )


def _unit(audit: Audit, unit: str, error: float, interval: Interval) -> str:
    """Return what a figure counts, with its interval, or its standard error without checks."""
    if audit.is_calibrated:
        return f"{unit} (95% interval {interval.low:.1%} to {interval.high:.1%})"
    return f"± {error:.1%} (standard error) {unit}, if {prose.condition(audit)}"


def noise_cells(audit: Audit) -> list[list[Cell]]:
    """Return the transition matrix, a list of cells for each true class."""
    transition = audit.noise.transition
    errors = audit.noise_std
    return [
        [
            _cell(float(transition[a, b]), float(errors[a, b]), is_noise=a != b)
            for b in range(len(transition))
        ]
        for a in range(len(transition))
    ]


def _cell(rate: float, error: float, *, is_noise: bool) -> Cell:
    low = max(0.0, rate - _Z_95 * error)
    high = min(1.0, rate + _Z_95 * error)
    interval = f"{low:.0%} to {high:.0%}" if error > 0 else ""
    spread = f"± {error:.1%}" if error > 0 else ""
    return Cell(f"{rate:.1%}", spread, interval, heat(rate), is_noise)


def heat(share: float) -> int:
    """Return the shade of a share, 0 to 10: its square root, so that small shares are visible."""
    return round(_HEAT_STEPS * math.sqrt(share))


def plan_lines(audit: Audit) -> list[tuple[str, str, str]]:
    """Return effort, accuracy and gain of the plan; empty if accuracy after checks is unknown."""
    if np.isnan(audit.plan.accuracy).any():
        return []
    return [
        (effort, percent(value), gain(audit, value)) for effort, _, value in lines_of(audit.plan)
    ]


def checks_improve(audit: Audit) -> bool:
    """Whether the plan shows a gain from any number of checked labels."""
    gains = [gain(audit, value) for _, checked, value in lines_of(audit.plan) if checked]
    return any(shown != gain(audit, audit.expected_accuracy) for shown in gains)


def percent(accuracy: float) -> str:
    """Return an accuracy in percent, with one decimal."""
    return f"{accuracy:.1%}"


def gain(audit: Audit, accuracy: float) -> str:
    """Return the gain over the expected accuracy of today, in percentage points."""
    points = round(100 * (accuracy - audit.expected_accuracy), 1)
    return f"{points + 0.0:+.1f}"  # never -0.0


def annotator_lines(audit: Audit) -> list[list[str]]:
    """Return the table of the annotators with most votes; empty unless there are several."""
    if audit.annotators is None or len(audit.annotators) == 1:
        return []
    return [
        [
            str(line.annotator),
            f"{line.votes:,}",
            f"{line.coverage:.0%}",
            f"{line.label} ({line.label_share:.0%})",
            f"{line.accuracy:.0%}",
            f"{line.low:.0%} to {line.high:.0%}" if line.low < line.high else "",
            f"{line.information:.2f}",
            "" if np.isnan(line.kappa) else f"{line.kappa:.2f}",
        ]
        for line in lines_of(audit.annotators[:MOST_ANNOTATORS])
    ]


def sensitivity_note(audit: Audit) -> str:
    """Return which rates the sensitivity table has, if it does not have all."""
    if len(audit.classes) <= MOST_RATES:
        return ""
    return f"The table has the {MOST_RATES} rates that change most labels; .sensitivity has all."


def sensitivity_lines(audit: Audit) -> list[list[str]]:
    """Return the sensitivity table: rate, suspects, wrong labels, accuracy and overlap.

    It is empty if the table, two calibrations for each rate, would take minutes.
    """
    n_rows, n_classes = audit.evidence.probabilities.shape
    n_rates = min(n_classes, MOST_RATES)
    if 2 * n_rates * n_rows * n_classes > _MOST_CALIBRATED:
        return []
    return [
        [
            f"noise rate of class {name} = {rate:.1%}" if name else "as in this audit",
            f"{n_suspects:,}",
            f"{wrong:,.0f}",
            percent(accuracy),
            f"{overlap:.0%}",
        ]
        for name, rate, n_suspects, wrong, accuracy, overlap in lines_of(audit.main_sensitivity)
    ]
