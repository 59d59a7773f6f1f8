"""What Python calls in C++: functions bound by pybind11 and nanobind, and those in the tables of the C API. All begin with the GIL held.

A binding is a root of its own: the bound function is run as Python would call it. Whether the binding itself releases the GIL must be
known; what is not, is taken to.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterator

from streamlint import program as p
from streamlint.interpreter.arguments import Arguments, CallSite
from streamlint.interpreter.bodies import run_body
from streamlint.interpreter.classes import find_method
from streamlint.interpreter.cpp_types import class_of
from streamlint.interpreter.foreign import foreign_object, typed_value
from streamlint.interpreter.index import File, is_declaration
from streamlint.interpreter.names import expanded
from streamlint.interpreter.objects import construct
from streamlint.interpreter.purpose import is_for_tests
from streamlint.interpreter.run import Frame, Run, Signal
from streamlint.interpreter.spelling import says
from streamlint.interpreter.values import ClassValue, Environment, FunctionValue, Instance, Opaque, Value
from streamlint.operations import Holding
from streamlint.record import record, replace

_LIBRARIES = ("pybind11", "nanobind", "PYBIND11_", "NB_MODULE", "torch/extension.h", "py::", "nb::")
_OPERATORS = ("TORCH_LIBRARY", "torch::Library")
_RELEASE = "gil_scoped_release"


@record(frozen=True, slots=True)
class Binding:
    """``m.def("name", &f, …)`` in the body of ``within``; ``receiver`` is the type that it is a method of."""

    call: p.Call
    within: p.Function
    receiver: p.Type
    thunk: p.Function  # stands for the call alone
    effect: str = "bind"  # ``operator`` where PyTorch's dispatcher calls it, and lets the GIL go

    @property
    def is_constructor(self) -> bool:
        return bool(self.call.args) and _is_init(self.call.args[0].value)


# --- finding them ---------------------------------------------------------------------------------------------------------------------


def bindings_of(file: File, effect: str = "bind") -> Iterator[Binding]:
    """The bindings that a file makes, in order; with ``operator``, what it registers with PyTorch's dispatcher."""
    words = _LIBRARIES if effect == "bind" else _OPERATORS
    if not file.is_cuda or not any(word in file.module.text for word in words):
        return
    for function, _ in p.functions_of(file.module):
        if function.space == "host" and not is_declaration(function):
            yield from _in_function(file, function, effect)


def registered(file: File) -> Iterator[Binding]:
    """``static auto registry = torch::RegisterOperators().op("space::name", &f)``: PyTorch's older way to register operators."""
    if not file.is_cuda or "RegisterOperators" not in file.module.text:
        return
    for declared in [s for s in (*file.module.body, *file.module.globals) if isinstance(s, p.Declare)]:
        within = p.Function("<registry>", "<registry>", [], [], at=declared.at)
        for node in p.walk(declared):
            if isinstance(node, p.Call) and isinstance(node.function, p.Attr) and node.function.name == "op" and len(node.args) > 1:
                body: p.Body = [p.ExprStatement(arg.value, at=node.at) for arg in node.args]
                thunk = p.Function("<registry>", "<registry>", [], body, at=(*node.name_at[:2], *node.at[2:]))
                yield Binding(node, within, p.Type("torch::RegisterOperators"), thunk, "operator")


def _in_function(file: File, function: p.Function, effect: str) -> Iterator[Binding]:
    found = []
    for node in p.walk(function):
        if isinstance(node, p.Call) and isinstance(node.function, p.Attr) and node.function.name.startswith(("def", "impl")):
            receiver = _type_of(file, function, node.function.value)
            row = file.models.method(receiver.name, node.function.name, "::") if receiver is not None else None
            if receiver is not None and row is not None and row.effect == effect:
                at = (*node.name_at[:2], *node.at[2:])
                body: p.Body = [p.ExprStatement(arg.value, at=at) for arg in node.args]
                thunk = p.Function(function.name, function.qualname, function.params, body, at=at)
                found.append(Binding(node, function, receiver, thunk, effect))
    yield from sorted(found, key=lambda b: b.call.name_at)


