"""C++: which of several functions of one name a call means, by the number of its arguments and by what is known of them."""

from __future__ import annotations

from streamlint import program as p
from streamlint.interpreter.arguments import Arguments
from streamlint.interpreter.classes import find_method
from streamlint.interpreter.cpp_types import SIZES, class_of, type_row
from streamlint.interpreter.index import File, accepts, is_declaration
from streamlint.interpreter.run import Frame, Run
from streamlint.interpreter.values import Buffer, Const, Environment, FunctionValue, Instance, Stream, Value
from streamlint.record import replace


def chosen_overload(run: Run, callee: FunctionValue, arguments: Arguments) -> FunctionValue:
    """The function itself, or the sibling that the arguments fit better."""
    if not callee.file.is_cuda or callee.function.is_lambda or arguments.open:
        return callee
    siblings = _siblings(callee)
    if len(siblings) < 2:
        return callee
    given = arguments.positional
    fitting = [f for f in siblings if accepts(f, len(given))]
    if not fitting:
        return callee
    scores = {id(f): _score(run, callee, f, given) for f in fitting}
    best = max(scores.values())
    first = [f for f in fitting if scores[id(f)] == best]
    if any(f is callee.function for f in first):
        return callee
    function = next((f for f in first if not is_declaration(f)), first[0])
    return replace(callee, function=function)


def chosen_constructor(run: Run, value: Instance, arguments: Arguments) -> tuple[p.Function, p.Class, File] | None:
    """The constructor of an object that these arguments mean; in Python there is one."""
    count = len(arguments.positional)
    found = find_method(run, value.definition, value.file, "__init__", count)
    if found is None or not value.file.is_cuda or arguments.open:
        return found
    owner = found[1]
    outside = [f for f in value.file.functions.get(f"{owner.qualname}::{owner.name}", ()) if f.class_name == owner.qualname]
    fitting = [f for f in (*owner.methods.get("__init__", ()), *outside) if accepts(f, count)]
    if count == 0 and not fitting:
        return None  # `C() = default`, which has no body
    if len(fitting) < 2:
        return found
    with run.entered(Frame(None, value.file, Environment(), qualname=owner.qualname), None):  # where its parameters' types are named
        scores = [_score(run, FunctionValue(f, value.file, None), f, arguments.positional) for f in fitting]
    if len(set(scores)) == 1:
        return found
    best = [f for f, score in zip(fitting, scores, strict=True) if score == max(scores)]
    function = next((f for f in best if not is_declaration(f)), best[0])
    linked = run.program.definition(function, value.file) if is_declaration(function) else None
    return (linked[0], owner, linked[1]) if linked is not None else (function, owner, value.file)


def _siblings(callee: FunctionValue) -> list[p.Function]:
    function = callee.function
    if callee.owner is not None and function.name in callee.owner.methods:
        return callee.owner.methods[function.name]
    return [f for f in callee.file.functions.get(function.qualname, ()) if f.qualname == function.qualname]


def _score(run: Run, callee: FunctionValue, function: p.Function, given: list[Value]) -> int:
    """How well the arguments fit the parameters: one for each of its own kind, one off for each that cannot be converted."""
    params = [param for param in function.params if param.kind == "plain"]
    return sum(_fits(run, callee, function, param, value) for param, value in zip(params, given, strict=False))


def _fits(run: Run, callee: FunctionValue, function: p.Function, param: p.Param, value: Value) -> int:
    if param.type is None or param.type.name in (*function.template, "auto", ""):
        return 0
    kind = callee.file.resolve_type(param.type)
    held, row = class_of(run, kind), type_row(run, kind)
    takes_stream = row is not None and row.kind == "stream"
    scalar = kind.name.removeprefix("std::") in SIZES and not kind.pointers
    if isinstance(value, Stream):
        return 1 if takes_stream else -1 if (held is not None and not kind.pointers) or scalar else 0
    if isinstance(value, Instance):
        same = held is not None and held.definition is value.definition
        return 1 if same else -1 if takes_stream or scalar or held is not None else 0
    if isinstance(value, Const):
        if value.value is None:
            return -1 if scalar or (held is not None and not kind.pointers) else 0
        return 1 if scalar else -1 if held is not None and not kind.pointers else 0
    if isinstance(value, Buffer):
        return 1 if kind.pointers or (row is not None and row.kind == "buffer") else -1 if takes_stream or scalar else 0
    return 0
