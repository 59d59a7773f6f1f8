"""Loops and comprehensions: bodies run a few rounds with real small numbers."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator

from streamlint import program as p
from streamlint.interpreter import batches, items
from streamlint.interpreter.assignment import assign
from streamlint.interpreter.bodies import call_method, generator_of, run_generator
from streamlint.interpreter.choices import choice
from streamlint.interpreter.guards import loop_kind
from streamlint.interpreter.iterators import Walk, walk_of
from streamlint.interpreter.named_tuples import as_tuple
from streamlint.interpreter.nested import listed
from streamlint.interpreter.queries import enter_round, leave_loop
from streamlint.interpreter.run import BreakSignal, ContinueSignal, Run
from streamlint.interpreter.spins import waits_for_a_flag
from streamlint.interpreter.taken_apart import Parts
from streamlint.interpreter.unknowns import truth
from streamlint.interpreter.values import Buffer, Const, GeneratorCall, Instance, Loader, Opaque, Series, Table, Value
from streamlint.operations import LoopFrame

MOST_ROUNDS = 4


def loop(run: Run, node: p.Loop) -> None:
    """Run a loop for as many rounds as are known, a few at most."""
    before, first = _numbers(run), len(run.machine.operations)
    _run_loop(run, node)
    if run.machine.told_by_callback and waits_for_a_flag(run, node, first):
        run.machine.callbacks_seen()
    # How often it ran is not known: neither is what it counted.
    for name, value in _numbers(run).items():
        if before.get(name, value) != value and not _known_length(run, node):
            scope = run.frame.environment.find(name)
            if scope is not None:
                scope.names[name] = run.opaque(f"{name}{run.visit_key(node)}")


def _numbers(run: Run) -> dict[str, float]:
    """The names that hold numbers."""
    found: dict[str, float] = {}
    scope = run.frame.environment
    while scope is not None:
        for name, value in scope.names.items():
            if isinstance(value, Const) and isinstance(value.value, int | float) and not isinstance(value.value, bool):
                found.setdefault(name, value.value)
        if run.file.is_cuda is False or scope.parent is None:
            break
        scope = scope.parent
    return found


def _known_length(run: Run, node: p.Loop) -> bool:
    return node.kind == "for" and id(node) in run.known_loops


def _run_loop(run: Run, node: p.Loop) -> None:
    if node.kind == "for" and run.file.is_cuda:
        with _own_scope(run):
            _for(run, node)
    elif node.kind == "for":
        _for(run, node)
    elif node.kind == "c-for":
        from streamlint.interpreter.statements import execute

        with _own_scope(run):
            if (walk := walk_of(node)) is not None and isinstance(holder := run.evaluate(walk.holder), Series):
                _walk(run, node, walk, holder)
            else:
                execute(run, node.init)
                _while(run, node)
    else:
        _while(run, node)


class _own_scope:
    """The scope of a C++ ``for``: its variables die with it."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def __enter__(self) -> None:
        from streamlint.interpreter.values import Environment

        self.before = self.run.frame.environment
        self.run.frame.environment = Environment(parent=self.before)

    def __exit__(self, *_: object) -> None:
        self.run.frame.environment = self.before


def _frame(run: Run, node: p.Loop, length: int | None) -> LoopFrame:
    return LoopFrame(loop_kind(node), run.node_span(node), length, id(node), node.kind)


def _for(run: Run, node: p.Loop) -> None:
    from streamlint.interpreter.statements import execute

    assert node.iterable is not None
    assert node.target is not None
    iterable = run.evaluate(node.iterable)
    made = generator_of(run, iterable, run.node_span(node))
    if made is not None:
        _consume(run, node, made)
        return
    length = len(iterable.items) if isinstance(iterable, Series) and iterable.items is not None and iterable.name != "open" else None
    target = node.target
    asked = _question(iterable)
    if asked and run.atoms.get(asked) is False:
        execute(run, node.otherwise)
        return
    if length is not None:
        run.known_loops.add(id(node))
    with run.within_loop(_frame(run, node, length)):
        if run.file.is_cuda and isinstance(iterable, Buffer):
            _look_at_elements(run, iterable, node)
        for number, value in enumerate(_counted(run, iterable, rounds_of(run, iterable, node))):
            if asked:
                run.atoms.setdefault(asked, True)
            try:
                _declare_target(run, target)
                assign(run, target, value, node)
                _body(run, node)
            except ContinueSignal:
                continue
            except BreakSignal:
                return
            finally:
                _write_back(run, node, iterable, number, value)
    execute(run, node.otherwise)


