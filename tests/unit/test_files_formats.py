"""Every file format gives the same table, and changes of labels change nothing else."""

import io
import json
import re
import zipfile

import numpy as np
import pytest

from unflip.cli.files import compression
from unflip.cli.files.dataset_folder import rewritten_folder
from unflip.cli.files.read_options import ReadOptions
from unflip.cli.files.tables import numbers, read_table, rewritten

pa = pytest.importorskip("pyarrow")
openpyxl = pytest.importorskip("openpyxl", reason="needs the extra unflip[cli]")
from support import table_formats as written  # noqa: E402
from support.table_formats import as_csv_text, compressed, write_dataset, zipped  # noqa: E402

COLUMNS = {
    "a": [1.5, None, 3.0, -4.0],
    "text": ["é | x", "two; <b>", "three & more", "four"],
    "label": ["ham", None, "spam", "ham"],
}
CHANGES = {0: "spam", 1: "ham", 2: "ham"}
CHANGED = ["spam", "ham", "ham", "ham"]
CSV = as_csv_text(COLUMNS)
CONTENTS = {
    **{f"{layout}.json": text for layout, text in written.as_json_layouts(COLUMNS).items()},
    **{f"t.csv{ending}": content for ending, content in compressed(CSV.encode()).items()},
    "t.txt": CSV,
    "t.zip": zipped(CSV.replace(",", "\t"), "folder/t.tsv", "folder/", "__MACOSX/._t.tsv"),
    "t.xlsx": written.as_workbook(COLUMNS),
    "t.xlsm": written.as_workbook(COLUMNS),
    "t.feather": written.as_arrow_file(COLUMNS),
    "t.arrow": written.as_arrow_stream(COLUMNS),
    "t.arrow.zst": compressed(written.as_arrow_file(COLUMNS))[".zst"],
    "t.npz": written.as_npz(COLUMNS),
}


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def cells(table):
    """Return the columns as strings."""
    return {name: table.texts(name) for name in table.columns}


@pytest.mark.parametrize("name", CONTENTS)
def test_every_format_gives_the_same_table(tmp_path, name):
    table = read_table(write(tmp_path / name, CONTENTS[name]))
    assert list(table.columns) == ["a", "text", "label"]
    np.testing.assert_array_equal(numbers(table.column("a")), [1.5, np.nan, 3, -4])
    assert table.texts("text") == COLUMNS["text"]
    assert table.texts("label") == ["ham", "", "spam", "ham"]
    assert table.name == str(tmp_path / name)


@pytest.mark.parametrize("name", CONTENTS)
def test_every_format_is_rewritten(tmp_path, name):
    path = write(tmp_path / name, CONTENTS[name])
    before = cells(read_table(path))
    write(path, rewritten(path, "label", CHANGES))
    assert cells(read_table(path)) == {**before, "label": CHANGED}


