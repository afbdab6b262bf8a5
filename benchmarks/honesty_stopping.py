"""Part `stopping` of `honesty.py`: whether 100 more checks narrow the interval as predicted."""

import warnings

import numpy as np

from honesty_audits import audited
from honesty_sets import real_sets
from unflip.auditing.check_plan import CheckSample
from unflip.calibration.true_class import TrueClassModel
from unflip.labels.codes import UNCHECKED

SETS = (
    "photographs, worst of three",
    "news, human labels",
    "scenes, one vote",
    "media bias, Mistral 7B",
)
STARTS = (50, 100, 200, 400)
MORE = 100
# Narrowing from which on more checks are worth it: the default of `CheckPlan.is_worth`.
NARROWING = 0.02


def run(n_draws):
    """Yield a line for each set, number of checks and draw."""
    warnings.simplefilter("ignore", UserWarning)
    for data in real_sets():
        if data.name not in SETS:
            continue
        rows = audited(data, None).evidence.true_class.rows
        for start in STARTS:
            for draw in range(n_draws):
                yield {
                    "set": data.name,
                    "checks": start,
                    "draw": draw,
                    **stop(data, rows, start, draw),
                }


def stop(data, rows, start, draw):
    """Compare the predicted interval after more checks with the one that they give."""
    truth = np.full(len(data.truth), UNCHECKED)
    unchecked = TrueClassModel.fit(rows, truth)
    first = CheckSample.of(unchecked).draw(start, draw)
    now = checked(rows, truth, first, data)
    sample = CheckSample.of(now)
    predicted = sample.interval_after(MORE)
    after = checked(rows, now.truth, sample.draw(MORE, draw), data)
    before = now.expected_accuracy.width
    actual = after.expected_accuracy.width
    return {
        "width": before,
        "predicted": predicted.width,
        "actual": actual,
        "is_right": (before - predicted.width >= NARROWING) == (before - actual >= NARROWING),
    }


def checked(rows, truth, more, data):
    """Return the model of the true class after more rows are checked."""
    known = truth.copy()
    known[more] = data.truth[more]
    return TrueClassModel.fit(rows, known)
