"""Votes in files: a column for each annotator, or a row for each vote."""

import numpy as np
import pytest

from unflip.cli.files.feature_columns import Features, values
from unflip.cli.files.items import items
from unflip.cli.files.label_column import trusted_labels
from unflip.cli.files.request import Request, collect_warnings, prepare
from unflip.cli.files.tables import Table
from unflip.cli.files.vote_columns import Abstentions, votes_in_columns, votes_in_rows
from unflip.features.table_columns import TableColumn


def table(**columns):
    return Table("t.csv", columns)


def votes_table(n=12, **changes):
    """Return two votes on each of n items: first those of annotator u, then those of v."""
    names = [f"i{item}" for item in range(n)]
    columns = {
        "item": names + names,
        "who": ["u"] * n + ["v"] * n,
        "label": [*"ab" * (n // 2), *"aabb" * (n // 4), *"a" * (n % 4)],
        "x": [*range(n), *range(n)],
    }
    return table(**columns | changes)


def test_each_column_is_an_annotator_and_empty_cells_are_not_votes():
    data = table(ann=["a", "b", "", "NA", *"ab" * 5], bob=["b", "", None, " a ", *"ab" * 5])
    vote_columns = votes_in_columns(data, ["ann", "bob"])
    assert vote_columns.votes.annotators.tolist() == ["ann", "bob"]
    np.testing.assert_array_equal(
        vote_columns.votes.counts[:5], [[1, 1], [0, 1], [0, 0], [1, 0], [2, 0]]
    )
    assert vote_columns.counts == {"a": 12, "b": 12}
    assert vote_columns.described == "columns 'ann', 'bob'"


def test_equal_numbers_of_different_types_are_one_label():
    vote_columns = votes_in_columns(
        table(ann=[0, 1] * 6, bob=[0.0, float("nan")] * 6), ["ann", "bob"]
    )
    assert vote_columns.counts == {"0": 12, "1": 6}


def test_rows_of_one_item_are_its_votes():
    data = votes_table()
    vote_items = items(data, "item")
    assert vote_items.first.tolist() == list(range(12))
    assert vote_items.of_row.tolist() == [*range(12), *range(12)]
    vote_columns = votes_in_rows(data, vote_items, "label", "who")
    np.testing.assert_array_equal(vote_columns.votes.counts[:4], [[2, 0], [1, 1], [1, 1], [0, 2]])
    assert vote_columns.votes.annotators.tolist() == ["u", "v"]
    assert vote_columns.columns == ("label", "item", "who")


def test_items_are_in_the_order_of_their_first_rows():
    vote_items = items(table(item=["z", "a", "z", 7, 7.0, "a"]), "item")
    assert vote_items.first.tolist() == [0, 1, 3]
    assert vote_items.of_row.tolist() == [0, 1, 0, 2, 2, 1]


def test_votes_without_annotators_and_items_without_votes():
    labels = [*"ab" * 6, *[""] * 12, ""]
    data = votes_table(
        item=[*(f"i{i % 12}" for i in range(24)), "new"],
        who=["u"] * 25,
        label=labels,
        x=[*range(12), *range(12), 3],
    )
    vote_columns = votes_in_rows(data, items(data, "item"), "label", None)
    assert vote_columns.votes.n_rows == 13
    assert len(vote_columns.votes.annotators) == 1
    assert vote_columns.votes.n_votes.tolist() == [1] * 12 + [0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"item": ["i"] * 20 + [""] * 4},
            r"Column 'item' of t.csv is empty in row 20 \(counted from 0\): fill in the id",
        ),
        (
            {"who": ["u"] * 12 + ["v", ""] * 6},
            r"Column 'who' of t.csv is empty in row 13 \(counted from 0\): fill in the annotator",
        ),
        (
            {"who": ["u"] * 24},
            r"Annotator 'u' votes on item 'i0' in rows 0 and 12 \(counted from 0\) of t.csv: keep ",
        ),
        (
            {"item": ["i", "j"] * 12, "who": range(24)},
            "Column 'label' of t.csv has votes on only 2 items",
        ),
        ({"label": ["a"] * 24}, "Column 'label' of t.csv has only the label 'a'"),
        ({"label": ["c", *"ab" * 11, "a"]}, "has the label 'c' only in row 0"),
    ],
)
def test_bad_rows_of_votes_are_named(changes, message):
    data = votes_table(**changes)
    with pytest.raises(ValueError, match=message):
        votes_in_rows(data, items(data, "item"), "label", "who")