class TestJson:
    @pytest.mark.parametrize("layout", written.as_json_layouts(COLUMNS))
    def test_all_other_characters_stay(self, tmp_path, layout):
        columns = {"label": ["ham", "spam", "ham"], "n": [1, 2, 3]}
        text = written.as_json_layouts(columns)[layout].replace('"n"', '  "n" ')
        path = write(tmp_path / "t.json", text)
        assert rewritten(path, "label", {}).decode() == text
        changed = rewritten(path, "label", {1: "ham"}).decode()
        assert changed == text.replace('"spam"', '"ham"')

    def test_missing_labels_are_added_and_the_last_of_two_counts(self, tmp_path):
        text = '[ {"a": 1}, { }, {"label": "x", "label" : "y"}]'
        path = write(tmp_path / "t.json", text)
        new = rewritten(path, "label", {0: "y", 1: "y", 2: "é"}).decode()
        assert new == '[ {"a": 1, "label": "y"}, {"label": "y" }, {"label": "x", "label" : "é"}]'

    def test_byte_order_mark_and_encoding_stay(self, tmp_path):
        text = '[{"label": "é"}, {"label": "x"}]'
        path = write(tmp_path / "t.json", b"\xef\xbb\xbf" + text.encode())
        assert (
            rewritten(path, "label", {1: "é"}) == b"\xef\xbb\xbf" + text.replace("x", "é").encode()
        )
        write(path, text.encode("cp1252"))
        options = ReadOptions(encoding="cp1252")
        assert rewritten(path, "label", {1: "é"}, options) == text.replace("x", "é").encode(
            "cp1252"
        )

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("[[1, 2]]", "t.json holds no table: write a list of objects"),
            ("{}", "holds no table"),
            ("3", "holds no table"),
            ('[{"a": 1},\n {"a": }]', r"t.json is not JSON \(Expecting value in line 2\)"),
            ('{"a": [1, 2], "label": [1]}', "'label' of .* has 1 values, but column 'a' has 2"),
            (
                '{"a": {"x": 1, "y": 2}, "b": {"y": 1, "x": 2}}',
                "'a' and 'b' of .*t.json have different row names",
            ),
            ("[" * 100_000, "lists nested too deeply"),
            ("[]", "has no rows"),
        ],
    )
    def test_errors(self, tmp_path, text, message):
        with pytest.raises(ValueError, match=message):
            read_table(write(tmp_path / "t.json", text))


