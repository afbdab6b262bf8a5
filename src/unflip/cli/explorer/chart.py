"""Line charts as SVG text, fast enough to redraw at every move of a slider."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

import numpy as np
from matplotlib.ticker import MaxNLocator

from unflip._utils.typing import FloatArray
from unflip.plotting.style import FAINT, INK

# Size and margins of a chart, in SVG units; the chart scales with the page.
_WIDTH = 440
_HEIGHT = 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 16, 10, 44


@dataclass(frozen=True)
class Axis:
    """Range, ticks and name of an axis."""

    low: float
    high: float
    name: str
    percent: bool = False

    def ticks(self) -> list[float]:
        """Return round numbers within the range."""
        ticks = MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]).tick_values(self.low, self.high)
        slack = 1e-9 * (self.high - self.low)  # rounding error
        return [float(tick) for tick in ticks if self.low - slack <= tick <= self.high + slack]

    def written(self, tick: float) -> str:
        """Return a tick as text."""
        return f"{tick:.0%}" if self.percent else f"{tick + 0.0:.4g}".replace("-", "−")


@dataclass
class Chart:
    """A chart; what is added later covers what was added before."""

    x: Axis
    y: Axis
    title: str
    _parts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for tick in self.x.ticks():
            self._rule(self._across(tick), None)
            self._text(
                self._across(tick), _HEIGHT - _BOTTOM + 16, self.x.written(tick), "middle", FAINT
            )
        for tick in self.y.ticks():
            self._rule(None, self._up(tick))
            self._text(_LEFT - 6, self._up(tick) + 4, self.y.written(tick), "end", FAINT)
        self._text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 8, self.x.name, "middle", INK)

    def area(self, x: FloatArray, y: FloatArray, colour: str) -> None:
        """Draw a line and fill the area below it."""
        outline = self._points(
            np.concatenate([x[:1], x, x[-1:]]), np.concatenate([[0.0], y, [0.0]])
        )
        self._parts.append(f'<polygon points="{outline}" fill="{colour}" fill-opacity="0.35"/>')
        self.line(x, y, colour)

    def line(self, x: FloatArray, y: FloatArray, colour: str) -> None:
        """Draw a line."""
        self._parts.append(
            f'<polyline points="{self._points(x, y)}" fill="none" stroke="{colour}" '
            'stroke-width="2.2"/>'
        )

    def threshold(self, x: float, name: str) -> None:
        """Draw a dashed vertical line with a name at its top."""
        across = self._across(x)
        self._parts.append(
            f'<line x1="{across:.1f}" x2="{across:.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}" '
            f'stroke="{INK}" stroke-dasharray="4 3"/>'
        )
        self._text(across + 5, _TOP + 10, name, "start", INK)

    def point(self, x: float, y: float, colour: str, *, large: bool) -> None:
        """Draw a dot if it lies within the axes."""
        if self.x.low <= x <= self.x.high:
            radius = 7 if large else 4.5
            self._parts.append(
                f'<circle cx="{self._across(x):.1f}" cy="{self._up(y):.1f}" r="{radius}" '
                f'fill="{colour}" stroke="white" stroke-width="1.5"/>'
            )

    def svg(self) -> str:
        """Return the chart as an SVG element."""
        return (
            f'<svg class="unflip-chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
            f'aria-label="{escape(self.title)}">{"".join(self._parts)}</svg>'
        )

    def _across(self, x: float) -> float:
        return _LEFT + (x - self.x.low) / (self.x.high - self.x.low) * (_WIDTH - _LEFT - _RIGHT)

    def _up(self, y: float) -> float:
        fraction = (y - self.y.low) / (self.y.high - self.y.low)
        return _HEIGHT - _BOTTOM - fraction * (_HEIGHT - _TOP - _BOTTOM)

    def _points(self, x: FloatArray, y: FloatArray) -> str:
        pairs: Sequence[tuple[float, float]] = list(zip(x.tolist(), y.tolist(), strict=True))
        return " ".join(f"{self._across(a):.1f},{self._up(b):.1f}" for a, b in pairs)

    def _rule(self, across: float | None, up: float | None) -> None:
        x1, x2 = (_LEFT, _WIDTH - _RIGHT) if across is None else (across, across)
        y1, y2 = (_TOP, _HEIGHT - _BOTTOM) if up is None else (up, up)
        self._parts.append(
            f'<line x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}" stroke="#E3E3E3"/>'
        )

    def _text(self, x: float, y: float, text: str, anchor: str, colour: str) -> None:
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">'
            f"{escape(text)}</text>"
        )
