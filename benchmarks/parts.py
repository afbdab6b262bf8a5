"""The command line of benchmarks that run in parts, and what they print around each part."""

import argparse
import os
import time
from contextlib import contextmanager
from pathlib import Path


def parsed(description, parts, draws, quick, stored=False, write=None):
    """Read the command line.

    ``draws`` is the option for the number of draws and its help, ``quick`` the help of ``--quick``; ``stored`` adds the
    option that prints stored results again, ``write``, a help, the one that writes tables into the documentation.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"any of {', '.join(parts)}; all by default")
    parser.add_argument(draws[0], type=int, help=draws[1])
    parser.add_argument("--quick", action="store_true", help=quick)
    if stored:
        parser.add_argument("--stored", action="store_true", help="run nothing, print the tables of stored results")
    if write:
        parser.add_argument("--write", action="store_true", help=write)
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for the CSV files")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(parts):
        parser.error(f"unknown part {', '.join(sorted(unknown))}: use {', '.join(parts)}")
    return options


def has_data(part):
    """Whether the folder with the data sets is named; say that the part is left out where it is not."""
    named = bool(os.environ.get("UNFLIP_DATA"))
    if not named:
        print(f"{part}: left out, set UNFLIP_DATA to the folder with the data sets")
    return named


@contextmanager
def announced(part, what):
    """Print what a part is before it runs, and afterwards how long it took."""
    print(f"{part}: {what}")
    start = time.perf_counter()
    yield
    print(f"  ({time.perf_counter() - start:.0f} s)")
