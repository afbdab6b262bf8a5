"""Tests with the oldest and the newest supported versions: `nox -s oldest`, `nox -s newest`.

Both accept paths and options of pytest, as in `nox -s oldest -- tests/unit`. By default they run
the quick tests.
"""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import nox
from packaging.requirements import Requirement

nox.options.sessions = ["oldest", "newest"]
nox.options.reuse_existing_virtualenvs = True

#: Tools of the tests; their versions do not matter.
_TOOLS = ("array-api-strict", "h5py", "hypothesis", "mpmath", "pytest", "pytest-xdist")
_TESTED = ("cli", "dask")  # extras with all optional dependencies of the package


def project() -> dict:
    """Return the table [project] of pyproject.toml."""
    path = Path(__file__).with_name("pyproject.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))["project"]


def requirements(declared: dict, extra: str | None = None) -> Iterator[Requirement]:
    """Yield the dependencies of the project or of an extra, including nested extras."""
    lines = declared["dependencies"] if extra is None else declared["optional-dependencies"][extra]
    for requirement in map(Requirement, lines):
        if requirement.name == declared["name"]:
            for inner in sorted(requirement.extras):
                yield from requirements(declared, inner)
        else:
            yield requirement


def lowest(requirement: Requirement) -> str:
    """Return the requirement pinned to its lower bound."""
    bounds = [clause.version for clause in requirement.specifier if clause.operator == ">="]
    if len(bounds) != 1:
        raise ValueError(
            f"{requirement} must have one lower bound, such as {requirement.name}>=1.0."
        )
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return f"{requirement.name}{extras}=={bounds[0]}"


def tools(declared: dict) -> list[str]:
    """Return the requirements of the test tools, from the extra dev."""
    return [str(tool) for tool in requirements(declared, "dev") if tool.name in _TOOLS]


def _test(session: nox.Session, *options: str) -> None:
    arguments = [*options, *(session.posargs or ["-m", "not slow", "-n", "2"])]
    session.run("python", "-m", "pip", "list", "--format=freeze", silent=False)
    session.run(
        "python",
        "-m",
        "pytest",
        "-q",
        *arguments,
        env={"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )


@nox.session
def oldest(session: nox.Session) -> None:
    """Run tests with exactly the lower bounds."""
    declared = project()
    pinned = [
        lowest(needed) for extra in (None, *_TESTED) for needed in requirements(declared, extra)
    ]
    session.install(*pinned, *tools(declared))
    session.install("--no-deps", "--editable", ".")
    # Old versions use deprecated names of newer packages.
    _test(session, "-W", "ignore::DeprecationWarning")


@nox.session
def newest(session: nox.Session) -> None:
    """Run tests with the newest versions that can be installed together."""
    wanted = ["--editable", f".[{','.join(_TESTED)}]", *tools(project())]
    session.install("--upgrade", "--upgrade-strategy", "eager", *wanted)
    _test(session)
