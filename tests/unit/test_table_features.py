"""TableFeatures: what becomes of each kind of column, and which inputs explain a score."""

from datetime import date, timedelta

import numpy as np
import pytest
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer

from unflip.features import TableFeatures, word_features

pd = pytest.importorskip("pandas", reason="needs the extra unflip[tables]")

N = 40


def dense(rows):
    return rows.toarray() if issparse(rows) else rows


def fitted(*, names=None, params=None, **columns):
    """Return the transformer of a table, its features and their names."""
    frame = pd.DataFrame(columns)
    features = TableFeatures(**(params or {}))
    rows = dense(features.fit_transform(frame))
    return features, rows, features.get_feature_names_out().tolist()


def reasons(features):
    return {each.name: each.left_out for each in features.columns_ if each.left_out}


def kinds(features):
    return {each.name: each.kind for each in features.columns_}


class TestNumbers:
    def test_they_are_standardized_and_missing_ones_are_the_median(self):
        x = np.arange(N) * 1.5
        x[[3, 7, 8, 20]] = np.nan
        features, rows, names = fitted(x=x)
        assert names == ["x", "x missing"]
        present = x[~np.isnan(x)]
        filled = np.where(np.isnan(x), np.median(present), x)
        np.testing.assert_allclose(
            rows[:, 0], (filled - present.mean()) / present.std(), rtol=1e-12
        )
        np.testing.assert_array_equal(rows[:, 1], np.isnan(x))
        new = pd.DataFrame({"x": [None, "1.5", 3]})
        np.testing.assert_allclose(
            features.transform(new)[:, 0],
            (np.array([np.median(present), 1.5, 3]) - present.mean()) / present.std(),
        )

    def test_a_few_missing_values_have_no_indicator(self):
        x = np.arange(N) * 1.5
        x[3] = np.nan
        assert fitted(x=x)[2] == ["x"]

    @pytest.mark.parametrize("dtype", ["Int64", "Float64", "int8", object, "string"])
    def test_any_dtype_of_numbers(self, dtype):
        values = np.array([1, 5, 2, 2] * 10)
        series = pd.Series(values).astype(dtype)
        _, rows, names = fitted(x=series)
        assert names == ["x"]
        np.testing.assert_allclose(rows[:, 0], (values - values.mean()) / values.std())

    def test_durations_are_seconds(self):
        seconds = np.array([1.0, 5, 2, 2] * 10)
        _, rows, _ = fitted(x=pd.to_timedelta(seconds, unit="s"))
        np.testing.assert_allclose(rows[:, 0], (seconds - seconds.mean()) / seconds.std())

    def test_a_few_strings_among_numbers_are_an_error(self):
        cells = [*map(str, range(0, 3 * N, 3))]
        cells[5] = "n/k"
        with pytest.raises(ValueError, match=r"'x' has 'n/k' in row 5 .*, which is not a number"):
            fitted(x=cells)
        cells[5] = " "  # missing
        assert kinds(fitted(x=cells)[0]) == {"x": "number"}

    def test_an_error_names_a_cell_that_is_no_number_later(self):
        features, _, _ = fitted(x=np.arange(N) * 1.5)
        with pytest.raises(ValueError, match=r"Column 'x' has 'many' in row 1 \(counted from 0\)"):
            features.transform(pd.DataFrame({"x": [1, "many"]}))
        with pytest.raises(ValueError, match=r"'x' has inf in row 0"):
            features.transform(pd.DataFrame({"x": [np.inf]}))
        with pytest.raises(ValueError, match=r"'x' has lists or other objects"):
            features.transform(pd.DataFrame({"x": [[1.0]]}))


