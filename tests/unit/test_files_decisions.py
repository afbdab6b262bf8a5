"""Decisions: read, found in the data, and put into a copy."""

import pytest

from support.files import write_csv
from unflip.cli.files.decision_files import (
    Decision,
    changes,
    label_column_of,
    located,
    read_decisions,
)
from unflip.cli.files.tables import Table

DATA = Table(
    "d.csv",
    {"id": ["p", "q", "r", "s"], "label": ["a", "b", " a", ""], "twin": ["a", "b", "a", ""]},
)


def decide(path, **columns):
    return read_decisions(write_csv(path, **columns))


def test_decisions_are_read_and_undecided_rows_left_out(tmp_path):
    found = decide(
        tmp_path / "d.csv",
        row=[0, 1, 2],
        id=["p", "'=q", "r"],
        observed=["a", "'-x", "a"],
        proposed=["b", "'=cmd()", "b"],
        decision=["accept", " Reject", ""],
    )
    assert found == [Decision(0, "p", "a", "b"), Decision(1, "=q", "-x", "-x")]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"decision": ["perhaps"]}, "Row 0 of .*d.csv decides 'perhaps': write accept or reject"),
        ({"decision": [""]}, "decides nothing"),
        ({"row": ["-1"]}, "speaks of row '-1'"),
        ({"label": ["a"]}, "says accept, which makes the label 'b', but also label 'a'"),
    ],
)
def test_bad_decisions_are_named(tmp_path, change, says):
    with pytest.raises(ValueError, match=says):
        decide(
            tmp_path / "d.csv",
            **{"row": [0], "observed": ["a"], "proposed": ["b"], "decision": ["accept"], **change},
        )


def test_a_file_of_something_else_is_refused(tmp_path):
    with pytest.raises(ValueError, match="lacks the column 'row'"):
        decide(tmp_path / "d.csv", observed=["a"], proposed=["b"])


def test_rows_are_found_by_number_and_checked_by_name():
    assert located([Decision(1, "", "b", "a")], DATA, None).keys() == {1}
    assert located([Decision(1, "q", "b", "a")], DATA, None).keys() == {1}
    assert located([Decision(0, "row 1", "b", "a")], DATA, None).keys() == {1}
    assert located([Decision(7, "q", "b", "a")], DATA, "id").keys() == {1}


@pytest.mark.parametrize(
    ("decisions", "column", "says"),
    [
        ([Decision(9, "", "a", "b")], None, "speaks of row 9, but d.csv has 4 rows"),
        ([Decision(0, "q", "a", "b")], None, "stand in no column of d.csv"),
        ([Decision(0, "z", "a", "b")], "id", "'z' of a decision does not occur in column 'id'"),
        ([Decision(0, "a", "a", "b")], "twin", "occurs 2 times"),
        (
            [Decision(0, "", "a", "b"), Decision(0, "", "a", "a")],
            None,
            "Row 0 of d.csv is decided twice",
        ),
    ],
)
def test_rows_that_cannot_be_found(decisions, column, says):
    with pytest.raises(ValueError, match=says):
        located(decisions, DATA, column)


def test_the_column_of_labels_is_the_one_that_fits():
    single = Table("d.csv", {"x": ["1", "2", "3"], "label": ["a", "b", "a"]})
    assert label_column_of({0: Decision(0, "", "a", "b")}, single) == "label"
    with pytest.raises(
        ValueError, match=r"columns \['label', 'twin'\] of d.csv: say which with --label"
    ):
        label_column_of({0: Decision(0, "", "a", "b")}, DATA)
    with pytest.raises(ValueError, match=r"no column of d.csv"):
        label_column_of({0: Decision(0, "", "q", "b")}, DATA)


def test_changes_are_written_as_the_file_writes_that_label():
    decisions = {
        1: Decision(1, "", "b", "a"),
        2: Decision(2, "", "a", "a"),
        3: Decision(3, "", "", "b"),
    }
    assert changes(decisions, DATA, "label") == {1: "a", 3: "b"}
    numbers = Table("d.parquet", {"label": [0, 1, None]})
    assert changes({2: Decision(2, "", "", "1")}, numbers, "label") == {2: 1}


def test_decisions_about_other_data_are_refused():
    with pytest.raises(
        ValueError, match=r"Row 0 of d.csv has the label 'a', but the decision on it was about 'b'"
    ):
        changes({0: Decision(0, "", "b", "a")}, DATA, "label")
    with pytest.raises(
        ValueError, match=r"gives it the label 'spm', which column 'label' of d.csv does not hold"
    ):
        changes({0: Decision(0, "", "a", "spm")}, DATA, "label")
    with pytest.raises(
        ValueError, match=r"gives it the label '', which column 'label' of d.csv does not hold"
    ):
        changes({0: Decision(0, "", "a", "")}, DATA, "label")
    assert changes({3: Decision(3, "", "", "")}, DATA, "label") == {}
