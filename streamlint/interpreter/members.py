"""Members of objects and classes at hand: fields, methods, properties, and what other methods assign."""

from __future__ import annotations

import functools

from streamlint import program as p
from streamlint.findings import Span
from streamlint.interpreter import pointers
from streamlint.interpreter.arguments import Arguments, CallSite
from streamlint.interpreter.bodies import call_function
from streamlint.interpreter.classes import find_method, library_bases, lineage
from streamlint.interpreter.declarations import make_declared
from streamlint.interpreter.filled import filled_elsewhere
from streamlint.interpreter.foreign import typed_value
from streamlint.interpreter.index import File, assigned_attributes
from streamlint.interpreter.roots import declares_number, parameters
from streamlint.interpreter.run import Frame, Run
from streamlint.interpreter.values import (
    ClassValue,
    Const,
    Environment,
    FunctionValue,
    Handle,
    Instance,
    Opaque,
    Stream,
    Value,
)


def member(run: Run, value: Instance, name: str, node: p.Node | None = None) -> Value | None:
    """An attribute or a bound method of an object at hand. ``node`` is where it is asked for: a property runs there."""
    run.read.add(name)
    if name in value.attrs:
        held = value.attrs[name]
        if value.foreign and not value.file.is_cuda and isinstance(held, Const) and held.value in (None, 0, False):
            return _assigned_elsewhere(run, value, name) or held
        if value.foreign and isinstance(held, Handle):
            _own(run, value, name, held)
        return _pointed_to(run, value, name, held) if value.foreign and isinstance(held, Opaque) else held
    found = find_method(run, value.definition, value.file, name)
    if found is not None:
        function, owner, file = found
        return _bound(run, value, function, owner, file, node)
    for owner, file in lineage(run, value.definition, value.file):
        for declared in owner.fields:
            if declared.name == name:
                return _class_field(run, value, declared, owner, file)
    if not value.file.is_cuda:
        return _assigned_elsewhere(run, value, name)
    return None


def _pointed_to(run: Run, value: Instance, name: str, held: Opaque) -> Value:
    """C++: a member of an object from out of view; the object behind it, where it is a pointer to one of a class at hand."""
    kind, term = held.cpp_type, f"{value.term}.{name}"
    untouched = not held.attrs and held.buffer is None and held.name in (term, f"uninitialised:{term}")
    if kind is None or kind.pointers != 1 or not untouched or len(run.frames) > 4:
        return held
    made = typed_value(run, kind, term)
    if not isinstance(made, Instance):
        made = filled_elsewhere(run, value, name)
    if made is not None:
        value.attrs[name] = made
        if isinstance(made, Instance):
            _share_streams(run, value, made)
        return made
    return held


def _share_streams(run: Run, owner: Instance, made: Instance) -> None:
    """Members of one object may well have been given one stream: what their constructors were handed is not known to be different."""
    for name, held in list(made.attrs.items()):
        if isinstance(held, Stream) and held.kind in ("parameter", "foreign"):
            made.attrs[name] = run.memo.setdefault(f"handed to members of {owner.term}", held)


def _own(run: Run, value: Instance, name: str, held: Handle) -> None:
    """C++: a smart pointer of an object from out of view, which another method has set, gets the object that it owns."""
    kind = pointers.set_elsewhere(held) if pointers.is_smart(held) else None
    made = typed_value(run, kind, f"*{value.term}.{name}") if kind is not None and kind.pointers == 1 and len(run.frames) <= 4 else None
    if isinstance(made, Instance):
        pointers.point(held, made)
        _share_streams(run, value, made)


def _bound(run: Run, value: Instance, function: p.Function, owner: p.Class, file: File, node: p.Node | None) -> Value:
    kinds = {d.id if isinstance(d, p.Name) else d.name if isinstance(d, p.Attr) else "" for d in function.decorators}
    if kinds & {"property", "cached_property"}:
        bound = FunctionValue(function, file, None, value, owner=owner)
        span = Span(file.path, *function.at) if node is None else run.node_span(node)
        result = call_function(run, bound, Arguments(), CallSite(node or function, span, function.name))
        if "cached_property" in kinds:
            value.attrs[function.name] = result
        return result
    if "staticmethod" in kinds or (file.is_cuda and function.static):
        return FunctionValue(function, file, None, None, owner=owner)
    if "classmethod" in kinds:
        return FunctionValue(function, file, None, ClassValue(value.definition, value.file), owner=owner)
    return FunctionValue(function, file, None, value, owner=owner)


def _class_field(run: Run, value: Instance, declared: p.Field, owner: p.Class, file: File) -> Value:
    value.attrs[declared.name] = run.opaque(f"uninitialised:{value.term}.{declared.name}")  # what its own default may name
    with run.entered(Frame(None, file, Environment(), value if file.is_cuda else None, qualname=owner.qualname), None):
        if file.is_cuda:
            made = make_declared(run, declared, None, f"{value.term}.{declared.name}")
        elif declared.value is not None:
            made = run.evaluate(declared.value)
        else:
            made = run.opaque(f"{value.term}.{declared.name}")
            made.plain = declares_number(declared.annotation)
    value.attrs[declared.name] = made
    return made


def _assigned_elsewhere(run: Run, value: Instance, name: str) -> Value | None:
    """What another method gives an attribute: its expression, evaluated with unknown parameters, if there is one such."""
    key = f"sweep:{value.term}.{name}"
    if key in run.memo:
        return run.memo[key]
    if key in run.absent:
        return None
    found = []
    for owner, file in lineage(run, value.definition, value.file):
        for overloads in owner.methods.values():
            for function in overloads:
                for expression in assigned_attributes(function).get(name, ()):
                    if not (isinstance(expression, p.Const) and expression.value is None):
                        found.append((function, expression, file))
    if len(found) != 1:
        run.absent.add(key)
        return None
    if len(run.frames) > 5 or id(found[0][0]) in run.stack:
        return None
    function, expression, file = found[0]
    run.memo[key] = run.opaque(f"{value.term}.{name}")
    names = parameters(run, function, file)
    names[function.params[0].name] = value
    with (
        run.entered(Frame(function, file, Environment(names), qualname=function.qualname), None),
        run.within(setup=True, loops=(), guards=(), callback=None),
        run.machine.long_ago(),
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


def _library_parent(run: Run, receiver: Instance) -> Value | None:
    """What ``super()`` is where the class behind is a module of a library: it shares the object's attributes, its device too."""
    models = run.file.models
    for base in sorted(library_bases(run, receiver.definition, receiver.file)):
        row = models.type_named(base)
        if row is not None and row.kind == "module":
            return Handle(base, f"super:{receiver.term}", attrs=receiver.attrs, unknown=True)
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
        return _library_parent(run, receiver) or run.opaque("super()")
    definition, file = line[position + 1]
    view = Instance(definition, file, foreign=receiver.foreign, name=receiver.term)
    view.attrs = receiver.attrs
    return view
