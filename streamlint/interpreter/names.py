"""From a name to its value: scopes, members, globals, imports, and the names of libraries."""

from __future__ import annotations

from streamlint.interpreter.index import File
from streamlint.interpreter.run import Frame, Run
from streamlint.interpreter.values import (
    ClassValue,
    Const,
    Device,
    Environment,
    FunctionValue,
    LibraryName,
    Value,
)
from streamlint.program import Assign, ClassDef, Declare, Expression, FunctionDef, Import, Name, Statement

_CPP_CONSTANTS = {"NULL": None, "nullptr": None, "true": True, "false": False}


def lookup(run: Run, name: str) -> Value:
    """The value of a plain name as the code in progress sees it."""
    frame = run.frame
    scope = frame.environment.find(name)
    if scope is not None:
        return scope.names[name]
    if frame.file.is_cuda:
        return _lookup_cpp(run, name, frame)
    found = lookup_global(run, frame.file, name)
    if found is None and frame.file.is_cython:
        found = constant(run, name)
    return found or LibraryName(name)


def lookup_global(run: Run, file: File, name: str) -> Value | None:
    """A module-level name, evaluated when it is first asked for."""
    key = (file.path, name)
    if key in run.globals:
        return run.globals[key]
    statements = file.globals.get(name, [])
    # A name that is imported in a try block and set to None in its handler is the import.
    chosen = next((s for s in statements if isinstance(s, Import)), None) or (statements[-1] if statements else None)
    if chosen is None:
        return _imported(run, file, name) or _from_c(run, file, name)
    run.globals[key] = run.opaque(f"{file.path}:{name}")  # a name that refers to itself
    value = _global_value(run, file, name, chosen, len(statements))
    run.globals[key] = value
    return value


def _from_c(run: Run, file: File, name: str) -> Value | None:
    """Cython: a name that C++ brings, or that the file has from its declarations."""
    spelled = file.module.c_names.get(name)
    if spelled is not None:
        for other in file.neighbours():
            if other.is_cuda and (found := _cpp_global(run, other, spelled)) is not None:
                return found
        return LibraryName(spelled)
    for other in run.program.declarations(file):
        if name in other.module.c_names or name in other.globals or name in other.imports:
            return lookup_global(run, other, name)
    return None


def _global_value(run: Run, file: File, name: str, statement: Statement, count: int) -> Value:
    if isinstance(statement, FunctionDef):
        return FunctionValue(statement.function, file, Environment())
    if isinstance(statement, ClassDef):
        return ClassValue(statement.definition, file)
    if isinstance(statement, Import):
        return _imported(run, file, name) or LibraryName(name)
    if count > 1 and not isinstance(statement, Declare):
        return _device_of_arms(run, file, name) or run.opaque(f"{file.path}:{name}")
    if (
        isinstance(statement, Assign)
        and statement.value is not None
        and any(isinstance(t, Name) and t.id == name for t in statement.targets)
    ):
        with (
            run.entered(Frame(None, file, Environment(), qualname="<module>"), None),
            run.within(setup=True, loops=(), guards=(), callback=None),
        ):
            return run.evaluate(statement.value)
    if isinstance(statement, Assign) and statement.value is not None:
        return _unpacked_global(run, file, name, statement)
    if isinstance(statement, Declare):
        from streamlint.interpreter.declarations import declared_value

        scope = statement.name.rpartition("::")[0]
        with (
            run.entered(Frame(None, file, Environment(), qualname=f"{scope}::<file>" if scope else "<file>"), None),
            run.within(setup=True, loops=(), guards=(), callback=None),
        ):
            return declared_value(run, statement)
    return run.opaque(f"{file.path}:{name}")


def _device_of_arms(run: Run, file: File, name: str) -> Value | None:
    """``if torch.cuda.is_available(): device = …`` and ``else: device = …``: a device of CUDA, where one of the arms says so.

    Nobody else may say anything else: each assignment gives the name a device or the word for one, and the last one is in an arm.
    """
    from streamlint.interpreter.effects.devices import as_device

    statements = file.globals[name]
    if statements[-1] in file.module.body:
        return None
    found = None
    for statement in statements:
        if not isinstance(statement, Assign) or statement.value is None:
            return None
        value = _global_value(run, file, name, statement, 1)
        device = as_device(run, value) if isinstance(value, Device) or (isinstance(value, Const) and isinstance(value.value, str)) else None
        if device is None:
            return None
        found = value if found is None and device.space == "device" else found
    return found


def _unpacked_global(run: Run, file: File, name: str, statement: Assign) -> Value:
    """``left, right = f(), g()`` at module level."""
    from streamlint.interpreter.assignment import assign

    environment = Environment()
    with run.entered(Frame(None, file, environment, qualname="<module>"), None), run.within(setup=True, loops=(), guards=(), callback=None):
        assert statement.value is not None
        value = run.evaluate(statement.value)
        for target in statement.targets:
            assign(run, target, value, statement)
    for other, held in environment.names.items():
        run.globals[(file.path, other)] = held
    return environment.names.get(name) or run.opaque(f"{file.path}:{name}")


def _imported(run: Run, file: File, name: str) -> Value | None:
    dotted = file.imports.get(name)
    if dotted is None:
        return None
    return resolve_dotted(run, file, dotted)


