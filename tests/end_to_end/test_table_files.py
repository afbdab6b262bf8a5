"""A table as it comes, by the command line and in Python: the same answer."""

import json

import numpy as np
import pytest

from support.files import program, read_csv, write_csv
from unflip import LPClassifier, NoiseModel, audit, fit_table, load_model

pd = pytest.importorskip("pandas", reason="needs the extra unflip[tables]")
pytest.importorskip("skops", reason="needs the extra unflip[tables]")

N = 400
NAMES = np.array(["no", "yes"])
LEFT_OUT = {
    "customer": "all its values differ, as ids do",
    "line": "it numbers the rows",
    "remark": "it looks like text",
    "currency": "it never varies",
}
USED = {
    "age": "number",
    "plan": "category",
    "member": "boolean",
    "since": "date",
    "spent": "number",
}
OPTIONS = ("--label", "churn")


def messy_columns(seed=0, n=N):
    """Return the columns of orders as strings, and their true labels."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 2, n)
    age = rng.normal(40 + 20 * true, 10).round(1)
    plan = np.where(rng.random(n) < 0.7, NAMES[true], rng.choice(["basic", "pro", "no", "yes"], n))
    since = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 700, n) + 500 * true, "D")
    columns = {
        "customer": [f"C{i:05}" for i in rng.permutation(n)],
        "line": [str(i + 1) for i in range(n)],
        "age": np.where(rng.random(n) < 0.1, "", age.astype(str)),
        "plan": np.where(rng.random(n) < 0.05, "NA", plan),
        "member": np.where(rng.random(n) < 0.2 + 0.6 * true, "true", "false"),
        "since": np.where(rng.random(n) < 0.05, "", since.strftime("%Y-%m-%d")),
        "spent": rng.lognormal(3, 1, n).round(2).astype(str),
        "remark": [f"called on day {i} about case {i * 7}" for i in range(n)],
        "currency": ["EUR"] * n,
    }
    return {name: list(map(str, cells)) for name, cells in columns.items()}, true


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return a file with noisy labels, and the true labels."""
    folder = tmp_path_factory.mktemp("tables")
    columns, true = messy_columns()
    noise = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1)
    observed = NAMES[noise.flip(true, random_state=0)]
    return write_csv(folder / "orders.csv", **columns, churn=observed), NAMES[true]


@pytest.fixture(scope="module")
def answer(data):
    return answer_of("audit", data[0], *OPTIONS, "--id", "customer")


def answer_of(*arguments):
    return json.loads(program(*arguments, "--json").stdout)


def frame_of(path):
    """Return a file as pandas reads it."""
    return pd.read_csv(path, keep_default_na=False, na_values=["", "NA"])


IGNORED = ["line", "remark", "currency"]


def test_suspects_are_wrong_labels(data, answer):
    path, true = data
    observed = np.array([row["churn"] for row in read_csv(path)])
    wrong = observed != true
    found = [line["row"] for line in answer["suspects"][: answer["n_suspects"]]]
    assert len(found) > 5
    assert wrong[found].mean() > 0.75


def test_each_column_is_accounted_for(data, answer):
    each = {line["name"]: line for line in answer["features"]["each"]}
    assert {name: line["kind"] for name, line in each.items() if not line["left_out"]} == USED
    left_out = {name: line["left_out"] for name, line in each.items() if line["left_out"]}
    assert left_out == {name: why for name, why in LEFT_OUT.items() if name != "customer"}
    features = answer["features"]
    assert features["kind"] == "mixed"
    assert sum(line["n_features"] for line in each.values()) == features["n_features"]
    output = " ".join(program("audit", data[0], *OPTIONS).stdout.split())
    assert (
        "Features: 2 numbers (age, spent), 1 boolean (member), 1 category (plan), 1 date (since)."
        in output
    )
    assert (
        "Columns not used: customer (all its values differ, as ids do), line (it numbers the "
        "rows), remark (it looks like text), currency (it never varies). Name a column of text "
        "with --text, and others with --use, to use them." in output
    )


