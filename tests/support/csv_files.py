"""Random CSV files, with all ways to write a cell, and cells with separators and line ends."""

import random
from dataclasses import dataclass

# fmt: off
PIECES = [
    "a", "1.5", "-", " ", "é", "'", "\x00", "\u2028", "\x1c", "\ufeff", '12" vinyl', '"', '""',
    ",", ";", "\t", "|", "\n", "\r\n", "\r", "good, cheap, fast",
]
# fmt: on
SEPARATORS = ",;\t|"


@dataclass(frozen=True)
class File:
    """A CSV file, with its expected cells, and changes of a column.

    Attributes
    ----------
    content : bytes
        The file.
    columns : dict of str to list of str
        Its cells.
    column : str
        The column to change.
    changes : dict of int to str
        New cells of that column.
    changed : bytes
        The file with these cells, and all other bytes unchanged.
    """

    content: bytes
    columns: dict
    column: str
    changes: dict
    changed: bytes


def files(seed, n):
    """Yield n files."""
    for number in range(n):
        yield draw(random.Random(seed * 1_000_003 + number))


def draw(rng):
    """Draw a file."""
    n_columns = rng.randint(1, 5)
    n_rows = rng.randint(1, 5)
    separator = rng.choice(SEPARATORS) if n_columns > 1 else ","
    header = [f"c{j}" if rng.random() < 0.7 else cell(rng) + f'{j}"' for j in range(n_columns)]
    rows = [[cell(rng) for _ in header] for _ in range(n_rows)]
    place = rng.randrange(n_columns)
    changes = {row: cell(rng) for row in rng.sample(range(n_rows), rng.randint(1, n_rows))}
    mark = rng.choice(["", "\ufeff"])
    end = rng.choice(["\n", "\r\n", "\r"])
    lines = [[quoted(name) if '"' in name else name for name in header]]
    lines += [
        [as_written(text, separator, n_columns == 1 or rng.random() < 0.3) for text in row]
        for row in rows
    ]
    last = rng.choice(["", end, end * 3])
    old = mark + end.join(map(separator.join, lines)) + last
    for row, text in changes.items():
        in_quotes = lines[row + 1][place].startswith('"') or text == "" or '"' in text
        lines[row + 1][place] = as_written(text, separator, in_quotes)
    new = mark + end.join(map(separator.join, lines)) + last
    columns = {name: [row[j] for row in rows] for j, name in enumerate(header)}
    return File(old.encode(), columns, header[place], changes, new.encode())


def cell(rng):
    """Draw a cell of up to three pieces."""
    return "".join(rng.choices(PIECES, k=rng.randint(0, 3)))


def quoted(text):
    """Return a cell in quotes."""
    return '"' + text.replace('"', '""') + '"'


def as_written(text, separator, in_quotes):
    """Return a cell as written in a file, in quotes if asked or needed."""
    needed = text.startswith('"') or any(letter in text for letter in f"{separator}\r\n")
    return quoted(text) if needed or in_quotes else text
