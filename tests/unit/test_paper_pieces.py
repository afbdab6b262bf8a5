"""Pieces of the paper, computed with tiny settings."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

pytest.importorskip("pandas", reason="needs the extra unflip[cli]")
pytest.importorskip("matplotlib", reason="needs the extra unflip[cli]")

import pandas as pd

from support.amazon import needs_data, needs_published
from support.multiclass import paper_setting
from support.paper import Table1
from unflip import LPClassifier, targets, theory
from unflip.cli.paper import (
    cross_entropy,
    fig1,
    fig2,
    fig3,
    fig4,
    fig5,
    fig6,
    fig7,
    fig8,
    fig9,
    reviews,
    table1,
)
from unflip.cli.paper.comparison import comparison_rows, largest_deviations, worst_sentence
from unflip.cli.paper.piece import Settings, only
from unflip.cli.paper.registry import PIECES, chosen
from unflip.cli.paper.variants import accuracy_and_risk
from unflip.datasets import make_mixture


def test_registry_has_all_pieces_in_order_of_paper():
    assert list(PIECES) == [
        "table1",
        "fig1",
        "fig2",
        "fig3",
        "fig4",
        "fig5",
        "fig6",
        "fig7",
        "fig8",
        "fig9",
    ]
    assert [piece.name for piece in chosen(["fig3", "table1"])] == ["table1", "fig3"]
    assert chosen(["all"]) == list(PIECES.values())
    with pytest.raises(
        ValueError, match=r"fig77 is not a piece .* choose from table1, fig1, .* or all"
    ):
        chosen(["fig1", "fig77"])


@pytest.mark.parametrize("piece", PIECES.values(), ids=PIECES)
def test_task_names_are_unique_and_quick_has_fewer_draws(piece):
    for settings in (piece.quick, piece.full):
        names = [task.name for task in piece.tasks(settings)]
        assert len(set(names)) == len(names)
    assert piece.quick.draws <= piece.full.draws


def test_accuracy_and_risk_match_new_rows():
    rng = np.random.default_rng(0)
    coef = rng.normal(size=(6, 2)) + 0.5
    X, y = make_mixture(200_000, 6, mean_norm=1.5, random_state=1)
    scores, labels = X @ coef, 2 * y[:, None] - 1
    accuracy, risk = accuracy_and_risk(coef, 1.5)
    np.testing.assert_allclose(accuracy, (scores * labels > 0).mean(axis=0), atol=0.005)
    np.testing.assert_allclose(risk, ((scores - labels) ** 2).mean(axis=0), rtol=0.02)


def test_largest_deviations_per_curve():
    draws = np.array([[1.0, 2.0], [3.0, 2.2]])
    first = comparison_rows({"curve": "a"}, draws, np.array([2.5, 1.8]), np.array([10.0, 20.0]))
    second = comparison_rows({"curve": "b"}, draws, np.array([2.0, 2.1]), np.array([10.0, 20.0]))
    result = largest_deviations(pd.concat([first, second], ignore_index=True), ["curve"])
    assert result.curve.tolist() == ["a", "b"]
    np.testing.assert_allclose(result["largest, in standard errors"], [3.0, 0.0], atol=1e-9)
    np.testing.assert_allclose(result["at"][0], 20.0)
    np.testing.assert_allclose(result["largest difference"][0], 0.5)
    assert "3.0 standard errors (0.3, curve = a, at 20)" in worst_sentence(result)


def test_fig1_scores_follow_prediction():
    tables = fig1.simulate(50, seed=0)
    classes = tables["classes"]
    np.testing.assert_allclose(
        classes["mean"], classes.predicted_mean, atol=0.1 * classes.predicted_std.max()
    )
    # ‖w‖² of 50 noisy weights varies by 20%.
    np.testing.assert_allclose(classes["std"], classes.predicted_std, rtol=0.2)
    np.testing.assert_allclose(classes.accuracy, classes.predicted_accuracy, atol=0.02)
    bins = only(tables["histograms"], variant="naive", true=1)
    assert (bins.density * (bins.right - bins.left)).sum() == pytest.approx(1)


def test_fig2_points_match_theory_and_oracle_is_constant():
    tables = fig2.PIECE.compute(Settings(draws=10))
    points = tables["points"]
    assert len(points) == 3 * 5 * 2 * 25
    oracle = only(points, variant="oracle", metric="accuracy", p=100)
    assert np.ptp(oracle.simulated) < 1e-12
    early = points[points.x < 0.4]
    assert (early.simulated - early.predicted).abs().max() < 0.06
    naive = only(points, variant="naive", metric="risk", p=10)
    noise = fig2.noise_at(fig2.SETUP.eps_pos[3])
    mixture = theory.Mixture(mean_norm=2.0, aspect=0.1, noise=noise)
    assert naive.predicted.iloc[3] == pytest.approx(
        float(theory.predict(mixture, targets="naive", reg=10.0).risk)
    )
    assert any("standard errors" in note for note in fig2.notes(tables))


def test_fig3_marks_best_worst_and_unbiased():
    tables = fig3.simulate(100, n_draws=3, seed=0)
    marks = tables["marks"].set_index("mark")
    assert marks.rho_pos["best"] == pytest.approx(1.57, abs=0.005)
    assert marks.accuracy["best"] >= tables["curve"].accuracy.max()
    assert marks.accuracy["worst"] == pytest.approx(0.5)
    mixture = theory.Mixture(mean_norm=2.0, aspect=0.1, noise=fig3.SETUP.noise)
    unbiased = theory.predict(
        mixture, targets=targets.unbiased(fig3.SETUP.noise), reg=fig3.SETUP.reg
    )
    assert marks.accuracy["unbiased"] == pytest.approx(float(unbiased.accuracy))
    beyond = tables["points"][tables["points"].x > 0.5]
    np.testing.assert_allclose(beyond.simulated, beyond.predicted, atol=0.02)


def test_fig5_points_match_theory():
    tables = fig5.PIECE.compute(Settings(draws=8))
    points = tables["points"]
    assert len(points) == 2 * 3 * 4 * 20
    assert (points.simulated - points.predicted).abs().max() < 0.05
    assert len(fig5.summary(tables)) == 24


def test_fig6_estimates_strong_signals_well():
    estimates = fig6.estimate(10.0, draw=0, seed=0)["estimates"]
    error = (estimates.estimated_pos - estimates.eps_pos).abs().groupby(estimates.method).mean()
    assert error[fig6.OURS] < 0.03
    assert error[fig6.PAPERS] < 0.1


def balanced_labels():
    return np.repeat([0, 1], 1000)


@pytest.mark.parametrize("which", range(3))
def test_streams_of_several_rates_draw_the_same_rows(which):
    """One stream for all rates equals the published stream at each rate."""
    y = balanced_labels()
    stream = reviews.Stream(y, eps_pos=table1.SETUP.eps_pos, eps_neg=0.4, seed=123)
    alone = Table1(y, eps_pos=table1.SETUP.eps_pos[which], eps_neg=0.4, seed=123)
    for _ in range(3):
        sample, (rows, observed, unseen) = stream.draw(), alone.draw()
        np.testing.assert_array_equal(sample.rows, rows)
        np.testing.assert_array_equal(y[rows] ^ sample.flips[which], observed)
        np.testing.assert_array_equal(sample.unseen, unseen)


def test_one_gram_matrix_serves_both_scalers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 12)) * rng.uniform(0.5, 2, 12) + rng.normal(size=12)
    X[:, 3] = rng.uniform(size=2000) < 0.02
    sample = reviews.Stream(balanced_labels(), eps_pos=(0.3,), eps_neg=0.4, seed=0).draw()
    X[np.unique(sample.rows), 5] = 0.7  # does not vary among the rows drawn
    columns = rng.normal(size=(reviews.N_ROWS, 3))
    fitted = table1.Fitted.of(X, sample.rows)
    alpha = reviews.N_ROWS * reviews.REG

    ridge = Ridge(alpha=alpha, fit_intercept=False).fit(X[sample.rows], columns)
    np.testing.assert_allclose(
        fitted.coef(sample.rows, columns), ridge.coef_.T, rtol=1e-8, atol=1e-12
    )

    scaler = StandardScaler().fit(X[sample.rows])
    ridge = Ridge(alpha=alpha, fit_intercept=False).fit(scaler.transform(X[sample.rows]), columns)
    coef, constant = fitted.coef_on_own_scale(sample.rows, columns)
    expected = ridge.predict(scaler.transform(X[sample.unseen]))
    np.testing.assert_allclose(X[sample.unseen] @ coef + constant, expected, rtol=1e-7, atol=1e-10)


@needs_data
def test_table1_cells_and_columns_from_a_few_draws():
    books = [
        table1.replay("books", 1, 2),
        table1.fresh_draws("books", 0, 3),
        table1.refined("books", 0, 0),
    ]
    tables = {name: table for part in books for name, table in part.items()}
    fresh = tables["fresh"]
    coincide = [table1.SCALED.format(name) for name in ("naive", "unbiased", "optimized")]
    wide = fresh.pivot_table(index=["eps_pos", "draw"], columns="method", values="accuracy")
    assert np.ptp(wide[coincide].to_numpy(), axis=1).max() == 0
    assert wide[table1.WITHOUT_LABELS].between(0.7, 0.85).all()
    assert set(tables["others"].method) == {table1.REFINED, table1.BALANCED, table1.KNOWN_ORIGIN}
    assert only(tables["replay"], method="oracle").groupby("draw").accuracy.nunique().max() == 1


@needs_data
def test_fig4_uses_the_papers_estimate_of_the_mean():
    tables = fig4.simulate(2, 1)
    assert tables["mean"].mean_norm[0] == pytest.approx(1.195, abs=5e-4)
    general = only(fig4.summary(tables), theory="general covariance")
    np.testing.assert_allclose(general["predicted |mean|"], general["|mean|"], rtol=0.15)


def test_cross_entropy_descent_matches_published_code():
    """Descent along the printed gradient times (1 − ρ₊ − ρ₋)², with the sign of 1 − ρ₊ − ρ₋."""
    rng = np.random.default_rng(0)
    X, true = rng.normal(size=(40, 3)), rng.integers(2, size=40)
    observed = fig7.SETUP.noise.flip(true, rng)
    result = cross_entropy.descend(X, true, observed, fig7.SETUP.noise, n_steps=4)
    for j in (0, 20, 36, 37, 49, 50, 51, 52):
        (rho_pos, rho_neg), labels = (
            cross_entropy.rho_pairs(fig7.SETUP.noise)[j],
            true if j == 52 else observed,
        )
        remainder, coef = 1 - rho_pos - rho_neg, np.zeros(3)
        for _ in range(4):
            share = expit(X @ coef)
            positive = (1 - rho_neg) * (share - 1) - rho_pos * share
            negative = (1 - rho_pos) * share - rho_neg * (share - 1)
            coef -= 0.1 * remainder * X.T @ np.where(labels == 1, positive, negative) / 40
        np.testing.assert_allclose(result[:, j], np.sign(remainder) * coef, rtol=1e-10, atol=1e-14)


def test_cross_entropy_theory_uses_matched_reg():
    penalties = cross_entropy.matched_regs(fig7.SETUP.noise, n_steps=50)
    np.testing.assert_allclose(
        penalties[[50, 51]], [1 / (2 * 0.1 * 50), 1 / (2 * 0.1 * 0.3**2 * 50)]
    )
    mixture = theory.Mixture(mean_norm=2.0, aspect=1.0, noise=fig7.SETUP.noise)
    naive = theory.predict(mixture, targets="naive", reg=0.1, loss="logistic")
    assert only(fig7.predicted()["theory"], curve="naive").accuracy.iloc[0] == pytest.approx(
        float(naive.accuracy)
    )


def test_cross_entropy_errors_pool_published_and_fresh_draws():
    def rows(values, **labels):
        made = [
            cross_entropy.rows_of(np.full(53, v), fig7.SETUP.noise, seed=i, **labels)
            for i, v in enumerate(values)
        ]
        return pd.concat(made, ignore_index=True)

    draws = pd.concat([rows([0.3, 0.2], stream="fresh"), rows([0.4, 0.4, 0.4], stream="published")])
    tables = {
        "draws": draws,
        "published": rows([0.6, 0.6, 0.6]),
        "theory": rows([0.25]).drop(columns="seed"),
    }
    points = cross_entropy.points(tables)
    np.testing.assert_allclose(points.ours, 0.75)  # folded
    np.testing.assert_allclose(points.upright, 0.25)
    pooled = np.sqrt(0.005 / 3)  # variances .005 (one degree of freedom) and 0 (two)
    np.testing.assert_allclose(points.deviation, 0.15 / (pooled * np.sqrt(1 / 2 + 1 / 3)))
    assert cross_entropy.summary(tables)["replayed: largest difference"].tolist() == [0.0] * 4
    assert "all 159 published accuracies exactly" in cross_entropy.replay_sentence(tables)


@needs_published
@pytest.mark.parametrize(("piece", "seed"), [(fig7, 123), (fig8, 404)], ids=["fig7", "fig8"])
def test_published_stream_reproduces_published_accuracies(piece, seed):
    replayed = piece.one_draw("published", seed)["draws"]
    published = only(piece.published()["published"], seed=seed)
    assert replayed.curve.tolist() == published.curve.tolist()
    np.testing.assert_allclose(
        cross_entropy.folded(replayed.accuracy), published.accuracy, rtol=0, atol=1e-12
    )


@needs_published
def test_fig7_from_a_few_draws():
    tables = fig7.PIECE.compute(Settings(draws=3, seed=0))
    points = cross_entropy.points(tables)
    assert len(points) == 53
    assert (points.upright - points.predicted).abs().max() < 0.06
    assert any("all 159 published accuracies exactly" in note for note in fig7.notes(tables))


@pytest.mark.parametrize("k", [3, 4])
def test_fig9_has_the_papers_settings(k):
    means, noise = paper_setting(k)
    np.testing.assert_array_equal(fig9.class_means(k), means)
    np.testing.assert_allclose(fig9.SETUP.noise[k].transition, noise.transition)
    np.testing.assert_allclose(fig9.SETUP.noise[k].priors, noise.priors)


def test_fig9_pair_accuracy_matches_fit_with_its_targets():
    rng = np.random.default_rng(0)
    X, _, observed, X_test, y_test = fig9.rows_and_labels(3, rng)
    pair = rng.uniform(-2, 2, size=(2, 3))
    clf = LPClassifier(
        fig9.SETUP.noise[3],
        targets=targets.multi_lpc(*pair),
        readout="plain",
        reg=fig9.SETUP.reg,
        fit_intercept=False,
    )
    scores = fig9.one_hot_scores(X, observed, X_test, 3)
    assert fig9.pair_accuracy(scores, y_test, pair) == clf.fit(X, observed).score(X_test, y_test)


def test_fig9_curve_matches_theory_and_our_lines_are_above(monkeypatch):
    smaller = fig9.SETUP._replace(n_pairs=300, noise={3: fig9.SETUP.noise[3]})
    monkeypatch.setattr(fig9, "SETUP", smaller)
    fig9.extreme_pairs.cache_clear()
    tables = fig9.PIECE.compute(Settings(draws=2))
    fig9.extreme_pairs.cache_clear()
    curve = fig9.points(tables)
    assert (curve["mean"] - curve.predicted).abs().max() < 0.05
    accuracy = tables["lines"].groupby("line").accuracy.mean()
    limits = tables["limits"].set_index("line").accuracy
    assert curve["mean"].iloc[0] < accuracy["naive"] < curve["mean"].iloc[-1] < accuracy["oracle"]
    assert (
        accuracy["oracle"]
        < accuracy[fig9.CALIBRATED]
        < accuracy[fig9.REFINED]
        < limits[fig9.BAYES] + 0.01
    )
    assert limits[fig9.THEORY_BEST] > curve.predicted.max() - 1e-6
    summary = fig9.summary(tables).set_index("accuracy")["k = 3"]
    assert summary["Bayes"] == "0.795"
    assert summary[fig9.BEST].endswith(f"(theory {curve.predicted.iloc[-1]:.3f})")
    assert any("the paper's test set" in note for note in fig9.notes(tables))