def test_python_gives_the_same_audit(data, answer):
    frame = frame_of(data[0])
    report = audit(frame, label="churn", id="customer", ignore=IGNORED)
    assert report.n_suspects == answer["n_suspects"]
    expected = answer["suspects"]
    assert [int(row) for row in report.suspects["row"]] == [line["row"] for line in expected]
    np.testing.assert_allclose(
        report.suspects["probability"], [line["probability_wrong"] for line in expected], atol=6e-5
    )
    assert report.expected_wrong == pytest.approx(answer["expected_wrong"]["value"], rel=1e-9)


@pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
def test_python_shows_ids_and_cells(data):
    frame = frame_of(data[0])
    shown = audit(frame, label="churn", id="customer", ignore=IGNORED).shown.checked(N)
    rows = read_csv(data[0])
    assert shown.ids == [row["customer"] for row in rows]
    assert shown.texts is None
    assert {*shown.cells} == {*frame.columns} - {"churn", "customer"}
    assert shown.cells["plan"] == ["" if row["plan"] == "NA" else row["plan"] for row in rows]
    # Without a column of ids, those of the index, if it does not count the rows.
    named = frame.set_index("customer")
    assert audit(named, label="churn", ignore=IGNORED).shown.ids == shown.ids
    texts = audit(frame, label="churn", text="remark").shown
    assert texts.ids is None
    assert texts.texts == [row["remark"] for row in rows]
    assert "remark" not in texts.cells


def test_python_warns_of_columns_that_look_like_ids_or_text(data):
    frame = frame_of(data[0])
    with pytest.warns(UserWarning, match="Not used as features: 'customer', because all") as caught:
        report = audit(frame, label="churn")
    assert len(caught) == 1
    message = str(caught[0].message)
    assert all(f"{name!r}, because {why}" in message for name, why in LEFT_OUT.items())
    assert "name columns of text with text=, others with use=" in message
    assert caught[0].filename == __file__
    expected = audit(frame, label="churn", ignore=[*LEFT_OUT])
    np.testing.assert_array_equal(report.label_posterior, expected.label_posterior)
    used = audit(frame, label="churn", ignore=IGNORED[1:], use="line", id="customer")
    assert used.label_posterior.tolist() != expected.label_posterior.tolist()


def test_columns_with_roles_are_no_features(data):
    path, true = data
    frame = frame_of(path)
    checked = np.where(np.arange(N) % 8 == 0, true, None)
    pairs = np.arange(N) // 2
    options = {"label": "churn", "id": "customer", "ignore": IGNORED}
    by_name = audit(
        frame.assign(truth=checked, pair=pairs), trusted="truth", groups="pair", **options
    )
    by_value = audit(frame, trusted=checked, groups=pairs, **options)
    np.testing.assert_array_equal(by_name.label_posterior, by_value.label_posterior)
    assert len(by_name.checked) == N // 8


def test_one_model_for_python_and_the_command_line(data, tmp_path):
    path, _ = data
    new, true = messy_columns(seed=1)
    new["plan"][:3] = ["never seen", "", "pro"]
    new_path = write_csv(tmp_path / "new.csv", **new)
    program("fit", path, *OPTIONS, "--out", tmp_path / "m.skops")
    by_command = load_model(tmp_path / "m.skops")
    in_python = fit_table(frame_of(path), "churn", ignore=[*LEFT_OUT])
    in_python.save(tmp_path / "p.skops")
    frame = frame_of(new_path)
    expected = in_python.predict_proba(frame)
    np.testing.assert_allclose(by_command.predict_proba(frame), expected, rtol=1e-9)
    assert by_command.expected_accuracy_ == pytest.approx(in_python.expected_accuracy_)
    assert by_command.expected_accuracy_std_ == pytest.approx(in_python.expected_accuracy_std_)
    assert by_command.classes_.tolist() == ["no", "yes"]
    for model in ("m.skops", "p.skops"):
        program("predict", tmp_path / model, new_path, "--out", tmp_path / "out.csv")
        lines = read_csv(tmp_path / "out.csv")
        assert [line["predicted"] for line in lines] == in_python.predict(frame).tolist()
        np.testing.assert_allclose(
            [float(line["p(yes)"]) for line in lines], expected[:, 1], atol=6e-5
        )
    predicted = in_python.predict(frame)
    assert abs((predicted == NAMES[true]).mean() - in_python.expected_accuracy_) < 0.08


