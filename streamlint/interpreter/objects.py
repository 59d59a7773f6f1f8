"""Objects of classes at hand: making them, their members, and what happens when they die."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from streamlint import operations as ops
from streamlint import program as p
from streamlint.findings import Span
from streamlint.interpreter import pointers
from streamlint.interpreter.index import File, accepts, assigned_attributes, is_declaration
from streamlint.interpreter.run import Frame, Run
from streamlint.interpreter.values import (
    Buffer,
    ClassValue,
    Const,
    Environment,
    FunctionValue,
    Handle,
    Instance,
    LibraryName,
    Opaque,
    Reference,
    Series,
    Stream,
    Table,
    Value,
    reachable,
)
from streamlint.operations import Memory
from streamlint.program import Type

if TYPE_CHECKING:
    from streamlint.interpreter.calls import Arguments, CallSite


# --- classes ------------------------------------------------------------------------------------------------------------------------


def bases_of(run: Run, definition: p.Class, file: File) -> list[tuple[p.Class | None, File, str]]:
    """The direct bases: (class at hand or None, its file, dotted name)."""
    found: list[tuple[p.Class | None, File, str]] = []
    for base in definition.bases:
        if file.is_cuda:
            name = base.id if isinstance(base, p.Name) else ""
            owner = next((f for f in (file, *file.neighbours()) if f.class_named(name) is not None), None)
            found.append((owner.class_named(name) if owner else None, owner or file, name))
            continue
        with run.entered(Frame(None, file, Environment(), qualname=definition.qualname), None):
            value = run.evaluate(base.value if isinstance(base, p.Index) else base)
        if isinstance(value, ClassValue):
            found.append((value.definition, value.file, value.definition.qualname))
        else:
            found.append((None, file, value.name if isinstance(value, LibraryName) else ""))
    return found


def lineage(run: Run, definition: p.Class, file: File) -> list[tuple[p.Class, File]]:
    """A class at hand and its bases at hand, nearest first."""
    key = f"lineage:{file.path}:{definition.qualname}"
    cached = run.memo.get(key)
    if isinstance(cached, Series):
        return [(c.definition, c.file) for c in cached.items or [] if isinstance(c, ClassValue)]
    found: list[tuple[p.Class, File]] = [(definition, file)]
    run.memo[key] = Series([ClassValue(definition, file)])
    for base, owner, _ in bases_of(run, definition, file):
        if base is not None and base is not definition:
            found.extend(pair for pair in lineage(run, base, owner) if pair not in found)
    run.memo[key] = Series([ClassValue(c, f) for c, f in found])
    return found


def library_bases(run: Run, definition: p.Class, file: File) -> set[str]:
    """Dotted names of the bases that are not at hand."""
    return {name for c, f in lineage(run, definition, file) for base, _, name in bases_of(run, c, f) if base is None and name}


def find_method(run: Run, definition: p.Class, file: File, name: str, arity: int | None = None) -> tuple[p.Function, p.Class, File] | None:
    for owner, source in lineage(run, definition, file):
        overloads = list(owner.methods.get(name, ()))
        if file.is_cuda:
            bodies = [f for f in overloads if not is_declaration(f)]
            fitting = [f for f in bodies if arity is None or accepts(f, arity)]
            if not fitting and overloads:
                fitting = [f for f in source.functions.get(f"{owner.qualname}::{name}", ()) if not is_declaration(f)] or bodies or overloads
            overloads = fitting
        if overloads:
            return overloads[0], owner, source
    return None


def has_member(this: Instance, name: str) -> bool:
    return name in this.attrs or any(f.name == name for f in this.definition.fields)


# --- making objects -------------------------------------------------------------------------------------------------------------------


def instantiate(run: Run, made: ClassValue, arguments: Arguments, site: CallSite) -> Value:
    """``C(args)``: an object, its constructor run in place."""
    value = Instance(made.definition, made.file, types=made.types)
    run.rooted.append(value)
    try:
        construct(run, value, arguments, site)
    finally:
        run.rooted.pop()
    return value


def construct(run: Run, value: Instance, arguments: Arguments, site: CallSite) -> None:
    """Give the fields their defaults and run the constructor."""
    from streamlint.interpreter.calls import call_function

    name = "__init__"
    if value.file.is_cuda:
        _initialise_fields(run, value, arguments, site)
    elif _is_dataclass(value.definition):
        _bind_fields(run, value, arguments, site)
        name = "__post_init__"
        arguments = type(arguments)()
    found = find_method(run, value.definition, value.file, name, len(arguments.positional))
    if found is not None:
        function, owner, file = found
        call_function(run, FunctionValue(function, file, None, value, owner=owner), arguments, site)


def _is_dataclass(definition: p.Class) -> bool:
    def names(node: p.Expression) -> str:
        inner = node.function if isinstance(node, p.Call) else node
        return inner.name if isinstance(inner, p.Attr) else inner.id if isinstance(inner, p.Name) else ""

    named_tuple = any(
        (isinstance(b, p.Name) and b.id == "NamedTuple") or (isinstance(b, p.Attr) and b.name == "NamedTuple") for b in definition.bases
    )
    return named_tuple or any("dataclass" in names(d) or names(d) in ("define", "frozen", "attrs") for d in definition.decorators)


def _bind_fields(run: Run, value: Instance, arguments: Arguments, site: CallSite) -> None:
    given = list(arguments.positional)
    for owner, file in reversed(lineage(run, value.definition, value.file)):
        for declared in owner.fields:
            if declared.name in arguments.keywords:
                value.attrs[declared.name] = arguments.keywords[declared.name]
            elif given and declared.annotation is not None:
                value.attrs[declared.name] = given.pop(0)
            elif declared.value is not None:
                value.attrs[declared.name] = _field_default(run, value, declared, file)


def _field_default(run: Run, value: Instance, declared: p.Field, file: File) -> Value:
    from streamlint.interpreter.calls import Arguments, CallSite, invoke

    assert declared.value is not None
    node = declared.value
    with run.entered(Frame(None, file, Environment(), qualname=value.definition.qualname), None):
        if isinstance(node, p.Call):
            for arg in node.args:
                if arg.keyword == "default_factory":
                    return invoke(run, run.evaluate(arg.value), Arguments(), CallSite(node, run.node_span(node)))
                if arg.keyword == "default":
                    return run.evaluate(arg.value)
        return run.evaluate(node)


def _initialise_fields(run: Run, value: Instance, arguments: Arguments, site: CallSite) -> None:
    """C++: default member initialisers, then the constructor's member initialisers."""
    from streamlint.interpreter.calls import Arguments as Args
    from streamlint.interpreter.calls import bind, evaluate_arguments
    from streamlint.interpreter.declarations import make_declared

    found = find_method(run, value.definition, value.file, "__init__", len(arguments.positional))
    initialised = dict(found[0].initialisers) if found else {}
    if value.definition.name in initialised:
        _delegate(run, value, found[0], found[2], arguments, site)  # type: ignore[index]
        return
    environment = bind(run, FunctionValue(found[0], found[2], None, value), arguments, site) if found else Environment()
    aggregate = list(arguments.positional) if found is None else []
    for owner, file in reversed(lineage(run, value.definition, value.file)):
        frame = Frame(None, file, environment, value, qualname=f"{owner.qualname}::{owner.name}")
        with run.entered(frame, site.span), run.within(setup=True):
            for declared in owner.fields:
                if declared.static:
                    continue
                if declared.name in initialised:
                    given = evaluate_arguments(run, initialised[declared.name])
                elif aggregate:
                    given = Args([aggregate.pop(0)])
                else:
                    given = None
                value.attrs[declared.name] = make_declared(run, declared, given, f"{value.term}.{declared.name}")
    for name, args in initialised.items():
        base = next((b for b, _, n in bases_of(run, value.definition, value.file) if b is not None and n.rpartition("::")[2] == name), None)
        if base is not None:
            with run.entered(Frame(None, value.file, environment, value), site.span):
                given = evaluate_arguments(run, args)
            constructor = find_method(run, base, value.file, "__init__", len(given.positional))
            if constructor is not None:
                from streamlint.interpreter.calls import call_function

                call_function(run, FunctionValue(constructor[0], constructor[2], None, value), given, site)


