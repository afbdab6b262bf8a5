"""Command `unflip plan`."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from unflip import theory
from unflip.cli import arguments
from unflip.cli.terminal import fail, say_json
from unflip.labels.noise import NoiseModel


def plan(
    n: Annotated[int, typer.Option("--n", min=1, help="Number of rows.")],
    p: Annotated[int, typer.Option("--p", min=1, help="Number of features.")],
    mean_norm: Annotated[
        float,
        typer.Option(
            help="Half the distance between the class means, in standard deviations of a feature."
        ),
    ],
    eps_pos: Annotated[
        float, typer.Option(help="Noise rate of the positive class: share labelled negative.")
    ],
    eps_neg: Annotated[
        float, typer.Option(help="Noise rate of the negative class: share labelled positive.")
    ],
    pi_neg: Annotated[float, typer.Option(help="Prior of the negative class.")] = 0.5,
    reg: Annotated[
        float | None,
        typer.Option(help="Regularization strength.", show_default="the best one in this model"),
    ] = None,
    known_origin: Annotated[
        bool,
        typer.Option(
            "--known-origin", help="The origin is known to lie midway between the classes."
        ),
    ] = False,
    as_json: arguments.AsJson = False,
) -> None:
    """Predict the accuracy gain from additional rows or checked labels. Needs no data file.

    The input is n, p, the class distance and the noise rates. The model is
    two Gaussian classes with independent features.
    """
    try:
        noise = NoiseModel.binary(eps_pos=eps_pos, eps_neg=eps_neg, pi_neg=pi_neg)
        # Raise ArithmeticError, which is reported below, instead of computing with inf and NaN.
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            prediction = theory.plan(
                n=n,
                p=p,
                mean_norm=mean_norm,
                noise=noise,
                reg=np.inf if reg is None else reg,
                fit_intercept=not known_origin,
            )
            answer = _answer(prediction)
    except ValueError as error:
        fail(str(error))
    except ArithmeticError:
        options = f"--n {n} --p {p} --mean-norm {mean_norm:g}"
        if reg is not None:
            options += f" --reg {reg:g}"
        fail(f"{options} over- or underflows float64: give less extreme values.")
    if as_json:
        say_json(answer)
    else:
        typer.echo(_text(answer))


def _answer(prediction: theory.Plan) -> dict[str, Any]:
    n = prediction.n
    counts = dict.fromkeys(round(fraction * n) for fraction in (0.05, 0.2, 0.5))
    return {
        "n": n,
        "p": prediction.p,
        "accuracy": prediction.accuracy,
        "trained_on_clean_labels": prediction.oracle_accuracy,
        "infinitely_many_rows": prediction.bayes_accuracy,
        "effective_clean_labels": prediction.clean_rows,
        "more_rows": [
            {"rows": factor * n, "accuracy": float(prediction.accuracy_of(rows=factor * n))}
            for factor in (2, 5, 10)
        ],
        "checked_rows": [
            {
                "checked": count,
                "accuracy": float(prediction.accuracy_of(checked=count)),
                "equivalent_rows": prediction.equivalent_rows(count),
            }
            for count in counts
            if count > 0
        ],
    }


def _text(answer: dict[str, Any]) -> str:
    lines = [
        f"Expected accuracy on clean labels: {answer['accuracy']:.1%} now, "
        f"{answer['trained_on_clean_labels']:.1%} with clean training labels, "
        f"{answer['infinitely_many_rows']:.1%} with infinitely many rows.",
        f"Effective number of clean labels: {answer['effective_clean_labels']:.0f} of "
        f"{answer['n']} rows.",
        "With more rows at the same noise rates:",
        *(f"  {line['rows']:>10} rows     {line['accuracy']:.1%}" for line in answer["more_rows"]),
        "With randomly chosen rows checked and corrected:",
        *(
            f"  {line['checked']:>10} checked  {line['accuracy']:.1%}, equivalent to "
            f"{line['equivalent_rows']:.0f} more rows"
            for line in answer["checked_rows"]
        ),
    ]
    return "\n".join(lines)
