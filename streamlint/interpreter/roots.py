"""Roots: which bodies are run for their own sake, and with which unknowns for parameters."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from streamlint import program as p
from streamlint.findings import Span
from streamlint.interpreter.afterwards import earlier_methods, keep_awaited
from streamlint.interpreter.again import TEARDOWN, call_again
from streamlint.interpreter.arguments import Arguments, CallSite
from streamlint.interpreter.as_threads import start_elsewhere
from streamlint.interpreter.at_hand import is_optional
from streamlint.interpreter.bodies import run_body
from streamlint.interpreter.effects.host import host_read
from streamlint.interpreter.effects.streams import blocking_of
from streamlint.interpreter.getters import only_hands_back
from streamlint.interpreter.gil import held_by_function
from streamlint.interpreter.handed import enter
from streamlint.interpreter.index import File, is_declaration
from streamlint.interpreter.inherited import inherited_methods
from streamlint.interpreter.objects import initialise_fields
from streamlint.interpreter.reach import reachable
from streamlint.interpreter.run import Frame, Run, Signal
from streamlint.interpreter.values import (
    Buffer,
    ClassValue,
    Const,
    Device,
    Environment,
    Event,
    FunctionValue,
    Handle,
    Instance,
    LibraryName,
    Loader,
    Opaque,
    Series,
    Storage,
    Stream,
    Table,
    Value,
)
from streamlint.operations import Evidence, Holding, Memory
from streamlint.record import record, replace

if TYPE_CHECKING:
    from streamlint.interpreter.bindings import Binding


@record(frozen=True, slots=True)
class Root:
    """A function, a method of a class, or a module's own statements."""

    file: File
    function: p.Function | None = None
    definition: p.Class | None = None
    binding: Binding | None = None  # what is run is the function that Python calls through it; ``function`` stands for the binding
    home: File | None = None  # C++: the header that defines the class, where the method's body stands in another file
    earlier: p.Function | None = None  # C++: a method of the same object that was called before

    @property
    def qualname(self) -> str:
        return self.function.qualname if self.function is not None else "<module>"


def roots_of(file: File) -> Iterator[Root]:
    """Every function and method of a file that does anything, and its top-level statements."""
    seen: set[int] = set()
    for function, definition in p.functions_of(file.module):
        if id(function) not in seen and _has_body(function) and not only_hands_back(function, file):
            seen.add(id(function))
            home = None
            if definition is None and function.class_name:
                definition, home = file.class_at_hand(function.class_name) or (None, None)
            root = Root(file, function, definition, home=home)
            yield root
            if file.is_cuda:
                yield from (replace(root, earlier=method) for method in earlier_methods(function, definition, home or file))
    if not file.is_cuda:
        yield from (Root(home, method, owner, home=file) for home, method, owner in inherited_methods(file))
    if not file.is_cuda and any(not isinstance(s, p.FunctionDef | p.ClassDef | p.Import) for s in file.module.body):
        yield Root(file)


def _is_main_guard(statement: p.If) -> bool:
    """``if __name__ == "__main__":``."""
    test = statement.test
    return isinstance(test, p.Compare) and any(isinstance(side, p.Name) and side.id == "__name__" for side in (test.left, test.right))


def _has_body(function: p.Function) -> bool:
    return function.space == "host" and not is_declaration(function) and bool(function.body)


def run_root(run: Run, root: Root) -> None:
    """Run a root once, on the path that the run's forced decisions choose."""
    import streamlint.interpreter.expressions  # noqa: F401  (a run evaluates by it)

    with run.entered(Frame(None, root.file, Environment(), qualname="<module>"), None), contextlib.suppress(Signal):
        if root.binding is not None:
            from streamlint.interpreter.bindings import run_binding

            run_binding(run, root.file, root.binding)
        elif root.function is None:
            _run_module(run, root)
        else:
            _run_function(run, root, root.function)


def _run_module(run: Run, root: Root) -> None:
    from streamlint.interpreter.statements import execute

    body: list[p.Statement] = []
    for statement in root.file.module.body:
        if isinstance(statement, p.If) and _is_main_guard(statement):
            body.extend(statement.then)
        elif not isinstance(statement, p.Import):
            body.append(statement)
    execute(run, body)


