"""Sentences about checked rows: what they changed, and whether more checks are worth the effort."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unflip.auditing.check_plan import WORTH_GAIN, WORTH_NARROWING, CheckPlan
from unflip.auditing.findings import Findings
from unflip.calibration.interval import Interval


@dataclass(frozen=True)
class Change:
    """A quantity before the checks and with them, in words."""

    quantity: str
    before: str
    after: str


#: If the next checks are not worth the effort.
ENOUGH_CHECKS = "More checks hardly pay."
_ALL_CHECKED = "Every row was checked."


def heading(audit: Findings) -> str:
    """Return the title of the rows to check."""
    n = len(audit.next_checks.rows)
    if not advises_checks(audit):
        return "Checked rows"
    return "Check this row" if n == 1 else f"Check these {n} rows"


def instructions(audit: Findings) -> str:
    """Return how to check the rows."""
    rows = "The rows are" if advises_checks(audit) else "To go on all the same: the rows below are"
    return (
        f"{rows} a random sample in random order, so you may stop after any of them. Their labels "
        "are not shown here, because people tend to agree with a label that they see. Choose "
        "Unsure rather than guess."
    )


def checked_rows(audit: Findings) -> str:
    """Return what the checked rows changed, and whether to check more; empty without such rows."""
    if not audit.is_calibrated:
        return unsure(audit)
    return " ".join(filter(None, (changed(audit), unsure(audit), more_checks(audit))))


def changed(audit: Findings) -> str:
    """Return how the checked rows changed the findings; empty if that was not computed."""
    parts = [f"{each.quantity} {each.after}, before {each.before}" for each in changes(audit)]
    rows = _counted(audit.n_checked, "checked row")
    return f"By {rows}: {'; '.join(parts)}." if parts else ""


def changes(audit: Findings) -> list[Change]:
    """Return the main findings before the checks and with them; empty if that was not computed."""
    before = audit.before_checks
    if before is None or not audit.is_calibrated:
        return []
    return [
        Change("wrong labels", _wrong(before), _wrong(audit)),
        Change("expected accuracy", _accuracy(before), _accuracy(audit)),
        Change("suspects", f"{before.n_suspects:,}", f"{audit.n_suspects:,}"),
    ]


def _wrong(audit: Findings) -> str:
    interval = audit.expected_wrong_interval
    return _with_limits(
        audit, f"{audit.expected_wrong:,.0f}", f"{interval.low:,.0f} to {interval.high:,.0f}"
    )


def _accuracy(audit: Findings) -> str:
    interval = audit.expected_accuracy_interval
    return _with_limits(
        audit, f"{audit.expected_accuracy:.1%}", f"{interval.low:.1%} to {interval.high:.1%}"
    )


def _with_limits(audit: Findings, value: str, limits: str) -> str:
    """Return a value with its 95% interval for any label noise, which need not contain it."""
    if audit.evidence.uses_true_class:
        return f"{value} ({limits})"
    return f"{value} under class-conditional noise ({limits} for any noise)"


def unsure(audit: Findings) -> str:
    """Return what rows without a true label mean; empty if there are none."""
    if not audit.n_unsure:
        return ""
    if audit.n_unsure == 1:
        subject = "1 row stayed unsure and counts as unchecked: if it is"
    else:
        subject = f"{audit.n_unsure} rows stayed unsure and count as unchecked: if they are"
    return f"{subject} harder than others, the true accuracy is slightly lower than stated."


def more_checks(audit: Findings) -> str:
    """Return what the next checks are expected to change, and whether that is worth the effort."""
    plan = audit.next_checks
    if not len(plan.rows):
        return _ALL_CHECKED
    effect = (
        f"{_counted(len(plan.rows), 'more check')} would narrow the 95% interval of the accuracy "
        f"from ± {_points(plan.interval)} to ± {_points(plan.interval_after)} points{_gain(plan)}"
    )
    if plan.is_worth():
        return f"{effect}."
    return (
        f"{ENOUGH_CHECKS} {effect}. The least that counts is {50 * WORTH_NARROWING:g} point of "
        f"the interval, or {100 * WORTH_GAIN:g} points of accuracy."
    )


def advises_checks(audit: Findings) -> bool:
    """Whether to check more rows: some are left, and the next ones are worth the effort."""
    plan = audit.next_checks
    return len(plan.rows) > 0 and (not audit.is_calibrated or plan.is_worth())


def why_not_more(audit: Findings) -> str:
    """Return why no more checks are advised."""
    return ENOUGH_CHECKS if len(audit.next_checks.rows) else _ALL_CHECKED


def _points(interval: Interval) -> str:
    return f"{50 * interval.width:.1f}"


def _gain(plan: CheckPlan) -> str:
    points = f"{100 * plan.accuracy_gain:.1f}"
    if np.isnan(plan.accuracy_gain) or float(points) <= 0:
        return ""
    return f" and raise the accuracy by about {points} points"


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
