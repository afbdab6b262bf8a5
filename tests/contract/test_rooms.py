"""The layout of the package: few rooms, one way through them, and doors that are kept."""

import ast
import re
from collections import Counter, defaultdict
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import unflip

grimp = pytest.importorskip("grimp", reason="comes with import-linter, a tool of developers")

PACKAGE = Path(unflip.__file__).parent
PUBLIC = ("features", "theory", "estimation", "plotting", "compat")  # export what users may use
MODULES = sorted(PACKAGE.rglob("*.py"))
ROOMS = sorted(
    path.parent.name for path in PACKAGE.glob("*/__init__.py") if path.parent.name != "_utils"
)


def test_the_package_folder_has_few_entries():
    entries = [
        path.name
        for path in PACKAGE.iterdir()
        if path.name not in ("__init__.py", "__main__.py", "py.typed", "__pycache__")
    ]
    assert len(entries) <= 16, entries


def test_no_two_modules_have_the_same_name():
    counts = Counter(path.name for path in MODULES if path.name != "__init__.py")
    assert [name for name, count in counts.items() if count > 1] == []


def test_chains_of_imports_are_short():
    graph = grimp.build_graph("unflip", cache_dir=None)

    @cache
    def chain(module):
        following = graph.find_modules_directly_imported_by(module)
        return (module, *max((chain(other) for other in following), key=len, default=()))

    longest = max(map(chain, graph.modules), key=len)
    assert len(longest) <= 15, longest


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("__init__.py")), ids=lambda path: path.parent.name
)
def test_every_room_says_what_it_is_for(path):
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def names_from_other_rooms():
    """Return the names that are imported from each room by modules of others."""
    names = defaultdict(set)
    for path in MODULES:
        room = path.relative_to(PACKAGE).parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not node.module.startswith("unflip."):
                continue
            other = node.module.split(".")[1]
            folder = PACKAGE.joinpath(*node.module.split(".")[1:])
            if (
                other in (room, "cli")
                or node.module == "unflip.plotting.style"
                or other not in ROOMS
                or "html" in folder.parts
            ):
                continue
            names[other] |= {
                alias.name for alias in node.names if not (folder / f"{alias.name}.py").exists()
            }
    return names


@pytest.mark.parametrize(
    ("room", "names"),
    sorted(item for item in names_from_other_rooms().items() if item[0] not in PUBLIC),
)
def test_other_rooms_use_what_a_room_exports(room, names):
    assert names - set(import_module(f"unflip.{room}").__all__) == set()


def test_the_page_on_the_layout_names_modules_that_exist():
    page = Path(__file__).parents[2] / "docs" / "how_it_is_built.md"
    if not page.exists():
        pytest.skip("the pages are not beside the tests")
    named = re.findall(r"`([a-z_]+(?:/[a-z_]+)+\.py)`", page.read_text(encoding="utf-8"))
    assert len(named) > 40
    assert [name for name in named if not (PACKAGE / name).exists()] == []