class TestBooleans:
    @pytest.mark.parametrize(
        "cells",
        [
            pd.Series([True, False, False, None] * 10, dtype="boolean"),
            [True, False, False, None] * 10,
            ["true", "False", "FALSE", ""] * 10,
        ],
    )
    def test_they_are_numbers(self, cells):
        features, rows, names = fitted(b=cells)
        assert kinds(features) == {"b": "boolean"}
        assert names == ["b", "b missing"]
        third = 1 / 3
        values = (np.array([1, 0, 0, 0]) - third) / np.sqrt(third * (1 - third))
        np.testing.assert_allclose(rows[:4, 0], values)
        again = features.transform(pd.DataFrame({"b": [1, 0]}))
        np.testing.assert_allclose(again[:, 0], values[:2])
        with pytest.raises(ValueError, match=r"'b' has 'perhaps' .*, which is not true or false"):
            features.transform(pd.DataFrame({"b": ["true", "perhaps"]}))


class TestCategories:
    def test_each_level_has_an_indicator_and_rare_ones_share_one(self):
        cells = ["red"] * 20 + ["blue"] * 12 + ["pink"] * 3 + ["lime"] + [None] * 4
        features, rows, names = fitted(c=cells)
        assert names == ["c=(missing)", "c=blue", "c=red", "c=(rare)"]
        assert rows.sum(axis=0).tolist() == [4, 12, 20, 4]
        assert (rows.sum(axis=1) == 1).all()
        new = dense(features.transform(pd.DataFrame({"c": ["red", "never seen", None, " blue "]})))
        assert new.argmax(axis=1).tolist() == [2, 3, 0, 1]

    def test_new_levels_have_no_indicator_without_rare_levels(self):
        features, _, names = fitted(c=["red", "blue"] * 20)
        assert names == ["c=blue", "c=red"]
        new = pd.DataFrame({"c": ["red", "never seen", None]})
        assert dense(features.transform(new)).tolist() == [[0, 1], [0, 0], [0, 0]]

    def test_levels_can_be_numbers(self):
        features, _, names = fitted(c=pd.Series([1.0, 2.0, np.nan, 1.0] * 10, dtype="category"))
        assert names == ["c=(missing)", "c=1", "c=2"]
        assert dense(features.transform(pd.DataFrame({"c": [2]}))).tolist() == [[0, 0, 1]]

    def test_a_column_of_numbers_and_names_is_a_category(self):
        assert kinds(fitted(c=["1", "2", "A"] * 12)[0]) == {"c": "category"}


