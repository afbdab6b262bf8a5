"""Checked rows: the file that the page of an audit exports, as trusted labels of a table."""

from __future__ import annotations

from pathlib import Path

from unflip.auditing.checks_file import CheckedRows, n_unsure, read_checks, true_labels
from unflip.cli.files.label_column import LabelColumn, Labels, trusted_labels
from unflip.cli.files.row_matching import locate
from unflip.cli.files.tables import Table


def checks_path(trusted: str | None, table: Table) -> Path | None:
    """Return the file of checked rows that --trusted names; None if it names a column, or nothing.

    Parameters
    ----------
    trusted : str or None
        The option: a column goes before a file of the same name.
    table : Table
        The data.
    """
    if trusted is None or trusted in table.columns:
        return None
    path = Path(trusted)
    if path.is_file():
        return path
    if path.suffix.lower() == ".csv":
        raise ValueError(
            f"--trusted {trusted} is neither a file nor a column of {table.name}: "
            f"{table.column_names}."
        )
    return None


def checked_labels(path: Path, table: Table, labels: Labels, id_column: str | None) -> CheckedRows:
    """Return the true labels of a file of checked rows, with an entry for each row of the data.

    Parameters
    ----------
    path : Path
        The file of checked rows.
    table : Table
        The data.
    labels : Labels
        The observed labels or votes.
    id_column : str or None
        Column of row ids; None to match rows by number.
    """
    checks = read_checks(path)
    by_row = locate(checks, table, id_column, "check")
    observed = labels.texts.tolist() if isinstance(labels, LabelColumn) else None
    trusted = true_labels(by_row, observed, list(labels.counts), table.n_rows)
    return CheckedRows(trusted, n_unsure(checks))


def true_labels_of(
    trusted: str | None, table: Table, labels: Labels, id_column: str | None
) -> CheckedRows:
    """Return the true labels that --trusted names: those of a file of checked rows or of a column.

    Parameters
    ----------
    trusted : str or None
        The option.
    table : Table
        The data.
    labels : Labels
        The observed labels or votes.
    id_column : str or None
        Column of row ids; None to match checked rows by number.
    """
    path = checks_path(trusted, table)
    if path is not None:
        return checked_labels(path, table, labels, id_column)
    return CheckedRows(None if trusted is None else trusted_labels(table, trusted, labels))
