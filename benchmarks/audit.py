"""Quality of audits: wrong labels among the suspects, gains of corrections, test of dependence.

Reviews and votes need their data sets (UNFLIP_DATA). Pairs of noise rates are (ε₊, ε₋). Shares are
means over draws, with standard errors.
"""

import warnings

import numpy as np
import pandas as pd
from sklearn.model_selection import cross_val_predict

from draws import realised, review_draws, trusted_labels
from page_tables import short, show
from parts import announced, has_data, parsed
from peers import logistic_at
from unflip import LPClassifier, NoiseModel, audit, audit_scores
from unflip.datasets import AMAZON_DOMAINS, load_sentiment_votes, make_mixture
from unflip.estimation.given_rates import GivenRates
from verdicts import standard_error

PAGE = "audit.md"
COMMAND = "python benchmarks/audit.py"
DOMAINS = ("kitchen", "books")
RATES = ((0.4, 0.3), (0.3, 0.1))
SETTINGS = [
    f"{domain} ({short(pos, digits=1)}, {short(neg, digits=1)})"
    for domain in DOMAINS
    for pos, neg in RATES
]
GIVEN = "rates given"
TRUSTED = "100 trusted rows"
ESTIMATED = "rates estimated"
SCORES = {C: f"`audit_scores`, logistic regression, C = {C:g}, rates given" for C in (0.001, 1.0)}
METHODS = (GIVEN, TRUSTED, ESTIMATED, *SCORES.values())
N_TRAIN = 1600
N_TRUSTED = 100
FOLDS = 5
SURE = 9  # tenth of P(label wrong) that holds the most certain rows: .9 and above
CHECKED = (100, 400, 800)  # numbers of corrected labels of part gains
N_FIRST = 200  # suspects at the top of the list, of part votes
MIXTURES = ((400, 40), (400, 400), (1600, 160), (1600, 400))  # (n, p) of part dependence
LEVEL = 0.05  # significance level of the test of dependence
SHARE_NEAR = 0.2  # share of the rows whose labels are wrong, those nearest to the boundary


def run_suspects(n_draws, quick):
    """Amazon reviews, false discovery rate 0.1: number of suspects, share of wrong labels."""
    lines = []
    for setting, number, draw, rng in settings(n_draws, 31, quick):
        wrong = draw.observed != draw.y
        for method, report in audits(draw, rng):
            lines.append((setting, number, method, *suspects_of(report, wrong)))
    return pd.DataFrame(lines, columns=["set", "draw", "method", "share", "number"])


def settings(n_draws, seed, quick):
    """Yield the name of the setting, the number of the draw, the draw and its generator."""
    for domain, number, draw, rng in review_draws(
        DOMAINS[:1] if quick else DOMAINS, RATES, n_draws, seed, N_TRAIN
    ):
        rates = (draw.noise.eps_pos, draw.noise.eps_neg)
        yield SETTINGS[DOMAINS.index(domain) * len(RATES) + RATES.index(rates)], number, draw, rng


def audits(draw, rng):
    """Audit one draw with different inputs, and through probabilities of logistic regression."""
    yield GIVEN, audit(draw.X, draw.observed, noise=draw.noise)
    yield TRUSTED, audit(draw.X, draw.observed, trusted=trusted_labels(draw.y, N_TRUSTED, rng))
    yield ESTIMATED, audit(draw.X, draw.observed)
    for C, name in SCORES.items():
        probabilities = cross_val_predict(
            logistic_at(C), draw.X, draw.observed, cv=FOLDS, method="predict_proba"
        )
        yield name, audit_scores(probabilities, draw.observed, noise=draw.noise)


def suspects_of(report, wrong):
    """Return the share of wrong labels among the suspects (NaN without any), and their number."""
    rows = report.suspects.row[: report.n_suspects]
    return wrong[rows].mean() if len(rows) else np.nan, len(rows)


def tell_suspects(frame, write):
    """Print the table of suspects."""
    columns = [name for name in SETTINGS if name in set(frame["set"])]
    rows = [(means_of(frame), *columns)]
    rows += [
        (method, *(suspects_cell(of(frame, name, method)) for name in columns))
        for method in METHODS
    ]
    show(PAGE, f"{COMMAND} suspects", rows, write)


def suspects_cell(mine):
    """Format the share of wrong labels and the mean number of suspects."""
    return f"{cell(mine['share'])} ({mine['number'].mean():.0f} rows)"


