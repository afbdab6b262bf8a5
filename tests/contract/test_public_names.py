"""Public names are there for users, type checkers and completion, and cost nothing before they are
used."""

import subprocess
import sys

import pytest

import unflip


@pytest.mark.parametrize("name", unflip.__all__)
def test_each_public_name_is_found(name):
    assert getattr(unflip, name) is not None


def test_completion_shows_the_public_names():
    assert dir(unflip) == sorted([*unflip.__all__, "__version__", "plotting"])


def test_a_misspelt_name_is_refused_as_by_any_module():
    with pytest.raises(AttributeError, match=r"^module 'unflip' has no attribute 'LPClasifier'$"):
        unflip.LPClasifier  # noqa: B018 - asking for it is what raises
    with pytest.raises(ImportError, match="cannot import name 'LPClasifier' from 'unflip'"):
        from unflip import LPClasifier  # noqa: F401 - asking for it is what raises


@pytest.mark.parametrize(
    ("statement", "unneeded"),
    [
        ("import unflip", ("numpy", "scipy", "sklearn")),
        ("from unflip import NoiseModel, losses, targets, theory", ("sklearn",)),
        (
            "from unflip import *",
            ("sklearn.mixture", "scipy.io", "matplotlib", "pyarrow.parquet", "typer", "jinja2"),
        ),
    ],
)
def test_an_import_brings_no_more_than_it_needs(statement, unneeded):
    code = f"import sys; {statement}; print([name for name in {unneeded!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
