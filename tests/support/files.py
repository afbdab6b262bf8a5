"""Data files with noisy labels, for tests of the command line."""

import csv

import numpy as np
import pytest

from unflip import NoiseModel
from unflip.datasets import make_mixture

NOISE = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)
NAMES = np.array(["ham", "spam"])
GOOD, BAD = ("bright clever warm lovely superb", "dull boring awful tedious broken")


def program(*arguments, code=0):
    """Run the program in this process; assert that an error is one line."""
    typer_testing = pytest.importorskip("typer.testing", reason="needs the extra unflip[cli]")
    from unflip.cli.program import app

    done = typer_testing.CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    assert code == 0 or len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return done


def write_csv(path, **columns):
    """Write columns as a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def read_csv(path):
    """Read a CSV file as a list of dictionaries."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def mixture_file(path, n=300, p=6, mean_norm=2.0):
    """Write numeric rows with ids and noisy labels; return the true labels."""
    X, true = make_mixture(n, p, mean_norm=mean_norm, random_state=0)
    observed = NAMES[NOISE.flip(true, random_state=0)]
    columns = {f"x{j}": X[:, j].round(4) for j in range(p)}
    write_csv(path, name=[f"r{i}" for i in range(n)], **columns, label=observed)
    return NAMES[true]


def text_file(path, n=200):
    """Write texts with noisy labels; return the true labels."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, 2, n)
    words = [GOOD.split(), BAD.split()]
    texts = [
        " ".join(rng.choice(words[label], 3)) + f" film number {i % 7}"
        for i, label in enumerate(true)
    ]
    write_csv(path, text=texts, label=NAMES[NOISE.flip(true, random_state=0)])
    return NAMES[true]
