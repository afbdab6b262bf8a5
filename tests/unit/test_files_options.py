"""Options of the command line: labels, noise rates, features, and cells guarded from formulas."""

import re
from pathlib import Path

import numpy as np
import pytest

from unflip._utils import guarded_cells
from unflip._utils.guarded_cells import guarded, unguarded
from unflip.auditing.html import page_tables
from unflip.cli.files import feature_columns, label_column, rates
from unflip.cli.files.safe_csv import csv_bytes
from unflip.cli.files.tables import Table

TWO = {"ham": 60, "spam": 40}
THREE = {"a": 10, "b": 10, "c, d": 10}


def test_noise_rates_of_two_classes():
    model = rates.noise_model("spam=0.3, ham=0.1", TWO, None)
    np.testing.assert_allclose(model.transition, [[0.9, 0.1], [0.3, 0.7]])


def test_noise_rates_of_three_classes_are_spread_evenly():
    model = rates.noise_model("a=0.2,b=0,c, d=0.4", THREE, np.array([0.5, 0.25, 0.25]))
    np.testing.assert_allclose(model.transition, [[0.8, 0.1, 0.1], [0, 1, 0], [0.2, 0.2, 0.6]])
    np.testing.assert_allclose(model.priors, [0.5, 0.25, 0.25])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("spam", "--eps spam cannot be read at 'spam': write ham=0.3,spam=0.1"),
        ("spam=0.3", "has no value for 'ham'"),
        ("spam=0.3,ham=0.1,spam=0.2", "names 'spam' twice"),
        (
            "span=0.3,ham=0.1",
            "names the class 'span', which is not in the file: did you mean 'spam'",
        ),
        ("zzz=0.3", "the labels are 'ham', 'spam'"),
        ("spam=lots,ham=0", "has 'lots' for the class 'spam': pass a number between 0 and 1"),
        ("spam=1.2,ham=0", "has 1.2 for the class 'spam'"),
        ("spam=nan,ham=0", "has nan for the class 'spam'"),
        ("spam=0.6,ham=0.4", "sums to 1: .* must sum to less than 1"),
        (
            "spam=0,ham=0.5",
            "less than 50% of the labels can be 'ham', but .*% are: lower the noise rate of 'ham'",
        ),
    ],
)
def test_bad_rates_are_named(text, message):
    with pytest.raises(ValueError, match=message):
        rates.noise_model(text, TWO, None)


def test_noise_rate_of_random_labels():
    with pytest.raises(ValueError, match=r"0.7 for the class 'a', but it must be below 0.67"):
        rates.noise_model("a=0.7,b=0,c, d=0", THREE, None)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("spam=0.2", "ham=0.8,spam=0.2"),
        ("ham=0.3", "ham=0.3,spam=0.7"),
        ("spam", "ham=0.6,spam=0.4"),
    ],
)
def test_suggested_proportions_are_valid(text, hint):
    with pytest.raises(ValueError, match=f"write {hint}"):
        rates.proportions(text, list(TWO))
    assert rates.proportions(hint, list(TWO)).sum() == pytest.approx(1)
    with pytest.raises(ValueError, match="a proportion for each class, with a sum of 1"):
        rates.proportions("a=0.5", list(THREE))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ham=0.5,spam=0.6", "sums to 1.1"),
        ("ham=1,spam=0", "has the proportion 0 for the class 'spam'"),
        ("ham=0.5", "has no value for 'spam'"),
    ],
)
def test_bad_proportions_are_named(text, message):
    with pytest.raises(ValueError, match=message):
        rates.proportions(text, list(TWO))


def table(**columns):
    return Table("t.csv", columns)


def test_labels_and_unlabelled_rows():
    labels = label_column.label_column(table(y=["b", " a", "", "NA", *"ab" * 6]), "y")
    assert labels.counts == {"a": 7, "b": 7}
    assert labels.audited.tolist() == [0, 1, *range(4, 16)]
    assert labels.observed[:2].tolist() == ["b", "a"]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["a"] * 20, "has only the label 'a'"),
        ([""] * 20, "has no label"),
        (list("abababab"), "has only 8 labels"),
        ([*"ab" * 10, "c"], r"has the label 'c' only in row 20 \(counted from 0\): "),
        ([str(i) for i in range(30)], "30 different labels in 30 rows"),
    ],
)
def test_columns_without_classes(cells, message):
    with pytest.raises(ValueError, match=message):
        label_column.label_column(table(y=cells), "y")


