"""Summary, table and checks of part ``real``."""

import numpy as np

from verdicts import standard_error, verdict

TEXTS = ("set", "method", "source")


def summarise(draws):
    """Average the draws of one set by method; accuracies without unusable noise rates."""
    plain = np.array([row["accuracy"] for row in draws if row["method"] == "none"])
    summaries = []
    for method in dict.fromkeys(row["method"] for row in draws):
        mine = [row for row in draws if row["method"] == method]
        errors = np.array(
            [[row[e] - row[f"true_{e}"] for e in ("eps_pos", "eps_neg")] for row in mine]
        )
        columns = {key: np.array([row[key] for row in mine]) for key in mine[0] if key not in TEXTS}
        used = ~np.isnan(columns["accuracy"])
        gains = (columns["accuracy"] - plain)[used]
        summaries.append(
            {
                "set": mine[0]["set"],
                "method": method,
                "draws": len(mine),
                "refused": int((~used).sum()),
                **{
                    key: mean(column[used] if key == "accuracy" else column)
                    for key, column in columns.items()
                },
                "mae": float(np.abs(errors).mean()),
                "gain": mean(gains),
                "gain_error": standard_error(gains),
                "sources": "/".join(sorted({row["source"] for row in mine} - {""})),
            }
        )
    return summaries


def mean(values):
    """Return the mean; NaN for no values."""
    return float(np.mean(values)) if len(values) else np.nan


def print_real(rows):
    """Print a block of lines for each set."""
    print(
        "  method       ε₊    ε₋    MAE of rates  cover (width)   accuracy   gain over noise=None"
    )
    for name in dict.fromkeys(row["set"] for row in rows):
        block = [row for row in rows if row["set"] == name]
        print(
            f"  {name}: realised noise rates {block[0]['true_eps_pos']:.3f}, "
            f"{block[0]['true_eps_neg']:.3f}"
        )
        for row in block:
            cover = (
                ""
                if np.isnan(row["covered"])
                else f"{100 * row['covered']:5.1f}% ({row['width']:.2f})"
            )
            print(
                f"    {row['method']:10s} {row['eps_pos']:.3f} {row['eps_neg']:.3f} "
                f"{row['mae']:.3f}         {cover:14s}  {row['accuracy']:5.2f}      "
                f"{row['gain']:+5.2f} ± {row['gain_error']:.2f}  " + row["sources"] + unusable(row)
            )


def unusable(row):
    """Return in how many draws the noise rates could not be used, or an empty text."""
    if not row["refused"]:
        return ""
    return f"unusable in {row['refused']} of {row['draws']} draws"


def judge_real(rows):
    """Check the default against its target, and list the failures of each method."""
    losses = {row["set"]: row["gain"] for row in rows if row["method"] == "default"}
    worst = min(losses, key=losses.get)
    verdict(
        losses[worst] >= -1,
        "default at most 1 point below noise=None on every set",
        f"{losses[worst]:+.2f} on {worst}",
    )
    for method in dict.fromkeys(row["method"] for row in rows):
        mine = [row for row in rows if row["method"] == method]
        print(
            f"  {method:10s} mean over sets: MAE of rates "
            f"{np.mean([row['mae'] for row in mine]):.3f}, gain "
            f"{np.nanmean([row['gain'] for row in mine]):+.2f}; {failures(mine) or 'no failure'}"
        )


def failures(rows):
    """List the sets on which rates, intervals or accuracy of a method fail."""
    kinds = {
        "error of the rates above 0.1": [row["set"] for row in rows if row["mae"] > 0.1],
        "coverage below 90%": [row["set"] for row in rows if row["covered"] < 0.9],
        "rates that sum to more than 1 in some draws": [
            row["set"] for row in rows if row["refused"]
        ],
        "accuracy more than a point below noise=None": [
            row["set"] for row in rows if row["gain"] < -1
        ],
    }
    return "; ".join(f"{kind}: {', '.join(sets)}" for kind, sets in kinds.items() if sets)
