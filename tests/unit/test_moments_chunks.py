"""Moments from chunks of any rows and labels, errors in chunks, files and merging."""

import tracemalloc
from datetime import date

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from unflip.ridge.moments import ChunkError, Moments

array_api_strict = pytest.importorskip("array_api_strict")
pandas = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
N = 700
P = 6
X = RNG.normal(size=(N, P)) + 3
LABELS = np.array(["cat", "dog", "eel"])[RNG.integers(3, size=N)]
WEIGHTS = RNG.uniform(0, 2, size=N)
WHOLE = Moments.from_rows(X, np.unique(LABELS, return_inverse=True)[1], 3, WEIGHTS)
NAMES = [f"gene {j}" for j in range(P)]


def assert_same(actual, expected=WHOLE, rtol=1e-12):
    for name in ("counts", "class_means", "scatter", "squared_weights"):
        np.testing.assert_allclose(
            np.asarray(getattr(actual, name)), getattr(expected, name), rtol, atol=1e-11
        )


def pieces(height, X=X, y=LABELS, weights=WEIGHTS):
    for start in range(0, N, height):
        part = slice(start, start + height)
        yield X[part], y[part], weights[part]


@pytest.mark.parametrize("height", [1, 13, 350, N])
def test_moments_do_not_depend_on_the_size_of_chunks(height, monkeypatch):
    monkeypatch.setattr("unflip.ridge.moments.block_height", lambda n_features: 40)
    actual = Moments.from_chunks(pieces(height), classes=["eel", "dog", "cat"])
    assert actual.classes.tolist() == ["cat", "dog", "eel"]
    assert_same(actual)


def test_many_chunks_far_from_the_origin_are_accurate(monkeypatch):
    monkeypatch.setattr("unflip.ridge.moments.block_height", lambda n_features: 8)
    far = Moments.from_chunks(pieces(5, X + 1e7), classes=np.unique(LABELS))
    np.testing.assert_allclose(far.scatter, WHOLE.scatter, rtol=1e-7, atol=1e-6)


@pytest.mark.parametrize(
    "kind",
    [
        lambda rows: pandas.DataFrame(rows, columns=NAMES),
        csr_array,
        list,
        array_api_strict.asarray,
        lambda rows: np.asfortranarray(rows),
    ],
    ids=["frame", "sparse", "list", "strict", "fortran"],
)
def test_rows_of_any_kind(kind):
    chunks = ((kind(rows), y, w) for rows, y, w in pieces(100))
    actual = Moments.from_chunks(chunks)
    assert_same(actual)
    assert (actual.feature_names is None) == (kind(X[:2]).__class__ is not pandas.DataFrame)


@pytest.mark.parametrize(
    "kind",
    [
        pandas.Series,
        pandas.Categorical,
        lambda y: y.astype(object),
        list,
        lambda y: pandas.Series(y, dtype="string"),
        lambda y: np.searchsorted(np.unique(LABELS), y),
        lambda y: array_api_strict.asarray(np.searchsorted(np.unique(LABELS), y)),
        lambda y: np.searchsorted(np.unique(LABELS), y).astype(float),
    ],
)
def test_labels_of_any_kind(kind):
    assert_same(Moments.from_chunks((rows, kind(y), w) for rows, y, w in pieces(100)))


def test_memory_maps_and_single_precision(tmp_path):
    np.save(tmp_path / "rows.npy", X.astype(np.float32))
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    expected = Moments.from_rows(
        X.astype(np.float32).astype(float), np.unique(LABELS, return_inverse=True)[1], 3
    )
    assert_same(
        Moments.from_chunks((mapped[s : s + 90], LABELS[s : s + 90]) for s in range(0, N, 90)),
        expected,
        1e-6,
    )


def test_a_reader_may_overwrite_its_rows():
    buffer = np.empty((100, P))

    def reader():
        for rows, y, weights in pieces(100):
            buffer[...] = rows
            yield buffer, y, weights

    assert_same(Moments.from_chunks(reader()))


