"""Data files as tables: formats, cells, and errors."""

import gzip
import json
import os

import numpy as np
import pytest

from unflip.cli.files.tables import Table, as_text, numbers, read_table, rewritten

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

ROWS = [{"a": 1, "label": "x"}, {"a": 2, "label": None}, {"a": 3, "label": "y"}]


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.fixture
def files(tmp_path):
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    comma = "a,label\n1,x\n2,\n3,y\n"
    parquet.write_table(pa.Table.from_pylist(ROWS), tmp_path / "t.parquet")
    write(tmp_path / "t.csv", comma)
    write(tmp_path / "t.tsv", comma.replace(",", "\t"))
    write(tmp_path / "t.CSV.gz", gzip.compress(comma.encode()))
    write(tmp_path / "t.jsonl", lines)
    return sorted(tmp_path.iterdir())


def test_every_format_gives_the_same_table(files):
    assert len(files) == 5
    for path in files:
        table = read_table(path)
        assert list(table.columns) == ["a", "label"]
        assert table.texts("label") == ["x", "", "y"]
        np.testing.assert_array_equal(numbers(table.column("a")), [1, 2, 3])


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_separator_is_found_in_the_header(tmp_path, separator):
    text = "a,label\n1,x\n".replace(",", separator)
    assert list(read_table(write(tmp_path / "t.csv", text)).columns) == ["a", "label"]


def test_cells_with_separators_quotes_and_line_ends(tmp_path):
    text = '\ufeffa,label\r\n"1,5 ""and"" \nmore",x\r\n2,y\r\n\r\n\r\n'
    table = read_table(write(tmp_path / "t.csv", text))
    assert list(table.column("a")) == ['1,5 "and" \nmore', "2"]
    assert list(table.column("label")) == ["x", "y"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "", "t.csv is empty"),
        ("t.csv", "a,label\n", "has no rows"),
        ("t.csv", "\n", "does not start with a line of column names"),
        ("t.csv", "a,label,a\n1,x,2\n", "2 columns named 'a'"),
        (
            "t.csv",
            "a,label\n1,x\n1,2,3\n",
            "Row 1 of .*t.csv .* has 3 cells but the header has 2",
        ),
        ("t.csv", "a,label\n1,x\n\n2,y\n", "t.csv has a blank line before row 1 .*: remove it"),
        ("t.csv", 'a,label\n1,"x\n2,y\n', "cannot be read as CSV at line 2"),
        (
            "t.csv",
            "a,label\n1,x\ncaf\xe9,y\n".encode("latin-1"),
            "not UTF-8 text .byte 0xe9 in line 3.",
        ),
        ("t.csv.gz", b"no gzip", "is not a complete gzip file"),
        ("t.doc", "a,label\n1,x\n", "t.doc has an unknown format: its name must end in .csv"),
        ("t.jsonl", '{"a": 1}\n{"a": \n', "Line 2 of .*t.jsonl is not JSON"),
        ("t.jsonl", "[1]\n", "Line 1 of .*t.jsonl is not a JSON object"),
        ("t.parquet", "no parquet", "cannot be read as Parquet"),
    ],
)
def test_errors_of_unreadable_files_are_one_sentence(tmp_path, name, content, message):
    with pytest.raises(ValueError, match=message) as caught:
        read_table(write(tmp_path / name, content))
    assert "\n" not in str(caught.value)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(ValueError, match=r"none.csv does not exist"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(ValueError, match="is a folder"):
        read_table(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser reads everything")
def test_a_file_without_permission(tmp_path):
    path = write(tmp_path / "t.csv", "a,label\n1,x\n")
    path.chmod(0)
    with pytest.raises(ValueError, match="cannot be read"):
        read_table(path)


def test_close_names_are_suggested(files):
    table = read_table(files[-1])
    with pytest.raises(ValueError, match="has no column 'labels': did you mean 'label'"):
        table.column("labels")
    with pytest.raises(ValueError, match="its columns are 'a' and 'label'"):
        table.column("zzz")
    many = Table("t.csv", {f"x{i}": ["1"] for i in range(31)})
    assert many.column_names.startswith("its columns are 'x0', 'x1', ")
    assert many.column_names.endswith("'x7' and 23 more")
    assert Table("t.csv", {"x": ["1"]}).column_names == "its only column is 'x'"


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (" a ", "a"),
        (None, ""),
        (float("nan"), ""),
        (1.0, "1"),
        (1.5, "1.5"),
        (True, "True"),
        (0, "0"),
    ],
)
def test_cells_as_strings(cell, text):
    assert as_text(cell) == text


