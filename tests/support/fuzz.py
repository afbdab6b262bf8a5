"""Random malformed input for the command line: damaged, odd and malicious files, bad options."""

import base64
import datetime
import decimal
import io
import json
import pickle
import zipfile
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from support import table_formats

DATA, DECISIONS, MODEL = "data", "decisions.csv", "model.skops"
OUTPUTS = ("page.html", "suspects.csv", "clean.csv", "new.skops", "predictions.csv")
N_ROWS = 40
WORDS = (
    ["bright", "clever", "warm", "lovely", "superb"],
    ["dull", "boring", "awful", "tedious", "broken"],
)
# fmt: off
CELLS = [
    "", " ", "NA", "nan", "inf", "-inf", "1e999", "9" * 400, "9" * 5000, "-0", "1,5", "0x10",
    "1_000", "٣", "²", "True", "2024-02-30", "2024-01-01T00:00:00Z", "12:30", "=cmd()", "'quoted",
    '"', '""', "a\nb", "a\r", "\x00", "\ufeff", "<script>", "[red]x[/]", "[/]", "%s", "{0}",
    "\u202eturned", "é" * 50, "x" * 10_000, "\x1b[31m", "\u2028",
]
VALUES = [
    None, True, 10**400, -(2**70), 1e308, float("nan"), float("inf"), "", "x", "\ud800",
    "2024-01-01", {}, {"a": 1}, [], [1], [1, "x"], [[1], [2, 3]], [None], [10**400],
]
SHARES = [
    "", "=", ",", "ham", "ham=", "ham=2,spam=0", "ham=0.6,spam=0.6", "ham=nan,spam=0.1",
    "ham=inf,spam=0", "a=0.1", "ham=0.1,ham=0.1", "ham=0.1,spam=0.1,eggs=0.1", "ham=1,spam=0",
    "ham=0,spam=1", "ham=-1,spam=0.1", "[/]=1", "ham=0.1;spam=0.1", "ham==0.1",
    "ham=0.1,spam=0.99999999999", "ham=1e-320,spam=1e-320", "\udcff=1",
]
# fmt: on
NUMBERS = [
    "nan",
    "inf",
    "-inf",
    "1e308",
    "1e-308",
    "-1",
    "0",
    "1",
    "0.5",
    "abc",
    "",
    "1e400",
    "9" * 30,
    "0.9999999",
]


@dataclass(frozen=True)
class Case:
    """One run of the program.

    Attributes
    ----------
    kind : str
        Kind of the problem, for messages.
    files : dict of str to bytes
        The input files.
    arguments : list of str
        The arguments of the program.
    """

    kind: str
    files: dict
    arguments: list


def cases(model, seed, n):
    """Yield runs of the program, with each kind of problem in turn.

    Parameters
    ----------
    model : bytes
        A model that was fitted to such a file.
    seed, n : int
        Seed of the random numbers, and number of runs.
    """
    makers = (
        *(
            broken_bytes,
            odd_encoding,
            odd_cells,
            odd_labels,
            odd_shape,
            odd_json,
            odd_parquet,
            odd_parquet_types,
        ),
        *(
            odd_decisions,
            broken_model,
            foreign_model,
            changed_model,
            wrong_options,
            wrong_plan,
            odd_names,
            odd_votes,
        ),
    )
    for number in range(n):
        maker = makers[number % len(makers)]
        yield maker(np.random.default_rng([seed, number]), model)


def table(rng, n=N_ROWS):
    """Return the columns of a valid table: three features, a text, a name and a label."""
    codes = rng.integers(0, 2, n)
    codes[:4] = 0, 0, 1, 1
    texts = [" ".join(rng.choice(WORDS[code], 3)) for code in codes]
    features = {f"x{j}": (rng.normal(size=n) + 2 * codes).round(3).tolist() for j in range(3)}
    return {
        "name": [f"r{i}" for i in range(n)],
        **features,
        "text": texts,
        "label": [("ham", "spam")[c] for c in codes],
    }


def as_csv(columns, delimiter=","):
    """Return columns as a CSV file without quotes."""
    lines = [delimiter.join(columns)]
    lines += [delimiter.join(map(str, row)) for row in zip(*columns.values(), strict=False)]
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")


def as_json_lines(columns):
    """Return columns as a JSON Lines file."""
    rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def as_parquet(columns):
    """Return columns as a Parquet file."""
    buffer = io.BytesIO()
    parquet.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def command(rng, name, label="label"):
    """Return a command on a data file, with options for a valid file."""
    common = [name, "--label", label]
    features = [[], ["--text", "text"], ["--embedding", "x"], ["--id", "name"]][rng.integers(4)]
    rates = [[], ["--eps", "ham=0.1,spam=0.1"]][rng.integers(2)]
    if rng.random() < 0.3:
        return ["fit", *common, *features, *rates, "--out", "new.skops"]
    return ["audit", *common, *features, *rates, "--out", "page.html", "--suspects", "suspects.csv"]


