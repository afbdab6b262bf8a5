"""Sliders of the page: their values, their HTML, and the setting that a request asks for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template

import numpy as np

from unflip.cli.explorer.answer import CHOICES, Setting
from unflip.cli.explorer.page import render


@dataclass(frozen=True)
class Slider:
    """A slider for a field of `Setting`, with its label and its values."""

    name: str
    label: str
    steps: list[float]

    def html(self, value: float) -> str:
        """Return the slider as HTML, set to the step closest to a value."""
        position = int(np.argmin(np.abs(np.array(self.steps) - value)))
        return (
            f"<label><span>{escape(self.label)}</span><output>{self.steps[position]:g}</output>"
            f'<input type="range" name="{self.name}" min="0" max="{len(self.steps) - 1}" '
            f'value="{position}" data-steps="{json.dumps(self.steps)}"></label>'
        )


_COUNTS = [
    float(round(lead * 10**power)) for power in (1, 2, 3, 4) for lead in (1, 1.5, 2, 3, 5, 7)
] + [1e5]
_RATES = np.linspace(0, 0.9, 91).round(2).tolist()
SLIDERS = (
    Slider("n", "n, rows", _COUNTS),
    Slider("p", "p, features", _COUNTS),
    Slider("mean_norm", "‖μ‖, half the distance", np.linspace(0, 5, 101).round(2).tolist()),
    Slider(
        "reg", "γ, regularization", [float(f"{10**power:.2g}") for power in np.linspace(-3, 3, 61)]
    ),
    Slider("eps_pos", "ε₊, noise rate of positives", _RATES),
    Slider("eps_neg", "ε₋, noise rate of negatives", _RATES),
    Slider("pi_neg", "π, prior of negatives", np.linspace(0.02, 0.98, 97).round(2).tolist()),
    Slider("rho", "ρ₊ − ρ₋ of LPC", np.linspace(-4, 4, 161).round(2).tolist()),
)


def document() -> str:
    """Return the complete page with the default setting; it loads no other file."""
    start = Setting()
    folder = files("unflip.cli.explorer")
    options = "".join(
        f"<option{' selected' * (name == start.targets)}>{name}</option>" for name in CHOICES
    )
    return Template((folder / "page.html").read_text(encoding="utf-8")).substitute(
        style=(folder / "page.css").read_text(encoding="utf-8"),
        script=(folder / "page.js").read_text(encoding="utf-8"),
        sliders="".join(slider.html(getattr(start, slider.name)) for slider in SLIDERS),
        options=options,
        answer=render(start),
    )


def read_setting(query: Mapping[str, str]) -> Setting:
    """Return the setting of a request; raises ValueError if a value is not valid."""
    numbers = {slider.name: _number(query, slider) for slider in SLIDERS}
    return Setting(
        n=int(numbers.pop("n")),
        p=int(numbers.pop("p")),
        **numbers,
        targets=query.get("targets", ""),
        fit_intercept=query.get("fit_intercept") == "true",
    )


def _number(query: Mapping[str, str], slider: Slider) -> float:
    text = query.get(slider.name, "")
    low = slider.steps[0]
    high = slider.steps[-1]
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{slider.name} = {text!r} must be a number.") from None
    if not low <= value <= high:
        raise ValueError(f"{slider.name} = {value:g} must lie between {low:g} and {high:g}.")
    return value
