"""Statements. One function a node type; control leaves through the signals of ``run``."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

from streamlint import program as p
from streamlint.interpreter import narrowing
from streamlint.interpreter.assignment import assign, augmented
from streamlint.interpreter.choices import told_by
from streamlint.interpreter.conditions import holds, suppose
from streamlint.interpreter.early import guard_behind
from streamlint.interpreter.endings import arms_leave, ends_the_program, gives_back, last_way_on
from streamlint.interpreter.guards import asks_for_another, guard_of
from streamlint.interpreter.lifetimes import SWITCHED, delete_object, leave_scope, released, switch_back
from streamlint.interpreter.places import returned
from streamlint.interpreter.queries import told_equal
from streamlint.interpreter.run import BreakSignal, ContinueSignal, Decision, RaiseSignal, ReturnSignal, Run
from streamlint.interpreter.values import ClassValue, Const, Environment, FunctionValue, Handle, Instance, Value


def execute(run: Run, body: list[p.Statement]) -> None:
    """Run the statements in order."""
    for index, statement in enumerate(body):
        run.step()
        if run.reached is not None:
            run.reached.add((run.file.path, statement.at[0]))
        _EXECUTORS[type(statement)](run, statement)
        if isinstance(statement, p.If) and not statement.otherwise and (guard := guard_behind(run, body, index)) is not None:
            with run.within_guard(guard):
                execute(run, body[index + 1 :])
            return


def execute_scope(run: Run, body: list[p.Statement]) -> None:
    """A C++ scope: what is declared in it dies at its end, in reverse order."""
    frame = run.frame
    before = frame.environment
    frame.environment = Environment(parent=before)
    try:
        execute(run, body)
    except RaiseSignal:
        for value in reversed(frame.environment.owned):
            if isinstance(value, Handle) and SWITCHED in value.attrs:
                switch_back(run, value)
        frame.environment.owned.clear()
        raise
    finally:
        scope, frame.environment = frame.environment, before
        leave_scope(run, scope)


def _expression(run: Run, node: p.ExprStatement) -> None:
    run.discarded = node.value
    value = run.evaluate(node.value)
    if not run.file.is_cuda and isinstance(node.value, p.Call):
        released(run, value, None)


def _assign(run: Run, node: p.Assign) -> None:
    if node.value is None:
        return
    if node.op is not None:
        augmented(run, node, node.targets[0], node.op, run.evaluate(node.value))
        return
    value = run.evaluate(node.value)
    if node.annotation is not None:
        value = annotated(run, value, node.annotation)
    for target in node.targets:
        assign(run, target, value, node)


def annotated(run: Run, value: Value, annotation: p.Expression) -> Value:
    """What an annotation adds to a value that is not known: ``x: torch.Tensor = f()``."""
    from streamlint.interpreter.roots import typed_by_annotation
    from streamlint.interpreter.values import Opaque

    if isinstance(value, Opaque) and not value.reach and not value.attrs:
        return typed_by_annotation(run, value.name, annotation) or value
    return value


def _declare(run: Run, node: p.Declare) -> None:
    from streamlint.interpreter.declarations import declare

    declare(run, node)


def _if(run: Run, node: p.If) -> None:
    before, tested = len(run.decisions), len(run.tested)
    then_leaves, otherwise_leaves = arms_leave(node, run.file)
    default = not asks_for_another(node.test) and (not then_leaves or otherwise_leaves)
    if node.otherwise and not otherwise_leaves and _only_other_matters(run, node):
        default = False
    asked, run.asked = run.asked, run.asked or _either_matters(run, node)
    firm = then_leaves and not node.otherwise and any(ends_the_program(s, run.file) for s in node.then)
    if not firm and (way_on := last_way_on(node, run.frame.function, run.file)) is not None:
        default, firm = way_on, True
    run.latest = ""
    taken = holds(run, node.test, default, firm=firm)
    run.asked = asked
    decided = list(run.decisions)[before:]
    undecided = bool(decided)
    body = node.then if taken else node.otherwise
    run.link = (run.latest or run.link) if not taken and len(body) == 1 and isinstance(body[0], p.If) else ""
    _weigh(run, node, taken, [*(run.decisions[atom] for atom in decided), *_loose(run, node.test, tested)])
    guard = guard_of(run, node, taken) if body else None
    try:
        if guard is not None:
            with run.within_guard(guard):
                _run_arm(run, body)
        else:
            _run_arm(run, body)
    except RaiseSignal:
        if undecided:
            run.raised_in.update(list(run.decisions)[before:])
            for atom in decided:
                run.leave_open(atom)  # nothing that stands behind was seen
        raise


def _only_other_matters(run: Run, node: p.If) -> bool:
    """Whether the ``else`` orders, copies or allocates and the other arm does not, or does nothing at all: the likely arm is that."""
    matters = run.file.relevance.body_matters
    return not node.then or (matters(node.otherwise) and not matters(node.then))


def _either_matters(run: Run, node: p.If) -> bool:
    return _calls(node.test) and (run.file.relevance.body_matters(node.then) or run.file.relevance.body_matters(node.otherwise))


@functools.lru_cache(maxsize=16384)
def _calls(test: p.Expression) -> bool:
    return any(isinstance(node, p.Call) for node in p.walk(test))


def _loose(run: Run, test: p.Expression, tested: int) -> list[Decision]:
    """Decisions that were made inside expressions, and that a condition asks for: itself, or a constant that they chose."""
    atoms = {*run.tested[tested:], *(told_by(run, test) if run.chosen else ())}
    found = [run.decisions[atom] for atom in sorted(atoms) if atom in run.decisions]
    return [decision for decision in found if decision.loose and not decision.worth]


def _weigh(run: Run, node: p.If, taken: bool, decisions: list[Decision]) -> None:
    """Whether the other arm of a decision is worth a path of its own."""
    if not decisions:
        return
    body, other = (node.then, node.otherwise) if taken else (node.otherwise, node.then)
    relevance = run.file.relevance
    ends = arms_leave(node, run.file)
    goes_on, came_to_an_end = not ends[taken], ends[not taken]  # the other arm, this one
    worth = relevance.body_matters(other) or (goes_on and (came_to_an_end or relevance.body_matters(body)))
    # What a function answers that a condition asks, and that chooses between such arms.
    answers = run.asked and any(isinstance(s, p.Return) for s in (*node.then, *node.otherwise))
    for decision in decisions:
        found = decision.orders or ((decision.worth or decision.loose) and (worth or answers))
        arms = None if came_to_an_end or decision.arms is None else (*decision.arms, (run.file, other))  # what stands behind was not seen
        run.weigh(decision, found, not found, arms)


def _run_arm(run: Run, body: list[p.Statement]) -> None:
    if body and not run.context.setup:
        run.arms.add((run.file.path, body[0].at))
    if run.file.is_cuda:
        execute_scope(run, body)
    else:
        execute(run, body)


def _loop(run: Run, node: p.Loop) -> None:
    from streamlint.interpreter.loops import loop

    loop(run, node)


def _with(run: Run, node: p.With) -> None:
    from streamlint.interpreter.scopes import enter_with

    enter_with(run, node, 0)


def _try(run: Run, node: p.Try) -> None:
    try:
        try:
            execute(run, node.body) if not run.file.is_cuda else execute_scope(run, node.body)
        except RaiseSignal:
            # What a handler does is looked at for its own sake; no path goes through the exception.
            if not node.handlers:
                raise
            _run_handlers(run, node)
        else:
            execute(run, node.otherwise)
    finally:
        execute(run, node.final)


def _run_handlers(run: Run, node: p.Try) -> None:
    handler = node.handlers[0]
    if handler.name:
        run.frame.environment.names[handler.name] = run.opaque(handler.name)
    with run.within(handles_error=True):
        execute(run, handler.body)


def _switch(run: Run, node: p.Switch) -> None:
    tested = len(run.tested)
    subject = run.evaluate(node.subject)
    run.link = ""
    before = len(run.decisions)
    for number, (labels, body) in enumerate(node.cases, 1):
        if labels and not any(_matches(run, subject, label) for label in labels):
            continue
        run.link = ""
        decided = [*list(run.decisions.values())[before:], *_loose(run, node.subject, tested)]
        _weigh_cases(run, decided, body, [other for _, other in node.cases[number:]])
        with contextlib.suppress(BreakSignal):
            _run_arm(run, body)
        return


def _weigh_cases(run: Run, decisions: list[Decision], body: list[p.Statement], others: list[list[p.Statement]]) -> None:
    """The same of a case: whether one of those behind it is worth a path of its own."""
    if not decisions:
        return
    matters = any(run.file.relevance.body_matters(arm) for arm in (body, *others)) or (run.asked and any(map(gives_back, (body, *others))))
    for decision in decisions:
        worth = decision.orders or ((decision.worth or decision.loose) and matters)
        arms = None if gives_back(body) or decision.arms is None else (*decision.arms, *((run.file, other) for other in others))
        run.weigh(decision, worth, not worth, arms)


def _matches(run: Run, subject: Value, label: p.Expression) -> bool:
    from streamlint.interpreter.conditions import compare

    value = run.evaluate(label)
    known = compare("==", subject, value)
    key = f"{subject.term} == {value.term}"
    if known is None and key not in run.atoms:
        known = narrowing.known(run, "==", subject, value)
    if known is not None:
        return known
    found = run.decide(key, True, run.node_span(label))
    narrowing.learn(run, "==", subject, value, found)
    told_equal(run, subject, value, found)
    run.link = run.latest
    return found


def _return(run: Run, node: p.Return) -> None:
    raise ReturnSignal(returned(run, node.value) if node.value is not None else Const(None))


def _raise(run: Run, node: p.Raise) -> None:
    if node.value is not None:
        run.evaluate(node.value)
    raise RaiseSignal


def _break(run: Run, node: p.Break) -> None:
    raise BreakSignal


def _continue(run: Run, node: p.Continue) -> None:
    raise ContinueSignal


def _delete(run: Run, node: p.Delete) -> None:
    for target in node.targets:
        if isinstance(target, p.Name):
            held = run.frame.environment.names.pop(target.id, None)
            if held is not None and not _deletes(run, held, node):
                released(run, held, run.node_span(node))
        elif isinstance(target, p.Attr) and run.file.is_cython:
            _deletes(run, run.evaluate(target), node)
        elif isinstance(target, p.Index):
            holder = run.evaluate(target.value)
            from streamlint.interpreter.values import Table

            if isinstance(holder, Table):
                holder.items.pop(run.evaluate(target.indices[0]).term, None)


def _deletes(run: Run, value: Value, node: p.Node) -> bool:
    """Cython: ``del`` of a pointer to an object of C++ deletes the object."""
    if not run.file.is_cython or not isinstance(value, Instance) or not value.file.is_cuda:
        return False
    delete_object(run, value, p.DeleteExpr(p.Unknown(), at=node.at))
    return True


def _assert(run: Run, node: p.Assert) -> None:
    suppose(run, node.test)


def _block(run: Run, node: p.Block) -> None:
    if run.file.is_cuda:
        execute_scope(run, node.body)
    else:
        execute(run, node.body)


def _scope(run: Run, node: p.Scope) -> None:
    for name in node.names:
        run.frame.environment.names[f"nonlocal {name}"] = Const(True)


def _import(run: Run, node: p.Import) -> None:
    from streamlint.interpreter.names import resolve_dotted

    for local, module, name in node.names:
        if name == "*":
            continue
        dotted = f"{module}.{name}" if name and not module.endswith(".") else f"{module}{name or ''}"
        if name is None and local == module.partition(".")[0]:
            dotted = local
        run.frame.environment.names[local] = resolve_dotted(run, run.file, dotted)


def _function(run: Run, node: p.FunctionDef) -> None:
    value = FunctionValue(node.function, run.file, run.frame.environment)
    run.frame.environment.names[node.function.name] = value


def _class(run: Run, node: p.ClassDef) -> None:
    run.frame.environment.names[node.definition.name] = ClassValue(node.definition, run.file)


_EXECUTORS: dict[type, Callable[[Run, Any], None]] = {
    p.ExprStatement: _expression,
    p.Assign: _assign,
    p.Declare: _declare,
    p.If: _if,
    p.Loop: _loop,
    p.With: _with,
    p.Try: _try,
    p.Switch: _switch,
    p.Return: _return,
    p.Raise: _raise,
    p.Break: _break,
    p.Continue: _continue,
    p.Delete: _delete,
    p.Assert: _assert,
    p.Block: _block,
    p.Scope: _scope,
    p.Import: _import,
    p.FunctionDef: _function,
    p.ClassDef: _class,
}
