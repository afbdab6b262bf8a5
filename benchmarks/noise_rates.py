"""Error of estimated noise rates: against the paper's method, counting, and cleanlab.

``grid`` and ``unknown`` draw Gaussian mixtures. ``trusted``, ``real`` and ``default`` need the data
sets (UNFLIP_DATA). cleanlab comes with the extra ``unflip[benchmark]``. Errors are relative to the
noise rates that were simulated; in parts ``real`` and ``default``, to the realised noise rates.
"""

import csv
import warnings

import numpy as np

from noise_rates_default import run_default
from noise_rates_grid import run_grid
from noise_rates_real import run_real
from noise_rates_trusted import run_trusted
from noise_rates_unknown import run_unknown
from parts import announced, has_data, parsed

# For each part: what runs it, draws of a full run, draws of a quick run.
PARTS = {
    "grid": (run_grid, 100, 20),
    "unknown": (run_unknown, 100, 20),
    "trusted": (run_trusted, 200, 50),
    "real": (run_real, 50, 5),
    "default": (run_default, 10, 2),
}
FROM_DATA = ("trusted", "real", "default")


def store(folder, part, rows):
    """Write dictionaries as rows of a CSV file."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"noise_rates_{part}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)))
        writer.writeheader()
        writer.writerows({key: rounded(value) for key, value in row.items()} for row in rows)


def rounded(value):
    """Round numbers for the CSV file."""
    return round(float(value), 5) if isinstance(value, float | np.floating) else value


def main():
    """Run the parts, print their tables and store them."""
    options = parsed(
        __doc__,
        PARTS,
        ("--repeats", "draws of each point or set"),
        "fewer points and draws: a minute or two",
        write="write the table of part default into docs/noise_rates.md",
    )
    # Warnings of assumed rates and missing roots are counted in the tables instead.
    warnings.simplefilter("ignore", UserWarning)
    for part in options.parts or PARTS:
        if part in FROM_DATA and not has_data(part):
            continue
        run, full, short = PARTS[part]
        repeats = options.repeats or (short if options.quick else full)
        with announced(part, f"{run.__doc__} {repeats} draws of each."):
            arguments = {"write": options.write} if part == "default" else {}
            store(options.out, part, run(repeats, options.quick, **arguments))


if __name__ == "__main__":
    main()
