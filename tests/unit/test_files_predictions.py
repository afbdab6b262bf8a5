"""Predictions of a model in a file: predicted labels, probabilities, and checked rows."""

import json

import numpy as np
import pytest

from unflip.cli.files.label_column import LabelColumn
from unflip.cli.files.prediction_columns import (
    PredictionRequest,
    inclusion_column,
    predicted_labels,
    probabilities,
    probability_columns,
    read_predictions,
)
from unflip.cli.files.tables import Table

LABELS = LabelColumn("y", np.array(["ham", "spam"] * 6))
NUMBERS = LabelColumn("y", np.array(["0", "1"] * 6))


def table(**columns):
    return Table("t.csv", columns)


def probability_table(ham="0.25", spam="0.75"):
    return table(**{"p(ham)": ["0.5"] * 11 + [ham], "p(spam)": ["0.5"] * 11 + [spam]})


class TestPredictedLabels:
    def test_are_read_as_strings(self):
        predicted = predicted_labels(table(guess=["spam", " ham "] * 6), "guess", LABELS)
        assert predicted.tolist() == ["spam", "ham"] * 6

    def test_may_be_equal_numbers(self):
        predicted = predicted_labels(table(guess=["1.0", "0"] * 6), "guess", NUMBERS)
        assert predicted.tolist() == ["1", "0"] * 6

    def test_may_be_guarded_from_formulas(self):
        labels = LabelColumn("y", np.array(["=a", "b"] * 6))
        assert predicted_labels(table(guess=["'=a"] * 12), "guess", labels).tolist() == ["=a"] * 12

    @pytest.mark.parametrize("cell", ["", "NaN", None, float("nan")])
    def test_missing_prediction_raises(self, cell):
        with pytest.raises(
            ValueError,
            match=r"'guess' of t.csv has no prediction in row 3 \(counted from 0\): fill",
        ):
            predicted_labels(table(guess=["ham"] * 3 + [cell] + ["ham"] * 8), "guess", LABELS)

    def test_unknown_class_raises(self):
        with pytest.raises(
            ValueError,
            match=r"'guess' of t.csv has 'eggs' in row 1 \(counted from 0\), which is not a label "
            r"of column 'y' \(ham, spam\): correct it, or add rows",
        ):
            predicted_labels(table(guess=["ham", "eggs"] * 6), "guess", LABELS)


class TestProbabilities:
    @pytest.mark.parametrize(
        ("prefix", "names"),
        [
            ("p(", ("p(spam)", "p(ham)")),
            ("p_", ("p_spam", "p_ham")),
            ("p ", ("p spam", "p ham")),
            ("", ("spam", "ham")),
        ],
    )
    def test_columns_are_in_the_order_of_the_classes(self, prefix, names):
        data = table(id=["a"], **{name: ["0.5"] for name in names})
        columns = probability_columns(data, prefix, LABELS, ["id"])
        assert columns == {"ham": names[1], "spam": names[0]}

    def test_parenthesis_is_part_of_the_class_with_another_prefix(self):
        labels = LabelColumn("y", np.array(["a (x)", "b"] * 6))
        data = table(**{"p_a (x)": ["0.5"], "p_b": ["0.5"]})
        assert list(probability_columns(data, "p_", labels).values()) == ["p_a (x)", "p_b"]

    def test_classes_may_be_equal_numbers(self):
        data = table(**{"p0.0": ["0.5"], "p1.0": ["0.5"]})
        assert probability_columns(data, "p", NUMBERS) == {"0": "p0.0", "1": "p1.0"}

    def test_reserved_columns_are_not_probabilities(self):
        data = table(p_id=["a"], p_ham=["0.5"], p_spam=["0.5"])
        with pytest.raises(ValueError, match=r"Column 'p_id' of t\.csv has the prefix 'p_'"):
            probability_columns(data, "p_", LABELS)
        assert list(probability_columns(data, "p_", LABELS, ["p_id"])) == ["ham", "spam"]

    @pytest.mark.parametrize(
        ("names", "message"),
        [
            (["x"], "t.csv has no column with the prefix 'p_': check --probabilities; its only"),
            (["p_ham", "p_spam", "p_eggs"], "'p_eggs' of t.csv has the prefix 'p_', but 'eggs' is"),
            (["p_ham"], "no column with the prefix 'p_' for the label 'spam' of column 'y': add"),
            (
                ["p_ham", "p_spam", "p_ham "],
                "Columns 'p_ham' and 'p_ham ' of t.csv are both for the label 'ham'",
            ),
        ],
    )
    def test_columns_that_do_not_match_the_classes_raise(self, names, message):
        with pytest.raises(ValueError, match=message):
            probability_columns(table(**{name: ["0.5"] for name in names}), "p_", LABELS)

    def test_values_are_a_column_for_each_class(self):
        values = probabilities(probability_table(), ["p(spam)", "p(ham)"])
        assert values.shape == (12, 2)
        assert values[-1].tolist() == [0.75, 0.25]

    @pytest.mark.parametrize(
        ("ham", "spam", "message"),
        [
            (
                "0.4",
                "0.4",
                r"have 0.4, 0.4 in row 11 \(counted from 0\): probabilities must be non",
            ),
            (
                "-0.5",
                "1.5",
                "have -0.5, 1.5 in row 11 .*non-negative and sum to 1, so correct them",
            ),
            ("", "1", r"Column 'p\(ham\)' of t.csv is empty in row 11 \(counted from 0\): fill in"),
            ("nan", "1", r"Column 'p\(ham\)' of t.csv has 'nan' in row 11 .*not a finite number"),
            ("inf", "0", "has 'inf' in row 11 .*, which is not a finite number: fill in"),
            ("high", "0", "has 'high' in row 11 .*, which is not a number: fill in"),
            ("0,4", "0,6", "has '0,4' in row 11 .* decimal comma: write a decimal point"),
        ],
    )
    def test_improper_cells_are_named(self, ham, spam, message):
        with pytest.raises(ValueError, match=message):
            probabilities(probability_table(ham, spam), ["p(ham)", "p(spam)"])

    def test_error_shows_the_first_probabilities(self):
        data = table(**{f"p{j}": ["0.5"] for j in range(6)})
        with pytest.raises(
            ValueError,
            match=r"^Columns 'p0', .*'p3', \.\.\. of t.csv have 0.5, 0.5, 0.5, 0.5, \.\.\. in",
        ):
            probabilities(data, list(data.columns))

    def test_rounded_probabilities_are_accepted(self):
        assert (
            probabilities(probability_table("0.3333", "0.6666"), ["p(ham)", "p(spam)"]).size == 24
        )


