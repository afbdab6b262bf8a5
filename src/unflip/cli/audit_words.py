"""What `unflip audit` says: how noisy, what that costs, which labels look wrong, and what to do."""

from __future__ import annotations

import shlex
import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from unflip.cli.talk import on_one_line
from unflip.files.auditing import FileAudit, Request, suspect_rows
from unflip.files.tables import ending

_N_SHOWN = 10
_N_NAMED = 8
_N_CHECKS = 100
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
    lines = [
        f"{prepared.table.name}: {prepared.table.n_rows} rows, labels {counts}.",
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
    n, wrong = len(audit.evidence.codes), f"{audit.expected_wrong:.0f} ± {audit.expected_wrong_std:.0f}"
    return _wrapped(
        f"How noisy: about {wrong} of {n} labels are wrong. Labelled otherwise are {rates}. "
        f"These rates are {_SOURCES[audit.noise_source]}."
    )


def _doubt(error: float) -> str:
    return f" ± {error:.0%}" if error > 0 else ""


def _cost(found: FileAudit) -> str:
    audit = found.audit
    clean = audit.accuracy_after(len(audit.evidence.codes))
    instead = "" if np.isnan(clean) else f"; about {clean:.1%} were every label right"
    now = f"{audit.expected_accuracy:.1%} ± {audit.expected_accuracy_std:.1%}"
    return _wrapped(f"What it costs: a classifier fitted to these rows gets {now} of new rows right{instead}.")


def _suspects(found: FileAudit) -> str:
    audit = found.audit
    if len(audit.suspects) == 0:
        return "Suspects: no label looks wrong."
    share = f"about {audit.false_discovery_rate:.0%} of these will turn out right"
    more = len(audit.suspects) - audit.n_suspects
    others = f"; {more} more are in doubt" if more > 0 else ""
    said = f"Suspects: {audit.n_suspects} labels look wrong ({share}){others}. The worst, rows counted from 0:"
    lines = [line for line in suspect_rows(found) if line["part"] != "unlabelled"][:_N_SHOWN]
    return "\n".join([_wrapped(said), *_table(found, lines, "probability_wrong")])


def _unlabelled(found: FileAudit) -> str:
    proposals = found.proposals
    if len(proposals.rows) == 0:
        return ""
    labels, counts = np.unique(proposals.proposed, return_counts=True)
    each = ", ".join(f"{count} {label!r}" for label, count in zip(labels.tolist(), counts.tolist(), strict=True))
    right = float(proposals.probability.sum())
    said = f"No label: {len(proposals.rows)} rows have none; proposed are {each}, of which about {right:.0f} right."
    lines = [line for line in suspect_rows(found) if line["part"] == "unlabelled"][:3]
    return "\n".join([_wrapped(f"{said} The surest:"), *_table(found, lines, "probability_proposed")])


def _table(found: FileAudit, lines: list[dict[str, object]], probability: str) -> list[str]:
    """Return a line for each row, in columns: its name, its label and the proposed one, how sure that is, its text."""
    names = [on_one_line(str(line["id"]), _LONGEST_LABEL) or f"row {line['row']}" for line in lines]
    moves = [
        f"{on_one_line(str(line['observed']), _LONGEST_LABEL) or '(none)'} -> "
        f"{on_one_line(str(line['proposed']), _LONGEST_LABEL)}"
        for line in lines
    ]
    table = []
    for line, name, move in zip(lines, names, moves, strict=True):
        start = f"  {name:<{max(map(len, names))}}  {move:<{max(map(len, moves))}}  {line[probability]:.3f}  "
        shown = on_one_line(found.shown(int(str(line["row"]))), _width() - len(start))
        table.append((start + shown).rstrip())
    return table


def _caution(found: FileAudit) -> str:
    test = found.audit.dependence
    if np.isnan(test.p_value) or test.p_value >= _SURPRISING:
        return ""
    return _wrapped(
        f"Take care: labels are not wrong at random within a class (p = {test.p_value:.1g}), so the probabilities are "
        "too sure; the order of the suspects is still useful."
    )


def _next(found: FileAudit, request: Request, out: Path | None, suspects: Path | None) -> str:
    if out is None:
        steps = ["Look through the suspects: with --out report.html the same command makes a page to decide on each."]
    else:
        steps = [f"Open {out}, decide on the suspects and save the decisions. A copy of the data with them:"]
    if suspects is not None:
        steps.append(
            f"{suspects} lists all. With accept or reject in its column 'decision', unflip apply takes it, too."
        )
    if found.audit.noise_source == "anchor rows":
        n_checks = min(_N_CHECKS, len(found.file_rows) // 3)
        steps.append(
            f"The rates are a guess. Better: put the true labels of {n_checks} rows, picked at random, into a column "
            "of their own and name it with --trusted; or give the rates with --eps, or the true shares with --priors."
        )
    lines = [_wrapped(f"- {step}", "  ") for step in steps]
    if out is not None:
        lines.insert(1, f"      {_apply_command(request, found.prepared.labels.name)}")
    return "\n".join(["What next:", *lines])


def _apply_command(request: Request, label: str) -> str:
    """Return the command that puts decisions into a copy of the data, with the options of the audit."""
    given = {"--text": request.text, "--embedding": request.embedding, "--eps": request.eps, "--priors": request.priors}
    given |= {"--trusted": request.trusted, "--id": request.name}
    options = [word for option, value in given.items() if value is not None for word in (option, value)]
    options += [word for column in request.ignore for word in ("--ignore", column)]
    clean = f"clean{ending(request.path)}" + ".gz" * (request.path.suffix.lower() == ".gz")
    words = ["unflip", "apply", str(request.path), "decisions.csv", "--out", clean, "--label", label, *options]
    return shlex.join(words)