def _delegate(run: Run, value: Instance, constructor: p.Function, file: File, arguments: Arguments, site: CallSite) -> None:
    """``C(int n) : C() {}``: the other constructor runs first."""
    from streamlint.interpreter.calls import bind, evaluate_arguments

    environment = bind(run, FunctionValue(constructor, file, None, value), arguments, site)
    with run.entered(Frame(None, file, environment, value, qualname=constructor.qualname), site.span):
        given = evaluate_arguments(run, dict(constructor.initialisers)[value.definition.name])
    other = find_method(run, value.definition, value.file, "__init__", len(given.positional))
    if other is not None and other[0] is not constructor:
        construct(run, value, given, site)


def foreign_object(run: Run, made: ClassValue, name: str) -> Instance:
    """An object that code out of view made: its constructor is run with unknowns, and nothing is in flight on entry."""
    from streamlint.interpreter.calls import Arguments, CallSite
    from streamlint.interpreter.roots import parameters

    value = Instance(made.definition, made.file, foreign=True, name=name, types=made.types)
    site = CallSite(made.definition, Span(made.file.path, *made.definition.at), made.definition.name)
    found = find_method(run, made.definition, made.file, "__init__")
    arguments = Arguments()
    depth = len(run.frames)
    if found is not None and depth < 5 and id(found[0]) not in run.stack:
        given = parameters(run, found[0], found[2])
        plain = [pm.name for pm in found[0].params if pm.kind == "plain"]
        offset = 0 if made.file.is_cuda else 1
        arguments = Arguments(
            [given[n] for n in plain[offset:]], {pm.name: given[pm.name] for pm in found[0].params if pm.kind == "keyword"}
        )
    elif found is not None:
        return value
    elif not made.file.is_cuda and _is_dataclass(made.definition):
        _foreign_fields(run, value)
        return value
    with run.within(setup=True, loops=(), guards=()):
        construct(run, value, arguments, site)
    _widen(run, value)
    return value