def damaged(rng, content):
    """Return bytes with a part cut, flipped, dropped, repeated or replaced."""
    data = bytearray(content)
    start = int(rng.integers(0, max(len(data), 1)))
    stop = start + int(rng.integers(1, 40))
    how = rng.integers(5)
    if how == 0:
        return bytes(data[:start])
    if how == 1:
        for place in rng.integers(0, len(data), 1 + int(rng.integers(8))):
            data[place] ^= 1 << int(rng.integers(8))
    elif how == 2:
        del data[start:stop]
    elif how == 3:
        data[start:start] = data[start:stop] * 3
    else:
        data[start:stop] = rng.bytes(stop - start)
    return bytes(data)


def broken_bytes(rng, _):
    """Damage a file of any format."""
    columns = table(rng)
    makers = {
        ".csv": as_csv,
        ".tsv": lambda c: as_csv(c, "\t"),
        ".jsonl": as_json_lines,
        ".json": lambda c: json.dumps(c).encode(),
        ".parquet": as_parquet,
        ".feather": table_formats.as_arrow_file,
        ".arrow": table_formats.as_arrow_stream,
        ".xlsx": table_formats.as_workbook,
        ".npz": table_formats.as_npz,
    }
    ending = list(makers)[rng.integers(len(makers))]
    content = makers[ending](columns)
    if rng.random() < 0.2:
        compressions = table_formats.compressed(content, f"member{ending}")
        kind = list(compressions)[rng.integers(len(compressions))]
        ending += kind
        content = compressions[kind]
    name = DATA + ending
    return Case(f"bytes of {ending}", {name: damaged(rng, content)}, command(rng, name))


def odd_encoding(rng, _):
    """Write a CSV file in an unusual encoding."""
    content = as_csv({**table(rng), "text": ["café über naïve"] * N_ROWS}).decode()
    nul = content.replace("r3", "r\x003")
    encoded = {
        **{
            codec: content.encode(codec)
            for codec in ("utf-16", "utf-32", "latin-1", "utf-8-sig", "utf-16-be", "utf-7")
        },
        "NUL bytes": nul.encode(),
        "all NUL": b"\x00" * 500,
        "CRLF": content.replace("\n", "\r\n").encode(),
        "CR": content.replace("\n", "\r").encode(),
        "two marks": b"\xef\xbb\xbf" * 2 + content.encode(),
        "surrogates": content.replace("r5", "\ud800").encode("utf-8", "surrogatepass"),
    }
    kind = list(encoded)[rng.integers(len(encoded))]
    return Case(kind, {"data.csv": encoded[kind]}, command(rng, "data.csv"))


def odd_cells(rng, _):
    """Put odd cells into some columns, unquoted."""
    columns = table(rng)
    for column in rng.choice(list(columns), rng.integers(1, 4), replace=False):
        for row in rng.integers(0, N_ROWS, rng.integers(1, 12)):
            columns[column][row] = CELLS[rng.integers(len(CELLS))]
    delimiter = ",;\t"[rng.integers(3)]
    return Case("cells", {"data.csv": as_csv(columns, delimiter)}, command(rng, "data.csv"))


def odd_labels(rng, _):
    """Replace the labels by unusual or invalid ones."""
    columns = table(rng)
    n = N_ROWS
    good = columns["label"]
    choices = {
        "one class": ["ham"] * n,
        "all different": [f"l{i}" for i in range(n)],
        "all missing": [""] * n,
        "most missing": ["ham", "spam", *[""] * (n - 2)],
        "some missing": ["NA" if i % 3 == 0 else label for i, label in enumerate(good)],
        "a class of one": ["eggs", *good[1:]],
        "numbers": [str(float(i % 2)) for i in range(n)],
        "dates": [f"2024-01-0{1 + i % 2}" for i in range(n)],
        "similar": [label.upper() if i < 3 else label for i, label in enumerate(good)],
        "odd words": [("<script>" if label == "ham" else "=cmd()") for label in good],
        "markup": [("[red]" if label == "ham" else "[/red]") for label in good],
        "long": [("x" * 5000 if label == "ham" else "y") for label in good],
        "infinite": [("inf" if label == "ham" else "-inf") for label in good],
    }
    kind = list(choices)[rng.integers(len(choices))]
    return Case(
        f"labels: {kind}",
        {"data.csv": as_csv({**columns, "label": choices[kind]})},
        command(rng, "data.csv"),
    )


