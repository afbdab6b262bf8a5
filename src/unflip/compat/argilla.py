"""Records for Argilla 2, and the responses that come back as labels.

Records are dictionaries, as `rg.Record.from_dict` takes and ``dataset.records.to_list()`` returns
them, so that this module does not need the argilla package.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

from numpy.typing import ArrayLike

from unflip.auditing.report import Audit
from unflip.compat.tool_rows import (
    AGENT,
    ReviewedLabels,
    ToolRow,
    read_json,
    row_in,
    rows_by_id,
    tool_rows,
    write_json,
)

_SUBMITTED = "submitted"  # status of a finished response; others are "draft" and "discarded"


def records(
    audit: Audit,
    rows: ArrayLike | None = None,
    *,
    data: Mapping[str, Sequence[Any]] | None = None,
    suggestions: bool = True,
    question: str = "label",
) -> list[dict[str, Any]]:
    """Return rows of an audit as records of Argilla.

    Each record has what is shown as ``fields``, the number of the row and its observed label as
    ``metadata``, and a suggestion: the proposed class with its probability.

    Parameters
    ----------
    audit : Audit
        The audit.
    rows : array-like of int, optional
        Rows to export, such as those of ``audit.check_next(100)``; by default the suspects, most
        likely wrong first.
    data : mapping of str to sequence, optional
        Fields: values of all rows by name, such as ``{"text": texts}``. By default the texts,
        images or cells of ``audit.shown``.
    suggestions : bool
        Whether to suggest a class. Omit it for rows that are checked to measure the noise, because
        annotators tend to accept suggestions.
    question : str
        Name of the label question of the Argilla dataset.

    Examples
    --------
    >>> from unflip import audit
    >>> from unflip.datasets import make_mixture
    >>> X, y = make_mixture(300, 20, mean_norm=3.0, random_state=0)
    >>> y[:30] = 1 - y[:30]
    >>> found = audit(X, y, noise={0: 0.1, 1: 0.1})
    >>> first = records(found, data={"text": [f"mail {row}" for row in range(300)]})[0]
    >>> first["id"], first["fields"], first["metadata"]
    ('1', {'text': 'mail 1'}, {'row': 1, 'observed': '1'})
    >>> first["suggestions"]["label"]["value"]
    '0'
    """
    return [_record(row, suggestions, question) for row in tool_rows(audit, rows, data)]


def _record(row: ToolRow, suggestions: bool, question: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"row": row.row}
    if row.observed is not None:
        metadata["observed"] = row.observed
    suggestion = {"value": row.proposed, "score": row.probability, "agent": AGENT}
    return {
        "id": str(row.row) if row.name is None else row.name,
        "fields": row.data,
        "metadata": metadata,
        "suggestions": {question: suggestion} if suggestions else {},
        "responses": {},
        "vectors": {},
    }


def write_records(audit: Audit, path: str | PathLike[str], **options: Any) -> None:
    """Write `records` as a JSON file, which ``dataset.records.from_json`` reads.

    Parameters
    ----------
    audit : Audit
        The audit.
    path : str or path
        File to write. An existing file is replaced only after the new one is complete.
    **options
        Parameters of `records`.
    """
    write_json(records(audit, **options), path)


def read_responses(
    source: Any,
    n_rows: int,
    *,
    classes: ArrayLike | None = None,
    ids: Sequence[Any] | None = None,
    question: str = "label",
) -> ReviewedLabels:
    """Read the responses of records.

    Drafts and discarded responses are left out. ``records.to_list()`` and ``to_json`` do not tell
    drafts from submitted responses: pass the records themselves, or
    ``records.to_list(flatten=True)``, if there may be any.

    Parameters
    ----------
    source : path, or iterable of records
        File of ``records.to_json``, or records: objects of Argilla, dictionaries of
        ``records.to_list``, flattened or not, or rows of ``records.to_datasets``.
    n_rows : int
        Number of rows of the data that the records come from.
    classes : array-like, optional
        The classes, such as ``audit.classes``: labels get their type, and others raise ValueError.
    ids : sequence, optional
        Id of each row: rows are found by the id of the record instead of its metadata "row".
    question : str
        Name of the label question.

    Returns
    -------
    ReviewedLabels
        ``.trusted`` for ``audit(..., trusted=)``, ``.votes`` for all answers.

    Examples
    --------
    >>> record = {"id": "mail 2", "fields": {"text": "…"}, "metadata": {"row": 2},
    ...           "responses": {"label": [{"value": "1", "user_id": "ann"}]}}
    >>> read_responses([record], n_rows=4, classes=[0, 1]).trusted
    array([None, None, 1, None], dtype=object)
    """
    exported = read_json(source, "source")
    rows = rows_by_id(ids)
    answers = (answer for record in exported for answer in _answers(record, rows, question))
    return ReviewedLabels.of(answers, n_rows, classes)


def _answers(
    record: Any, ids: Mapping[str, int] | None, question: str
) -> Iterator[tuple[int, str, str]]:
    """Yield row, annotator and label of each submitted response of a record."""
    if not isinstance(record, Mapping):
        record = _as_dictionary(record)
    metadata = record.get("metadata") or record
    for value, user, status in _responses(record, question):
        if value is None or status not in (None, _SUBMITTED):
            continue
        if not isinstance(value, str):
            raise ValueError(
                f"Record {record.get('id')} has the response {value!r}: name a label question, "
                "whose responses are single labels, with question=."
            )
        about = {"row": metadata.get("row"), "id": record.get("id")}
        yield row_in(about, ids, f"record {record.get('id')}"), str(user), value


def _responses(record: Mapping[str, Any], question: str) -> Iterator[tuple[Any, Any, Any]]:
    """Yield value, user and status of each response; the status is None if it is not known."""
    if "responses" in record:
        for response in (record["responses"] or {}).get(question, []):
            yield response["value"], response.get("user_id"), response.get("status")
        return
    flat = f"{question}.responses"
    values = record.get(flat) or []
    users = record.get(f"{flat}.users") or [None] * len(values)
    states = record.get(f"{flat}.status") or [None] * len(values)
    yield from zip(values, users, states, strict=True)


def _as_dictionary(record: Any) -> dict[str, Any]:
    """Return an Argilla record as a dictionary that keeps the status of responses."""
    responses: dict[str, list[dict[str, Any]]] = {}
    for response in record.responses:
        status = getattr(response.status, "value", response.status)
        answer = {"value": response.value, "user_id": str(response.user_id), "status": status}
        responses.setdefault(response.question_name, []).append(answer)
    return {"id": record.id, "metadata": dict(record.metadata), "responses": responses}
