"""What users type and name: labels, rates, features, guarded cells."""

import re
from pathlib import Path

import numpy as np
import pytest

from unflip.auditing.html import page_tables
from unflip.cli.files import feature_columns, label_column, rates, safe_csv
from unflip.cli.files.safe_csv import csv_bytes, guarded, unguarded
from unflip.cli.files.tables import Table

TWO = {"ham": 60, "spam": 40}
THREE = {"a": 10, "b": 10, "c, d": 10}


def test_rates_of_two_classes_go_to_the_other():
    model = rates.noise_model("spam=0.3, ham=0.1", TWO, None)
    np.testing.assert_allclose(model.transition, [[0.9, 0.1], [0.3, 0.7]])


def test_rates_of_three_classes_are_spread_evenly():
    model = rates.noise_model("a=0.2,b=0,c, d=0.4", THREE, np.array([0.5, 0.25, 0.25]))
    np.testing.assert_allclose(model.transition, [[0.8, 0.1, 0.1], [0, 1, 0], [0.2, 0.2, 0.6]])
    np.testing.assert_allclose(model.priors, [0.5, 0.25, 0.25])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("spam", "--eps spam cannot be read at 'spam': write ham=0.3,spam=0.1"),
        ("spam=0.3", "names no share for 'ham'"),
        ("spam=0.3,ham=0.1,spam=0.2", "names 'spam' twice"),
        (
            "span=0.3,ham=0.1",
            "names the class 'span', which is not in the file: did you mean 'spam'",
        ),
        ("zzz=0.3", "the labels are 'ham', 'spam'"),
        ("spam=lots,ham=0", "spam=lots is no share"),
        ("spam=1.2,ham=0", "spam=1.2 is no share"),
        ("spam=nan,ham=0", "spam=nan is no share"),
        ("spam=0.6,ham=0.4", "adds up to 1: below 1"),
        ("spam=0,ham=0.5", "leaves no row that is truly 'spam'"),
    ],
)
def test_bad_rates_are_named(text, says):
    with pytest.raises(ValueError, match=says):
        rates.noise_model(text, TWO, None)


def test_rates_of_several_classes_below_chance():
    with pytest.raises(ValueError, match=r"a=0.7 must be below 0.67"):
        rates.noise_model("a=0.7,b=0,c, d=0", THREE, None)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("spam=0.2", "ham=0.8,spam=0.2"),
        ("ham=0.3", "ham=0.3,spam=0.7"),
        ("spam", "ham=0.6,spam=0.4"),
    ],
)
def test_the_proportions_that_are_suggested_can_be_given(text, hint):
    with pytest.raises(ValueError, match=f"write {hint}"):
        rates.proportions(text, list(TWO))
    assert rates.proportions(hint, list(TWO)).sum() == pytest.approx(1)
    with pytest.raises(ValueError, match="a share for each class, which add up to 1"):
        rates.proportions("a=0.5", list(THREE))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("ham=0.5,spam=0.6", "adds up to 1.1"),
        ("ham=1,spam=0", "spam=0 says that no row"),
        ("ham=0.5", "no share"),
    ],
)
def test_bad_proportions_are_named(text, says):
    with pytest.raises(ValueError, match=says):
        rates.proportions(text, list(TWO))


def table(**columns):
    return Table("t.csv", columns)


def test_labels_and_rows_without_one():
    labels = label_column.label_column(table(y=["b", " a", "", "NA", *"ab" * 6]), "y")
    assert labels.counts == {"a": 7, "b": 7}
    assert labels.unlabelled.tolist() == [2, 3]
    assert labels.observed[:2].tolist() == ["b", "a"]


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        (["a"] * 20, "holds the one label 'a'"),
        ([""] * 20, "holds no label"),
        (list("abababab"), "holds only 8 labels"),
        ([*"ab" * 10, "c"], "holds the label 'c' in row 20 alone"),
        ([str(i) for i in range(30)], "30 different labels in 30 rows"),
    ],
)
def test_columns_that_hold_no_classes(cells, says):
    with pytest.raises(ValueError, match=says):
        label_column.label_column(table(y=cells), "y")


def test_true_labels_are_among_the_observed_ones():
    given = table(y=list("ab" * 10), truth=["a", *[""] * 18, "q"])
    labels = label_column.label_column(given, "y")
    with pytest.raises(
        ValueError, match=r"'q' in row 19, which is no label of column 'y' \(a, b\)"
    ):
        label_column.trusted_labels(given, "truth", labels)
    with pytest.raises(ValueError, match="holds no true label"):
        label_column.trusted_labels(table(truth=[""] * 20), "truth", labels)


def test_true_labels_may_be_written_as_equal_numbers():
    given = table(y=list("01" * 10), truth=["1.0", *[""] * 18, "0.0"])
    found = label_column.trusted_labels(given, "truth", label_column.label_column(given, "y"))
    assert found.tolist() == ["1", *[None] * 18, "0"]
    apart = table(y=["1", "1.0", "0"] * 7, truth=["1.0", *[""] * 20])
    found = label_column.trusted_labels(apart, "truth", label_column.label_column(apart, "y"))
    assert found[0] == "1.0"