def _run_function(run: Run, root: Root, function: p.Function) -> None:
    run.in_prelude = True
    receiver: Value | None = None
    if root.definition is not None and not (function.static and root.file.is_cuda):
        receiver = _receiver(run, root, function)
        start_elsewhere(run, receiver, function.name)
    names = parameters(run, function, root.file)
    if receiver is not None and not root.file.is_cuda and function.params and not _is_static(function):
        names[function.params[0].name] = receiver
    environment = Environment(dict(names))
    run.rooted.extend(names.values())  # its caller's
    for param in function.params:
        if param.type is not None:
            environment.types[param.name] = param.type
    # A root is entered with nothing in flight: its caller may have waited for all.
    run.machine.forget_everything()
    first = run.begun = len(run.machine.operations)
    if root.earlier is not None:
        _run_earlier(run, root, root.earlier, receiver)
    begin = len(run.machine.operations)
    run.begin_body()
    run.machine.alike.ambient = not root.file.is_cuda
    scope = f"{function.class_name}{'::' if root.file.is_cuda else '.'}" if function.class_name else f"{function.qualname}:"
    run.machine.alike.root = f"opaque:{scope}"
    if not root.file.is_cuda:
        enter(run, function.name, Span(root.file.path, *function.at), [value for value in names.values() if value is not receiver])
    value = FunctionValue(function, root.file, None, receiver)
    is_setup = function.kind == "constructor" or function.name == "__init__"
    is_teardown = function.kind == "destructor" or function.name in TEARDOWN
    with run.machine.gil.entered(_entered_by_python(run, root, function)):
        result = run_body(run, value, environment, None, setup=is_setup, teardown=is_teardown)
    if root.earlier is not None:
        keep_awaited(run, first, begin)
        return
    if run.calls > 1:
        call_again(run, receiver, function, result, lambda: run_body(run, value, Environment(dict(names)), None))
    _read_by_caller(run, root, result)
    if run.calls == 1:
        run.handed.extend((v, "") for v in (result,) if isinstance(v, FunctionValue) and v.closure is not None)
        _run_handed(run)


def _run_earlier(run: Run, root: Root, method: p.Function, receiver: Value | None) -> None:
    """The method that was called before, with arguments of its own."""
    file = root.file.program.owner(method, root.file)
    environment = Environment(dict(parameters(run, method, file)))
    environment.types.update({param.name: param.type for param in method.params if param.type is not None})
    run_body(run, FunctionValue(method, file, None, receiver), environment, None)


def _run_handed(run: Run) -> None:
    """Functions that code out of view was given (hooks), or that a backward pass runs: later, when all may have been waited for."""
    later = {id(v.function): (v, to) for v, to in run.handed if id(v.function) not in run.ran and v.file.relevance.matters(v.function)}
    for value, to in list(later.values())[:_MOST_HANDED]:
        names = parameters(run, value.function, value.file)
        if to == "register_hook" and names:
            first = next(iter(names))
            gradient = Storage(Memory.DEVICE, names[first].term, evidence=Evidence.SCOPE, library="torch", owner="caller")
            names[first] = Buffer(gradient, type="torch.Tensor")
        names.update(zip(names, value.bound, strict=False))
        run.machine.forget_everything()
        run.current.clear()
        if not value.file.is_cuda:
            enter(run, value.function.name, Span(value.file.path, *value.function.at), list(names.values()))
        plain = {"setup": False, "teardown": False, "loops": (), "guards": (), "handles_error": False}
        with run.within(**plain), contextlib.suppress(Signal):
            run_body(run, value, Environment(names, value.closure), None)


_MOST_HANDED = 6


def is_called_by_python(root: Root) -> bool:
    """Whether Python may call a root that is no Python itself: it stands in a table of the C API, or in Cython."""
    return root.file.is_cython or (root.function is not None and root.function.name in root.file.called_by_python)


def _entered_by_python(run: Run, root: Root, function: p.Function) -> Holding | None:
    """Who holds the GIL when a root begins; None where its callers are not known to."""
    return held_by_function(run.span(function.at), 0) if root.file.is_cuda and is_called_by_python(root) else None