def _walk(run: Run, node: p.Loop, walk: Walk, holder: Series) -> None:
    """C++: rounds by an iterator. One over objects is as good as a pointer to each, any other is the address of an element."""
    length = len(holder.items) if holder.items is not None and holder.name != "open" else None
    elements = list(enumerate(rounds_of(run, holder, node)))
    with run.within_loop(_frame(run, node, length)):
        late = run.late
        for number, value in reversed(elements) if walk.backward else elements:
            place = run.address(p.Index(walk.holder, (p.Const(number, at=node.at),), at=node.at))
            run.frame.environment.names[walk.name] = value if isinstance(value, Instance) else place
            try:
                _body(run, node)
            except ContinueSignal:
                continue
            except BreakSignal:
                break
            finally:
                run.late = late + 1
        run.late = late


def _question(iterable: Value) -> str:
    """By what question a condition asks whether there is anything to loop over (``if streams:``); empty if that is no question."""
    if isinstance(iterable, Opaque) or (isinstance(iterable, Series) and iterable.items is None):
        return "" if iterable.term.startswith("not ") else iterable.term
    return ""


def _write_back(run: Run, node: p.Loop, iterable: Value, number: int, value: Value) -> None:
    """C++: ``for (auto& s : streams) cudaStreamCreate(&s)`` fills the container."""
    declared = node.init[0] if node.init else None
    if not isinstance(declared, p.Declare) or not declared.type.reference or not isinstance(iterable, Series):
        return
    held = run.frame.environment.names.get(declared.name)
    if held is None or held is value:
        return
    if iterable.items is not None:
        iterable.items[number] = held
    else:
        iterable.made[str(number)] = held


def _look_at_elements(run: Run, memory: Buffer, node: p.Loop) -> None:
    """C++: ``for (int n : counts)`` reads the elements, unless the body only fills them or takes their addresses."""
    from streamlint.interpreter.effects.host import host_read

    assert node.target is not None
    names = {n.id for n in p.walk(node.target) if isinstance(n, p.Name)}
    inside = [n for statement in node.body for n in p.walk(statement)]
    filled = [n.target if isinstance(n, p.AssignExpr) else n.value for n in inside if isinstance(n, p.AssignExpr | p.AddressOf)]
    if any(isinstance(n, p.Name) and n.id in names for target in filled for n in p.walk(target)):
        return
    if memory.storage.on_host and any(isinstance(n, p.Name) and n.id in names for n in inside):
        host_read(run, memory, run.node_span(node), "range-based for")


def _declare_target(run: Run, target: p.Expression) -> None:
    """C++: ``for (auto& x : xs)`` declares its variables, a new one each round."""
    if run.file.is_cuda:
        for name in p.walk(target):
            if isinstance(name, p.Name):
                run.frame.environment.names[name.id] = run.opaque(name.id)


def _body(run: Run, node: p.Loop) -> None:
    from streamlint.interpreter.statements import execute, execute_scope

    if run.file.is_cuda:
        execute_scope(run, node.body)
    else:
        execute(run, node.body)


def _consume(run: Run, node: p.Loop, call: GeneratorCall) -> None:
    """A generator at hand runs with the loop's body as its ``yield``."""
    assert node.target is not None
    target, caller = node.target, run.frame

    def consumer(value: Value) -> Value:
        with run.consuming(caller, around), contextlib.suppress(ContinueSignal):
            assign(run, target, value, node)
            _body(run, node)
        return Const(None)

    frame = _frame(run, node, None)
    with run.within_loop(frame):
        around = run.context
    with contextlib.suppress(BreakSignal):
        run_generator(run, call, consumer, frame)


def delegate(run: Run, node: p.Yield, iterable: Value, consumer: Callable[[Value], Value]) -> Value:
    """``yield from``: who takes the generator's values takes those of what stands there; a ``with`` takes one."""
    taken_in = run.frame.taken_in
    if (made := generator_of(run, iterable, run.node_span(node))) is not None:
        run_generator(run, made, consumer, taken_in)
    else:
        for element in itertools.islice(_counted(run, iterable, rounds_of(run, iterable, node)), None if taken_in is not None else 1):
            consumer(element)
    return run.opaque(f"sent{run.visit_key(node)}")


def _rounds(run: Run) -> int:
    """How often a loop runs whose length is not known: once more rounds of the loops around it meet what its first rounds left."""
    return 1 if run.late else run.rounds


def _counted(run: Run, iterable: Value, rounds: Iterator[Value]) -> Iterator[Value]:
    """The rounds of a loop; loops inside know whether it is past the first."""
    late = run.late
    for number, value in enumerate(rounds):
        run.late = late + (number > 0)
        yield value
        run.late = late


def _are_all(iterable: Value) -> bool:
    """Whether the rounds of a loop take all that there is."""
    if isinstance(iterable, Table):
        return iterable.complete and len(iterable.items) <= MOST_ROUNDS
    return isinstance(iterable, Series) and iterable.items is not None and iterable.name != "open" and len(iterable.items) <= MOST_ROUNDS