def odd_shape(rng, _):
    """Write a CSV file with inconsistent rows, columns or quotes."""
    content = as_csv(table(rng)).decode()
    lines = content.splitlines()
    place = int(rng.integers(1, len(lines)))
    many = int(rng.integers(200, 1200))
    wide = {f"w{j}": rng.normal(size=12).round(2).tolist() for j in range(many)} | {
        "label": ["a", "b"] * 6
    }
    choices = {
        "empty": "",
        "blank": "\n\n\n",
        "only a header": lines[0] + "\n",
        "header without an end": lines[0],
        "one row": "\n".join(lines[:2]),
        "a cell less": "\n".join(
            [*lines[:place], lines[place].rsplit(",", 1)[0], *lines[place + 1 :]]
        ),
        "a cell more": "\n".join([*lines[:place], lines[place] + ",x", *lines[place + 1 :]]),
        "open quote": "\n".join([*lines[:place], '"' + lines[place], *lines[place + 1 :]]),
        "quote within": "\n".join(
            [*lines[:place], lines[place].replace(",", '",x"', 1), *lines[place + 1 :]]
        ),
        "blank line": "\n".join([*lines[:place], "", *lines[place:]]),
        "same names": content.replace("x1", "x0", 1),
        "no name": content.replace("x1", "", 1),
        "other separator": content.replace(",", "|"),
        "wide": as_csv(wide).decode(),
        "constant features": as_csv({"x": [1] * N_ROWS, "label": table(rng)["label"]}).decode(),
        "duplicates": "\n".join([lines[0], *[lines[1], lines[3]] * 20]),
        "html": "<html><body>not found</body></html>",
        "json": json.dumps({"a": [1, 2]}),
    }
    kind = list(choices)[rng.integers(len(choices))]
    return Case(f"shape: {kind}", {"data.csv": choices[kind].encode()}, command(rng, "data.csv"))


def odd_json(rng, _):
    """Put odd values or lines into a JSON Lines file."""
    columns = table(rng)
    for column in rng.choice(list(columns), rng.integers(1, 3), replace=False):
        for row in rng.integers(0, N_ROWS, rng.integers(1, N_ROWS)):
            columns[column][row] = VALUES[rng.integers(len(VALUES))]
    lines = (
        as_json_lines({**columns, "x9": [[1.0, float(i)] for i in range(N_ROWS)]})
        .decode()
        .splitlines()
    )
    odd = [
        "[1]",
        "1",
        "null",
        "{",
        '{"label": "ham"}',
        "[" * 100_000,
        '{"a":' * 50_000,
        '{"x0": ' + "9" * 5000 + "}",
    ]
    odd += [
        '{"label": 1, "label": 2}',
        "{'a': 1}",
        "NaN",
        '"text"',
        "\x00",
        '{"x0": 1e400}',
        "",
        "{}",
    ]
    if rng.random() < 0.5:
        lines.insert(int(rng.integers(0, len(lines))), odd[rng.integers(len(odd))])
    return Case(
        "JSON values", {"data.jsonl": "\n".join(lines).encode()}, command(rng, "data.jsonl")
    )


def odd_parquet(rng, _):
    """Damage the footer of a Parquet file, or write another file."""
    content = as_parquet(table(rng))
    foot = bytearray(content)
    for place in rng.integers(len(foot) - 400, len(foot), 1 + int(rng.integers(4))):
        foot[place] ^= 1 << int(rng.integers(8))
    empty = as_parquet({name: pa.array([], pa.string()) for name in ("x0", "label")})
    choices = {
        "foot": bytes(foot),
        "cut": content[: int(rng.integers(0, len(content)))],
        "marks alone": b"PAR1" * 3,
        "text": b"x0,label\n1,ham\n",
        "no rows": empty,
        "no columns": as_parquet({}),
        "twice": content + content,
    }
    kind = list(choices)[rng.integers(len(choices))]
    return Case(f"Parquet: {kind}", {"data.parquet": choices[kind]}, command(rng, "data.parquet"))