def _widen(run: Run, value: Instance) -> None:
    """Other methods may have filled the containers that the constructor left empty, and set what it left null."""
    types = {f.name: f.type for f in value.definition.fields if f.type is not None and not f.static} if value.file.is_cuda else {}
    for name, held in list(value.attrs.items()):
        if name in types and (isinstance(held, Const) or (isinstance(held, Stream) and held.kind == "null")):
            value.attrs[name] = _set_elsewhere(run, value, name, types[name])
            continue
        if isinstance(held, Series) and held.items == []:
            value.attrs[name] = Series(None, element=_element(run, value, name), name=f"{value.term}.{name}", kind=held.kind)
        elif isinstance(held, Table) and held.complete and not held.items:
            value.attrs[name] = Table(complete=False)


def _set_elsewhere(run: Run, value: Instance, name: str, kind: Type) -> Value:
    """C++: a member of an object from out of view that its constructor leaves at a constant."""
    from streamlint.interpreter.declarations import type_row

    with run.entered(Frame(None, value.file, Environment(), value, qualname=value.definition.qualname), None):
        row = type_row(run, value.file.resolve_type(kind))
    term = f"{value.term}.{name}"
    if row is not None and row.kind == "stream" and not kind.pointers:
        return Stream(f"opaque:{term}", "foreign", None, row.library, row.name)
    return Opaque(term, type=row.name if row is not None and not kind.pointers else "", cpp_type=kind)


