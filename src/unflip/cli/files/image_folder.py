"""Folders of images as tables: the file and the class, which is the sub-folder, of each image."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from unflip.cli.files.delimited import record
from unflip.cli.files.feature_columns import IMAGES
from unflip.cli.files.tables import Table
from unflip.features.image_features import ImageFeatures
from unflip.features.image_pixels import ENDINGS, UnreadableImageError, small_pixels

FILE = "file"  # column of files, which are the ids
LABEL = "label"  # column of sub-folders
# Images whose pixels are in memory at a time, 12 kB each; a choice.
_AT_A_TIME = 128
_N_NAMED = 5  # files that are named in a note
# Names of sub-folders that hold a part of the data each, not a class.
_SPLITS = frozenset({"train", "training", "val", "valid", "validation", "test", "testing"})


def read_folder(folder: Path) -> Table:
    """Return the files of a folder of images, and their sub-folders as labels.

    Rows are in the order of their paths. An image beside the sub-folders has no label. Hidden files
    are ignored.

    Parameters
    ----------
    folder : Path
        The folder.
    """
    files = sorted(_files_below(folder))
    images = [file for file in files if file.lower().endswith(ENDINGS)]
    if not images:
        raise ValueError(
            f"{folder} is a folder without images ({', '.join(ENDINGS)}): name a file, or a folder "
            "with a sub-folder of images for each class."
        )
    others = [file for file in files if not file.lower().endswith(ENDINGS)]
    notes = []
    if others:
        are = "1 file is" if len(others) == 1 else f"{len(others):,} files are"
        notes.append(
            f"{are} ignored, because the name does not end as images do: {_first(others)}."
        )
    return Table(
        name=str(folder),
        columns={
            FILE: images,
            LABEL: [file.split("/")[0] if "/" in file else "" for file in images],
        },
        images=[folder / file for file in images],
        notes=notes,
    )


def check_classes(table: Table) -> None:
    """Raise ValueError unless the sub-folders of a folder of images can be classes."""
    classes = {str(label) for label in table.columns[LABEL]} - {""}
    if len(classes) < 2:
        raise ValueError(
            f"{table.name} needs at least two sub-folders with images, but has {len(classes)}: put "
            "the images of each class into a sub-folder of its own."
        )
    if classes <= _SPLITS:
        first = sorted(classes)[0]
        raise ValueError(
            f"The sub-folders of {table.name} look like parts of the data, not like classes "
            f"({', '.join(sorted(classes))}): name one of them, such as {table.name}/{first}."
        )


def with_features(table: Table) -> Table:
    """Return a folder of images with their features; leave out those that cannot be read.

    Parameters
    ----------
    table : Table
        The folder.
    """
    described = ImageFeatures()
    parts = []
    rows = []
    unreadable = []
    for start in range(0, table.n_rows, _AT_A_TIME):
        pixels = []
        for row, path in enumerate(table.images[start : start + _AT_A_TIME], start):
            try:
                pixels.append(small_pixels(path, described.size))
                rows.append(row)
            except UnreadableImageError as error:
                unreadable.append(f"{table.columns[FILE][row]} ({error.reason})")
        if pixels:
            parts.append(described.transform(pixels))
    if not rows:
        raise ValueError(f"{table.name} has no image that can be read: {_first(unreadable)}.")
    notes = list(table.notes)
    if unreadable:
        notes.append(
            f"Images of {table.name} that cannot be read, and are left out: {len(unreadable):,} of "
            f"{len(table.images):,}, {_first(unreadable)}."
        )
    return replace(
        table,
        columns={name: [cells[row] for row in rows] for name, cells in table.columns.items()},
        images=[table.images[row] for row in rows],
        blocks={IMAGES: np.concatenate(parts)},
        notes=notes,
    )


def labels_table(table: Table, changes: Mapping[int, str]) -> bytes:
    """Return a CSV file with the file of each image and its label, some of them changed.

    Parameters
    ----------
    table : Table
        The folder.
    changes : mapping of int to str
        New label of each row that changes.
    """
    labels = [changes.get(row, label) for row, label in enumerate(table.columns[LABEL])]
    lines = [(FILE, LABEL), *zip(table.columns[FILE], labels, strict=True)]
    return "".join(record(line) + "\n" for line in lines).encode("utf-8", "surrogateescape")


def _files_below(folder: Path) -> list[str]:
    """Return the paths of all files relative to a folder, with slashes, without hidden ones."""
    found = []
    # Links to folders are followed for classes only: deeper ones could lead back.
    starts = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
    for start in starts:
        if not start.is_dir():
            found.append(start.name)
            continue
        for parent, folders, names in os.walk(start):
            folders[:] = [name for name in folders if not name.startswith(".")]
            inside = Path(parent).relative_to(folder).as_posix()
            found += [f"{inside}/{name}" for name in names if not name.startswith(".")]
    return found


def _first(names: Sequence[str]) -> str:
    more = ", ..." if len(names) > _N_NAMED else ""
    return ", ".join(names[:_N_NAMED]) + more
