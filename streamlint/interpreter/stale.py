"""C++: the current stream, asked for once and kept: in a static variable, or in a member of an object that outlives the call.

Asked of the text, not of a path: whoever calls later may have made another stream the current one, and no path shows both calls.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamlint import program as p
from streamlint.findings import Span
from streamlint.interpreter.endings import own_statements
from streamlint.interpreter.index import File, is_declaration, walk_module
from streamlint.interpreter.questions import question
from streamlint.interpreter.spelling import ends_in
from streamlint.record import record

_STREAMS = ("cudaStream_t", "hipStream_t", "CUDAStream", "HIPStream")
# Order between streams is no work: it may be meant for the stream that was current then.
_ORDERS = frozenset(
    {
        ("wait", "event"),
        ("event", "record"),
        ("synchronize",),
        ("set", "current", "cuda", "stream"),
        ("stream", "guard"),
        ("stream", "destroy"),
        ("stream", "query"),
        ("record",),
        ("block",),
    }
)
_MAKERS = ("make_shared", "make_unique")


@record(frozen=True, slots=True)
class Kept:
    """A stream that is read once, where, and the work of later calls that is put on it."""

    name: str
    read: Span
    uses: tuple[Span, ...]
    function: str
    member: bool


@question
def kept_streams(file: File) -> list[Kept]:
    """The current streams that code of this file keeps."""
    if not any("getCurrent" in f.module.text for f in (file, *file.neighbours())):
        return []
    return [*_in_variables(file), *_in_members(file)]


# --- variables ---------------------------------------------------------------------------------------------------------------------------


def _in_variables(file: File) -> Iterator[Kept]:
    functions = [f for f, _ in p.functions_of(file.module) if not is_declaration(f)]
    for declared in file.module.globals:
        yield from _kept_by(file, declared, functions, "")
    for function in functions:
        for node in p.walk(function):
            if isinstance(node, p.Declare) and node.static:
                yield from _kept_by(file, node, [function], function.qualname)


def _kept_by(file: File, declared: p.Declare, functions: list[p.Function], where: str) -> Iterator[Kept]:
    if not (_is_stream(declared.type) or declared.type.name == "auto") or not _is_current(file, _initial(declared)):
        return
    uses: list[Span] = []
    name = declared.name.rpartition("::")[2]  # as code within the namespace says it
    for function in functions:
        if any(isinstance(n, p.AssignExpr) and _is_name(n.target, name) for n in p.walk(function)):
            return
        uses.extend(_uses(file, function, name))
    if uses:
        yield Kept(name, Span(file.path, *declared.at), tuple(uses), where, member=False)


def _initial(declared: p.Declare) -> p.Expression | None:
    return declared.value if declared.value is not None else declared.args[0].value if declared.args else None


# --- members -----------------------------------------------------------------------------------------------------------------------------


def _in_members(file: File) -> Iterator[Kept]:
    for function, owner in p.functions_of(file.module):
        if function.kind != "constructor" or is_declaration(function):
            continue
        definition = owner or (file.class_at_hand(function.class_name) or (None, file))[0]
        if definition is None:
            continue
        for name, read in _given_in(file, function):
            if any(f.name == name and not f.static and f.type is not None and _is_stream(f.type) for f in definition.fields):
                uses = _member_uses(file, definition, name)
                if uses and _outlives(file, definition.name):
                    yield Kept(name, read, tuple(uses), function.qualname, member=True)


def _given_in(file: File, constructor: p.Function) -> Iterator[tuple[str, Span]]:
    """The members that a constructor gives the current stream."""
    for name, args in constructor.initialisers:
        if len(args) == 1 and _is_current(file, args[0].value):
            yield name, Span(file.path, *args[0].value.at)
    for node in p.walk(constructor):
        if isinstance(node, p.AssignExpr) and (name := _member_name(node.target)) and _is_current(file, node.value):
            yield name, Span(file.path, *node.at)


def _member_uses(file: File, definition: p.Class, name: str) -> list[Span]:
    """Where other methods put work on the member; none if any code gives it another stream."""
    found: list[Span] = []
    for other in _beside(file):
        for function, owner in p.functions_of(other.module):
            own = (owner is not None and owner.name == definition.name) or function.class_name.rpartition("::")[2] == definition.name
            if function.kind == "constructor" and own:
                continue
            if any(isinstance(n, p.AssignExpr) and _names(n.target, name, own) for n in p.walk(function)):
                return []
            if own and function.kind != "destructor" and not is_declaration(function):
                found.extend(_uses(other, function, name))
    return found


def _names(target: p.Expression, name: str, own: bool) -> bool:
    return (isinstance(target, p.Attr) and target.name == name) or (own and _is_name(target, name))


def _beside(file: File) -> list[File]:
    """The files that can name what this one defines: those that it includes, and those that share an include with it."""
    near = {id(f) for f in (file, *file.neighbours())}
    return [f for f in file.program.cpp(file) if id(f) in near or any(id(n) in near for n in f.neighbours())]


def _outlives(file: File, name: str, depth: int = 0) -> bool:
    """Whether objects of a class are kept beyond the call that makes them: bound to Python, static, global, stored, or members of such."""
    for other in _beside(file):
        if any(_holds(declared.type, name) for declared in other.module.globals):
            return True
        if any(_keeps(node, name) for node in walk_module(other.module)):
            return True
        if any(_stores(function, name) for function, _ in p.functions_of(other.module)):
            return True
        for definition in dict.fromkeys(other.module.classes.values()):
            holders = [f for f in definition.fields if f.type is not None and _holds(f.type, name)]
            if any(f.static for f in holders):
                return True
            if holders and depth < 2 and definition.name != name and _outlives(other, definition.name, depth + 1):
                return True
    return False


def _keeps(node: object, name: str) -> bool:
    """``static C c;`` or a binding ``py::class_<C>(m, "C")``."""
    if isinstance(node, p.Declare):
        return (node.static and _holds(node.type, name)) or (_last(node.type.name) == "class_" and _first(node.type.args) == name)
    if isinstance(node, p.Call) and isinstance(node.function, p.Name):
        return _last(node.function.id) == "class_" and bool(node.template) and _plain(node.template[0]) == name
    return False


def _stores(function: p.Function, name: str) -> bool:
    """``table[i] = p`` where ``p`` is a new object of the class, or holds one."""
    made = {n.name for n in p.walk(function) if isinstance(n, p.Declare) and _makes(n.value, name)}
    for node in p.walk(function):
        if not isinstance(node, p.AssignExpr) or not isinstance(node.target, p.Attr | p.Index):
            continue
        if _makes(node.value, name) or any(isinstance(n, p.Name) and n.id in made for n in p.walk(node.value)):
            return True
    return False


def _makes(value: p.Expression | None, name: str) -> bool:
    if value is None:
        return False
    for node in p.walk(value):
        if isinstance(node, p.New) and _plain(node.type.name) == name:
            return True
        called = node.function.id if isinstance(node, p.Call) and isinstance(node.function, p.Name) else ""
        if _last(called) in _MAKERS and isinstance(node, p.Call) and node.template and _plain(node.template[0]) == name:
            return True
    return False


# --- shared ------------------------------------------------------------------------------------------------------------------------------


def _uses(file: File, function: p.Function, name: str) -> Iterator[Span]:
    """Launches on the stream, calls that are given it, and its return."""
    for node in p.walk(function):
        if isinstance(node, p.Launch):
            if any(_is_name(value, name) for value in node.config[3:]):
                yield Span(file.path, *node.name_at)
        elif isinstance(node, p.Call):
            called = node.function.name if isinstance(node.function, p.Attr) else getattr(node.function, "id", "")
            if any(_is_name(arg.value, name) for arg in node.args) and not ends_in(_last(called), _ORDERS):
                yield Span(file.path, *node.name_at)
        elif isinstance(node, p.Return) and node.value is not None and _is_name(node.value, name):
            yield Span(file.path, *node.at)


def _is_name(value: p.Expression, name: str) -> bool:
    """``s``, ``this->s``, ``s.stream()``."""
    if isinstance(value, p.Call) and isinstance(value.function, p.Attr) and value.function.name == "stream":
        return _is_name(value.function.value, name)
    return (isinstance(value, p.Name) and value.id == name) or _member_name(value) == name


def _member_name(target: p.Expression) -> str:
    if isinstance(target, p.Attr):
        return target.name if isinstance(target.value, p.Name) and target.value.id == "this" else ""
    return target.id if isinstance(target, p.Name) else ""


def _is_current(file: File, value: p.Expression | None, depth: int = 0) -> bool:
    """Whether an expression is the current stream: PyTorch's getter, or a function at hand that returns what it gives."""
    while True:
        if isinstance(value, p.Cast):
            value = value.value
        elif isinstance(value, p.Call) and isinstance(value.function, p.Attr) and value.function.name == "stream" and not value.args:
            value = value.function.value
        else:
            break
    if not isinstance(value, p.Call):
        return False
    called = value.function.name if isinstance(value.function, p.Attr) else getattr(value.function, "id", "")
    row = file.models.calls.get(called) or file.models.calls.get(f"at::cuda::{_last(called)}")
    if row is not None and row.effect == "stream_of":
        return row.get("which") == "current"
    return depth < 2 and any(_returns_current(f, home, depth + 1) for f, home in _bodies(file, _last(called)))


