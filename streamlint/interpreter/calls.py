"""Calls: what is called decides whether a body is run, a model is applied, or the call is opaque."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint import program as p
from streamlint.interpreter import pointers
from streamlint.interpreter.arguments import Arguments, CallSite, evaluate_arguments
from streamlint.interpreter.attributes import get_attribute
from streamlint.interpreter.bodies import call_function, call_method, is_kernel
from streamlint.interpreter.builtins import BUILTINS
from streamlint.interpreter.container_methods import call_container_method
from streamlint.interpreter.cpp_types import SIZES
from streamlint.interpreter.crossing import Bound, call_bound, linked
from streamlint.interpreter.custom_gradients import applied
from streamlint.interpreter.declarations import construct, library_object
from streamlint.interpreter.effects import apply
from streamlint.interpreter.effects.launches import numba_launch
from streamlint.interpreter.guards import called_name
from streamlint.interpreter.guesses import assumed_method
from streamlint.interpreter.named_tuples import as_table
from streamlint.interpreter.nested import chained, listed
from streamlint.interpreter.objects import instantiate
from streamlint.interpreter.opaque import opaque_call
from streamlint.interpreter.overloads import chosen_overload
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import (
    Buffer,
    ClassValue,
    Const,
    FunctionValue,
    Handle,
    Instance,
    KernelConfig,
    LibraryName,
    Method,
    Opaque,
    Prepared,
    Reference,
    Series,
    Stream,
    Table,
    Value,
)
from streamlint.models import Row


def call(run: Run, node: p.Call) -> Value:
    """Evaluate a call: callee, arguments from left to right, then what it does."""
    function = node.function
    if isinstance(function, p.Attr):
        return call_on(run, node, run.evaluate(function.value))
    return call_value(run, node, run.evaluate(function))


def call_value(run: Run, node: p.Call, callee: Value) -> Value:
    """Evaluate a call whose callee was evaluated."""
    arguments = evaluate_arguments(run, node.args)
    at = p.called_at(node)
    site = CallSite(node, run.span(at), called_name(node.function), node.template)
    if run.context.callback is not None and _hands_on(callee, site):
        with run.within(handed=len(run.context.calls) + 1):
            result = invoke(run, callee, arguments, site)
    else:
        result = invoke(run, callee, arguments, site)
    return result


def _hands_on(callee: Value, site: CallSite) -> bool:
    """Whether a host callback only calls here what it was registered with: an object, or a function under another name than its own."""
    if isinstance(callee, FunctionValue):
        return callee.function.is_lambda or site.name.rpartition("::")[2] != callee.function.name
    return isinstance(callee, Instance)


def call_on(run: Run, node: p.Call, receiver: Value) -> Value:
    """Evaluate a call of a method, of whose receiver the value is known."""
    assert isinstance(node.function, p.Attr)
    return call_value(run, node, _method_of(run, node.function, receiver))


def _method_of(run: Run, function: p.Attr, receiver: Value) -> Value:
    if isinstance(receiver, Reference):
        receiver = run.at(receiver)
    if isinstance(receiver, Opaque) and isinstance(receiver.attrs.get(function.name), Opaque):
        return Method(receiver, function.name)
    found = get_attribute(run, receiver, function.name, function)
    if isinstance(receiver, Instance) and isinstance(found, Opaque) and found.name == f"{receiver.term}.{function.name}":
        inherited = isinstance(function.value, p.Call) and not run.file.is_cuda
        return Method(receiver, function.name) if inherited else found  # a method of a base out of view: it has the object
    return found


def invoke(run: Run, callee: Value, arguments: Arguments, site: CallSite) -> Value:
    """Call a value."""
    run.step()
    if isinstance(callee, FunctionValue):
        return call_function(run, chosen_overload(run, callee, arguments), arguments, site)
    if isinstance(callee, ClassValue):
        return instantiate(run, callee, arguments, site)
    if isinstance(callee, LibraryName):
        return _call_library(run, callee, arguments, site)
    if isinstance(callee, Method):
        return _call_method_value(run, callee, arguments, site)
    if isinstance(callee, Prepared):
        return invoke(run, callee.callee, _with_prepared(callee, arguments), site)
    if isinstance(callee, Bound):
        return call_bound(run, callee, arguments, site)
    if isinstance(callee, KernelConfig):
        return _launch(run, callee, arguments, site)
    if isinstance(callee, Instance):
        return _call_instance(run, callee, arguments, site)
    if isinstance(callee, Handle):
        return _call_handle(run, callee, arguments, site)
    if isinstance(callee, Const):
        return opaque_call(run, site.name, None, arguments, site)  # a name that code out of view has given something to call
    return opaque_call(run, callee.term, callee, arguments, site)


def _with_prepared(callee: Prepared, arguments: Arguments) -> Arguments:
    keywords = {**callee.keywords, **arguments.keywords}
    return Arguments([*callee.bound, *arguments.positional], keywords, arguments.open, () if callee.bound else arguments.nodes)


def _launch(run: Run, config: KernelConfig, arguments: Arguments, site: CallSite) -> Value:
    """A kernel of numba, or of another compiler (Triton): only what such a decorator makes of a function can be subscripted."""
    if isinstance(config.kernel, FunctionValue) and not is_kernel(config.kernel):
        return opaque_call(run, config.kernel.function.name, None, arguments, site)
    return numba_launch(run, config, arguments, site)


def _call_library(run: Run, callee: LibraryName, arguments: Arguments, site: CallSite) -> Value:
    name = _library_name(run, callee.name)
    if (bound := linked(run, name)) is not None:
        return call_bound(run, bound, arguments, site)
    if run.file.is_cuda and name.rpartition("::")[2] in ("make_unique", "make_shared"):
        return _make_smart(run, name, arguments, site)
    if not run.file.is_cuda and (builtin := BUILTINS.get(name)) is not None:
        found = builtin(run, arguments, site)
        if found is not None:
            return found
    models = run.file.models
    row = models.call(name)
    if row is None and run.file.is_cuda and name.removeprefix("std::") in SIZES and len(arguments.positional) == 1:
        return arguments.positional[0]  # size_t(n)
    if row is None and run.file.is_cuda:
        resolved = run.file.resolve_type(p.Type(name))
        row = models.call(taken) if (taken := run.file.taken_in(name)) is not None else None
        if row is None and resolved.name != name:
            return construct(run, resolved, [(None, v) for v in arguments.positional], site.span, name, site.node)
    if row is None and run.file.is_cuda:
        spaces = (*run.file.module.using, *(_namespaces(arguments) if "::" not in name else ()))
        row = next((r for prefix in spaces if (r := models.call(f"{prefix}::{name}")) is not None), None)
    if row is not None:
        return apply(run, row, name, None, arguments, site)
    known = models.types.get(name)
    if known is not None:
        return library_object(run, known, name, arguments, site)
    return opaque_call(run, name, None, arguments, site)


def _namespaces(arguments: Arguments) -> Iterator[str]:
    """C++: where a plain name is looked for besides the scopes around it: in the namespaces of the arguments' types."""
    for value in arguments.positional:
        if isinstance(value, Stream):
            yield value.library  # a policy stands for its stream
        elif isinstance(value, Buffer | Handle | Opaque) and "::" in value.type:
            yield value.type.rpartition("::")[0]