class TestWorkbook:
    def decorated(self):
        """Return a workbook with a style, a formula with its value, a chart and two sheets."""
        workbook = openpyxl.load_workbook(io.BytesIO(written.as_workbook(COLUMNS, ["notes"])))
        sheet = workbook["data"]
        sheet["C2"].font = openpyxl.styles.Font(bold=True)
        sheet["D1"] = "twice"
        for row in range(2, 6):
            sheet[f"D{row}"] = f"=2*A{row}"
        chart = openpyxl.chart.BarChart()
        chart.add_data(openpyxl.chart.Reference(sheet, min_col=1, min_row=1, max_row=5))
        sheet.add_chart(chart, "F1")
        content = written.saved_workbook(workbook)
        part = "xl/worksheets/sheet1.xml"
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            markup = archive.read(part)
        for value in (b"<v />", b"<v/>", b"<v></v>"):
            markup = markup.replace(value, b"<v>7</v>")
        return compression.with_member(content, part, markup)

    def test_formulas_are_read_as_their_stored_values(self, tmp_path):
        path = write(tmp_path / "t.xlsx", self.decorated())
        table = read_table(path, ReadOptions(sheet="data"))
        assert list(table.column("twice")) == [7, 7, 7, 7]

    def test_all_other_parts_of_the_file_stay(self, tmp_path):
        content = self.decorated()
        path = write(tmp_path / "t.xlsx", content)
        new = rewritten(path, "label", CHANGES, ReadOptions(sheet="data"))
        with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(io.BytesIO(new)) as after:
            assert old.namelist() == after.namelist()
            differ = [name for name in old.namelist() if old.read(name) != after.read(name)]
        assert differ == ["xl/worksheets/sheet1.xml"]
        sheet = openpyxl.load_workbook(io.BytesIO(new))["data"]
        assert [sheet[f"C{row}"].value for row in range(2, 6)] == CHANGED
        assert sheet["C2"].font.bold
        assert sheet["D3"].value == "=2*A3"

    def test_a_sheet_may_start_anywhere(self, tmp_path):
        workbook = openpyxl.Workbook()
        for row, line in enumerate([["label", 2024], ["ham", 1], ["spam", 2]], start=4):
            for column, value in enumerate(line, start=27):
                workbook.active.cell(row, column, value)
        path = write(tmp_path / "t.xlsx", written.saved_workbook(workbook))
        assert cells(read_table(path)) == {"label": ["ham", "spam"], "2024": ["1", "2"]}
        write(path, rewritten(path, "label", {1: "ham"}))
        assert read_table(path).texts("label") == ["ham", "ham"]

    @pytest.mark.parametrize("value", [True, 3, 2.5, "a <b> & é \U0001f600", " spaced "])
    def test_values_keep_their_type(self, tmp_path, value):
        columns = {"label": [value, None, "x"]}
        path = write(tmp_path / "t.xlsx", written.as_workbook({"a": [1, 2, 3], **columns}))
        write(path, rewritten(path, "label", {1: value}))
        assert list(read_table(path).column("label")) == [value, value, "x"]

    def test_a_blank_row_of_a_single_column_is_an_empty_cell(self, tmp_path):
        path = write(tmp_path / "t.xlsx", written.as_workbook({"label": ["x", None, "y"]}))
        assert list(read_table(path).column("label")) == ["x", None, "y"]
        write(path, rewritten(path, "label", {1: "y"}))
        assert list(read_table(path).column("label")) == ["x", "y", "y"]

    def test_sheets(self, tmp_path):
        path = write(tmp_path / "t.xlsx", written.as_workbook(COLUMNS, ["notes"]))
        with pytest.raises(ValueError, match="several sheets, 'data', 'notes': name one with"):
            read_table(path)
        assert list(read_table(path, ReadOptions(sheet="data")).columns) == list(COLUMNS)
        with pytest.raises(ValueError, match="has no sheet 'x': its sheets are 'data', 'notes'"):
            read_table(path, ReadOptions(sheet="x"))

    def test_errors(self, tmp_path):
        path = write(tmp_path / "t.xlsx", b"PK no workbook")
        with pytest.raises(ValueError, match=r"t.xlsx is not an Excel workbook"):
            read_table(path)
        write(path, zipped("x"))
        with pytest.raises(ValueError, match=r"t.xlsx cannot be read as an Excel workbook"):
            read_table(path)
        write(path, written.as_workbook({"a": [1, None, 3], "label": ["x", None, "y"]}))
        with pytest.raises(ValueError, match="has a blank row, number 3 of the sheet 'data'"):
            read_table(path)
        write(path, written.as_workbook({"a": ["=1+1", 2], "label": ["x", "y"]}))
        with pytest.raises(ValueError, match="a formula without a stored value in cell A2"):
            read_table(path)
        write(path, written.saved_workbook(openpyxl.Workbook()))
        with pytest.raises(ValueError, match=r"t.xlsx has no cells: use a file with data"):
            read_table(path)
        with pytest.raises(ValueError, match=r"t.xlsx has no cells in the sheet 'Sheet'"):
            read_table(path, ReadOptions(sheet="Sheet"))

    def test_a_label_that_is_a_formula_is_not_replaced(self, tmp_path):
        content = self.decorated()
        path = write(tmp_path / "t.xlsx", content)
        with pytest.raises(ValueError, match="has a formula in cell D2, whose value is to change"):
            rewritten(path, "twice", {0: 8}, ReadOptions(sheet="data"))


class TestArrow:
    def test_types_categories_and_metadata_stay(self, tmp_path):
        labels = pa.DictionaryArray.from_arrays(
            pa.array([1, None, 1], pa.int8()), ["unused", "x"], ordered=True
        )
        table = pa.table({"n": pa.array([1, 2, 3], pa.uint8()), "label": labels})
        table = table.replace_schema_metadata({"who": "me"})
        path = write(tmp_path / "t.feather", written.as_arrow_file(table))
        write(path, rewritten(path, "label", {1: "x"}))
        back = pa.ipc.open_file(path).read_all()
        assert back.schema.equals(table.schema, check_metadata=True)
        assert back.column("label").chunk(0).dictionary.to_pylist() == ["unused", "x"]
        assert back.column("label").to_pylist() == ["x", "x", "x"]

    def test_error(self, tmp_path):
        with pytest.raises(ValueError, match="cannot be read as an Arrow or Feather file"):
            read_table(write(tmp_path / "t.arrow", b"ARROW1 no arrow"))

    def test_class_numbers_of_hugging_face_are_names(self, tmp_path):
        features = {"label": {"names": ["ham", "spam"], "_type": "ClassLabel"}}
        description = json.dumps({"info": {"features": features}})
        table = pa.table({"label": [0, 1, -1]}).replace_schema_metadata(
            {"huggingface": description}
        )
        path = write(tmp_path / "t.arrow", written.as_arrow_stream(table))
        assert list(read_table(path).column("label")) == ["ham", "spam", None]
        write(path, rewritten(path, "label", {2: "spam"}))
        assert pa.ipc.open_stream(path).read_all().column("label").to_pylist() == [0, 1, 1]
        write(path, written.as_arrow_stream(table.set_column(0, "label", pa.array([0, 1, 5]))))
        with pytest.raises(ValueError, match=r"has 5 in row 2 .* but the dataset names 2 classes"):
            read_table(path)