def _type_of(file: File, within: p.Function, node: p.Expression) -> p.Type | None:
    """The type of a module or class that things are bound to, under its public name."""
    if isinstance(node, p.Name):
        return _type_of_name(file, within, node.id)
    if isinstance(node, p.Construct):
        return _known(file, node.type)
    if isinstance(node, p.Call) and isinstance(node.function, p.Attr):
        held = _type_of(file, within, node.function.value)
        row = file.models.method(held.name, node.function.name, "::") if held is not None else None
        return held if row is not None else None
    if isinstance(node, p.Call) and isinstance(node.function, p.Name):
        return _known(file, p.Type(node.function.id, tuple(p.Type(text) for text in node.template)))
    return None


def _type_of_name(file: File, within: p.Function, name: str) -> p.Type | None:
    for param in within.params:
        if param.name == name:
            return _known(file, param.type or p.Type(within.name))
    declared = _declaration(within, name)
    if declared is None:
        return None
    if declared.type.name == "auto":
        return _type_of(file, within, declared.value) if declared.value is not None else None
    return _known(file, declared.type)


def _known(file: File, kind: p.Type) -> p.Type | None:
    kind = file.resolve_type(kind)
    name = expanded(file, kind.name.lstrip(":"))
    return replace(kind, name=name) if file.models.type_named(name) is not None else None


def _declaration(within: p.Function, name: str) -> p.Declare | None:
    return _declarations(within).get(name)


@functools.lru_cache(maxsize=256)
def _declarations(within: p.Function) -> dict[str, p.Declare]:
    """The first declaration of each name in a body."""
    found: dict[str, p.Declare] = {}
    for node in p.walk(within):
        if isinstance(node, p.Declare):
            found.setdefault(node.name, node)
    return found


# --- what a binding says of the GIL -------------------------------------------------------------------------------------------------------


def keeps_gil(file: File, binding: Binding) -> bool:
    """Whether nothing in the binding releases the GIL, as far as that is known for each of its arguments."""
    return all(_keeps(file, binding.within, arg.value) for arg in binding.call.args)


_OF_GIL = frozenset({"gil", "nogil"})


def _keeps(file: File, within: p.Function, node: p.Expression) -> bool:
    if isinstance(node, p.Name):
        return _name_keeps(file, within, node.id)
    if isinstance(node, p.Construct):
        return not _releases(file.resolve_type(node.type))
    if isinstance(node, p.Call) and isinstance(node.function, p.Name):
        name, template = node.function.id, tuple(p.Type(text) for text in node.template)
        if says(name.rpartition("::")[2], _OF_GIL):
            return False  # a helper whose name says what it does with it: wrap_pybind_function_no_gil
        kind = file.resolve_type(p.Type(name, template))
        return not _releases(kind) and all(_keeps(file, within, arg.value) for arg in node.args)
    return True


def _name_keeps(file: File, within: p.Function, name: str) -> bool:
    declared = _declaration(within, name)
    if declared is None:
        others = ((f, f.global_named(name, within.qualname)) for f in (file, *file.neighbours()))
        declared = next((s for f, full in others for s in f.globals.get(full or "", ()) if isinstance(s, p.Declare)), None)
    if declared is not None:
        return not _releases(file.resolve_type(declared.type)) and (declared.value is None or _keeps(file, within, declared.value))
    known = any(f.function(name) is not None for f in (file, *file.neighbours()))
    library = "::" in name or any(param.name == name for param in within.params)
    return known or library  # else a name from out of view, which may be a guard


def _releases(kind: p.Type) -> bool:
    return _RELEASE in kind.name or any(_releases(arg) for arg in kind.args)


# --- running them -------------------------------------------------------------------------------------------------------------------------


def run_binding(run: Run, file: File, binding: Binding) -> None:
    """Run what is bound, as Python calls it."""
    from streamlint.interpreter.roots import parameters

    environment = Environment(parameters(run, binding.within, file))
    holding = Holding("binding", run.span(binding.call.name_at), for_tests=is_for_tests(file, binding.within))
    with run.entered(Frame(None, file, environment, qualname=binding.within.qualname), None), contextlib.suppress(Signal):
        _declare_locals(run, binding)
        for arg in binding.call.args:
            if _is_init(arg.value) and isinstance(arg.value, p.Call) and not arg.value.args:
                _call_constructor(run, binding, arg.value, holding)
                continue
            nodes = arg.value.args if isinstance(arg.value, p.Call) and _is_called(arg.value, "init", "new_", "pickle") else (arg,)
            for node in nodes:
                value = _callable(run, node.value)
                if value is not None:
                    _call_bound(run, value, holding)


