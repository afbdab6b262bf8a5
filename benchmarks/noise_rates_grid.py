"""Part ``grid``: estimates of ε₊ with known ‖μ‖ and π, over values of ε₊, ‖μ‖ and γ."""

import itertools

import numpy as np

from draws import flipped_shares
from noise_rates_errors import coverage_verdict, covers, rms
from noise_rates_mixtures import EPS_POS, MEAN_NORMS, PI_NEG, draw_mixture, place
from unflip.estimation import CrossMoment, SecondMomentMatching
from verdicts import verdict

REGS = (0.1, 1.0, 10.0)


def run_grid(repeats, quick):
    """CrossMoment and SecondMomentMatching with known ‖μ‖ and π, and counting with true labels."""
    eps, norms = (EPS_POS[::3], MEAN_NORMS[::2]) if quick else (EPS_POS, MEAN_NORMS)
    rows = [
        grid_point(e, norm, reg, [(1, i, repeat) for repeat in range(repeats)])
        for i, (e, norm, reg) in enumerate(itertools.product(eps, norms, REGS))
    ]
    print_grid(rows, eps, norms)
    judge_grid(rows, repeats)
    return rows


def grid_point(eps_pos, mean_norm, reg, draws):
    """Compare three estimates of ε₊ over the draws, with ‖μ‖ and π known."""
    parameters = {"mean_norm": mean_norm, "pi_neg": PI_NEG, "reg": reg}
    errors = []
    covered = []
    no_root = 0
    for seed in draws:
        X, y, observed, noise = draw_mixture(eps_pos, mean_norm, seed)
        cross = CrossMoment(**parameters).fit(X, observed)
        matching = SecondMomentMatching(**parameters).fit(X, observed)
        counted = flipped_shares(y, observed)[1, 0]
        errors.append(np.array([cross.noise_.eps_pos, matching.noise_.eps_pos, counted]) - eps_pos)
        covered.append(covers(cross, noise.transition)[1, 0])
        no_root += not matching.root_inside_
    cross_rmse, matching_rmse, counting_rmse = (rms(column) for column in np.transpose(errors))
    bias = np.mean(errors, axis=0)
    return {
        "eps_pos": float(eps_pos),
        "mean_norm": mean_norm,
        "reg": reg,
        "draws": len(errors),
        "cross_rmse": cross_rmse,
        "matching_rmse": matching_rmse,
        "counting_rmse": counting_rmse,
        "cross_bias": bias[0],
        "matching_bias": bias[1],
        "covered": float(np.mean(covered)),
        "no_root": no_root,
    }


def print_grid(rows, eps, norms):
    """Print one line per ε₊ and ‖μ‖, with the values of γ side by side."""
    print(" " * 12 + "".join(f"|{f'γ = {reg:g}':^38s}" for reg in REGS))
    print("  ε₊   ‖μ‖  " + "|  cross  match  count    bias  cover   " * len(REGS))
    for e, norm in itertools.product(eps, norms):
        print(f" {e:.1f}   {norm:.1f}  ", end="")
        for row in (r for r in rows if r["eps_pos"] == e and r["mean_norm"] == norm):
            print(
                f"|  {row['cross_rmse']:.4f} {row['matching_rmse']:.4f} {row['counting_rmse']:.4f} "
                f"{row['cross_bias']:+.4f} {100 * row['covered']:4.0f}%  ",
                end="",
            )
        print()


def judge_grid(rows, repeats):
    """Check the grid against its targets."""
    noisy = [row for row in rows if row["eps_pos"] > 0]
    ratios = np.array([row["cross_rmse"] / row["counting_rmse"] for row in noisy])
    above = ", ".join(place(row) for row, ratio in zip(noisy, ratios, strict=True) if ratio > 2)
    verdict(
        bool((ratios <= 2).all()),
        "RMSE at most twice that of counting, ε₊ > 0",
        f"mean ratio {ratios.mean():.2f}, largest {ratios.max():.2f}, {int((ratios > 2).sum())} of "
        f"{len(noisy)} above ({above or 'none'})",
    )
    largest = max(row["cross_rmse"] for row in rows if row["eps_pos"] == 0)
    print(f"        ε₊ = 0: counting is exact, so there is no ratio; RMSE up to {largest:.4f}")
    against = np.array([row["cross_rmse"] / row["matching_rmse"] for row in rows])
    verdict(
        bool((against < 1).all()),
        "RMSE below SecondMomentMatching's at every point",
        f"largest ratio {against.max():.2f}",
    )
    verdict(
        bool(against.mean() <= 0.5),
        "RMSE at most half of SecondMomentMatching's on average",
        f"mean ratio {against.mean():.2f}",
    )
    judge_bias(rows, repeats)
    coverage_verdict(rows, repeats, ("eps_pos", "mean_norm", "reg"))
    print(
        f"        SecondMomentMatching had no root in {sum(row['no_root'] for row in rows)} of "
        f"{len(rows) * repeats}"
    )


def judge_bias(rows, repeats):
    """Check the bias of CrossMoment against its target, and print its standard error."""
    large = [row for row in rows if abs(row["cross_bias"]) >= 0.01]
    worst = max(rows, key=lambda row: abs(row["cross_bias"]))
    verdict(
        not large,
        "|bias| < 0.01",
        f"largest {worst['cross_bias']:+.4f} at {place(worst)}, standard error "
        f"{worst['cross_rmse'] / repeats**0.5:.4f}; {len(large)} points at 0.01 or more "
        f"({', '.join(place(row) for row in large) or 'none'})",
    )
