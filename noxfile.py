"""Tests against the oldest and the newest versions that pyproject.toml allows: `nox -s oldest` and `nox -s newest`.

Both take paths and options of pytest, as in `nox -s oldest -- tests/unit`; without, they run the quick tests.
"""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import nox
from packaging.requirements import Requirement

nox.options.sessions = ["oldest", "newest"]
nox.options.reuse_existing_virtualenvs = True

#: Of tests alone: their own age does not matter.
_TOOLS = ("array-api-strict", "h5py", "hypothesis", "mpmath", "pytest", "pytest-xdist")
_TESTED = ("cli", "dask")  # these extras hold all that the package itself can use


def project() -> dict:
    """Return what pyproject.toml says of the project."""
    return tomllib.loads(Path(__file__).with_name("pyproject.toml").read_text(encoding="utf-8"))["project"]


def requirements(declared: dict, extra: str | None = None) -> Iterator[Requirement]:
    """Yield what the project needs, or what an extra of it needs besides, those of extras within it included."""
    lines = declared["dependencies"] if extra is None else declared["optional-dependencies"][extra]
    for requirement in map(Requirement, lines):
        if requirement.name == declared["name"]:
            for inner in sorted(requirement.extras):
                yield from requirements(declared, inner)
        else:
            yield requirement


def lowest(requirement: Requirement) -> str:
    """Return a requirement of exactly the lower bound of another."""
    bounds = [clause.version for clause in requirement.specifier if clause.operator == ">="]
    if len(bounds) != 1:
        raise ValueError(f"{requirement} must have one lower bound, such as {requirement.name}>=1.0.")
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return f"{requirement.name}{extras}=={bounds[0]}"


def tools(declared: dict) -> list[str]:
    """Return what the tests need besides, as the extra for development declares it."""
    return [str(tool) for tool in requirements(declared, "dev") if tool.name in _TOOLS]


def _test(session: nox.Session, *options: str) -> None:
    arguments = [*options, *(session.posargs or ["-m", "not slow", "-n", "2"])]
    session.run("python", "-m", "pip", "list", "--format=freeze", silent=False)
    session.run("python", "-m", "pytest", "-q", *arguments, env={"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})


@nox.session
def oldest(session: nox.Session) -> None:
    """Run tests against exactly the lower bounds."""
    declared = project()
    pinned = [lowest(needed) for extra in (None, *_TESTED) for needed in requirements(declared, extra)]
    session.install(*pinned, *tools(declared))
    session.install("--no-deps", "--editable", ".")
    _test(session, "-W", "ignore::DeprecationWarning")  # old versions call newer ones beneath them by old names


@nox.session
def newest(session: nox.Session) -> None:
    """Run tests against the newest versions that can be installed together."""
    wanted = ["--editable", f".[{','.join(_TESTED)}]", *tools(project())]
    session.install("--upgrade", "--upgrade-strategy", "eager", *wanted)
    _test(session)
