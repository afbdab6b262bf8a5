"""Time of `import unflip`, compared with `import sklearn.linear_model`.

Every import runs in a fresh process, in turns. A first turn compiles the files and is not counted.
Times are CPU times of the import alone. Ratios are to scikit-learn's import of the same turn.
"""

import argparse
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


def seconds(statement):
    """Return the CPU time of a statement in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", CLOCK.format(statement)], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


if __name__ == "__main__":
    main()
