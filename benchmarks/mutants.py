"""Small errors to put into a module, one at a time: what they are, and how a running process comes to have one.

A mutant is the syntax tree of a module with one node changed. It touches no file: the changed function, class or
constant takes the place of its original in modules that are imported already, wherever they have it from.
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
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In},
}
#: Fields that hold no computation: types, decorators, and what an error says.
SKIPPED = {"annotation", "returns", "decorator_list", "bases", "exc", "cause", "msg"}


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
    def key(self) -> tuple[str, ...]:
        """What tells it from others in a table."""
        return self.file, str(self.line), str(self.column), self.kind, self.after

    @cached_property
    def tree(self) -> ast.Module:
        """The tree of the module with the node changed."""
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
    def _way(self) -> list[ast.AST]:
        """The nodes from the module down to the changed one, as they were."""
        tree = _parsed(ROOT / self.file)
        return [_at(tree, self.place[:depth]) for depth in range(len(self.place) + 1)]

    @property
    def names(self) -> list[str]:
        """The class and the function that hold the node, outermost first; a function within a function is left out."""
        names = []
        for node in self._way:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                names.append(node.name)
            if isinstance(node, ast.FunctionDef):
                break
        return names

    @property
    def where(self) -> str:
        """The module and what holds the node in it, by names that stay when lines move."""
        return ".".join([Path(self.file).with_suffix("").as_posix().removeprefix("src/unflip/"), *self.names])

    @property
    def statement(self) -> ast.stmt:
        """The innermost statement that holds the node, or is it."""
        return next(node for node in reversed(self._way) if isinstance(node, ast.stmt))

    @property
    def lines(self) -> range:
        """The lines that run just before the node does: those of its statement, or of what the statement asks first."""
        held = [node for node in self._way if isinstance(node, ast.expr)]
        outer = held[0] if held else self.statement
        if isinstance(outer, ast.If | ast.While):
            outer = outer.test
        return range(self.statement.lineno, (outer.end_lineno or outer.lineno) + 1)

    @property
    def function_lines(self) -> range:
        """The lines of the body of the function that holds the node; none where it is outside of all."""
        for node in self._way:
            if isinstance(node, ast.FunctionDef):
                return range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1)
        return range(0)

    def put_in_place(self) -> None:
        """Give this process the mutant: everything that calls or reads the original, now or later, has the changed."""
        path = ROOT / self.file
        old = next(module for module in list(sys.modules.values()) if getattr(module, "__file__", None) == str(path))
        new = ModuleType(old.__name__)
        vars(new).update(__file__=str(path), __package__=old.__package__)
        exec(compile(self.tree, str(path), "exec"), vars(new))
        if any(isinstance(node, ast.FunctionDef) for node in self._way):
            _graft(_function(_found(old, self.names)), _function(_found(new, self.names)))
        elif self.names:
            _graft_class(_found(old, self.names), _found(new, self.names))
        else:
            _replace(old, new, [ast.unparse(target) for target in _targets(self.statement)])


def mutants(path: Path) -> list[Mutant]:
    """Return every mutant of a module, in the order of its lines."""
    tree = _parsed(path)
    return [mutant for place in _places(tree, ()) for mutant in _changed(tree, place, str(path.relative_to(ROOT)))]


def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


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
    """Whether a node is a docstring, a text, the dots of an abstract method, or the list of public names."""
    text = node.value if isinstance(node, ast.Expr) else node
    names = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    constant = isinstance(text, ast.Constant) and (isinstance(text.value, str) or text.value is ...)
    return names or constant or isinstance(text, ast.JoinedStr)


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
    elif isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) != "None":
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


def _found(owner, names):
    for name in names:
        owner = vars(owner)[name]
    return owner


def _function(value):
    """Return the function beneath decorators and properties."""
    held = ("__wrapped__", "__func__", "fget", "func")
    while not isinstance(value, FunctionType):
        value = next(getattr(value, name) for name in held if hasattr(value, name))
    return value


def _graft(old, new):
    """Let a function compute what another does."""
    while hasattr(old, "__wrapped__"):
        old, new = old.__wrapped__, new.__wrapped__
    old.__code__, old.__defaults__, old.__kwdefaults__ = new.__code__, new.__defaults__, new.__kwdefaults__


def _graft_class(old, new):
    """Let a class have the attributes of another, and construct objects with its defaults."""
    for name, value in vars(new).items():
        if isinstance(value, FunctionType) and name in vars(old):
            _graft(vars(old)[name], value)
        elif not name.startswith("__") and isinstance(value, bool | int | float | tuple):
            setattr(old, name, value)


def _targets(statement):
    return statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", statement)]


def _replace(old, new, names):
    """Give all modules that have a constant from this one the changed."""
    for name in names:
        if name in vars(old):
            before = vars(old)[name]
            for module in list(sys.modules.values()):
                if getattr(module, "__dict__", {}).get(name) is before:
                    setattr(module, name, vars(new)[name])
