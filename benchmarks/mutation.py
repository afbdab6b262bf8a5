"""How many small errors in the numerical core its tests find: one is put in at a time, and the quick tests must fail.

A mutant is the syntax tree of one module with one node changed. It never touches a file: a fork of this process, in
which NumPy, SciPy and scikit-learn are imported already, compiles the changed tree in the place of the module and
runs the tests chosen for it, fast ones first, up to the first that fails. Verdicts go to a table, line by line; the
same command goes on where an earlier one stopped.
"""

import argparse
import ast
import csv
import os
import resource
import signal
import sys
import time
from copy import deepcopy
from dataclasses import dataclass
from importlib import import_module
from importlib.machinery import SourceFileLoader
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "unflip"
UNIT = "tests/unit/test_"
#: Modules by room, with the tests that speak of them, fast ones first.
ROOMS = {
    "targets": ["targets", "noise", "resolvent", "isotropic"],
    "theory/resolvent": ["resolvent", "isotropic"],
    "theory/model": ["isotropic", "plan", "covariance_theory"],
    "theory/isotropic": ["isotropic", "plan"],
    "theory/optimum": ["isotropic", "plan"],
    "theory/prediction": ["isotropic", "plan", "multiclass_theory"],
    "theory/planning": ["plan"],
    "theory/equivalent": ["covariance_theory", "multiclass_theory"],
    "theory/covariance": ["covariance_theory"],
    "theory/orthant": ["orthant", "multiclass_theory"],
    "theory/multiclass": ["multiclass_theory"],
    "theory/convex": ["convex"],
    "spectrum": ["spectrum", "stacks", "krylov", "selection"],
    "spectrum/krylov": ["krylov"],
    "spectrum/lanczos": ["krylov"],
    "spectrum/traces": ["krylov"],
    "spectrum/hat_model": ["krylov"],
    "spectrum/hat_table": ["spectrum", "krylov", "refine"],
    "decoder": ["decoder", "refine"],
    "score_shape": ["decoder", "refine"],
    "steepness": ["decoder", "refine"],
    "refine": ["refine", "decoder"],
}
SWAPS = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult},
    **{ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In},
}
#: Fields that hold no computation: types, decorators, and what an error says.
SKIPPED = {"annotation", "returns", "decorator_list", "bases", "exc", "cause", "msg"}
_MEMORY = 8 * 2**30
COLUMNS = ["file", "line", "column", "kind", "before", "after", "verdict", "seconds"]


@dataclass(frozen=True)
class Mutant:
    """One changed node: where it is, what it was, what it becomes, and the way to it in the tree of its module."""

    file: str
    line: int
    column: int
    kind: str
    before: str
    after: str
    place: tuple
    changed: ast.AST

    @property
    def key(self):
        """What tells it from others in a table."""
        return self.file, str(self.line), str(self.column), self.kind, self.after

    def tree(self):
        """Return the tree of the module with the node changed."""
        tree = ast.parse((ROOT / self.file).read_text(encoding="utf-8"))
        _put(tree, self.place, ast.copy_location(self.changed, _at(tree, self.place)))
        return ast.fix_missing_locations(tree)