def _read_by_caller(run: Run, root: Root, result: Value) -> None:
    """A host view that was announced (``t.numpy()``) and leaves for a caller who can wait for nothing: it is read."""
    if root.function is not None and root.file.program.is_called(root.function.name, root.file):
        return  # its callers are at hand, and are run themselves
    values = list(reachable([result], limit=200))
    if any(isinstance(v, Event | Stream | Instance) for v in values):
        return
    for value in values:
        if isinstance(value, Buffer) and value.access is not None:
            host_read(run, value, value.access.span, value.access.name)


def _is_static(function: p.Function) -> bool:
    return any(isinstance(d, p.Name) and d.id == "staticmethod" for d in function.decorators)


def _receiver(run: Run, root: Root, function: p.Function) -> Value:
    from streamlint.interpreter.foreign import foreign_object
    from streamlint.interpreter.snapshots import snapshots_of

    assert root.definition is not None
    home = root.home or root.file
    made = ClassValue(root.definition, home)
    if function.name == "__init__" or function.kind == "constructor":
        value = Instance(root.definition, home)
        if root.file.is_cuda:
            site = CallSite(function, Span(root.file.path, *function.at), function.name)
            initialise_fields(run, value, Arguments(open=True), site)
        return value
    if any(isinstance(d, p.Name) and d.id == "classmethod" for d in function.decorators):
        return made
    with run.within(setup=True):
        held = snapshots_of(run.program).made(run, made, lambda: foreign_object(run, made, "self"))
    run.questions.clear()  # what is asked from now on is asked of what the body is given, and by it
    return held


def parameters(run: Run, function: p.Function, file: File) -> dict[str, Value]:
    """Unknowns for a function's parameters, as far as types and defaults speak."""
    names: dict[str, Value] = {}
    with run.entered(Frame(None, file, Environment(), qualname=function.qualname), None):
        for param in function.params:
            names[param.name] = _parameter(run, param, function, file)
    return names


def _parameter(run: Run, param: p.Param, function: p.Function, file: File) -> Value:
    name = f"{function.qualname}:{param.name}"
    if param.kind == "star":
        return Series(None, name=name, kind="tuple")
    if param.kind == "double":
        return Table(complete=False)
    if file.is_cuda:
        return _cpp_parameter(run, param, name)
    default = run.evaluate(param.default) if isinstance(param.default, p.Const | p.Call | p.Attr | p.Name) else None
    if isinstance(default, Const) and isinstance(default.value, int) and not isinstance(default.value, bool) and 1 < default.value <= 8:
        return default  # a depth, a number of streams: small numbers stay real
    made = typed_by_annotation(run, name, param.annotation) if param.annotation is not None else None
    if made is not None and not isinstance(made, Opaque):
        if isinstance(made, Device) and isinstance(default, Const | Device):
            return _default_device(run, default, name) or made
        return made
    value = Opaque(name, parameter=True, type=next(_words_of(run, param.annotation), ""))
    value.default = default if isinstance(default, Const | Device) else None
    value.plain = declares_number(param.annotation)
    return value


def declares_number(annotation: p.Expression | None) -> bool:
    """Whether an annotation says that a value is a number or a text of Python's own, or None."""
    if isinstance(annotation, p.Binary):
        return annotation.op == "|" and declares_number(annotation.left) and declares_number(annotation.right)
    if isinstance(annotation, p.Index):
        return isinstance(annotation.value, p.Name) and annotation.value.id == "Optional" and all(map(declares_number, annotation.indices))
    if isinstance(annotation, p.Const):
        return annotation.value is None
    return isinstance(annotation, p.Name) and annotation.id in ("int", "float", "bool", "str")


def _words_of(run: Run, annotation: p.Expression | None) -> Iterator[str]:
    """What an annotation says of a value whose type it leaves open: maybe a device (``str | torch.device``), a list of numbers."""
    if isinstance(annotation, p.Binary) and annotation.op == "|":
        yield from _words_of(run, annotation.left)
        yield from _words_of(run, annotation.right)
    elif isinstance(annotation, p.Index):
        head = annotation.value
        last = head.id if isinstance(head, p.Name) else head.name if isinstance(head, p.Attr) else ""
        if last in ("Optional", "Union"):
            for item in annotation.indices:
                yield from _words_of(run, item)
        elif last in ("list", "List") and all(isinstance(item, p.Name) and item.id in _NUMBERS for item in annotation.indices):
            yield "list"
    elif isinstance(annotation, p.Name | p.Attr):
        kind = run.evaluate(annotation)
        row = run.file.models.types.get(kind.name) if isinstance(kind, LibraryName) else None
        if row is not None and row.kind == "device" and row.library == "torch":
            yield "torch.device"


