"""From Python into C++ and back: a call is linked to its body, arguments and results change their language, and the GIL is known.

The memory, the streams and the functions stay what they are; only the type changes by whose methods they are known.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamlint import program as p
from streamlint.interpreter import pointers
from streamlint.interpreter.arguments import Arguments, CallSite
from streamlint.interpreter.bindings import Binding, callables, keeps_gil
from streamlint.interpreter.cpp_types import SIZES, class_of, type_row
from streamlint.interpreter.effects import buffer_of
from streamlint.interpreter.exports import Export, ExportedClass
from streamlint.interpreter.gil import held_by_function
from streamlint.interpreter.index import File, accepts
from streamlint.interpreter.interface import EXTENSION
from streamlint.interpreter.objects import construct
from streamlint.interpreter.opaque import opaque_call
from streamlint.interpreter.purpose import is_for_tests
from streamlint.interpreter.run import Frame, Run
from streamlint.interpreter.values import (
    Buffer,
    Const,
    Environment,
    FunctionValue,
    Handle,
    Instance,
    LibraryName,
    Opaque,
    Series,
    Stream,
    Value,
)
from streamlint.operations import Holding
from streamlint.program import Type
from streamlint.record import record, replace

_PLAIN = frozenset({"void", "float", *SIZES, *(f"std::{name}" for name in SIZES if name.endswith("_t"))})
_TENSORS = ("at::", "torch::", "c10::")


@record(eq=False, slots=True)
class Bound(Value):
    """What a name of C++ stands for in Python: functions to choose from, of an object if it is a method; or a class."""

    name: str
    exports: Sequence[Export] | ExportedClass
    receiver: Instance | None = None

    @property
    def term(self) -> str:
        return self.name


def linked(run: Run, name: str) -> Bound | None:
    """The C++ that a dotted name stands for in the Python file in progress."""
    if run.file.is_cuda or "." not in name or not run.program.interface.may_find(name, run.file):
        return None
    found = run.program.meant(name, run.file)
    return Bound(name, found) if found else None


def is_foreign(run: Run, value: Instance) -> bool:
    """Whether an object of C++ is looked at from Python, which knows it by its binding. Cython sees the class itself."""
    return value.file.is_cuda and not run.file.is_cuda and not run.file.is_cython


def member_of(run: Run, value: Instance, name: str) -> Value:
    """An attribute of a C++ object as Python sees it."""
    exported = run.program.known_class(value.definition, value.file, run.file)
    if name in value.attrs and exported is None:
        return to_python(run, value.attrs[name])
    found = exported.members.get(name, ()) if exported is not None else ()
    if not found:
        return run.opaque(f"{value.term}.{name}", value)
    bound = Bound(f"{value.term}.{name}", found, value)
    binding = found[0].binding
    if binding is not None and isinstance(binding.call.function, p.Attr) and binding.call.function.name.startswith("def_prop"):
        getters = callables(run, found[0].file, binding)
        if getters:
            return _call(run, found[0], getters[0], bound, Arguments(), CallSite(binding.call, run.span(p.NOWHERE), name))
        return run.opaque(bound.name, value)
    return bound


def call_bound(run: Run, callee: Bound, arguments: Arguments, site: CallSite) -> Value:
    """Python calls C++."""
    if isinstance(callee.exports, ExportedClass):
        return _make(run, callee.exports, arguments, site)
    export, value = _chosen(run, callee, arguments)
    if value is None:
        return opaque_call(run, callee.name, callee.receiver, arguments, site)
    return _call(run, export, value, callee, arguments, site)


def _chosen(run: Run, callee: Bound, arguments: Arguments) -> tuple[Export, FunctionValue | None]:
    """The overload that takes as many arguments."""
    assert not isinstance(callee.exports, ExportedClass)
    count = len(arguments.positional) + len(arguments.keywords)
    last: tuple[Export, FunctionValue | None] = (callee.exports[0], None)
    for export in callee.exports:
        value = _function(run, export)
        if value is None:
            continue
        own = 1 if callee.receiver is not None and value.function.is_lambda else 0
        wanted = count + own
        defaults = len(_named(export.binding)) if export.binding is not None else 0
        plain = [q for q in value.function.params if q.kind == "plain"]
        if export.kind == "table" or accepts(value.function, wanted) or (wanted <= len(plain) and len(plain) - wanted <= defaults):
            return export, value
        last = (export, value) if last[1] is None else last
    return last


def _function(run: Run, export: Export) -> FunctionValue | None:
    if export.function is not None:
        return FunctionValue(export.function, export.file)
    assert export.binding is not None
    found = callables(run, export.file, export.binding)
    return found[0] if found else None


def _call(run: Run, export: Export, value: FunctionValue, callee: Bound, arguments: Arguments, site: CallSite) -> Value:
    from streamlint.interpreter.bodies import call_function

    value = run.program.with_body(value)
    given = _given(run, export, value, callee.receiver, arguments)
    receiver = callee.receiver if value.owner is not None and not value.function.static else None
    bound = replace(value, receiver=receiver if receiver is not None else value.receiver)
    held = Holding("binding", site.span) if export.kind == "held" else _holding(run, export, value)
    with run.machine.gil.entered(held), run.within(crossing=site.span, opened=export.kind in ("symbol", "held")):
        result = call_function(run, bound, Arguments(given, open=arguments.open), site)
    return to_python(run, result)


def _holding(run: Run, export: Export, value: FunctionValue) -> Holding | None:
    """Who holds the GIL within: nobody where PyTorch's dispatcher, ctypes or cffi let it go."""
    if export.binding is not None and export.kind == "binding":
        if not keeps_gil(export.file, export.binding):
            return None
        with run.entered(Frame(None, export.file, Environment()), None):
            return Holding("binding", run.span(export.binding.call.name_at), for_tests=is_for_tests(export.file, export.binding.within))
    if export.kind in ("table", "inline"):
        with run.entered(Frame(None, value.file, Environment()), None):
            return held_by_function(run.span(value.function.at), len(run.context.calls) + 1)
    return None


