"""Explorer page: its numbers are the theory's, and invalid settings give an error message."""

import re
import socket
import sys
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="needs the extra unflip[cli]")

from unflip import NoiseModel, targets, theory
from unflip.cli.explorer.answer import CHOICES, RHO_GRID, Setting, answer
from unflip.cli.explorer.chart import Axis
from unflip.cli.explorer.command import explore
from unflip.cli.explorer.controls import SLIDERS, document, read_setting
from unflip.cli.explorer.page import render, rho_chart, score_chart

SETTINGS = [
    Setting(),
    Setting(fit_intercept=True),
    Setting(
        n=150,
        p=2000,
        mean_norm=3.5,
        eps_pos=0.1,
        eps_neg=0.25,
        pi_neg=0.7,
        reg=0.02,
        targets="naive",
    ),
    Setting(
        n=5000,
        p=70,
        mean_norm=0.6,
        eps_pos=0.0,
        eps_neg=0.45,
        pi_neg=0.5,
        reg=300.0,
        targets="LPC",
        rho=-0.8,
    ),
]


def predicted(setting, values):
    """Return the prediction of the theory without the page's own helpers."""
    noise = NoiseModel.binary(
        eps_pos=setting.eps_pos, eps_neg=setting.eps_neg, pi_neg=setting.pi_neg
    )
    mixture = theory.Mixture(mean_norm=setting.mean_norm, aspect=setting.p / setting.n, noise=noise)
    return theory.predict(
        mixture, targets=values, reg=setting.reg, fit_intercept=setting.fit_intercept
    ), mixture


def shown(page, name):
    return re.search(f'id="unflip-{name}">([^<]*)<', page)[1]


@pytest.mark.parametrize("setting", SETTINGS)
def test_page_shows_numbers_of_theory(setting):
    page = render(setting)
    for name in CHOICES:
        values = targets.from_rho(setting.rho, 0.0) if name == "LPC" and setting.rho != 1 else name
        if name == "LPC" and setting.rho == 1:
            values = (0.0, 2.0)  # ρ₊ = 1, ρ₋ = 0, whose printed form divides by 0
        prediction, mixture = predicted(setting, values)
        assert shown(page, name) == f"{float(prediction.accuracy):.2%}"
        assert shown(page, f"{name}-best") == f"{float(prediction.best_accuracy):.2%}"
    assert shown(page, "accuracy") == shown(page, setting.targets)
    oracle = theory.predict(
        mixture.clean, targets="naive", reg=setting.reg, fit_intercept=setting.fit_intercept
    )
    assert shown(page, "oracle") == f"{float(oracle.accuracy):.2%}"
    assert shown(page, "bayes") == f"{float(mixture.bayes_accuracy):.2%}"


@pytest.mark.parametrize("setting", SETTINGS)
def test_densities_have_predicted_means_priors_and_accuracy(setting):
    prediction, _ = predicted(setting, answer(setting).chosen.targets)
    drawn = answer(setting)
    step = drawn.scores[1] - drawn.scores[0]
    for density, mean, share in zip(
        drawn.densities, prediction.means, prediction.priors, strict=True
    ):
        assert density.sum() * step == pytest.approx(share, rel=2e-3)
        assert (density * drawn.scores).sum() / density.sum() == pytest.approx(
            mean, abs=0.01 * np.sqrt(prediction.variance)
        )
    fine = np.linspace(drawn.scores[0], drawn.scores[-1], 20001)
    below, above = (np.interp(fine, drawn.scores, density) for density in drawn.densities)
    right = np.where(fine > drawn.threshold, above, below).sum() * (fine[1] - fine[0])
    assert right == pytest.approx(float(prediction.accuracy), abs=2e-3)


