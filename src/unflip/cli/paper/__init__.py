"""Reproduction of the paper's table and figures, one module each, and the results page.

Input: settings. Output: tables, figures and a page that compares them with the paper. To add a
table or figure, write one module with a `PIECE` (see `unflip.cli.paper.piece.Piece`) and list it in
`unflip.cli.paper.registry`.
"""