def _make(run: Run, exported: ExportedClass, arguments: Arguments, site: CallSite) -> Value:
    """``Pool(1 << 20)``: an object of C++, made by Python."""
    with run.entered(Frame(None, exported.file, Environment()), None):
        made = class_of(run, run.file.resolve_type(exported.kind))
    if made is None:
        return opaque_call(run, exported.kind.name, None, arguments, site)
    makers: Sequence[Export] = exported.members.get("__init__", ())
    own = [found for e in makers if e.binding is not None for found in callables(run, e.file, e.binding)]
    if own:  # py::init([](…) { … })
        return _call(run, makers[0], own[0], Bound(exported.kind.name, makers), arguments, site)
    value = Instance(made.definition, made.file, types=made.types, shared=True)
    holding = next((_holding(run, e, FunctionValue(p.Function("", "", [], []), e.file)) for e in makers), None)
    with run.machine.gil.entered(holding), run.within(crossing=site.span):
        construct(run, value, Arguments([to_cpp(run, v, None, made.file) for v in arguments.all()], open=arguments.open), site)
    return value


# --- arguments ---------------------------------------------------------------------------------------------------------------------------


def _given(run: Run, export: Export, value: FunctionValue, receiver: Instance | None, arguments: Arguments) -> list[Value]:
    """The arguments in the order of the C++ function, as it sees them."""
    if export.kind == "table":
        held = [to_cpp(run, v, None, value.file) for v in arguments.positional]
        apart = any(isinstance(n, p.Name) and n.id.startswith("PyArg_Parse") for n in p.walk(value.function))
        return [run.opaque("module"), held[0] if len(held) == 1 and not apart else Series(held, kind="tuple")]
    params = [param for param in value.function.params if param.kind == "plain"]
    found: list[Value] = []
    if receiver is not None and (value.function.is_lambda or value.owner is None):
        found.append(receiver)
    names = _named(export.binding)
    positional, keywords = list(arguments.positional), dict(arguments.keywords)
    for index, param in enumerate(params[len(found) :]):
        name, default = names[index] if index < len(names) else (param.name, None)
        if positional:
            given: Value | None = positional.pop(0)
        else:
            given = keywords.pop(name, None) or keywords.pop(param.name, None)
            if given is None and default is not None:
                with run.entered(Frame(None, export.file, Environment()), None):
                    given = run.evaluate(default)
        if given is None:
            break
        found.append(to_cpp(run, given, param.type, value.file))
    return found


