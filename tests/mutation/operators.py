"""Source text to mutants: the same module with one small mistake, as a careless hand might make it.

Knows Python's syntax only; neither tests nor processes. Every mistake changes one node of the syntax tree and keeps all
line numbers. What is left alone, because no test of behaviour could or should see it: types, docstrings, decorators,
bases of classes, texts of exceptions, f-strings, and what code checks itself with, `assert` and `zip(strict=…)`.
"""

import ast
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from types import CodeType
from typing import Any

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.MatMult: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
OPPOSITES = {"min": "max", "any": "all", "argmin": "argmax", "minimum": "maximum", "floor": "ceil", "amin": "amax"}
OPPOSITES |= {second: first for first, second in OPPOSITES.items()}

LEFT_ALONE = ("annotation", "returns", "decorator_list", "bases", "type_params", "type_comment", "ctx", "pattern")
WHOLE = (ast.Raise, ast.Assert, ast.JoinedStr, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)
MOST_SHOWN = 70  # characters of an expression around a constant
DECIDED = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Constant)  # conditions that a change of their own turns round


@dataclass(frozen=True)
class Mutant:
    """One mistake: where it is, and what stood there before and after, as Python text.

    A test can only notice it if it runs one of the lines `first` to `last`, those of its statement.
    """

    path: str
    number: int
    line: int
    function: str
    first: int
    last: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.function}: {self.before} → {self.after}"


class Module:
    """The mutants of a source text; `code(mutant)` compiles one of them."""

    def __init__(self, path: str, source: str) -> None:
        self.path = path
        self.tree = ast.parse(source)
        self.mutants: list[Mutant] = []
        self.edits: list[tuple[ast.AST, str, Any]] = []  # a node, its field, and the field's value with the mistake
        self._visit(self.tree, "", (0, 0))

    def code(self, mutant: Mutant | None, filename: str) -> CodeType:
        """The module with this mistake, or without one, compiled as if it stood in the file."""
        if mutant is None:
            return compile(self.tree, filename, "exec")
        node, field, value = self.edits[mutant.number]
        former = getattr(node, field)
        setattr(node, field, value)
        try:
            return compile(ast.fix_missing_locations(self.tree), filename, "exec")
        finally:
            setattr(node, field, former)

    def _visit(self, parent: ast.AST, function: str, lines: tuple[int, int]) -> None:
        """Collect the mistakes below a node of this function, in a statement of these lines."""
        for field, place, node in _children(parent):
            name, span = function, lines
            if isinstance(node, ast.stmt):
                span = _header(node)
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                name = f"{function}.{node.name}" if function else node.name
            for changed_field, value in _changes(node):
                shown = parent if _explains(parent, node) else node
                self._add(node, changed_field, value, shown, name, span)
            for replacement in _replacements(node):
                ast.copy_location(replacement, node)
                value = _with(getattr(parent, field), place, replacement)
                self._add(parent, field, value, node, name, span, replacement)
            self._visit(node, name, span)

    def _add(
        self,
        holder: ast.AST,
        field: str,
        value: object,
        node: ast.AST,
        function: str,
        lines: tuple[int, int],
        replacement: ast.AST | None = None,
    ) -> None:
        """`node` is what is shown of the mistake, unless there is a replacement for it."""
        before, former = _text(node), getattr(holder, field)
        setattr(holder, field, value)
        after = _text(replacement or node)
        setattr(holder, field, former)
        line = getattr(holder, "lineno", lines[0])
        self.mutants.append(
            Mutant(self.path, len(self.edits), line, function or "the module", *lines, before=before, after=after)
        )
        self.edits.append((holder, field, value))


def _children(node: ast.AST) -> Iterator[tuple[str, int | None, ast.AST]]:
    """The nodes below that may be changed: field, place in the field's list, node."""
    if isinstance(node, WHOLE) or _is_type(node):
        return
    for field, value in ast.iter_fields(node):
        if field in LEFT_ALONE:
            continue
        for place, child in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(child, ast.AST) and not _is_docstring(child) and not _checks_itself(child):
                yield field, place if isinstance(value, list) else None, child


