"""Rows to Label Studio, Argilla and Hugging Face datasets, and labels back."""

import json
from dataclasses import replace
from uuid import UUID
from xml.etree import ElementTree

import numpy as np
import pytest

from unflip import LPClassifier, audit
from unflip.auditing.shown_rows import ShownRows
from unflip.compat import argilla, hugging_face, label_studio
from unflip.datasets import make_mixture

N = 300
RATES = {"<ham & eggs>": 0.1, 'spam "x"': 0.1}
NAMES = np.array(list(RATES))
X, TRUE = make_mixture(N, 20, mean_norm=3.0, random_state=0)
FLIPPED = np.random.default_rng(5).random(N) < 0.1
Y = NAMES[np.where(FLIPPED, 1 - TRUE, TRUE)]
TEXTS = [f"mail {row} </script>\n" + "é" * (row % 3) for row in range(N)]
FOUND = audit(X, Y, noise=RATES)
DATA = {"text": TEXTS}
SUSPECTS = FOUND.suspects.row[: FOUND.n_suspects]


def shown(**parts):
    """Return the audit with what is shown of its rows."""
    return replace(FOUND, shown=ShownRows(**parts))


def as_exported(tasks, label_of=lambda task: task["predictions"][0]["result"][0]["value"]):
    """Return tasks as Label Studio exports them after one annotator has accepted each."""
    return [
        {
            "id": 1000 + place,
            "annotations": [annotation(label_of(task), by=3)],
            "file_upload": "6f2c-tasks.json",
            "drafts": [],
            "predictions": [],
            "data": task["data"],
            "meta": {},
            "created_at": "2025-03-09T21:52:49.513742Z",
            "updated_at": "2025-03-09T22:16:08.746926Z",
            "inner_id": place + 1,
            "total_annotations": 1,
            "cancelled_annotations": 0,
            "total_predictions": 0,
            "comment_count": 0,
            "unresolved_comment_count": 0,
            "last_comment_updated_at": None,
            "project": 7,
            "updated_by": 3,
            "comment_authors": [],
        }
        for place, task in enumerate(tasks)
    ]


def annotation(value, by, *, cancelled=False, from_name="label"):
    result = {
        "value": value if isinstance(value, dict) else {"choices": [value]},
        "id": "Dx_aB91ISN",
        "from_name": from_name,
        "to_name": "text",
        "type": "choices",
        "origin": "manual",
    }
    return {
        "id": 501,
        "completed_by": by,
        "result": [] if cancelled else [result],
        "was_cancelled": cancelled,
        "ground_truth": False,
        "created_at": "2025-03-09T22:16:08.728353Z",
        "lead_time": 4.288,
        "prediction": {},
        "result_count": 0,
        "task": 1000,
    }