def _element(run: Run, value: Instance, name: str) -> Value | None:
    """C++: what a member container holds, by its type."""
    from streamlint.interpreter.declarations import typed_value

    declared = next((f for f in value.definition.fields if f.name == name), None)
    if declared is None or declared.type is None or len(run.frames) > 4:
        return None
    kind = value.file.resolve_type(declared.type)
    if not kind.args:
        return None
    with run.entered(Frame(None, value.file, Environment(), value, qualname=value.definition.qualname), None):
        made = typed_value(run, kind.args[0], f"{value.term}.{name}[]")
    if isinstance(made, Instance):
        made.shared = False
    return made


def _foreign_fields(run: Run, value: Instance) -> None:
    from streamlint.interpreter.roots import typed_by_annotation

    for owner, file in lineage(run, value.definition, value.file):
        for declared in owner.fields:
            if declared.name not in value.attrs and declared.annotation is not None:
                with run.entered(Frame(None, file, Environment(), qualname=owner.qualname), None):
                    made = typed_by_annotation(run, f"{value.term}.{declared.name}", declared.annotation)
                value.attrs[declared.name] = made or run.opaque(f"{value.term}.{declared.name}")


# --- members ----------------------------------------------------------------------------------------------------------------------------


def member(run: Run, value: Instance, name: str) -> Value | None:
    """An attribute or a bound method of an object at hand."""
    if name in value.attrs:
        held = value.attrs[name]
        if value.foreign and not value.file.is_cuda and isinstance(held, Const) and held.value in (None, 0, False):
            return _assigned_elsewhere(run, value, name) or held
        return held
    found = find_method(run, value.definition, value.file, name)
    if found is not None:
        function, owner, file = found
        return _bound(run, value, function, owner, file)
    for owner, file in lineage(run, value.definition, value.file):
        for declared in owner.fields:
            if declared.name == name:
                return _class_field(run, value, declared, owner, file)
    if not value.file.is_cuda:
        return _assigned_elsewhere(run, value, name)
    return None


def _bound(run: Run, value: Instance, function: p.Function, owner: p.Class, file: File) -> Value:
    from streamlint.interpreter.calls import Arguments, CallSite, call_function

    kinds = {d.id if isinstance(d, p.Name) else d.name if isinstance(d, p.Attr) else "" for d in function.decorators}
    if kinds & {"property", "cached_property"}:
        bound = FunctionValue(function, file, None, value, owner=owner)
        result = call_function(run, bound, Arguments(), CallSite(function, Span(file.path, *function.at), function.name))
        if "cached_property" in kinds:
            value.attrs[function.name] = result
        return result
    if "staticmethod" in kinds or (file.is_cuda and function.static):
        return FunctionValue(function, file, None, None, owner=owner)
    if "classmethod" in kinds:
        return FunctionValue(function, file, None, ClassValue(value.definition, value.file), owner=owner)
    return FunctionValue(function, file, None, value, owner=owner)


def _class_field(run: Run, value: Instance, declared: p.Field, owner: p.Class, file: File) -> Value:
    from streamlint.interpreter.declarations import make_declared

    with run.entered(Frame(None, file, Environment(), value if file.is_cuda else None, qualname=owner.qualname), None):
        if file.is_cuda:
            made = make_declared(run, declared, None, f"{value.term}.{declared.name}")
        elif declared.value is not None:
            made = run.evaluate(declared.value)
        else:
            made = run.opaque(f"{value.term}.{declared.name}")
    value.attrs[declared.name] = made
    return made