def test_rho_curve_matches_theory_and_peaks_at_optimum():
    drawn = answer(Setting())
    for index in (0, 40, 60, 110):
        prediction, mixture = predicted(Setting(), targets.from_rho(RHO_GRID[index] - 0.3, -0.3))
        assert drawn.rho_accuracy[index] == pytest.approx(float(prediction.accuracy), abs=1e-12)
    best = float(theory.optimal_rho(mixture.noise))
    assert drawn.marked["optimized"] == pytest.approx(best)
    assert RHO_GRID[drawn.rho_accuracy.argmax()] == pytest.approx(
        best, abs=RHO_GRID[1] - RHO_GRID[0]
    )
    assert (drawn.rho_accuracy <= drawn.variants["optimized"].accuracy + 1e-12).all()


def test_with_an_intercept_all_targets_are_equally_accurate():
    drawn = answer(Setting(fit_intercept=True))
    np.testing.assert_allclose(drawn.rho_accuracy, drawn.variants["naive"].accuracy, rtol=1e-12)
    assert "the same direction" in render(Setting(fit_intercept=True))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"eps_pos": 0.6, "eps_neg": 0.5}, "eps_pos + eps_neg = 0.6 + 0.5 must be below 1"),
        ({"targets": "best"}, "targets=&#x27;best&#x27; is not a valid value"),
        ({"pi_neg": 1.0}, "pi_neg = 1.0 must lie strictly between 0 and 1"),
    ],
)
def test_invalid_setting_shows_error_message(change, message):
    page = render(replace(Setting(), **change))
    assert message in page
    assert "<svg" not in page


@pytest.mark.parametrize("setting", SETTINGS)
def test_charts_stay_within_their_frame(setting):
    for chart in (score_chart(answer(setting)), rho_chart(answer(setting))):
        width, height = map(float, re.search(r'viewBox="0 0 (\d+) (\d+)"', chart).groups())
        pairs = [
            pair.split(",")
            for points in re.findall(r'points="([^"]*)"', chart)
            for pair in points.split()
        ]
        x, y = np.array(pairs, dtype=float).T
        assert x.min() >= 0
        assert x.max() <= width
        assert y.min() >= 0
        assert y.max() <= height


def test_zero_signal_is_drawn():
    drawn = answer(Setting(mean_norm=0.0))
    assert drawn.chosen.accuracy == 0.5
    assert "nan" not in render(Setting(mean_norm=0.0)).lower()


def test_ticks_are_round_and_within_the_axis():
    assert Axis(-4.0, 4.0, "").ticks() == [-4.0, -2.0, 0.0, 2.0, 4.0]
    assert Axis(0.0, 1.0, "", percent=True).written(0.2) == "20%"
    assert Axis(0.0, 1.0, "").written(-0.25) == "−0.25"


def test_port_in_use_or_out_of_range_raises():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=f"port {port} of 127.0.0.1 cannot be used"):
            explore(port, open_browser=False)
    with pytest.raises(ValueError, match="port = 70000 must lie between"):
        explore(70000, open_browser=False)


def test_missing_matplotlib_error_names_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"unflip\[cli\]"):
        explore(open_browser=False)


def asked(**changes):
    query = {slider.name: str(getattr(Setting(), slider.name)) for slider in SLIDERS}
    return {**query, "targets": "optimized", "fit_intercept": "false", **changes}


def test_request_is_parsed_into_setting():
    assert read_setting(asked()) == Setting()
    changed = read_setting(asked(n="150", eps_pos="0.1", targets="naive", fit_intercept="true"))
    assert changed == Setting(n=150, eps_pos=0.1, targets="naive", fit_intercept=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": "0"}, "n = 0 must lie between 10 and 100000"),
        ({"p": "1e50"}, "p = 1e+50 must lie between"),
        ({"pi_neg": "1e-308"}, "pi_neg = 1e-308 must lie between"),
        ({"reg": "a"}, "reg = 'a' must be a number"),
        ({"rho": "nan"}, "rho = nan"),
    ],
)
def test_invalid_request_raises(change, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        read_setting(asked(**change))


def test_page_opens_with_default_setting_and_loads_nothing():
    page = document()
    assert shown(page, "accuracy") == shown(render(Setting()), "accuracy")
    assert page.count('<input type="range"') == len(SLIDERS)
    for slider in SLIDERS:
        assert getattr(Setting(), slider.name) in slider.steps
    assert not re.search(r"https?://|<link|src=", page)
