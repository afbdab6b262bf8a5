"""Sentences about an audit, for Python, the command line, the HTML page and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unflip.auditing import check_prose
from unflip.auditing.evidence import ModelCalibration
from unflip.auditing.findings import MOST_RATES, Findings

_ADVISED_CHECKS = 50  # rows to check in a next step, if there are as many
_FEW_CHECKS = 20  # checked rows below which intervals rest mostly on other data sets

#: Follows an expected accuracy of chance level.
NO_SIGNAL = (
    "The features do not predict the labels better than chance, so no label can be called wrong: "
    "add rows or other features."
)
#: Warning if the test of class-conditional noise rejects it; `p` is the p-value.
CONTRADICTED = (
    "The labels contradict class-conditional noise with these noise rates (p = {p:.2g}), so rates, "
    "expected accuracy and probabilities may be far off. Check the rows of .check_next(50) and "
    "pass their true labels as trusted=."
)
_INSTANCE_DEPENDENT = (
    "With instance-dependent noise the probabilities are overconfident, but the order of the "
    "suspects is still useful."
)
#: If the data hardly determine the noise rates.
UNCERTAIN_RATES = "The noise rates are uncertain."
#: Explains the numbers of `noise` and `accuracy`.
STANDARD_ERROR = "± is one standard error."

#: Where the noise rates come from, in a few words, for each value of `Findings.noise_source`.
_SOURCES = {
    "given": "given",
    "trusted rows": "estimated with trusted labels",
    "mixture": "estimated with a Gaussian mixture model",
    "label likelihood": "estimated from the labels and the features",
    "anchor rows": "a rough estimate from high-confidence rows",
    "no signal": "not estimated: assumes that half of the labels are random",
    "votes": "estimated from the votes and the features",
    "estimator": "estimated by the noise estimator that was passed",
}
#: The same, as sentences that name the assumption.
_SOURCE_NOTES = {
    "given": "The noise rates were given. They are checked only by the test above.",
    "trusted rows": (
        "The noise rates follow from the trusted labels. Rows are assumed to be checked at random "
        "among those of the same label and prediction (or with the inclusion probabilities that "
        "were passed), not because their label looked wrong."
    ),
    "mixture": (
        "The noise rates were estimated from the features and the labels. The features of each "
        "class are assumed to be Gaussian with the same variance in all directions (isotropic)."
    ),
    "label likelihood": (
        "The noise rates were estimated by maximum likelihood of the labels, given the predicted "
        "probabilities. The log-odds of the classes are assumed to be linear in the scores."
    ),
    "anchor rows": (
        "The features predict the labels weakly. The noise rates are a rough estimate from the "
        "rows with the highest predicted probability of each class."
    ),
    "no signal": (
        "The features do not predict the labels, so nothing can be said about the noise rates. "
        "Half of the labels are assumed to be random."
    ),
    "votes": (
        "The transition matrix of each annotator was estimated from the votes and the features. "
        "The noise rates of the majority labels follow from these matrices."
    ),
    "estimator": (
        "The noise rates were estimated by the noise estimator that was passed, under its "
        "assumptions."
    ),
}


# Groups of annotators that copy each other, and members of each, that are named.
_MOST_GROUPS = 3
_MOST_COPIES = 5

# On what the false discovery rate relies, without and with checked rows.
_VALIDITY = {
    False: "It is valid only if {condition}, and the noise rates are correct.",
    True: "By the checked rows, it is kept with 90% confidence.",
}


@dataclass(frozen=True)
class Interface:
    """How a user of Python, or of the command line, follows the advice of an audit."""

    trust: str  # how to pass the true labels of reviewed rows
    use_checks: str  # how to use the checked rows that the page exports
    decide: str  # how to use decisions, as a sentence


PYTHON = Interface(
    trust="pass their true labels as trusted=",
    use_checks='audit again: audit(X, y, trusted="checks.csv")',
    decide=(
        "To use them, audit again: audit(X, y, trusted=..., noise=result.noise), with the decided "
        "labels as trusted= and the noise rates of this audit."
    ),
)
COMMAND_LINE = Interface(
    trust="put their true labels into a column and pass its name with --trusted",
    use_checks="audit again with --trusted checks.csv",
    decide=(
        "To train a classifier, run unflip fit ... --decisions decisions.csv with the original "
        "data. To write a corrected copy of the data for use outside unflip, run unflip apply."
    ),
)


def summary(audit: Findings) -> dict[str, str]:
    """Return a paragraph for each heading."""
    paragraphs = {
        "Label noise": f"{noise(audit)} {STANDARD_ERROR}",
        "Expected accuracy": accuracy(audit),
        "Suspects": suspects(audit),
        "Next step": next_step(audit),
    }
    if sentences := check_prose.checked_rows(audit):
        paragraphs["Checked rows"] = sentences
    if sentences := several_votes(audit):
        paragraphs["Votes"] = sentences
    if len(audit.unlabelled):
        missing = "a label" if audit.evidence.noise.votes is None else "votes"
        paragraphs[f"Rows without {missing}"] = unlabelled(audit)
    if audit.model_calibration is not None:
        paragraphs["Calibration"] = calibration(audit.model_calibration)
    return paragraphs | {"Assumption": dependence(audit)}


def headline(audit: Findings) -> str:
    """Return the number of wrong labels as a title, without a full stop."""
    if not audit.evidence.has_signal:
        return "The features do not predict the labels: wrong labels cannot be found"
    labels = f"{int(audit.evidence.labelled.sum()):,} {label_kind(audit)}s"
    if round(audit.expected_wrong) < 2:
        return f"Almost all of the {labels} are right"
    wrong = f"{audit.expected_wrong:,.0f} ± {audit.expected_wrong_std:,.0f}"
    return f"An estimated {wrong} of {labels} are wrong"


def label_kind(audit: Findings) -> str:
    """Return what was audited: "label", or "majority label" if there are votes."""
    return "label" if audit.evidence.noise.votes is None else "majority label"


def noise(audit: Findings) -> str:
    """Return the number of wrong labels, the noise rates, and where the rates come from."""
    n = int(audit.evidence.labelled.sum())
    wrong = f"{audit.expected_wrong:.0f} ± {audit.expected_wrong_std:.0f} of {n}"
    sentence = f"about {wrong} {label_kind(audit)}s are wrong"
    return (
        f"{_conditional(audit, sentence)}. Noise rates by true class: {_rates(audit)} "
        f"({noise_source(audit)}).{_disagreement(audit)}"
    )


def _disagreement(audit: Findings) -> str:
    """Return what the disagreement of votes on a row says, if no row was checked."""
    votes = audit.evidence.noise.votes
    if votes is None or votes.single or votes.abstentions or audit.is_calibrated:
        return ""
    low, high = votes.noise_bounds()
    if len(votes.classes) == 2 and high > 0.5:
        return ""  # votes that are right more often than wrong differ less
    return (
        f" Two votes on a row differ with probability {votes.disagreement:.0%}, so the noise rate "
        f"of a vote would be between {low:.0%} and {high:.0%} if annotators erred independently."
    )


def _conditional(audit: Findings, sentence: str) -> str:
    """Return a sentence about numbers, with their condition if no checked row supports them."""
    if audit.is_calibrated:
        return sentence[0].upper() + sentence[1:]
    return f"If {condition(audit)}, {sentence}"


def condition(audit: Findings) -> str:
    """Return what the numbers assume without checked rows, as the end of a sentence with "if"."""
    noise = audit.evidence.noise
    if audit.evidence.uses_true_class:
        return "these votes are like those of other data sets"
    if noise.annotators is not None and noise.annotators.difficulty is not None:
        return "annotators err by class and by difficulty of the row alone"
    return "noise depends on the class alone"


def noise_source(audit: Findings) -> str:
    """Return where the noise rates come from, in a few words."""
    if audit.evidence.noise.votes is not None and audit.noise_source == "given":
        return "computed from the given rates of each vote"
    return _SOURCES.get(audit.noise_source, audit.noise_source)


def _rates(audit: Findings) -> str:
    labels = audit.classes.tolist()
    rates = 1 - np.diag(audit.noise.transition)
    order = list(range(len(labels)))
    rest = ""
    if len(labels) > MOST_RATES:
        order = np.argsort(-rates, kind="stable")[:MOST_RATES].tolist()
        rest = f", at most as high for the other {len(labels) - MOST_RATES} classes"
    each = (f"{labels[a]!r}: {rates[a]:.0%}{_error(audit.noise_std[a, a])}" for a in order)
    return ", ".join(each) + rest


def _error(error: float) -> str:
    return f" ± {error:.0%}" if error > 0 else ""


def accuracy(audit: Findings) -> str:
    """Return the accuracy to expect of a classifier, now and with clean labels."""
    support = identified(audit) if audit.evidence.has_signal else NO_SIGNAL
    if np.isnan(audit.expected_accuracy):
        return support
    now = f"{audit.expected_accuracy:.1%} ± {audit.expected_accuracy_std:.1%}"
    clean = audit.accuracy_after(audit.n_labels)
    with_clean_labels = (
        "" if np.isnan(clean) else f" (about {clean:.1%} if trained on clean labels)"
    )
    sentence = _conditional(
        audit,
        f"a classifier trained on these labels gets {now} of new rows right{with_clean_labels}.",
    )
    return f"{sentence} {support}"


def identified(audit: Findings) -> str:
    """Return what checked rows say about the accuracy, or that no row was checked."""
    interval = audit.expected_accuracy_interval
    limits = f"{interval.low:.0%} and {interval.high:.0%}"
    n_checked = audit.n_labels - audit.n_unchecked
    if audit.is_calibrated:
        few = ""
        if n_checked < _FEW_CHECKS:
            few = " With so few checks, this rests mostly on what other data sets showed."
        rows = "1 checked row" if n_checked == 1 else f"{n_checked} checked rows"
        return f"By {rows}, it lies between {limits} (95% confidence), for any label noise.{few}"
    unchecked = "No row was checked"
    if n_checked:
        unchecked = "The checked rows are not a sample"
    advice = ""
    n_next = n_to_check(audit)
    if n_next:
        half_width = audit.interval_after(n_next).width / 2
        advice = f" Check {n_next} rows for about ± {100 * half_width:.0f} points."
    return (
        f"{unchecked}, so the accuracy on true labels is not known: {interval.value:.0%} if these "
        f"labels are like those of other data sets, between {limits}.{advice}"
    )


def suspects(audit: Findings) -> str:
    """Return the number of suspects, what follows them, and how many checked labels were wrong."""
    return f"{_n_suspects(audit)}{_beyond_suspects(audit)}{_n_checked(audit)}"


def _n_suspects(audit: Findings) -> str:
    kind = label_kind(audit)
    rate = f"false discovery rate of at most {audit.false_discovery_rate:.0%}"
    at_rate = f"at a {rate}, with 90% confidence"
    if not audit.is_calibrated:
        at_rate = f"at an expected {rate}, if {condition(audit)}"
    if audit.n_suspects == 0 and audit.is_calibrated and len(audit.suspects):
        return f"No {kind} is suspect {at_rate}: too few rows were checked to be sure of it."
    if audit.n_suspects == 0:
        return f"No {kind} is suspect {at_rate}."
    if audit.n_suspects == 1:
        return f"1 {kind} is suspect, wrong with probability {audit.suspects.probability[0]:.1%}."
    return f"{audit.n_suspects} {kind}s are suspect {at_rate}."


def _beyond_suspects(audit: Findings) -> str:
    """Return how many labels follow the suspects in the list, if checked rows say it."""
    if not audit.is_calibrated:
        return ""
    is_checked = np.isin(audit.suspects.row, audit.checked)
    following = np.asarray(audit.suspects.probability)[~is_checked][audit.n_suspects :]
    if len(following) < 2:
        return ""
    return (
        f" For {len(following)} more, another class is more likely: about "
        f"{following.mean():.0%} of them are wrong."
    )


def _n_checked(audit: Findings) -> str:
    checked = audit.checked[audit.evidence.labelled[audit.checked]]
    if not len(checked):
        return ""
    wrong = int(audit.evidence.wrong[checked].sum())  # each is 0 or 1
    verb = "was" if wrong == 1 else "were"
    sample = ""
    if audit.is_calibrated:
        sample = " (not the noise rate: more rows where label and prediction differ are checked)"
    return f" {wrong} of {len(checked)} checked {label_kind(audit)}s {verb} wrong{sample}."


def next_step(audit: Findings) -> str:
    """Return what to do next in Python."""
    if not audit.evidence.has_signal:
        return "Add rows or other features."
    n_next = n_to_check(audit)
    review = ""
    if audit.n_suspects:
        review = "Review the first .n_suspects rows of .suspects. "
    if not check_prose.advises_checks(audit):
        return review.strip() or check_prose.why_not_more(audit)
    return (
        f"{review}{why_check(audit)}, check the rows of .check_next({n_next}) and {PYTHON.trust}."
    )


def next_steps(audit: Findings, interface: Interface) -> list[str]:
    """Return what to do next, as a list for the page."""
    if not audit.evidence.has_signal:
        return ["Add rows or other features."]
    review = _review(audit, interface)
    if not check_prose.advises_checks(audit):
        return [check_prose.why_not_more(audit), review]
    check = (
        f"{why_check(audit)}, check a random sample of rows in the tab “Check rows”, export it, "
        f"and {interface.use_checks}."
    )
    return [review, check] if audit.n_suspects and not audit.assumption else [check, review]


def why_check(audit: Findings) -> str:
    """Return what checked rows are good for, as the start of a sentence."""
    if audit.is_calibrated:
        return "For narrower intervals"
    if audit.assumption:
        return f"{UNCERTAIN_RATES} To measure them, and the accuracy"
    return "To measure noise and accuracy instead of assuming how labels go wrong"


def n_to_check(audit: Findings) -> int:
    """Return the number of rows to check next: 50, or all that are left."""
    return min(_ADVISED_CHECKS, audit.n_unchecked)


def _review(audit: Findings, interface: Interface) -> str:
    if not audit.n_suspects:
        return "No label should be changed without checking its row."
    first = "suspect" if audit.n_suspects == 1 else f"{audit.n_suspects:,} suspects"
    review = f"Review the first {first} in the tab “Suspects”: accept or reject the proposed label."
    if audit.evidence.noise.votes is not None:
        return f"{review} Then {interface.trust}, and audit again."
    return (
        f"{review} Then export the decisions. {interface.decide} Do not estimate noise rates from "
        "corrected labels: the estimates would be biased."
    )


def calibration(model: ModelCalibration) -> str:
    """Return how the probabilities of a model were calibrated."""
    return (
        f"The model's log-odds were multiplied by {model.slope:.2f}. Log loss of the observed "
        f"labels: {model.log_loss_before:.3f} before, {model.log_loss_after:.3f} after."
    )


def annotators(audit: Findings, n_shown: int) -> str:
    """Return what the table of annotators shows."""
    n = 0 if audit.annotators is None else len(audit.annotators)
    shown = f"The {n_shown} annotators with most votes, of {n:,}." if n > n_shown else ""
    uncertain = "" if audit.is_calibrated else " if these votes are like those of other data sets"
    explained = (
        f"Accuracy is the estimated share of right votes{uncertain}. Information is what a vote "
        "tells about the true class, in bits. Kappa is the agreement with the other votes on the "
        "same rows, corrected for chance: 1 if they always agree, 0 if they agree as often as by "
        "chance."
    )
    return " ".join(filter(None, (shown, several_votes(audit), explained)))


def several_votes(audit: Findings) -> str:
    """Return what several votes per row are worth, and how good labels from them are."""
    votes = audit.evidence.noise.votes
    if votes is None or votes.single:
        return ""
    interval = audit.corrected_labels_interval
    support = "by the checked rows" if audit.is_calibrated else "by what other data sets showed"
    return (
        f"{shared_errors(audit)} The most likely label of a row is right for {interval.value:.0%} "
        f"of the rows with votes, {support}: between {interval.low:.0%} and {interval.high:.0%}."
    )


def shared_errors(audit: Findings) -> str:
    """Return how many independent votes the votes on a row are worth, and who copies whom."""
    noise = audit.evidence.noise
    if noise.votes is None or noise.annotators is None:
        return ""
    votes, annotators = noise.votes, noise.annotators
    if noise.source != "votes":
        sentence = "Errors were taken as independent, as the noise rates were given."
    elif votes.abstentions:
        sentence = "Whether rules err together was not estimated."
    elif annotators.difficulty is None and annotators.groups is None:
        sentence = "Annotators seem to err independently: held-out votes are no likelier otherwise."
    else:
        sentence = (
            f"Annotators err together: the {votes.mean_votes:.1f} votes on a row are worth "
            f"{audit.effective_votes:.1f} independent ones."
        )
    copies = [] if annotators.groups is None else annotators.groups.members
    for members in copies[:_MOST_GROUPS]:
        names = [str(name) for name in annotators.names[members[:_MOST_COPIES]]]
        if len(members) > _MOST_COPIES:
            names.append(f"{len(members) - _MOST_COPIES} more")
        sentence += f" {', '.join(names[:-1])} and {names[-1]} copy each other."
    if len(copies) > _MOST_GROUPS:
        sentence += f" So do {len(copies) - _MOST_GROUPS} more groups."
    return sentence


def unlabelled(audit: Findings) -> str:
    """Return the number of rows without a label or votes, and how good the proposals are."""
    n = len(audit.unlabelled)
    rows = "1 row has" if n == 1 else f"{n} rows have"
    right = float(audit.unlabelled.probability.sum())
    missing = "label" if audit.evidence.noise.votes is None else "vote"
    return (
        f"{rows} no {missing}. Expected number of correct labels among those proposed in "
        f".unlabelled: {right:.0f}."
    )


def dependence(audit: Findings) -> str:
    """Return the assumption on label noise, and whether the labels contradict it."""
    if audit.is_calibrated:
        return (
            "Noise may depend on the row. The probabilities were calibrated with the checked rows."
        )
    votes = audit.evidence.noise.votes
    if votes is not None and not votes.single:
        sentence = condition(audit)
        return f"{sentence[0].upper()}{sentence[1:]} (not tested)."
    p_value = audit.dependence.p_value
    assumed = "Noise depends on the true class alone (class-conditional noise)."
    if np.isnan(p_value):
        return f"{assumed} There are too few rows to test this."
    if audit.dependence.rejected:
        return f"{assumed} The labels contradict this (p = {p_value:.2g}). {_INSTANCE_DEPENDENT}"
    return (
        f"{assumed} The labels do not contradict this (p = {p_value:.2g}), but labels alone cannot "
        "confirm it: only checked rows can."
    )


def assumptions(
    audit: Findings, extra: Sequence[str] = (), interface: Interface = PYTHON
) -> list[str]:
    """Return all assumptions as sentences, with those of `extra` at the end."""
    source = f"Noise rates: {noise_source(audit)}."
    sentences = [dependence(audit), _SOURCE_NOTES.get(audit.noise_source, source)]
    if audit.assumption and interface is PYTHON:  # it advises on Python parameters
        sentences.append(audit.assumption)
    if audit.n_suspects > 1:
        sentences.append(
            f"The expected false discovery rate of at most {audit.false_discovery_rate:.0%} is an "
            f"average over the first {audit.n_suspects:,} suspects: the last of them are less "
            "certain than the first. "
            f"{_VALIDITY[audit.is_calibrated].format(condition=condition(audit))}"
        )
    return [*sentences, *extra]