def _assigned_elsewhere(run: Run, value: Instance, name: str) -> Value | None:
    """What another method gives an attribute: its expression, evaluated with unknown parameters, if there is one such."""
    from streamlint.interpreter.roots import parameters

    key = f"sweep:{value.term}.{name}"
    if key in run.memo:
        return run.memo[key]
    found = []
    for owner, file in lineage(run, value.definition, value.file):
        for overloads in owner.methods.values():
            for function in overloads:
                for expression in assigned_attributes(function).get(name, ()):
                    if not (isinstance(expression, p.Const) and expression.value is None):
                        found.append((function, expression, file))
    if len(found) != 1 or len(run.frames) > 5 or id(found[0][0]) in run.stack:
        return None
    function, expression, file = found[0]
    run.memo[key] = run.opaque(f"{value.term}.{name}")
    names = parameters(run, function, file)
    names[function.params[0].name] = value
    with (
        run.entered(Frame(function, file, Environment(names), qualname=function.qualname), None),
        run.within(setup=True, loops=(), guards=()),
    ):
        made = run.evaluate(expression) if not _uses_locals(function, expression) else None
    if made is None:
        del run.memo[key]
        return None
    run.memo[key] = made
    return made


@functools.lru_cache(maxsize=4096)
def _uses_locals(function: p.Function, expression: p.Expression) -> bool:
    """Whether an expression names a local variable, whose value cannot be told without running the method."""
    params = {param.name for param in function.params}
    local = {
        target.id
        for node in p.walk(function)
        if isinstance(node, p.Assign | p.Loop | p.With)
        for target in p.walk(node)
        if isinstance(target, p.Name) and _is_target(node, target)
    }
    return any(isinstance(n, p.Name) and n.id in local - params for n in p.walk(expression))


def _is_target(node: object, name: p.Name) -> bool:
    if isinstance(node, p.Assign):
        return any(name in list(p.walk(t)) for t in node.targets if isinstance(t, p.Name | p.Collection))
    if isinstance(node, p.Loop):
        return node.target is not None and name in list(p.walk(node.target))
    if isinstance(node, p.With):
        return any(t is not None and name in list(p.walk(t)) for _, t in node.items)
    return False


def class_member(run: Run, value: ClassValue, name: str) -> Value | None:
    """``C.name``: a function of the class, a class attribute."""
    stored = run.globals.get((value.term, name))
    if stored is not None:
        return stored
    found = find_method(run, value.definition, value.file, name)
    if found is not None:
        function, owner, file = found
        kinds = {d.id for d in function.decorators if isinstance(d, p.Name)}
        receiver = value if "classmethod" in kinds else None
        return FunctionValue(function, file, None, receiver, owner=owner)
    for owner, file in lineage(run, value.definition, value.file):
        for declared in owner.fields:
            if declared.name == name and declared.value is not None:
                with run.entered(Frame(None, file, Environment(), qualname=owner.qualname), None):
                    made = run.evaluate(declared.value)
                run.globals[(value.term, name)] = made
                return made
        if name in owner.classes:
            return ClassValue(owner.classes[name], file)
    return None


def parent_view(run: Run) -> Value | None:
    """``super()`` in a method: the object, seen from the class behind the method's own."""
    frame = run.frame
    if frame.function is None or not frame.function.class_name or not frame.function.params:
        return None
    receiver = frame.environment.names.get(frame.function.params[0].name)
    if not isinstance(receiver, Instance):
        return None
    line = lineage(run, receiver.definition, receiver.file)
    position = next((i for i, (c, _) in enumerate(line) if c.qualname == frame.function.class_name), None)
    if position is None or position + 1 >= len(line):
        return run.opaque("super()")
    definition, file = line[position + 1]
    view = Instance(definition, file, foreign=receiver.foreign, name=receiver.term)
    view.attrs = receiver.attrs
    return view


# --- dying ------------------------------------------------------------------------------------------------------------------------------


def leave_scope(run: Run, scope: Environment, keep: Value | None = None) -> None:
    """C++: destroy what a scope owns, in reverse order; what is returned lives on."""
    kept = {id(v) for v in reachable([keep])} if keep is not None else set()
    for value in reversed(scope.owned):
        if id(value) in kept or (pointers.is_smart(value) and _held_elsewhere(run, value, scope)):
            continue
        destroy(run, value, None)
    scope.owned.clear()


