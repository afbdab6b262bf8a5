"""What the page of an audit says: its headline, its tables and what was assumed, ready to be set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unflip.auditing.report import SURPRISING, Audit

_HEAT_STEPS = 10
_INTERVAL = 1.96  # standard errors either side of an interval that holds 95%
_SOURCES = {
    "given": "The flip rates were given, not found; nothing on this page tests them, except the test above.",
    "trusted rows": "The flip rates were counted in the rows whose true labels were given. That is fair if those rows "
    "were checked at random, and not because their labels looked wrong.",
    "mixture": "The flip rates were read off the shape of the rows, taken to be a mixture of Gaussian classes.",
    "anchor rows": "The flip rates were guessed from the rows that look surest of their class.",
    "votes": "How each worker votes was read from the votes and the rows together, and the flip rates of the majority "
    "labels from that.",
}
_STILL_WRONG = "What is still wrong cannot be told from labels of which the worst are put right"


@dataclass(frozen=True)
class Card:
    """One figure of the headline, with the sentence it comes from."""

    heading: str
    figure: str
    doubt: str
    sentence: str


@dataclass(frozen=True)
class Cell:
    """One rate of the noise matrix."""

    rate: str
    doubt: str  # ± its standard error; empty where it was given
    interval: str
    heat: int  # 0 to 10, by the root of the rate: small rates matter
    flip: bool


def headline(audit: Audit) -> str:
    """Say in one sentence how many labels are wrong."""
    n, wrong = int(audit.evidence.labelled.sum()), audit.expected_wrong
    labels = "labels" if audit.evidence.noise.votes is None else "majority labels"
    if round(wrong) < 2:
        return f"Hardly any of the {n:,} {labels} is wrong"
    return f"About {wrong:,.0f} of {n:,} {labels} are wrong"


def cards(audit: Audit) -> list[Card]:
    """Return how noisy, what it costs, and how many labels look wrong."""
    n, said = int(audit.evidence.labelled.sum()), {key: _sentence(text) for key, text in audit.summary.items()}
    return [
        Card(
            "How noisy",
            f"{audit.expected_wrong / n:.1%}",
            f"± {audit.expected_wrong_std / n:.1%} of the labels are wrong",
            said["How noisy"],
        ),
        Card(
            "What it costs",
            accuracy_said(audit.expected_accuracy),
            f"± {audit.expected_accuracy_std:.1%} expected accuracy",
            said["What it costs"],
        ),
        Card("Suspects", f"{audit.n_suspects:,}", f"{_labels(audit.n_suspects)} to act on", said["Suspects"]),
    ]


def _labels(n: int) -> str:
    return "label" if n == 1 else "labels"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


@dataclass(frozen=True)
class Ways:
    """How to do what the page advises."""

    rows: str  # where to find the rows to check
    truth: str  # how to give their true labels
    decisions: str  # how to give decisions


_IN_PYTHON = Ways(
    rows=".check_next(100)",
    truth="give their true labels as trusted=",
    decisions="run the audit again with them as trusted= and with noise= of this audit",
)
_BY_COMMAND = Ways(
    rows="unflip audit lists them under check_next with --json",
    truth="put their true labels into a column of their own and name it with --trusted",
    decisions="fit with them and the data as they were: unflip fit ... --decisions decisions.csv",
)


def next_steps(audit: Audit, by_command: bool = False) -> list[str]:
    """Say what to do next, for a reader who has the page and no more.

    Parameters
    ----------
    audit : Audit
        What was found.
    by_command : bool
        Whether to speak of commands rather than of Python.
    """
    how, steps = _BY_COMMAND if by_command else _IN_PYTHON, []
    if audit.noise_source == "anchor rows":
        steps.append(
            f"The flip rates are a guess. Have the rows checked that tell most of them ({how.rows}), {how.truth}, and "
            "audit again."
        )
    if audit.n_suspects:
        votes = audit.evidence.noise.votes is not None
        then = f"{how.truth}, and audit again" if votes else f"export the decisions and {how.decisions}. {_STILL_WRONG}"
        steps.append(
            f"Look through {_first(audit.n_suspects)} below; accept the label that is proposed, or reject it. Then "
            f"{then}."
        )
    else:
        steps.append("No label is sure enough to be wrong that it should be changed without a look at its row.")
    if audit.noise_source != "anchor rows":
        steps.append(
            f"To gain accuracy rather than to find errors, check the rows that are most in doubt ({how.rows}): a "
            "classifier believes the worst suspects least anyway."
        )
    return steps


def _first(n: int) -> str:
    return "the first suspect" if n == 1 else f"the first {n:,} suspects"


def noise_cells(audit: Audit) -> list[list[Cell]]:
    """Return the noise matrix, a list of cells for each true class."""
    transition, errors = audit.noise.transition, audit.noise_std
    return [
        [_cell(float(rate), float(error), a != b) for b, (rate, error) in enumerate(zip(rates, doubts, strict=True))]
        for a, (rates, doubts) in enumerate(zip(transition, errors, strict=True))
    ]


def _cell(rate: float, error: float, flip: bool) -> Cell:
    low, high = max(0.0, rate - _INTERVAL * error), min(1.0, rate + _INTERVAL * error)
    interval = f"{low:.0%} to {high:.0%}" if error > 0 else ""
    doubt = f"± {error:.1%}" if error > 0 else ""
    return Cell(f"{rate:.1%}", doubt, interval, round(_HEAT_STEPS * rate**0.5), flip)


def plan_lines(audit: Audit) -> list[tuple[str, str, str]]:
    """Return effort, accuracy and gain; none where the accuracy after checks is not known."""
    if np.isnan(audit.plan.accuracy).any():
        return []
    return [(effort, accuracy_said(value), gain_said(audit, value)) for effort, _, value in audit.plan.tolist()]


def accuracy_said(accuracy: float) -> str:
    """Return an accuracy in percent, as every part of the page says it."""
    return f"{accuracy:.1%}"


def gain_said(audit: Audit, accuracy: float) -> str:
    """Return what is gained over today, in points."""
    gain = round(100 * (accuracy - audit.expected_accuracy), 1)
    return f"{gain + 0.0:+.1f}"  # never -0.0


def sensitivity_lines(audit: Audit) -> list[list[str]]:
    """Return the sensitivity table: what moves, number to act on, wrong labels, accuracy, overlap."""
    return [
        [
            f"{rate:.1%} of {name} flipped" if name else "as found",
            f"{n_suspects:,}",
            f"{wrong:,.0f}",
            accuracy_said(accuracy),
            f"{overlap:.0%}",
        ]
        for name, rate, n_suspects, wrong, accuracy, overlap in audit.sensitivity.tolist()
    ]


def assumptions(audit: Audit, extra: Sequence[str], by_command: bool = False) -> list[str]:
    """Say what was assumed, in plain words; parameters are those of `next_steps`, and further sentences."""
    said = [_sentence(audit.summary["Assumed"])]
    if audit.dependence.p_value < SURPRISING:
        said.append("So the probabilities below are too sure of themselves. Their order remains useful.")
    said.append(_SOURCES[audit.noise_source])
    if audit.assumption and not by_command:  # it says what to give in Python
        said.append(audit.assumption)
    if audit.n_suspects > 1:
        said.append(_promise(audit))
    return [*said, *extra]


def _promise(audit: Audit) -> str:
    return (
        f"Of the first {audit.n_suspects:,} suspects about {audit.false_discovery_rate:.0%} should turn out right. "
        "That is a promise about their mean: the last of them are less sure than the first. It holds as far as the "
        "rates do."
    )