START = date(2024, 1, 30)
DAYS = [START + timedelta(days=i // 5) for i in range(N)]


class TestDates:
    @pytest.mark.parametrize(
        "cells",
        [
            pd.to_datetime(DAYS),
            pd.to_datetime(DAYS).tz_localize("Europe/Paris"),
            DAYS,
            [f"{day:%Y-%m-%d}" for day in DAYS],
            [f"{day:%Y-%m-%dT00:00:00Z}" for day in DAYS],
            [f"{day:%m/%d/%Y}" for day in DAYS],
            [f"{day:%d.%m.%Y}" for day in DAYS],
            [f"{day:%d %b %Y}" for day in DAYS],
            [f"{day:%Y/%m/%d} 00:00" for day in DAYS],
        ],
        ids=["dtype", "zone", "date", "iso", "utc", "us", "dots", "names", "time"],
    )
    def test_parts_that_vary_are_features(self, cells):
        features, rows, names = fitted(d=cells)
        assert kinds(features) == {"d": "date"}
        weekdays = ["Fri", "Mon", "Sat", "Sun", "Thu", "Tue", "Wed"]
        assert names == [
            *("d elapsed", "d day", "d month=Feb", "d month=Jan"),
            *(f"d weekday={day}" for day in weekdays),
        ]
        elapsed = np.arange(N) // 5
        np.testing.assert_allclose(rows[:, 0], (elapsed - elapsed.mean()) / elapsed.std())
        day = np.array([each.day for each in DAYS])
        np.testing.assert_allclose(rows[:, 1], (day - day.mean()) / day.std())
        assert rows[:, 3].sum() == 10
        assert [names[4:][i] for i in rows[:10:5, 4:].argmax(axis=1)] == [
            "d weekday=Tue",
            "d weekday=Wed",
        ]

    def test_missing_dates_and_times(self):
        cells = [f"2024-05-06 {hour:02}:30" for hour in (7, 19)] * 18 + ["", None] * 2
        features, rows, names = fitted(d=cells)
        assert names == [
            *("d elapsed", "d elapsed missing"),
            *("d hour=(missing)", "d hour=07", "d hour=19"),
        ]
        assert rows[:, 1].sum() == rows[:, 2].sum() == 4
        new = dense(features.transform(pd.DataFrame({"d": ["2030-01-01 12:00", None]})))
        assert new[0, 0] > 1000
        assert new[:, 2:].tolist() == [[0, 0, 0], [1, 0, 0]]

    def test_an_error_names_a_cell_that_is_no_date(self):
        features, _, _ = fitted(d=[f"{day:%Y-%m-%d}" for day in DAYS])
        with pytest.raises(ValueError, match=r"Column 'd' has 'soon' in row 1 .* is not a date"):
            features.transform(pd.DataFrame({"d": ["2024-01-01", "soon"]}))

    @pytest.mark.parametrize("cells", [["may", "june"], ["1-2-3", "4-5"], ["v1.2.3", "v1.3.0"]])
    def test_other_strings_are_no_dates(self, cells):
        assert kinds(fitted(d=cells * 20)[0]) == {"d": "category"}


TEXTS = [
    f"the {word} film was {grade}" for word in ("new", "old") for grade in ("good", "bad")
] * 10


class TestTexts:
    def test_words_alone_are_the_features_without_use(self):
        features, rows, names = fitted(t=TEXTS, x=np.arange(N) * 1.5, params={"text": "t"})
        words = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2, dtype=np.float32)
        np.testing.assert_allclose(rows, words.fit_transform(TEXTS).toarray(), rtol=1e-6)
        assert names == words.get_feature_names_out().tolist()
        assert reasons(features) == {"x": "the features are the words of the texts"}

    def test_use_adds_columns(self):
        frame = {"t": TEXTS, "x": np.arange(N) * 1.5, "c": ["p", "q"] * 20}
        words = fitted(**frame, params={"text": "t"})[1]
        features, rows, names = fitted(**frame, params={"text": "t", "use": "*"})
        np.testing.assert_array_equal(rows[:, : words.shape[1]], words)
        assert names[words.shape[1] :] == ["x", "c=p", "c=q"]
        assert [each.n_features for each in features.columns_] == [words.shape[1], 1, 2]
        np.testing.assert_array_equal(dense(features.transform(pd.DataFrame(frame))), rows)

    def test_several_columns_are_joined_and_missing_texts_are_empty(self):
        title = [*TEXTS[:-1], None]
        _, both, _ = fitted(t=title, u=TEXTS, params={"text": ["t", "u"]})
        one = [f"{a}\n{b}" for a, b in zip(TEXTS[:-1], TEXTS[:-1], strict=True)] + [TEXTS[-1]]
        np.testing.assert_array_equal(both, fitted(t=one, params={"text": "t"})[1])

    def test_many_texts_are_reduced_by_svd(self, monkeypatch):
        monkeypatch.setattr(word_features, "_MOST_SPARSE_ROWS", 50)
        monkeypatch.setattr(word_features, "_N_COMPONENTS", 5)
        rng = np.random.default_rng(0)
        texts = [" ".join(f"word{w}" for w in rng.integers(0, 30, 8)) for _ in range(60)]
        frame = pd.DataFrame({"t": texts, "x": rng.normal(size=60)})
        features = TableFeatures("t", use="x")
        rows = features.fit_transform(frame)
        assert rows.shape == (60, 6)
        assert features.get_feature_names_out().tolist() == [
            *(f"text direction {i}" for i in range(5)),
            "x",
        ]
        np.testing.assert_allclose(features.transform(frame[:3]), rows[:3], atol=1e-5)
        assert TableFeatures("t").fit_transform(frame[:50]).shape[1] > 30
        # The words behind the directions, in single precision.
        assert len(features.named_features_) > 30
        weights = rng.normal(size=6)
        np.testing.assert_allclose(
            features.named_rows(frame) @ features.named_weights(weights), rows @ weights, atol=1e-5
        )


class TestEmbeddings:
    def test_they_are_unchanged(self):
        rng = np.random.default_rng(0)
        vectors = rng.normal(size=(N, 3))
        frame = {"e1": vectors.tolist(), "e2": vectors[:, 0], "x": vectors[:, 1]}
        features, rows, names = fitted(**frame, params={"embedding": "e*"})
        np.testing.assert_array_equal(rows, np.column_stack([vectors, vectors[:, 0]]))
        assert names == ["e1[0]", "e1[1]", "e1[2]", "e2"]
        assert reasons(features) == {"x": "the features are an embedding"}

    def test_errors(self):
        lists = [[1.0, 2.0]] * 20
        with pytest.raises(ValueError, match="Column 'e' must have lists of numbers of the same"):
            fitted(e=[*lists, [1.0]], params={"embedding": "e"})
        with pytest.raises(ValueError, match=r"'e' has a missing, infinite or too large .* row 20"):
            fitted(e=[*lists, [1.0, np.nan]], params={"embedding": "e"})
        features = fitted(e=lists, params={"embedding": "e"})[0]
        with pytest.raises(ValueError, match="has 1 numbers in each row, but had 2 in the fit"):
            features.transform(pd.DataFrame({"e": [[1.0]]}))


class TestLeftOut:
    @pytest.mark.parametrize(
        ("cells", "reason"),
        [
            (np.arange(N) + 7, "it numbers the rows"),
            (np.random.default_rng(0).permutation(N), "it numbers the rows"),
            ([f"P{i:03}" for i in range(N)], "all its values differ, as ids do"),
            ([f"P{i // 2:03}" for i in range(N)], "nearly all its values differ"),
            ([5.0] * N, "it never varies"),
            (["same"] * N, "it never varies"),
            ([START] * N, "it never varies"),
            ([None] * N, "it is empty"),
            ([np.nan] * N, "it is empty"),
            ([f"this was said by person {i}" for i in range(N)], "it looks like text"),
            ([[1.0, 2.0]] * N, "it has lists, which can be an embedding"),
            ([1j] * N, "its values are not numbers, strings or dates"),
        ],
    )
    def test_reasons(self, cells, reason):
        features, rows, _ = fitted(z=cells, x=np.arange(N) / 3)
        assert reasons(features) == {"z": reason}
        assert rows.shape == (N, 1)

    def test_whole_numbers_that_all_differ_are_ids_in_large_tables_only(self):
        rng = np.random.default_rng(0)
        ids = rng.choice(10**6, 200, replace=False)
        assert reasons(fitted(z=ids, x=rng.normal(size=200))[0]) == {
            "z": "all its values differ, as ids do"
        }
        assert reasons(fitted(z=ids[:50], x=rng.normal(size=50))[0]) == {}
        assert reasons(fitted(z=ids + 0.5, x=rng.normal(size=200))[0]) == {}

    def test_use_forces_a_column(self):
        frame = {"z": np.arange(N), "c": [f"P{i // 2:03}" for i in range(N)], "x": np.arange(N) / 3}
        features, _, names = fitted(**frame, params={"use": ["z", "c"]})
        assert reasons(features) == {}
        assert names == ["z", "x", "c=(rare)"]

    def test_ignored_columns_need_no_values(self):
        features, _, _ = fitted(
            x=np.arange(N) / 3, bad=["1"] * (N - 1) + ["?"], params={"ignore": "b*"}
        )
        assert reasons(features) == {"bad": "it is ignored"}
        features.transform(pd.DataFrame({"x": [1.0]}))

    def test_a_table_without_features_is_an_error(self):
        with pytest.raises(ValueError, match=r"no column to use .*'z': it numbers the rows"):
            fitted(z=np.arange(N))


def mixed_frame(n=N, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    x[::5] = np.nan
    return pd.DataFrame(
        {
            "note": rng.choice(TEXTS, n),
            "x": x,
            "level": rng.choice(["p", "q", None], n),
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
        }
    )


class TestProtocol:
    @pytest.mark.parametrize("text", [None, "note"])
    def test_named_inputs_explain_the_scores_exactly(self, text):
        frame = mixed_frame()
        features = TableFeatures(text, use="*" if text else None, ignore=None if text else "note")
        rows = features.fit_transform(frame)
        weights = np.random.default_rng(1).normal(size=rows.shape[1])
        named = features.named_rows(frame)
        assert named.shape == (N, len(features.named_features_))
        np.testing.assert_allclose(named @ features.named_weights(weights), rows @ weights)
        np.testing.assert_array_equal(dense(features.transform(frame)), dense(rows))
        assert len(features.get_feature_names_out()) == rows.shape[1]
        assert sum(each.n_features for each in features.columns_) == rows.shape[1]

    def test_rows_do_not_depend_on_each_other_or_on_the_order_of_columns(self):
        frame = mixed_frame()
        features = TableFeatures(ignore="note")
        rows = dense(features.fit_transform(frame))
        np.testing.assert_array_equal(dense(features.transform(frame[10:13])), rows[10:13])
        turned = frame[frame.columns[::-1]].assign(other=1)
        np.testing.assert_array_equal(dense(features.transform(turned)), rows)

    def test_it_is_a_scikit_learn_transformer(self):
        frame = mixed_frame()
        features = TableFeatures("note", use="x", ignore="when")
        copied = clone(features)
        assert copied.get_params() == {
            "text": "note",
            "embedding": None,
            "use": "x",
            "ignore": "when",
        }
        np.testing.assert_array_equal(
            dense(features.fit(frame).transform(frame)), dense(copied.fit_transform(frame))
        )
        assert features.n_features_in_ == 4
        assert features.feature_names_in_.tolist() == list(frame.columns)

    def test_a_table_that_converts_to_pandas(self):
        pa = pytest.importorskip("pyarrow", reason="needs the extra unflip[parquet]")
        frame = mixed_frame()
        expected = dense(TableFeatures(ignore="note").fit_transform(frame))
        arrow = pa.Table.from_pandas(frame)
        np.testing.assert_allclose(
            dense(TableFeatures(ignore="note").fit_transform(arrow)), expected
        )

    @pytest.mark.parametrize(
        ("params", "message"),
        [
            (
                {"text": "nota"},
                "text='nota', but the table has no such column: did you mean 'note'",
            ),
            ({"use": "zzz"}, "use='zzz', .*: its columns are 'note', 'x', 'level', 'when'"),
            ({"ignore": ["x", "leve"]}, "ignore='leve', .*: did you mean 'level'"),
            ({"text": "note", "ignore": "note"}, "text='note' is also named by ignore"),
        ],
    )
    def test_wrong_names_are_errors(self, params, message):
        with pytest.raises(ValueError, match=message):
            TableFeatures(**params).fit(mixed_frame())

    def test_other_input_is_an_error(self):
        with pytest.raises(TypeError, match="X must be a table, not a ndarray"):
            TableFeatures().fit(np.ones((3, 2)))
        twice = pd.DataFrame(np.ones((3, 2)), columns=["a", "a"])
        with pytest.raises(ValueError, match="two columns 'a'"):
            TableFeatures().fit(twice)
        with pytest.raises(ValueError, match="X has no rows"):
            TableFeatures().fit(mixed_frame()[:0])
        features = TableFeatures(ignore="note").fit(mixed_frame())
        with pytest.raises(ValueError, match="column='x', but the table has no such column"):
            features.transform(mixed_frame().drop(columns="x"))
