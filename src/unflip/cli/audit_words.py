"""What `unflip audit` says: how noisy, what that costs, which labels look wrong, and what to do."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import numpy as np

from unflip.cli.talk import on_one_line
from unflip.files.auditing import FileAudit, Request, suspect_rows

_N_SHOWN = 10
_SURPRISING = 0.01
_WIDEST = 160
_LONGEST_LABEL = 24
_SOURCES = {
    "given": "as given",
    "trusted rows": "read from the rows with true labels",
    "mixture": "read from how the rows lie",
    "anchor rows": "a guess, from the labels of the surest rows",
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
    parts = [_data(found), _noise(found), _cost(found), _suspects(found), _unlabelled(found), _assumption(found)]
    return "\n\n".join(part for part in (*parts, _next(found, request, out, suspects)) if part)


def _data(found: FileAudit) -> str:
    prepared = found.prepared
    counts = ", ".join(f"{count} {label!r}" for label, count in list(prepared.labels.counts.items())[:8])
    lines = [
        f"{prepared.table.name}: {prepared.table.n_rows} rows, labels {counts}.",
        f"Features: {prepared.features}.",
    ]
    if prepared.features.left_out:
        left = ", ".join(prepared.features.left_out[:8])
        lines.append(f"Not used: {left} (no numbers, or a mere count of the rows).")
    return "\n".join(lines) + "\n"


def _noise(found: FileAudit) -> str:
    audit = found.audit
    n = len(audit.evidence.codes)
    rates = ", ".join(
        f"{1 - audit.noise.transition[a, a]:.0%}{_doubt(float(audit.noise_std[a, a]))} of the true {label!r}"
        for a, label in enumerate(audit.classes.tolist())
    )
    wrong = f"about {audit.expected_wrong:.0f} ± {audit.expected_wrong_std:.0f} of {n} labels are wrong"
    return f"How noisy: {wrong}.\n  Labelled otherwise: {rates} ({_SOURCES[audit.noise_source]})."


def _doubt(error: float) -> str:
    return f" ± {error:.0%}" if error > 0 else ""


def _cost(found: FileAudit) -> str:
    audit = found.audit
    clean = audit.accuracy_after(len(audit.evidence.codes))
    instead = "" if np.isnan(clean) else f"; about {clean:.1%} were every label right"
    now = f"{audit.expected_accuracy:.1%} ± {audit.expected_accuracy_std:.1%}"
    return f"What it costs: a classifier fitted to these rows gets {now} of new rows right{instead}."


def _suspects(found: FileAudit) -> str:
    audit = found.audit
    if len(audit.suspects) == 0:
        return "Suspects: no label looks wrong."
    few = (
        f"Suspects: {audit.n_suspects} labels look wrong (about {audit.false_discovery_rate:.0%} of them will be right)"
    )
    more = len(audit.suspects) - audit.n_suspects
    others = f", {more} more are in doubt" if more > 0 else ""
    lines = [line for line in suspect_rows(found) if line["part"] != "unlabelled"][:_N_SHOWN]
    return "\n".join([f"{few}{others}. The worst:", *_table(found, lines, "probability_wrong")])


def _unlabelled(found: FileAudit) -> str:
    proposals = found.proposals
    if len(proposals.rows) == 0:
        return ""
    labels, counts = np.unique(proposals.proposed, return_counts=True)
    each = ", ".join(f"{count} {label!r}" for label, count in zip(labels.tolist(), counts.tolist(), strict=True))
    right = float(proposals.probability.sum())
    said = f"No label: {len(proposals.rows)} rows have none; proposed are {each}, of which about {right:.0f} right."
    lines = [line for line in suspect_rows(found) if line["part"] == "unlabelled"][:3]
    return "\n".join([f"{said} The surest:", *_table(found, lines, "probability_proposed")])


def _table(found: FileAudit, lines: list[dict[str, object]], probability: str) -> list[str]:
    """Return a line for each row, in columns: its name, its label and the proposed one, how sure that is, its text."""
    names = [on_one_line(str(line["id"]), _LONGEST_LABEL) or f"row {line['row']}" for line in lines]
    moves = [
        f"{on_one_line(str(line['observed']), _LONGEST_LABEL) or '(none)'} -> "
        f"{on_one_line(str(line['proposed']), _LONGEST_LABEL)}"
        for line in lines
    ]
    wide = min(shutil.get_terminal_size().columns, _WIDEST)
    table = []
    for line, name, move in zip(lines, names, moves, strict=True):
        start = f"  {name:<{max(map(len, names))}}  {move:<{max(map(len, moves))}}  {line[probability]:.3f}  "
        shown = on_one_line(found.shown(int(str(line["row"]))), wide - len(start))
        table.append((start + shown).rstrip())
    return table


def _assumption(found: FileAudit) -> str:
    test = found.audit.dependence
    if np.isnan(test.p_value) or test.p_value >= _SURPRISING:
        return ""
    return (
        f"Take care: labels seem to be wrong more often where a row is hard (p = {test.p_value:.1g}), so the "
        "probabilities are too sure; the order of the suspects is still useful.\n"
    )


def _next(found: FileAudit, request: Request, out: Path | None, suspects: Path | None) -> str:
    steps = []
    if out is not None:
        steps.append(f"Open {out}, decide on the suspects, save the decisions, and put them into a copy of the data:")
        steps.append(
            f"    unflip apply {shlex.quote(str(request.path))} decisions.csv --out clean{request.path.suffix}"
        )
    else:
        steps.append(
            "Look through the suspects: the same command with --out report.html makes a page to decide on each."
        )
    if suspects is not None:
        steps.append(
            f"{suspects} lists them all; with accept or reject in its column 'decision', unflip apply takes it."
        )
    if found.audit.noise_source == "anchor rows":
        steps.append(
            "The rates are a guess. Better: put the true labels of about 100 rows, picked at random, into a column of "
            "their own and name it with --trusted; or give the rates with --eps or the true shares with --priors."
        )
    return "\n".join(["What next:", *(f"  {step}" for step in steps)])
