"""The paper's table and figures, one module each, and the page that shows them.

In come settings. Out come tables, figures and a page beside what the paper reports. A new piece is
one new module with a `PIECE` (see `unflip.paper.piece.Piece`), named in `unflip.paper.registry`.
"""
