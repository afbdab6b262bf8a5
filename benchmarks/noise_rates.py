"""How well flip rates are estimated: against the paper's method, against counting, and on real data against cleanlab.

``grid`` and ``unknown`` draw Gaussian mixtures, ``trusted`` and ``real`` need the data sets (UNFLIP_DATA); cleanlab
comes with the extra ``unflip[benchmark]``. Errors are against the rates that flips were drawn with, on real data (part
``real``) against the fractions that were flipped in fact.
"""

import csv
import warnings

import numpy as np

from noise_rates_grid import run_grid
from noise_rates_real import run_real
from noise_rates_trusted import run_trusted
from noise_rates_unknown import run_unknown
from parts import announced, has_data, parsed

# What each part runs, how often, and how often in a quick run.
PARTS = {
    "grid": (run_grid, 100, 20),
    "unknown": (run_unknown, 100, 20),
    "trusted": (run_trusted, 200, 50),
    "real": (run_real, 50, 5),
}
FROM_DATA = ("trusted", "real")


def store(folder, part, rows):
    """Write rows (dictionaries) as CSV."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"noise_rates_{part}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)))
        writer.writeheader()
        writer.writerows({key: rounded(value) for key, value in row.items()} for row in rows)


def rounded(value):
    """Round numbers for a table."""
    return round(float(value), 5) if isinstance(value, float | np.floating) else value


def main():
    """Run the parts, print their tables and store them."""
    options = parsed(
        __doc__, PARTS, ("--repeats", "draws of each point or set"), "fewer points and draws: a minute or two"
    )
    # What estimators assume, and where there is no root, is counted here instead.
    warnings.simplefilter("ignore", UserWarning)
    for part in options.parts or PARTS:
        if part in FROM_DATA and not has_data(part):
            continue
        run, full, short = PARTS[part]
        repeats = options.repeats or (short if options.quick else full)
        with announced(part, f"{run.__doc__} {repeats} draws of each."):
            store(options.out, part, run(repeats, options.quick))


if __name__ == "__main__":
    main()
