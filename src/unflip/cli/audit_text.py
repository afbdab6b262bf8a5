"""The output of `unflip audit` on the terminal."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from unflip.auditing import check_prose, prose
from unflip.cli.file_audit import FileAudit
from unflip.cli.files.feature_columns import Features
from unflip.cli.files.image_folder import FILE, LABEL
from unflip.cli.files.label_column import LabelColumn
from unflip.cli.files.request import Prepared, Request
from unflip.cli.files.tables import copy_ending
from unflip.cli.terminal import describe_votes, on_one_line
from unflip.cli.text_layout import joined, step, width, wrapped
from unflip.features.kernel_features import KernelFeatures
from unflip.features.table_columns import LOOKS_LIKE_TEXT

_N_SUSPECTS = 10  # that are printed
_LONGEST_LABEL = 24  # characters
_ADD_PAGE = "Review the suspects: add --out report.html to write a page for that."


def summary(result: FileAudit, request: Request, out: Path | None, suspects: Path | None) -> str:
    """Return the summary of an audit.

    Parameters
    ----------
    result : FileAudit
        The audit.
    request : Request
        The options of the command.
    out, suspects : Path or None
        The page and the table that were written.
    """
    paragraphs = [
        _data(result),
        wrapped(f"Label noise: {prose.noise(result.audit)} {prose.STANDARD_ERROR}"),
        wrapped(f"Expected accuracy: {prose.accuracy(result.audit)}"),
        _votes(result),
        _suspects(result),
        _checked_rows(result),
        _unlabelled(result),
        _warning(result),
        _next_steps(result, request, out, suspects),
    ]
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def _data(result: FileAudit) -> str:
    prepared = result.prepared
    counts = joined([f"{count} {label!r}" for label, count in prepared.labels.counts.items()])
    labels = "labels" if prepared.votes is None else f"{describe_votes(prepared.votes)}:"
    lines = [
        f"{prepared.table.name}: {prepared.items.counted(len(prepared.items))}, {labels} {counts}.",
        f"Features: {describe_features(prepared, result.audit.features)}.",
    ]
    if prepared.features.left_out:
        lines.append(_left_out(prepared.features))
    return "\n".join(map(wrapped, lines))


def _left_out(features: Features) -> str:
    """Return which columns are not used, why, and how to use them."""
    left_out = [each for each in features.details if each.left_out]
    why = ""
    if features.kind in ("numeric", "mixed"):
        reasons = dict.fromkeys(each.left_out for each in left_out)
        groups = [
            f"{joined([each.name for each in left_out if each.left_out == reason])} ({reason})"
            for reason in reasons
        ]
        named = joined(groups)
    else:
        named = joined([each.name for each in left_out])
    if any(each.kind == "text" for each in left_out):
        why = "Name a column of text with --text, and others with --use, to use them."
    else:
        why = "Name a column with --use to use it."
    return f"Columns not used: {named}. {why}"


def describe_features(prepared: Prepared, transformer: KernelFeatures | None) -> str:
    """Return the columns of the features, and the kernel of the fit if it is not linear."""
    columns = str(prepared.features.with_dimension(prepared.rows.shape[1]))
    if transformer is None:
        return columns
    chosen = ", chosen by the labels" if prepared.feature_map == "auto" else ""
    return f"{columns}, with the {transformer.kernel} kernel{chosen}"


def _votes(result: FileAudit) -> str:
    sentences = prose.several_votes(result.audit)
    return wrapped(f"Votes: {sentences}") if sentences else ""


def _suspects(result: FileAudit) -> str:
    audit = result.audit
    lines = [line for line in result.suspect_rows if line["part"] in ("suspect", "uncertain")]
    text = f"Suspects: {prose.suspects(audit)}"
    n_uncertain = len(lines) - audit.n_suspects
    if n_uncertain > 0:
        labels = "label" if n_uncertain == 1 else "labels"
        text += f" For {n_uncertain} more {labels} another class is more likely."
    if not lines:
        return wrapped(text)
    rows = " (rows are counted from 0)" if result.id_column is None else ""
    table = _table(result, lines[:_N_SUSPECTS], "probability wrong")
    return "\n".join([wrapped(f"{text} Most likely wrong first{rows}:"), *table])


def _checked_rows(result: FileAudit) -> str:
    sentences = check_prose.checked_rows(result.audit)
    return wrapped(f"Checked rows: {sentences}") if sentences else ""


def _unlabelled(result: FileAudit) -> str:
    proposals = result.proposals
    if len(proposals.rows) == 0:
        return ""
    labels, counts = np.unique(proposals.proposed, return_counts=True)
    each = ", ".join(
        f"{count} {label!r}" for label, count in zip(labels.tolist(), counts.tolist(), strict=True)
    )
    n_correct = float(proposals.probability.sum())
    missing = "label" if result.prepared.votes is None else "vote"
    text = (
        f"Without a {missing}: {result.prepared.items.counted(len(proposals.rows))}. Proposed "
        f"labels: {each}. Expected number of correct proposals: {n_correct:.0f}. Most certain "
        "first:"
    )
    lines = [line for line in result.suspect_rows if line["part"] == "unlabelled"]
    return "\n".join([wrapped(text), *_table(result, lines[:3], "probability correct")])


def _warning(result: FileAudit) -> str:
    """Return the test of class-conditional noise, if the labels contradict it."""
    if not result.audit.dependence.rejected:
        return ""
    return wrapped(f"Assumption: {prose.dependence(result.audit)}")


def _table(result: FileAudit, lines: list[dict[str, Any]], probability: str) -> list[str]:
    """Return a heading, and a line for each row: id, both labels, probability and text."""
    ids = [on_one_line(str(line["id"]), _LONGEST_LABEL) or f"row {line['row']}" for line in lines]
    changes = [
        f"{on_one_line(str(line['observed']), _LONGEST_LABEL) or '(none)'} -> "
        f"{on_one_line(str(line['proposed']), _LONGEST_LABEL)}"
        for line in lines
    ]
    heading = ("row" if result.prepared.items.column is None else "item", "label -> proposed")
    id_width = max(map(len, (heading[0], *ids)))
    change_width = max(map(len, (heading[1], *changes)))
    table = [f"  {heading[0]:<{id_width}}  {heading[1]:<{change_width}}  {probability}"]
    for line, row_id, change in zip(lines, ids, changes, strict=True):
        start = f"  {row_id:<{id_width}}  {change:<{change_width}}  {_probability(line):.3f}  "
        text = on_one_line(result.description(int(line["row"])), width() - len(start))
        table.append((start + text).rstrip())
    return table


def _probability(line: dict[str, Any]) -> float:
    """Return P(label wrong), or P(proposed label correct) if there is no label."""
    key = "probability_proposed" if line["part"] == "unlabelled" else "probability_wrong"
    return float(line[key])


def _next_steps(
    result: FileAudit, request: Request, out: Path | None, suspects: Path | None
) -> str:
    steps = _mend_options(result.prepared)
    if result.prepared.votes is None:
        steps += _review(result, out, suspects) + _use_decisions(result, request, out, suspects)
    else:
        steps += _review_votes(result, out, suspects)
    steps += _check_rows(result, request, out)
    return "\n".join(["Next steps:", *steps]) if steps else ""


def _mend_options(prepared: Prepared) -> list[str]:
    """Return options without which labels are split, or texts are not used."""
    steps = []
    if isinstance(prepared.labels, LabelColumn) and prepared.labels.variants:
        pairs = [f"{label!r} ({usual!r})" for label, usual in prepared.labels.variants.items()]
        steps.append(
            step(
                f"Spell labels alike that differ only by case or spaces, {joined(pairs)}: add "
                "--normalise-labels."
            )
        )
    texts = [each.name for each in prepared.features.details if each.left_out == LOOKS_LIKE_TEXT]
    for column in texts:
        option = f"--text {shlex.quote(column)}"
        steps.append(step(f"Column {column!r} looks like text: add {option} to use its words."))
    return steps


def _review(result: FileAudit, out: Path | None, suspects: Path | None) -> list[str]:
    """Return how to decide on suspects."""
    steps = []
    has_page = out is not None and len(result.audit.suspects) > 0
    if has_page:
        steps.append(step(f"Open {out}, review the suspects and export the decisions."))
    elif len(result.audit.suspects):
        steps.append(step(_ADD_PAGE))
    if suspects is not None and result.suspect_rows:
        text = _content(result, suspects)
        if has_page:
            text += (
                " You can also write accept or reject into its column 'decision', and use it "
                "instead of decisions.csv."
            )
        else:
            text += " Write accept or reject into its column 'decision'."
        steps.append(step(text))
    return steps


def _content(result: FileAudit, suspects: Path) -> str:
    """Return a sentence on the rows that the table of suspects lists."""
    counts = Counter(line["part"] for line in result.suspect_rows)
    counted = result.prepared.items.counted
    n_suspects = counts["suspect"]
    listed = []
    if n_suspects:
        listed.append("the suspect" if n_suspects == 1 else f"the {n_suspects} suspects")
    if counts["uncertain"]:
        rows = counted(counts["uncertain"])
        if n_suspects:
            rows = rows.replace(" ", " more ")
        listed.append(f"{rows} for which another class is more likely")
    if counts["checked"]:
        listed.append(f"{counted(counts['checked'])} with a wrong label according to --trusted")
    if counts["unlabelled"]:
        listed.append(f"{counted(counts['unlabelled'])} with a proposed label")
    return f"{suspects} lists {_enumerated(listed)}."


def _enumerated(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def _review_votes(result: FileAudit, out: Path | None, suspects: Path | None) -> list[str]:
    steps = []
    if len(result.audit.suspects):
        steps.append(step(_ADD_PAGE if out is None else f"Open {out} and review the suspects."))
    if suspects is not None and result.suspect_rows:
        steps.append(step(_content(result, suspects)))
    steps.append(
        step(
            f"Put the true labels of reviewed {result.prepared.items.plural} into a column and "
            "pass its name with --trusted. They improve the estimated noise rates of each "
            "annotator."
        )
    )
    return steps


def _use_decisions(
    result: FileAudit, request: Request, out: Path | None, suspects: Path | None
) -> list[str]:
    """Return the commands that train with the decisions, and that write a corrected copy."""
    if out is not None and len(result.audit.suspects):
        decisions = "decisions.csv"
    elif suspects is not None and result.suspect_rows:
        decisions = str(suspects)
    else:
        return []
    data = str(request.path)
    copy = f"clean{copy_ending(request.path)}"
    train = ["fit", data, "--decisions", decisions, "--out", "model.skops"]
    correct = ["apply", data, decisions, "--out", copy]
    return [
        step("To train a classifier, pass the decisions with the original data:"),
        f"      {_command(train, result, request)}",
        step("To write a corrected copy of the data for use outside unflip, apply the decisions:"),
        f"      {_command(correct, result, request)}",
    ]


def _check_rows(result: FileAudit, request: Request, out: Path | None) -> list[str]:
    """Return which rows to check, and how to pass their labels."""
    audit = result.audit
    if not check_prose.advises_checks(audit) or not audit.evidence.has_signal:
        return []
    items = result.prepared.items.plural
    rates = ""
    if audit.assumption:
        priors = "" if request.priors else ", or the true class proportions with --priors"
        rates = f"Or pass the noise rates with --eps{priors}."
    if out is not None:
        again = ["audit", str(request.path), "--out", str(out)]
        # Without given rates, because checked rows replace them.
        with_checks = replace(request, trusted="checks.csv", eps=None)
        return [
            step(
                f"{prose.why_check(audit)}, check the {items} of the first tab of {out} (a random "
                f"sample), export them, and audit again:"
            ),
            f"      {_command(again, result, with_checks)}",
            *([step(rates)] if rates else []),
        ]
    rows = result.check_next
    first = ", ".join(
        on_one_line(result.id_of(row), _LONGEST_LABEL) or str(row) for row in rows[:5]
    )
    return [
        step(
            f"{prose.why_check(audit)}, add --out report.html and check a random sample of {items} "
            f"on that page. Or put the true labels of these {len(rows)} {items} into a column and "
            f"pass its name with --trusted: {first}, ... (--json lists all under check_next). "
            f"{rates}".rstrip()
        )
    ]


def _command(words: list[str], result: FileAudit, request: Request) -> str:
    """Return a command on the data, with the options of the audit."""
    labels = result.prepared.labels.names
    id_column = request.id_column
    if result.prepared.table.images:  # whose labels and ids are known
        labels = () if labels == (LABEL,) else labels
        id_column = None if id_column == FILE else id_column
    options = {
        "--item": request.item,
        "--annotator": request.annotator,
        "--abstain": request.abstain,
        "--embedding": request.embedding,
        "--eps": request.eps,
        "--priors": request.priors,
        "--trusted": request.trusted,
        "--group": request.group,
        "--id": id_column,
        "--features": None if request.feature_map == "linear" else request.feature_map,
        **request.read_options.passed,
    }
    words = ["unflip", *words]
    for column in labels:
        words += ["--label", column]
    for option, value in options.items():
        if value is not None:
            words += [option, value]
    for option, columns in (
        ("--text", request.text),
        ("--use", request.use),
        ("--ignore", request.ignore),
    ):
        for column in columns:
            words += [option, column]
    if request.abstentions:
        words.append("--abstentions")
    if request.normalise_labels:
        words.append("--normalise-labels")
    return shlex.join(words)