def test_trusted_labels_must_be_observed_labels():
    data = table(y=list("ab" * 10), truth=["a", *[""] * 18, "q"])
    labels = label_column.label_column(data, "y")
    with pytest.raises(
        ValueError,
        match=r"'q' in row 19 \(counted from 0\), which is not a label of column 'y' \(a, b\)",
    ):
        label_column.trusted_labels(data, "truth", labels)
    with pytest.raises(ValueError, match="has no trusted label"):
        label_column.trusted_labels(table(truth=[""] * 20), "truth", labels)


def test_trusted_labels_may_be_equal_numbers():
    data = table(y=list("01" * 10), truth=["1.0", *[""] * 18, "0.0"])
    found = label_column.trusted_labels(data, "truth", label_column.label_column(data, "y"))
    assert found.tolist() == ["1", *[None] * 18, "0"]
    apart = table(y=["1", "1.0", "0"] * 7, truth=["1.0", *[""] * 20])
    found = label_column.trusted_labels(apart, "truth", label_column.label_column(apart, "y"))
    assert found[0] == "1.0"


def test_warning_about_similar_labels():
    warnings = label_column.label_column(table(y=["yes", "no"] * 20 + ["Yes "] * 2), "y").notes
    assert len(warnings) == 1
    assert "'Yes', in 2 rows, differs from 'yes' only by case or spaces" in warnings[0]
    even = label_column.label_column(table(y=["a", "A", "b"] * 20), "y").notes
    assert len(even) == 1
    assert label_column.label_column(table(y=["a", "b"] * 20), "y").notes == []


def test_row_ids_must_be_unique():
    label_column.check_unique(table(id=["p", "q"]), "id")
    with pytest.raises(
        ValueError,
        match=r"Column 'id' of t.csv has 'p' in rows 0 and 2 \(counted from 0\): name a column",
    ):
        label_column.check_unique(table(id=["p", "q", "p"]), "id")


def test_rows_without_a_group_get_their_own():
    assert label_column.groups(table(g=["p", "", "p", ""]), "g").tolist() == [
        "group p",
        "row 1",
        "group p",
        "row 3",
    ]
    with pytest.raises(ValueError, match="one group only"):
        label_column.groups(table(g=["p", "p"]), "g")


def choose(data, text=(), embedding=None, reserved=("y",), use=()):
    return feature_columns.choose(data, text=text, embedding=embedding, reserved=reserved, use=use)


MANY = [str(i * i) for i in range(20)]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            [*MANY[:18], "", "n/k"],
            r"Column 'x' of t.csv has 'n/k' in row 19 \(counted from 0\), which is not a number: "
            r".* --ignore x",
        ),
        (
            ["True", "false"] * 9 + ["", "maybe"],
            r"has 'maybe' in row 19 \(counted from 0\), which is not a number",
        ),
        ([*MANY[:19], "true"], r"has 'true' in row 19 \(counted from 0\), which is not a number"),
        (
            ["1,5"] * 20,
            r"has '1,5' in row 0 \(counted from 0\), which is a number with a decimal comma: "
            r"write a decimal point",
        ),
    ],
)
def test_a_non_number_among_numbers_is_an_error_unless_ignored(cells, message):
    data = table(x=cells, z=MANY, y=list("ab" * 10))
    with pytest.raises(ValueError, match=message):
        choose(data)
    found = choose(data, reserved=("x", "y"))
    assert (found.kind, found.columns, found.left_out) == ("numeric", ("z",), ())


def test_kinds_of_columns():
    data = table(
        count=[str(i) for i in range(20)],
        x=[*MANY[:19], ""],
        sure=["True", "false", *[""] * 2] * 5,
        level=["low", "high"] * 9 + ["", "NA"],
        when=["2024-01-31"] * 10 + ["2024-02-01"] * 10,
        name=[f"n{i}" for i in range(20)],
        note=[f"it was {i} times" for i in range(20)],
        void=[""] * 20,
        same=["1"] * 20,
        y=list("ab" * 10),
    )
    found = choose(data)
    assert found.kind == "mixed"
    assert found.columns == ("x", "sure", "level", "when")
    assert str(found) == "1 number (x), 1 boolean (sure), 1 category (level), 1 date (when)"
    assert {each.name: each.left_out for each in found.details if each.left_out} == {
        "count": "it numbers the rows",
        "name": "all its values differ, as ids do",
        "note": "it looks like text",
        "void": "it is empty",
        "same": "it never varies",
    }
    assert choose(data, use=("name", "coun*")).left_out == ("note", "void", "same")
    frame = feature_columns.values(found, data)
    recipe, rows = feature_columns.fit_features(found, frame)
    names = [
        *("x", "sure", "when elapsed", "when day", "sure missing"),
        *("level=(missing)", "level=high", "level=low"),
        *("when month=Feb", "when month=Jan", "when weekday=Thu", "when weekday=Wed"),
    ]
    assert recipe.get_feature_names_out().tolist() == names
    assert rows.shape == (20, len(names))


