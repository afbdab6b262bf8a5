"""How long `import unflip` takes, beside `import sklearn.linear_model`.

Every import runs in a fresh process, in turns, after one turn that is not counted: it compiles and fills the caches.
Times are processor time of the import alone; ratios are to scikit-learn's of the same turn.
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
LIMIT = 1.3
CLOCK = "import time; start = time.process_time(); {}; print(time.process_time() - start)"


def main():
    """Time the statements and print their ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9, help="turns that count")
    turns = [[seconds(statement) for statement in STATEMENTS] for _ in range(parser.parse_args().repeats + 1)][1:]
    ratios = np.array(turns) / np.array(turns)[:, :1]
    print(f"{YARDSTICK}: {np.median(turns, axis=0)[0]:.2f} s of processor time\n")
    print(f"{'times that':40} median  lowest  highest")
    for statement, column in zip(STATEMENTS, ratios.T, strict=True):
        print(f"{statement:40} {np.median(column):6.2f}  {column.min():6.2f}  {column.max():7.2f}")
    reached = np.median(ratios[:, STATEMENTS.index(LIMITED)])
    print(f"\n{'PASS' if reached <= LIMIT else 'MISS'}: {LIMITED} takes {reached:.2f} times as long; at most {LIMIT}")


def seconds(statement):
    """Return the processor time of a statement in a process of its own."""
    done = subprocess.run([sys.executable, "-c", CLOCK.format(statement)], capture_output=True, text=True, check=True)
    return float(done.stdout)


if __name__ == "__main__":
    main()
