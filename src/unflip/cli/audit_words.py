"""What `unflip audit` says: how noisy, what that costs, which labels look wrong, and what to do."""

from __future__ import annotations

import shlex
import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unflip.auditing.report import NO_SIGNAL
from unflip.cli.talk import on_one_line, said_of_votes
from unflip.files.auditing import FileAudit, Request, next_checks, suspect_rows
from unflip.files.tables import ending

_N_SHOWN = 10
_N_NAMED = 8
_SURPRISING = 0.01
_WIDEST = 160
_LONGEST_LABEL = 24
_SOURCES = {
    "given": "as given",
    "trusted rows": "read from the rows with true labels",
    "mixture": "read from how the rows lie",
    "anchor rows": "a guess, from the labels of the surest rows",
    "votes": "read from the votes and the rows together",
}


def summary(found: FileAudit, request: Request, out: Path | None, suspects: Path | None) -> str:
    """Return the summary of an audit.

    Parameters
    ----------
    found : FileAudit
        What was found.
    request : Request
        What was asked.
    out, suspects : Path or None
        The page and the table that were written.
    """
    parts = [_data(found), _noise(found), _cost(found), _suspects(found), _unlabelled(found), _caution(found)]
    return "\n\n".join(part for part in (*parts, _next(found, request, out, suspects)) if part)


def _width() -> int:
    return min(shutil.get_terminal_size().columns, _WIDEST)


def _wrapped(sentence: str, indent: str = "") -> str:
    return textwrap.fill(
        sentence,
        _width(),
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _data(found: FileAudit) -> str:
    prepared = found.prepared
    counts = _listed([f"{count} {label!r}" for label, count in prepared.labels.counts.items()])
    said = f"{prepared.table.name}: {len(prepared.items)} {prepared.items.words}"
    votes = prepared.votes
    lines = [
        f"{said}, labels {counts}." if votes is None else f"{said}, {said_of_votes(votes)}: {counts}.",
        f"Features: {prepared.features.with_dimension(prepared.rows.shape[1])}.",
    ]
    if prepared.features.left_out:
        why = " (no numbers, or a mere count of the rows)" if prepared.features.kind == "numeric" else ""
        lines.append(f"Columns not used: {_listed(prepared.features.left_out)}{why}.")
    return "\n".join(map(_wrapped, lines))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_N_NAMED]) + (", ..." if len(names) > _N_NAMED else "")


def _noise(found: FileAudit) -> str:
    audit = found.audit
    rates = _listed(
        [
            f"{1 - audit.noise.transition[a, a]:.0%}{_doubt(float(audit.noise_std[a, a]))} of the true {label!r}"
            for a, label in enumerate(audit.classes.tolist())
        ]
    )
    n, wrong = int(audit.evidence.labelled.sum()), f"{audit.expected_wrong:.0f} ± {audit.expected_wrong_std:.0f}"
    return _wrapped(
        f"How noisy: about {wrong} of {n} {_labels(found)} are wrong. Labelled otherwise are {rates}. "
        f"These rates are {_source(found)}."
    )


def _source(found: FileAudit) -> str:
    if found.prepared.votes is not None and found.audit.noise_source == "given":
        return "what the given rates of each vote lead to"
    return _SOURCES[found.audit.noise_source]


def _labels(found: FileAudit) -> str:
    """Return what is audited: the labels, or those that most votes favour."""
    return "labels" if found.prepared.votes is None else "majority labels"


def _doubt(error: float) -> str:
    return f" ± {error:.0%}" if error > 0 else ""


def _cost(found: FileAudit) -> str:
    audit = found.audit
    clean = audit.accuracy_after(len(audit.evidence.codes))
    instead = "" if np.isnan(clean) else f"; about {clean:.1%} were every label right"
    now = f"{audit.expected_accuracy:.1%} ± {audit.expected_accuracy_std:.1%}"
    chance = "" if audit.evidence.has_signal else f" {NO_SIGNAL}"
    return _wrapped(f"What it costs: a classifier fitted to these rows gets {now} of new rows right{instead}.{chance}")


def _suspects(found: FileAudit) -> str:
    audit = found.audit
    lines = [line for line in suspect_rows(found) if line["part"] in ("suspect", "doubtful")]
    said = f"Suspects: {audit.summary['Suspects']}"
    more = len(lines) - audit.n_suspects
    if more > 0:
        said += f" {more}{' more' * (audit.n_suspects > 0)} {'is' if more == 1 else 'are'} in doubt."
    if not lines:
        return _wrapped(said)
    rows = ", rows counted from 0" if found.prepared.items.column is None else ""
    return "\n".join([_wrapped(f"{said} The worst{rows}:"), *_table(found, lines[:_N_SHOWN])])