def test_two_decimal_signs_in_one_column_are_an_error():
    data = Table(
        "t.csv", {"x": [*["1,5"] * 15, *["2.5"] * 5], "y": list("ab" * 10)}, decimal_comma=True
    )
    with pytest.raises(
        ValueError, match=r"has '2.5' in row 15 \(counted from 0\), which is not a number"
    ):
        choose(data)


def test_decimal_commas_are_numbers():
    cells = [f"{i},5" for i in range(10)]
    data = Table("t.csv", {"x": cells, "y": list("ab" * 5)}, decimal_comma=True)
    frame = feature_columns.values(choose(data), data)
    np.testing.assert_array_equal(frame["x"], np.arange(10) + 0.5)


def test_lists_are_features_only_with_embedding():
    lists = table(emb=[[1.0, 3, 2], [2, 4, 1]], note=["so", "so"], y=["a", "b"])
    with pytest.raises(
        ValueError,
        match="column 'emb' has lists of 3 values: use them as features with --embedding",
    ):
        choose(lists)
    found = choose(lists, embedding="emb")
    assert found.left_out == ("note",)
    assert found.with_dimension(3) == "1 embedding column (emb), 3 dimensions"
    assert choose(lists, text=("note",)).left_out == ("emb",)


def test_numeric_columns_are_standardized():
    data = table(count=["1", "2", "3"], x=["0.5", "2", "7"], y=["0", "1", "0"])
    found = choose(data)
    assert (found.kind, found.columns, found.left_out) == ("numeric", ("x",), ("count",))
    assert str(found) == "1 numeric column (x)"
    recipe, rows = feature_columns.fit_features(found, feature_columns.values(found, data))
    x = np.array([0.5, 2, 7])
    np.testing.assert_allclose(rows[:, 0], (x - x.mean()) / x.std(), rtol=1e-12)
    one = feature_columns.values(feature_columns.Features.of(recipe.columns_), table(x=["0.5"]))
    np.testing.assert_allclose(recipe.transform(one), rows[:1])


def test_other_columns_beside_texts_need_use():
    data = table(t=["so good", "so bad"] * 10, x=MANY, level=["p", "q"] * 10, y=list("ab" * 10))
    alone = choose(data, text=("t",))
    assert (alone.kind, alone.columns, alone.left_out) == ("text", ("t",), ("x", "level"))
    both = choose(data, text=("t",), use=("*",))
    assert (both.kind, both.columns, both.left_out) == ("text", ("t", "x", "level"), ())
    assert str(both) == "the words of column 't', 1 number (x), 1 category (level)"
    recipe, _ = feature_columns.fit_features(both, feature_columns.values(both, data))
    assert recipe.get_feature_names_out().tolist() == [
        *("bad", "good", "so", "so bad", "so good"),
        *("x", "level=p", "level=q"),
    ]
    with pytest.raises(ValueError, match="has no column 'leve': did you mean 'level'"):
        choose(data, use=("leve",))
    with pytest.raises(ValueError, match="--use y is a column with another role"):
        choose(data, use=("y",))