def callables(run: Run, file: File, binding: Binding) -> list[FunctionValue]:
    """The functions that a binding makes known, in order: one, or the getter and the setter of a property."""
    from streamlint.interpreter.roots import parameters

    environment = Environment(parameters(run, binding.within, file))
    found: list[FunctionValue] = []
    with run.entered(Frame(None, file, environment, qualname=binding.within.qualname), None), contextlib.suppress(Signal):
        _declare_locals(run, binding)
        first = binding.call.args[0].value if binding.call.args else None
        args = first.args if isinstance(first, p.Call) and _is_init(first) else binding.call.args[1:]
        for arg in args:
            value = _callable(run, arg.value)
            if value is not None:
                found.append(value)
    return found


def _declare_locals(run: Run, binding: Binding) -> None:
    """Variables of the function that the binding stands in, as far as the binding names them."""
    from streamlint.interpreter.statements import execute

    names = {node.id for arg in binding.call.args for node in p.walk(arg.value) if isinstance(node, p.Name)}
    for name in sorted(names):
        declared = _declaration(binding.within, name)
        if declared is not None and declared.at < binding.call.at and _is_plain(declared):
            execute(run, [declared])


def _is_plain(declared: p.Declare) -> bool:
    return isinstance(declared.value, p.Lambda | p.Name | p.AddressOf | p.Cast)


def _is_init(node: p.Expression) -> bool:
    return _is_called(node, "init", "new_")


def _is_called(node: p.Expression, *names: str) -> bool:
    called = node.function.id if isinstance(node, p.Call) and isinstance(node.function, p.Name) else ""
    return "::" in called and called.rpartition("::")[2] in names


_POINTED = (p.AddressOf, p.Name, p.Lambda, p.Cast)


def _callable(run: Run, node: p.Expression) -> FunctionValue | None:
    """The function at hand that an argument names, through casts and wrappers; overloads are chosen by the types that are named."""
    if isinstance(node, p.Call) and isinstance(node.function, p.Name):
        row = run.file.models.call(expanded(run.file, node.function.id))
        inner = node.args[0].value if row is not None and row.effect == "same" and node.args else None
        if inner is None:
            return None
        found = _callable(run, inner)
        return _overload(found, node.template) if found is not None and node.function.id.endswith("overload_cast") else found
    if not isinstance(node, _POINTED):
        return None
    target: p.Expression = node
    while isinstance(target, p.AddressOf | p.Cast):
        target = target.value
    if isinstance(target, p.Name) and "::" in target.id and (method := _method(run, target.id)) is not None:
        return method
    value = run.evaluate(target)
    return value if isinstance(value, FunctionValue) else None


def _method(run: Run, name: str) -> FunctionValue | None:
    """``C::method``, also one that C inherits."""
    head, _, last = name.rpartition("::")
    owner = class_of(run, run.file.resolve_type(p.Type(head)))
    found = find_method(run, owner.definition, owner.file, last) if owner is not None else None
    if owner is None or found is None:
        return None
    receiver = None if found[0].static else owner
    return FunctionValue(found[0], found[2], None, receiver, owner=found[1])


def _overload(value: FunctionValue, types: tuple[str, ...]) -> FunctionValue | None:
    """``py::overload_cast<int, const T&>(&C::f)``: the overload with these types; None where none is known to be meant."""
    name = value.function.name
    overloads = value.owner.methods.get(name, []) if value.owner is not None else value.file.functions.get(name, [])
    fitting = [f for f in overloads if len(f.params) == len(types)]
    exact = [f for f in fitting if all(map(_is_spelled, f.params, types))]
    chosen = exact or fitting
    if len(chosen) > 1 and not exact:
        return None
    return replace(value, function=chosen[0]) if chosen and value.function is not chosen[0] else value