def test_labels_that_are_spelt_in_two_ways_are_named():
    said = label_column.lookalikes(
        label_column.label_column(table(y=["yes", "no"] * 20 + ["Yes "] * 2), "y")
    )
    assert len(said) == 1
    assert "'Yes', in 2 rows, differs from 'yes' by capitals or blanks alone" in said[0]
    assert (
        label_column.lookalikes(label_column.label_column(table(y=["a", "A", "b"] * 20), "y")) == []
    )


def test_names_of_rows_are_given_once():
    label_column.check_names(table(id=["p", "q"]), "id")
    with pytest.raises(
        ValueError,
        match=r"Column 'id' of t.csv holds 'p' in rows 0 and 2: name a column with one id",
    ):
        label_column.check_names(table(id=["p", "q", "p"]), "id")


def test_rows_without_a_group_stand_alone():
    assert label_column.groups(table(g=["p", "", "p", ""]), "g").tolist() == [
        "group p",
        "row 1",
        "group p",
        "row 3",
    ]
    with pytest.raises(ValueError, match="one group only"):
        label_column.groups(table(g=["p", "p"]), "g")


def choose(given, text=None, embedding=None, reserved=("y",)):
    return feature_columns.choose(given, text=text, embedding=embedding, reserved=reserved)


MANY = [str(i * i) for i in range(20)]


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        (
            [*MANY[:18], "", "n/k"],
            "Column 'x' of t.csv holds 'n/k' in row 19, which is no number: .* --ignore x",
        ),
        (["True", "false"] * 9 + ["", "maybe"], "holds 'maybe' in row 19, which is no number"),
        ([*MANY[:19], "true"], "holds 'true' in row 19, which is no number"),
        (
            ["1,5"] * 20,
            "holds '1,5' in row 0, which is a number with a decimal comma: write a point",
        ),
    ],
)
def test_a_slip_among_numbers_is_an_error_unless_the_column_is_ignored(cells, says):
    given = table(x=cells, z=MANY, y=list("ab" * 10))
    with pytest.raises(ValueError, match=says):
        choose(given)
    assert choose(given, reserved=("x", "y")) == feature_columns.Features(
        kind="numeric", columns=("z",)
    )


def test_columns_that_mix_words_and_numbers_are_left_out():
    given = table(
        x=[*MANY[:17], "a", "b", "c"], t=["True", "False"] * 10, z=MANY, y=list("ab" * 10)
    )
    found = choose(given)
    assert found.columns == ("t", "z")
    assert found.left_out == ("x",)
    np.testing.assert_array_equal(feature_columns.values(found, given)[:2, 0], [1, 0])


def test_two_decimal_signs_in_one_column_are_an_error():
    given = Table(
        "t.csv", {"x": [*["1,5"] * 15, *["2.5"] * 5], "y": list("ab" * 10)}, decimal_comma=True
    )
    with pytest.raises(ValueError, match=r"holds '2.5' in row 15, which is no number"):
        choose(given)


def test_lists_are_features_only_if_asked_for():
    lists = table(emb=[[1.0, 3, 2], [2, 4, 1]], note=["so", "so"], y=["a", "b"])
    with pytest.raises(
        ValueError,
        match="column 'emb' holds lists of 3 values: take them as features with --embedding",
    ):
        choose(lists)
    found = choose(lists, embedding="emb")
    assert found.left_out == ("note",)
    assert found.with_dimension(3) == "1 embedding column (emb), 3 dimensions"
    assert choose(lists, text="note").left_out == ("emb",)


def test_numeric_columns_are_taken_and_the_others_named():
    given = table(
        count=["1", "2", "3"],
        x=["0.5", "2", "7"],
        name=["a", "b", "c"],
        y=["0", "1", "0"],
        void=[""] * 3,
    )
    found = choose(given)
    assert found.columns == ("x",)
    assert found.left_out == ("count", "name", "void")
    recipe, rows = feature_columns.fit_features(found, feature_columns.values(found, given))
    np.testing.assert_allclose(rows.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(recipe.transform([[0.5]]), rows[:1])


def test_embeddings_are_taken_as_they_are_also_from_lists():
    plain = table(e1=["1", "2"], e0=["3", "4"], x=["5", "6"], y=["a", "b"])
    found = choose(plain, embedding="e")
    assert found.columns == ("e1", "e0")
    np.testing.assert_array_equal(
        feature_columns.fit_features(found, feature_columns.values(found, plain))[1],
        [[1, 3], [2, 4]],
    )
    lists = table(emb=[[1.0, 3], [2, 4]], y=["a", "b"])
    np.testing.assert_array_equal(
        feature_columns.values(choose(lists, embedding="emb"), lists), [[1, 3], [2, 4]]
    )
    with pytest.raises(ValueError, match="must hold lists of numbers"):
        feature_columns.values(choose(lists, embedding="emb"), table(emb=[[1.0, 3], [2]]))


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        (["1", "", "3"], "Column 'x' of t.csv is empty in row 1: fill in a number"),
        (
            ["1", "5", "inf"],
            "Column 'x' of t.csv holds 'inf' in row 2, which is not a finite number",
        ),
        (["1", "nan", "3"], "Column 'x' of t.csv holds 'nan' in row 1"),
    ],
)
def test_numbers_that_are_none_are_named(cells, says):
    given = table(x=cells, z=["7", "1", "2"], y=["a", "b", "a"])
    with pytest.raises(ValueError, match=says):
        feature_columns.values(choose(given), given)


