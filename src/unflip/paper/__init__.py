"""The paper's table and figures, remade: one module for each.

To add one: write a module with a `PIECE` (see `unflip.paper.piece.Piece`) and name it in `unflip.paper.registry`.
"""