def _is_spelled(param: p.Param, text: str) -> bool:
    """Whether a parameter has the type of this spelling, but for ``const``, references and namespaces."""
    kind = param.type
    if kind is None:
        return False
    plain = _QUALIFIERS.sub("", text)
    name, _, inside = plain.rstrip("*& ").partition("<")
    return (
        name.strip().rpartition("::")[2] == kind.name.rpartition("::")[2]
        and plain.count("*") == kind.pointers + sum(arg.pointers for arg in kind.args)
        and (not kind.args or kind.args[0].name.rpartition("::")[2] in inside)
    )


_QUALIFIERS = re.compile(r"\b(?:const|volatile|struct|class|typename)\b")


def _call_bound(run: Run, value: FunctionValue, holding: Holding) -> None:
    from streamlint.interpreter.roots import parameters

    value = run.program.with_body(value)
    function = value.function
    if is_declaration(function) or function.space != "host":
        return
    holding = replace(holding, handles_objects=_handles_objects(function, value.file))
    receiver = value.receiver
    if isinstance(receiver, ClassValue):
        receiver = foreign_object(run, receiver, "self")
    elif value.owner is not None and not function.static and receiver is None:
        receiver = foreign_object(run, ClassValue(value.owner, value.file), "self")
    environment = Environment(parameters(run, function, value.file), parent=value.closure)
    for param in function.params:
        if param.type is not None:
            environment.types[param.name] = param.type
    run.machine.forget_everything()
    with run.machine.gil.entered(holding), contextlib.suppress(Signal):
        run_body(run, replace(value, receiver=receiver), environment, None)


_OBJECTS = ("pybind11::", "nanobind::")
_NO_OBJECT = ("gil_scoped", "call_guard", "error_already_set")


def _handles_objects(function: p.Function, file: File) -> bool:
    """C++: whether a function is given Python's objects, or names the classes and functions that work with them."""
    named = [param.type.name for param in function.params if param.type is not None]
    for node in (part for statement in function.body for part in p.walk(statement)):
        if isinstance(node, p.Name | p.Declare):
            named.append(node.id if isinstance(node, p.Name) else node.type.name)
    full = (expanded(file, name.lstrip(":")) for name in named if "::" in name)
    return any(name.startswith(_OBJECTS) and not any(word in name for word in _NO_OBJECT) for name in full)


def _call_constructor(run: Run, binding: Binding, node: p.Call, holding: Holding) -> None:
    """``py::init<A, B>()``: the constructor that takes these."""
    kind = binding.receiver.args[0] if binding.receiver.args else None
    made = class_of(run, run.file.resolve_type(kind)) if kind is not None else None
    if made is None:
        return
    given: list[Value] = []
    for index, text in enumerate(node.template):
        name = f"{made.definition.qualname}:{index}"
        given.append(typed_value(run, p.Type(text.strip("& ")), name, parameter=True) or Opaque(name, parameter=True))
    value = Instance(made.definition, made.file, types=made.types)
    run.machine.forget_everything()
    with run.machine.gil.entered(holding), run.within(setup=True):
        construct(run, value, Arguments(given), CallSite(node, run.span(binding.call.name_at), made.definition.name))


# --- the C API ----------------------------------------------------------------------------------------------------------------------------

_TABLES = (
    "PyMethodDef", "PyTypeObject", "PyType_Slot", "PyGetSetDef", "PyNumberMethods", "PySequenceMethods", "PyMappingMethods",
    "PyBufferProcs", "PyAsyncMethods",
)  # fmt: skip
_SLOTS = ("tp_", "nb_", "sq_", "mp_", "bf_", "am_")


def called_by_python(file: File) -> frozenset[str]:
    """The functions of a C++ file that stand in its tables of methods and type slots."""
    if not any(word in file.module.text for word in _TABLES):
        return frozenset()
    found: set[str] = set()
    for node in _everything(file.module):
        if isinstance(node, p.Declare) and (node.type.name in _TABLES or any(arg.name in _TABLES for arg in node.type.args)):
            held: object = node.value
        elif isinstance(node, p.AssignExpr) and isinstance(node.target, p.Attr) and node.target.name.startswith(_SLOTS):
            held = node.value
        else:
            continue
        if held is not None:
            found.update(n.id.rpartition("::")[2] for n in p.walk(held) if isinstance(n, p.Name) and n.id in file.functions)
    return frozenset(found)


def _everything(module: p.Module) -> Iterator[object]:
    for statement in module.body:
        yield from p.walk(statement)