def test_errors_of_predict_name_the_file_and_the_cell(data, tmp_path):
    program("fit", data[0], *OPTIONS, "--out", tmp_path / "m.skops")
    columns, _ = messy_columns(seed=1, n=20)
    cases = {
        "age": ("old", "'old' in row 3 (counted from 0), which is not a number"),
        "member": ("maybe", "'maybe' in row 3 (counted from 0), which is not a number"),
        "since": ("soon", "'soon' in row 3 (counted from 0), which is not a date"),
    }
    for name, (cell, message) in cases.items():
        cells = [*columns[name]]
        cells[3] = cell
        path = write_csv(tmp_path / "new.csv", **{**columns, name: cells})
        error = program("predict", tmp_path / "m.skops", path, "--json", code=2).stderr
        assert message in error
        assert "new.csv" in error
    without = {name: cells for name, cells in columns.items() if name != "plan"}
    path = write_csv(tmp_path / "new.csv", **without)
    error = program("predict", tmp_path / "m.skops", path, "--json", code=2).stderr
    assert "has no column 'plan', which is a feature of the model: add it." in error


def test_labels_that_are_spelled_differently_are_named(data):
    frame = frame_of(data[0])
    frame.loc[:9, "churn"] = frame.loc[:9, "churn"].str.capitalize() + " "
    with pytest.warns(UserWarning, match=r"The labels '(No|Yes) ', '(No|Yes) ' of column 'churn'"):
        fit_table(frame, "churn", ignore=[*LEFT_OUT])


@pytest.mark.parametrize("kind", [pd.Series, list, np.array])
def test_texts_need_features_or_a_table(kind):
    texts = kind(["good", "bad"] * 20)
    with pytest.raises(ValueError, match="X holds texts: pass a DataFrame"):
        audit(texts, ["yes", "no"] * 20)


def test_rows_without_a_label_have_no_weight_in_a_fit(data):
    frame = frame_of(data[0])
    frame.loc[::7, "churn"] = None
    model = fit_table(frame, "churn", ignore=[*LEFT_OUT])
    labelled = frame["churn"].notna().to_numpy()
    rows = model.features.transform(frame)
    alone = LPClassifier().fit(rows[labelled], frame["churn"][labelled].to_numpy())
    np.testing.assert_allclose(model.predict_proba(frame), alone.predict_proba(rows), atol=1e-9)
    with pytest.raises(ValueError, match="no label"):
        fit_table(frame.assign(churn=None), "churn", ignore=[*LEFT_OUT])


def test_trusted_labels_and_given_rates_in_a_fit(data, tmp_path):
    path, true = data
    rows = read_csv(path)
    checked = np.where(np.arange(N) % 8 == 0, true, "")
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    with_truth = write_csv(tmp_path / "truth.csv", **columns, truth=checked)
    frame = frame_of(with_truth)
    for eps, noise in (((), "estimate"), (("--eps", "no=0.1,yes=0.2"), "given")):
        report = answer_of(
            "fit", with_truth, *OPTIONS, "--trusted", "truth", *eps, "--out", tmp_path / "m.skops"
        )
        known = NoiseModel.binary(eps_pos=0.2, eps_neg=0.1)
        model = fit_table(
            frame,
            "churn",
            ignore=[*LEFT_OUT],
            trusted="truth",
            noise=known if noise == "given" else noise,
        )
        assert model.expected_accuracy_ == pytest.approx(report["expected_accuracy"]["value"])
    with pytest.raises(ValueError, match="trusted= with noise=None is not supported"):
        fit_table(frame, "churn", ignore=[*LEFT_OUT], trusted="truth", noise=None)


def test_a_category_that_copies_the_labels_is_noted(data, tmp_path):
    rows = read_csv(data[0])
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    outcome = ["left" if row["churn"] == "yes" else "stayed" for row in rows]
    path = write_csv(tmp_path / "leak.csv", **columns, outcome=outcome)
    notes = answer_of("audit", path, *OPTIONS)["notes"]
    assert "Column 'outcome' has one value for each label" in str(notes)
    assert "'plan'" not in str(notes)


