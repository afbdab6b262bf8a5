"""The versions that pyproject.toml allows are those that `nox` tests: bounds are read from it,
never copied."""

import importlib.util
from importlib.metadata import version
from pathlib import Path

import pytest

packaging = pytest.importorskip("packaging.requirements")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def noxfile():
    pytest.importorskip("nox")
    spec = importlib.util.spec_from_file_location("noxfile", ROOT / "noxfile.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_bound_is_tested_as_it_is_declared(noxfile):
    declared = noxfile.project()
    needed = [*noxfile.requirements(declared), *noxfile.requirements(declared, "cli")]
    lines = [
        line
        for extra in ("plot", "parquet", "tables", "cli")
        for line in declared["optional-dependencies"][extra]
    ]
    named = {packaging.Requirement(line).name for line in [*declared["dependencies"], *lines]} - {
        "unflip"
    }
    assert {requirement.name for requirement in needed} == named
    for requirement in needed:
        name, _, bound = noxfile.lowest(requirement).partition("==")
        assert requirement.specifier.contains(bound), requirement
        assert f"{name}>={bound}" in (*declared["dependencies"], *lines)


def test_the_installed_versions_are_within_the_bounds(noxfile):
    declared = noxfile.project()
    for requirement in [*noxfile.requirements(declared), *noxfile.requirements(declared, "cli")]:
        assert requirement.specifier.contains(version(requirement.name)), requirement


@pytest.mark.parametrize("line", ["numpy", "numpy<3", "numpy==2.0"])
def test_a_dependency_without_a_lower_bound_is_an_error(noxfile, line):
    with pytest.raises(ValueError, match="must have one lower bound"):
        noxfile.lowest(packaging.Requirement(line))


def test_the_tools_of_the_tests_are_declared(noxfile):
    names = {packaging.Requirement(line).name for line in noxfile.tools(noxfile.project())}
    assert {"pytest", "mpmath", "array-api-strict"} <= names