class TestNumpy:
    def test_arrays_are_columns_or_blocks(self, tmp_path):
        arrays = {
            "y": np.array([0, 1, 0]),
            "image": np.arange(12).reshape(3, 2, 2),
            "note": np.array("x"),
        }
        np.savez(tmp_path / "t.npz", **arrays)
        table = read_table(tmp_path / "t.npz")
        assert list(table.columns) == ["y"]
        np.testing.assert_array_equal(table.blocks["image"], np.arange(12).reshape(3, 4))

    def test_single_arrays_are_called_like_their_file(self, tmp_path):
        np.save(tmp_path / "labels.npy", np.array(["x", "y"]))
        np.save(tmp_path / "features.npy", np.eye(2))
        record = np.array([(1, b"x"), (2, b"y")], dtype=[("a", int), ("label", "S1")])
        np.save(tmp_path / "record.npy", record)
        assert cells(read_table(tmp_path / "labels.npy")) == {"labels": ["x", "y"]}
        assert list(read_table(tmp_path / "features.npy").blocks) == ["features"]
        path = tmp_path / "record.npy"
        assert cells(read_table(path)) == {"a": ["1", "2"], "label": ["x", "y"]}
        write(path, rewritten(path, "label", {0: "y"}))
        assert np.load(path).tolist() == [(1, b"y"), (2, b"y")]
        with pytest.raises(ValueError, match="has no column 'y': it holds features only"):
            read_table(tmp_path / "features.npy").column("y")

    def test_other_arrays_stay(self, tmp_path):
        path = tmp_path / "t.npz"
        np.savez_compressed(
            path, y=np.array([0, 1, 0], np.int8), x=np.array([[1.0], [np.nan], [2]])
        )
        content = path.read_bytes()
        new = rewritten(path, "y", {0: 1})
        with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(io.BytesIO(new)) as after:
            assert old.read("x.npy") == after.read("x.npy")
        write(path, new)
        assert np.load(path)["y"].tolist() == [1, 1, 0]
        assert np.load(path)["y"].dtype == np.int8

    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            ({"x_train": np.zeros(3), "x_test": np.zeros(2)}, "lengths .x_train: 3, x_test: 2."),
            ({"x": np.array([1j])}, "'x' of .* holds complex128: save numbers or texts"),
            ({"x": np.array([["a"]])}, "'x' of .* holds <U1 in 2 dimensions"),
            ({"x": np.array([{}])}, "holds Python objects as a pickle, which is not read"),
        ],
    )
    def test_errors(self, tmp_path, arrays, message):
        np.savez(tmp_path / "t.npz", **arrays)
        with pytest.raises(ValueError, match=message):
            read_table(tmp_path / "t.npz")

    def test_damaged_files(self, tmp_path):
        for name in ("t.npy", "t.npz"):
            with pytest.raises(ValueError, match=r"pickle|cannot be read as a NumPy file"):
                read_table(write(tmp_path / name, b"\x93NUMPY no array"))


