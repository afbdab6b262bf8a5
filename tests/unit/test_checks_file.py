"""The file of checked rows: reading, and matching with the labels of an audit."""

import numpy as np
import pytest

from support.files import mixture_file, program, read_csv, write_csv
from unflip import NoiseModel, Votes, audit, audit_scores
from unflip.auditing.checks_file import Check, CheckedRows, n_unsure, read_checks
from unflip.datasets import make_mixture


def checks_file(path, **columns):
    """Write checked rows 0, 1, ...; by default of the labels a and b."""
    n = len(columns.get("label", columns.get("row", ["a"])))
    usual = {"row": range(n), "id": [""] * n, "observed": ["a"] * n, "label": ["a"] * n}
    return write_csv(path / "checks.csv", **{**usual, **columns}, note=["n"] * n)


def trusted(path, labels):
    return CheckedRows.of(path, labels).labels.tolist()


class TestReading:
    def test_guards_against_formulas_are_removed(self, tmp_path):
        path = checks_file(tmp_path, row=[3], id=["'=id"], observed=["'-x"], label=["'+y"])
        assert read_checks(path) == [Check(3, "=id", "-x", "+y")]

    @pytest.mark.parametrize("delimiter", [",", ";", "\t"])
    def test_spreadsheets_may_save_it_again(self, tmp_path, delimiter):
        lines = [["row", "observed", "label"], ["1", '"a\nb"', "c"], ["0", "c", ""]]
        text = "\r\n".join(delimiter.join(line) for line in lines)
        (tmp_path / "c.csv").write_bytes(text.encode("utf-8-sig"))
        checks = read_checks(tmp_path / "c.csv")
        assert checks == [Check(1, "", "a\nb", "c"), Check(0, "", "c", "")]
        assert n_unsure(checks) == 1

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            ({"label": [""]}, "has no true label: fill in its column 'label'"),
            ({"row": ["x"]}, r"Row 0 \(counted from 0\) of .*checks.csv refers to row 'x'"),
            ({"row": ["-1"]}, "refers to row '-1'"),
            ({"row": ["²"]}, "refers to row '²'"),
            ({"row": ["9" * 30]}, "refers to row '999"),
        ],
    )
    def test_bad_lines_are_named(self, tmp_path, columns, message):
        with pytest.raises(ValueError, match=message):
            read_checks(checks_file(tmp_path, **columns))

    def test_other_files(self, tmp_path):
        path = write_csv(tmp_path / "c.csv", row=[0], label=["a"])
        with pytest.raises(ValueError, match="has no column 'observed': use the checked rows"):
            read_checks(path)
        path.write_bytes(b"row,observed,label\n0,a,\xff\n")
        with pytest.raises(ValueError, match="is not UTF-8"):
            read_checks(path)
        path.write_bytes(b"")
        with pytest.raises(ValueError, match="has no column 'row'"):
            read_checks(path)

    def test_decisions_on_suspects_are_no_checked_rows(self, tmp_path):
        path = checks_file(tmp_path, proposed=["b"], decision=["reject"])
        with pytest.raises(ValueError, match=r"not a random sample: pass them to unflip fit with"):
            audit(np.eye(4), ["a", "b", "a", "b"], trusted=path)