def mutants(path):
    """Return every mutant of a module, in the order of its lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    places = list(_places(tree, ()))
    return [mutant for place in places for mutant in _changed(tree, place, str(path.relative_to(ROOT)))]


def _places(node, before):
    """Yield the way to each node that computes something."""
    for name, value in ast.iter_fields(node):
        if name in SKIPPED or (name == "test" and "TYPE_CHECKING" in ast.unparse(value)):
            continue
        children = (
            [((name, i), child) for i, child in enumerate(value)] if isinstance(value, list) else [((name,), value)]
        )
        for step, child in children:
            if isinstance(child, ast.AST) and not _is_text(child):
                yield (*before, step)
                yield from _places(child, (*before, step))


def _is_text(node):
    """Whether a node is a docstring, a text, or the list of public names."""
    text = node.value if isinstance(node, ast.Expr) else node
    names = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    return names or isinstance(text, ast.JoinedStr) or (isinstance(text, ast.Constant) and isinstance(text.value, str))


def _changed(tree, place, file):
    """Yield the mutants of one node."""
    node = _at(tree, place)
    for kind, changed in _changes(node):
        yield Mutant(file, node.lineno, node.col_offset, kind, _shown(node), _shown(changed), place, changed)


def _changes(node):
    """Yield what a node may become, by kind."""
    if isinstance(node, ast.BinOp) and type(node.op) in SWAPS:
        yield "arithmetic", ast.BinOp(node.left, SWAPS[type(node.op)](), node.right)
    elif isinstance(node, ast.AugAssign) and type(node.op) in SWAPS:
        yield "arithmetic", ast.AugAssign(node.target, SWAPS[type(node.op)](), node.value)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield "comparison", ast.Compare(node.left, [SWAPS[type(node.ops[0])]()], node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield "logic", ast.BoolOp(SWAPS[type(node.op)](), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield "sign", node.operand
    elif isinstance(node, ast.Constant):
        yield from _other_constants(node.value)
    elif isinstance(node, ast.If | ast.IfExp):
        changed = deepcopy(node)
        changed.test = ast.UnaryOp(ast.Not(), changed.test)
        yield "condition", changed
    elif isinstance(node, ast.Return) and node.value is not None:
        yield "return", ast.Return(ast.Constant(None))
    elif isinstance(node, ast.Expr | ast.Raise):
        yield "statement", ast.Pass()


def _other_constants(value):
    if isinstance(value, bool):
        yield "constant", ast.Constant(not value)
    elif isinstance(value, int | float):
        yield "constant", ast.Constant(value + 1)
        if isinstance(value, int) and value > 0:
            yield "constant", ast.Constant(value - 1)


def _at(node, place):
    for name, *index in place:
        node = getattr(node, name)[index[0]] if index else getattr(node, name)
    return node


def _put(tree, place, new):
    *before, (name, *index) = place
    owner = _at(tree, before)
    if index:
        getattr(owner, name)[index[0]] = new
    else:
        setattr(owner, name, new)


def _shown(node):
    return ast.unparse(node).splitlines()[0][:100]


def tests_of(path):
    """Return the test files of a module: its own, or those of its room."""
    name = str(path.relative_to(SOURCE).with_suffix(""))
    room = ROOMS.get(name) or ROOMS[name.split("/")[0]]
    return [str(file) for test in room if (file := ROOT / f"{UNIT}{test}.py").exists()]


def run(path, tree, limit):
    """Run the tests of a module in a fork, with a tree in its place; return the verdict and the seconds."""
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        _run_tests(path, tree)
    while time.monotonic() - start < limit:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return "survived" if status == 0 else "killed", time.monotonic() - start
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout", time.monotonic() - start


def _run_tests(path, tree):
    """Run the tests, and leave with pytest's exit code."""
    import pytest

    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    code = 1
    try:
        if tree is not None:
            _put_in_place(path, compile(tree, str(path), "exec"))
        code = pytest.main(["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "-n0", *tests_of(path)])
    finally:
        os._exit(int(code))


def _put_in_place(path, code):
    usual = SourceFileLoader.get_code

    def get_code(loader, fullname):
        return code if Path(loader.path).resolve() == path else usual(loader, fullname)

    SourceFileLoader.get_code = get_code


def modules(names):
    """Return the files that names such as "targets" or "theory" speak of."""
    found = []
    for name in names:
        place = SOURCE / name
        found += sorted(place.glob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    return [path for path in found if path.name != "__init__.py"]


def check(path, n, seed, table):
    """Try n mutants of a module, those of an earlier run included; return their verdicts."""
    drawn = mutants(path)
    rng = np.random.default_rng([seed, *str(path.relative_to(ROOT)).encode()])
    drawn = [drawn[i] for i in sorted(rng.permutation(len(drawn))[:n])]
    known = read(table)
    verdict, whole = run(path, None, 600)
    assert verdict == "survived", f"the tests of {path.name} fail as it is ({verdict}): {tests_of(path)}"
    found = []
    for mutant in drawn:
        if mutant.key not in known:
            verdict, seconds = run(path, mutant.tree(), 10 + 4 * whole)
            known[mutant.key] = verdict
            write(table, mutant, verdict, seconds)
        found.append(known[mutant.key])
        if known[mutant.key] == "survived":
            print(f"  survived {mutant.file}:{mutant.line}: {mutant.before}  ->  {mutant.after}", flush=True)
    return found


def read(table):
    """Return the verdicts of an earlier run."""
    if not table.exists():
        return {}
    with table.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {tuple(row[name] for name in ("file", "line", "column", "kind", "after")): row["verdict"] for row in rows}


def write(table, mutant, verdict, seconds):
    """Add a line to the table."""
    new = not table.exists()
    with table.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(COLUMNS)
        place = (mutant.file, mutant.line, mutant.column)
        writer.writerow([*place, mutant.kind, mutant.before, mutant.after, verdict, f"{seconds:.2f}"])


def _import_what_stays():
    """Import all that the forks need but the package itself, of which each has its own."""
    for name in ("mpmath", "pytest", "unflip"):
        import_module(name)
    for name in [name for name in sys.modules if name.split(".")[0] == "unflip"]:
        del sys.modules[name]


def main():
    """Try mutants of the named modules, and say how many were found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["targets", "spectrum", "theory", "decoder", "refine"])
    parser.add_argument("--n", type=int, default=40, help="mutants of each module")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--table", type=Path, default=Path("mutants.csv"))
    options = parser.parse_args()
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
    _import_what_stays()
    for path in modules(options.names):
        found = check(path, options.n, options.seed, options.table.resolve())
        counts = {verdict: found.count(verdict) for verdict in ("killed", "timeout", "survived")}
        share = 1 - counts["survived"] / max(len(found), 1)
        print(f"{path.relative_to(SOURCE)}: {len(found)} mutants, {counts}, {share:.0%} found", flush=True)


if __name__ == "__main__":
    main()
