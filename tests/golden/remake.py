"""Compute the stored results again: ``make golden``, then look at the difference before you commit
it."""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.goldens import GOLDENS


def main():
    for name, compute, needs_data, _ in GOLDENS:
        if needs_data and not os.environ.get("UNFLIP_DATA"):
            print(f"{name}: left as it is, UNFLIP_DATA is not set")
            continue
        path = Path(__file__).with_name(f"{name}.json")
        path.write_text(json.dumps(compute(), indent=1) + "\n")
        print(f"{name}: written")


if __name__ == "__main__":
    main()
