"""The call graph: which functions of the program an instruction enters, and which functions of libraries it calls.

Calls are those of call instructions and those that the language makes: properties, iterators, context managers, generators. A function's
calls are found when somebody asks for them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.fitting import fitting
from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import (
    Activation,
    BoundMethod,
    External,
    FunctionObject,
    Instance,
    LibraryObject,
    Memory,
    Object,
    Unknown,
    without_partials,
)
from streamlint.facts.files.joining import Joining
from streamlint.facts.graph.facts import Facts
from streamlint.facts.values.nodes import Node
from streamlint.facts.values.operators import EFFECTS, OF_FUNCTIONS
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Row
from streamlint.support.memo import memoized

_CALLING = (op.CALL, op.INVOKE, op.CONSTRUCT, op.NEW)
_WITH_RESULT = (
    *(*_CALLING, op.LAUNCH, op.ENTER, op.ITER, op.NEXT, op.UNPACK, op.ATTR, op.ITEM, op.AWAIT, op.YIELD_FROM, op.IMPORT, op.CLASS),
    *(op.UNARY, op.BINARY, op.INPLACE, op.COMPARE, op.FORMAT, op.DEREF),
)
_ENTERING = (*_WITH_RESULT, *EFFECTS)
"""What may enter a function of the program."""
_PROTOCOLS = (op.ENTER, op.ITER, op.NEXT, op.AWAIT, op.YIELD_FROM, op.LAUNCH)
_NAMING = (op.FUNCTION, op.NAME, op.LOAD)
_PLAIN = frozenset({"staticmethod", "classmethod"})
"""Decorators that give back a function as it is."""
_ASKING = frozenset({"__iter__", "__next__", "__getattr__", "__setattr__"})
"""Methods that matter where a function of the language calls them on its arguments."""


MOST_NAMES = 12
"""Names of functions that one instruction may enter: behind that what it calls is as good as not known, and nothing follows from it."""


class Edge(NamedTuple):
    """An instruction of a function that enters another one. ``is_elsewhere``: in another thread, in a worker, or later; ``is_joined``: in
    another thread, for whose end the function waits, so that it runs as a part of it; ``is_guess``: it is one of so many functions of
    different names that the call tells nothing about it; ``is_handed``: a library is given it, and calls it who knows how often."""

    instruction: Instruction
    callee: Function
    is_elsewhere: bool = False
    is_guess: bool = False
    is_higher_order: bool = False
    is_joined: bool = False

    @property
    def is_followed(self) -> bool:
        """Whether the function runs as a part of the one that calls it."""
        return not self.is_guess and (self.is_joined or not self.is_elsewhere)

    @property
    def is_direct(self) -> bool:
        """Whether it is followed, and the instruction calls the function itself, not one that is given the function."""
        return self.is_followed and not self.is_higher_order


class LibraryCall(NamedTuple):
    """A call of a library: by its row, if there is one, and by the dotted name; ``receiver`` is the object of a method."""

    instruction: Instruction
    row: Row | None
    name: str
    receiver: Object | None


class Calls(NamedTuple):
    """What the instructions of a function call. ``unknown`` are calls of values of which nothing is known."""

    edges: tuple[Edge, ...]
    libraries: tuple[LibraryCall, ...]
    unknown: tuple[Instruction, ...]


NO_CALLS = Calls((), (), ())


class _Found:
    """The calls of some instructions, each once."""

    def __init__(self) -> None:
        self.edges: dict[Edge, None] = {}
        self.libraries: dict[LibraryCall, None] = {}
        self.unknown: dict[Instruction, None] = {}

    def enter(self, edges: Iterable[Edge]) -> None:
        self.edges.update(dict.fromkeys(edges))

    def calls(self) -> Calls:
        names: dict[Instruction, set[str]] = defaultdict(set)
        for edge in self.edges:
            names[edge.instruction].add(edge.callee.code.name)
        edges = (edge._replace(is_guess=True) if len(names[edge.instruction]) > MOST_NAMES else edge for edge in self.edges)
        return Calls(tuple(edges), tuple(self.libraries), tuple(self.unknown))


_LEAVING = frozenset({"super", "staticmethod", "classmethod"})
"""What is given a function and does not run it."""
_ELSEWHERE = frozenset({"thread", "callback", "loader", "pipe"})
"""Effects of rows whose call has functions run by others."""


class CallGraph:
    """The call graph of a program, on top of its facts."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._calls: dict[Function, Calls] = {}
        self._of_calls: dict[tuple[Function, Instruction], Calls] = {}
        self.joining = Joining(self)

    def calls(self, function: Function) -> Calls:
        """What a function calls by its calls, loops, scopes, properties and subscripts.

        What is given back is not solved where it need not be. Methods behind operators, truth tests and the text of values are left out:
        `all_calls` has them too.
        """
        found = self._calls.get(function)
        if found is None:
            found = self._calls[function] = self.all_calls(function) if function.is_cpp else self._written(function)
        return found

    @memoized
    def all_calls(self, function: Function) -> Calls:
        """What a function calls in any way."""
        self.prepare([function])
        return self._all(function)

    def _written(self, function: Function) -> Calls:
        facts, found = self.facts, _Found()
        calling = [one for opcode in _CALLING for one in function.by_opcode[opcode]]
        others = [one for opcode in _PROTOCOLS for one in function.by_opcode[opcode]]
        others += [one for one in function.by_opcode[op.ATTR] if self.is_computed(function.text(one[4]))]
        others += [one for one in function.by_opcode[op.SET_ATTR] if self.is_computed(function.text(one[3]))]
        others += function.by_opcode[op.ITEM] if facts.program.defines("__getitem__") else ()
        others += function.by_opcode[op.SET_ITEM] if facts.program.defines("__setitem__") else ()
        self._demand(function, _ended(function))
        self._look(function, calling, others, found)
        self._at_ends(function, found)
        return found.calls()

    def _is_plain(self, value: Object) -> bool:
        """Whether the called object alone tells what a call enters."""
        if isinstance(value, External):
            row = self.facts.row_of(value)
            is_later = row is not None and row.effect in _ELSEWHERE
            return not is_later and _ASKING.isdisjoint(OF_FUNCTIONS.get(value.name.removeprefix("builtins."), ()))
        return isinstance(value, (FunctionObject, BoundMethod, LibraryObject, Memory, Unknown))

    @memoized
    def is_computed(self, name: str) -> bool:
        """Whether an attribute of a name may run a method: a property, or whatever stands for it."""
        methods = (one for unit in self.facts.program.mentioning(name) for one in unit.methods.get(name, ()))
        return any(one.decorations for one in methods)

    def prepare(self, functions: Iterable[Function]) -> None:
        """Solve what the calls of functions rest on, all at once."""
        for function in functions:
            self.ask(function, (one for opcode in _ENTERING for one in function.by_opcode[opcode]))
            self._demand(function, _ended(function))
        self.facts.solver.solve()

    def _demand(self, function: Function, registers: Iterable[int]) -> None:
        """Have registers solved with what is asked next."""
        frame = self.facts.base(function)
        for register in registers:
            self.facts.solver.demand(self.facts.register(frame, register))

    def calls_at(self, function: Function, instructions: Iterable[Instruction]) -> Calls:
        """What some call instructions of a function call. Only what these rest on is solved."""
        asked = list(instructions)
        if any(one[0] not in _ENTERING for one in asked):
            return self.all_calls(function)
        found = _Found()
        self._look(function, [one for one in asked if one[0] in _CALLING], [one for one in asked if one[0] not in _CALLING], found)
        return found.calls()

    def of_call(self, function: Function, one: Instruction) -> Calls:
        """What one call instruction of a function calls; the other calls of the function are not looked at for it."""
        found = self._of_calls.get((function, one))
        if found is None:
            if one[0] in _CALLING and function in self._calls:
                found = self._of_known(function).get(one, NO_CALLS)
            else:
                found = self.calls_at(function, [one])
            self._of_calls[function, one] = found
        return found

    @memoized
    def _of_known(self, function: Function) -> dict[Instruction, Calls]:
        return dict(_by_instruction(self._calls[function]))

    def _look(self, function: Function, calling: Iterable[Instruction], others: Collection[Instruction], found: _Found) -> None:
        """What instructions call. What calls give back is solved only where the called values do not tell what they enter."""
        nodes = {one: self.called(function, one) for one in calling}
        self.ask(function, others)
        for one in nodes:
            self._demand(function, self._named_arguments(function, one))
        self.facts.solver.solve()
        # In C++ the arguments tell which of several overloads is meant.
        plain = {one: not function.is_cpp and all(map(self._is_plain, node.values)) for one, node in nodes.items()}
        self.ask(function, (one for one in nodes if not plain[one]))
        self.facts.solver.solve()
        for one in (*nodes, *others):
            self._look_at(function, one, found)
            if plain.get(one):
                found.enter(Edge(one, callee) for callee in self._fitting(function, one, nodes[one].values))

    def meant(self, function: Function, instructions: Iterable[Instruction]) -> tuple[Calls, bool]:
        """What some calls call by the called values alone, and whether that is all: what is given to them and given back is not solved.

        It is not all where classes, objects or functions of libraries are called.
        """
        asked = list(instructions)
        found, is_all = _Found(), all(one[0] in _CALLING for one in asked)
        nodes = {one: self.called(function, one) for one in asked if one[0] in _CALLING}
        self.facts.solver.solve()
        for one, node in nodes.items():
            self._by_values(function, one, node.values, found)
            found.enter(Edge(one, callee) for callee in self._fitting(function, one, node.values))
            is_all &= all(isinstance(value, (FunctionObject, BoundMethod)) for value in node.values)
        return found.calls(), is_all

    def named(self, function: Function, one: Instruction) -> Calls:
        """The calls of libraries that one call makes, and whether it is unknown: the called values alone tell, and no more is solved."""
        found, node = _Found(), self.called(function, one)
        self.facts.solver.solve()
        self._by_values(function, one, node.values, found)
        return found.calls()

    def _fitting(self, function: Function, one: Instruction, values: Iterable[Object]) -> Iterator[Function]:
        """The functions among called values that take what a call hands over."""
        return self._run(function, one, (value.function for value in self.facts.functions_in(fitting(values, function, one))))

    def _run(self, function: Function, one: Instruction, called: Iterable[Function]) -> Iterator[Function]:
        """Those of the functions that an instruction calls whose bodies run."""
        return (callee for callee in called if not _leaves_unrun(function, one, callee))

    def called(self, function: Function, call: Instruction) -> Node:
        """What a call instruction calls; have it solved with what is asked next."""
        return self.facts.solver.demand(self.facts.callee(self.facts.base(function), call))

    def ask(self, function: Function, calls: Iterable[Instruction]) -> None:
        """Have what some call instructions rest on solved with what is asked next: to solve much at once takes fewer steps."""
        facts, frame = self.facts, self.facts.base(function)
        for one in calls:
            if one[0] in _WITH_RESULT:
                facts.solver.demand(facts.register(frame, one[2]))
            elif not function.is_cpp:
                facts.solver.demand(facts.effect(frame, one))
            self._demand(function, self._named_arguments(function, one))

    def reachable(self, roots: Iterable[Function]) -> list[Function]:
        """The functions that others lead to, these included, in the order in which they are met."""
        found = dict.fromkeys(roots)
        waiting = list(found)
        while waiting:
            self.prepare(waiting)
            reached = [edge.callee for one in waiting for edge in self.all_calls(one).edges]
            waiting = [one for one in dict.fromkeys(reached) if one not in found]
            found.update(dict.fromkeys(waiting))
        return list(found)

    def _all(self, function: Function) -> Calls:
        found = _Found()
        for opcode in _ENTERING:
            for one in function.by_opcode[opcode]:
                self._look_at(function, one, found)
        self._at_ends(function, found)
        return found.calls()

    def _at_ends(self, function: Function, found: _Found) -> None:
        for one in function.by_opcode[op.EXIT]:
            found.enter(Edge(one, callee) for callee in self._ended(function, one[3], ("__exit__", "__aexit__")))
        for one in function.by_opcode[op.DESTROY]:
            found.enter(Edge(one, callee) for callee in self._destroyed(function, one))
        for one in function.by_opcode[op.INIT]:
            found.enter(Edge(one, callee) for callee in self.initialised(function, one))

    def initialised(self, function: Function, one: Instruction) -> list[Function]:
        """C++: the constructors that an initialiser runs: of a member, of a base, or another one of the class."""
        if not function.is_cpp or not self.facts.made_by(function, one):
            return []
        self.facts.evaluate(self.facts.base(function), one)
        self.facts.solver.solve()
        return list(self.facts.enters(function, one))

    def _look_at(self, function: Function, one: Instruction, found: _Found) -> None:
        """What one instruction calls."""
        elsewhere = is_joined = False
        if one[0] in _CALLING:
            values = self.called(function, one).values
            libraries = self._by_values(function, one, values, found)
            elsewhere = any(map(_runs_elsewhere, libraries))
            deferred = dict.fromkeys(_runs_elsewhere(call) for call in libraries if self._may_run(call))
            is_unknown = any(isinstance(value, Unknown) and value.reason == "external" for value in values)
            if is_unknown and not any(True for _ in self.facts.functions_in(values)):  # one in view shows what becomes of what it is given
                deferred[False] = None
            for has_run in deferred:
                found.enter(self._higher_order_calls(function, one, has_run))
            started = dict.fromkeys(self.joining.started(function, libraries))
            is_joined = (elsewhere or bool(started)) and self.joining.is_joined(function, one)
            found.enter(Edge(one, callee, True, is_joined=is_joined) for callee in started)
        found.enter(
            Edge(one, callee, elsewhere, is_joined=is_joined) for callee in self._run(function, one, self.facts.enters(function, one))
        )
        if one[0] in (op.NEXT, op.AWAIT, op.YIELD_FROM):
            found.enter(Edge(one, value.frame.function) for value in self._iterated(function, one) if isinstance(value, Activation))

    def _may_run(self, call: LibraryCall) -> bool:
        """Whether a library's function may run functions that it is given, before anything else is called; nobody calls data."""
        is_later = call.row is not None and call.row.get("later")
        is_data = isinstance(call.receiver, Memory) and call.name.endswith(".__call__")
        return not (is_later or is_data or call.name.startswith("builtins.") or call.name in _LEAVING or call.name in self._unrun)

    @cached_property
    def _unrun(self) -> frozenset[str]:
        """Functions of libraries that give back a function, or keep it, and do not run it."""
        facts = self.facts
        return frozenset(
            {*facts.models.marked("leaves-unrun"), *facts.cpp_models.marked("gives-argument"), *facts.cpp_models.marked("binds-cpp")}
        )

    def _by_values(self, function: Function, one: Instruction, values: Collection[Object], found: _Found) -> list[LibraryCall]:
        """Take the calls of libraries, and those of which nothing is known."""
        calls = list(self._library_calls(one, values))
        found.libraries.update(dict.fromkeys(calls))
        if one[0] in (op.CALL, op.INVOKE) and (not values or any(isinstance(value, Unknown) for value in values)):
            found.unknown[one] = None
        return calls

    def _library_calls(self, one: Instruction, values: Iterable[Object]) -> Iterable[LibraryCall]:
        called = [without_partials(value) for value in values]
        is_named = any(isinstance(value, External) for value in called)
        for value in called:
            if isinstance(value, External):
                yield LibraryCall(one, self.facts.row_of(value), value.name, value.receiver)
            elif isinstance(value, LibraryObject) or (isinstance(value, Memory) and not is_named):  # no tensor is called
                name = f"{value.type}.__call__"
                row = self.facts.models.calls.get(name) if isinstance(value, LibraryObject) else None
                yield LibraryCall(one, row, name, value)

    def _higher_order_calls(self, function: Function, one: Instruction, elsewhere: bool) -> Iterable[Edge]:
        """The functions of the program that unknown code is given: it runs them, or has them run."""
        nodes = [self.facts.register(self.facts.base(function), register) for register in one[6 if one[0] == op.INVOKE else 5 :]]
        given = dict.fromkeys(value.function for node in nodes for value in self.facts.functions_in(node.values))
        entered = self.facts.enters(function, one) if given else given
        for callee in given:
            if callee not in entered:
                yield Edge(one, callee, elsewhere, is_higher_order=True)

    def ended(self, function: Function, one: Instruction) -> list[Function]:
        """The methods that the end of a scope runs: of a context manager, or of an object of C++ or Python that dies."""
        is_exit = one[0] == op.EXIT
        register = one[3 if is_exit else 2]
        self._demand(function, [register])
        self.facts.solver.solve()
        return list(self._ended(function, register, ("__exit__", "__aexit__")) if is_exit else self._destroyed(function, one))

    def _destroyed(self, function: Function, one: Instruction) -> Iterable[Function]:
        """What the end of an object with its scope runs: its destructor, or the deleter of the smart pointer that it is."""
        if not function.is_cpp or not self.facts.has_deleter(function, one[2]):
            return self._ended(function, one[2], ("__del__",))
        self.facts.evaluate(self.facts.base(function), one)
        self.facts.solver.solve()
        return self.facts.enters(function, one)

    def _iterated(self, function: Function, one: Instruction) -> list[Object]:
        """What an instruction asks for its next value: in a loop, or by ``next(values)``."""
        register = one[5] if one[0] in _CALLING else one[3]
        source = function.definitions[register] if register >= 0 else None
        register = source[3] if source is not None and source[0] == op.ITER else register
        return list(self.facts.values(function, register).values) if register >= 0 else []

    def resumptions(self, function: Function) -> Iterator[Edge]:
        """The edges by which a function has generators run on, also behind what goes through them: ``enumerate``, ``zip``, ``next``."""
        calls = self.calls(function)
        found = {edge: None for edge in calls.edges if edge.instruction[0] in (op.NEXT, op.YIELD_FROM) and edge.callee.is_generator}
        asking = [
            call.instruction for call in calls.libraries if call.name.removeprefix("builtins.") == "next" and len(call.instruction) > 5
        ]
        for one in (*asking, *function.by_opcode[op.NEXT]):
            found.update((Edge(one, callee), None) for callee in self.facts.resumed(self._iterated(function, one)))
        return (edge for edge in found if edge.is_followed)

    def _ended(self, function: Function, register: int, names: tuple[str, ...]) -> Iterable[Function]:
        """What the end of a scope calls of an object: ``__exit__``, or a destructor."""
        for value in list(self.facts.register(self.facts.base(function), register).values):
            for definition in self.facts.possible_classes(value) if isinstance(value, Instance) else ():
                for name in names:
                    found = self.facts.hierarchy.lookup(definition, name)
                    yield from found[1] if found is not None else ()

    def _named_arguments(self, function: Function, call: Instruction) -> Iterator[int]:
        """The arguments of a call that may be functions by the way they are written: a library that is given one may call it."""
        is_call = call[0] in (op.CALL, op.INVOKE) and not function.is_cpp
        for register in call[6 if call[0] == op.INVOKE else 5 :] if is_call else ():
            made = function.definitions[register] if register >= 0 else None
            if made is not None and (made[0] in _NAMING or (made[0] == op.ATTR and self.facts.program.defines(function.text(made[4])))):
                yield register


