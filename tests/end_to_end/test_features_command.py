"""The option --features of the commands `unflip audit`, `unflip fit` and `unflip predict`."""

import json

import numpy as np
import pytest
from sklearn.datasets import make_circles
from sklearn.preprocessing import StandardScaler

from support.files import NAMES, program, read_csv, write_csv
from unflip import LPClassifier, NoiseModel
from unflip.datasets import make_messages

NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)
RATES = ("--eps", "ham=0.1,spam=0.3")
N = 400


def ring_file(path, n=N, seed=0, **columns):
    """Write rows on two rings with ids and noisy labels; return the true labels."""
    X, true = make_circles(n, noise=0.15, factor=0.5, random_state=seed)
    observed = NAMES[NOISE.flip(true, random_state=seed)]
    write_csv(
        path,
        name=[f"r{i}" for i in range(n)],
        east=X[:, 0].round(4),
        north=(100 * X[:, 1]).round(2),
        label=observed,
        **columns,
    )
    return NAMES[true]


def in_python(path):
    """Return the standardized features of a file and its labels."""
    rows = read_csv(path)
    X = np.array([[float(row["east"]), float(row["north"])] for row in rows])
    return StandardScaler().fit_transform(X), np.array([row["label"] for row in rows])


def answer(*arguments):
    return json.loads(program(*arguments, "--json").stdout)


@pytest.fixture(scope="module")
def rings(tmp_path_factory):
    path = tmp_path_factory.mktemp("rings") / "rings.csv"
    return path, ring_file(path)


@pytest.fixture(scope="module")
def fitted(rings):
    """Return a model file and the output of the command that wrote it."""
    model = rings[0].parent / "m.skops"
    return model, answer(
        "fit", rings[0], "--label", "label", *RATES, "--features", "auto", "--out", model
    )


def predictions(model, path):
    """Return predicted classes and the probability of the second."""
    rows = answer("predict", model, path)["rows"]
    return np.array([row["predicted"] for row in rows]), np.array([row["p(spam)"] for row in rows])