def _unlabelled(found: FileAudit) -> str:
    proposals = found.proposals
    if len(proposals.rows) == 0:
        return ""
    labels, counts = np.unique(proposals.proposed, return_counts=True)
    each = ", ".join(f"{count} {label!r}" for label, count in zip(labels.tolist(), counts.tolist(), strict=True))
    right = float(proposals.probability.sum())
    what, rows = "label" if found.prepared.votes is None else "vote", found.prepared.items.words
    said = f"No {what}: {len(proposals.rows)} {rows} have none; proposed are {each}, of which about {right:.0f} right."
    lines = [line for line in suspect_rows(found) if line["part"] == "unlabelled"][:3]
    return "\n".join([_wrapped(f"{said} The surest:"), *_table(found, lines)])


def _table(found: FileAudit, lines: list[dict[str, Any]]) -> list[str]:
    """Return a line for each row, in columns: its name, its label and the proposed one, how sure that is, its text."""
    names = [on_one_line(str(line["id"]), _LONGEST_LABEL) or f"row {line['row']}" for line in lines]
    moves = [
        f"{on_one_line(str(line['observed']), _LONGEST_LABEL) or '(none)'} -> "
        f"{on_one_line(str(line['proposed']), _LONGEST_LABEL)}"
        for line in lines
    ]
    table = []
    for line, name, move in zip(lines, names, moves, strict=True):
        start = f"  {name:<{max(map(len, names))}}  {move:<{max(map(len, moves))}}  {_sure(line):.3f}  "
        shown = on_one_line(found.shown(int(str(line["row"]))), _width() - len(start))
        table.append((start + shown).rstrip())
    return table


def _sure(line: dict[str, Any]) -> float:
    """How sure it is that a label is wrong, or, where there is none, that the proposed one is right."""
    return float(line["probability_proposed" if line["part"] == "unlabelled" else "probability_wrong"])


def _caution(found: FileAudit) -> str:
    test = found.audit.dependence
    if np.isnan(test.p_value) or test.p_value >= _SURPRISING:
        return ""
    return _wrapped(
        f"Take care: labels are not wrong at random within a class (p = {test.p_value:.1g}), so the probabilities are "
        "too sure; the order of the suspects is still useful."
    )


def _next(found: FileAudit, request: Request, out: Path | None, suspects: Path | None) -> str:
    steps = [*_deciding(found, request, out, suspects), *_rates_to_find(found, request)]
    return "\n".join(["What next:", *steps]) if steps else ""


def _deciding(found: FileAudit, request: Request, out: Path | None, suspects: Path | None) -> list[str]:
    steps = _looking(found, request, out) if len(found.audit.suspects) else []
    votes = found.prepared.votes is not None
    if suspects is not None and suspect_rows(found):
        decide = "" if votes else " With accept or reject in its column 'decision', unflip apply takes it, too."
        steps.append(_step(f"{suspects} lists all.{decide}"))
    if votes:
        steps.append(
            _step(
                "Put the true labels that you find into a column of their own and name it with --trusted: they are "
                "believed, and tell how each worker votes."
            )
        )
    return steps


def _looking(found: FileAudit, request: Request, out: Path | None) -> list[str]:
    if out is None:
        return [
            _step("Look through the suspects: with --out report.html the same command makes a page to decide on each.")
        ]
    if found.prepared.votes is not None:
        return [_step(f"Open {out} and look through the suspects.")]
    said = f"Open {out}, decide on the suspects and save the decisions. A copy of the data with them:"
    return [_step(said), f"      {_apply_command(request)}"]


def _rates_to_find(found: FileAudit, request: Request) -> list[str]:
    """Say how to replace a guess of the rates, without what was given already."""
    if found.audit.noise_source != "anchor rows":
        return []
    rows, words = next_checks(found), found.prepared.items.words
    first = ", ".join(on_one_line(found.name_of(row), _LONGEST_LABEL) or str(row) for row in rows[:5])
    shares = "" if request.priors else ", or the true shares with --priors"
    return [
        _step(
            f"The rates are a guess. Better: put the true labels of {len(rows)} {words} into a column of their own and "
            f"name it with --trusted. The {words} that tell most are {first}, ...: --json lists "
            f"them all under check_next. Or give the rates with --eps{shares}."
        )
    ]


def _step(said: str) -> str:
    return _wrapped(f"- {said}", "  ")


def _apply_command(request: Request) -> str:
    """Return the command that puts decisions into a copy of the data, with the options of the audit."""
    given = {"--text": request.text, "--embedding": request.embedding, "--eps": request.eps, "--priors": request.priors}
    given |= {"--trusted": request.trusted, "--group": request.group, "--id": request.name}
    options = [word for option, value in given.items() if value is not None for word in (option, value)]
    options += [word for column in request.ignore for word in ("--ignore", column)]
    clean = f"clean{ending(request.path)}" + ".gz" * (request.path.suffix.lower() == ".gz")
    words = [
        "unflip",
        "apply",
        str(request.path),
        "decisions.csv",
        "--out",
        clean,
        "--label",
        *request.labels,
        *options,
    ]
    return shlex.join(words)