def _bodies(file: File, name: str) -> Iterator[tuple[p.Function, File]]:
    for home in (file, *file.neighbours()):
        methods = (f for definition in dict.fromkeys(home.module.classes.values()) for f in definition.methods.get(name, ()))
        for function in (*home.functions.get(name, ()), *methods):
            if function.returns is not None and _is_stream(function.returns) and not is_declaration(function):
                yield function, home


def _returns_current(function: p.Function, home: File, depth: int) -> bool:
    given = {n.name for n in p.walk(function) if isinstance(n, p.Declare) and not n.static and _is_current(home, _initial(n), depth)}
    returned = [n.value for n in own_statements(function.body) if isinstance(n, p.Return) and n.value is not None]
    return bool(returned) and all(_is_current(home, v, depth) or (isinstance(v, p.Name) and v.id in given) for v in returned)


def _is_stream(kind: p.Type) -> bool:
    return _last(kind.name) in _STREAMS and not kind.pointers


def _holds(kind: p.Type, name: str) -> bool:
    return _plain(kind.name) == name or any(_holds(arg, name) for arg in kind.args)


def _first(kinds: tuple[p.Type, ...]) -> str:
    return _plain(kinds[0].name) if kinds else ""


def _plain(text: str) -> str:
    return _last(text.partition("<")[0].strip())


def _last(name: str) -> str:
    return name.rpartition("::")[2]