def run_claims(n_draws, quick):
    """Amazon reviews, rates given: P(label wrong) against the share of wrong labels, by tenths."""
    lines = []
    for setting, number, draw, _ in settings(n_draws, 31, quick):
        report = audit(draw.X, draw.observed, noise=draw.noise)
        claimed = 1 - report.label_posterior[np.arange(len(draw.y)), draw.observed]
        tenth = np.minimum((10 * claimed).astype(int), 9)
        counts, claims, wrong = (
            np.bincount(tenth, weights, 10)
            for weights in (None, claimed, 1.0 * (draw.observed != draw.y))
        )
        lines += [
            (setting, number, *line) for line in zip(range(10), counts, claims, wrong, strict=True)
        ]
    return pd.DataFrame(lines, columns=["set", "draw", "tenth", "number", "claimed", "wrong"])


def tell_claims(frame, write):
    """Print stated probabilities and true shares, pooled over all draws."""
    columns = [name for name in SETTINGS if name in set(frame["set"])]
    sums = frame.groupby(["set", "tenth"])[["number", "claimed", "wrong"]].sum()
    shares = sums[["claimed", "wrong"]].div(sums["number"], axis=0)
    sure = [shares.loc[(name, SURE)] for name in columns]
    rest = [shares.loc[name].loc[: SURE - 1] for name in columns]
    apart = [(table["claimed"] - table["wrong"]).abs().max() for table in rest]
    rows = [
        (f"{frame['draw'].nunique()} draws together", *columns),
        (f"P(label wrong) ≥ .{SURE}: mean", *(short(line["claimed"]) for line in sure)),
        ("their share of wrong labels", *(short(line["wrong"]) for line in sure)),
        (f"largest difference of the two below .{SURE}, by tenths", *map(short, apart)),
    ]
    show(PAGE, f"{COMMAND} claims", rows, write)


def run_gains(n_draws, quick):
    """Amazon reviews, rates given: measured and predicted gain of correcting the worst labels."""
    lines = []
    for setting, number, draw, _ in settings(n_draws, 32, quick):
        report = audit(draw.X, draw.observed, noise=draw.noise)
        worst = np.argsort(
            report.label_posterior[np.arange(len(draw.y)), draw.observed], kind="stable"
        )
        before = LPClassifier(draw.noise).fit(draw.X, draw.observed).score(draw.X_test, draw.y_test)
        for m in (*CHECKED, len(draw.y)):
            y_trusted = np.full(len(draw.y), None)
            y_trusted[worst[:m]] = draw.y[worst[:m]]
            noise = GivenRates(draw.noise, y_trusted=y_trusted)
            after = LPClassifier(noise).fit(draw.X, draw.observed)
            gain = after.score(draw.X_test, draw.y_test) - before
            predicted = report.accuracy_after(m) - report.expected_accuracy
            lines.append((setting, number, m, gain, predicted))
    return pd.DataFrame(lines, columns=["set", "draw", "m", "measured", "predicted"])


def tell_gains(frame, write):
    """Print measured and predicted gains."""
    sizes = sorted(set(frame["m"]))
    rows = [(f"m ({means_of(frame)})", *map(str, sizes[:-1]), f"all {sizes[-1]}")]
    for name in [name for name in SETTINGS if name in set(frame["set"])]:
        mine = frame[frame["set"] == name].groupby("m")
        pairs = [
            (cell(of_size["measured"]), cell(of_size["predicted"], errors=False))
            for _, of_size in mine
        ]
        rows.append((name, *(" / ".join(pair) for pair in pairs)))
    show(PAGE, f"{COMMAND} gains", rows, write)


def run_votes(n_draws, quick):
    """Sentences with annotators' votes: suspects, and the test of dependence."""
    crowd = load_sentiment_votes()
    kinds = [("least accurate annotator", crowd.worst_votes())]
    kinds += [
        ("one random vote", crowd.random_votes(np.random.default_rng((33, i))))
        for i in range(n_draws)
    ]
    lines = []
    for kind, votes in kinds:
        wrong = votes != crowd.y_train
        for method, noise in ((GIVEN, realised(crowd.y_train, votes)), (ESTIMATED, "estimate")):
            report = audit(crowd.X_train, votes, noise=noise)
            first = wrong[report.suspects.row[:N_FIRST]].mean()
            lines.append(
                (kind, method, *suspects_of(report, wrong), first, report.dependence.p_value)
            )
    return pd.DataFrame(lines, columns=["set", "method", "share", "number", "first", "p_value"])