def _runs_elsewhere(call: LibraryCall) -> bool:
    """Whether a library's function has what it is given run elsewhere."""
    return call.row is not None and call.row.effect in _ELSEWHERE


def _by_instruction(calls: Calls) -> Iterator[tuple[Instruction, Calls]]:
    """What a function calls, instruction by instruction."""
    edges, libraries = defaultdict[Instruction, list[Edge]](list), defaultdict[Instruction, list[LibraryCall]](list)
    for edge in calls.edges:
        edges[edge.instruction].append(edge)
    for call in calls.libraries:
        libraries[call.instruction].append(call)
    for one in dict.fromkeys((*edges, *libraries, *calls.unknown)):
        yield one, Calls(tuple(edges.get(one, ())), tuple(libraries.get(one, ())), (one,) if one in calls.unknown else ())


def _ended(function: Function) -> Iterator[int]:
    """The registers of what ends with a scope."""
    yield from (one[3] for one in function.by_opcode[op.EXIT])
    yield from (one[2] for one in function.by_opcode[op.DESTROY])


def _leaves_unrun(function: Function, one: Instruction, callee: Function) -> bool:
    """Whether a call makes a generator or a coroutine, and nobody takes a value from it or awaits it: its body does not run."""
    is_made = one[0] in (op.CALL, op.INVOKE) and not callee.is_cpp and (callee.is_generator or "async" in callee.code.flags)
    return is_made and _PLAIN.issuperset(callee.decorators) and all(use[0] in (op.BIND, op.UNBIND) for use in function.uses[one[2]])
