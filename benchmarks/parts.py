"""Command line of benchmarks with parts, and what they print before and after each part."""

import argparse
import os
import time
from contextlib import contextmanager
from pathlib import Path


def parsed(description, parts, draws, quick, stored=False, write=None, jobs=False):
    """Parse the command line.

    ``draws`` is the name and the help of the option for the number of draws, ``quick`` the help of
    ``--quick``. ``stored`` adds ``--stored``, which prints stored results. ``write`` is the help of
    ``--write``, which writes tables into the documentation. ``jobs`` adds ``--jobs``, the number of
    processes.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "parts", nargs="*", metavar="part", help=f"any of {', '.join(parts)}; all by default"
    )
    parser.add_argument(draws[0], type=int, help=draws[1])
    parser.add_argument("--quick", action="store_true", help=quick)
    if stored:
        parser.add_argument(
            "--stored", action="store_true", help="print the tables of stored results, run nothing"
        )
    if write:
        parser.add_argument("--write", action="store_true", help=write)
    if jobs:
        parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument(
        "--out", type=Path, default=Path("results"), help="folder for the CSV files"
    )
    options = parser.parse_args()
    if unknown := set(options.parts) - set(parts):
        parser.error(f"unknown part {', '.join(sorted(unknown))}: use {', '.join(parts)}")
    return options


def has_data(part):
    """Return whether UNFLIP_DATA is set; if not, print that the part is skipped."""
    is_set = bool(os.environ.get("UNFLIP_DATA"))
    if not is_set:
        print(f"{part}: skipped, set UNFLIP_DATA to the folder with the data sets")
    return is_set


@contextmanager
def announced(part, description):
    """Print the description of a part before it runs, and its time afterwards."""
    print(f"{part}: {description}")
    start = time.perf_counter()
    yield
    print(f"  ({time.perf_counter() - start:.0f} s)")
