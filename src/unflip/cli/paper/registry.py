"""All pieces (tables and figures) that can be reproduced, in the paper's order."""

from __future__ import annotations

from unflip.cli.paper import fig1, fig2, fig3, fig4, fig5, fig6, fig7, fig8, fig9, table1
from unflip.cli.paper.piece import Piece

PIECES: dict[str, Piece] = {
    module.PIECE.name: module.PIECE
    for module in (table1, fig1, fig2, fig3, fig4, fig5, fig6, fig7, fig8, fig9)
}


def chosen(names: list[str]) -> list[Piece]:
    """Return the pieces with these names, in the paper's order; "all" means every piece."""
    for name in names:
        if name not in (*PIECES, "all"):
            raise ValueError(
                f"{name} is not a piece of the paper: choose from {', '.join(PIECES)}, or all."
            )
    return [piece for name, piece in PIECES.items() if name in names or "all" in names]