class TestLabelStudio:
    def test_tasks_follow_the_documented_format(self):
        tasks = label_studio.tasks(FOUND, data=DATA)
        assert [task["data"]["row"] for task in tasks] == SUSPECTS.tolist()
        first, row = tasks[0], SUSPECTS[0]
        assert first["data"] == {"row": row, "observed": Y[row], "text": TEXTS[row]}
        (prediction,) = first["predictions"]
        assert prediction["model_version"] == "unflip"
        assert prediction["score"] == FOUND.suspects.probability[0]
        proposed = str(FOUND.suspects.proposed[0])
        assert prediction["result"] == [
            {
                "from_name": "label",
                "to_name": "text",
                "type": "choices",
                "value": {"choices": [proposed]},
            }
        ]

    def test_the_round_trip_is_lossless(self, tmp_path):
        label_studio.write_tasks(FOUND, tmp_path / "tasks.json", data=DATA)
        tasks = json.loads((tmp_path / "tasks.json").read_text())
        assert tasks == label_studio.tasks(FOUND, data=DATA)
        (tmp_path / "export.json").write_text(json.dumps(as_exported(tasks)))
        reviewed = label_studio.read_annotations(tmp_path / "export.json", N, classes=FOUND.classes)
        expected = np.full(N, None, dtype=object)
        expected[SUSPECTS] = FOUND.suspects.proposed[: len(SUSPECTS)]
        np.testing.assert_array_equal(reviewed.trusted, expected)
        after = audit(X, Y, noise=RATES, trusted=reviewed.trusted)
        np.testing.assert_array_equal(after.checked, np.sort(SUSPECTS))

    def test_rows_to_check_go_without_a_proposal(self):
        rows = FOUND.check_next(20)
        tasks = label_studio.tasks(FOUND, rows, data=DATA, predictions=False)
        assert [task["data"]["row"] for task in tasks] == rows.tolist()
        assert all(set(task) == {"data"} for task in tasks)

    def test_several_annotators_are_votes(self):
        tasks = as_exported(label_studio.tasks(FOUND, [4, 9, 2, 7], data=DATA))
        ham, spam = NAMES
        tasks[0]["annotations"] = [annotation(ham, by=1), annotation(ham, by=2)]
        tasks[1]["annotations"] = [
            annotation(ham, by={"id": 1, "email": "ann@example.org"}),
            annotation(spam, by="bob@example.org"),
        ]
        tasks[2]["annotations"] = [annotation(spam, by=1), annotation(ham, by=2, cancelled=True)]
        tasks[3]["annotations"] = []
        reviewed = label_studio.read_annotations(tasks, N, classes=NAMES)
        assert reviewed.trusted[[4, 9, 2, 7]].tolist() == [ham, None, spam, None]
        assert reviewed.disputed.tolist() == [9]
        votes = reviewed.votes
        assert len(votes) == N
        assert votes.annotators.tolist() == ["1", "2", "ann@example.org", "bob@example.org"]
        assert votes.counts[[4, 9, 2, 7]].tolist() == [[2, 0], [1, 1], [0, 1], [0, 0]]
        assert "5 labels of 4 annotators on 3 of 300 rows, 1 disputed" in repr(reviewed)

    def test_other_questions_and_empty_answers_are_ignored(self):
        tasks = as_exported(label_studio.tasks(FOUND, [4], data=DATA))
        tasks[0]["annotations"] = [
            annotation("yes", by=1, from_name="is_hard"),
            annotation({"choices": []}, by=1),
        ]
        reviewed = label_studio.read_annotations(tasks, N, classes=NAMES)
        assert len(reviewed.label) == 0
        assert set(reviewed.trusted) == {None}

    def test_numbers_come_back_as_numbers(self):
        found = audit(X, TRUE, noise=None)
        tasks = as_exported(label_studio.tasks(found, [3, 5], data=DATA))
        reviewed = label_studio.read_annotations(tasks, N, classes=found.classes)
        assert [type(each) for each in reviewed.trusted[[3, 5]]] == [int, int]
        assert audit(X, TRUE, noise=None, trusted=reviewed.trusted).checked.tolist() == [3, 5]

    def test_rows_are_found_by_id_after_the_data_were_sorted(self):
        ids = [f"m{row}" for row in range(N)]
        tasks = as_exported(label_studio.tasks(shown(ids=ids, texts=TEXTS), [3, 5]))
        assert tasks[0]["data"]["id"] == "m3"
        reviewed = label_studio.read_annotations(tasks, N, ids=ids[::-1])
        assert np.flatnonzero(reviewed.trusted != None).tolist() == [N - 6, N - 4]  # noqa: E711

    def test_what_is_shown_comes_from_the_audit(self):
        paths = [f"/images/{row}.png" for row in range(N)]
        (task,) = label_studio.tasks(shown(images=paths), [3])
        assert task["data"]["image"] == "/images/3.png"
        assert task["predictions"][0]["result"][0]["to_name"] == "image"
        (task,) = label_studio.tasks(shown(cells={"age": range(N), "city": ["Ulm"] * N}), [3])
        assert task["data"]["text"] == "age: 3\ncity: Ulm"

    def test_values_that_json_cannot_hold(self):
        data = {"size": np.linspace(0, 1, N), "gap": [np.nan] * N, "kind": [NAMES.dtype] * N}
        (task,) = label_studio.tasks(FOUND, [0], data=data)
        assert json.loads(json.dumps(task, allow_nan=False))["data"] == {
            "row": 0,
            "observed": Y[0],
            "size": 0.0,
            "gap": None,
            "kind": str(NAMES.dtype),
        }

    @pytest.mark.parametrize("name", ["text", "image", 'odd "name"'])
    def test_the_interface_is_valid_and_matches_the_tasks(self, name):
        view = ElementTree.fromstring(label_studio.labeling_config(NAMES, name))
        element, choices = view
        assert element.tag == ("Image" if name == "image" else "Text")
        assert element.attrib == {"name": name, "value": f"${name}"}
        assert choices.attrib == {"name": "label", "toName": name, "choice": "single"}
        assert [choice.get("value") for choice in choices] == NAMES.tolist()

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda task: task["data"].pop("row"), "task 1000 has no 'row', which says which row"),
            (lambda task: task["data"].update(row="x"), "row of task 1000 = 'x' must be a whole"),
            (lambda task: task["data"].update(row=300), "is for row 300, but there are 300 rows"),
            (
                lambda task: task.update(annotations=[annotation("span", by=1)]),
                "Row 4 has the label 'span', which is not among the classes",
            ),
            (
                lambda task: task.update(annotations=[annotation({"choices": ["a", "b"]}, by=1)]),
                r"task 1000 has several choices \['a', 'b'\]: use choice=\"single\"",
            ),
            (lambda task: task.pop("annotations"), "use the export format JSON of Label Studio"),
        ],
    )
    def test_bad_exports(self, change, message):
        tasks = as_exported(label_studio.tasks(FOUND, [4], data=DATA))
        change(tasks[0])
        with pytest.raises(ValueError, match=message):
            label_studio.read_annotations(tasks, N, classes=NAMES)

    def test_bad_files(self, tmp_path):
        path = tmp_path / "export.json"
        path.write_text("{")
        with pytest.raises(ValueError, match=r"export\.json is not a JSON file"):
            label_studio.read_annotations(path, N)
        path.write_text("{}")
        with pytest.raises(ValueError, match=r"export\.json holds no list of records"):
            label_studio.read_annotations(path, N)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({}, "holds nothing to show of its rows: pass data="),
            ({"data": {}}, "data is empty"),
            ({"data": {"text": ["a"]}}, r"data\['text'\] has 1 values but the audit has 300 rows"),
            ({"data": DATA, "rows": [0.5]}, "must be a list of row numbers"),
            ({"data": DATA, "rows": [300]}, "a row of rows = 300 must be a whole number"),
        ],
    )
    def test_bad_options(self, options, message):
        with pytest.raises(ValueError, match=message):
            label_studio.tasks(FOUND, **options)

    def test_repeated_ids(self):
        with pytest.raises(ValueError, match="ids has 'a' in rows 0 and 2: pass a different id"):
            label_studio.read_annotations([], 3, ids=["a", "b", "a"])


