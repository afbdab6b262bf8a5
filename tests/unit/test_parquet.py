"""Moments of Parquet files equal those of the rows in memory."""

import sys

import numpy as np
import pytest

from unflip.ridge.moments import ChunkError, Moments

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

RNG = np.random.default_rng(0)
N = 500
FRAME = pandas.DataFrame(RNG.normal(size=(N, 3)), columns=["a", "b", "c"])
FRAME["label"] = RNG.choice(["cat", "dog"], size=N)
FRAME["weight"] = RNG.uniform(size=N)
WHOLE = Moments.from_chunks([(FRAME[["a", "b", "c"]], FRAME["label"], FRAME["weight"])])


def assert_same(actual):
    np.testing.assert_allclose(actual.scatter, WHOLE.scatter, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(actual.class_means, WHOLE.class_means, rtol=1e-10, atol=1e-12)
    assert actual.feature_names.tolist() == ["a", "b", "c"]
    assert actual.classes.tolist() == ["cat", "dog"]


@pytest.fixture
def files(tmp_path):
    # The columns of the second file are in another order.
    parts = [FRAME[:300], FRAME[300:][["weight", "c", "label", "b", "a"]]]
    for i, part in enumerate(parts):
        part.to_parquet(tmp_path / f"{i}.parquet", row_group_size=70)
    return [tmp_path / "0.parquet", tmp_path / "1.parquet"]


def test_files_are_read_in_chunks(files, monkeypatch):
    monkeypatch.setattr("unflip.data.parquet._CHUNK_VALUES", 120)
    assert_same(Moments.from_parquet(files, label="label", sample_weight="weight"))
    FRAME.to_parquet(files[0])
    assert_same(Moments.from_parquet(str(files[0]), label="label", sample_weight="weight"))


def test_selected_columns_and_other_types_of_labels(tmp_path):
    frame = FRAME.assign(
        label=FRAME["label"].astype("category"),
        whole=np.arange(N),
        single=np.float32(1) * FRAME["a"],
    )
    frame.to_parquet(tmp_path / "x.parquet")
    actual = Moments.from_parquet(
        tmp_path / "x.parquet", label="label", features=["whole", "single"], classes=["cat", "dog"]
    )
    assert actual.feature_names.tolist() == ["whole", "single"]
    assert actual.n == N
    frame.assign(label=FRAME["label"] == "cat").to_parquet(tmp_path / "x.parquet")
    assert Moments.from_parquet(
        tmp_path / "x.parquet", label="label", features=["a"]
    ).classes.tolist() == [False, True]


def test_errors_name_the_file_and_the_column(tmp_path, files):
    with pytest.raises(
        ChunkError, match=r"0\.parquet has no column 'lable': it has a, b, c, label, weight"
    ):
        Moments.from_parquet(files, label="lable", features=["a"])
    FRAME[["a", "label"]].to_parquet(files[1])
    with pytest.raises(ChunkError, match=r"1\.parquet has no column 'b'") as caught:
        Moments.from_parquet(files, label="label", features=["a", "b"])
    assert caught.value.moments.n == 300
    with pytest.raises(
        ChunkError, match=r"Column 'label' of .*0\.parquet holds .*string, not numbers"
    ):
        Moments.from_parquet(files[0], label="a", features=["b", "label"])
    FRAME.assign(b=FRAME["b"].where(FRAME.index != 4)).to_parquet(files[0])
    with pytest.raises(ChunkError, match="column 'b' of its row 4 is nan"):
        Moments.from_parquet(files[0], label="label")
    (tmp_path / "text.parquet").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"text\.parquet is not a Parquet file"):
        Moments.from_parquet(tmp_path / "text.parquet", label="label")
    with pytest.raises(FileNotFoundError):
        Moments.from_parquet(tmp_path / "absent.parquet", label="label")
    with pytest.raises(ValueError, match="paths is empty"):
        Moments.from_parquet([], label="label")


def test_error_without_pyarrow_names_the_extra(monkeypatch, files):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r'pip install "unflip\[parquet\]"'):
        Moments.from_parquet(files, label="label")