class TestMatching:
    @pytest.mark.parametrize(
        ("labels", "saved"),
        [
            ([0, 1, 1], ["0", "1", "1"]),
            ([0, 1, 1], ["0.0", "1.0", "1.0"]),
            ([0.0, 1.0, 1.0], ["0", "1", "1"]),
            ([False, True, True], ["False", "True", "True"]),
            ([False, True, True], ["FALSE", "TRUE", "TRUE"]),
            (["a", "'=b", "'=b"], ["a", "''=b", "''=b"]),
            (["a", "A", "A"], ["a", "A", "A"]),
            (["01", "1", "1"], ["01", "1", "1"]),
        ],
    )
    def test_labels_of_any_type(self, tmp_path, labels, saved):
        path = checks_file(tmp_path, observed=saved, label=[saved[1], "", saved[0]])
        y = np.array(labels)
        found = trusted(path, y)
        assert found == [labels[1], None, labels[0]]
        assert [type(label) for label in found] == [
            type(y[1].item()),
            type(None),
            type(y[0].item()),
        ]

    def test_missing_observed_labels(self, tmp_path):
        path = checks_file(tmp_path, observed=["", "", "b"], label=["a", "b", "b"])
        assert trusted(path, np.array([None, np.nan, "b", "a"], dtype=object)) == [
            "a",
            "b",
            "b",
            None,
        ]

    def test_observed_labels_of_votes_are_not_compared(self, tmp_path):
        votes = Votes.from_columns([["a", "b"], ["b", "b"], ["a", "a"]])
        path = checks_file(tmp_path, row=[2], observed=["b"], label=["b"])
        assert trusted(path, votes) == [None, None, "b"]

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            ({"observed": ["b"]}, r"Row 0 .* has the label 'a', but in the file .* it has 'b'"),
            ({"label": ["c"]}, r"The true label of row 0 .* is 'c', .* classes \['a', 'b'\]"),
            ({"row": [2]}, "refers to row 2, but there are 2 rows"),
            ({"row": [0, 0]}, "has row 0 twice"),
        ],
    )
    def test_other_data(self, tmp_path, columns, message):
        with pytest.raises(ValueError, match=message):
            trusted(checks_file(tmp_path, **columns), np.array(["a", "b"]))

    def test_no_file(self):
        with pytest.raises(ValueError, match=r"trusted='none\.csv' is not a file: pass "):
            audit(np.eye(4), ["a", "b", "a", "b"], trusted="none.csv")


class TestPython:
    @pytest.fixture
    def data(self, tmp_path):
        """Return rows, labels, true labels of 60 rows, and the file that has them."""
        X, y = make_mixture(400, 10, mean_norm=2.0, random_state=0)
        labels = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1).flip(y, random_state=0)
        rows = audit(X, labels).check_next(60)
        truth = np.full(400, None)
        truth[rows] = y[rows]
        path = checks_file(
            tmp_path,
            row=[*rows, 399 if 399 not in rows else 398],
            observed=[*labels[rows], ""],
            label=[*y[rows], ""],
        )
        lines = read_csv(path)
        lines[-1]["observed"] = labels[int(lines[-1]["row"])]
        write_csv(path, **{name: [line[name] for line in lines] for name in lines[0]})
        return X, labels, truth, path

    def test_file_is_the_same_as_its_labels(self, data):
        X, labels, truth, path = data
        from_file = audit(X, labels, trusted=str(path))
        from_labels = audit(X, labels, trusted=truth)
        np.testing.assert_array_equal(from_file.evidence.truth, from_labels.evidence.truth)
        assert from_file.expected_wrong == from_labels.expected_wrong
        assert (from_file.n_unsure, from_labels.n_unsure) == (1, 0)
        assert (
            "1 row stayed unsure and counts as unchecked: if it is"
            in from_file.summary["Checked rows"]
        )

    def test_audits_of_probabilities_take_it(self, data):
        X, labels, truth, path = data
        p = 1 / (1 + np.exp(-X @ X[labels == 1].mean(axis=0)))
        scores = np.column_stack([1 - p, p])
        from_file = audit_scores(scores, labels, trusted=path)
        from_labels = audit_scores(scores, labels, trusted=truth)
        assert from_file.expected_accuracy == from_labels.expected_accuracy
        before = audit_scores(scores, labels)
        assert from_file.before_checks.expected_wrong == before.expected_wrong
        assert from_file.before_checks.n_suspects == before.n_suspects
        assert (
            from_file.before_checks.expected_accuracy_interval == before.expected_accuracy_interval
        )