_NUMBERS = frozenset({"int", "bool"})


def _default_device(run: Run, default: Value, name: str) -> Device | None:
    from streamlint.interpreter.effects.devices import as_device

    known = as_device(run, default)
    if known is not None and known.space == "device":
        return Device("device", Evidence.DEFAULT, name)
    return Device("unknown", text=name)


def _cpp_parameter(run: Run, param: p.Param, name: str) -> Value:
    from streamlint.interpreter.foreign import typed_value

    if param.type is None:
        return Opaque(name, parameter=True)
    made = typed_value(run, param.type, name, parameter=True)
    if made is None:
        return Opaque(name, parameter=True, cpp_type=param.type)
    if isinstance(made, Opaque) and param.default is not None and made.type.endswith(("Device", "DeviceType")):
        default = run.evaluate(param.default)
        made.default = default if isinstance(default, Const | Device) else None
    return made


_CONTAINERS = {
    "list", "List", "Sequence", "Iterable", "Iterator", "tuple", "Tuple", "Collection", "deque", "Deque", "set", "Set",
}  # fmt: skip
_TABLES = {"dict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "DefaultDict"}


def typed_by_annotation(run: Run, name: str, annotation: p.Expression) -> Value | None:
    """An unknown value of the annotated type: tensors, streams, events, loaders, devices, objects of classes at hand."""
    if is_optional(annotation):
        return None  # it is None or not: a condition decides it
    if isinstance(annotation, p.Index):
        return _generic(run, name, annotation)
    if not isinstance(annotation, p.Name | p.Attr):
        return None
    kind = run.evaluate(annotation)
    if isinstance(kind, ClassValue):
        from streamlint.interpreter.foreign import foreign_object

        if len(run.frames) > 4:
            return None
        return foreign_object(run, kind, name)
    if isinstance(kind, LibraryName):
        return _library_parameter(run, name, kind.name)
    return None


def _generic(run: Run, name: str, annotation: p.Index) -> Value | None:
    head = annotation.value
    last = head.id if isinstance(head, p.Name) else head.name if isinstance(head, p.Attr) else ""
    if last == "NDArray":
        return typed_by_annotation(run, name, head)
    if last in _CONTAINERS and annotation.indices:
        element = typed_by_annotation(run, f"{name}[]", annotation.indices[0])
        if element is not None and last in ("Sequence", "Iterable", "Collection"):
            return None if isinstance(element, Buffer) else Series(None, element=element, name=name)
        if isinstance(element, Buffer) and element.type != "numpy.ndarray":
            return Series(None, name=name)
        return Series(None, element=element, name=name) if element is not None else None
    if last in _TABLES and len(annotation.indices) > 1:
        element = typed_by_annotation(run, f"{name}[]", annotation.indices[1])
        return Table(complete=False, element=None if isinstance(element, Buffer) else element)
    return None


def _library_parameter(run: Run, name: str, dotted: str) -> Value | None:
    row = run.file.models.types.get(dotted)
    if row is None:
        return None
    if row.kind == "buffer":
        memory = Memory.DEVICE if row.space == "device" or row.library in ("cupy",) else Memory.UNKNOWN
        if dotted.startswith("numpy."):
            memory = Memory.UNKNOWN
        evidence = Evidence.LITERAL if memory is Memory.DEVICE else Evidence.NONE
        storage = Storage(memory, name, evidence=evidence, library=row.library, owner="caller", host=dotted.startswith("numpy."))
        return Buffer(storage, type="numpy.ndarray" if row.base == "numpy.ndarray" else row.name)
    if row.kind == "stream":
        return Stream(f"opaque:{name}", "parameter", blocking_of(row.library), row.library, row.name)
    if row.kind == "event":
        return run.new_event(row.name, unknown=True)
    if row.kind == "loader":
        return Loader(None, (), row.name)
    if row.kind == "device":
        return Device("unknown", Evidence.ASKED, name)
    if row.kind in ("module", "handle", "graph", "object"):
        return Handle(row.name, f"opaque:{name}", unknown=True)
    return None