def _changes(node: ast.AST) -> Iterator[tuple[str, Any]]:
    """Fields of this node with other values."""
    if _is_type(node):
        return
    match node:
        case ast.Compare(ops=ops):
            yield from (("ops", _with(ops, i, other())) for i, op in enumerate(ops) for other in COMPARISONS[type(op)])
        case ast.BinOp(op=op) | ast.AugAssign(op=op):
            yield "op", ARITHMETIC[type(op)]()
        case ast.BoolOp(op=op):
            yield "op", ast.Or() if isinstance(op, ast.And) else ast.And()
        case ast.Constant(value=value):
            yield from (("value", other) for other in _other_constants(value))
        case ast.Name(id=name, ctx=ast.Load()) if name in OPPOSITES:
            yield "id", OPPOSITES[name]
        case ast.Attribute(attr=name, ctx=ast.Load()) if name in OPPOSITES:
            yield "attr", OPPOSITES[name]
        case ast.Return(value=value) if value is not None and not isinstance(value, ast.Constant):
            yield "value", None
        case ast.Call(args=args, keywords=keywords):
            for i, keyword in enumerate(keywords):
                if not _checks_itself(keyword):
                    yield "keywords", keywords[:i] + keywords[i + 1 :]
            if len(args) > 1:
                yield "args", args[:-1]
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) if not isinstance(test, DECIDED):
            yield "test", ast.copy_location(ast.UnaryOp(ast.Not(), test), test)
        case ast.comprehension(ifs=ifs):
            for i, test in enumerate(ifs):
                if not isinstance(test, DECIDED):
                    yield "ifs", _with(ifs, i, ast.copy_location(ast.UnaryOp(ast.Not(), test), test))
        case ast.Slice():
            yield from ((end, None) for end in ("lower", "upper", "step") if getattr(node, end) is not None)


def _replacements(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in this node's place."""
    match node:
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            yield copy(operand)
        case ast.Expr(value=ast.Call()) | ast.Raise() | ast.Delete() | ast.Break():
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript(), *_]):
            yield ast.Pass()
        case ast.Continue():
            yield ast.Break()
        case ast.With(items=items, body=body) if all(item.optional_vars is None for item in items):
            yield ast.If(ast.Constant(True), body, [])


def _other_constants(value: object) -> tuple[object, ...]:
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int | float):
        return (value + 1,)
    return (value + "XX",) if isinstance(value, str) else ()


def _with(values: Any, place: int | None, value: object) -> Any:
    """A field's value with another one at this place of its list."""
    return value if place is None else [*values[:place], value, *values[place + 1 :]]


def _header(statement: ast.stmt) -> tuple[int, int]:
    """The lines of a statement without those of the statements in it."""
    body = getattr(statement, "body", None) or getattr(statement, "cases", None)
    last = statement.end_lineno or statement.lineno
    if body:
        last = max(statement.lineno, (body[0].lineno if hasattr(body[0], "lineno") else last) - 1)
    return statement.lineno, last


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _checks_itself(node: ast.AST) -> bool:
    return isinstance(node, ast.Assert) or (isinstance(node, ast.keyword) and node.arg == "strict")


def _is_type(node: ast.AST) -> bool:
    """Whether this is a union such as `int | None`, a `Literal[…]` or a `TypeVar(…)`."""
    match node:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return any(isinstance(side, ast.Constant) and side.value is None for side in (left, right))
        case ast.Subscript(value=ast.Name(id="Literal")) | ast.Call(func=ast.Name(id="TypeVar")):
            return True
    return False


def _explains(parent: ast.AST, node: ast.AST) -> bool:
    """Whether a constant is better understood with what is around it, such as `size(0)`."""
    shown = isinstance(parent, ast.expr | ast.keyword | ast.Return | ast.Assign | ast.Slice)
    return isinstance(node, ast.Constant) and shown and len(_text(parent)) <= MOST_SHOWN


def _text(node: ast.AST) -> str:
    """The node as Python text on one line; of a statement with others in it, the first line."""
    if isinstance(node, ast.comprehension):
        text = " ".join([f"for {ast.unparse(node.target)}", *(f"if {ast.unparse(test)}" for test in node.ifs)])
    else:
        text = ast.unparse(ast.fix_missing_locations(node))
    return text.splitlines()[0] if text else "(nothing)"
