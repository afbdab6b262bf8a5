"""Numbers printed in the paper."""

from __future__ import annotations

#: Table 1: accuracy in percent of (naive, unbiased, optimized, oracle), by ε₊ and domain.
TABLE1: dict[float, dict[str, tuple[float, float, float, float]]] = {
    0.3: {
        "books": (72.69, 71.66, 76.36, 78.78),
        "dvd": (73.75, 72.24, 77.43, 80.57),
        "elec": (78.22, 77.22, 81.57, 83.22),
        "kitchen": (79.64, 78.62, 82.17, 84.28),
    },
    0.4: {
        "books": (66.84, 66.68, 75.69, 78.78),
        "dvd": (67.20, 67.33, 76.86, 80.57),
        "elec": (72.13, 72.36, 81.04, 83.22),
        "kitchen": (73.46, 73.85, 81.65, 84.28),
    },
    0.5: {
        "books": (55.37, 59.50, 75.26, 78.78),
        "dvd": (55.32, 59.68, 76.42, 80.57),
        "elec": (57.96, 63.21, 80.73, 83.22),
        "kitchen": (58.15, 64.71, 81.32, 84.28),
    },
}

#: Numbers after ± in the table: the standard deviation of the means of the three seeds.
TABLE1_SPREAD: dict[float, dict[str, tuple[float, float, float, float]]] = {
    0.3: {
        "books": (0.11, 0.25, 0.21, 0.07),
        "dvd": (0.42, 0.30, 0.04, 0.12),
        "elec": (0.05, 0.09, 0.12, 0.09),
        "kitchen": (0.07, 0.05, 0.06, 0.10),
    },
    0.4: {
        "books": (0.31, 0.22, 0.22, 0.07),
        "dvd": (0.37, 0.34, 0.16, 0.12),
        "elec": (0.18, 0.06, 0.08, 0.09),
        "kitchen": (0.29, 0.23, 0.17, 0.10),
    },
    0.5: {
        "books": (0.25, 0.43, 0.19, 0.07),
        "dvd": (0.41, 0.57, 0.13, 0.12),
        "elec": (0.11, 0.36, 0.01, 0.09),
        "kitchen": (0.61, 0.70, 0.11, 0.10),
    },
}
