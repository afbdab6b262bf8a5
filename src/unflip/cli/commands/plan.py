"""unflip plan."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from unflip import theory
from unflip.cli import arguments
from unflip.cli.terminal import fail, say_json
from unflip.labels.noise import NoiseModel

_GROWTHS = (2, 5, 10)
_SHARES = (0.05, 0.2, 0.5)


def plan(
    n: Annotated[int, typer.Option("--n", min=1, help="Rows.")],
    p: Annotated[int, typer.Option("--p", min=1, help="Features.")],
    mean_norm: Annotated[
        float,
        typer.Option(
            help="Half the distance between the class means, in standard deviations of a feature."
        ),
    ],
    eps_pos: Annotated[
        float, typer.Option(help="Share of the positive class that is labelled negative.")
    ],
    eps_neg: Annotated[
        float, typer.Option(help="Share of the negative class that is labelled positive.")
    ],
    pi_neg: Annotated[float, typer.Option(help="True share of the negative class.")] = 0.5,
    reg: Annotated[
        float | None, typer.Option(help="Ridge penalty.", show_default="the best one in this model")
    ] = None,
    known_origin: Annotated[
        bool,
        typer.Option(
            "--known-origin", help="The origin is known to lie midway between the classes."
        ),
    ] = False,
    as_json: arguments.AsJson = False,
) -> None:
    """Tell what more rows, checked rows or cleaner labels would bring, before any effort is made.

    For two Gaussian classes with independent features; no data are needed.
    """
    try:
        noise = NoiseModel.binary(eps_pos=eps_pos, eps_neg=eps_neg, pi_neg=pi_neg)
        penalty = np.inf if reg is None else reg
        with np.errstate(
            over="raise", divide="raise", invalid="raise"
        ):  # what is no number is an error, said below
            made = theory.plan(
                n=n,
                p=p,
                mean_norm=mean_norm,
                noise=noise,
                reg=penalty,
                fit_intercept=not known_origin,
            )
            answer = _answer(made)
    except ValueError as error:
        fail(str(error))
    except ArithmeticError:
        given = f"--n {n} --p {p} --mean-norm {mean_norm:g}" + (
            "" if reg is None else f" --reg {reg:g}"
        )
        fail(
            f"{given} leads to numbers that are too large or too small to compute with: give less "
            "extreme ones."
        )
    if as_json:
        say_json(answer)
    else:
        typer.echo(_words(made, answer))


def _answer(made: theory.Plan) -> dict[str, Any]:
    checked = {round(share * made.n): share for share in _SHARES}
    return {
        "n": made.n,
        "p": made.p,
        "accuracy": made.accuracy,
        "all_labels_right": made.oracle_accuracy,
        "infinitely_many_rows": made.bayes_accuracy,
        "worth_clean_rows": made.clean_rows,
        "more_rows": [
            {"rows": g * made.n, "accuracy": float(made.accuracy_of(rows=g * made.n))}
            for g in _GROWTHS
        ],
        "checked_rows": [
            {
                "checked": m,
                "accuracy": float(made.accuracy_of(checked=m)),
                "worth_rows": made.worth_in_rows(m),
            }
            for m in checked
            if m > 0
        ],
    }


def _words(made: theory.Plan, answer: dict[str, Any]) -> str:
    lines = [
        f"Accuracy to expect on clean labels: {made.accuracy:.1%} now, {made.oracle_accuracy:.1%} "
        f"with every label right, {made.bayes_accuracy:.1%} with infinitely many rows.",
        f"These {made.n} rows are worth {made.clean_rows:.0f} with clean labels.",
        "More rows, labelled as they are now:",
        *(f"  {line['rows']:>10} rows     {line['accuracy']:.1%}" for line in answer["more_rows"]),
        "Labels of rows picked at random checked and set right:",
        *(
            f"  {line['checked']:>10} checked  {line['accuracy']:.1%}, as {line['worth_rows']:.0f} "
            "more rows would give"
            for line in answer["checked_rows"]
        ),
    ]
    return "\n".join(lines)
