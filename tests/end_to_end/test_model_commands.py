"""The commands `unflip fit`, `unflip predict` and `unflip plan`."""

import io
import json
import zipfile

import numpy as np
import pytest

from support.files import NAMES, mixture_file, program, read_csv, text_file, write_csv
from unflip import NoiseModel, load_model, theory
from unflip.datasets import make_mixture

RATES = ("--eps", "ham=0.1,spam=0.3")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted")
    true = mixture_file(folder / "mails.csv")
    output = program(
        "fit", folder / "mails.csv", "--label", "label", *RATES, "--out", folder / "m.skops"
    ).stdout
    assert "fitted to 300 rows.\nFeatures: 6 numeric columns (x0, " in output
    assert "Noise rates of the labels by true class: 'ham': 10%, 'spam': 30%." in output
    assert "Expected accuracy on clean labels: 9" in output
    return folder, true


def test_predictions_are_true_classes(fitted, tmp_path):
    folder, true = fitted
    out = tmp_path / "p.csv"
    output = program(
        "predict", folder / "m.skops", folder / "mails.csv", "--out", out, "--id", "name"
    ).stdout
    assert "300 rows predicted" in output
    assert "Expected accuracy: 9" in output
    lines = read_csv(out)
    assert list(lines[0]) == ["row", "id", "predicted", "probability", "p(ham)", "p(spam)"]
    assert (
        np.mean([line["predicted"] == label for line, label in zip(lines, true, strict=True)]) > 0.9
    )
    assert lines[7]["id"] == "r7"
    answer = json.loads(
        program("predict", folder / "m.skops", folder / "mails.csv", "--json").stdout
    )
    assert [line["predicted"] for line in answer["rows"]] == [line["predicted"] for line in lines]


@pytest.mark.parametrize("options", [(), ("--trusted", "truth"), ("--trusted", "truth", *RATES)])
def test_models_of_texts_for_each_source_of_noise_rates(tmp_path, options):
    path = tmp_path / "films.csv"
    model = tmp_path / "m.skops"
    true = text_file(path)
    rows = read_csv(path)
    truth = [label if i % 4 == 0 else "" for i, label in enumerate(true)]
    write_csv(
        path, text=[row["text"] for row in rows], label=[row["label"] for row in rows], truth=truth
    )
    program("fit", path, "--label", "label", "--text", "text", *options, "--out", model)
    answer = json.loads(program("predict", model, path, "--json").stdout)
    assert (
        np.mean(
            [line["predicted"] == label for line, label in zip(answer["rows"], true, strict=True)]
        )
        > 0.9
    )


def test_true_and_false_are_features_in_every_format(tmp_path):
    pytest.importorskip("pyarrow", reason="needs the extra unflip[cli]")
    from pyarrow import csv, parquet

    mixture_file(tmp_path / "mails.csv")
    rows = read_csv(tmp_path / "mails.csv")
    flag = ["True" if float(row["x0"]) > 0 else "False" for row in rows]
    write_csv(
        tmp_path / "d.csv",
        flag=flag,
        x1=[row["x1"] for row in rows],
        label=[row["label"] for row in rows],
    )
    parquet.write_table(csv.read_csv(tmp_path / "d.csv"), tmp_path / "d.parquet")
    predictions = []
    for name, other in (("d.csv", "d.parquet"), ("d.parquet", "d.csv")):
        fitted = json.loads(
            program(
                "fit",
                tmp_path / name,
                "--label",
                "label",
                *RATES,
                "--out",
                tmp_path / "m.skops",
                "--json",
            ).stdout
        )
        assert fitted["features"]["columns"] == ["flag", "x1"]
        predictions.append(
            json.loads(program("predict", tmp_path / "m.skops", tmp_path / other, "--json").stdout)[
                "rows"
            ]
        )
    assert predictions[0] == predictions[1]


def test_decisions_are_trusted_labels(fitted, tmp_path):
    folder, true = fitted
    rows = read_csv(folder / "mails.csv")
    model = tmp_path / "m.skops"
    wrong = [row for row, line in enumerate(rows) if line["label"] != true[row]][:50]
    decisions = tmp_path / "d.csv"
    observed = [rows[row]["label"] for row in wrong]
    write_csv(
        decisions,
        row=wrong,
        observed=observed,
        proposed=true[wrong],
        decision=["accept"] * len(wrong),
    )
    arguments = ("fit", folder / "mails.csv", "--label", "label", "--out", model, "--json")
    answer = json.loads(program(*arguments, *RATES, "--decisions", decisions).stdout)
    assert answer["noise_rate"] == pytest.approx({"ham": 0.1, "spam": 0.3})
    certain = load_model(model).classifier.label_posterior_[wrong]
    np.testing.assert_array_equal(certain, np.eye(2)[(true[wrong] == "spam").astype(int)])
    write_csv(
        decisions,
        row=wrong[:1],
        observed=true[wrong[:1]],
        proposed=observed[:1],
        decision=["accept"],
    )
    assert (
        "use the file that was audited"
        in program(*arguments, "--decisions", decisions, code=2).stderr
    )


