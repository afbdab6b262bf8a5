"""Confidence intervals of shares, positive numbers and differences."""

import numpy as np
import pytest
from scipy.special import logit
from scipy.stats import norm

from unflip.calibration.interval import (
    Interval,
    normal_interval,
    normal_quantile,
    positive_interval,
    share_interval,
    sum_of_shares,
    wilson_interval,
)

EXACT = {"rel": 1e-12, "abs": 1e-12}
# Rounding of a share that is moved to the logit scale and back.
ROUNDING = 1e-15
# Standard errors around the mode that hold 95% of any unimodal distribution.
FARTHEST = 2 / (3 * np.sqrt(0.05))


class TestInterval:
    def test_width_limits_and_numbers(self):
        interval = Interval(0.5, 0.25, 1.0)
        assert interval.width == 0.75
        assert interval.limits == (0.25, 1.0)
        assert interval.numbers == (0.5, 0.25, 1.0)

    def test_complement(self):
        assert Interval(0.5, 0.25, 0.625).complement == Interval(0.5, 0.375, 0.75)

    def test_standard_error_is_that_of_a_normal_interval(self):
        assert normal_interval(3.0, 0.7).std == pytest.approx(0.7, **EXACT)

    def test_text_has_three_decimals(self):
        assert str(Interval(0.5, 0.25, 1.0)) == "0.500 [0.250, 1.000]"

    def test_format_applies_to_all_numbers(self):
        assert f"{Interval(0.5, -0.25, 1.0):+.1%}" == "+50.0% [-25.0%, +100.0%]"


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.99])
def test_normal_quantile_is_two_sided(confidence):
    quantile = normal_quantile(confidence)
    assert norm.cdf(quantile) - norm.cdf(-quantile) == pytest.approx(confidence, **EXACT)


class TestShareInterval:
    def test_small_errors_are_those_of_a_normal_distribution(self):
        """The logit is linear up to terms of the order of the error squared."""
        interval = share_interval(0.3, 1e-6)
        normal = normal_interval(0.3, 1e-6)
        assert interval.limits == pytest.approx(normal.limits, abs=1e-11)

    @pytest.mark.parametrize("value", [0.0, 1e-9, 0.001, 0.5, 0.999, 1.0])
    @pytest.mark.parametrize("error", [0.0, 1e-9, 0.1, 0.4, 100.0, np.inf])
    @pytest.mark.parametrize("limits", [None, (0.0, 1.0)])
    def test_limits_stay_within_0_and_1(self, value, error, limits):
        interval = share_interval(value, error, limits=limits)
        assert 0 <= interval.low <= interval.value + ROUNDING
        assert interval.value - ROUNDING <= interval.high <= 1

    def test_error_is_scaled_to_the_logit(self):
        """The derivative of the logit is 1/(p(1 − p))."""
        interval = share_interval(0.9, 0.02)
        half_width = normal_quantile(0.95) * 0.02 / (0.9 * 0.1)
        expected = (logit(0.9) - half_width, logit(0.9) + half_width)
        assert logit(interval.limits) == pytest.approx(expected, **EXACT)

    @pytest.mark.parametrize("value", [0.99, 0.999, 0.9999, 1.0])
    @pytest.mark.parametrize("error", [0.02, 0.1, 0.3])
    def test_large_errors_close_to_1_are_bounded(self, value, error):
        """On the logit scale alone, the lower limit would be next to 0."""
        interval = share_interval(value, error)
        assert interval.low == pytest.approx(interval.value - FARTHEST * error, **EXACT)

    @pytest.mark.parametrize("value", [0.0, 1e-4, 0.001, 0.01])
    @pytest.mark.parametrize("error", [0.02, 0.1, 0.3])
    def test_large_errors_close_to_0_are_bounded(self, value, error):
        interval = share_interval(value, error)
        assert interval.high == pytest.approx(interval.value + FARTHEST * error, **EXACT)

    def test_the_bound_is_that_of_the_confidence(self):
        """4/(9λ²) of a unimodal distribution are at least λ standard errors away."""
        interval = share_interval(0.999, 0.05, 0.99)
        n_errors = (interval.value - interval.low) / 0.05
        assert 4 / (9 * n_errors**2) == pytest.approx(0.01, **EXACT)

    @pytest.mark.parametrize("value", [0.01, 0.5, 0.999])
    def test_larger_errors_have_wider_intervals(self, value):
        intervals = [share_interval(value, error) for error in (0.001, 0.01, 0.03, 0.1, 0.3)]
        lows = [interval.low for interval in intervals]
        highs = [interval.high for interval in intervals]
        assert lows == sorted(lows, reverse=True)
        assert highs == sorted(highs)
        assert lows[-1] < lows[0]
        assert highs[-1] > highs[0]

    @pytest.mark.parametrize("limits", [(0.85, 0.97), (0.2, 0.9), (0.9, 0.9999)])
    def test_without_an_error_the_other_limits_remain(self, limits):
        assert share_interval(0.9, 0.0, limits=limits).limits == pytest.approx(limits, **EXACT)

    def test_the_value_as_both_limits_adds_nothing(self):
        plain = share_interval(0.9, 0.02)
        assert share_interval(0.9, 0.02, limits=(0.9, 0.9)).numbers == plain.numbers

    def test_two_sources_add_up_on_the_logit_scale(self):
        first = share_interval(0.9, 0.02)
        limits = (0.8, 0.97)
        both = share_interval(0.9, 0.02, limits=limits)
        for low_or_high in (0, 1):
            parts = logit([first.limits[low_or_high], limits[low_or_high]]) - logit(0.9)
            distance = abs(logit(both.limits[low_or_high]) - logit(0.9))
            assert distance == pytest.approx(np.hypot(*parts), **EXACT)

    def test_the_bound_does_not_apply_to_the_other_limits(self):
        """A source of error with its own limits may reach farther."""
        interval = share_interval(0.9, 0.01, limits=(0.1, 0.95))
        assert interval.low < 0.1

    def test_complement_has_the_complement_of_the_interval(self):
        mirrored = share_interval(0.1, 0.05).complement
        assert mirrored.numbers == pytest.approx(share_interval(0.9, 0.05).numbers, **EXACT)

    def test_an_undefined_share_has_no_limits(self):
        assert np.isnan(share_interval(np.nan, 0.0).numbers).all()