CLASS_NUMBERS = {"text": ["a", "b", "c", "d", "e"], "label": [0, 1, -1, None, 1]}
CLASS_NAMES = {"label": ["ham", "spam"]}


class TestDatasetFolder:
    def test_class_numbers_are_names(self, tmp_path):
        table = read_table(write_dataset(tmp_path / "d", CLASS_NUMBERS, CLASS_NAMES))
        assert cells(table) == {
            "text": ["a", "b", "c", "d", "e"],
            "label": ["ham", "spam", "", "", "spam"],
        }

    def test_only_the_changed_data_file_is_new(self, tmp_path):
        folder = write_dataset(tmp_path / "d", CLASS_NUMBERS, CLASS_NAMES)
        new = rewritten_folder(folder, "label", {3: "ham", 4: "ham"})
        first, second = (f"data-0000{number}-of-00002.arrow" for number in range(2))
        assert new[first] == (folder / first).read_bytes()
        assert pa.ipc.open_stream(new[second]).read_all().column("label").to_pylist() == [0, 0]
        assert json.loads(new["state.json"])["_fingerprint"] != "0123456789abcdef"

    def test_errors(self, tmp_path):
        folder = write_dataset(tmp_path / "d", CLASS_NUMBERS, CLASS_NAMES)
        (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
        with pytest.raises(ValueError, match=r"has the parts train, test: name one of them, for"):
            read_table(tmp_path)
        with pytest.raises(ValueError, match=r"--sep does not apply to .*d, a folder: omit it"):
            read_table(folder, ReadOptions(separator=";"))
        for name in ("../secret.arrow", "/secret.arrow", ".."):
            state = {"_data_files": [{"filename": name}]}
            (folder / "state.json").write_text(json.dumps(state))
            with pytest.raises(ValueError, match=r"state.json names no data files"):
                read_table(folder)
        (folder / "state.json").write_text("{")
        with pytest.raises(ValueError, match=r"state.json is not JSON"):
            read_table(folder)
        (folder / "state.json").unlink()
        with pytest.raises(ValueError, match="has not all files of a dataset written by"):
            read_table(folder)


class TestText:
    @pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "cp1252", "utf-8-sig"])
    def test_encodings_stay(self, tmp_path, encoding):
        path = write(tmp_path / "t.csv", CSV.encode(encoding))
        options = ReadOptions(encoding=encoding)
        assert read_table(path, options).texts("text") == COLUMNS["text"]
        new = rewritten(path, "label", {0: "spam"}, options)
        assert new == CSV.replace("ham", "spam", 1).encode(encoding)

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "cp1252"])
    def test_the_likely_encoding_is_named(self, tmp_path, encoding):
        path = write(tmp_path / "t.csv", CSV.encode(encoding))
        with pytest.raises(ValueError, match=f"pass its encoding, probably --encoding {encoding}"):
            read_table(path)

    def test_errors(self, tmp_path):
        path = write(tmp_path / "t.csv", CSV.encode("cp1252"))
        for encoding in ("nonsense", "zlib", "a\x00b"):
            with pytest.raises(ValueError, match="is not a known encoding: use for example utf-8"):
                read_table(path, ReadOptions(encoding=encoding))
        with pytest.raises(
            ValueError, match=r"not text in the encoding ascii .byte 0xe9 in line 2"
        ):
            read_table(path, ReadOptions(encoding="ascii"))
        for separator in ("::", "", "\n", '"'):
            with pytest.raises(ValueError, match="--sep must be one character"):
                read_table(path, ReadOptions(encoding="cp1252", separator=separator))
        other = write(tmp_path / "t.npz", CONTENTS["t.npz"])
        with pytest.raises(ValueError, match=r"--encoding does not apply to .*t.npz, a .npz file"):
            read_table(other, ReadOptions(encoding="utf-8"))

    @pytest.mark.parametrize(("name", "separator"), [("tab", "\t"), ("\\t", "\t"), ("^", "^")])
    def test_a_named_separator(self, tmp_path, name, separator):
        path = write(tmp_path / "t.csv", "a;b,c\n1;2,3\n".replace(",", separator))
        options = ReadOptions(separator=name)
        assert list(read_table(path, options).columns) == ["a;b", "c"]
        assert rewritten(path, "c", {0: "4"}, options).endswith(b"4\n")

    @pytest.mark.parametrize(
        "text",
        [
            "text|label\nwell, this, is, text|x\nno commas|y\n",
            '"text"|"label"\n"a, b, c|d"|"x"\n"e, f, g"|"y"\n',
            "name, first|name, last|label\nA, B|C|x\nD|E|y\nF|G, H|x\n",
            "id|text, as typed|label\n1|one, two|x\n2|three|y\n3|four|y\n",
        ],
    )
    def test_vertical_bars_between_texts_with_commas(self, tmp_path, text):
        table = read_table(write(tmp_path / "t.csv", text))
        assert list(table.columns)[-1] == "label"
        assert set(table.texts("label")) == {"x", "y"}


