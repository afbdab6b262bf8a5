"""HTML page that compares every finished piece with the paper."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from unflip._utils.atomic_files import write_atomically
from unflip._utils.version import __version__
from unflip.cli.paper.piece import Column, Piece, Table
from unflip.cli.paper.store import PICTURE, Folder

PAGE = "index.html"


@dataclass(frozen=True)
class Section:
    """Content of the page for one piece."""

    piece: Piece
    quick: bool
    seconds: str
    picture: str  # data URI
    headings: list[str]
    kinds: list[str]  # of the columns: "number" or "text"
    rows: list[list[str]]
    notes: list[str]
    tables: list[str]  # file names


def write_page(pieces: Sequence[Piece], results: Path, skipped: Sequence[str] = ()) -> Path:
    """Write the page of all pieces that this version has finished in a folder; return its path.

    Parameters
    ----------
    pieces : sequence of Piece
        Pieces in the order of the page.
    results : Path
        Folder of the results, and of the page.
    skipped : sequence of str
        Sentences about skipped pieces.
    """
    sections = [
        section for piece in pieces if (section := _section(piece, Folder(results, piece.name)))
    ]
    environment = Environment(
        loader=PackageLoader("unflip.cli.paper"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    content = environment.get_template("page.html").render(
        sections=sections, skipped=list(skipped), version=__version__, picture=PICTURE
    )
    path = results / PAGE
    write_atomically(path, content.encode())
    return path


def _section(piece: Piece, folder: Folder) -> Section | None:
    manifest = folder.manifest()
    if manifest is None or manifest.version != __version__:
        return None
    tables = folder.tables(manifest)
    summary = piece.summary(tables)
    svg = (folder.path / f"{PICTURE}.svg").read_bytes()
    return Section(
        piece=piece,
        quick=manifest.quick,
        seconds=_duration(manifest.seconds),
        picture="data:image/svg+xml;base64," + base64.b64encode(svg).decode(),
        headings=[str(name).replace("_", " ") for name in summary],
        kinds=["number" if dtype.kind in "if" else "text" for dtype in summary.dtypes],
        rows=_cells(summary),
        notes=piece.notes(tables),
        tables=[name for name in manifest.files if name.endswith(".csv")],
    )


def _cells(table: Table) -> list[list[str]]:
    columns = [
        [_number_format(column).format(value) for value in column] for _, column in table.items()
    ]
    return [list(row) for row in zip(*columns, strict=True)]


def _number_format(column: Column) -> str:
    """Return one format for all numbers of a column, with as many digits as needed."""
    if column.dtype.kind != "f":
        return "{}"
    if (column.round(2) == column).all():
        return "{:g}"
    sizes = column.abs()
    if sizes[sizes > 0].min() < 0.01:
        return "{:.3g}"
    return "{:.1f}" if sizes.max() >= 20 else "{:.3f}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