def odd_parquet_types(rng, _):
    """Give a column of a Parquet file an unusual type."""
    n = N_ROWS
    moments = [datetime.datetime(2024, 1, 1) + datetime.timedelta(hours=i) for i in range(n)]
    types = {
        "timestamp": pa.array(moments),
        "nanoseconds": pa.array(np.arange(n) + 1, pa.timestamp("ns")),
        "unknown zone": pa.array(np.arange(n), pa.timestamp("s", tz="Nowhere/Else")),
        "far date": pa.array(np.full(n, 2**40), pa.timestamp("s")),
        "date": pa.array([moment.date() for moment in moments]),
        "duration": pa.array(np.arange(n), pa.duration("ns")),
        "decimal": pa.array([decimal.Decimal(i) / 8 for i in range(n)]),
        "bytes": pa.array([b"\xff\x00"] * n),
        "null": pa.nulls(n),
        "list": pa.array([[1.0, 2.0]] * n),
        "ragged": pa.array([[1.0] * (i % 3) for i in range(n)]),
        "list with nothing": pa.array([[1.0, None]] * n),
        "struct": pa.array([{"a": i} for i in range(n)]),
        "map": pa.array([[("a", i)] for i in range(n)], pa.map_(pa.string(), pa.int64())),
        "categories": pa.array(["ham", "spam"] * (n // 2)).dictionary_encode(),
        "truth": pa.array([True, False] * (n // 2)),
        "half": pa.array(np.arange(n, dtype=np.float16)),
        "large": pa.array(np.full(n, 2**64 - 1, dtype=np.uint64)),
        "not finite": pa.array([np.inf, np.nan] * (n // 2)),
        "some missing": pa.array([None, 1.0] * (n // 2)),
    }
    kind = list(types)[rng.integers(len(types))]
    column = ["x1", "text", "label", "name"][rng.integers(4)]
    return Case(
        f"Parquet {column}: {kind}",
        {"data.parquet": as_parquet({**table(rng), column: types[kind]})},
        command(rng, "data.parquet"),
    )


def odd_decisions(rng, _):
    """Write decisions on missing rows, with invalid words, or on other data."""
    columns = table(rng)
    rows = rng.choice(N_ROWS, 5, replace=False)
    observed = [columns["label"][row] for row in rows]
    decisions = {
        "row": [str(row) for row in rows],
        "id": [f"row {row}" for row in rows],
        "observed": observed,
        "proposed": ["ham" if label == "spam" else "spam" for label in observed],
        "decision": ["accept", "reject", "accept", "", "accept"],
    }
    for _ in range(int(rng.integers(1, 4))):
        column = list(decisions)[rng.integers(5)]
        odd = [
            *CELLS,
            "-1",
            "40",
            "1e3",
            "accept",
            "maybe",
            "row 99",
            "r3",
            "eggs",
            "ham",
            "3.0",
            "00",
        ]
        decisions[column][rng.integers(5)] = odd[rng.integers(len(odd))]
    if rng.random() < 0.3:
        del decisions[list(decisions)[rng.integers(5)]]
    content = as_csv(decisions) if rng.random() < 0.8 else damaged(rng, as_csv(decisions))
    files = {"data.csv": as_csv(columns), DECISIONS: content}
    options = [[], ["--label", "label"], ["--label", "text"], ["--id", "name"], ["--text", "text"]][
        rng.integers(5)
    ]
    applied = ["apply", "data.csv", DECISIONS, "--out", "clean.csv", *options]
    fitted = ["fit", "data.csv", "--label", "label", "--decisions", DECISIONS, "--out", "new.skops"]
    return Case("decisions", files, applied if rng.random() < 0.7 else fitted)


def predict(rng, model):
    """Return the files and the command of a prediction."""
    return {MODEL: model, "data.csv": as_csv(table(rng))}, [
        "predict",
        MODEL,
        "data.csv",
        "--out",
        "predictions.csv",
    ]


def broken_model(rng, model):
    """Damage a model."""
    return Case("bytes of a model", *predict(rng, damaged(rng, model)))


def foreign_model(rng, _):
    """Use another file as the model."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as other:
        other.writestr(
            "schema.json", ["{}", "[]", "null", "{", '{"__class__": "dict"}', ""][rng.integers(6)]
        )
    choices = {
        "zip": archive.getvalue(),
        "empty zip": b"PK\x05\x06" + bytes(18),
        "pickle": pickle.dumps({"format": "unflip model 1"}),
        "pickle that acts": b"cos\nmkdir\n(S'canary'\ntR.",
        "text": base64.b64encode(rng.bytes(60)),
        "nothing": b"",
    }
    kind = list(choices)[rng.integers(len(choices))]
    return Case(f"not a model: {kind}", *predict(rng, choices[kind]))


def changed_model(rng, model):
    """Change the schema of a model, with valid checksums."""
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(model)) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "schema.json":
                content = json.dumps(_changed(rng, json.loads(content))).encode()
            elif rng.random() < 0.1:
                content = damaged(rng, content)
            new.writestr(name, content)
    return Case("changed model", *predict(rng, changed.getvalue()))


def _changed(rng, schema):
    """Return a tree with one of its nodes replaced."""
    paths = list(_paths(schema, ()))
    path = paths[rng.integers(len(paths))]
    node = schema
    for key in path[:-1]:
        node = node[key]
    values = [
        None,
        [],
        {},
        "",
        0,
        -1,
        1e9,
        "os",
        "system",
        "builtins",
        "eval",
        "DictNode",
        "MethodNode",
        "ReduceNode",
    ]
    if rng.random() < 0.2 and isinstance(node, dict):
        del node[path[-1]]
    else:
        node[path[-1]] = values[rng.integers(len(values))]
    return schema


def _paths(node, before):
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        yield (*before, key)
        if isinstance(value, dict | list):
            yield from _paths(value, (*before, key))


def wrong_options(rng, model):
    """Use options that contradict the data or each other, or do not exist."""
    columns = [*table(rng), "", "none", "LABEL", "[red]", "\udcff", "-", "--", "x", "label "]
    chosen = [columns[rng.integers(len(columns))] for _ in range(2)]
    shares = SHARES[rng.integers(len(SHARES))]
    column_options = [
        "--label",
        "--text",
        "--embedding",
        "--trusted",
        "--group",
        "--id",
        "--ignore",
        "--item",
        "--annotator",
    ]
    options = [
        [column_options[rng.integers(9)], chosen[0]],
        [column_options[rng.integers(9)], chosen[0], column_options[rng.integers(9)], chosen[1]],
        ["--eps", shares],
        ["--priors", shares],
        ["--eps", "ham=0.1,spam=0.1", "--priors", shares],
        [
            "--out",
            ["page.txt", "", ".", "none/page.html", "data.csv", "\udcff.html", "x" * 300 + ".html"][
                rng.integers(7)
            ],
        ],
        ["--nonsense", "1"],
    ][rng.integers(7)]
    files = {"data.csv": as_csv(table(rng))}
    return Case(
        "options", files, ["audit", "data.csv", "--label", "label", "--out", "page.html", *options]
    )


def wrong_plan(rng, _):
    """Ask for the plan of an impossible problem."""
    names = ["--n", "--p", "--mean-norm", "--eps-pos", "--eps-neg", "--pi-neg", "--reg"]
    values = dict(zip(names, ["1600", "400", "1.2", "0.4", "0.3", "0.5", "1"], strict=True))
    for name in rng.choice(names, rng.integers(1, 3), replace=False):
        values[name] = NUMBERS[rng.integers(len(NUMBERS))]
    flags = ["--known-origin"] * int(rng.integers(2)) + ["--json"] * int(rng.integers(2))
    return Case("plan", {}, ["plan", *(word for pair in values.items() for word in pair), *flags])


def odd_names(rng, _):
    """Use column names with markup, formulas or control characters."""
    columns = table(rng)
    odd = [
        "<script>",
        "=cmd()",
        "[red]",
        "[/]",
        "\x1b[31m",
        "\u202ex",
        "a b",
        "'",
        "%",
        "{x}",
        "é",
        "x" * 3000,
        "-1",
    ]
    names = {old: odd[rng.integers(len(odd))] + str(j) for j, old in enumerate(columns)}
    renamed = {names[old] if rng.random() < 0.7 else old: cells for old, cells in columns.items()}
    label = list(renamed)[-1]
    return Case("names", {"data.csv": as_csv(renamed)}, command(rng, "data.csv", label))


def odd_votes(rng, _):
    """Write votes by columns or rows, with invalid cells."""
    columns = table(rng)
    columns |= {
        f"w{j}": [["ham", "spam", ""][rng.integers(3)] for _ in range(N_ROWS)] for j in range(3)
    }
    columns["item"] = [str(i // 2) for i in range(N_ROWS)]
    for column in ("item", "w0", "w1", "x0")[: rng.integers(0, 5)]:
        columns[column][rng.integers(N_ROWS)] = CELLS[rng.integers(len(CELLS))]
    by_column = [word for j in range(rng.integers(1, 4)) for word in ("--label", f"w{j}")]
    by_row = [
        "--label",
        "w0",
        "--item",
        "item",
        "--annotator",
        ["w1", "name", "item", "w0"][rng.integers(4)],
    ]
    options = by_column if rng.random() < 0.5 else by_row
    words = [
        "audit",
        "data.csv",
        *options,
        "--ignore",
        "x2",
        "--suspects",
        "suspects.csv",
        "--out",
        "page.html",
    ]
    return Case("votes", {"data.csv": as_csv(columns)}, words)