def test_sparse_chunks_are_converted_block_by_block():
    rows = random_array((40_000, 300), density=0.01, rng=RNG, format="csr")
    y = RNG.integers(2, size=40_000)
    tracemalloc.start()
    actual = Moments.from_chunks([(rows, y)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 40_000 * 300 / 3
    assert_same(actual, Moments.from_rows(rows.toarray(), y, 2), 1e-10)


def test_memory_does_not_grow_with_the_number_of_chunks():
    def peak(n_chunks):
        rng = np.random.default_rng(0)
        chunks = ((rng.normal(size=(500, 40)), rng.integers(2, size=500)) for _ in range(n_chunks))
        tracemalloc.start()
        Moments.from_chunks(chunks, classes=[0, 1])
        actual = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return actual

    assert peak(150) < 1.1 * peak(50)


def changed(rows, row, column, value):
    actual = rows.copy()
    actual[row, column] = value
    return actual


FRAME = pandas.DataFrame(X[:50], columns=NAMES)
BAD = {
    "width": ((X[:50, :4], LABELS[:50]), "4 columns where 6 are expected"),
    "misaligned": ((X[:50], LABELS[:49]), r"50 rows but y of shape \(49,\)"),
    "index": (
        (FRAME.set_axis(range(2, 52)), pandas.Series(LABELS[:50], index=range(1, 51))),
        "X and y have different pandas indexes",
    ),
    "empty": ((X[:0], LABELS[:0]), "no rows"),
    "class": (
        (X[:1], ["cow"]),
        "the label 'cow' of its row 0 is not among the classes 'cat', 'dog', 'eel'",
    ),
    "missing label": (
        (X[:2], np.array(["cat", None], dtype=object)),
        "label of its row 1 is missing",
    ),
    "NaN": ((changed(X, 7, 2, np.nan), LABELS), "column 2 of its row 7 is nan"),
    "inf": ((changed(X, 650, 0, -np.inf), LABELS), "column 0 of its row 650 is -inf"),
    "sparse NaN": ((csr_array(changed(X, 7, 2, np.nan)), LABELS), "column 2 of its row 7 is nan"),
    "too large": ((changed(X, 7, 2, 1e200), LABELS), r"is 1e\+200, whose square is too large"),
    "weights": ((X[:3], LABELS[:3], [1.0, -1.0, 1.0]), "weight of its row 1 is -1"),
    "weight count": ((X[:3], LABELS[:3], [1.0, 1.0]), r"3 rows but sample_weight of shape \(2,\)"),
    "text": ((np.array([["a"] * P] * 3), LABELS[:3]), "rows are not numeric"),
    "vector": ((X[0], LABELS[:P]), r"have shape \(6,\)"),
    "no pair": (X, r"it is ndarray, not \(X, y\)"),
    "namespace": ((array_api_strict.asarray(X), LABELS), "rows are arrays of array_api_strict"),
}


@pytest.mark.parametrize("height", [60, N], ids=["small chunks", "one chunk"])
@pytest.mark.parametrize("case", BAD)
def test_errors_name_the_chunk_and_keep_earlier_chunks(case, height):
    bad, message = BAD[case]
    before = list(pieces(height))
    with pytest.raises(ChunkError, match=message) as caught:
        Moments.from_chunks([*before, bad, *before])
    assert str(caught.value).startswith(f"Chunk {len(before) + 1} was not added: ")
    assert caught.value.n_chunks == len(before)
    assert_same(caught.value.moments)
    rest = Moments.from_chunks(before, caught.value.moments.classes)
    assert (caught.value.moments + rest).n == pytest.approx(2 * WHOLE.n)


def test_an_invalid_chunk_is_not_added_in_part(monkeypatch):
    monkeypatch.setattr("unflip.ridge.moments.block_height", lambda n_features: 40)
    with pytest.raises(ChunkError, match="column 1 of its row 690") as caught:
        Moments.from_chunks([(X, LABELS, WEIGHTS), (changed(X, 690, 1, np.nan), LABELS)])
    assert_same(caught.value.moments)


def test_errors_name_values_of_other_namespaces():
    with pytest.raises(
        ChunkError, match="Chunk 1 was not added: column 2 of its row 7 is nan"
    ) as caught:
        Moments.from_chunks([(array_api_strict.asarray(changed(X, 7, 2, np.nan)), LABELS)])
    assert caught.value.moments is None


def test_a_failing_reader_keeps_earlier_chunks():
    def reader():
        yield from pieces(100)
        raise OSError("disk on fire")

    with pytest.raises(
        ChunkError, match=r"Chunk 8 .* reading it failed \(OSError: disk on fire\)"
    ) as caught:
        Moments.from_chunks(reader())
    assert isinstance(caught.value.__cause__, OSError)
    assert_same(caught.value.moments)


def test_columns_must_have_the_same_names_and_order():
    other = FRAME[NAMES[::-1]]
    with pytest.raises(ChunkError, match="its column 0 is 'gene 5' where 'gene 0' is expected"):
        Moments.from_chunks([(FRAME, LABELS[:50]), (other, LABELS[:50])])
    one, two = (Moments.from_chunks([(frame, LABELS[:50])]) for frame in (FRAME, other))
    with pytest.raises(ValueError, match="Column 0 of these Moments is 'gene 0' and 'gene 5'"):
        one + two
    with pytest.raises(ChunkError, match="column 'gene 3' of its row 2 is nan"):
        Moments.from_chunks([(changed(X, 2, 3, np.nan), LABELS)], feature_names=NAMES)


def test_classes_are_those_of_the_first_chunk():
    with pytest.raises(
        ChunkError, match=r"'eel' of its row 0 is not among the classes 'cat', 'dog'"
    ) as caught:
        Moments.from_chunks([(X[:2], ["cat", "dog"]), (X[:1], ["eel"])])
    widened = caught.value.moments.with_classes(["eel", "cat", "dog"])
    assert widened.classes.tolist() == ["cat", "dog", "eel"]
    total = widened + Moments.from_chunks([(X[2:3], ["eel"])], widened.classes)
    assert_same(total, Moments.from_rows(X[:3], np.arange(3), 3))
    with pytest.raises(ValueError, match="leave out 'dog'"):
        widened.with_classes(["cat", "eel"])


@pytest.mark.parametrize(
    ("chunks", "classes", "message"),
    [
        ([], None, "There is no chunk"),
        ([(X, LABELS)], [], "classes is empty"),
        ([(X, WEIGHTS)], None, "labels are fractions"),
        ([(X[:2], np.array(["a", 1], dtype=object))], None, "several types"),
        (
            [(X[:2], np.array([(1, 2), (3, 4)], dtype="i,i").astype(object))],
            None,
            "are not class labels",
        ),
    ],
)
def test_errors_in_the_first_chunk(chunks, classes, message):
    with pytest.raises(ValueError, match=message):
        Moments.from_chunks(chunks, classes)


def test_moments_add_up_if_classes_agree():
    parts = [Moments.from_chunks([chunk], np.unique(LABELS)) for chunk in pieces(100)]
    total = sum(parts)
    assert_same(total)
    # Adding does not change the parts.
    assert_same(parts[0], Moments.from_chunks([next(iter(pieces(100)))]))
    with pytest.raises(
        ValueError, match=r"classes \['cat', 'dog', 'eel'\] and \[0, 1, 2\] cannot be added"
    ):
        parts[0] + Moments.from_rows(X, np.zeros(N, dtype=int), 3)


def test_effective_sample_size_does_not_depend_on_the_scale_of_weights():
    doubled = Moments.from_chunks([(X, LABELS, 2 * WEIGHTS)])
    assert doubled.n_effective == pytest.approx(WHOLE.n_effective)
    assert Moments.from_chunks([(X, LABELS)]).n_effective == N
    assert Moments.from_chunks([(X, LABELS, 0 * WEIGHTS)]).n_effective == 0


@pytest.mark.parametrize(
    "labels", [LABELS, LABELS.astype(object), RNG.integers(2, size=N), RNG.random(N) < 0.5]
)
def test_saved_moments_are_complete(tmp_path, labels):
    moments = Moments.from_chunks([(pandas.DataFrame(X, columns=NAMES), labels, WEIGHTS)])
    moments.save(tmp_path / "sums.npz")
    actual = Moments.load(tmp_path / "sums.npz")
    assert actual.classes.tolist() == moments.classes.tolist()
    assert actual.feature_names.tolist() == NAMES
    for name in ("counts", "class_means", "scatter", "squared_weights"):
        np.testing.assert_array_equal(getattr(actual, name), getattr(moments, name))
    assert [path.name for path in tmp_path.iterdir()] == ["sums.npz"]


def test_moments_of_another_namespace_are_saved(tmp_path):
    moments = Moments.from_chunks([(array_api_strict.asarray(X), LABELS, WEIGHTS)])
    moments.save(tmp_path / "sums.npz")
    assert_same(Moments.load(tmp_path / "sums.npz"))


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    WHOLE.save(tmp_path / "sums.npz")

    def full(*_, **__):
        raise OSError("no space left")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="no space"):
        WHOLE.save(tmp_path / "sums.npz")
    assert_same(Moments.load(tmp_path / "sums.npz"))
    assert len(list(tmp_path.iterdir())) == 1


def test_errors_for_invalid_files(tmp_path):
    WHOLE.save(tmp_path / "sums.npz")
    whole = (tmp_path / "sums.npz").read_bytes()
    arrays = dict(np.load(tmp_path / "sums.npz"))
    wrong = {
        "text": (b"not a file of sums", "holds no Moments or is damaged"),
        "cut": (whole[: len(whole) // 2], "holds no Moments or is damaged"),
        "empty": (b"", "holds no Moments or is damaged"),
    }
    for name, (content, message) in wrong.items():
        path = tmp_path / f"{name}.npz"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            Moments.load(path)
    for change, message in [
        ({"version": None}, "holds other arrays than Moments"),
        ({"version": np.asarray(99)}, "is of version 99"),
        ({"scatter": X}, "do not fit together"),
        ({"counts": None}, "do not fit together"),
        ({"counts": np.full(3, np.nan)}, "do not fit together"),
        ({"counts": arrays["counts"].astype(str)}, "do not fit together"),
        ({"counts": -arrays["counts"]}, "a class of negative weight"),
        ({"squared_weights": np.asarray(-1.0)}, "squared weights that its weights do not have"),
        ({"squared_weights": np.asarray(1e9)}, "squared weights that its weights do not have"),
        ({"classes": arrays["classes"][::-1]}, "classes that are not sorted, or repeat"),
        ({"classes": arrays["classes"][[0, 0, 2]]}, "classes that are not sorted, or repeat"),
        ({"scatter": -arrays["scatter"]}, "a scatter of negative variance"),
        (
            {"scatter": arrays["scatter"] + np.triu(np.ones((6, 6)), 1)},
            "a scatter that is not symmetric",
        ),
        (
            {"scatter": arrays["scatter"] + 1e3 * (1 - np.eye(6))},
            "a scatter with a correlation beyond 1",
        ),
    ]:
        kept = {name: array for name, array in {**arrays, **change}.items() if array is not None}
        np.savez(tmp_path / "other.npz", **kept)
        with pytest.raises(ValueError, match=message):
            Moments.load(tmp_path / "other.npz")
    np.save(tmp_path / "one.npy", X)
    with pytest.raises(ValueError, match="holds no Moments"):
        Moments.load(tmp_path / "one.npy")
    with pytest.raises(FileNotFoundError):
        Moments.load(tmp_path / "absent.npz")


def test_classes_of_other_types_cannot_be_saved(tmp_path):
    odd = Moments.from_chunks([(X[:2], np.array([date(2020, 1, 1), date(2021, 1, 1)]))])
    with pytest.raises(ValueError, match="cannot be saved"):
        odd.save(tmp_path / "sums.npz")
