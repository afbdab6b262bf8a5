"""What is under the sliders, as HTML: the predicted accuracy, its table, and two charts."""

from __future__ import annotations

from html import escape

from unflip.cli.explorer.answer import RHO_GRID, Answer, Setting, answer
from unflip.cli.explorer.chart import Axis, Chart
from unflip.plotting.style import COLOURS, INK, NEGATIVE, POSITIVE

_HEADROOM = 1.15  # of the score densities' axis


def render(setting: Setting) -> str:
    """Return the page's answer to a setting, or the sentence that says why there is none."""
    try:
        found = answer(setting)
    except ValueError as error:
        return refusal(str(error))
    return (
        f'<div class="unflip-answer"><div class="unflip-numbers">{_headline(found)}{_table(found)}</div>'
        f'<figure><figcaption>Scores of new rows: <b style="color:{_readable(NEGATIVE)}">negatives</b> and '
        f'<b style="color:{_readable(POSITIVE)}">positives</b></figcaption>{score_chart(found)}</figure>'
        f"<figure><figcaption>{_said_of_rho(found)}</figcaption>{rho_chart(found)}</figure></div>"
    )


def refusal(sentence: str) -> str:
    """Return what is shown where there is no answer."""
    return f'<div class="unflip-answer"><p class="unflip-refusal" role="alert">{escape(sentence)}</p></div>'


def percent(share: float) -> str:
    """Write an accuracy as the page does."""
    return f"{share:.2%}"


def score_chart(found: Answer) -> str:
    """Draw the densities of the scores and the threshold between them."""
    low, high = found.densities
    x = Axis(float(found.scores[0]), float(found.scores[-1]), "score of a new row")
    chart = Chart(
        x,
        Axis(0.0, _HEADROOM * float(max(low.max(), high.max())), ""),
        "Densities of scores by true class",
    )
    chart.area(found.scores, low, NEGATIVE)
    chart.area(found.scores, high, POSITIVE)
    chart.threshold(found.threshold, "threshold")
    return chart.svg()


def rho_chart(found: Answer) -> str:
    """Draw accuracy against ρ₊ − ρ₋, with a dot for each choice of targets."""
    x = Axis(float(RHO_GRID[0]), float(RHO_GRID[-1]), "ρ₊ − ρ₋")
    chart = Chart(x, Axis(0.0, 1.0, "", percent=True), "Accuracy against rho")
    chart.line(RHO_GRID, found.rho_accuracy, INK)
    # The chosen one last: it covers the others where they coincide.
    for name in sorted(found.variants, key=lambda name: name == found.setting.targets):
        large = name == found.setting.targets
        chart.point(found.marked[name], found.variants[name].accuracy, COLOURS[name], large=large)
    return chart.svg()


def _headline(found: Answer) -> str:
    return (
        f'<p class="unflip-headline"><output id="unflip-accuracy">{percent(found.chosen.accuracy)}</output> '
        "predicted on clean labels</p>"
    )


def _table(found: Answer) -> str:
    lines = [
        "<tr><th>targets</th><th>t₋</th><th>t₊</th><th>accuracy</th><th>at best "
        "threshold</th></tr>",
        *(_line(found, name) for name in found.variants),
        f'<tr><td>no flips</td><td></td><td></td><td id="unflip-oracle">{percent(found.oracle)}</td><td></td></tr>',
        f'<tr><td>n → ∞</td><td></td><td></td><td></td><td id="unflip-bayes">{percent(found.bayes)}</td></tr>',
    ]
    return f"<table>{''.join(lines)}</table>"


def _line(found: Answer, name: str) -> str:
    variant = found.variants[name]
    chosen = ' class="unflip-chosen"' if name == found.setting.targets else ""
    t_neg, t_pos = (f"{value:+.2f}".replace("-", "−") for value in variant.targets)
    return (
        f'<tr{chosen}><td><i style="background:{COLOURS[name]}"></i>{name}</td><td>{t_neg}</td><td>{t_pos}</td>'
        f'<td id="unflip-{name}">{percent(variant.accuracy)}</td>'
        f'<td id="unflip-{name}-best">{percent(variant.best_accuracy)}</td></tr>'
    )


def _said_of_rho(found: Answer) -> str:
    if found.setting.fit_intercept:
        return "Accuracy against ρ: with an intercept all targets give one direction, and differ in its length alone"
    best = f"{found.marked['optimized']:.2f}".replace("-", "−")
    return f"Accuracy against ρ: best at ρ₊ − ρ₋ = <span id='unflip-best-rho'>{best}</span>"


def _readable(colour: str) -> str:
    """Darken a colour of areas for text on white."""
    return f"color-mix(in srgb, {colour} 62%, black)"
