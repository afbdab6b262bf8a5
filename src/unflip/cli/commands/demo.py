"""Command `unflip demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unflip._utils.atomic_files import write_atomically, write_together
from unflip.auditing.shown_rows import ShownRows
from unflip.cli.terminal import check_out, fail, say, working

_PAGE = Path("unflip-demo.html")
_PICTURE = Path("unflip-demo.png")
_THEORY_PICTURE = Path("unflip-demo-theory.png")


def demo(
    topic: Annotated[
        str | None,
        typer.Argument(
            metavar="[theory]",
            help="With theory: compare the paper's theory with a simulation instead.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Page (.html) to review the suspects.", show_default=str(_PAGE)),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            help="Picture (.png) of the results.", show_default=f"{_PICTURE} or {_THEORY_PICTURE}"
        ),
    ] = None,
) -> None:
    """Audit images with wrong labels, and compare the result with the truth.

    The images are handwritten digits that come with scikit-learn.
    """
    if topic is None:
        _show_digits(_PAGE if out is None else out, _PICTURE if picture is None else picture)
        return
    if topic != "theory":
        fail(f"demo takes the word theory or none, not {topic!r}: correct it.")
    if out is not None:
        fail("demo theory writes no page: name its picture with --picture, and omit --out.")
    _show_theory(_THEORY_PICTURE if picture is None else picture)


def _show_digits(out: Path, picture: Path) -> None:
    check_out(out, [".html", ".htm"])
    check_out(picture, [".png"])
    with working("Fitting classifiers to digits with wrong labels"):
        # Imported here, because these modules take a second to load.
        from unflip.auditing.html.audit_page import page
        from unflip.cli.demo import digits_audit, digits_picture, digits_text

        result = digits_audit.run()
        shown = ShownRows(
            images=list(result.images), source="scikit-learn's digits with wrong labels"
        )
        contents = {out: page(result.audit, shown=shown), picture: digits_picture.picture(result)}
        write_together(contents)
    say(digits_text.summary(result, out, picture))


def _show_theory(picture: Path) -> None:
    check_out(picture, [".png"])
    with working("Simulating noisy labels"):
        from unflip.cli.demo import theory_check, theory_picture, theory_text

        result = theory_check.run()
        write_atomically(picture, theory_picture.picture(result))
    theory_text.show(result)
    say(f"Picture: {picture}")
