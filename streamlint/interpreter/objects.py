"""Making objects of classes at hand: their fields, and their constructors run in place."""

from __future__ import annotations

import functools

from streamlint import program as p
from streamlint.interpreter.arguments import Arguments, CallSite, bind, evaluate_arguments
from streamlint.interpreter.bodies import call_function
from streamlint.interpreter.classes import bases_of, find_method, lineage
from streamlint.interpreter.index import File
from streamlint.interpreter.named_tuples import is_named_tuple
from streamlint.interpreter.overloads import chosen_constructor
from streamlint.interpreter.run import Frame, Run
from streamlint.interpreter.spelling import says
from streamlint.interpreter.values import (
    ClassValue,
    Environment,
    FunctionValue,
    Instance,
    Stream,
    Value,
)
from streamlint.record import replace


def instantiate(run: Run, made: ClassValue, arguments: Arguments, site: CallSite) -> Value:
    """``C(args)``: an object, its constructor run in place; never while another of the class is made, which would need one as well."""
    if id(made.definition) in run.stack:
        return run.opaque(f"{made.definition.name}{run.visit_key(site.node)}")
    value = run.only.get(id(made.definition)) or Instance(made.definition, made.file, types=made.types)
    if not made.file.is_cuda and _keeps_one(made.definition):
        run.only[id(made.definition)] = value
    run.rooted.append(value)
    try:
        construct(run, value, arguments, site)
    finally:
        run.rooted.pop()
    return value


@functools.lru_cache(maxsize=4096)
def _keeps_one(definition: p.Class) -> bool:
    """Whether ``__new__`` gives the one object that the class keeps (``return cls._instance``): its constructor runs on that each time."""
    makers = definition.methods.get("__new__", ())
    given = [node.value for maker in makers for part in maker.body for node in p.walk(part) if isinstance(node, p.Return)]
    return bool(given) and all(
        isinstance(value, p.Attr) and isinstance(value.value, p.Name) and value.value.id in ("cls", definition.name) for value in given
    )


def construct(run: Run, value: Instance, arguments: Arguments, site: CallSite) -> None:
    """Give the fields their defaults and run the constructor."""
    if value.file.is_cuda:
        run.stack.append(id(value.definition))
        try:
            initialise_fields(run, value, arguments, site)
        finally:
            run.stack.pop()
    if not value.file.is_cuda and is_dataclass(value.definition):
        _bind_fields(run, value, arguments)
        arguments = Arguments()
        found = find_method(run, value.definition, value.file, "__post_init__")
    else:
        found = chosen_constructor(run, value, arguments)
    if found is not None:
        function, owner, file = found
        call_function(run, FunctionValue(function, file, None, value, owner=owner), arguments, site)


_OF_DATA = frozenset({"dataclass", "dataclasses"})


def is_dataclass(definition: p.Class) -> bool:
    def names(node: p.Expression) -> str:
        inner = node.function if isinstance(node, p.Call) else node
        return inner.name if isinstance(inner, p.Attr) else inner.id if isinstance(inner, p.Name) else ""

    return is_named_tuple(definition) or any(
        says(names(d), _OF_DATA) or names(d) in ("define", "frozen", "attrs") for d in definition.decorators
    )


def _bind_fields(run: Run, value: Instance, arguments: Arguments) -> None:
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
    from streamlint.interpreter.calls import invoke

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


def initialise_fields(run: Run, value: Instance, arguments: Arguments, site: CallSite) -> None:
    """C++: default member initialisers, then the constructor's member initialisers."""
    from streamlint.interpreter.declarations import make_declared

    found = chosen_constructor(run, value, arguments)
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
                if declared.name in initialised and found is not None:
                    # The constructor may stand in another file than the class, with names of its own.
                    with run.entered(replace(frame, file=found[2]), site.span):
                        given = evaluate_arguments(run, initialised[declared.name])
                elif aggregate:
                    given = Arguments([aggregate.pop(0)])
                elif found is None and declared.name in arguments.keywords:
                    given = Arguments([arguments.keywords[declared.name]])
                else:
                    given = None
                made = make_declared(run, declared, given, f"{value.term}.{declared.name}")
                if given is None and isinstance(made, Stream) and made.kind == "null" and made.chosen is None:
                    made = replace(made, chosen=site.span, how="default")
                value.attrs[declared.name] = made
    _construct_bases(run, value, initialised, environment, site)


def _construct_bases(
    run: Run, value: Instance, initialised: dict[str, tuple[p.Arg, ...]], environment: Environment, site: CallSite
) -> None:
    """``C() : Base(args) {}``: the constructors of the bases at hand that are given arguments."""
    for name, args in initialised.items():
        base = next((b for b, _, n in bases_of(run, value.definition, value.file) if b is not None and n.rpartition("::")[2] == name), None)
        if base is not None:
            with run.entered(Frame(None, value.file, environment, value), site.span):
                given = evaluate_arguments(run, args)
            constructor = find_method(run, base, value.file, "__init__", len(given.positional))
            if constructor is not None:
                call_function(run, FunctionValue(constructor[0], constructor[2], None, value), given, site)


def _delegate(run: Run, value: Instance, constructor: p.Function, file: File, arguments: Arguments, site: CallSite) -> None:
    """``C(int n) : C() {}``: the other constructor runs first."""
    environment = bind(run, FunctionValue(constructor, file, None, value), arguments, site)
    with run.entered(Frame(None, file, environment, value, qualname=constructor.qualname), site.span):
        given = evaluate_arguments(run, dict(constructor.initialisers)[value.definition.name])
    other = chosen_constructor(run, value, given)
    if other is not None and other[0] is not constructor:
        construct(run, value, given, site)