def test_a_model_finds_a_column_of_other_cells():
    wanted = feature_columns.Features(kind="numeric", columns=("x",))
    with pytest.raises(
        ValueError, match=r"Column 'x' of t.csv holds 'two' in row 1, which is no number"
    ):
        feature_columns.values(wanted, table(x=["1", "two"]))
    with pytest.raises(ValueError, match="lacks the column 'x'"):
        feature_columns.values(wanted, table(z=["1", "2"]))


def test_choices_that_cannot_be():
    texts = table(name=["a", "b"], review=["so good it is", "so bad"], y=["a", "b"])
    with pytest.raises(ValueError, match=r"no numeric column .* for example --text review"):
        choose(texts)
    with pytest.raises(ValueError, match="has no column whose name begins with 'emb'"):
        choose(texts, embedding="emb")
    with pytest.raises(ValueError, match="exclude each other"):
        choose(texts, text="review", embedding="e")
    with pytest.raises(ValueError, match="names a column that is used otherwise"):
        choose(texts, text="y")
    with pytest.raises(ValueError, match="has no column 'revew': did you mean 'review'"):
        choose(texts, text="revew")
    with pytest.raises(ValueError, match="holds no text"):
        choose(table(t=["", " "], y=["a", "b"]), text="t")
    with pytest.raises(ValueError, match="no word that occurs in two rows"):
        feature_columns.fit_features(
            feature_columns.Features(kind="text", columns=("t",)), ["one", "two"]
        )


def test_many_texts_are_summed_up_by_directions(monkeypatch):
    monkeypatch.setattr(feature_columns, "_MOST_SPARSE_ROWS", 50)
    monkeypatch.setattr(feature_columns, "_N_DIRECTIONS", 5)
    rng = np.random.default_rng(0)
    texts = [" ".join(f"word{w}" for w in rng.integers(0, 30, 8)) for _ in range(60)]
    found = feature_columns.Features(kind="text", columns=("t",))
    recipe, rows = feature_columns.fit_features(found, texts)
    assert rows.shape == (60, 5)
    np.testing.assert_allclose(recipe.transform(texts[:3]), rows[:3], atol=1e-5)
    assert feature_columns.fit_features(found, texts[:50])[1].shape[1] > 30


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("=cmd()", "'=cmd()"),
        ("+1 for that", "'+1 for that"),
        ("-1.5e3", "-1.5e3"),
        ("-", "'-"),
        ("@x", "'@x"),
        ("\tx", "'\tx"),
        ("<script>", "<script>"),
        ("'quoted'", "'quoted'"),
        ("'=1", "''=1"),
        ("''x", "''x"),
        ("", ""),
        ("\uff1dcmd()", "'\uff1dcmd()"),
        ("\uff0b1", "'\uff0b1"),
        ("\uff0d1", "'\uff0d1"),
        ("\uff20x", "'\uff20x"),
        ("\ufe66x", "'\ufe66x"),
        (" =x", "' =x"),
        ("\u3000\xa0\uff1dx", "'\u3000\xa0\uff1dx"),
        ("\ufeff=x", "'\ufeff=x"),
        ("\u200b\u202e+x", "'\u200b\u202e+x"),
        ("\n=x", "'\n=x"),
        ("\x00=x", "'\x00=x"),
        ("\rx", "'\rx"),
        ("'\ufeff=x", "''\ufeff=x"),
        (" x = y", " x = y"),
        ("\xa0x", "\xa0x"),
        (" '=x", " '=x"),
        ("x=\uff1d", "x=\uff1d"),
    ],
)
def test_cells_that_a_spreadsheet_would_run_are_guarded(cell, written):
    assert guarded(cell) == written
    assert unguarded(written) == cell


def test_the_page_guards_the_same_cells():
    script = Path(page_tables.__file__).parent / "templates" / "decisions.js"
    patterns = dict(
        re.findall(
            r"^const (BLANKS|SIGNS) = /(.+)/\.source;$", script.read_text(encoding="utf-8"), re.M
        )
    )
    assert patterns == {"BLANKS": safe_csv._BLANKS, "SIGNS": safe_csv._SIGNS}


def test_guarded_files():
    assert csv_bytes(["a", "=b"], [[1, None], ["=x,y", 0.5]]) == b"a,'=b\n1,\n\"'=x,y\",0.5\n"
