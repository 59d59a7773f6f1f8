"""Arguments of a call: evaluated from left to right, bound to the parameters of a body."""

from __future__ import annotations

from streamlint import program as p
from streamlint.findings import Span
from streamlint.interpreter.packs import expanded
from streamlint.interpreter.run import Frame, Run
from streamlint.interpreter.values import (
    Const,
    Environment,
    FunctionValue,
    Series,
    Stream,
    Table,
    Value,
)
from streamlint.record import field, record, replace


@record(slots=True)
class Arguments:
    """Evaluated arguments. ``open`` says that there may be more than are seen (``*args`` of unknown length)."""

    positional: list[Value] = field(default_factory=list)
    keywords: dict[str, Value] = field(default_factory=dict)
    open: bool = False
    nodes: tuple[p.Arg, ...] = ()

    def all(self) -> list[Value]:
        return [*self.positional, *self.keywords.values()]


@record(slots=True)
class CallSite:
    """Where a call stands: its node, the span of the API's name, and the whole expression's span."""

    node: p.Node
    span: Span
    name: str = ""
    template: tuple[str, ...] = ()


def evaluate_arguments(run: Run, args: tuple[p.Arg, ...]) -> Arguments:
    found = Arguments(nodes=args)
    for arg in args:
        if arg.stars == 1 and run.file.is_cuda and (pack := expanded(run, arg.value)) is not None:
            found.positional.extend(pack)
            continue
        value = run.evaluate(arg.value)
        if arg.stars == 1:
            if isinstance(value, Series) and value.items is not None:
                found.positional.extend(value.items)
            else:
                found.open = True
        elif arg.stars == 2:
            if isinstance(value, Table):
                found.keywords.update(
                    {str(k.value): value.items[t] for t, k in value.keys.items() if isinstance(k, Const) and t in value.items}
                )
                found.open = found.open or not value.complete
            else:
                found.open = True
        elif arg.keyword is not None:
            found.keywords[arg.keyword] = value
        else:
            found.positional.append(value)
    return found


def bind(run: Run, callee: FunctionValue, arguments: Arguments, site: CallSite) -> Environment:
    """Parameters to arguments. A default is chosen at the call; so is a literal."""
    function = callee.function
    environment = Environment(parent=callee.closure)
    given = [*callee.bound, *arguments.positional]
    keywords = {**callee.keywords, **arguments.keywords}
    params = list(function.params)
    if callee.receiver is not None and not callee.file.is_cuda and params:
        environment.names[params.pop(0).name] = callee.receiver
    for param in params:
        environment.names[param.name] = _argument(run, callee, param, given, keywords, arguments.open, site)
        if param.type is not None:
            environment.types[param.name] = param.type
    if site.template and function.template and not function.class_name:
        for name, text in zip(function.template, site.template, strict=False):
            if (value := _template_value(run, text)) is not None:
                environment.names.setdefault(name, value)
    return environment


def _template_value(run: Run, text: str) -> Value | None:
    """A template's argument that is a value: written out, or one of the caller's own."""
    if text in ("true", "false"):
        return Const(text == "true")
    if text.isdigit():
        return Const(int(text))
    scope = run.frame.environment.find(text)
    held = scope.names[text] if scope is not None else None
    return held if isinstance(held, Const) else None


def _argument(
    run: Run, callee: FunctionValue, param: p.Param, given: list[Value], keywords: dict[str, Value], more: bool, site: CallSite
) -> Value:
    if param.kind == "star":
        rest, given[:] = list(given), []
        return Series(rest, kind="tuple") if not more else Series(None, kind="tuple")
    if param.kind == "double":
        return Table({repr(k): v for k, v in keywords.items()}, {repr(k): Const(k) for k in keywords}, not more)
    if param.kind == "plain" and given:
        return _chosen(given.pop(0), site.span)
    if param.name in keywords:
        return _chosen(keywords.pop(param.name), site.span)
    if more:
        return run.opaque(f"{callee.function.qualname}:{param.name}")
    if param.default is not None:
        with run.entered(Frame(None, callee.file, callee.closure or Environment(), qualname=callee.function.qualname), None):
            return _chosen(run.evaluate(param.default), site.span)
    return run.opaque(f"{callee.function.qualname}:{param.name}")


def _chosen(value: Value, span: Span) -> Value:
    if isinstance(value, Const) and value.origin is None:
        return Const(value.value, span)
    if isinstance(value, Stream) and value.kind == "null" and value.chosen is None:
        return replace(value, chosen=span)
    return value