class TestInclusion:
    TRUSTED = np.array(["ham", None, "spam"], dtype=object)

    def test_cells_of_unchecked_rows_may_be_empty_or_zero(self):
        for unchecked in ("", "0"):
            chances = inclusion_column(table(q=["0.5", unchecked, "1"]), "q", self.TRUSTED)
            assert chances[[0, 2]].tolist() == [0.5, 1]

    @pytest.mark.parametrize(
        ("cell", "message"),
        [
            ("0", "has '0' in row 2 .*, which is not a probability: fill in the probability"),
            ("1.5", "has '1.5' in row 2 .*, which is not a probability"),
            ("-1", "has '-1' in row 2 .*, which is not a probability"),
            ("", "'q' of t.csv is empty in row 2"),
            ("often", "has 'often' in row 2 .*, which is not a number"),
        ],
    )
    def test_checked_rows_need_a_probability(self, cell, message):
        with pytest.raises(ValueError, match=message):
            inclusion_column(table(q=["0.5", "0.1", cell]), "q", self.TRUSTED)


class TestFile:
    @pytest.fixture
    def path(self, tmp_path):
        lines = [
            {
                "name": f"r{i}",
                "y": ["ham", "spam"][i % 2],
                "guess": "ham",
                "p_ham": 0.75,
                "p_spam": 0.25,
                "truth": "spam" if i == 3 else None,
                "chance": 0.5,
            }
            for i in range(12)
        ]
        path = tmp_path / "p.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        return path

    def test_predictions_without_checks(self, path):
        file = read_predictions(PredictionRequest(path=path, label="y", prediction="guess"))
        assert file.scores.tolist() == ["ham"] * 12
        assert not file.has_probabilities
        assert file.columns == ("guess",)
        assert (file.trusted, file.inclusion, file.ids) == (None, None, None)

    def test_probabilities_with_checks_and_ids(self, path):
        file = read_predictions(
            PredictionRequest(
                path=path,
                label="y",
                probabilities="p_",
                trusted="truth",
                inclusion="chance",
                id_column="name",
            )
        )
        np.testing.assert_array_equal(file.scores, np.tile([0.75, 0.25], (12, 1)))
        assert file.has_probabilities
        assert file.columns == ("p_ham", "p_spam")
        assert file.trusted.tolist() == [None] * 3 + ["spam"] + [None] * 8
        assert file.inclusion.tolist() == [0.5] * 12
        assert file.ids[:2] == ["r0", "r1"]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({}, "Name the predictions of .*p.jsonl: pass their column with --prediction, or"),
            (
                {"prediction": "guess", "probabilities": "p_"},
                "--prediction and --probabilities exclude each other: pass one of them",
            ),
            ({"prediction": "guess", "inclusion": "chance"}, "--inclusion chance needs --trusted"),
            (
                {"prediction": "y"},
                "--label and --prediction both name the column 'y': name another",
            ),
            (
                {"prediction": "guess", "trusted": "guess"},
                "--prediction and --trusted both name the column 'guess'",
            ),
            ({"prediction": "gess"}, "has no column 'gess': did you mean 'guess'"),
            ({"prediction": "guess", "id_column": "nam"}, "has no column 'nam'"),
            (
                {"prediction": "guess", "id_column": "p_ham"},
                "'p_ham' of .*p.jsonl has '0.75' in rows 0 and 1",
            ),
            (
                {"prediction": "guess", "label": None},
                "Name the column of labels of .* with --label",
            ),
        ],
    )
    def test_options_that_do_not_fit_raise(self, path, options, message):
        with pytest.raises(ValueError, match=message):
            read_predictions(PredictionRequest(**{"path": path, "label": "y", **options}))