class TestAudit:
    @pytest.mark.parametrize("features", ["auto", "rbf", "matern", "laplace"])
    def test_suspects_are_wrong_labels(self, rings, features):
        path, true = rings
        report = answer("audit", path, "--label", "label", *RATES, "--features", features)
        observed = np.array([row["label"] for row in read_csv(path)])
        wrong = observed != true
        suspects = [line["row"] for line in report["suspects"][: report["n_suspects"]]]
        # At an expected false discovery rate of 10%.
        assert wrong[suspects].mean() > 0.75
        assert wrong[suspects].sum() > 0.4 * wrong.sum()
        estimate = report["expected_wrong"]
        assert abs(estimate["value"] - wrong.sum()) < 4 * estimate["standard_error"]
        assert estimate["standard_error"] < 0.05 * N
        assert report["features"]["columns"] == ["east", "north"]
        assert report["features"]["n_features"] == 2

    def test_numbers_equal_those_of_python(self, rings):
        report = answer("audit", rings[0], "--label", "label", *RATES, "--features", "auto")
        noise = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)
        clf = LPClassifier(noise, features="auto").fit(*in_python(rings[0]))
        assert clf.features_ is not None
        # Without checked rows, the class-conditional estimate is reported.
        text = program("audit", rings[0], "--label", "label", *RATES, "--features", "auto").stdout
        expected = f"{clf.expected_accuracy_:.1%} ± {clf.expected_accuracy_std_:.1%}"
        assert expected in " ".join(text.split())
        probable = {line["row"]: line["probability_wrong"] for line in report["suspects"]}
        codes = np.searchsorted(clf.classes_, in_python(rings[0])[1])
        wrong = 1 - clf.label_posterior_[np.arange(N), codes]
        for row, probability in probable.items():
            assert probability == pytest.approx(wrong[row], abs=0.02)

    @pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")
    def test_linear_is_the_default_and_finds_no_suspect_on_rings(self, rings):
        by_default = answer("audit", rings[0], "--label", "label", *RATES)
        named = answer("audit", rings[0], "--label", "label", *RATES, "--features", "linear")
        assert by_default == named
        assert named["n_suspects"] == 0

    def test_groups_trusted_labels_and_the_page(self, rings, tmp_path):
        path = tmp_path / "rings.csv"
        true = NAMES[make_circles(N, noise=0.15, factor=0.5, random_state=0)[1]]
        checked = [label if i % 8 == 0 else "" for i, label in enumerate(true)]
        ring_file(path, patient=np.arange(N) // 2, truth=checked)
        page = tmp_path / "page.html"
        suspects = tmp_path / "suspects.csv"
        report = answer(
            "audit",
            path,
            *("--label", "label", "--trusted", "truth", "--group", "patient"),
            *("--features", "matern", "--out", page, "--suspects", suspects),
        )
        observed = np.array([row["label"] for row in read_csv(path)])
        found = [line["row"] for line in report["suspects"][: report["n_suspects"]]]
        assert (observed != true)[found].mean() > 0.7
        assert len(found) > 10
        assert page.read_text(encoding="utf-8").lower().startswith("<!doctype html>")
        lines = read_csv(suspects)
        assert sum(line["part"] == "suspect" for line in lines) == len(found)

    def test_the_kernel_is_named(self, rings):
        path, _ = rings
        audit = ("audit", path, "--label", "label", *RATES)
        assert "with the laplace kernel." in program(*audit, "--features", "laplace").stdout
        chosen = answer(*audit, "--features", "auto")["features"]["kernel"]
        text = " ".join(program(*audit, "--features", "auto").stdout.split())
        assert f"with the {chosen} kernel, chosen by the labels." in text
        assert answer(*audit)["features"]["kernel"] is None

    def test_the_page_names_the_kernel(self, rings, tmp_path):
        page = tmp_path / "a.html"
        options = ("--label", "label", *RATES, "--features", "rbf", "--out", page)
        program("audit", rings[0], *options)
        assert "with the rbf kernel." in page.read_text(encoding="utf-8")

    def test_suggested_commands_keep_the_features(self, rings, tmp_path):
        path, _ = rings
        options = ("--label", "label", *RATES, "--features", "rbf", "--out", tmp_path / "a.html")
        lines = program("audit", path, *options).stdout.splitlines()
        commands = [line for line in lines if line.lstrip().startswith("unflip ")]
        assert len(commands) == 3  # fit, apply, and audit with checked rows
        assert all("--features rbf" in command for command in commands)
        linear = program("audit", path, "--label", "label", "--out", tmp_path / "b.html").stdout
        assert "--features" not in linear

    def test_apply_compares_fits_with_the_features(self, rings, tmp_path):
        path, _ = rings
        page = ("--label", "label", *RATES, "--id", "name", "--features", "rbf")
        suspects = tmp_path / "suspects.csv"
        program("audit", path, *page, "--suspects", suspects)
        rows = read_csv(suspects)
        for row in rows[:20]:
            row["decision"] = "accept"
        write_csv(suspects, **{name: [row[name] for row in rows] for name in rows[0]})
        clean = tmp_path / "clean.csv"
        before = answer("apply", path, suspects, *page, "--out", clean)["expected_accuracy"]
        linear = answer("apply", path, suspects, *page[:-2], "--out", tmp_path / "linear.csv")
        assert before["before"]["value"] > linear["expected_accuracy"]["before"]["value"] + 0.2


class TestFitAndPredict:
    def test_models_of_texts(self, tmp_path):
        """Landmarks are sparse then."""
        texts, true = make_messages(300, random_state=0)
        path = tmp_path / "texts.csv"
        write_csv(path, text=texts, label=NAMES[NOISE.flip(true, random_state=0)])
        model = tmp_path / "m.skops"
        options = ("--label", "label", "--text", "text", *RATES, "--features", "rbf")
        program("fit", path, *options, "--out", model)
        predicted, _ = predictions(model, path)
        assert (predicted == NAMES[true]).mean() > 0.8

    def test_the_model_separates_the_rings(self, rings, fitted, tmp_path):
        model, report = fitted
        assert model.exists()
        assert report["rows"] == N
        new = tmp_path / "new.csv"
        true = ring_file(new, n=1000, seed=1)
        predicted, _ = predictions(model, new)
        accuracy = np.mean(predicted == true)
        assert accuracy > 0.85
        expected = report["expected_accuracy"]
        assert abs(expected["value"] - accuracy) < 4 * expected["standard_error"]

    def test_predictions_equal_those_of_python(self, rings, fitted):
        path, _ = rings
        X, labels = in_python(path)
        clf = LPClassifier(NOISE, features="auto").fit(X, labels)
        predicted, probabilities = predictions(fitted[0], path)
        np.testing.assert_array_equal(predicted, clf.predict(X))
        # Files have four digits.
        np.testing.assert_allclose(probabilities, clf.predict_proba(X)[:, 1], atol=0.5e-4 + 1e-7)
        report = fitted[1]["expected_accuracy"]
        assert report["value"] == pytest.approx(clf.expected_accuracy_, abs=1e-7)

    def test_the_saved_classifier_has_the_chosen_kernel(self, fitted):
        from unflip import load_model

        classifier = load_model(fitted[0]).classifier
        assert classifier.features == "auto"
        assert classifier.features_.kernel in ("rbf", "matern", "laplace")
        assert classifier.features_.landmarks_.shape == (N, 2)
        assert classifier.n_features_in_ == 2

    @pytest.mark.parametrize("features", ["linear", "rbf"])
    def test_other_values(self, rings, tmp_path, features):
        model = tmp_path / "m.skops"
        program("fit", rings[0], "--label", "label", *RATES, "--features", features, "--out", model)
        X, labels = in_python(rings[0])
        clf = LPClassifier(NOISE, features=features).fit(X, labels)
        predicted, probabilities = predictions(model, rings[0])
        np.testing.assert_array_equal(predicted, clf.predict(X))
        np.testing.assert_allclose(probabilities, clf.predict_proba(X)[:, 1], atol=0.5e-4 + 1e-7)

    def test_estimated_noise_rates(self, rings, tmp_path):
        model = tmp_path / "m.skops"
        report = answer("fit", rings[0], "--label", "label", "--features", "auto", "--out", model)
        assert report["noise_rate"]["ham"] < report["noise_rate"]["spam"] < 0.45
        predicted, _ = predictions(model, rings[0])
        assert np.mean(predicted == rings[1]) > 0.85

    def test_decisions_and_groups(self, rings, tmp_path):
        path, true = rings
        observed = np.array([row["label"] for row in read_csv(path)])
        wrong = np.flatnonzero(observed != true)[:30]
        decisions = write_csv(
            tmp_path / "d.csv",
            row=wrong,
            observed=observed[wrong],
            proposed=true[wrong],
            decision=["accept"] * len(wrong),
        )
        model = tmp_path / "m.skops"
        options = ("--label", "label", *RATES, "--features", "matern", "--out", model)
        program("fit", path, *options, "--decisions", decisions)
        predicted, _ = predictions(model, path)
        assert np.mean(predicted == true) > 0.9
        grouped = tmp_path / "grouped.csv"
        ring_file(grouped, patient=np.arange(N) // 2)
        report = answer("fit", grouped, *options, "--group", "patient")
        assert 0.8 < report["expected_accuracy"]["value"] < 1
        predicted, _ = predictions(model, grouped)
        assert np.mean(predicted == true) > 0.85

    def test_a_missing_column_is_an_error(self, rings, fitted, tmp_path):
        rows = read_csv(rings[0])
        new = write_csv(tmp_path / "new.csv", east=[row["east"] for row in rows])
        error = program("predict", fitted[0], new, "--json", code=2).stderr
        assert "new.csv has no column 'north'" in error


@pytest.mark.parametrize("value", ["poly", "Auto", "KernelFeatures()"])
@pytest.mark.parametrize("command", ["audit", "fit"])
def test_errors_of_other_values(rings, tmp_path, command, value):
    model = tmp_path / "m.skops"
    out = ("--out", model) if command == "fit" else ()
    error = program(
        command, rings[0], "--label", "label", *RATES, "--features", value, *out, code=2
    ).stderr
    assert f"--features must be linear, auto, rbf, matern or laplace, not {value!r}" in error
    assert not model.exists()