class TestCommand:
    @pytest.fixture
    def data(self, tmp_path):
        """Return a data file, its true labels, and a file of 60 checked rows."""
        path = tmp_path / "mails.csv"
        true = mixture_file(path)
        labels = [row["label"] for row in read_csv(path)]
        rows = np.random.default_rng(0).choice(300, 60, replace=False)
        checks = write_csv(
            tmp_path / "checks.csv",
            row=rows,
            id=[f"r{row}" for row in rows],
            observed=[labels[row] for row in rows],
            label=true[rows],
        )
        return path, true, checks, rows

    def test_file_is_the_same_as_a_column(self, data, tmp_path):
        path, true, checks, rows = data
        lines = read_csv(path)
        truth = [true[row] if row in rows else "" for row in range(300)]
        both = tmp_path / "both.csv"
        columns = {name: [line[name] for line in lines] for name in lines[0]}
        write_csv(both, **columns, truth=truth)
        options = ("--label", "label", "--id", "name", "--json")
        from_file = program("audit", path, *options, "--trusted", checks).stdout
        from_column = program("audit", both, *options, "--trusted", "truth").stdout
        assert from_file.replace(str(path), str(both)) == from_column
        for command in ("fit", "apply"):
            rest = ["--out", tmp_path / "m.skops"]
            if command == "apply":
                decisions = write_csv(
                    tmp_path / "d.csv",
                    row=[rows[0]],
                    id=[f"r{rows[0]}"],
                    observed=[lines[rows[0]]["label"]],
                    proposed=["ham"],
                    decision=["reject"],
                )
                rest = [decisions, "--out", tmp_path / "clean.csv"]
            answers = [
                program(command, file, *rest, *options, "--trusted", checked).stdout
                for file, checked in ((path, checks), (both, "truth"))
            ]
            assert answers[0] == answers[1]

    def test_rows_are_matched_by_id(self, data, tmp_path):
        path, _, checks, _ = data
        lines = read_csv(path)[::-1]
        columns = {name: [line[name] for line in lines] for name in lines[0]}
        moved = write_csv(tmp_path / "moved.csv", **columns)
        options = ("--label", "label", "--trusted", checks)
        answer = program("audit", moved, *options, "--id", "name", "--json").stdout
        assert '"n_checked": 60' in answer
        error = program("audit", moved, *options, code=2).stderr
        assert "The ids of the checks match no column of " in error

    def test_a_column_goes_before_a_file(self, data, tmp_path, monkeypatch):
        path, true, _, _ = data
        monkeypatch.chdir(tmp_path)
        lines = read_csv(path)
        columns = {name: [line[name] for line in lines] for name in lines[0]}
        write_csv(path, **columns, **{"checks.csv": true})
        answer = program("audit", path, "--label", "label", "--trusted", "checks.csv", "--json")
        assert '"n_checked": 300' in answer.stdout

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"observed": "eggs"}, "use the data that were audited"),
            ({"label": "eggs"}, "which is not among the observed classes ['ham', 'spam']"),
            ({"id": "nobody"}, "The id 'nobody' of a check does not occur in column 'name'"),
        ],
    )
    def test_errors(self, data, changes, message):
        path, _, checks, _ = data
        lines = read_csv(checks)
        lines[0] |= changes
        write_csv(checks, **{name: [line[name] for line in lines] for name in lines[0]})
        options = ("--label", "label", "--id", "name", "--trusted", checks)
        assert message in program("audit", path, *options, code=2).stderr

    def test_items_of_votes(self, data, tmp_path):
        path, true, _, _ = data
        lines = [line for line in read_csv(path) for _ in range(2)]
        labels = [line["label"] for line in lines]
        labels[1::2] = true  # of a second annotator
        columns = {name: [line[name] for line in lines] for name in lines[0] if name != "label"}
        votes = write_csv(tmp_path / "votes.csv", **columns, label=labels, who=["a", "b"] * 300)
        checked = np.arange(0, 300, 6)
        checks = write_csv(
            tmp_path / "checks.csv",
            row=2 * checked,
            id=[f"r{item}" for item in checked],
            observed=true[checked],
            label=true[checked],
        )
        options = ("--label", "label", "--item", "name", "--annotator", "who", "--json")
        answer = program("audit", votes, *options, "--trusted", checks).stdout
        assert '"n_checked": 50' in answer

    def test_missing_file(self, data):
        error = program("audit", data[0], "--label", "label", "--trusted", "no.csv", code=2).stderr
        assert "--trusted no.csv is neither a file nor a column of " in error
