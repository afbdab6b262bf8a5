"""Mutants: small errors in a module, and how to apply one to a running process.

A mutant is the syntax tree of a module with one changed node. No file is changed: the changed
function, class or constant replaces the original in all modules that are already imported.
"""

import ast
import sys
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import FunctionType, ModuleType

ROOT = Path(__file__).resolve().parents[1]
SWAPS = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult},
    **{ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.And: ast.Or, ast.Or: ast.And},
    **{
        ast.Lt: ast.LtE,
        ast.LtE: ast.Lt,
        ast.Gt: ast.GtE,
        ast.GtE: ast.Gt,
        ast.Eq: ast.NotEq,
        ast.NotEq: ast.Eq,
    },
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In},
}
#: Fields without computation: types, decorators and error messages.
SKIPPED = {"annotation", "returns", "decorator_list", "bases", "exc", "cause", "msg"}


@dataclass(frozen=True)
class Mutant:
    """One changed node: its place, what it was, what it becomes, and the path to it in the tree."""

    file: str
    line: int
    column: int
    kind: str
    before: str
    after: str
    place: tuple
    changed: ast.AST

    @property
    def key(self) -> tuple[str, ...]:
        """Columns that identify the mutant in a table."""
        return self.file, str(self.line), str(self.column), self.kind, self.after

    @cached_property
    def tree(self) -> ast.Module:
        """The tree of the module with the changed node."""
        tree = _parsed(ROOT / self.file)
        *before, (name, *index) = self.place
        changed = ast.copy_location(self.changed, _at(tree, self.place))
        owner = _at(tree, before)
        if index:
            getattr(owner, name)[index[0]] = changed
        else:
            setattr(owner, name, changed)
        return ast.fix_missing_locations(tree)

    @cached_property
    def _path(self) -> list[ast.AST]:
        """The original nodes from the module down to the changed one."""
        tree = _parsed(ROOT / self.file)
        return [_at(tree, self.place[:depth]) for depth in range(len(self.place) + 1)]

    @property
    def names(self) -> list[str]:
        """Names of the class and the outermost function that contain the node."""
        names = []
        for node in self._path:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                names.append(node.name)
            if isinstance(node, ast.FunctionDef):
                break
        return names

    @property
    def where(self) -> str:
        """The module, class and function of the node: names that stay when lines move."""
        return ".".join(
            [Path(self.file).with_suffix("").as_posix().removeprefix("src/unflip/"), *self.names]
        )

    @property
    def statement(self) -> ast.stmt:
        """The innermost statement that contains or is the node."""
        return next(node for node in reversed(self._path) if isinstance(node, ast.stmt))

    @property
    def lines(self) -> range:
        """Lines that run just before the node: those of its statement, or of its condition."""
        expressions = [node for node in self._path if isinstance(node, ast.expr)]
        outer = expressions[0] if expressions else self.statement
        if isinstance(outer, ast.If | ast.While):
            outer = outer.test
        return range(self.statement.lineno, (outer.end_lineno or outer.lineno) + 1)

    @property
    def function_lines(self) -> list[int]:
        """Lines of the function that contains the node, or lines that read a module constant."""
        for node in self._path:
            if isinstance(node, ast.FunctionDef):
                return list(range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1))
        names = _targets(self.statement)
        read = [
            node
            for node in ast.walk(self._path[0])
            if isinstance(node, ast.Name) and ast.unparse(node) in names
        ]
        return sorted({node.lineno for node in read if isinstance(node.ctx, ast.Load)})

    def put_in_place(self) -> None:
        """Replace the original by the mutant everywhere in this process."""
        path = ROOT / self.file
        old = next(
            module
            for module in list(sys.modules.values())
            if getattr(module, "__file__", None) == str(path)
        )
        new = ModuleType(old.__name__)
        vars(new).update(__file__=str(path), __package__=old.__package__)
        exec(compile(self.tree, str(path), "exec"), vars(new))
        if any(isinstance(node, ast.FunctionDef) for node in self._path):
            _graft(_function(_attribute(old, self.names)), _function(_attribute(new, self.names)))
        elif self.names:
            _graft_class(_attribute(old, self.names), _attribute(new, self.names))
        else:
            _replace(old, new, _targets(self.statement))


