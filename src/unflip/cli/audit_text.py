"""The output of `unflip audit` on the terminal."""

from __future__ import annotations

import shlex
import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unflip.auditing import prose
from unflip.cli.file_audit import FileAudit
from unflip.cli.files.request import Request
from unflip.cli.files.tables import ending
from unflip.cli.terminal import describe_votes, on_one_line

_N_SHOWN = 10
_N_NAMED = 8
_WIDEST = 160
_LONGEST_LABEL = 24


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
    audit = found.audit
    parts = [
        _data(found),
        _wrapped(f"Label noise: {prose.noise(audit)}"),
        _wrapped(f"Expected accuracy: {prose.accuracy(audit)}"),
        _suspects(found),
        _unlabelled(found),
        _caution(found),
    ]
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
    text = f"{prepared.table.name}: {len(prepared.items)} {prepared.items.words}"
    votes = prepared.votes
    lines = [
        f"{text}, labels {counts}."
        if votes is None
        else f"{text}, {describe_votes(votes)}: {counts}.",
        f"Features: {prepared.features.with_dimension(prepared.rows.shape[1])}.",
    ]
    if prepared.features.left_out:
        why = " (not numeric, or only a row number)" if prepared.features.kind == "numeric" else ""
        lines.append(f"Columns not used: {_listed(prepared.features.left_out)}{why}.")
    return "\n".join(map(_wrapped, lines))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_N_NAMED]) + (", ..." if len(names) > _N_NAMED else "")


def _suspects(found: FileAudit) -> str:
    audit = found.audit
    lines = [line for line in found.suspect_rows if line["part"] in ("suspect", "doubtful")]
    text = f"Suspects: {prose.suspects(audit)}"
    n_doubtful = len(lines) - audit.n_suspects
    if n_doubtful > 0:
        labels = "label" if n_doubtful == 1 else "labels"
        text += f" For {n_doubtful} more {labels} another class is more likely."
    if not lines:
        return _wrapped(text)
    rows = " (rows are numbered from 0)" if found.prepared.items.column is None else ""
    return "\n".join([_wrapped(f"{text} Worst first{rows}:"), *_table(found, lines[:_N_SHOWN])])


def _unlabelled(found: FileAudit) -> str:
    proposals = found.proposals
    if len(proposals.rows) == 0:
        return ""
    labels, counts = np.unique(proposals.proposed, return_counts=True)
    each = ", ".join(
        f"{count} {label!r}" for label, count in zip(labels.tolist(), counts.tolist(), strict=True)
    )
    right = float(proposals.probability.sum())
    what = "label" if found.prepared.votes is None else "vote"
    text = (
        f"No {what}: {len(proposals.rows)} {found.prepared.items.words}. Proposed labels: {each}; "
        f"about {right:.0f} of them are expected to be right. Most certain first:"
    )
    lines = [line for line in found.suspect_rows if line["part"] == "unlabelled"][:3]
    return "\n".join([_wrapped(text), *_table(found, lines)])


def _caution(found: FileAudit) -> str:
    """Return the test of class-conditional noise, if the labels contradict it."""
    if not found.audit.dependence.p_value < prose.SURPRISING:
        return ""
    return _wrapped(f"Assumption: {prose.dependence(found.audit)}")


def _table(found: FileAudit, lines: list[dict[str, Any]]) -> list[str]:
    """Return a line for each row: name, observed and proposed label, probability, text."""
    names = [on_one_line(str(line["id"]), _LONGEST_LABEL) or f"row {line['row']}" for line in lines]
    moves = [
        f"{on_one_line(str(line['observed']), _LONGEST_LABEL) or '(none)'} -> "
        f"{on_one_line(str(line['proposed']), _LONGEST_LABEL)}"
        for line in lines
    ]
    table = []
    for line, name, move in zip(lines, names, moves, strict=True):
        start = f"  {name:<{max(map(len, names))}}  {move:<{max(map(len, moves))}}  {_probability(line):.3f}  "
        shown = on_one_line(found.shown(int(str(line["row"]))), _width() - len(start))
        table.append((start + shown).rstrip())
    return table


def _probability(line: dict[str, Any]) -> float:
    """Return P(label wrong), or P(proposed label right) if there is no label."""
    return float(
        line["probability_proposed" if line["part"] == "unlabelled" else "probability_wrong"]
    )


def _next(found: FileAudit, request: Request, out: Path | None, suspects: Path | None) -> str:
    steps = [*_deciding(found, request, out, suspects), *_rates_to_find(found, request)]
    return "\n".join(["Next steps:", *steps]) if steps else ""


def _deciding(
    found: FileAudit, request: Request, out: Path | None, suspects: Path | None
) -> list[str]:
    steps = _review(found, request, out) if len(found.audit.suspects) else []
    votes = found.prepared.votes is not None
    if suspects is not None and found.suspect_rows:
        decide = (
            ""
            if votes
            else (" Write accept or reject into its column 'decision' and pass it to unflip apply.")
        )
        steps.append(_step(f"{suspects} lists all suspects.{decide}"))
    if votes:
        steps.append(
            _step(
                "Put the true labels of reviewed rows into a column and name it with --trusted. "
                "They improve the estimated noise rates of each annotator."
            )
        )
    return steps


def _review(found: FileAudit, request: Request, out: Path | None) -> list[str]:
    if out is None:
        return [_step("Review the suspects: add --out report.html to get a page for that.")]
    if found.prepared.votes is not None:
        return [_step(f"Open {out} and review the suspects.")]
    text = f"Open {out}, review the suspects and export the decisions. Then apply them:"
    return [_step(text), f"      {_apply_command(request)}"]


def _rates_to_find(found: FileAudit, request: Request) -> list[str]:
    """Say how to replace a heuristic estimate of the noise rates."""
    if found.audit.noise_source != "anchor rows":
        return []
    rows, words = found.check_next, found.prepared.items.words
    first = ", ".join(
        on_one_line(found.name_of(row), _LONGEST_LABEL) or str(row) for row in rows[:5]
    )
    priors = "" if request.priors else ", or the true class proportions with --priors"
    return [
        _step(
            f"The noise rates are a heuristic estimate. To improve them, put the true labels of "
            f"{len(rows)} {words} into a column and name it with --trusted. The most informative "
            f"{words} are {first}, ... (--json lists all under check_next). Or pass the noise "
            f"rates with --eps{priors}."
        )
    ]


def _step(text: str) -> str:
    return _wrapped(f"- {text}", "  ")


def _apply_command(request: Request) -> str:
    """Return the command that applies decisions to a copy of the data, with the same options."""
    named = {
        "--text": request.text,
        "--embedding": request.embedding,
        "--eps": request.eps,
        "--priors": request.priors,
    }
    named |= {"--trusted": request.trusted, "--group": request.group, "--id": request.name}
    options = [
        word for option, value in named.items() if value is not None for word in (option, value)
    ]
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
