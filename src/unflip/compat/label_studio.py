"""Tasks for Label Studio, and the annotations that come back as labels.

`tasks` and `write_tasks` export rows of an audit as tasks with predictions, `labeling_config`
returns the interface of a project that shows them, and `read_annotations` reads the reviewed ones
from Label Studio's export "JSON".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any
from xml.sax.saxutils import quoteattr

from numpy.typing import ArrayLike

from unflip.auditing.report import Audit
from unflip.compat.tool_rows import (
    AGENT,
    ReviewedLabels,
    ToolRow,
    as_classes,
    read_json,
    row_in,
    rows_by_id,
    tool_rows,
    write_json,
)

# Elements of the interface by the name of the shown value; others are shown as text.
_ELEMENTS = {"image": "Image", "audio": "Audio", "video": "Video"}


def tasks(
    audit: Audit,
    rows: ArrayLike | None = None,
    *,
    data: Mapping[str, Sequence[Any]] | None = None,
    predictions: bool = True,
    from_name: str = "label",
    to_name: str | None = None,
) -> list[dict[str, Any]]:
    """Return rows of an audit as tasks of Label Studio.

    Each task has ``data`` with the number of the row, its id, its observed label and what is shown,
    and a prediction: the proposed class with its probability.

    Parameters
    ----------
    audit : Audit
        The audit.
    rows : array-like of int, optional
        Rows to export, such as those of ``audit.check_next(100)``; by default the suspects, most
        likely wrong first.
    data : mapping of str to sequence, optional
        What to show: values of all rows by name, such as ``{"text": texts}`` or
        ``{"image": addresses}``. By default the texts, images or cells of ``audit.shown``.
    predictions : bool
        Whether to propose a class. Omit it for rows that are checked to measure the noise, because
        annotators tend to accept proposals.
    from_name, to_name : str
        Names of the choices and of the shown object in the interface of the project; by default
        "label" and the first name of `data`, as in `labeling_config`.

    Examples
    --------
    >>> from unflip import audit
    >>> from unflip.datasets import make_mixture
    >>> X, y = make_mixture(300, 20, mean_norm=3.0, random_state=0)
    >>> y[:30] = 1 - y[:30]
    >>> found = audit(X, y, noise={0: 0.1, 1: 0.1})
    >>> texts = [f"mail {row}" for row in range(300)]
    >>> first = tasks(found, data={"text": texts})[0]
    >>> first["data"]
    {'row': 1, 'observed': '1', 'text': 'mail 1'}
    >>> first["predictions"][0]["result"][0]["value"]
    {'choices': ['0']}
    """
    return [_task(row, predictions, from_name, to_name) for row in tool_rows(audit, rows, data)]


def _task(row: ToolRow, predictions: bool, from_name: str, to_name: str | None) -> dict[str, Any]:
    about: dict[str, Any] = {"row": row.row}
    if row.name is not None:
        about["id"] = row.name
    if row.observed is not None:
        about["observed"] = row.observed
    task: dict[str, Any] = {"data": about | row.data}
    if predictions:
        result = {
            "from_name": from_name,
            "to_name": next(iter(row.data)) if to_name is None else to_name,
            "type": "choices",
            "value": {"choices": [row.proposed]},
        }
        task["predictions"] = [
            {"model_version": AGENT, "score": row.probability, "result": [result]}
        ]
    return task


def write_tasks(audit: Audit, path: str | PathLike[str], **options: Any) -> None:
    """Write `tasks` as a JSON file, which Label Studio imports as it is.

    Parameters
    ----------
    audit : Audit
        The audit.
    path : str or path
        File to write. An existing file is replaced only after the new one is complete.
    **options
        Parameters of `tasks`.
    """
    write_json(tasks(audit, **options), path)


def labeling_config(classes: ArrayLike, shown: str = "text", *, from_name: str = "label") -> str:
    """Return the labeling interface of a project for these tasks, as XML.

    Parameters
    ----------
    classes : array-like of shape (k,)
        The classes, such as ``audit.classes``.
    shown : str
        Name of the value that is shown: "text", "image", "audio", "video" or another one, which is
        shown as text.
    from_name : str
        Name of the choices.

    Examples
    --------
    >>> print(labeling_config(["ham", "spam"]))
    <View>
      <Text name="text" value="$text"/>
      <Choices name="label" toName="text" choice="single">
        <Choice value="ham"/>
        <Choice value="spam"/>
      </Choices>
    </View>
    """
    element = _ELEMENTS.get(shown, "Text")
    name = quoteattr(shown)
    choices = [f"    <Choice value={quoteattr(str(each))}/>" for each in as_classes(classes)]
    lines = [
        "<View>",
        f"  <{element} name={name} value={quoteattr('$' + shown)}/>",
        f'  <Choices name={quoteattr(from_name)} toName={name} choice="single">',
        *choices,
        "  </Choices>",
        "</View>",
    ]
    return "\n".join(lines)


def read_annotations(
    source: str | PathLike[str] | Sequence[Mapping[str, Any]],
    n_rows: int,
    *,
    classes: ArrayLike | None = None,
    ids: Sequence[Any] | None = None,
    from_name: str = "label",
) -> ReviewedLabels:
    """Read the annotations of Label Studio's export "JSON".

    Skipped tasks (``was_cancelled``) and annotations without a choice are left out.

    Parameters
    ----------
    source : path, or list of dict
        The exported file, or its tasks.
    n_rows : int
        Number of rows of the data that the tasks come from.
    classes : array-like, optional
        The classes, such as ``audit.classes``: labels get their type, and others raise ValueError.
    ids : sequence, optional
        Id of each row: rows are found by the "id" of the task instead of its "row".
    from_name : str
        Name of the choices in the interface of the project.

    Returns
    -------
    ReviewedLabels
        ``.trusted`` for ``audit(..., trusted=)``, ``.votes`` for all answers.

    Examples
    --------
    >>> answer = {"from_name": "label", "type": "choices", "value": {"choices": ["1"]}}
    >>> task = {"id": 7, "data": {"row": 2, "text": "…"},
    ...         "annotations": [{"completed_by": 1, "was_cancelled": False, "result": [answer]}]}
    >>> read_annotations([task], n_rows=4, classes=[0, 1]).trusted
    array([None, None, 1, None], dtype=object)
    """
    exported = read_json(source, "source")
    rows = rows_by_id(ids)
    answers = (answer for task in exported for answer in _answers(task, rows, from_name))
    return ReviewedLabels.of(answers, n_rows, classes)


def _answers(
    task: Any, ids: Mapping[str, int] | None, from_name: str
) -> Iterator[tuple[int, str, str]]:
    """Yield row, annotator and label of each annotation of a task."""
    if not isinstance(task, Mapping) or "data" not in task or "annotations" not in task:
        raise ValueError(
            "The tasks have no 'data' and 'annotations': use the export format JSON of Label "
            "Studio, not JSON-MIN or CSV."
        )
    place = f"task {task.get('id')}"
    for annotation in task["annotations"]:
        if annotation.get("was_cancelled"):
            continue
        for result in annotation.get("result", []):
            if result.get("type") != "choices" or result.get("from_name") != from_name:
                continue
            choices = result["value"].get("choices", [])
            if len(choices) > 1:
                raise ValueError(
                    f"An annotation of {place} has several choices {choices}: use "
                    'choice="single" in the labeling interface.'
                )
            for choice in choices:
                row = row_in(task["data"], ids, place)
                yield row, _annotator(annotation.get("completed_by")), str(choice)


def _annotator(completed_by: Any) -> str:
    """Return the name of an annotator: a number or e-mail, or in some exports a table of both."""
    if isinstance(completed_by, Mapping):
        return str(completed_by.get("email") or completed_by.get("id"))
    return str(completed_by)
