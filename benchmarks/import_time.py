"""Time of `import unflip`, compared with `import sklearn.linear_model`, and of `unflip --help`.

Every import runs in a fresh process, in turns. A first turn compiles the files and is not counted.
Times are CPU times of the import alone, and those of commands are of the whole process. Ratios are
to scikit-learn's import of the same turn.
"""

import argparse
import resource
import subprocess
import sys

import numpy as np

YARDSTICK = "import sklearn.linear_model"
STATEMENTS = (
    YARDSTICK,
    "import unflip",
    "from unflip import NoiseModel, theory",
    "from unflip import LPClassifier",
    "from unflip import *",
)
LIMITED = "import unflip"
LIMIT = 1.3  # times the import of scikit-learn
OPTIONS = ("--version", "--help")
LIMIT_OF_COMMANDS = 0.3  # seconds
CLOCK = "import time; start = time.process_time(); {}; print(time.process_time() - start)"


def main():
    """Time the imports and print their ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=9, help="number of counted turns")
    n_turns = parser.parse_args().repeats + 1
    turns = [[seconds(statement) for statement in STATEMENTS] for _ in range(n_turns)][1:]
    ratios = np.array(turns) / np.array(turns)[:, :1]
    print(f"{YARDSTICK}: {np.median(turns, axis=0)[0]:.2f} s of CPU time\n")
    print(f"{'ratio to this':40} median  lowest  highest")
    for statement, column in zip(STATEMENTS, ratios.T, strict=True):
        print(f"{statement:40} {np.median(column):6.2f}  {column.min():6.2f}  {column.max():7.2f}")
    reached = np.median(ratios[:, STATEMENTS.index(LIMITED)])
    print(
        f"\n{'PASS' if reached <= LIMIT else 'MISS'}: {LIMITED} takes {reached:.2f} times as long "
        f"(limit {LIMIT})"
    )
    for option in OPTIONS:
        times = [seconds_of_command(option) for _ in range(n_turns)][1:]
        slowest = max(times)
        print(
            f"{'PASS' if slowest <= LIMIT_OF_COMMANDS else 'MISS'}: unflip {option} takes "
            f"{np.median(times):.2f} s of CPU time, at most {slowest:.2f} s (limit "
            f"{LIMIT_OF_COMMANDS} s)"
        )


def seconds(statement):
    """Return the CPU time of a statement in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", CLOCK.format(statement)], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def seconds_of_command(option):
    """Return the CPU time of `unflip` with an option, in a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "unflip", option]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