def test_bad_columns_of_votes_are_named():
    with pytest.raises(
        ValueError, match=r"set of columns 'ann', 'bob' of t.csv has only the label 'a'"
    ):
        votes_in_columns(table(ann=["a"] * 12, bob=["a"] * 12), ["ann", "bob"])
    with pytest.raises(ValueError, match="the label 'c' only in row 1"):
        votes_in_columns(table(ann=["a", "b"] * 10, bob=["", "c"] + [""] * 18), ["ann", "bob"])
    with pytest.raises(ValueError, match="has no column 'anne': did you mean 'ann'"):
        votes_in_columns(table(ann=["a", "b"] * 6, bob=["a"] * 12), ["anne", "bob"])


def test_cells_with_the_label_of_an_abstention_are_empty():
    cells = ["0", "1", "-1", "", *["0", "1", " -1"] * 4]
    data = table(ann=cells, bob=cells[::-1])
    emptied = {
        name: ["" if "-1" in c else c for c in cells] for name, cells in data.columns.items()
    }
    expected = votes_in_columns(table(**emptied), ["ann", "bob"], Abstentions(allowed=True))
    for label in ("-1", "-1.0", " -1 "):
        marked = votes_in_columns(data, ["ann", "bob"], Abstentions(True, label))
        assert marked.votes.abstentions
        assert marked.counts == expected.counts == {"0": 10, "1": 10}
        np.testing.assert_array_equal(marked.votes.counts, expected.votes.counts)
    # An empty label, or a word for a missing value, are those of empty cells.
    for label in ("", "NA"):
        assert votes_in_columns(data, ["ann", "bob"], Abstentions(True, label)).counts["-1"] == 10
    with pytest.raises(
        ValueError,
        match=r"--abstain ABSTAIN is no label of columns 'ann', 'bob' of t.csv \(-1, 0, ",
    ):
        votes_in_columns(data, ["ann", "bob"], Abstentions(True, "ABSTAIN"))
    with pytest.raises(ValueError, match=r"'ann', 'bob' of t.csv has only the label '0'"):
        votes_in_columns(
            table(ann=["0", "-1"] * 6, bob=["-1"] * 12), ["ann", "bob"], Abstentions(True, "-1")
        )


def test_rows_with_the_label_of_an_abstention_are_no_votes():
    data = votes_table(label=[*"ab" * 6, *"?" * 6, *"ab" * 3])
    vote_items = items(data, "item")
    marked = votes_in_rows(data, vote_items, "label", "who", Abstentions(True, "?"))
    assert marked.votes.abstentions
    assert marked.votes.n_votes.tolist() == [1] * 6 + [2] * 6
    with pytest.raises(ValueError, match=r"--abstain -1 is no label of column 'label' of t.csv "):
        votes_in_rows(data, vote_items, "label", "who", Abstentions(True, "-1"))


def rules(n_rules=3, n_votes=5, empty=""):
    """Return rules that give one label each, on a few rows each."""
    columns = {
        f"r{j}": [empty] * (j * n_votes) + ["ab"[j % 2]] * n_votes + [empty] * (30 - n_votes * j)
        for j in range(n_rules)
    }
    return table(**columns)


