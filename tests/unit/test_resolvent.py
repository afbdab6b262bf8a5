"""δ, h and the bulk gain at full precision, where the textbook form cancels."""

import numpy as np
import pytest

from unflip.theory import delta, h
from unflip.theory.resolvent import bulk_gain

CASES = [
    (aspect, reg)
    for aspect in (1e-3, 0.1, 0.5, 0.999999, 1.0, 1.000001, 1.5, 10.0, 1000.0)
    for reg in (1e-14, 1e-8, 1e-3, 1.0, 10.0, 1e6)
]


def reference(aspect, reg):
    """Return δ and h by the paper's formulas in 60 digits."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        eta, gamma = mpmath.mpf(aspect), mpmath.mpf(reg)
        value = (eta - gamma - 1 + mpmath.sqrt((eta - gamma - 1) ** 2 + 4 * eta * gamma)) / (
            2 * gamma
        )
        gain = 1 / (1 + gamma * (1 + value))
        return float(value), float(1 - eta * gain**2), float(gain)


@pytest.mark.parametrize(("aspect", "reg"), CASES)
def test_full_precision(aspect, reg):
    expected = reference(aspect, reg)
    np.testing.assert_allclose(
        [delta(aspect, reg), h(aspect, reg), bulk_gain(aspect, reg)], expected, rtol=1e-13
    )


def test_limits():
    assert delta(0.5, 0.0) == pytest.approx(1.0)  # η/(1 − η)
    assert h(0.5, 0.0) == pytest.approx(0.5)  # 1 − η
    assert h(4.0, 0.0) == pytest.approx(0.75)  # 1 − 1/η, the least-norm interpolator
    assert h(1.0, 0.0) == 0
    assert (delta(1.0, 0.0), delta(1.5, 0.0), delta(2.0, 0.0)) == (np.inf, np.inf, np.inf)
    assert (delta(2.0, np.inf), h(2.0, np.inf), bulk_gain(2.0, np.inf)) == (0, 1, 0)


def test_delta_is_the_trace_of_the_deterministic_equivalent():
    """δ = η/(1/(1 + δ) + γ) (the rank-one part of Q̄ is negligible)."""
    aspect, reg = np.meshgrid([0.1, 1.0, 5.0], [0.01, 1.0, 100.0])
    value = delta(aspect, reg)
    np.testing.assert_allclose(value, aspect / (1 / (1 + value) + reg), rtol=1e-12)


@pytest.mark.parametrize(
    ("aspect", "reg", "message"),
    [
        (0.0, 1.0, "aspect = 0 must be positive"),
        (np.inf, 1.0, "aspect = inf"),
        (1.0, -0.5, "reg = -0.5 must be zero or positive"),
        ([1.0, np.nan], 1.0, "aspect = nan"),
        (1.0, np.nan, "reg = nan"),
    ],
)
def test_invalid_input_raises(aspect, reg, message):
    for function in (delta, h):
        with pytest.raises(ValueError, match=message):
            function(aspect, reg)


@pytest.mark.parametrize("function", [delta, h, bulk_gain])
def test_reg_whose_square_overflows_raises_but_inf_is_valid(function):
    assert np.isfinite(function(0.5, [1e150, np.inf])).all()
    with pytest.raises(ValueError, match=r"reg = 1e\+308 overflows float64 when squared: use inf"):
        function(0.5, [1.0, 1e308])
