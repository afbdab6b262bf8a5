"""HTML below the sliders: the predicted accuracy, a table, and two charts."""

from __future__ import annotations

from html import escape

from unflip.cli.explorer.answer import RHO_GRID, Answer, Setting, answer
from unflip.cli.explorer.chart import Axis, Chart
from unflip.plotting.style import COLOURS, INK, NEGATIVE, POSITIVE


def render(setting: Setting) -> str:
    """Return the HTML for a setting, or an error message if the setting is not valid."""
    try:
        result = answer(setting)
    except ValueError as error:
        return error_message(str(error))
    return (
        '<div class="unflip-answer">'
        f'<div class="unflip-numbers">{_headline(result)}{_table(result)}</div>'
        "<figure><figcaption>Scores of new rows: "
        f'<b style="color:{_text_colour(NEGATIVE)}">negatives</b> and '
        f'<b style="color:{_text_colour(POSITIVE)}">positives</b></figcaption>'
        f"{score_chart(result)}</figure>"
        f"<figure><figcaption>{_rho_caption(result)}</figcaption>{rho_chart(result)}</figure></div>"
    )


def error_message(sentence: str) -> str:
    """Return an error as HTML."""
    return (
        '<div class="unflip-answer">'
        f'<p class="unflip-error" role="alert">{escape(sentence)}</p></div>'
    )


def percent(accuracy: float) -> str:
    """Return an accuracy as text."""
    return f"{accuracy:.2%}"


def score_chart(result: Answer) -> str:
    """Draw the densities of the scores and the threshold between them."""
    negative, positive = result.densities
    x = Axis(float(result.scores[0]), float(result.scores[-1]), "score of a new row")
    y = Axis(0.0, 1.15 * float(max(negative.max(), positive.max())), "")
    chart = Chart(x, y, "Densities of scores by true class")
    chart.area(result.scores, negative, NEGATIVE)
    chart.area(result.scores, positive, POSITIVE)
    chart.threshold(result.threshold, "threshold")
    return chart.svg()


def rho_chart(result: Answer) -> str:
    """Draw accuracy against ρ₊ − ρ₋, with one dot per kind of targets."""
    x = Axis(float(RHO_GRID[0]), float(RHO_GRID[-1]), "ρ₊ − ρ₋")
    chart = Chart(x, Axis(0.0, 1.0, "", percent=True), "Accuracy against rho")
    chart.line(RHO_GRID, result.rho_accuracy, INK)
    # The selected one last: it covers dots at the same place.
    for name in sorted(result.variants, key=lambda name: name == result.setting.targets):
        large = name == result.setting.targets
        chart.point(result.marked[name], result.variants[name].accuracy, COLOURS[name], large=large)
    return chart.svg()


def _headline(result: Answer) -> str:
    accuracy = percent(result.chosen.accuracy)
    return (
        f'<p class="unflip-headline"><output id="unflip-accuracy">{accuracy}</output> '
        "predicted on clean labels</p>"
    )


def _table(result: Answer) -> str:
    lines = [
        "<tr><th>targets</th><th>t₋</th><th>t₊</th><th>accuracy</th><th>at best "
        "threshold</th></tr>",
        *(_line(result, name) for name in result.variants),
        "<tr><td>clean labels</td><td></td><td></td>"
        f'<td id="unflip-oracle">{percent(result.oracle)}</td><td></td></tr>',
        "<tr><td>n → ∞</td><td></td><td></td><td></td>"
        f'<td id="unflip-bayes">{percent(result.bayes)}</td></tr>',
    ]
    return f"<table>{''.join(lines)}</table>"


def _line(result: Answer, name: str) -> str:
    variant = result.variants[name]
    chosen = ' class="unflip-chosen"' if name == result.setting.targets else ""
    t_neg, t_pos = (f"{value:+.2f}".replace("-", "−") for value in variant.targets)
    return (
        f'<tr{chosen}><td><i style="background:{COLOURS[name]}"></i>{name}</td>'
        f"<td>{t_neg}</td><td>{t_pos}</td>"
        f'<td id="unflip-{name}">{percent(variant.accuracy)}</td>'
        f'<td id="unflip-{name}-best">{percent(variant.best_accuracy)}</td></tr>'
    )


def _rho_caption(result: Answer) -> str:
    if result.setting.fit_intercept:
        return (
            "Accuracy against ρ: with an intercept all targets give the same direction and differ "
            "in scale only"
        )
    best = f"{result.marked['optimized']:.2f}".replace("-", "−")
    return f"Accuracy against ρ: best at ρ₊ − ρ₋ = <span id='unflip-best-rho'>{best}</span>"


def _text_colour(colour: str) -> str:
    """Return a darker colour, legible as text on white."""
    return f"color-mix(in srgb, {colour} 62%, black)"
