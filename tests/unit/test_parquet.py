"""Sums over Parquet files: the same as over their rows in memory."""

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


def assert_same(found):
    np.testing.assert_allclose(found.scatter, WHOLE.scatter, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.class_means, WHOLE.class_means, rtol=1e-10, atol=1e-12)
    assert found.feature_names.tolist() == ["a", "b", "c"]
    assert found.classes.tolist() == ["cat", "dog"]


@pytest.fixture
def files(tmp_path):
    parts = [
        FRAME[:300],
        FRAME[300:][["weight", "c", "label", "b", "a"]],
    ]  # columns in another order
    for i, part in enumerate(parts):
        part.to_parquet(tmp_path / f"{i}.parquet", row_group_size=70)
    return [tmp_path / "0.parquet", tmp_path / "1.parquet"]


def test_files_are_read_a_few_rows_at_a_time(files, monkeypatch):
    monkeypatch.setattr("unflip.data.parquet._CHUNK_VALUES", 120)
    assert_same(Moments.from_parquet(files, label="label", sample_weight="weight"))
    FRAME.to_parquet(files[0])
    assert_same(Moments.from_parquet(str(files[0]), label="label", sample_weight="weight"))


def test_some_columns_and_labels_of_other_kinds(tmp_path):
    frame = FRAME.assign(
        label=FRAME["label"].astype("category"),
        whole=np.arange(N),
        single=np.float32(1) * FRAME["a"],
    )
    frame.to_parquet(tmp_path / "x.parquet")
    found = Moments.from_parquet(
        tmp_path / "x.parquet", label="label", features=["whole", "single"], classes=["cat", "dog"]
    )
    assert found.feature_names.tolist() == ["whole", "single"]
    assert found.n == N
    frame.assign(label=FRAME["label"] == "cat").to_parquet(tmp_path / "x.parquet")
    assert Moments.from_parquet(
        tmp_path / "x.parquet", label="label", features=["a"]
    ).classes.tolist() == [False, True]


def test_wrong_files_and_columns_are_named(tmp_path, files):
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


def test_without_pyarrow_the_extra_is_named(monkeypatch, files):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r'pip install "unflip\[parquet\]"'):
        Moments.from_parquet(files, label="label")