def test_note_on_annotators_that_only_give_one_label():
    note = "only ever give one label: if these are rules that abstain, pass --abstentions."
    data = rules()
    (found,) = votes_in_columns(data, list(data.columns)).notes
    assert found == f"3 of 3 annotators with at least 5 votes {note}"
    assert votes_in_columns(data, list(data.columns), Abstentions(allowed=True)).notes == []
    # Two others give both labels: still most annotators. With one more, half of them.
    both = {"u": ["a", "b"] + [""] * 18, "v": ["a", "b"] * 10, "w": ["a", "b"] * 10}
    columns = {name: list(cells)[:20] for name, cells in data.columns.items()}
    two = table(**columns, u=both["u"], v=both["v"], w=both["w"])
    (found,) = votes_in_columns(two, list(two.columns)).notes
    assert found.startswith("3 of 5 annotators")  # u has two votes only
    three = table(**two.columns, z=both["v"])
    assert votes_in_columns(three, list(three.columns)).notes == []


def test_notes_end_the_error_of_a_failed_fit():
    with (
        pytest.raises(ValueError, match=r"^t.csv cannot be fitted: No signal. Pass it. Or that.$"),
        collect_warnings("t.csv", hints=["Pass it.", "Or that."]),
    ):
        raise ValueError("No signal.")


def test_no_note_on_few_annotators_few_votes_or_full_columns():
    for data in (rules(n_rules=2), rules(n_votes=4)):
        assert votes_in_columns(data, list(data.columns)).notes == []
    full = table(u=["a"] * 12, v=["b"] * 12, w=["a"] * 12)
    assert votes_in_columns(full, list(full.columns)).notes == []


def test_note_on_a_label_that_marks_abstentions():
    data = rules(empty="-1")
    names = list(data.columns)
    expected = (
        "3 of 3 annotators with at least 5 votes only ever give one label besides '-1': if '-1' "
        "marks an abstention, pass --abstain -1."
    )
    assert votes_in_columns(data, names).notes == [expected]
    assert votes_in_columns(data, names, Abstentions(allowed=True)).notes == [expected]
    assert votes_in_columns(data, names, Abstentions(True, "-1")).notes == []
    # Rules of three classes: no label is given by several of them.
    three = rules(n_rules=4)
    three.columns["r3"][15:20] = ["c"] * 5
    assert votes_in_columns(three, list(three.columns), Abstentions(allowed=True)).notes == []


def test_rows_of_an_item_must_have_the_same_features():
    data = votes_table(x=["1.0", *range(1, 12), "1", *range(1, 12)])
    numeric = Features.of([TableColumn(name="x", kind="number")])
    vote_items = items(data, "item")
    features = vote_items.features(data, numeric, values(numeric, data))
    np.testing.assert_array_equal(features["x"], [1, *range(1, 12)])
    texts = ["good film"] * 23 + ["bad film"]
    with_texts = votes_table(text=texts)
    words = Features.of([TableColumn(name="text", kind="text")])
    with pytest.raises(
        ValueError,
        match=r"'text' of t.csv has 'good film' in row 11 and 'bad film' in row 23 \(counted ",
    ):
        vote_items.features(with_texts, words, values(words, with_texts))


def test_error_names_the_first_item_with_different_features():
    x = [*range(12), *range(12)]
    x[13] = 99
    x[20] = 99
    data = votes_table(x=x)
    numeric = Features.of([TableColumn(name="x", kind="number")])
    with pytest.raises(
        ValueError,
        match=r"has '1' in row 1 and '99' in row 13 \(counted from 0\), both of item 'i1'",
    ):
        items(data, "item").features(data, numeric, values(numeric, data))