def mutants(path: Path) -> list[Mutant]:
    """Return all mutants of a module, in the order of its lines."""
    tree = _parsed(path)
    return [
        mutant
        for place in _places(tree, ())
        for mutant in _changed(tree, place, str(path.relative_to(ROOT)))
    ]


def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _places(node, before):
    """Yield the path to each node that computes something."""
    for name, value in ast.iter_fields(node):
        if name in SKIPPED or (name == "test" and "TYPE_CHECKING" in ast.unparse(value)):
            continue
        children = (
            [((name, i), child) for i, child in enumerate(value)]
            if isinstance(value, list)
            else [((name,), value)]
        )
        for step, child in children:
            if isinstance(child, ast.AST) and not _is_text(child):
                yield (*before, step)
                yield from _places(child, (*before, step))


def _is_text(node):
    """Return whether a node is text, the dots of an abstract method, or ``__all__``."""
    text = node.value if isinstance(node, ast.Expr) else node
    names = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    constant = isinstance(text, ast.Constant) and (isinstance(text.value, str) or text.value is ...)
    return names or constant or isinstance(text, ast.JoinedStr)


def _changed(tree, place, file):
    """Yield the mutants of one node."""
    node = _at(tree, place)
    for kind, changed in _changes(node):
        yield Mutant(
            file, node.lineno, node.col_offset, kind, _shown(node), _shown(changed), place, changed
        )


def _changes(node):
    """Yield the kinds of change of a node, with the changed node."""
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
    elif (
        isinstance(node, ast.Return)
        and node.value is not None
        and ast.unparse(node.value) != "None"
    ):
        yield "return", ast.Return(ast.Constant(None))
    elif isinstance(node, ast.Expr | ast.Raise):
        yield "statement", ast.Pass()


def _other_constants(value):
    if isinstance(value, bool):
        yield "constant", ast.Constant(not value)
    elif isinstance(value, int | float):
        yield "constant", ast.Constant(value + 1 if value + 1 != value else 2 * value)
        if isinstance(value, int) and value > 0:
            yield "constant", ast.Constant(value - 1)


def _at(node, place):
    for name, *index in place:
        node = getattr(node, name)[index[0]] if index else getattr(node, name)
    return node


def _shown(node):
    return ast.unparse(node).splitlines()[0][:100]


def _attribute(owner, names):
    for name in names:
        owner = vars(owner)[name]
    return owner


def _function(value):
    """Return the function inside decorators and properties."""
    wrappers = ("__wrapped__", "__func__", "fget", "func")
    while not isinstance(value, FunctionType):
        value = next(getattr(value, name) for name in wrappers if hasattr(value, name))
    return value


def _graft(old, new):
    """Replace the code and defaults of a function by those of another."""
    while hasattr(old, "__wrapped__"):
        old = old.__wrapped__
        new = new.__wrapped__
    old.__code__ = new.__code__
    old.__defaults__ = new.__defaults__
    old.__kwdefaults__ = new.__kwdefaults__


def _graft_class(old, new):
    """Replace the methods, attributes and defaults of a class by those of another."""
    for name, value in vars(new).items():
        if isinstance(value, FunctionType) and name in vars(old):
            _graft(vars(old)[name], value)
        elif not name.startswith("__") and isinstance(value, bool | int | float | tuple):
            setattr(old, name, value)


def _targets(statement):
    """Return the names that a statement assigns."""
    targets = (
        statement.targets
        if isinstance(statement, ast.Assign)
        else [getattr(statement, "target", statement)]
    )
    parts = [target.elts if isinstance(target, ast.Tuple) else [target] for target in targets]
    return [ast.unparse(part) for target in parts for part in target]


def _replace(old, new, names):
    """Replace constants in all modules that imported them from this one."""
    for name in names:
        if name in vars(old):
            before = vars(old)[name]
            for module in list(sys.modules.values()):
                if getattr(module, "__dict__", {}).get(name) is before:
                    setattr(module, name, vars(new)[name])