def tell_votes(frame, write):
    """Print suspects and p-values; the p-value of several draws is their median."""
    rows = [
        (
            "labels",
            "rates",
            "wrong among the suspects",
            f"among the first {N_FIRST} listed",
            "p-value, median",
        )
    ]
    for (kind, method), mine in frame.groupby(["set", "method"], sort=False):
        draws = f" ({len(mine)} draws)" if len(mine) > 1 else ""
        p_value = f"{mine['p_value'].median():.1g}"
        rows.append(
            (
                kind + draws,
                method.removeprefix("rates "),
                suspects_cell(mine),
                cell(mine["first"]),
                p_value,
            )
        )
    show(PAGE, f"{COMMAND} votes", rows, write)


def run_dependence(n_draws, quick):
    """Rejections by the test of dependence at level .05, rates given."""
    lines = []
    noise = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)
    for n, p in MIXTURES[:1] if quick else MIXTURES:
        for number in range(n_draws):
            rng = np.random.default_rng((34, n, p, number))
            X, y = make_mixture(n, p, mean_norm=2.0, random_state=rng)
            lines.append((f"mixtures, n = {n}, p = {p}", p_value(X, noise.flip(y, rng), noise)))
            near = flipped_near(X, y)
            lines.append(
                (f"noise near the boundary, n = {n}, p = {p}", p_value(X, near, realised(y, near)))
            )
    if not quick and has_data("dependence, reviews"):
        for _, _, draw, _ in review_draws(AMAZON_DOMAINS, RATES, max(1, n_draws // 10), 35):
            lines.append(("reviews", p_value(draw.X, draw.observed, draw.noise)))
    return pd.DataFrame(lines, columns=["set", "p_value"])


def flipped_near(X, y):
    """Return labels that are wrong for the fifth of the rows nearest to the boundary."""
    along = X @ (X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0))
    near = np.argsort(np.abs(along - np.median(along)))[: int(SHARE_NEAR * len(y))]
    observed = y.copy()
    observed[near] = 1 - y[near]
    return observed


def p_value(X, observed, noise):
    """Return the p-value of the test of dependence, with these noise rates."""
    return audit(X, observed, noise=noise).dependence.p_value


def tell_dependence(frame, write):
    """Print how often the test rejects."""
    rows = [("data", "draws", f"rejected at {short(LEVEL, digits=2)}")]
    for name, mine in frame.groupby("set", sort=False):
        rows.append((name, str(len(mine)), short((mine["p_value"] < LEVEL).mean(), digits=2)))
    show(PAGE, f"{COMMAND} dependence", rows, write)


def of(frame, setting, method):
    """Return the results of one setting and method."""
    return frame[(frame["set"] == setting) & (frame["method"] == method)]


def cell(values, errors=True):
    """Format the mean of a column and its standard error."""
    values = values.dropna()
    error = standard_error(values) if errors else np.nan
    return short(values.mean(), None if np.isnan(error) else error)


def means_of(frame):
    """Return the number of draws in words."""
    return f"mean of {frame['draw'].nunique()} draws"


# For each part: what runs it, what prints it, draws of a full run, draws of a quick run.
PARTS = {
    "suspects": (run_suspects, tell_suspects, 20, 2),
    "claims": (run_claims, tell_claims, 20, 2),
    "gains": (run_gains, tell_gains, 20, 1),
    "votes": (run_votes, tell_votes, 10, 1),
    "dependence": (run_dependence, tell_dependence, 60, 3),
}
WITHOUT_DATA = ("dependence",)


def main():
    """Run the parts, print their tables and store them."""
    options = parsed(
        __doc__,
        PARTS,
        ("--draws", "draws of each setting"),
        "one domain, few draws: a minute",
        stored=True,
        write="write the tables into docs/audit.md",
    )
    warnings.simplefilter("ignore", UserWarning)  # uncertain rates warn
    options.out.mkdir(parents=True, exist_ok=True)
    for part in options.parts or PARTS:
        if part not in WITHOUT_DATA and not options.stored and not has_data(part):
            continue
        run, tell, full, short_run = PARTS[part]
        path = options.out / f"audit_{part}.csv"
        with announced(part, run.__doc__):
            if not options.stored:
                n_draws = options.draws or (short_run if options.quick else full)
                run(n_draws, options.quick).to_csv(path, index=False)
            tell(pd.read_csv(path), options.write)


if __name__ == "__main__":
    main()