USERS = [str(UUID(int=1)), str(UUID(int=2))]


def answered(record, *values, statuses=None):
    """Return a record with one response for each value."""
    responses = [
        {"value": value, "user_id": user} for value, user in zip(values, USERS, strict=False)
    ]
    for response, status in zip(responses, statuses or [], strict=False):
        response["status"] = status
    return {**record, "responses": {"label": responses}, "status": "completed"}


class TestArgilla:
    def test_the_round_trip_is_lossless(self, tmp_path):
        argilla.write_records(FOUND, tmp_path / "records.json", data=DATA)
        records = json.loads((tmp_path / "records.json").read_text())
        assert records == argilla.records(FOUND, data=DATA)
        row = int(SUSPECTS[0])
        assert records[0]["id"] == str(row)
        assert records[0]["metadata"] == {"row": row, "observed": Y[row]}
        suggested = [record["suggestions"]["label"]["value"] for record in records]
        assert suggested == FOUND.suspects.proposed[: len(SUSPECTS)].tolist()
        back = [answered(record, label) for record, label in zip(records, suggested, strict=True)]
        (tmp_path / "export.json").write_text(json.dumps(back))
        reviewed = argilla.read_responses(tmp_path / "export.json", N, classes=FOUND.classes)
        assert reviewed.trusted[SUSPECTS].tolist() == suggested
        assert (reviewed.trusted != None).sum() == len(SUSPECTS)  # noqa: E711

    def test_drafts_and_discarded_responses_are_ignored(self):
        records = argilla.records(FOUND, [4, 9, 2], data=DATA, suggestions=False)
        assert records[0]["suggestions"] == {}
        ham, spam = NAMES
        back = [
            answered(records[0], ham, spam, statuses=["submitted", "draft"]),
            answered(records[1], ham, None, statuses=["submitted", "discarded"]),
            answered(records[2], spam, ham, statuses=["submitted", "submitted"]),
        ]
        reviewed = argilla.read_responses(back, N)
        assert reviewed.trusted[[4, 9, 2]].tolist() == [ham, ham, None]
        assert reviewed.disputed.tolist() == [2]
        assert reviewed.votes.annotators.tolist() == USERS

    def test_flattened_records(self):
        flat = {
            "id": "4",
            "status": "completed",
            "text": TEXTS[4],
            "row": 4,
            "label.responses": [NAMES[0], NAMES[1]],
            "label.responses.users": USERS,
            "label.responses.status": ["submitted", "draft"],
            "label.suggestion": NAMES[1],
        }
        unanswered = {**flat, "row": 5, "label.responses": None}
        unanswered |= {"label.responses.users": None, "label.responses.status": None}
        reviewed = argilla.read_responses([flat, unanswered], N)
        assert reviewed.row.tolist() == [4]
        assert reviewed.trusted[4] == NAMES[0]

    def test_rows_are_found_by_id(self):
        ids = [f"m{row}" for row in range(N)]
        (record,) = argilla.records(shown(ids=ids, texts=TEXTS), [3])
        assert record["id"] == "m3"
        reviewed = argilla.read_responses([answered(record, NAMES[0])], N, ids=ids[::-1])
        assert reviewed.row.tolist() == [N - 4]
        with pytest.raises(ValueError, match="has the id 'm3', which is not in ids"):
            argilla.read_responses([answered(record, NAMES[0])], N, ids=range(N))

    def test_other_questions_raise(self):
        (record,) = argilla.records(FOUND, [3], data=DATA)
        with pytest.raises(ValueError, match=r"Record 3 has the response \['a'\]: name a label"):
            argilla.read_responses([answered(record, ["a"])], N)

    def test_records_of_the_package(self, tmp_path):
        package = pytest.importorskip("argilla")
        from argilla.records._io import GenericIO, JsonIO

        argilla.write_records(FOUND, tmp_path / "records.json", data=DATA)
        records = JsonIO._records_from_json(tmp_path / "records.json")
        assert [record.fields["text"] for record in records] == [TEXTS[row] for row in SUSPECTS]
        assert records[0].suggestions["label"].agent == "unflip"
        ham, spam = NAMES
        for record in records[:3]:
            record.responses.add(package.Response("label", spam, UUID(int=1), "submitted"))
        records[3].responses.add(package.Response("label", ham, UUID(int=2), "draft"))
        expected = np.full(N, None, dtype=object)
        expected[SUSPECTS[:3]] = spam
        for exported in (records, GenericIO.to_list(records, flatten=True)):
            reviewed = argilla.read_responses(exported, N, classes=NAMES)
            np.testing.assert_array_equal(reviewed.trusted, expected)
        JsonIO.to_json(records[:3], tmp_path / "export.json")
        reviewed = argilla.read_responses(tmp_path / "export.json", N, classes=NAMES)
        np.testing.assert_array_equal(reviewed.trusted, expected)


