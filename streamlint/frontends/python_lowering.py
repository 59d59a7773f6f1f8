"""What a lowering knows while it walks one Python module, and what it makes of definitions."""

from __future__ import annotations

from collections.abc import Callable

from streamlint.frontends.python_positions import Places
from streamlint.program import (
    Assign,
    Attr,
    Call,
    Class,
    ClassDef,
    Collection,
    Const,
    Expression,
    Field,
    Function,
    FunctionDef,
    Lambda,
    Module,
    Name,
    Param,
    Position,
    Return,
    Statement,
)
from streamlint.support.records import record


@record(eq=False)
class Enclosing:
    """A function or class that encloses the current code."""

    qualname: str
    definition: Class | None = None
    yields: bool = False


@record(eq=False)
class Lowering:
    """``at[node]`` is the position of a parser's node, ``scopes`` goes from the outside in, ``inner`` holds imports of functions."""

    module: Module
    at: Places
    scopes: list[Enclosing]
    inner: dict[str, str]

    def qualname(self, name: str) -> str:
        """The dotted name of a definition that stands here."""
        return f"{self.scopes[-1].qualname}.{name}" if self.scopes else name

    @property
    def enclosing_class(self) -> Class | None:
        """The class whose body the current code belongs to, if it is one."""
        return self.scopes[-1].definition if self.scopes else None


def lambda_at(low: Lowering, at: Position, parameters: list[Param], body: Callable[[], Expression]) -> Lambda:
    """A lambda; ``body`` lowers its expression, whose scope it is."""
    low.scopes.append(Enclosing(low.qualname("<lambda>")))
    value = body()
    scope = low.scopes.pop()
    function = Function(
        "<lambda>",
        scope.qualname,
        parameters,
        [Return(value, at=value.at)],
        is_lambda=True,
        is_generator=scope.yields,
        at=at,
    )
    return Lambda(function, at=at)


def define_function(low: Lowering, function: Function, body: Callable[[], list[Statement]]) -> Statement | None:
    """A function whose head is lowered; ``body`` lowers its statements, whose scope it is. A method is its class's, and no statement."""
    owner = low.enclosing_class
    function.class_name = owner.qualname if owner else ""
    low.scopes.append(Enclosing(function.qualname))
    function.body = body()
    function.is_generator = low.scopes.pop().yields
    if owner:
        owner.methods.setdefault(function.name, []).append(function)
        return None
    if not low.scopes:
        low.module.functions.setdefault(function.name, []).append(function)
    return FunctionDef(function, at=function.at)


def define_class(low: Lowering, definition: Class, body: Callable[[], list[Statement]]) -> Statement | None:
    """A class whose head is lowered; ``body`` lowers its statements. A class in a class is that one's, and no statement."""
    owner = low.enclosing_class
    low.module.classes.setdefault(definition.qualname, definition)
    low.scopes.append(Enclosing(definition.qualname, definition))
    for statement in body():
        place(definition, statement)
    low.scopes.pop()
    if owner:
        owner.classes.setdefault(definition.name, definition)
        return None
    return ClassDef(definition, at=definition.at)


def note_import(low: Lowering, local: str, name: str) -> None:
    """The first import of a name counts (``try`` before ``except``), but one at the top of the file before one in a function."""
    imports = low.inner if low.scopes else low.module.imports
    imports.setdefault(local, name)


def place(definition: Class, statement: Statement) -> None:
    """Names that are given a value or a type become fields, anything else stays a statement."""
    if isinstance(statement, Assign) and not statement.op:
        names = [target.id for target in statement.targets if isinstance(target, Name)]
        if len(names) == len(statement.targets):
            for name in names:
                definition.fields.append(Field(name, value=statement.value, annotation=statement.annotation, at=statement.at))
            return
    definition.body.append(statement)


def named_tuple(low: Lowering, name: str, value: Call, at: Position) -> ClassDef | None:
    """``C = namedtuple("C", "a b")`` and ``C = NamedTuple("C", [("a", T)])`` define a class with these fields."""
    made = value.function
    kind = made.name if isinstance(made, Attr) else made.id if isinstance(made, Name) else ""
    if kind not in ("namedtuple", "NamedTuple") or len(value.args) < 2:
        return None
    fields = _tuple_fields(value.args[1].value)
    if fields is None or low.enclosing_class is not None or any(arg.keyword or arg.stars for arg in value.args[:2]):
        return None
    for arg in value.args[2:]:
        if arg.keyword == "defaults" and isinstance(arg.value, Collection):
            for held, default in zip(reversed(fields), reversed(arg.value.items), strict=False):
                held.value = default
    definition = Class(name, low.qualname(name), (Name("NamedTuple", at=value.at),), {}, fields, at=at)
    low.module.classes.setdefault(definition.qualname, definition)
    return ClassDef(definition, at=definition.at)


def _tuple_fields(names: Expression) -> list[Field] | None:
    if isinstance(names, Const) and isinstance(names.value, str):
        return [Field(name, annotation=Name("Any", at=names.at), at=names.at) for name in names.value.replace(",", " ").split()]
    found = []
    for item in names.items if isinstance(names, Collection) else ():
        pair = item.items if isinstance(item, Collection) and len(item.items) == 2 else (item, Name("Any", at=item.at))
        if not isinstance(pair[0], Const) or not isinstance(pair[0].value, str):
            return None
        found.append(Field(pair[0].value, annotation=pair[1], at=item.at))
    return found or None
