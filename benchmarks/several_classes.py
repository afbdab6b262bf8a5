"""More than two classes: this library, the paper's Multi-LPC, ridge, logistic and cleanlab.

All methods are fitted to the same rows and labels of a draw. Tables give means and standard errors
over draws; differences are paired. Some choices of the other methods are made on the test rows, in
their favour: cleanlab's best grid point, γ of the paper's naive and oracle rules, and the best
(α, β). The paper's rules have no intercept; rows "with intercept" add one. Part ``scenes`` needs
its data set (UNFLIP_DATA). cleanlab comes with the extra ``unflip[benchmark]``.
"""

import warnings

import pandas as pd

from cleanlab_grid import with_best
from measures import DRAW, best_auroc, expectation, right
from parts import announced, has_data, parsed
from several_classes_draws import classic_draws, paper_draws, scene_draws
from several_classes_tables import print_tables, show_paper
from several_classes_targets import judge_classics, judge_paper, judge_scenes

# For each part: its draws, its PASS or MISS checks, draws of a full run, draws of a quick run.
PARTS = {
    "paper": (paper_draws, judge_paper, 20, 2),
    "scenes": (scene_draws, judge_scenes, 10, 1),
    "classics": (classic_draws, judge_classics, 30, 2),
}


def results(part, options):
    """Run a part and store its results, or read the stored ones."""
    path = options.out / f"several_classes_{part}.csv"
    if not options.stored:
        draws, _, full, short = PARTS[part]
        n_draws = options.draws or (short if options.quick else full)
        frame = run(draws(n_draws, options.quick))
        frame.round(5).to_csv(path, index=False)
    return with_best(pd.read_csv(path, dtype={"level": str}))


def run(draws):
    """Fit the methods of each draw; return their measures."""
    rows = []
    for key, draw, fit_all in draws:
        named = dict(zip(DRAW, key, strict=True))
        rows += [named | measures(outcome, draw) for outcome in fit_all(draw)]
    return pd.DataFrame(rows)


def measures(outcome, draw):
    """Return the measures of one fit; accuracies are in percent."""
    hits = right(outcome, draw)
    return {
        "method": outcome.method,
        "accuracy": 100 * hits.mean(),
        "auroc_wrong": best_auroc(outcome.p_wrong, draw),
        "seconds": outcome.seconds,
        **expectation(outcome, hits),
        **outcome.extra,
    }


def main():
    """Run the parts, print their tables and store them."""
    options = parsed(
        __doc__,
        PARTS,
        ("--draws", "draws of each set"),
        "one or two draws: a minute or two",
        stored=True,
        write="write the table of part paper into the pages",
    )
    warnings.simplefilter("ignore", UserWarning)  # those of this library are stored
    warnings.simplefilter("ignore", FutureWarning)
    options.out.mkdir(parents=True, exist_ok=True)
    for part in options.parts or PARTS:
        if part == "scenes" and not options.stored and not has_data(part):
            continue
        draws, judge, _, _ = PARTS[part]
        with announced(part, draws.__doc__):
            frame = results(part, options)
            print_tables(frame)
            judge(frame)
            if part == "paper":
                show_paper(frame, options.write)


if __name__ == "__main__":
    main()