def _held_elsewhere(run: Run, value: Value, scope: Environment) -> bool:
    """Whether another owner of what a smart pointer points to is still there."""
    others: list[Value] = []
    for frame in run.frames:
        if frame.this is not None:
            others.append(frame.this)
        seen: Environment | None = frame.environment
        while seen is not None:
            if seen is not scope:
                others.extend(seen.names.values())
            seen = seen.parent
    others.extend(run.globals.values())
    return any(v is value for v in reachable(others, limit=1000))


def destroy(run: Run, value: Value, span: Span | None) -> None:
    """Run the destructor of an object, then those of its members; containers destroy their elements."""
    if isinstance(value, Instance):
        _destroy_instance(run, value, span)
    elif isinstance(value, Series):
        for item in list(value.all()):
            destroy(run, item, span)
        if not value.items and not value.made and value.element is not None:
            destroy(run, value.element, span)
    elif isinstance(value, Buffer) and value.storage.raw and not value.storage.freed:
        emit_free(run, value, span)
    elif isinstance(value, Handle) and pointers.is_smart(value):
        pointers.end(run, value, span)


def _destroy_instance(run: Run, value: Instance, span: Span | None) -> None:
    from streamlint.interpreter.calls import run_body

    if value.destroyed or value.shared:
        return
    value.destroyed = True
    found = find_method(run, value.definition, value.file, "__del__")
    if found is not None and run.can_enter(found[0]):
        function, owner, file = found
        run_body(run, FunctionValue(function, file, None, value, owner=owner), Environment(), span, teardown=True)
    for declared in reversed(value.definition.fields):
        held = value.attrs.get(declared.name)
        if held is not None and declared.type is not None and not declared.type.pointers and not declared.type.reference:
            destroy(run, held, span)


def delete_object(run: Run, value: Value, node: p.DeleteExpr) -> None:
    """C++ ``delete p``."""
    span = run.node_span(node)
    if isinstance(value, Reference):
        value = run.evaluate(value.target)
    if isinstance(value, Opaque) and value.buffer is not None:
        value = value.buffer
    if isinstance(value, Instance):
        value.shared = False
        destroy(run, value, span)
    elif isinstance(value, Series | Table | Handle):
        destroy(run, value, span)
    elif isinstance(value, Buffer):
        from streamlint.interpreter.effects.memory import free

        free(run, value, Memory.PAGEABLE, span, "delete")


def emit_free(run: Run, value: Buffer, span: Span | None) -> None:
    storage = value.storage
    place = span or (storage.allocated.span if storage.allocated is not None else Span(run.file.path, 0, 0, 0, 0))
    run.machine.free(ops.Free(place, storage.library, "drop", memory=storage.memory, buffer=value, kind="drop"))


def released(run: Run, dropped: Value, span: Span | None) -> None:
    """Python: a name lost this value. Driver memory whose last reference it was is freed."""
    raw = [v for v in reachable([dropped], limit=40) if isinstance(v, Buffer) and v.storage.raw and not v.storage.freed]
    if not raw:
        return
    alive = _alive(run)
    for buffer in raw:
        if id(buffer.storage) not in alive:
            emit_free(run, buffer, span)


def drop_locals(run: Run, environment: Environment, result: Value, receiver: Value | None) -> None:
    """Python: a function's names are gone; what only they held is freed."""
    raw = [
        v for v in reachable(list(environment.names.values()), limit=80) if isinstance(v, Buffer) and v.storage.raw and not v.storage.freed
    ]
    if not raw:
        return
    alive = _alive(run, result, *([receiver] if receiver is not None else []))
    for buffer in raw:
        if id(buffer.storage) not in alive:
            emit_free(run, buffer, None)


def _alive(run: Run, *extra: Value) -> set[int]:
    values: list[Value] = list(extra)
    for frame in run.frames:
        scope: Environment | None = frame.environment
        while scope is not None:
            values.extend(scope.names.values())
            scope = scope.parent
    values.extend(run.globals.values())
    values.extend(run.rooted)
    return {id(v.storage) for v in reachable(values, limit=2000) if isinstance(v, Buffer)}