def _named(binding: Binding | None) -> list[tuple[str, p.Expression | None]]:
    """``py::arg("stream") = 0``, ``"stream"_a``: the names of the arguments, and their defaults."""
    found: list[tuple[str, p.Expression | None]] = []
    for arg in binding.call.args[1:] if binding is not None else ():
        node: p.Expression = arg.value
        default = node.value if isinstance(node, p.AssignExpr) else None
        node = node.target if isinstance(node, p.AssignExpr) else node
        if isinstance(node, p.Call) and isinstance(node.function, p.Attr):  # py::arg("x").noconvert()
            node = node.function.value
        if isinstance(node, p.Unknown) and not node.parts:
            found.append(("", default))  # a literal of the user's kind: it names the parameter in its place
        elif isinstance(node, p.Call) and isinstance(node.function, p.Name) and node.function.id.rpartition("::")[2] == "arg":
            text = node.args[0].value if node.args else None
            if isinstance(text, p.Const) and isinstance(text.value, str):
                found.append((text.value, default))
    return found


def to_cpp(run: Run, value: Value, kind: Type | None, file: File) -> Value:
    """A Python value as a C++ function of ``file`` sees it."""
    with run.entered(Frame(None, file, Environment()), None):
        return _as_cpp(run, value, run.file.resolve_type(kind) if kind is not None else None)


def _as_cpp(run: Run, value: Value, kind: Type | None) -> Value:
    row = type_row(run, kind) if kind is not None and not kind.pointers else None
    if isinstance(value, Opaque) and row is not None and row.kind == "buffer" and "Tensor" in row.name:
        value = buffer_of(run, value, "torch.Tensor") or value
    if isinstance(value, Buffer):
        if row is not None and row.kind == "buffer":
            return replace(value, type=row.name, attrs={})
        return replace(value, type="at::Tensor", attrs={}) if value.type.startswith("torch.") and kind is None else value
    if isinstance(value, Series) and value.items is not None:
        inner = kind.args[0] if kind is not None and kind.args else None
        return replace(value, items=[_as_cpp(run, item, inner) for item in value.items], made={})
    if isinstance(value, Stream) and row is not None and row.kind == "stream":
        return replace(value, type=row.name)
    if isinstance(value, Opaque):
        return _unknown(run, value, kind)
    return value


def _unknown(run: Run, value: Opaque, kind: Type | None) -> Value:
    """An unknown value of Python's, under its own term: what C++ learns of its type is nothing to Python."""
    if kind is not None and kind.pointers == 1 and (value.buffer is not None or kind.name in _PLAIN):
        return buffer_of(run, value, "pointer") or value
    key = f"cpp:{value.term}"
    return run.remembered(
        key, lambda: Opaque(value.name, (value,), buffer=value.buffer, parameter=value.parameter, evidence=value.evidence)
    )


def to_python(run: Run, value: Value) -> Value:
    """What a C++ function returned, as Python sees it."""
    if isinstance(value, Buffer):
        if value.type.startswith(_TENSORS):
            return replace(value, type="torch.Tensor", attrs={})
        return replace(value, type="numpy.ndarray", attrs={}) if "::" in value.type and "array" in value.type else value
    if isinstance(value, Series) and value.items is not None:
        return replace(value, items=[to_python(run, item) for item in value.items], kind="tuple", made={})
    if isinstance(value, Const):
        return Const(value.value)
    if isinstance(value, Handle) and pointers.is_smart(value):
        return pointers.pointee(value) or value
    if isinstance(value, Opaque) and value.buffer is not None and value.type.startswith(_TENSORS):
        return replace(value.buffer, type="torch.Tensor", attrs={})
    return Opaque(value.name, (value,)) if isinstance(value, Opaque) else value


def extension(name: str) -> LibraryName:
    """The value that stands for C++ as a Python module."""
    return LibraryName(f"{EXTENSION}{name}")
