"""CSV files: parsing as by Python's csv module, delimiters, and rewriting of single cells."""

import csv
import io
import random

import pytest

from support.csv_files import files
from unflip.cli.files import delimited, tables
from unflip.cli.files.read_options import NO_OPTIONS
from unflip.cli.files.tables import read_table, rewritten

LETTERS = [
    '"',
    '"',
    '""',
    ",",
    ",",
    "a",
    "b c",
    "\n",
    "\r\n",
    "\r",
    " ",
    ";",
    "\x00",
    "\u2028",
    "\x1c",
]


def by_csv_module(text, delimiter):
    """Return the records by Python's csv module, or None if it raises an error."""
    try:
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error:
        return None


def by_this_parser(text, delimiter):
    """Return the records by this library, with blank lines as in the csv module, or None."""
    try:
        records = list(delimited._records(text, delimiter, "t.csv"))
    except ValueError:
        return None
    assert "".join(delimiter.join(cells) + end for cells, end in records) == text
    return [[] if cells == [""] else delimited._values(cells) for cells, _ in records]


def test_cells_are_those_of_the_csv_module():
    rng = random.Random(0)
    n_read = 0
    for _ in range(20_000):
        text = "".join(rng.choices(LETTERS, k=rng.randint(0, 12)))
        delimiter = rng.choice([",", ";", "\t", "|", " "])
        expected = by_csv_module(text, delimiter)
        assert by_this_parser(text, delimiter) == expected, (text, delimiter)
        n_read += expected is not None
    assert 5_000 < n_read < 15_000  # both outcomes occur


def wrong_files(seed, n):
    """Return random files that are not read or rewritten correctly."""
    wrong = []
    for file in files(seed, n):
        old = delimited.read(file.content, "d.csv", NO_OPTIONS).columns
        new = delimited.rewrite(file.content, "d.csv", NO_OPTIONS, file.column, file.changes)
        expected = {name: list(cells) for name, cells in file.columns.items()}
        expected[file.column] = [
            file.changes.get(row, cell) for row, cell in enumerate(expected[file.column])
        ]
        if (
            old != file.columns
            or new != file.changed
            or delimited.read(new, "d.csv", NO_OPTIONS).columns != expected
        ):
            wrong.append(file)
    return wrong


def test_random_files_change_only_in_the_given_cells():
    assert wrong_files(0, 3000) == []


@pytest.mark.slow
def test_100000_random_files_change_only_in_the_given_cells():
    assert wrong_files(1, 100_000) == []


def test_a_stray_quote_before_quoted_separators(tmp_path):
    path = tmp_path / "t.csv"
    text = 'a,b,item,label,note\n0.264,-0.314,12" vinyl,spam,"good, cheap, fast"\n'
    path.write_text(text)
    assert rewritten(path, "label", {0: "ham"}).decode() == text.replace("spam", "ham")


@pytest.mark.parametrize(
    ("name", "content", "damaged"),
    [
        ("t.csv", b"a,label\n1,x\n2,y\n", b"a,label\n1,y\n2,x\n"),
        ("t.csv", b"a,label\n1,x\n2,y\n", b"a,label\n3,y\n2,y\n"),
        ("t.csv", b"a,label\n1,x\n2,y\n", b"a,label\n1,y\n"),
        ("t.csv", b"a,label\n1,x\n2,y\n", b"a,b,label\n1,,y\n2,,y\n"),
        ("t.jsonl", b'{"a": NaN, "label": "x"}\n', b'{"a": 1, "label": "y"}\n'),
    ],
)
def test_a_rewritten_file_that_differs_elsewhere_is_an_error(
    tmp_path, monkeypatch, name, content, damaged
):
    path = tmp_path / name
    path.write_bytes(content)
    monkeypatch.setattr(tables._format(path), "rewrite", lambda *_: damaged)
    with pytest.raises(
        ValueError,
        match=r"cannot be rewritten without changes to other cells .* nothing is written",
    ):
        rewritten(path, "label", {0: "y"})


def test_nan_cells_are_unchanged(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": NaN, "b": [NaN], "label": "x"}\n')
    assert rewritten(path, "label", {0: "y"}) == b'{"a": NaN, "b": [NaN], "label": "y"}\n'


def test_a_lone_surrogate_is_unchanged_in_json(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": "\\ud800", "label": "é"}\n', encoding="utf-8")
    assert rewritten(path, "label", {0: "è"}).decode() == '{"a": "\\ud800", "label": "è"}\n'


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize(
    "text",
    [
        "a,label\n1,x\n",
        'a,"label (x;y|z,w\t)"\n1,x\n',
        '"a\n;b;c;d",label\r\n1,x\r\n',
        "a,label\r1,x\r",
        "a,label",
        'x,"a;b;c;d",y\n1,"p;q;r;s",2\n',
        'one,"two;|,\t;|,\t",label\n1,"2;|,\t;|,\t",x\n',
    ],
)
def test_separators_within_quotes_are_not_counted(separator, text):
    swapped = text.translate(str.maketrans({",": separator, separator: ","}))
    assert delimited._delimiter(swapped, "t.csv", NO_OPTIONS) == separator


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("label,a|b|c\nx,1\n", ","),
        ("a;b, in m;c, in s, or so\n1;2,5;3\n", ";"),
        ("a|b|c\n1,5|2,5|3,5\n", "|"),
        ("a,b|c\n1,2,3\n", ","),
        ("label\nx; y\n", ","),
    ],
)
def test_separator_is_as_frequent_in_the_first_row(text, separator):
    assert delimited._delimiter(text, "t.csv", NO_OPTIONS) == separator


def test_a_vertical_bar_is_a_separator(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a|label\n1,5|x\n2,5|y\n")
    table = read_table(path)
    assert table.numbers("a").tolist() == [1.5, 2.5]
    assert rewritten(path, "label", {1: "x|y"}) == b'a|label\n1,5|x\n2,5|"x|y"\n'


@pytest.mark.parametrize(
    ("name", "separator"), [("exports.tsv/d.csv", ","), ("d.tsv.csv", ","), ("x/d.TSV.gz", "\t")]
)
def test_only_the_ending_tsv_means_tabs(name, separator):
    assert delimited._delimiter("a,b,c\td\n", name, NO_OPTIONS) == separator
