"""Rows without a label: no weight in the fit, and a proposed class with its probability."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import cross_val_predict

from unflip import LPClassifier, NoiseModel, NoisyLabelClassifier, Votes, audit, audit_scores
from unflip._utils.arrays import as_numpy
from unflip.datasets import make_mixture
from unflip.estimation import TrustedSubset
from unflip.labels import split_missing

TWO = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)
THREE = NoiseModel([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
N = 400
X, TRUE = make_mixture(N, 20, mean_norm=2.0, random_state=0)
NAMES = np.array(["ham", "spam"])
OBSERVED = TWO.flip(TRUE, random_state=0)
Y = NAMES[OBSERVED]
MISSING = np.random.default_rng(7).random(N) < 0.3
ROWS = np.flatnonzero(~MISSING)
GAPS = np.where(MISSING, None, Y)
CHECKED = np.where(np.arange(N) % 6 == 0, NAMES[TRUE], None)
GROUPS = np.arange(N) // 2

ignore_assumptions = pytest.mark.filterwarnings("ignore::unflip.estimation.AssumedNoiseWarning")


def part_of(options):
    """Return options for the labelled rows alone."""
    return {
        name: value[ROWS] if isinstance(value, np.ndarray) else value
        for name, value in options.items()
    }


class TestSplit:
    @pytest.mark.parametrize(
        ("labels", "filled"),
        [
            (["a", None, "b"], ["a", "a", "b"]),
            (["a", float("nan"), "b"], ["a", "a", "b"]),
            (np.array(["a", "", "b"]), ["a", "a", "b"]),
            ([1, None, 0], [1, 1, 0]),
            (np.array([True, None, False], dtype=object), [True, True, False]),
            (np.array([0.0, np.nan, 1.0]), [0.0, 0.0, 1.0]),
            (
                np.array(["2020-01-01", "NaT", "2021-01-01"], dtype="M8[D]"),
                np.array(["2020-01-01", "2020-01-01", "2021-01-01"], dtype="M8[D]"),
            ),
        ],
    )
    def test_labels_keep_their_type(self, labels, filled):
        found, missing = split_missing(labels)
        np.testing.assert_array_equal(found, filled)
        assert found.dtype.kind in (np.array(filled).dtype.kind, "O" * isinstance(filled[0], str))
        assert missing.tolist() == [False, True, False]

    @pytest.mark.parametrize("dtype", ["Int64", "boolean", "string", "category", "float"])
    def test_pandas(self, dtype):
        pandas = pytest.importorskip("pandas")
        labels = pandas.Series([1, pandas.NA, 0] if dtype != "float" else [1, None, 0], dtype=dtype)
        found, missing = split_missing(labels)
        assert missing.tolist() == [False, True, False]
        assert found.tolist() == [labels[0], labels[0], labels[2]]

    @pytest.mark.parametrize(
        "labels",
        [
            None,
            "ab",
            1,
            [],
            [["a"], [None]],
            np.array([0, 1]),
            ["a", "b"],
            np.ma.masked_less([1], 2),
        ],
        ids=str,
    )
    def test_others_are_unchanged(self, labels):
        found, missing = split_missing(labels)
        assert found is labels
        assert missing is None


class TestClassifier:
    @pytest.mark.parametrize("options", [{}, {"noise": TWO}, {"noise": TWO, "targets": "naive"}])
    @pytest.mark.parametrize("container", [np.asarray, csr_array, list])
    @ignore_assumptions
    def test_the_fit_is_that_of_the_labelled_rows(self, options, container):
        fitted = LPClassifier(**options).fit(container(X), GAPS)
        alone = LPClassifier(**options).fit(container(X[ROWS]), Y[ROWS])
        np.testing.assert_array_equal(fitted.coef_, alone.coef_)
        np.testing.assert_array_equal(fitted.label_posterior_[ROWS], alone.label_posterior_)
        np.testing.assert_allclose(
            fitted.label_posterior_[MISSING], alone.predict_proba(X[MISSING]), rtol=1e-9
        )
        assert fitted.expected_accuracy_ == alone.expected_accuracy_
        assert fitted.classes_.tolist() == ["ham", "spam"]

    def test_float_labels_keep_their_classes(self):
        labels = np.where(MISSING, np.nan, TRUE)
        fitted = LPClassifier(None).fit(X, labels)
        np.testing.assert_array_equal(fitted.classes_, [0.0, 1.0])
        assert (fitted.label_posterior_[MISSING].argmax(axis=1) == TRUE[MISSING]).mean() > 0.95

    def test_sample_weights_and_trusted_labels_stay_aligned(self):
        weights = np.random.default_rng(1).random(N)
        source = TrustedSubset(CHECKED)
        fitted = LPClassifier(source).fit(X, GAPS, weights)
        alone = LPClassifier(TrustedSubset(CHECKED[ROWS])).fit(X[ROWS], Y[ROWS], weights[ROWS])
        np.testing.assert_array_equal(fitted.coef_, alone.coef_)

    def test_partial_fit(self):
        options = {"noise": TWO, "targets": "optimized"}
        fitted = LPClassifier(**options).partial_fit(X, GAPS, classes=NAMES)
        alone = LPClassifier(**options).partial_fit(X[ROWS], Y[ROWS], classes=NAMES)
        np.testing.assert_allclose(fitted.coef_, alone.coef_, rtol=1e-10)
        with pytest.raises(ValueError, match="sample_weight of shape"):
            LPClassifier(**options).partial_fit(X, GAPS, NAMES, np.ones(3))

    def test_dask(self):
        array = pytest.importorskip("dask.array")
        labels = np.where(MISSING, np.nan, OBSERVED)
        rows = array.from_array(X, chunks=(100, 20))
        fitted = LPClassifier(TWO).fit(rows, array.from_array(labels, chunks=100))
        alone = LPClassifier(TWO).fit(X[ROWS], labels[ROWS])
        np.testing.assert_allclose(fitted.coef_, alone.coef_, rtol=1e-6)
        assert np.asarray(fitted.label_posterior_).shape == (N, 2)

    @pytest.mark.parametrize("y_device", ["CPU_DEVICE", "device1"])
    def test_arrays_of_another_namespace(self, y_device, monkeypatch):
        strict = pytest.importorskip("array_api_strict")
        monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # scikit-learn asks for it
        labels = np.where(MISSING, np.nan, OBSERVED)
        rows = strict.asarray(X, device=strict.Device("device1"))
        with config_context(array_api_dispatch=True):
            y = strict.asarray(labels, device=strict.Device(y_device))
            fitted = LPClassifier(TWO).fit(rows, y)
            found = audit(rows, y, noise=TWO)
        alone = LPClassifier(TWO).fit(X[ROWS], labels[ROWS])
        np.testing.assert_allclose(as_numpy(fitted.coef_), alone.coef_, rtol=1e-9)
        assert fitted.classes_.device == strict.Device("device1")
        np.testing.assert_array_equal(np.sort(found.unlabelled.row), np.flatnonzero(MISSING))

    def test_labels_of_zero_weight_rows_are_not_enough(self):
        labels = np.where(np.arange(N) < 3, Y, None)
        with pytest.raises(ValueError, match="sample_weight is 0 for every labelled row"):
            LPClassifier(TWO).fit(X, labels, (np.arange(N) > 5).astype(float))


class TestAnyClassifier:
    @pytest.mark.parametrize("features", ["auto", "not numeric"])
    @ignore_assumptions
    def test_unlabelled_rows_get_a_calibrated_probability(self, features):
        samples = X if features == "auto" else [{"x": row} for row in X]
        forest = make_forest(features)
        fitted = NoisyLabelClassifier(forest, TWO).fit(samples, GAPS)
        posterior = fitted.label_posterior_[MISSING]
        right = posterior.argmax(axis=1) == TRUE[MISSING]
        assert right.mean() > 0.85
        assert right.mean() == pytest.approx(posterior.max(axis=1).mean(), abs=0.08)
        kept = samples[ROWS] if features == "auto" else [samples[row] for row in ROWS]
        alone = NoisyLabelClassifier(forest, TWO).fit(kept, Y[ROWS])
        np.testing.assert_allclose(fitted.label_posterior_[ROWS], alone.label_posterior_, atol=1e-9)

    def test_given_probabilities(self):
        probabilities = cross_val_predict(LogisticRegression(), X, Y, method="predict_proba")
        fitted = NoisyLabelClassifier(RidgeClassifier(), TWO, cv=None)
        fitted.fit(X, GAPS, pred_probs=probabilities)
        posterior = fitted.label_posterior_[MISSING]
        assert (posterior.argmax(axis=1) == TRUE[MISSING]).mean() > 0.85

    def test_log_odds_of_labelled_rows_follow_from_the_same_model(self):
        fitted = NoisyLabelClassifier(LogisticRegression(), TWO).fit(X, GAPS)
        assert np.isfinite(fitted.log_odds_).all()
        np.testing.assert_allclose(fitted.log_odds_[:, 0], 0, atol=1e-12)


def make_forest(features):
    forest = RandomForestClassifier(30, random_state=0)
    if features == "auto":
        return forest
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    return make_pipeline(FunctionTransformer(rows_of), forest)


def rows_of(samples):
    return np.array([sample["x"] for sample in samples])


class TestAudit:
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"noise": TWO},
            {"groups": GROUPS},
            {"trusted": CHECKED},
            {"trusted": CHECKED, "noise": TWO},
            {"estimator": LogisticRegression()},
        ],
        ids=lambda options: " ".join(options) or "default",
    )
    @ignore_assumptions
    def test_findings_are_those_of_the_labelled_rows(self, options):
        found = audit(X, GAPS, **options)
        alone = audit(X[ROWS], Y[ROWS], **part_of(options))
        check_same(found, alone)

    @pytest.mark.parametrize(
        "options", [{}, {"noise": TWO}, {"trusted": CHECKED}, {"trusted": CHECKED, "noise": TWO}]
    )
    @ignore_assumptions
    def test_findings_of_scores(self, options):
        probabilities = cross_val_predict(LogisticRegression(), X, Y, method="predict_proba")
        found = audit_scores(probabilities, GAPS, **options)
        alone = audit_scores(probabilities[ROWS], Y[ROWS], **part_of(options))
        check_same(found, alone)

    @pytest.mark.parametrize("seed", range(3))
    def test_proposed_labels_are_as_good_as_they_claim(self, seed):
        rows, true = make_mixture(1500, 40, mean_norm=1.2, random_state=seed)
        missing = np.arange(1500) % 3 == 0
        observed = np.where(missing, np.nan, TWO.flip(true, random_state=seed))
        proposed = audit(rows, observed, noise=TWO).unlabelled
        right = proposed.proposed == true[proposed.row]
        assert right.mean() == pytest.approx(proposed.probability.mean(), abs=0.06)
        assert (np.diff(proposed.probability) <= 0).all()

    def test_several_classes_calibrated_by_checked_rows(self):
        rng = np.random.default_rng(0)
        true = rng.integers(0, 3, 900)
        rows = rng.normal(size=(900, 10)) + 3 * np.eye(10)[true]
        missing = rng.random(900) < 0.2
        observed = np.where(missing, np.nan, THREE.flip(true, random_state=0))
        trusted = np.where(np.arange(900) % 10 == 0, true, np.nan)
        found = audit(rows, observed, trusted=trusted)
        proposed = found.unlabelled
        is_open = np.isnan(trusted[proposed.row])
        right = (proposed.proposed == true[proposed.row])[is_open]
        assert right.mean() == pytest.approx(proposed.probability[is_open].mean(), abs=0.06)
        assert (proposed.probability[~is_open] == 1).all()
        assert (proposed.proposed == true[proposed.row])[~is_open].all()

    def test_only_unlabelled_rows_are_checked(self):
        trusted = np.where(MISSING, NAMES[TRUE], None)
        found = audit(X, GAPS, noise=TWO, trusted=trusted)
        assert not found.is_calibrated
        assert (found.unlabelled.probability == 1).all()
        np.testing.assert_array_equal(found.unlabelled.proposed, NAMES[TRUE][found.unlabelled.row])

    def test_inclusion_of_unlabelled_rows_is_not_needed(self):
        inclusion = np.where(MISSING, 0.0, 0.2)
        found = audit(X, GAPS, trusted=CHECKED, inclusion=inclusion)
        alone = audit(X[ROWS], Y[ROWS], trusted=CHECKED[ROWS], inclusion=inclusion[ROWS])
        np.testing.assert_array_equal(found.label_posterior[ROWS], alone.label_posterior)
        plan = found.plan_checks(20)
        assert (plan.inclusion[MISSING] == 0).all()
        np.testing.assert_array_equal(plan.inclusion[ROWS], alone.plan_checks(20).inclusion)

    def test_the_page_and_the_displays(self, tmp_path):
        found = audit(X, GAPS, noise=TWO)
        pytest.importorskip("jinja2")
        found.to_html(tmp_path / "audit.html", texts=[f"text {row}" for row in range(N)])
        page = (tmp_path / "audit.html").read_text()
        first = int(found.suspects.row[0])
        assert f'"text {first}"' in page
        pytest.importorskip("matplotlib")
        from unflip.plotting import ScoreDistributionDisplay, SuspectsDisplay

        display = SuspectsDisplay.from_audit(found)
        assert len(display.probability_) == len(ROWS)
        assert len(ScoreDistributionDisplay.from_audit(found).codes) == len(ROWS)

    def test_as_dataframe_columns(self):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(X, index=np.arange(N)[::-1] + 7)
        labels = pandas.Series(GAPS, index=frame.index)
        found = audit(frame, labels.astype("category"), noise=TWO)
        np.testing.assert_array_equal(
            found.label_posterior, audit(X, GAPS, noise=TWO).label_posterior
        )


def check_same(found, alone):
    """Check that findings equal those of the labelled rows, apart from row numbers."""
    np.testing.assert_allclose(found.label_posterior[ROWS], alone.label_posterior, atol=1e-9)
    np.testing.assert_array_equal(found.suspects.row, ROWS[alone.suspects.row])
    np.testing.assert_array_equal(found.suspects.proposed, alone.suspects.proposed)
    np.testing.assert_array_equal(found.check_next(20), ROWS[alone.check_next(20)])
    np.testing.assert_array_equal(np.sort(found.unlabelled.row), np.flatnonzero(MISSING))
    proposed = found.unlabelled
    is_right = proposed.proposed == NAMES[TRUE][proposed.row]
    assert is_right.mean() > 0.85
    assert f"{len(proposed)} rows have no label." in str(found)
    assert without_rows(found) == without_rows(alone)
    assert found.n_labels == alone.n_labels == len(ROWS)
    assert found.n_unchecked == alone.n_unchecked
    np.testing.assert_array_equal(found.plan["effort"], alone.plan["effort"])
    np.testing.assert_allclose(
        np.asarray(found.plan["accuracy"]), np.asarray(alone.plan["accuracy"]), atol=1e-9
    )
    for name in ("n_suspects", "expected_wrong", "expected_accuracy", "overlap"):
        np.testing.assert_allclose(
            np.asarray(found.sensitivity[name]), np.asarray(alone.sensitivity[name]), atol=1e-9
        )


def without_rows(audited):
    """Return the summary without lines about single rows, and about unlabelled rows."""
    return [
        line
        for line in str(audited).splitlines()
        if not line.startswith(("  row", "Rows without a label"))
    ]


def test_votes_with_empty_strings():
    votes = Votes.from_columns([["a", ""], ["", "b"], ["a", "b"]])
    assert votes.n_votes.tolist() == [1, 1, 2]


def test_trusted_labels_may_be_empty_strings():
    with_none = audit(X, Y, trusted=CHECKED)
    with_empty = audit(X, Y, trusted=np.where(CHECKED == None, "", CHECKED))  # noqa: E711
    np.testing.assert_array_equal(with_none.label_posterior, with_empty.label_posterior)