def rounds_of(run: Run, iterable: Value, node: object) -> Iterator[Value]:
    """The values that a loop variable takes. Layers are much alike: of a list of modules a few are taken."""
    modules = listed(iterable)
    if modules is not iterable and isinstance(modules, Series) and modules.items is not None:
        yield from itertools.islice(list(modules.items), _rounds(run))
        return
    iterable = as_tuple(iterable) or iterable
    if isinstance(iterable, Series) and iterable.items is not None:
        yield from itertools.islice(list(iterable.items), MOST_ROUNDS)
        return
    if isinstance(iterable, Table) and iterable.complete and iterable.items:
        for key in itertools.islice(list(iterable.items), MOST_ROUNDS):
            yield iterable.keys.get(key) or run.opaque(key)
        return
    if isinstance(iterable, Buffer) and iterable.leaves is None and not run.file.is_cuda:
        from streamlint.interpreter.effects.host import host_iteration

        if iterable.storage.on_host or iterable.storage.writes:
            host_iteration(run, iterable, run.span(getattr(node, "at", (0, 0, 0, 0))), "iteration")
    if isinstance(iterable, Instance):
        yield from _rounds_of_object(run, iterable, node)
        return
    for number in range(_rounds(run)):
        if isinstance(iterable, Loader):
            yield batches.batch(run, iterable, str(number))
        elif isinstance(iterable, Table) and isinstance(iterable.items, Parts):
            yield iterable.items.name(run, str(number))
        else:
            yield items.element_of(run, iterable, str(number))


def _rounds_of_object(run: Run, iterable: Instance, node: object) -> Iterator[Value]:
    made = call_method(run, iterable, "__iter__", [], run.span(getattr(node, "at", (0, 0, 0, 0))))
    if made is None or made is iterable or isinstance(made, GeneratorCall | Instance):
        for number in range(_rounds(run)):
            yield run.opaque(f"{iterable.term}[{number}]")
        return
    yield from rounds_of(run, made, node)


def _while(run: Run, node: p.Loop) -> None:
    """``while``, ``do`` and C++ ``for``: real rounds while the test is known, a few where it is not."""
    from streamlint.interpreter.statements import execute

    with run.within_loop(_frame(run, node, None)):
        late = run.late
        for number in range(MOST_ROUNDS + 1):
            run.late = late
            if not _round_wanted(run, node, number):
                break
            run.late = late + (number > 0)
            try:
                _body(run, node)
            except ContinueSignal:
                pass
            except BreakSignal:
                return
            if node.update is not None:
                run.evaluate(node.update)
        run.late = late
    if node.test is not None:
        leave_loop(run, node.test)
    execute(run, node.otherwise)


def _round_wanted(run: Run, node: p.Loop, number: int) -> bool:
    if node.kind == "do" and number == 0:
        return True
    if node.test is None:
        return number < _rounds(run)
    first = len(run.machine.operations)
    value = run.evaluate(node.test)
    known = truth(value)
    if known is None or (known and isinstance(node.test, p.Const)):
        wanted = number < _rounds(run)
        if wanted:
            enter_round(run, node.test, first)
        return wanted
    return known


def comprehension(run: Run, node: p.Comprehension) -> Value:
    """A display built by loops: one element a round."""
    from streamlint.interpreter.values import Environment

    frame = run.frame
    before = frame.environment
    frame.environment = Environment(parent=before)
    found: list[Value] = []
    table = Table(complete=False)
    run.rooted.extend((Series(found), table))
    try:
        open_ended = _clauses(run, node, 0, found, table)
    finally:
        frame.environment = before
        del run.rooted[-2:]
    if node.kind == "dict":
        table.element = next(iter(table.items.values()), None)
        table.complete = not open_ended and all(isinstance(key, Const) for key in table.keys.values())
        return table
    return Series(found, name="open" if open_ended else "", kind="list")


def _clauses(run: Run, node: p.Comprehension, depth: int, found: list[Value], table: Table) -> bool:
    if depth == len(node.clauses):
        if node.kind == "dict" and isinstance(node.element, p.Mapping):
            key, value = node.element.items[0]
            name = run.evaluate(key) if key is not None else Const(None)
            table.items[name.term] = run.evaluate(value)
            table.keys[name.term] = name
        else:
            found.append(run.evaluate(node.element))
        return False
    clause = node.clauses[depth]
    iterable = run.evaluate(clause.iterable)
    open_ended = not _are_all(iterable)
    frame = LoopFrame("data", run.node_span(node), None, id(node))
    with run.within_loop(frame):
        for element in _counted(run, iterable, rounds_of(run, iterable, node)):
            assign(run, clause.target, element, node)
            if all(choice(run, condition, condition, node.element) for condition in clause.tests):
                open_ended = _clauses(run, node, depth + 1, found, table) or open_ended
    return open_ended