class TestHuggingFace:
    @pytest.fixture(scope="class")
    @staticmethod
    def datasets():
        return pytest.importorskip("datasets")

    def dataset(self, datasets, codes):
        features = datasets.Features(
            {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=NAMES.tolist())}
        )
        return datasets.Dataset.from_dict({"text": TEXTS, "label": codes}, features=features)

    def test_class_labels_become_names_and_gaps(self, datasets):
        codes = np.where(np.arange(N) < 5, -1, TRUE)
        dataset = self.dataset(datasets, codes.tolist())
        for each in (dataset, dataset.with_format("numpy")):
            labels = hugging_face.labels(each, "label")
            assert labels[:5].tolist() == [None] * 5
            np.testing.assert_array_equal(labels[5:], NAMES[TRUE[5:]])
        fitted = LPClassifier(RATES).fit(X, labels)
        assert fitted.classes_.tolist() == NAMES.tolist()

    def test_other_columns(self, datasets):
        dataset = datasets.Dataset.from_dict({"n": [1, 0], "gap": [1, None], "s": ["a", None]})
        assert hugging_face.labels(dataset, "n").dtype.kind == "i"
        assert hugging_face.labels(dataset, "gap").tolist() == [1, None]
        assert hugging_face.labels(dataset, "s").tolist() == ["a", None]
        with pytest.raises(ValueError, match=r"no column 'y': name one of \['n', 'gap', 's'\]"):
            hugging_face.labels(dataset, "y")

    def test_findings_become_columns(self, datasets):
        codes = np.where(np.arange(N) < 5, -1, np.where(FLIPPED, 1 - TRUE, TRUE))
        dataset = self.dataset(datasets, codes.tolist())
        found = audit(X, hugging_face.labels(dataset, "label"), noise=RATES)
        result = hugging_face.with_findings(dataset, found)
        assert result.column_names == [
            "text",
            "label",
            "unflip_likeliest_label",
            "unflip_probability_wrong",
            "unflip_is_suspect",
            "unflip_label_posterior",
        ]
        np.testing.assert_array_equal(result["unflip_label_posterior"], found.label_posterior)
        assert list(result["unflip_probability_wrong"])[:5] == [None] * 5
        rows = np.flatnonzero(list(result["unflip_is_suspect"]))
        np.testing.assert_array_equal(rows, np.sort(found.suspects.row[: found.n_suspects]))
        likeliest = np.array(list(result["unflip_likeliest_label"]))
        assert (likeliest == NAMES[TRUE]).mean() > 0.95
        with pytest.raises(ValueError, match="has a column 'unflip_likeliest_label' already"):
            hugging_face.with_findings(result, found)
        again = hugging_face.with_findings(result, found, prefix="second_")
        assert "second_is_suspect" in again.column_names

    def test_another_dataset_raises(self, datasets):
        dataset = datasets.Dataset.from_dict({"n": [1, 0]})
        with pytest.raises(ValueError, match="has 2 rows but the audit has 300"):
            hugging_face.with_findings(dataset, FOUND)