class TestNormalInterval:
    def test_an_error_alone(self):
        interval = normal_interval(-3.0, 0.5)
        half_width = normal_quantile(0.95) * 0.5
        assert interval.limits == pytest.approx((-3 - half_width, -3 + half_width), **EXACT)

    def test_without_an_error_the_other_limits_remain(self):
        interval = normal_interval(0.25, 0.0, limits=(-0.5, 0.375))
        assert interval.numbers == (0.25, -0.5, 0.375)

    def test_two_sources_add_up(self):
        interval = normal_interval(1.0, 0.3, limits=(0.5, 3.0))
        half_width = normal_quantile(0.95) * 0.3
        expected = (1 - np.hypot(half_width, 0.5), 1 + np.hypot(half_width, 2.0))
        assert interval.limits == pytest.approx(expected, **EXACT)


class TestPositiveInterval:
    def test_interval_is_symmetric_on_the_log_scale(self):
        interval = positive_interval(0.4, 0.1)
        assert interval.low * interval.high == pytest.approx(0.4**2, **EXACT)
        assert interval.low > 0

    def test_small_errors_are_those_of_a_normal_distribution(self):
        """The logarithm is linear up to terms of the order of the error squared."""
        interval = positive_interval(0.4, 1e-6)
        assert interval.limits == pytest.approx(normal_interval(0.4, 1e-6).limits, abs=1e-11)

    @pytest.mark.parametrize("limits", [(0.1, 0.5), (0.39, 40.0)])
    def test_without_an_error_the_other_limits_remain(self, limits):
        assert positive_interval(0.4, 0.0, limits=limits).limits == pytest.approx(limits, **EXACT)

    def test_two_sources_add_up_on_the_log_scale(self):
        first = positive_interval(0.4, 0.1)
        limits = (0.3, 0.9)
        both = positive_interval(0.4, 0.1, limits=limits)
        for low_or_high in (0, 1):
            parts = np.log([first.limits[low_or_high], limits[low_or_high]]) - np.log(0.4)
            distance = abs(np.log(both.limits[low_or_high]) - np.log(0.4))
            assert distance == pytest.approx(np.hypot(*parts), **EXACT)

    def test_a_lower_limit_of_zero_is_possible(self):
        interval = positive_interval(0.4, 0.1, limits=(0.0, 0.5))
        assert interval.low == pytest.approx(0, abs=1e-300)
        assert interval.high > 0.5

    def test_zero_has_no_interval_on_the_log_scale(self):
        assert positive_interval(0.0, 0.1).numbers == (0.0, 0.0, 0.0)


class TestWilsonInterval:
    def test_limits_solve_the_score_equation(self):
        """(p̂ − p)² = z² p (1 − p)/n at both limits."""
        interval = wilson_interval(0.7, 40)
        for limit in interval.limits:
            score = (0.7 - limit) ** 2 - normal_quantile(0.95) ** 2 * limit * (1 - limit) / 40
            assert score == pytest.approx(0, abs=1e-15)

    def test_no_rows_tell_nothing(self):
        assert wilson_interval(0.7, 0).limits == (0.0, 1.0)

    def test_infinitely_many_rows_tell_everything(self):
        assert wilson_interval(0.7, np.inf).numbers == (0.7, 0.7, 0.7)


class TestSumOfShares:
    def test_one_part_is_itself(self):
        part = share_interval(0.9, 0.05)
        total = sum_of_shares([part], [1.0], np.eye(1))
        assert total.numbers == pytest.approx(part.numbers, **EXACT)

    def test_opposite_parts_cancel(self):
        parts = [normal_interval(0.5, 0.05), normal_interval(0.4, 0.05)]
        correlations = np.array([[1.0, -1.0], [-1.0, 1.0]])
        total = sum_of_shares(parts, [0.5, 0.5], correlations)
        assert total.width == pytest.approx(0, abs=1e-8)

    def test_without_parts_it_is_certain(self):
        assert sum_of_shares([], [], np.empty((0, 0)), 0.3).numbers == (0.3, 0.3, 0.3)
