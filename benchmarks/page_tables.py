"""Markdown tables that scripts print and, on request, write into the documentation.

On a page, such a table is between two comments. The first names the command that makes it:
``<!-- table: python benchmarks/refinement.py -->``. The second is ``<!-- end of table -->``.
"""

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
_END = "<!-- end of table -->"


def markdown(rows):
    """Return the lines of a Markdown table; the first row is its header."""
    header, *others = [f"| {' | '.join(row)} |" for row in rows]
    return [header, "|" + "---|" * len(rows[0]), *others]


def show(page, command, rows, write):
    """Print a table, and write it into its page if ``write`` is true."""
    lines = markdown(rows)
    print("", *lines, "", sep="\n")
    if write:
        path = DOCS / page
        path.write_text(
            replaced(path.read_text(encoding="utf-8"), command, lines), encoding="utf-8"
        )
        print(f"  docs/{page}: written")


def replaced(text, command, lines):
    """Return the text of a page with new lines in the table of this command."""
    begin = f"<!-- table: {command} -->"
    table = re.compile(f"{re.escape(begin)}\n.*?\n{re.escape(_END)}", re.DOTALL)
    if len(table.findall(text)) != 1:
        raise ValueError(
            f"The page must have one table that begins with {begin} and ends with {_END}."
        )
    return table.sub(lambda _: "\n".join([begin, "", *lines, "", _END]), text)


def short(value, error=None, digits=3):
    """Format a proportion as .123, with its standard error if there is one."""
    text = f"{round(value, digits) + 0:.{digits}f}".replace("0.", ".", 1).replace("-", "−")
    return text if error is None else f"{text} ± {short(error, digits=digits)}"