class TestHostileFiles:
    @pytest.mark.parametrize("ending", compressed(b""))
    def test_a_file_that_expands_too_far(self, tmp_path, monkeypatch, ending):
        monkeypatch.setattr(compression, "_MOST_BYTES", 5 * 10**4)
        content = b"a,label\n" + b"1,x\n" * 2 * 10**4
        path = write(tmp_path / f"t.csv{ending}", compressed(content)[ending])
        with pytest.raises(ValueError, match="expands to more than 200 times its size"):
            read_table(path)
        monkeypatch.undo()
        assert read_table(path).n_rows == 2 * 10**4

    def test_archives_that_expand_too_far(self, tmp_path, monkeypatch):
        monkeypatch.setattr(compression, "_MOST_BYTES", 10**5)
        np.savez_compressed(tmp_path / "t.npz", x=np.zeros((10**4, 100)))
        write(tmp_path / "t.xlsx", zipped(bytes(10**7)))
        for name in ("t.npz", "t.xlsx"):
            with pytest.raises(ValueError, match="expands to more than 200 times its size"):
                read_table(tmp_path / name)

    @pytest.mark.parametrize("ending", compressed(b""))
    def test_damaged_compression(self, tmp_path, ending):
        content = compressed(CSV.encode())[ending]
        for damaged in (content[:-9], b"no compression"):
            path = write(tmp_path / f"t.csv{ending}", damaged)
            with pytest.raises(ValueError, match=f"ends in {ending} but is not a complete"):
                read_table(path)

    def test_zip_files_with_several_files(self, tmp_path):
        path = write(tmp_path / "t.zip", zipped(CSV, "a.csv", "b.csv"))
        with pytest.raises(ValueError, match=r"t.zip holds 2 files, not one"):
            read_table(path)

    @pytest.mark.parametrize("part", ["xl/worksheets/sheet1.xml", "xl/workbook.xml"])
    def test_a_workbook_with_entities_is_not_read(self, tmp_path, part):
        with zipfile.ZipFile(io.BytesIO(CONTENTS["t.xlsx"])) as archive:
            markup = archive.read(part)
        lines = [b'<!ENTITY a0 "boom">']
        lines += [b'<!ENTITY a%d "%s">' % (i, b"&a%d;" % (i - 1) * 10) for i in range(1, 9)]
        bomb = b"<!DOCTYPE x [" + b"".join(lines) + b"]>" + re.sub(rb"^<\?xml.*?\?>", b"", markup)
        content = compression.with_member(CONTENTS["t.xlsx"], part, bomb)
        harmless = compression.with_member(CONTENTS["t.xlsx"], part, markup)
        assert read_table(write(tmp_path / "t.xlsx", harmless)).n_rows == 4
        with pytest.raises(ValueError, match="cannot be read as an Excel workbook"):
            read_table(write(tmp_path / "t.xlsx", content))
