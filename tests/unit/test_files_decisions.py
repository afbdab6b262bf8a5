"""Decisions on suspects: reading, and matching with the data."""

import pytest

from support.files import write_csv
from unflip.cli.files.decision_files import (
    Decision,
    changed_cells,
    label_column_of,
    read_decisions,
)
from unflip.cli.files.row_matching import locate
from unflip.cli.files.tables import Table

DATA = Table(
    "d.csv",
    {"id": ["p", "q", "r", "s"], "label": ["a", "b", " a", ""], "twin": ["a", "b", "a", ""]},
)


def decide(path, **columns):
    return read_decisions(write_csv(path, **columns))


def test_undecided_rows_are_skipped(tmp_path):
    decisions = decide(
        tmp_path / "d.csv",
        row=[0, 1, 2],
        id=["p", "'=q", "r"],
        observed=["a", "'-x", "a"],
        proposed=["b", "'=cmd()", "b"],
        decision=["accept", " Reject", ""],
    )
    assert decisions == [Decision(0, "p", "a", "b"), Decision(1, "=q", "-x", "-x")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"decision": ["perhaps"]},
            r"Row 0 \(counted from 0\) of .*d.csv has the decision 'perhaps': write accept",
        ),
        ({"decision": [""]}, "has no decision: write accept, reject or correct"),
        ({"row": ["-1"]}, "refers to row '-1'"),
        (
            {"label": ["a"]},
            "has the decision accept, so the label is 'b', but its column 'label' has 'a'",
        ),
    ],
)
def test_bad_decisions_are_named(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        decide(
            tmp_path / "d.csv",
            **{"row": [0], "observed": ["a"], "proposed": ["b"], "decision": ["accept"], **change},
        )


def test_file_without_the_columns_of_decisions(tmp_path):
    with pytest.raises(ValueError, match="has no column 'row'"):
        decide(tmp_path / "d.csv", observed=["a"], proposed=["b"])


def test_rows_are_matched_by_number_and_by_id():
    assert locate([Decision(1, "", "b", "a")], DATA, None).keys() == {1}
    assert locate([Decision(1, "q", "b", "a")], DATA, None).keys() == {1}
    assert locate([Decision(7, "q", "b", "a")], DATA, "id").keys() == {1}


@pytest.mark.parametrize(
    ("decisions", "column", "message"),
    [
        ([Decision(9, "", "a", "b")], None, "refers to row 9, but d.csv has 4 rows"),
        ([Decision(0, "q", "a", "b")], None, "match no column of d.csv"),
        ([Decision(0, "z", "a", "b")], "id", "'z' of a decision does not occur in column 'id'"),
        ([Decision(0, "a", "a", "b")], "twin", "occurs 2 times"),
        (
            [Decision(0, "", "a", "b"), Decision(0, "", "a", "a")],
            None,
            r"Row 0 \(counted from 0\) of d.csv has two decisions",
        ),
    ],
)
def test_rows_that_cannot_be_matched(decisions, column, message):
    with pytest.raises(ValueError, match=message):
        locate(decisions, DATA, column)


def test_column_of_labels_is_the_one_that_matches():
    single = Table("d.csv", {"x": ["1", "2", "3"], "label": ["a", "b", "a"]})
    assert label_column_of({0: Decision(0, "", "a", "b")}, single) == "label"
    with pytest.raises(
        ValueError,
        match=r"columns \['label', 'twin'\] of d.csv: name the column of labels with --label",
    ):
        label_column_of({0: Decision(0, "", "a", "b")}, DATA)
    with pytest.raises(ValueError, match=r"no column of d.csv"):
        label_column_of({0: Decision(0, "", "q", "b")}, DATA)


def test_new_labels_are_written_as_elsewhere_in_the_file():
    decisions = {
        1: Decision(1, "", "b", "a"),
        2: Decision(2, "", "a", "a"),
        3: Decision(3, "", "", "b"),
    }
    assert changed_cells(decisions, DATA, "label") == {1: "a", 3: "b"}
    numbers = Table("d.parquet", {"label": [0, 1, None]})
    assert changed_cells({2: Decision(2, "", "", "1")}, numbers, "label") == {2: 1}


def test_decisions_on_other_data_raise_an_error():
    with pytest.raises(
        ValueError,
        match=r"Row 0 \(counted from 0\) of d.csv has the label 'a', but the decision is about 'b'",
    ):
        changed_cells({0: Decision(0, "", "b", "a")}, DATA, "label")
    with pytest.raises(
        ValueError, match=r"is the label 'spm', which is not in column 'label' of d.csv"
    ):
        changed_cells({0: Decision(0, "", "a", "spm")}, DATA, "label")
    with pytest.raises(
        ValueError, match=r"is the label '', which is not in column 'label' of d.csv"
    ):
        changed_cells({0: Decision(0, "", "a", "")}, DATA, "label")
    assert changed_cells({3: Decision(3, "", "", "")}, DATA, "label") == {}
