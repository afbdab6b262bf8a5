"""What reports say about checked rows: what they changed, and when more checks hardly pay."""

import numpy as np
import pytest

from support.audits import nasty_audit
from unflip import audit
from unflip.auditing import check_prose, prose
from unflip.datasets import make_mixture
from unflip.estimation import AssumedNoiseWarning, TrustedSubset


@pytest.fixture(scope="module")
def batches():
    """Return the audits after 0, 100, 200, ... checks, until more checks hardly pay."""
    X, true = make_mixture(1500, 60, mean_norm=1.5, random_state=0)
    rng = np.random.default_rng(0)
    is_hard = np.abs(X @ X[true == 1].mean(axis=0)) < 2  # near the boundary
    observed = np.where(is_hard & (rng.random(1500) < 0.35), 1 - true, true)
    trusted = np.full(1500, None)
    with pytest.warns(AssumedNoiseWarning, match="contradict class-conditional noise"):
        audits = [audit(X, observed)]
    while check_prose.advises_checks(audits[-1]):
        rows = audits[-1].next_checks.rows
        trusted[rows] = true[rows]
        audits.append(audit(X, observed, trusted=trusted))
    return audits


class TestChanges:
    def test_before_is_the_audit_without_trusted_labels(self, batches):
        for each in batches[1:]:
            assert each.before_checks.expected_wrong == batches[0].expected_wrong
            assert each.before_checks.n_suspects == batches[0].n_suspects
            assert len(each.before_checks.checked) == 0

    def test_changes_are_the_findings_of_both(self, batches):
        before, after = batches[:2]
        wrong, accuracy, suspects = check_prose.changes(after)
        interval = before.expected_accuracy_interval
        now = f"{before.expected_accuracy:.1%} under class-conditional noise"
        assert accuracy.before == f"{now} ({interval.low:.1%} to {interval.high:.1%} for any noise)"
        limits = after.expected_wrong_interval
        assert wrong.after == f"{after.expected_wrong:.0f} ({limits.low:.0f} to {limits.high:.0f})"
        assert (suspects.before, suspects.after) == (str(before.n_suspects), str(after.n_suspects))
        text = after.summary["Checked rows"]
        assert text.startswith(f"By 100 checked rows: wrong labels {wrong.after}, before ")
        assert "Checked rows" not in before.summary

    def test_rows_that_are_no_sample_changed_nothing(self):
        trusted = np.full(200, None)
        trusted[4] = "=spam"
        assert check_prose.checked_rows(nasty_audit(trusted=trusted)) == ""

    def test_without_an_audit_before(self):
        X, true = make_mixture(200, 5, mean_norm=2.0, random_state=0)
        trusted = np.where(np.arange(200) < 50, true, np.nan)
        result = audit(X, true, noise=TrustedSubset(trusted))
        assert result.before_checks is None
        assert check_prose.changes(result) == []
        assert "more check" in check_prose.checked_rows(result)


class TestStopRule:
    def test_checks_are_advised_until_they_hardly_pay(self, batches):
        assert len(batches) > 2
        for each in batches[:-1]:
            assert not each.is_calibrated or each.next_checks.is_worth()
            assert "check" in prose.next_step(each)
            assert check_prose.heading(each) == "Check these 100 rows"
        last = batches[-1]
        assert last.next_checks.narrowing < 0.02
        assert last.next_checks.accuracy_gain < 0.005
        assert "More checks hardly pay. 100 more checks would narrow" in str(last)
        assert "The least that counts is 1 point of the interval" in str(last)
        assert "check" not in prose.next_step(last).lower().replace("more checks hardly pay", "")
        assert check_prose.ENOUGH_CHECKS in prose.next_steps(last, prose.PYTHON)
        assert check_prose.heading(last) == "Checked rows"

    def test_batches_continue_the_sample(self, batches):
        asked = np.concatenate([each.next_checks.rows for each in batches])
        assert len(set(asked.tolist())) == len(asked) == 100 * len(batches)

    def test_all_rows_are_checked(self):
        X, true = make_mixture(60, 5, mean_norm=2.0, random_state=0)
        few = audit(X, true, trusted=np.where(np.arange(60) < 59, true, np.nan))
        assert len(few.next_checks.rows) == 1
        everything = audit(X, true, trusted=true)
        assert check_prose.more_checks(everything) == "Every row was checked."
        assert not check_prose.advises_checks(everything)