def test_texts_with_other_columns(data, tmp_path):
    rng = np.random.default_rng(0)
    columns, true = messy_columns()
    words = np.array([["slow", "rude", "late"], ["quick", "kind", "cheap"]])
    review = [
        " ".join(rng.choice(words[label], 2)) + f" shop {i % 9}" for i, label in enumerate(true)
    ]
    observed = [row["churn"] for row in read_csv(data[0])]
    path = write_csv(tmp_path / "r.csv", **{**columns, "remark": review}, churn=observed)
    alone = answer_of("audit", path, *OPTIONS, "--text", "remark")["features"]
    assert (alone["kind"], alone["columns"]) == ("text", ["remark"])
    both = ("--text", "remark", "--use", "age", "--use", "pl*")
    features = answer_of("audit", path, *OPTIONS, *both)["features"]
    assert (features["kind"], features["columns"]) == ("text", ["age", "plan", "remark"])
    shown = program("audit", path, *OPTIONS, *both, "--out", tmp_path / "a.html").stdout
    assert "the words of column 'remark', 1 number (age), 1 category (plan)" in " ".join(
        shown.split()
    )
    assert shown.count("--use age --use 'pl*'") == 3  # fit, apply, and audit with checked rows
    in_python = fit_table(frame_of(path), "churn", text="remark", use=["age", "pl*"])
    program("fit", path, *OPTIONS, *both, "--out", tmp_path / "m.skops")
    np.testing.assert_allclose(
        load_model(tmp_path / "m.skops").predict_proba(frame_of(path)),
        in_python.predict_proba(frame_of(path)),
        rtol=1e-7,
    )


def test_votes_on_items_with_categories(data, tmp_path):
    columns, true = messy_columns()
    rng = np.random.default_rng(0)
    twice = {name: [*cells, *cells] for name, cells in columns.items()}
    votes = [NAMES[label if rng.random() < 0.8 else 1 - label] for label in [*true, *true]]
    readers = ["r1"] * N + ["r2"] * N
    del twice["line"], twice["remark"]
    path = write_csv(tmp_path / "v.csv", **twice, reader=readers, vote=votes)
    options = ("--item", "customer", "--label", "vote", "--annotator", "reader")
    report = answer_of("audit", path, *options)
    assert report["rows"] == N
    assert report["features"]["columns"] == list(USED)
    twice["plan"][N + 5] = "other"
    path = write_csv(tmp_path / "v.csv", **twice, reader=readers, vote=votes)
    error = program("audit", path, *options, code=2).stderr
    assert "Column 'plan'" in error
    assert "give all rows of an item the same features" in error


def test_json_lines_and_parquet_give_the_same_result(data, answer, tmp_path):
    csv = pytest.importorskip("pyarrow.csv", reason="needs the extra unflip[parquet]")
    parquet = pytest.importorskip("pyarrow.parquet")
    options = csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True)
    table = csv.read_csv(data[0], convert_options=options)
    parquet.write_table(table, tmp_path / "orders.parquet")
    lines = [json.dumps(row, default=str) for row in table.to_pylist()]
    (tmp_path / "orders.jsonl").write_text("\n".join(lines), encoding="utf-8")
    for name in ("orders.parquet", "orders.jsonl"):
        other = answer_of("audit", tmp_path / name, *OPTIONS, "--id", "customer")
        assert {**other, "file": answer["file"]} == answer


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "chrn"}, "label='chrn', but the table has no such column: did you mean 'churn'"),
        ({"label": "churn", "text": "remarks"}, "text='remarks', .*: did you mean 'remark'"),
        ({"label": "churn", "trusted": "truth"}, "trusted='truth', but the table has no such"),
        ({"label": "churn", "groups": "churn"}, "groups='churn' is the column of labels"),
        ({"label": "churn", "y": [0] * N}, "y and label= both pass the labels"),
        ({"text": "remark"}, "text='remark' names columns of a table: pass the column of labels"),
        ({"id": "customer"}, "id='customer' names columns of a table"),
        ({}, "The labels are missing: pass y, or a DataFrame with label="),
        ({"y": [0, 1] * (N // 2)}, "Column 'customer' of X does not have numbers: put the labels"),
    ],
)
def test_wrong_names_are_errors(data, options, message):
    with pytest.raises(ValueError, match=message):
        audit(frame_of(data[0]), **options)


def test_damaged_models_are_errors(data, tmp_path):
    frame = frame_of(data[0])
    model = fit_table(frame, "churn", ignore=[*LEFT_OUT])
    content = model.to_bytes()
    path = tmp_path / "m.skops"
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="is not a model, or is damaged: use a file written by"):
        load_model(path)
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "none.skops")
