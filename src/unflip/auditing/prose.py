"""Everything an audit says in words, written once: for the terminal, the page and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unflip.auditing.findings import Findings

#: p-value below which the labels contradict class-conditional noise.
SURPRISING = 0.01
_MOST_RATES = 6  # classes whose noise rate is named

_NO_SIGNAL = (
    "The features do not predict the labels better than chance, so no label can be called wrong: "
    "add rows or other features."
)
_INSTANCE_DEPENDENT = (
    "With instance-dependent noise, the probabilities are overconfident; the order of the suspects "
    "is still useful."
)
_SOURCES = {
    "given": "given",
    "trusted rows": "estimated from trusted labels",
    "mixture": "estimated from the clusters in the data",
    "anchor rows": "a heuristic estimate from high-confidence rows",
    "votes": "estimated from the votes and the features",
}
_SOURCE_NOTES = {
    "given": "The noise rates were given. Only the test above checks them.",
    "trusted rows": (
        "The noise rates were estimated from trusted labels. The estimate is unbiased if rows were "
        "checked at random, and biased if they were checked because their label looked wrong."
    ),
    "mixture": (
        "The noise rates were estimated from the features, as a mixture of Gaussian classes."
    ),
    "anchor rows": (
        "The noise rates are not identifiable from these data. They are a heuristic estimate from "
        "the rows with the highest predicted probability of each class."
    ),
    "votes": (
        "The transition matrix of each annotator was estimated from the votes and the features. "
        "The noise rates of the majority labels follow from them."
    ),
}


@dataclass(frozen=True)
class Interface:
    """How a user of Python, or of the command line, does what an audit advises."""

    check: str  # where to find the rows to check
    trust: str  # how to pass their true labels
    decide: str  # how to pass decisions


PYTHON = Interface(
    check=".check_next(100)",
    trust="pass their true labels as trusted=",
    decide="run the audit again with the decisions as trusted= and noise= from this audit",
)
COMMAND_LINE = Interface(
    check="unflip audit --json lists them under check_next",
    trust="put their true labels into a column and name it with --trusted",
    decide="pass them with the original data: unflip fit ... --decisions decisions.csv",
)


def summary(audit: Findings) -> dict[str, str]:
    """Return the findings: a paragraph under each heading."""
    paragraphs = {
        "Label noise": noise(audit),
        "Expected accuracy": accuracy(audit),
        "Suspects": suspects(audit),
        "Next step": next_step(audit),
    }
    if len(audit.unlabelled):
        paragraphs["Rows without votes"] = unlabelled(audit)
    return paragraphs | {"Assumption": dependence(audit)}


def headline(audit: Findings) -> str:
    """Say how many labels are wrong, without a full stop."""
    n, wrong = int(audit.evidence.labelled.sum()), audit.expected_wrong
    if round(wrong) < 2:
        return f"Almost all of the {n:,} {label_kind(audit)}s are right"
    return f"About {wrong:,.0f} of {n:,} {label_kind(audit)}s are wrong"


def label_kind(audit: Findings) -> str:
    """Return what is audited: labels, or the majority labels of votes."""
    return "label" if audit.evidence.noise.votes is None else "majority label"


def noise(audit: Findings) -> str:
    """Say how many labels are wrong, and with what rates."""
    n = int(audit.evidence.labelled.sum())
    wrong = f"{audit.expected_wrong:.0f} ± {audit.expected_wrong_std:.0f} of {n}"
    return (
        f"About {wrong} {label_kind(audit)}s are wrong. Noise rates by true class: "
        f"{_rates(audit)} ({noise_source(audit)})."
    )


def noise_source(audit: Findings) -> str:
    """Return where the noise rates come from, in a few words."""
    if audit.evidence.noise.votes is not None and audit.noise_source == "given":
        return "computed from the given rates of each vote"
    return _SOURCES[audit.noise_source]


def _rates(audit: Findings) -> str:
    labels, rates = audit.classes.tolist(), 1 - np.diag(audit.noise.transition)
    order = range(len(labels))
    rest = ""
    if len(labels) > _MOST_RATES:
        order = np.argsort(-rates, kind="stable")[:_MOST_RATES].tolist()
        rest = f", at most as high for the other {len(labels) - _MOST_RATES} classes"
    each = (f"{labels[a]!r}: {rates[a]:.0%}{_error(audit.noise_std[a, a])}" for a in order)
    return ", ".join(each) + rest


def _error(error: float) -> str:
    return f" ± {error:.0%}" if error > 0 else ""


def accuracy(audit: Findings) -> str:
    """Say how accurate a classifier trained on these labels will be, and what noise costs."""
    now = f"{audit.expected_accuracy:.1%} ± {audit.expected_accuracy_std:.1%}"
    clean = audit.accuracy_after(len(audit.evidence.codes))
    gain = "" if np.isnan(clean) else f", about {clean:.1%} with clean labels"
    chance = "" if audit.evidence.has_signal else f" {_NO_SIGNAL}"
    return f"A classifier trained on these data gets {now} of new rows right{gain}.{chance}"


def suspects(audit: Findings) -> str:
    """Say how many labels are suspect, and how many checked labels were wrong."""
    return f"{_n_suspects(audit)}{_n_checked(audit)}"


def _n_suspects(audit: Findings) -> str:
    kind, rate = label_kind(audit), f"{audit.false_discovery_rate:.0%}"
    if audit.n_suspects == 0:
        return f"No {kind} is suspect at an expected false discovery rate of {rate}."
    if audit.n_suspects == 1:
        return f"1 {kind} is suspect, wrong with probability {audit.suspects.probability[0]:.1%}."
    return f"{audit.n_suspects} {kind}s are suspect, at an expected false discovery rate of {rate}."


def _n_checked(audit: Findings) -> str:
    labelled = audit.checked[audit.evidence.labelled[audit.checked]]
    if not len(labelled):
        return ""
    wrong = int(audit.evidence.wrong[labelled].sum())  # each is 0 or 1
    verb = "was" if wrong == 1 else "were"
    return f" {wrong} of {len(labelled)} checked {label_kind(audit)}s {verb} wrong."


def next_step(audit: Findings) -> str:
    """Say what to do next in Python, in one sentence."""
    if audit.noise_source == "anchor rows":
        return (
            "The noise rates are a heuristic estimate. To improve them, check the rows of "
            ".check_next(100) and pass their true labels as trusted=."
        )
    check = ".check_next(m) returns the rows whose check improves a classifier most."
    if not audit.n_suspects:
        return check
    return f"Review the first .n_suspects rows of .suspects. {check}"


def next_steps(audit: Findings, interface: Interface) -> list[str]:
    """Say what to do next, for a reader of the page."""
    steps = []
    is_guess = audit.noise_source == "anchor rows"
    if is_guess:
        steps.append(
            "The noise rates are a heuristic estimate. To improve them, check the most informative "
            f"rows ({interface.check}), {interface.trust}, and audit again."
        )
    if audit.n_suspects:
        first = (
            "the first suspect"
            if audit.n_suspects == 1
            else (f"the first {audit.n_suspects:,} suspects")
        )
        steps.append(
            f"Review {first} below: accept the proposed label, or reject it. "
            f"{_after_review(audit, interface)}"
        )
    else:
        steps.append("No label is suspect enough to change it without looking at its row.")
    if not is_guess:
        steps.append(
            "To improve a classifier rather than to find errors, check the rows with the least "
            f"certain labels ({interface.check})."
        )
    return steps


def _after_review(audit: Findings, interface: Interface) -> str:
    if audit.evidence.noise.votes is not None:
        return f"Then {interface.trust}, and audit again."
    return (
        f"Then export the decisions and {interface.decide}. Do not estimate noise rates again from "
        "corrected labels: they would be biased."
    )


def unlabelled(audit: Findings) -> str:
    """Say how many rows have no vote, and how good the proposed labels are."""
    right = float(audit.unlabelled.probability.sum())
    return (
        f"{len(audit.unlabelled)} rows have no vote. About {right:.0f} of the labels proposed in "
        ".unlabelled are expected to be right."
    )


def dependence(audit: Findings) -> str:
    """Say that noise is assumed to be class-conditional, and whether the labels contradict it."""
    if audit.evidence.noise.votes is not None:
        return (
            "Annotators err independently, and their errors depend on the true class alone (not "
            "tested)."
        )
    p_value = audit.dependence.p_value
    assumed = "Noise depends on the true class alone (class-conditional noise)."
    if np.isnan(p_value):
        return f"{assumed} There are too few rows to test this."
    if p_value < SURPRISING:
        return f"{assumed} The labels contradict this (p = {p_value:.2g}). {_INSTANCE_DEPENDENT}"
    return f"{assumed} The labels do not contradict this (p = {p_value:.2g})."


def assumptions(
    audit: Findings, extra: Sequence[str] = (), interface: Interface = PYTHON
) -> list[str]:
    """List all assumptions; `extra` adds sentences."""
    sentences = [dependence(audit), _SOURCE_NOTES[audit.noise_source]]
    if audit.assumption and interface is PYTHON:  # it advises on Python parameters
        sentences.append(audit.assumption)
    if audit.n_suspects > 1:
        sentences.append(
            f"The expected false discovery rate of {audit.false_discovery_rate:.0%} is an average "
            f"over the first {audit.n_suspects:,} suspects: the last of them are less certain than "
            "the first. It is as accurate as the noise rates."
        )
    return [*sentences, *extra]
