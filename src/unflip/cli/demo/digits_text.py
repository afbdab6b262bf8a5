"""The output of `unflip demo` on the terminal."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from unflip.cli.demo.digits_result import Accuracy, DigitsDemo
from unflip.cli.text_layout import aligned, step, wrapped


def summary(result: DigitsDemo, page: Path, picture: Path) -> str:
    """Return what was found, beside the truth.

    Parameters
    ----------
    result : DigitsDemo
        The demonstration.
    page, picture : Path
        The files that were written.
    """
    n_rows = len(result.true)
    n_wrong = int(result.wrong.sum())
    paragraphs = [
        wrapped(
            f"The data: {n_rows + result.n_new} images of handwritten digits that come with "
            f"scikit-learn. In {n_rows} of them, {n_wrong} labels are replaced by another digit, "
            "chosen at random. unflip does not know which, nor how many. The other "
            f"{result.n_new} images keep their labels, and test the classifiers. The features are "
            "those that unflip audit computes for a folder of images."
        ),
        "\n".join(aligned(("", "unflip", "logistic regression"), _lines(result))),
        wrapped(
            "Logistic regression is cross-validated: it calls a label wrong if a fit without the "
            "image predicts another digit. It cannot tell wrong labels from its own mistakes, so "
            "it overestimates the first, and underestimates its accuracy. Trained on the true "
            f"labels, it gets {result.clean:.1%} of the new images right."
        ),
        _next_steps(page, picture),
    ]
    return "\n\n".join(paragraphs)


def _lines(result: DigitsDemo) -> list[tuple[str, str, str]]:
    """Return the lines of the table: a quantity, for unflip and for logistic regression."""
    n_wrong = int(result.wrong.sum())
    calls = (result.suspects, result.disagreement)
    called = [int(each.sum()) for each in calls]
    hits = [int((each & result.wrong).sum()) for each in calls]
    audit = result.audit
    return [
        ("Labels called wrong", str(called[0]), str(called[1])),
        ("  of these, really wrong", _share(hits[0], called[0]), _share(hits[1], called[1])),
        (
            f"  of the {n_wrong} wrong labels, found",
            _share(hits[0], n_wrong),
            _share(hits[1], n_wrong),
        ),
        (
            f"Wrong labels, estimated (truth: {n_wrong})",
            f"{audit.expected_wrong:.0f} ± {audit.expected_wrong_std:.0f}",
            str(called[1]),
        ),
        (
            "Accuracy on new images, estimated",
            _estimated(result.unflip),
            _estimated(result.logistic),
        ),
        (
            "Accuracy on new images, measured",
            f"{result.unflip.measured:.1%}",
            f"{result.logistic.measured:.1%}",
        ),
    ]


def _share(count: int, total: int) -> str:
    return f"{count / total:.0%}"


def _estimated(accuracy: Accuracy) -> str:
    error = "" if np.isnan(accuracy.error) else f" ± {accuracy.error:.1%}"
    return f"{accuracy.estimated:.1%}{error}"


def _next_steps(page: Path, picture: Path) -> str:
    steps = [
        step(f"Open {page} in a browser, to accept or reject the proposed label of each image."),
        step(f"{picture} shows the first suspects and the accuracies."),
        step("Audit a file of your own, with labels in one column and texts in another:"),
        "      unflip audit reviews.csv --label sentiment --text review --out report.html",
        step("Or a folder of images, with a sub-folder for each class:"),
        "      unflip audit photos --out report.html",
        step("unflip demo theory compares the theory behind it with a simulation."),
    ]
    return "\n".join(["Next steps:", *steps])
