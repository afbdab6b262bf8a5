"""The commands on files of every format, with features in a file of their own."""

import csv
import json

import numpy as np
import pytest

from support.files import NAMES, NOISE, mixture_file, program, read_csv, write_csv
from unflip.datasets import make_mixture

pa = pytest.importorskip("pyarrow", reason="needs the extra unflip[cli]")
pytest.importorskip("openpyxl", reason="needs the extra unflip[cli]")
from support import table_formats as written  # noqa: E402

N = 200


def columns_of(path):
    """Return the columns of a CSV file, with numbers where the cells are numbers."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return {
        name: [float(cell) if name.startswith("x") else cell for cell in cells]
        for name, *cells in zip(header, *rows, strict=True)
    }


@pytest.fixture(scope="module")
def columns(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "d.csv"
    true = mixture_file(path, n=N)
    return {**columns_of(path), "guess": true.tolist()}


@pytest.fixture
def contents(columns):
    csv_text = written.as_csv_text(columns)
    utf_16 = csv_text.replace(",", "^").encode("utf-16")
    return {
        "d.xlsx": (written.as_workbook(columns, ["notes"]), ["--sheet", "data"]),
        "d.feather": (written.as_arrow_file(columns), []),
        "d.json": (written.as_json_layouts(columns)["objects"].encode(), []),
        "d.npz": (written.as_npz(columns), []),
        "d.csv.zst": (written.compressed(csv_text.encode())[".zst"], []),
        "d.zip": (written.compressed(csv_text.encode())[".zip"], []),
        "d.txt": (utf_16, ["--encoding", "utf-16", "--sep", "^"]),
    }


def answer(*arguments):
    return json.loads(program(*arguments, "--json").stdout)


def test_all_formats_give_the_same_audit_model_and_copy(tmp_path, columns, contents):
    expected = None
    for name, (content, options) in contents.items():
        (tmp_path / name).write_bytes(content)
        path = tmp_path / name
        suspects = tmp_path / "suspects.csv"
        audit = answer("audit", path, "--label", "label", "--suspects", suspects, *options)
        model = tmp_path / "m.skops"
        fit = answer("fit", path, "--label", "label", "--out", model, *options)
        predictions = answer("predict", model, path, *options)
        evaluated = answer("evaluate", path, "--label", "label", "--prediction", "guess", *options)
        results = (
            audit["suspects"],
            fit["noise_rate"],
            predictions["rows"],
            evaluated["metrics"]["accuracy"],
        )
        expected = expected or results
        assert results == expected, name

        rows = read_csv(suspects)
        changed = [line for line in rows if line["part"] == "suspect"][:5]
        decisions = [{**line, "decision": "accept"} for line in changed]
        write_csv(tmp_path / "decisions.csv", **_columns(decisions))
        out = tmp_path / f"clean{''.join(path.suffixes)}"
        program("apply", path, tmp_path / "decisions.csv", "--out", out, *options)
        labels = list(columns["label"])
        for line in changed:
            labels[int(line["row"])] = line["proposed"]
        again = answer("audit", out, "--label", "label", *options)
        assert again["labels"] == {label: labels.count(label) for label in sorted(set(labels))}
    assert len(expected[0]) >= 5


def _columns(rows):
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_next_steps_repeat_the_options_of_the_file(tmp_path, contents):
    content, options = contents["d.txt"]
    path = tmp_path / "d.txt"
    path.write_bytes(content)
    suspects = tmp_path / "suspects.csv"
    text = program("audit", path, "--label", "label", "--suspects", suspects, *options).stdout
    words = " ".join(text.split())
    assert "--out clean.txt" in words
    assert "--encoding utf-16 --sep ^" in words.replace("'", "")


@pytest.fixture
def features(tmp_path):
    """Write labels and features into files of their own; return the folder and the features."""
    X, true = make_mixture(N, 6, mean_norm=2.0, random_state=0)
    observed = NAMES[NOISE.flip(true, random_state=0)]
    write_csv(tmp_path / "labels.csv", name=[f"r{i}" for i in range(N)], label=observed)
    np.save(tmp_path / "features.npy", X)
    return tmp_path, X, observed


def test_features_in_a_file_of_their_own_equal_columns(features):
    folder, X, observed = features
    written_columns = {f"e{j}": X[:, j] for j in range(X.shape[1])}
    np.savez(folder / "features.npz", e=X)
    np.savez(folder / "together.npz", e=X, label=observed)
    np.save(folder / "labels.npy", observed)
    write_csv(folder / "features.csv", **written_columns)
    (folder / "features.parquet").write_bytes(written.as_parquet({"e": X.tolist()}))
    write_csv(folder / "together.csv", **written_columns, label=observed)
    expected = answer("audit", folder / "together.csv", "--label", "label", "--embedding", "e")
    for data, embedding in (
        ("labels.csv", folder / "features.npy"),
        ("labels.csv", folder / "features.npz"),
        ("labels.csv", folder / "features.csv"),
        ("labels.csv", folder / "features.parquet"),
        ("together.npz", "e"),
    ):
        audit = answer("audit", folder / data, "--label", "label", "--embedding", embedding)
        assert audit["features"]["kind"] == "embedding"
        assert audit["features"]["n_features"] == 6
        assert [line["row"] for line in audit["suspects"]] == [
            line["row"] for line in expected["suspects"]
        ]
    alone = answer(
        *("audit", folder / "labels.npy", "--label", "labels"),
        *("--embedding", folder / "features.npy"),
    )
    assert alone["n_suspects"] == expected["n_suspects"]


def test_predict_takes_the_features_of_new_rows(features):
    folder, X, _ = features
    model = folder / "m.skops"
    program(
        *("fit", folder / "labels.csv", "--label", "label", "--out", model),
        *("--embedding", folder / "features.npy"),
    )
    new = write_csv(folder / "new.csv", name=["a", "b", "c"])
    np.save(folder / "new.npy", X[:3])
    predicted = answer("predict", model, new, "--embedding", folder / "new.npy", "--id", "name")
    assert [row["id"] for row in predicted["rows"]] == ["a", "b", "c"]
    alone = answer("predict", model, folder / "new.npy")
    assert [row["p(ham)"] for row in alone["rows"]] == [row["p(ham)"] for row in predicted["rows"]]
    error = program("predict", model, new, "--json", code=2).stderr
    assert "no column 'features.npy', which is a feature of the model" in error
    assert "pass a file of features with --embedding" in error
    np.save(folder / "narrow.npy", X[:3, :4])
    error = program("predict", model, folder / "narrow.npy", "--json", code=2).stderr
    assert "has 4 numbers in each row, but had 6" in error


@pytest.mark.parametrize(
    ("name", "made", "message"),
    [
        ("f.npy", lambda X: X[:-1], "f.npy has 199 rows, but"),
        ("f.npz", lambda X: {"a": X, "b": X}, "f.npz has several arrays ('a', 'b')"),
        ("f.npy", lambda X: np.where(X > 2, np.nan, X), "that is not a finite number"),
        ("f.npy", lambda X: X.astype(str), "holds <U32 in 2 dimensions"),
        ("f.csv", lambda X: {"": range(N), "e": X[:, 0]}, "only numbers the rows: remove it"),
        ("f.csv", lambda X: {"t": ["x"] * N, "e": X[:, 0]}, "Column 't' of"),
        ("f.csv", None, "f.csv does not exist"),
    ],
)
def test_errors_of_feature_files(features, name, made, message):
    folder, X, _ = features
    content = None if made is None else made(X)
    if isinstance(content, dict) and name.endswith(".csv"):
        write_csv(folder / name, **content)
    elif isinstance(content, dict):
        np.savez(folder / name, **content)
    elif content is not None:
        np.save(folder / name, content)
    arguments = ["--label", "label", "--embedding", folder / name]
    assert message in program("audit", folder / "labels.csv", *arguments, code=2).stderr


@pytest.mark.parametrize("command", ["audit", "predict"])
def test_a_feature_file_is_not_overwritten(features, command):
    folder, X, _ = features
    path = write_csv(folder / "features.csv", **{f"e{j}": X[:, j] for j in range(X.shape[1])})
    data = folder / "labels.csv"
    words = [data, "--label", "label", "--embedding", path]
    if command == "predict":
        program("fit", *words, "--out", folder / "m.skops")
        words = [folder / "m.skops", data, "--embedding", path, "--out", path]
    else:
        words += ["--suspects", path]
    content = path.read_bytes()
    assert "is the input file" in program(command, *words, code=2).stderr
    assert path.read_bytes() == content


def test_an_embedding_file_is_of_no_use_to_a_model_of_columns(tmp_path):
    path = tmp_path / "d.csv"
    mixture_file(path, n=N)
    program("fit", path, "--label", "label", "--out", tmp_path / "m.skops")
    np.save(tmp_path / "f.npy", np.zeros((N, 6)))
    arguments = ["predict", tmp_path / "m.skops", path, "--embedding", tmp_path / "f.npy"]
    error = program(*arguments, "--json", code=2).stderr
    assert "f.npy does not apply, because the features of the model are 6 numeric" in error


def test_a_saved_dataset_is_audited_and_corrected(tmp_path, columns):
    codes = [int(label == "spam") for label in columns["label"]]
    folder = written.write_dataset(
        tmp_path / "data", {**columns, "label": codes}, {"label": ["ham", "spam"]}, n_files=3
    )
    suspects = tmp_path / "suspects.csv"
    audit = answer("audit", folder, "--label", "label", "--suspects", suspects)
    assert audit["labels"] == {label: columns["label"].count(label) for label in ("ham", "spam")}
    decided = [{**line, "decision": "accept"} for line in read_csv(suspects)[:3]]
    write_csv(tmp_path / "decisions.csv", **_columns(decided))
    arguments = ["apply", folder, tmp_path / "decisions.csv", "--out", tmp_path / "clean"]
    program(*arguments)
    again = answer("audit", tmp_path / "clean", "--label", "label")
    n_ham = sum(line["proposed"] == "ham" for line in decided)
    assert again["labels"]["ham"] == audit["labels"]["ham"] + n_ham - (3 - n_ham)
    assert "clean exists already: choose another name" in program(*arguments, code=2).stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "clean",
        "data",
        "decisions.csv",
        "suspects.csv",
    ]


def test_a_dataset_of_the_library_itself(tmp_path, columns):
    datasets = pytest.importorskip("datasets", reason="reads and writes the folders")
    datasets.disable_progress_bars()
    features = datasets.Features(
        {name: datasets.Value("float64" if name[0] == "x" else "string") for name in columns}
        | {"label": datasets.ClassLabel(names=["ham", "spam"])}
    )
    datasets.Dataset.from_dict(columns, features=features).save_to_disk(
        str(tmp_path / "data"), num_shards=2
    )
    suspects = tmp_path / "suspects.csv"
    audit = answer("audit", tmp_path / "data", "--label", "label", "--suspects", suspects)
    assert audit["features"]["columns"] == [
        name for name in columns if name.startswith("x") or name == "guess"
    ]
    line = read_csv(suspects)[0]
    write_csv(tmp_path / "decisions.csv", **_columns([{**line, "decision": "accept"}]))
    program("apply", tmp_path / "data", tmp_path / "decisions.csv", "--out", tmp_path / "clean")
    back = datasets.load_from_disk(str(tmp_path / "clean"))
    expected = list(columns["label"])
    expected[int(line["row"])] = line["proposed"]
    assert back.features["label"].int2str(back["label"][:]) == expected
    assert back["x0"][:] == columns["x0"]
