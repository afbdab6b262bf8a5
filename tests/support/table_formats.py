"""Writers of a table in every file format that commands read."""

import bz2
import gzip
import io
import json
import zipfile

import numpy as np
import pyarrow as pa
from pyarrow import parquet


def as_rows(columns):
    """Return columns as dictionaries, one for each row."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def as_workbook(columns, other_sheets=()):
    """Return columns as an Excel workbook, with further sheets of one cell each."""
    import openpyxl

    workbook = openpyxl.Workbook()
    sheet = workbook.active
    sheet.title = "data"
    sheet.append(list(columns))
    for row in zip(*columns.values(), strict=True):
        sheet.append(list(row))
    for title in other_sheets:
        workbook.create_sheet(title).append(["cell"])
    return saved_workbook(workbook)


def saved_workbook(workbook):
    """Return an openpyxl workbook as a file."""
    buffer = io.BytesIO()
    workbook.save(buffer)
    return buffer.getvalue()


def as_arrow_file(columns):
    """Return columns in the file format of Arrow, which is that of Feather."""
    return _as_arrow(columns, pa.ipc.new_file)


def as_arrow_stream(columns):
    """Return columns in the stream format of Arrow."""
    return _as_arrow(columns, pa.ipc.new_stream)


def _as_arrow(columns, opened):
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    buffer = io.BytesIO()
    with opened(buffer, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return buffer.getvalue()


def as_parquet(columns):
    """Return columns as a Parquet file."""
    buffer = io.BytesIO()
    parquet.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def as_npz(columns):
    """Return columns as a NumPy archive; missing texts are empty."""
    buffer = io.BytesIO()
    np.savez(buffer, **{name: np.array(_filled(cells)) for name, cells in columns.items()})
    return buffer.getvalue()


def as_npy(array):
    """Return an array as a NumPy file."""
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def _filled(cells):
    has_text = any(isinstance(cell, str) for cell in cells)
    return [("" if has_text else np.nan) if cell is None else cell for cell in cells]


def as_csv_text(columns):
    """Return columns as CSV without quotes; missing cells are empty."""
    lines = [
        ["" if cell is None else str(cell) for cell in row]
        for row in zip(*columns.values(), strict=True)
    ]
    return "".join(",".join(line) + "\n" for line in [list(columns), *lines])


def as_json_layouts(columns):
    """Return columns as JSON in every layout that is read, by its name."""
    rows = as_rows(columns)
    names = [str(row) for row in range(len(rows))]
    cells = [list(row.values()) for row in rows]
    layouts = {
        "records": rows,
        "table": {"schema": {"fields": []}, "data": rows},
        "split": {"columns": list(columns), "index": names, "data": cells},
        "lists": columns,
        "objects": {
            name: dict(zip(names, column, strict=True)) for name, column in columns.items()
        },
        "rows": dict(zip(names, rows, strict=True)),
    }
    texts = {name: json.dumps(layout, ensure_ascii=False) for name, layout in layouts.items()}
    return texts | {"lines": "".join(json.dumps(row) + "\n" for row in rows)}


def zipped(content, name="data.csv", *others):
    """Return a zip archive with a file, and other empty files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
        for other in others:
            archive.writestr(other, b"")
    return buffer.getvalue()


def compressed(content, name="data.csv"):
    """Return content in every compression, by its ending; `name` is that of the zip member."""
    return {
        ".gz": gzip.compress(content, mtime=0),
        ".bz2": bz2.compress(content),
        ".zst": pa.Codec("zstd").compress(content, asbytes=True),
        ".zip": zipped(content, name),
    }


def write_dataset(folder, columns, class_names, n_files=2):
    """Write a folder as `save_to_disk` of Hugging Face datasets does.

    Parameters
    ----------
    folder : Path
        The folder.
    columns : dict
        The columns; those with class names hold numbers.
    class_names : dict of str to list of str
        Names of the classes.
    n_files : int
        Number of data files.
    """
    folder.mkdir(parents=True)
    table = pa.table(columns)
    features = {name: {"dtype": "string", "_type": "Value"} for name in columns}
    for name, names in class_names.items():
        features[name] = {"names": names, "_type": "ClassLabel"}
    size = -(-table.num_rows // n_files)
    files = [f"data-{number:05}-of-{n_files:05}.arrow" for number in range(n_files)]
    for number, name in enumerate(files):
        (folder / name).write_bytes(as_arrow_stream(table.slice(number * size, size)))
    state = {
        "_data_files": [{"filename": name} for name in files],
        "_fingerprint": "0123456789abcdef",
        "_split": None,
    }
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text(json.dumps({"features": features}))
    return folder