def test_trusted_labels_of_an_item_can_be_in_any_row_and_must_agree():
    truth = ["a", *[""] * 12, "b", *[""] * 10]
    data = votes_table(truth=truth)
    vote_items = items(data, "item")
    vote_columns = votes_in_rows(data, vote_items, "label", "who")
    trusted = vote_items.unique_values(data, "truth", trusted_labels(data, "truth", vote_columns))
    assert trusted.tolist() == ["a", "b", *[None] * 10]
    truth[12] = "b"
    with pytest.raises(
        ValueError, match=r"'truth' of t.csv has both 'a' and 'b' for item 'i0': make them agree"
    ):
        vote_items.unique_values(data, "truth", trusted_labels(data, "truth", vote_columns))
    truth[12] = "q"
    with pytest.raises(
        ValueError,
        match=r"'q' in row 12 \(counted from 0\), which is not a label of column 'label' \(a, b\)",
    ):
        trusted_labels(data, "truth", vote_columns)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"labels": ("label",), "annotator": "who"}, "--annotator who needs --item"),
        ({"labels": ("label", "who"), "item": "item"}, "--item needs one --label"),
        (
            {"labels": ("label", "label")},
            "Column 'label' is named twice among --label, --item and --annotator",
        ),
        ({"labels": ("label",), "item": "label"}, "Column 'label' is named twice"),
        ({"labels": ("la*", "label")}, "Column 'label' is named twice"),
        ({"labels": ("*e*",), "item": "who"}, "--item needs one --label"),
        ({"labels": ("labels*",)}, r"has no column 'labels\*': did you mean 'label'"),
        ({"labels": ("r?",)}, r"no column 'r\?': its columns are 'item', 'who', 'label' and 'x'"),
        ({"labels": ("l*",), "abstentions": True}, "--abstentions needs votes: name the column of"),
        ({"labels": ("label",), "abstain": "a b"}, "--abstain 'a b' needs votes"),
        (
            {"labels": ("label",), "item": "item", "abstain": "-1", "eps": "a=0.1,b=0.1"},
            "--eps and --abstain -1 exclude each other",
        ),
        ({"labels": ("label",), "item": "itm"}, "has no column 'itm': did you mean 'item'"),
        ({"labels": ("label",), "item": "item", "annotator": "woh"}, "has no column 'woh'"),
        (
            {"labels": ("label",), "item": "item", "eps": "a=0.1,b=0.1", "trusted": "t"},
            "--eps and --trusted exclude",
        ),
    ],
)
def test_options_that_exclude_each_other(tmp_path, request_, message):
    path = tmp_path / "t.csv"
    columns = votes_table().columns
    lines = [
        ",".join(columns),
        *(",".join(map(str, line)) for line in zip(*columns.values(), strict=True)),
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        prepare(Request(path=path, **request_), lambda stage: None)


def test_wildcards_match_columns_in_the_order_of_the_file(tmp_path):
    path = tmp_path / "t.csv"
    lines = ["w2,x,w1,w[12]", *(f"{'ab'[i % 2]},{i % 5},{'ba'[i % 2]},a" for i in range(20))]
    path.write_text("\n".join(lines), encoding="utf-8")

    def columns_of(*labels):
        return prepare(Request(path=path, labels=labels), lambda stage: None).labels.names

    assert columns_of("w?") == ("w2", "w1")
    assert columns_of("w1", "*[[]*") == ("w1", "w[12]")
    assert columns_of("*1") == ("w1",)
    # A column with this very name comes first.
    assert columns_of("w1", "w[12]") == ("w1", "w[12]")


def test_prepared_votes_have_a_row_for_each_item(tmp_path):
    path = tmp_path / "t.csv"
    columns = votes_table(extra=[0.5, 2.5] * 6 + [0.5, 2.5] * 6).columns
    lines = [
        ",".join(columns),
        *(",".join(map(str, line)) for line in zip(*columns.values(), strict=True)),
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    prepared = prepare(
        Request(path=path, labels=("label",), item="item", annotator="who"), lambda stage: None
    )
    assert prepared.rows.shape == (12, 2)
    assert prepared.features.columns == ("x", "extra")
    assert len(prepared.audited) == len(prepared.observed) == 12