def test_embeddings_from_columns_and_from_lists():
    plain = table(e1=["1", "2"], e0=["3", "4"], x=["5", "6"], y=["a", "b"])
    found = choose(plain, embedding="e")
    assert found.columns == ("e1", "e0")
    np.testing.assert_array_equal(
        feature_columns.fit_features(found, feature_columns.values(found, plain))[1],
        [[1, 3], [2, 4]],
    )
    lists = table(emb=[[1.0, 3], [2, 4]], y=["a", "b"])
    found = choose(lists, embedding="emb")
    recipe, rows = feature_columns.fit_features(found, feature_columns.values(found, lists))
    np.testing.assert_array_equal(rows, [[1, 3], [2, 4]])
    with pytest.raises(ValueError, match="must have lists of numbers"):
        feature_columns.values(found, table(emb=[[1.0, 3], [2]]))
    longer = feature_columns.values(found, table(emb=[[1.0, 3, 4], [2, 5, 6]]))
    with pytest.raises(ValueError, match="has 3 numbers in each row, but had 2 in the fit"):
        recipe.transform(longer)


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        ("inf", "not a finite number"),
        ("-inf", "not a finite"),
        ("1e200", "so large that its square"),
    ],
)
def test_error_names_the_cell_that_is_too_large(cell, problem):
    data = table(x=["1", "5", cell], z=["7", "1", "2"], y=["a", "b", "a"])
    message = rf"'x' of t.csv has '{cell}' in row 2 \(counted from 0\), which is {problem}"
    with pytest.raises(ValueError, match=message):
        choose(data)


def test_missing_cells_of_an_embedding_are_an_error():
    data = table(e=["1", "", "3"], y=["a", "b", "a"])
    with pytest.raises(ValueError, match=r"Column 'e' of t.csv is empty in row 1"):
        feature_columns.values(choose(data, embedding="e"), data)


def test_suggested_options_quote_column_names():
    data = table(**{"mean area": [*MANY[:19], "n/k"]}, y=list("ab" * 10))
    with pytest.raises(ValueError, match="--ignore 'mean area'"):
        choose(data)
    texts = table(**{"the review": ["so good it is", "so bad"]}, y=["a", "b"])
    with pytest.raises(ValueError, match="for example --text 'the review'"):
        choose(texts)


def test_errors_of_columns_that_do_not_match_the_model():
    data = table(x=MANY, level=["p", "q"] * 10, when=["2024-01-31", "2024-02-01"] * 10)
    recipe, _ = feature_columns.fit_features(
        choose(data), feature_columns.values(choose(data), data)
    )
    fitted = feature_columns.Features.of(recipe.columns_)
    others = {"level": ["p", "q"], "when": ["2024-01-31", ""]}
    with pytest.raises(
        ValueError,
        match=r"'x' of t.csv has 'two' in row 1 \(counted from 0\), which is not a number",
    ):
        feature_columns.values(fitted, table(x=["1", "two"], **others))
    with pytest.raises(ValueError, match="has no column 'x', which is a feature of the model"):
        feature_columns.values(fitted, table(z=["1", "2"], **others))
    # Levels stay strings in a file where all of them are numbers.
    new = feature_columns.values(fitted, table(x=["", ""], **{**others, "level": ["1", "02"]}))
    assert new["level"].tolist() == ["1", "02"]
    assert np.isfinite(recipe.transform(new)).all()


def test_impossible_features():
    texts = table(name=["a", "b"], review=["so good it is", "so bad"], y=["a", "b"])
    with pytest.raises(
        ValueError, match=r"no column to use as a feature .*: .* for example --text review"
    ):
        choose(texts)
    with pytest.raises(ValueError, match="has no column with the prefix 'emb'"):
        choose(texts, embedding="emb")
    with pytest.raises(ValueError, match="exclude each other"):
        choose(texts, text=("review",), embedding="e")
    with pytest.raises(ValueError, match="is a column with another role"):
        choose(texts, text=("y",))
    with pytest.raises(ValueError, match="has no column 'revew': did you mean 'review'"):
        choose(texts, text=("revew",))
    with pytest.raises(ValueError, match="has no text"):
        choose(table(t=["", " "], y=["a", "b"]), text=("t",))
    apart = table(t=["one", "two"], y=["a", "b"])
    found = choose(apart, text=("t",))
    with pytest.raises(ValueError, match="no word that occurs in two rows of column 't'"):
        feature_columns.fit_features(found, feature_columns.values(found, apart))


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
def test_formulas_are_guarded(cell, written):
    assert guarded(cell) == written
    assert unguarded(written) == cell


def test_the_page_guards_the_same_cells():
    script = Path(page_tables.__file__).parent / "templates" / "decisions.js"
    patterns = dict(
        re.findall(
            r"^const (BLANKS|SIGNS) = /(.+)/\.source;$", script.read_text(encoding="utf-8"), re.M
        )
    )
    assert patterns == {"BLANKS": guarded_cells._BLANKS, "SIGNS": guarded_cells._SIGNS}


def test_guarded_files():
    assert csv_bytes(["a", "=b"], [[1, None], ["=x,y", 0.5]]) == b"a,'=b\n1,\n\"'=x,y\",0.5\n"
