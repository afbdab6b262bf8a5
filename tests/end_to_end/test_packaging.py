"""The wheel and the source distribution: contents, metadata and types."""

import importlib.util
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import unflip

ROOT = Path(__file__).parents[2]
CONSUMER = """
import unflip
from unflip import Audit, LPClassifier, NoiseModel, audit, theory
from unflip.datasets import make_mixture
from unflip.estimation import TrustedSubset

noise: NoiseModel = NoiseModel.binary(eps_pos=0.3, eps_neg=0.1)
X, y = make_mixture(100, 5, mean_norm=2.0, random_state=0)
clf: LPClassifier = LPClassifier(noise, reg=1.0).fit(X, noise.flip(y, random_state=0))
report: Audit = audit(X, y, noise=noise)
accuracy: float = report.expected_accuracy
mixture = theory.Mixture(mean_norm=2.0, aspect=0.5, noise=noise)
rates: str = noise.eps_pos  # type: ignore[assignment]  # an error: it is a number
typo = LPClassifier(TrustedSubset(), regg=1.0)  # type: ignore[call-arg]  # an error: a typo
unflip.LPClasifier  # type: ignore[attr-defined]  # an error: no such name
"""
CORE = {"numpy", "scipy", "scikit-learn", "array-api-compat"}
MEGABYTE = 1_000_000

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("hatchling") is None, reason="hatchling is not installed"
    ),
    pytest.mark.skipif(
        not (ROOT / "pyproject.toml").exists(), reason="the tests are not in a source tree"
    ),
]


def build(kind, source, folder):
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory):
    """Build the wheel from the source distribution."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    return build("wheel", source, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {entry.filename: archive.read(entry) for entry in archive.infolist()}


@pytest.fixture(scope="module")
def metadata(contents):
    (path,) = [path for path in contents if path.endswith(".dist-info/METADATA")]
    return Parser().parsestr(contents[path].decode())


def test_the_wheel_is_small(wheel):
    assert wheel.stat().st_size < MEGABYTE


def test_the_core_needs_four_packages(metadata):
    required = {line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line}
    assert {re.match(r"[\w-]+", line).group() for line in required} == CORE


def test_the_version_comes_from_one_place(metadata, wheel):
    assert metadata["Version"] == unflip.__version__
    assert wheel.name == f"unflip-{unflip.__version__}-py3-none-any.whl"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "version" not in project
    assert project["dynamic"] == ["version"]
    assert f"\nversion: {unflip.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_the_wheel_has_only_the_library(contents):
    assert {path.split("/")[0] for path in contents} == {
        "unflip",
        f"unflip-{unflip.__version__}.dist-info",
    }
    source = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src").rglob("*")
        if path.is_file()
    }
    assert {path for path in contents if path.startswith("unflip/")} == {
        path for path in source if "__pycache__" not in path
    }
    assert not [
        path for path in contents if re.search(r"test|\.(csv|npy|npz|mat|parquet|ipynb)$", path)
    ]


def test_the_wheel_is_typed_and_has_a_license(contents, metadata):
    assert "unflip/py.typed" in contents
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert any(path.endswith("licenses/LICENSE") for path in contents)


def test_the_source_distribution_has_tests_and_documentation(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    for path in (
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "pyproject.toml",
        "Makefile",
        "docs/conf.py",
    ):
        assert path in names
    for folder in ("tests", "examples", "benchmarks"):
        here = {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*.py")}
        assert here <= names


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_types_of_the_installed_wheel(wheel, tmp_path):
    """Errors are marked in the file, and mypy reports unused marks."""
    venv.create(tmp_path / "venv", symlinks=True)
    python = next((tmp_path / "venv").glob("*/python"), None) or next(
        (tmp_path / "venv").glob("*/python.exe")
    )
    packages = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    # NumPy and the other dependencies come from this environment.
    Path(packages, "core.pth").write_text(sysconfig.get_path("purelib"))
    (tmp_path / "consumer.py").write_text(CONSUMER)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--python-executable",
        str(python),
        "consumer.py",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