def _make_smart(run: Run, name: str, arguments: Arguments, site: CallSite) -> Value:
    """``std::make_unique<T>(args)``."""
    text = site.template[0] if site.template else ""
    kind = p.Type(text.removesuffix("[]").strip())
    if text.endswith("[]"):
        row = run.file.models.call("malloc")
        assert row is not None
        memory = apply(run, row, "malloc", None, Arguments(), site)
        return pointers.make(run, p.Type("std::unique_ptr" if "unique" in name else "std::shared_ptr", (kind,)), [memory])
    value = construct(run, kind, [(None, v) for v in arguments.positional], site.span, f"{name}{run.visit_key(site.node)}")
    return pointers.make(run, p.Type("std::unique_ptr" if "unique" in name else "std::shared_ptr", (kind,)), [value])


def _library_name(run: Run, name: str) -> str:
    """The public name: HIP's aliases are CUDA's, a leading ``::`` is dropped."""
    if run.file.is_cuda:
        name = name.lstrip(":")
        if name.startswith("hip") and len(name) > 3 and name[3].isupper():
            return f"cuda{name[3:]}"
    return name


def _call_method_value(run: Run, callee: Method, arguments: Arguments, site: CallSite) -> Value:
    receiver = callee.receiver
    if isinstance(receiver, ClassValue) and (result := applied(run, receiver, arguments, site)) is not None:
        return result
    if isinstance(receiver, FunctionValue):
        # numba's kernel.forall(n, stream=s), functools wrappers.
        return opaque_call(run, f"{receiver.function.name}.{callee.name}", receiver, arguments, site)
    if isinstance(receiver, Series | Table | Const) or (
        isinstance(receiver, Buffer) and receiver.leaves is not None and callee.row is None
    ):
        found = call_container_method(run, receiver, callee.name, arguments, site)
        if found is not None:
            return found
    if callee.name == "_asdict" and (table := as_table(receiver)) is not None:
        return table
    if pointers.is_smart(receiver) and callee.name in ("get", "release", "reset"):
        return _smart_method(run, receiver, callee.name, arguments, site)
    if callee.name in _FILLING and isinstance(held := listed(receiver), Series) and held is not receiver:
        return call_container_method(run, held, callee.name, arguments, site) or Const(None)
    row = callee.row
    if row is not None:
        return apply(run, row, _row_name(row, callee.name), receiver, arguments, site)
    assumed = assumed_method(run, receiver, callee.name, arguments, site)
    if assumed is not None:
        return assumed
    return opaque_call(
        run, f"{receiver.term if isinstance(receiver, Opaque) else type(receiver).__name__}.{callee.name}", receiver, arguments, site
    )


