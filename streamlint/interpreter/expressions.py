"""Expressions to values. One function a node type; what CUDA does is in ``effects``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamlint import program as p
from streamlint.interpreter import items
from streamlint.interpreter.addresses import is_address
from streamlint.interpreter.arithmetic import combine, tensor_arithmetic
from streamlint.interpreter.attributes import get_attribute, settle_method
from streamlint.interpreter.calls import call, call_on, call_value
from streamlint.interpreter.choices import choice, chosen
from streamlint.interpreter.conditions import compare
from streamlint.interpreter.declarations import cast_to, construct, new_object
from streamlint.interpreter.extension import TENSORS
from streamlint.interpreter.lifetimes import delete_object
from streamlint.interpreter.names import lookup
from streamlint.interpreter.packs import expanded
from streamlint.interpreter.places import is_place, looked_at, pointer_to
from streamlint.interpreter.queries import compared
from streamlint.interpreter.run import MAX_STEPS, OutOfBudget, Run
from streamlint.interpreter.values import (
    Buffer,
    Const,
    FunctionValue,
    Instance,
    LibraryName,
    Series,
    Table,
    Value,
    is_plain,
)


def evaluate(run: Run, node: p.Expression) -> Value:
    """The value of an expression, with its effects on the path."""
    run.steps += 1
    if run.steps > MAX_STEPS:
        raise OutOfBudget
    return _EVALUATORS[node.__class__](run, node)


def _const(run: Run, node: p.Const) -> Value:
    return Const(node.value)


def _name(run: Run, node: p.Name) -> Value:
    value = lookup(run, node.id)
    if run.file.is_cuda:
        _read_variable(run, node)
    return value


def _read_variable(run: Run, node: p.Name) -> None:
    """A C++ variable whose address was given to a copy is memory: naming it reads it."""
    scope = run.frame.environment.find(node.id)
    if scope is not None and node.id in scope.addressed:
        from streamlint.interpreter.effects.host import host_read

        host_read(run, scope.addressed[node.id], run.node_span(node), node.id)


def _chain(run: Run, node: p.Expression) -> Value:
    """What leans to the left (``a.b(c)[d] + e``) is evaluated in a loop: chains of a thousand calls are written by programs."""
    links: list[p.Expression] = []
    while True:
        links.append(node)
        node = _left(node)
        if node.__class__ not in _LINKS:
            break
        run.steps += 1
        if run.steps > MAX_STEPS:
            raise OutOfBudget
    value = evaluate(run, node)
    while links:
        link = links.pop()
        value = _LINKS[link.__class__](run, link, value)
    return value


def _left(node: Any) -> p.Expression:
    """What a link of a chain needs first."""
    if node.__class__ is p.Call:
        function: p.Expression = node.function
        return function.value if function.__class__ is p.Attr else function
    return node.left if node.__class__ is p.Binary else node.value


def _attr(run: Run, node: p.Attr, value: Value) -> Value:
    return settle_method(run, get_attribute(run, value, node.name, node))


def _index(run: Run, node: p.Index, value: Value) -> Value:
    found = items.get_item(run, value, node)
    return looked_at(run, found, run.node_span(node), "operator[]")


def _call(run: Run, node: p.Call, left: Value) -> Value:
    is_method = node.function.__class__ is p.Attr
    value = call_on(run, node, left) if is_method else call_value(run, node, left)
    if not is_place(value):
        return value
    return looked_at(run, value, run.node_span(node), node.function.name if isinstance(node.function, p.Attr) else "call")


def _launch(run: Run, node: p.Launch) -> Value:
    from streamlint.interpreter.effects.launches import chevron_launch

    return chevron_launch(run, node)


def _unary(run: Run, node: p.Unary) -> Value:
    if node.op == "not":
        value = evaluate(run, node.operand)
        from streamlint.interpreter.unknowns import truth

        known = truth(value)
        return Const(not known) if known is not None else run.opaque(f"not {value.term}", value)
    value = evaluate(run, node.operand)
    if isinstance(value, Const) and isinstance(value.value, int | float):
        if node.op in "-+":
            return Const(-value.value if node.op == "-" else +value.value)
        if node.op == "~" and isinstance(value.value, int):
            return Const(~value.value)
    if isinstance(value, Buffer) and (value.type in TENSORS or not run.file.is_cuda):
        return tensor_arithmetic(run, node, value)
    result = run.opaque(f"{node.op}{value.term}", value)
    result.plain = is_plain(value)
    return result


def _binary(run: Run, node: p.Binary, left: Value) -> Value:
    right = evaluate(run, node.right)
    if node.op == ",":
        return right
    return combine(run, node, node.op, left, right)


def _compare(run: Run, node: p.Compare) -> Value:
    left, right = evaluate(run, node.left), evaluate(run, node.right)
    known = compare(node.op, left, right)
    if known is not None:
        return Const(known)
    touched = any(isinstance(v, Buffer) for v in (left, right)) and not any(map(is_address, (left, right)))
    if node.op not in ("is", "is not", "in", "not in") and touched and not run.file.is_cuda:
        return tensor_arithmetic(run, node, left, right, name="comparison")
    return compared(run, f"{left.term} {node.op} {right.term}", node.op, left, right)


def _bool(run: Run, node: p.Bool) -> Value:
    value: Value = Const(None)
    before = len(run.decisions)
    for index, part in enumerate(node.values):
        if index == len(node.values) - 1:
            return chosen(run, evaluate(run, part), before)
        if choice(run, part, *node.values) != (node.op == "and"):
            # The value that decided it: `x or default` is x where x is true.
            return chosen(run, Const(False), before) if node.op == "and" else _again(run, part)
    return value


def _again(run: Run, part: p.Expression) -> Value:
    """The value of an operand that was just tested, without its effects a second time."""
    if isinstance(part, p.Name | p.Attr):
        return evaluate(run, part)
    return run.opaque(f"or{run.visit_key(part)}")


def _conditional(run: Run, node: p.Conditional) -> Value:
    before = len(run.decisions)
    arm = node.then if choice(run, node.test, node.then, node.otherwise) else node.otherwise
    return chosen(run, evaluate(run, arm), before)


def _lambda(run: Run, node: p.Lambda) -> Value:
    return FunctionValue(node.function, run.file, run.frame.environment, receiver=run.frame.this if run.file.is_cuda else None)


def _collection(run: Run, node: p.Collection) -> Value:
    values: list[Value] = []
    for item in node.items:
        if isinstance(item, p.Starred):
            if run.file.is_cuda and (pack := expanded(run, item.value)) is not None:
                values.extend(pack)
                continue
            inner = evaluate(run, item.value)
            if isinstance(inner, Series) and inner.items is not None:
                values.extend(inner.items)
                continue
            return Series(None, element=items.element_of(run, inner, "*"), kind=node.kind)
        values.append(evaluate(run, item))
    return Series(values, kind=node.kind)


def _mapping(run: Run, node: p.Mapping) -> Value:
    table = Table()
    for key, value in node.items:
        held = evaluate(run, value)
        if key is None:
            if isinstance(held, Table):
                table.items.update(held.items)
                table.complete = table.complete and held.complete
            else:
                table.complete = False
            continue
        name = evaluate(run, key)
        table.items[name.term] = held
        table.keys[name.term] = name
    return table


def _starred(run: Run, node: p.Starred) -> Value:
    return evaluate(run, node.value)


def _comprehension(run: Run, node: p.Comprehension) -> Value:
    from streamlint.interpreter.loops import comprehension

    return comprehension(run, node)


def _format(run: Run, node: p.Format) -> Value:
    from streamlint.interpreter.effects.host import read_values

    values = [evaluate(run, value) for value in node.values]
    read_values(run, values, run.node_span(node), "formatting")
    return run.opaque(f"text{run.visit_key(node)}")


def _await(run: Run, node: p.Await) -> Value:
    return evaluate(run, node.value)


def _yield(run: Run, node: p.Yield) -> Value:
    value = evaluate(run, node.value) if node.value is not None else Const(None)
    consumer = run.frame.on_yield
    if consumer is not None and node.delegate:
        from streamlint.interpreter.loops import delegate

        return delegate(run, node, value, consumer)
    if consumer is not None:
        return consumer(value)
    # The consumer is out of view: it may wait for anything.
    run.machine.forget_everything()
    return run.opaque(f"sent{run.visit_key(node)}")


def _assign_expression(run: Run, node: p.AssignExpr) -> Value:
    from streamlint.interpreter.assignment import assign, augmented

    value = evaluate(run, node.value)
    if node.op is not None:
        value = augmented(run, node, node.target, node.op, value)
    else:
        assign(run, node.target, value, node)
    return value


def _address_of(run: Run, node: p.AddressOf) -> Value:
    target = node.value
    if isinstance(target, p.Name):
        scope = run.frame.environment.find(target.id)
        if scope is not None and isinstance(scope.names[target.id], Instance):
            return scope.names[target.id]
        value = lookup(run, target.id) if scope is None else None
        if isinstance(value, FunctionValue | LibraryName) and not _is_undeclared(run, target.id, value):
            return value
    if isinstance(target, p.Index):
        return items.address_of_element(run, target)
    if isinstance(target, p.Deref):
        return evaluate(run, target.value)
    if isinstance(target, p.Call):
        value = call(run, target)
        if isinstance(value, Buffer):
            return pointer_to(value) if is_place(value) else value
        return value if isinstance(value, Instance) else run.address(target)
    return run.address(target)


def _is_undeclared(run: Run, name: str, value: Value) -> bool:
    """Cython: a variable that was declared, and given nothing yet."""
    module = run.file.module
    return run.file.is_cython and isinstance(value, LibraryName) and name not in module.c_names and name not in module.imports


def _deref(run: Run, node: p.Deref) -> Value:
    value = evaluate(run, node.value)
    return items.dereference(run, value, node)


def _cast(run: Run, node: p.Cast) -> Value:
    value = evaluate(run, node.value)
    function = run.frame.function
    if function is not None and node.type.name in function.template and not node.type.pointers:
        return value  # what a template is given for the type is not looked up
    return cast_to(run, value, node.type)


def _new(run: Run, node: p.New) -> Value:
    return new_object(run, node)


def _delete(run: Run, node: p.DeleteExpr) -> Value:
    delete_object(run, evaluate(run, node.value), node)
    return Const(None)


def _construct(run: Run, node: p.Construct) -> Value:
    return construct(run, node.type, [(a.keyword, evaluate(run, a.value)) for a in node.args], run.node_span(node))


def _unknown(run: Run, node: p.Unknown) -> Value:
    values = [evaluate(run, part) for part in node.parts]
    return run.opaque(f"unknown{run.visit_key(node)}", *values)


def _slice(run: Run, node: p.Slice) -> Value:
    values = [evaluate(run, part) for part in (node.lower, node.upper, node.step) if part is not None]
    return run.opaque(f"slice({', '.join(v.term for v in values)})")


_LINKS: dict[type, Callable[[Run, Any, Value], Value]] = {p.Attr: _attr, p.Index: _index, p.Call: _call, p.Binary: _binary}
_EVALUATORS: dict[type, Callable[[Run, Any], Value]] = {
    p.Const: _const,
    p.Name: _name,
    p.Attr: _chain,
    p.Index: _chain,
    p.Call: _chain,
    p.Launch: _launch,
    p.Unary: _unary,
    p.Binary: _chain,
    p.Compare: _compare,
    p.Bool: _bool,
    p.Conditional: _conditional,
    p.Lambda: _lambda,
    p.Collection: _collection,
    p.Mapping: _mapping,
    p.Starred: _starred,
    p.Comprehension: _comprehension,
    p.Format: _format,
    p.Await: _await,
    p.Yield: _yield,
    p.AssignExpr: _assign_expression,
    p.AddressOf: _address_of,
    p.Deref: _deref,
    p.Cast: _cast,
    p.New: _new,
    p.DeleteExpr: _delete,
    p.Construct: _construct,
    p.Unknown: _unknown,
    p.Slice: _slice,
}

Run.evaluate = evaluate  # type: ignore[method-assign, assignment]