def test_columns_as_numbers():
    np.testing.assert_array_equal(numbers(["1", "-2.5", "1e3"]), [1, -2.5, 1000])
    np.testing.assert_array_equal(numbers(["1", "", "NA"]), [1, np.nan, np.nan])
    assert numbers(["1", "two"]) is None
    assert numbers(["", ""]) is None
    assert numbers([None, "x"]) is None


def test_true_and_false_are_numbers_in_a_column_of_their_own():
    np.testing.assert_array_equal(numbers(["True", "false", "", "TRUE"]), [1, 0, np.nan, 1])
    np.testing.assert_array_equal(numbers([True, None, False]), [1, np.nan, 0])
    assert numbers(["true", "2"]) is None


def test_decimal_comma_in_files_without_comma_separators(tmp_path):
    semicolons = read_table(
        write(tmp_path / "t.csv", "a;b;label\n1,5;1,5;x\n-2;n/k;y\n1,25e2;;x\n")
    )
    np.testing.assert_array_equal(semicolons.numbers("a"), [1.5, -2, 125])
    assert semicolons.numbers("b") is None
    assert semicolons.texts("a")[0] == "1,5"
    assert read_table(write(tmp_path / "c.csv", 'a,label\n"1,5",x\n"2,5",y\n')).numbers("a") is None


def test_a_blank_line_of_a_single_column_is_an_empty_cell(tmp_path):
    path = write(tmp_path / "t.csv", "label\nx\n\ny\n\n")
    assert list(read_table(path).column("label")) == ["x", "", "y"]
    assert rewritten(path, "label", {1: "y", 2: "x"}) == b"label\nx\ny\nx\n\n"


CSV = (
    '\ufeffa;label;b\r\n"1";"x"; spaced \r\n"two\r\nlines";x;"q""q"\r\n5" pipe;x;3\r\n4;y;"4"\n\r\n'
)


def test_rewriting_csv_changes_no_other_byte(tmp_path):
    path = write(tmp_path / "t.csv", CSV)
    assert rewritten(path, "label", {}) == CSV.encode()
    changed = rewritten(path, "label", {0: "y", 1: "y"}).decode()
    assert changed == CSV.replace('"x"', '"y"').replace('lines";x', 'lines";y')
    assert rewritten(path, "label", {3: 'a;"b'}).decode() == CSV.replace("4;y", '4;"a;""b"')


def test_rewriting_a_record_with_stray_quotes_keeps_its_cells(tmp_path):
    path = write(tmp_path / "t.csv", 'a,label,b\n5" pipe,x,"c,d"\n')
    path.write_bytes(rewritten(path, "label", {0: "y"}))
    assert {name: list(cells) for name, cells in read_table(path).columns.items()} == {
        "a": ['5" pipe'],
        "label": ["y"],
        "b": ["c,d"],
    }


def test_rewriting_json_lines_changes_no_other_line(tmp_path):
    text = '{"a": 1.50,  "label": "x"}\r\n\n{"b": "\u00e9", "label": 2}\n{"label": "z"}'
    path = write(tmp_path / "t.jsonl", text)
    assert rewritten(path, "label", {}).decode() == text
    assert rewritten(path, "label", {1: 3}).decode() == text.replace('"label": 2', '"label": 3')


def test_rewriting_parquet_keeps_types_and_columns(tmp_path):
    path = tmp_path / "t.parquet"
    table = pa.table(
        {"a": pa.array([1.5, None], pa.float32()), "label": pa.array([0, 1], pa.int8())}
    )
    parquet.write_table(table.replace_schema_metadata({"who": "me"}), path)
    path.write_bytes(rewritten(path, "label", {1: 0}))
    back = parquet.read_table(path)
    assert back.schema.equals(table.schema.with_metadata({"who": "me"}), check_metadata=True)
    assert back.to_pydict() == {"a": [1.5, None], "label": [0, 0]}


def test_compressed_files_are_rewritten_compressed(tmp_path):
    path = write(tmp_path / "t.csv.gz", gzip.compress(b"a,label\n1,x\n"))
    assert gzip.decompress(rewritten(path, "label", {0: "y"})) == b"a,label\n1,y\n"