def resolve_dotted(run: Run, file: File, dotted: str) -> Value:
    """An imported dotted name: a definition of a file at hand, or a library's name."""
    row = file.models.calls.get(dotted)
    if row is not None and row.effect == "facade":
        return LibraryName(dotted)  # whatever its body does to find it
    target = run.program.python_module(dotted, file)
    if target is not None:
        return LibraryName(f"file:{target.path}")
    head, _, last = dotted.rpartition(".")
    if head or dotted.startswith("."):
        holder = run.program.python_module(head or ".", file)
        if holder is not None and holder is not file:
            found = lookup_global(run, holder, last)
            if found is not None:
                return found
    if file.is_cython and head.startswith(("libc.", "libcpp.", "cpython.", "cython.operator")):
        return LibraryName(last)
    return LibraryName(dotted)


def _lookup_cpp(run: Run, name: str, frame: Frame) -> Value:
    if name in _CPP_CONSTANTS:
        return Const(_CPP_CONSTANTS[name])
    if name == "this":
        return frame.this or run.opaque("this")
    if frame.this is not None:
        from streamlint.interpreter.members import member

        found = member(run, frame.this, name)
        if found is not None:
            return found
        bound = frame.this.types.get(name)
        if bound is not None:
            from streamlint.interpreter.cpp_types import class_of

            return class_of(run, bound) or LibraryName(bound.name)
    strangers = run.program.strangers
    key = (id(frame.file), frame.qualname, name)
    if key not in strangers:
        for file in (frame.file, *frame.file.neighbours()):
            value = _cpp_global(run, file, name)
            if value is not None:
                return value
        strangers.add(key)  # what no file has does not depend on the path
    full = expanded(frame.file, name)
    return constant(run, full) or LibraryName(full)


def constant(run: Run, name: str) -> Value | None:
    """An enumerator or a macro of CUDA: success is 0, the null stream is a stream, a direction is its word."""
    from streamlint.interpreter.values import Stream
    from streamlint.operations import Evidence

    constants = run.file.models.constants
    word = (
        constants.get(name)
        or constants.get(name.rpartition("::")[2])
        or (constants.get(f"cuda{name[3:]}") if name.startswith("hip") else None)
    )
    if word == "success":
        return Const(0)
    if word == "absent":
        return Const(None)
    if word == "null-stream":
        return Stream("null", "null", None, "cuda-runtime", how="literal")
    if word == "ptds-stream":
        return Stream("ptds", "ptds", True, "cuda-runtime")
    if word == "cuda-device":
        return Device("device", Evidence.LITERAL, name)
    if word == "cpu-device":
        return Device("host", Evidence.LITERAL, name)
    if word in ("h2d", "d2h", "d2d", "h2h", "infer", "non-blocking", "blocking", "captured", "not-captured"):
        return Const(word)
    return None


def _cpp_global(run: Run, file: File, name: str) -> Value | None:
    if (full := file.global_named(name, run.frame.qualname)) is not None:
        return lookup_global(run, file, full)
    if file.function(name) is not None:
        return FunctionValue(file.function(name), file)  # type: ignore[arg-type]
    definition = file.class_named(name)
    if definition is not None:
        return ClassValue(definition, file)
    head, _, last = name.rpartition("::")
    if head and (owner := file.class_named(head)) is not None:
        static = _static_member(run, file, ClassValue(owner, file), last)
        if static is not None:
            return static
    return _defined_elsewhere(run, file, last)


def _defined_elsewhere(run: Run, file: File, name: str) -> Value | None:
    """``extern``: what a smart pointer to an object of a library holds that another file defines."""
    from streamlint.interpreter import pointers
    from streamlint.interpreter.cpp_types import type_row
    from streamlint.interpreter.foreign import typed_value

    kind = file.module.elsewhere.get(name)
    if kind is None or kind.name not in pointers.SMART or not kind.args:
        return None
    row = type_row(run, kind.args[0])
    if row is None or row.kind != "object":
        return None
    return run.remembered(f"extern {name}", lambda: typed_value(run, kind, name) or run.opaque(name))


def cpp_global_key(run: Run, name: str) -> tuple[str, str]:
    """Where the value of a C++ variable of file or namespace scope is kept: the file that declares it, and its full name."""
    file = run.frame.file
    for other in (file, *file.neighbours()):
        if (full := other.global_named(name, run.frame.qualname)) is not None:
            return other.path, full
    return file.path, name


def _static_member(run: Run, file: File, owner: ClassValue, name: str) -> Value | None:
    for method in owner.definition.methods.get(name, ()):
        return FunctionValue(method, file, owner=owner.definition)
    for declared in owner.definition.fields:
        if declared.name == name and declared.value is not None:
            return _initialized(run, f"{file.path} {owner.definition.name}::{name}", declared.value)
    return None


def _initialized(run: Run, member: str, initializer: Expression) -> Value | None:
    """The value of a static member; None for one that another specialisation of its template defines by itself."""
    if member in run.initializing:
        return None
    run.initializing.add(member)
    try:
        return run.evaluate(initializer)
    finally:
        run.initializing.discard(member)


def expanded(file: File, name: str) -> str:
    """A C++ name with its namespace alias replaced."""
    head, separator, rest = name.partition("::")
    if separator and head in file.module.namespaces:
        return f"{file.module.namespaces[head]}::{rest}"
    return name