@pytest.mark.parametrize("options", [(), ("--group", "group")])
@pytest.mark.parametrize(
    ("mean_norm", "note"),
    [
        (0.0, "The features do not predict the labels better than chance"),
        (2.0, "The noise rates are uncertain."),
    ],
)
def test_notes_on_noise_rates_that_are_not_reliable(tmp_path, options, mean_norm, note):
    X, true = make_mixture(200, 6, mean_norm=mean_norm, random_state=0)
    X[:, 0] = np.sinh(X[:, 0])  # not Gaussian
    noise = NoiseModel.binary(eps_pos=0.45, eps_neg=0.4)
    path = write_csv(
        tmp_path / "d.csv",
        **{f"x{j}": X[:, j] for j in range(6)},
        group=np.arange(200) // 2,
        label=NAMES[noise.flip(true, random_state=0)],
    )
    arguments = ("fit", path, "--label", "label", *options, "--out", tmp_path / "m.skops", "--json")
    done = program(*arguments)
    assert any(sentence.startswith(note) for sentence in json.loads(done.stdout)["notes"])
    assert f"Note: {note}" in done.stderr


def test_error_of_a_file_without_a_feature(fitted, tmp_path):
    folder, _ = fitted
    rows = read_csv(folder / "mails.csv")
    write_csv(
        tmp_path / "new.csv",
        **{name: [row[name] for row in rows] for name in rows[0] if name != "x3"},
    )
    done = program(
        "predict", folder / "m.skops", tmp_path / "new.csv", "--out", tmp_path / "p.csv", code=2
    )
    assert "new.csv has no column 'x3'" in done.stderr
    assert not (tmp_path / "p.csv").exists()


def test_other_files_are_not_loaded_as_models(fitted, tmp_path):
    folder, _ = fitted
    other = tmp_path / "m.skops"
    other.write_text("no model", encoding="utf-8")
    assert (
        "m.skops is not a model"
        in program("predict", other, folder / "mails.csv", "--json", code=2).stderr
    )
    content = (folder / "m.skops").read_bytes()
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "schema.json":
                data = data.replace(b'"NoiseModel"', b'"Popen"').replace(
                    b'"unflip.labels.noise"', b'"subprocess"'
                )
            new.writestr(name, data)
    other.write_bytes(changed.getvalue())
    output = program("predict", other, folder / "mails.csv", "--json", code=2).stderr
    assert "subprocess.Popen" in output
    assert "not loaded" in output


def test_predict_needs_out_or_json(fitted):
    folder, _ = fitted
    assert (
        "none.skops does not exist"
        in program("predict", "none.skops", folder / "mails.csv", code=2).stderr
    )
    assert (
        "needs --out" in program("predict", folder / "m.skops", folder / "mails.csv", code=2).stderr
    )


PLAN = (
    "plan",
    "--n",
    "1600",
    "--p",
    "400",
    "--mean-norm",
    "1.2",
    "--eps-pos",
    "0.4",
    "--eps-neg",
    "0.3",
)


def test_plan_agrees_with_the_theory():
    noise = NoiseModel.binary(eps_pos=0.4, eps_neg=0.3, pi_neg=0.5)
    ours = theory.plan(n=1600, p=400, mean_norm=1.2, noise=noise)
    answer = json.loads(program(*PLAN, "--json").stdout)
    assert answer["accuracy"] == ours.accuracy
    assert answer["checked_rows"][0] == {
        "checked": 80,
        "accuracy": float(ours.accuracy_of(checked=80)),
        "equivalent_rows": ours.equivalent_rows(80),
    }
    assert f"{ours.accuracy:.1%} now" in program(*PLAN).stdout


def test_errors_of_impossible_rates():
    assert "must be below 1" in program(*PLAN[:-1], "0.7", code=2).stderr
    assert "reg" in program(*PLAN, "--reg", "-1", code=2).stderr