_FILLING = ("append", "extend")  # of a list of modules


def _smart_method(run: Run, receiver: Value, name: str, arguments: Arguments, site: CallSite) -> Value:
    target = pointers.pointee(receiver) or Const(None)
    assert isinstance(receiver, Handle)
    if name == "reset":
        pointers.end(run, receiver, site.span)
        if arguments.positional:
            receiver.attrs["(pointee)"] = arguments.positional[0]
        return Const(None)
    if name == "release":
        receiver.attrs.pop("(pointee)", None)
    return target


def _row_name(row: Row, method: str) -> str:
    """The public name of a method under a row; where that is a pattern (``torch.Tensor.*_``) the name that it stands for."""
    known = next((n for n in row.names if n.endswith((f".{method}", f"::{method}"))), row.names[0] if row.names else method)
    head, dot, last = known.rpartition(".")
    return f"{head}.{method}" if dot and "*" in last else known


def _call_instance(run: Run, callee: Instance, arguments: Arguments, site: CallSite) -> Value:
    for name in ("operator()",) if run.file.is_cuda else ("__call__", "forward"):
        found = call_method(run, callee, name, arguments.positional, site.span, arguments, site)
        if found is not None:
            return found
    return opaque_call(run, callee.definition.name, callee, arguments, site)


def _call_handle(run: Run, callee: Handle, arguments: Arguments, site: CallSite) -> Value:
    if run.file.is_cuda and (operator := run.file.models.method(callee.type, "operator()", "::")) is not None:
        return apply(run, operator, f"{callee.type}::operator()", callee, arguments, site)
    if (modules := chained(run, callee)) and len(arguments.all()) == 1:
        return _call_chain(run, modules, arguments, site)
    row = run.file.models.method(callee.type, "__call__")
    if row is not None:
        return apply(run, row, f"{callee.type}.__call__", callee, arguments, site)
    return opaque_call(run, callee.type, callee, arguments, site)


def _call_chain(run: Run, modules: list[Value], arguments: Arguments, site: CallSite) -> Value:
    """``nn.Sequential``: each module is called with what the one before gave."""
    for module in modules:
        arguments = Arguments([invoke(run, module, arguments, site)])
    return arguments.positional[0]
