"""Calls: which functions an object leads to when it is called, how arguments reach parameters, and what comes back."""

from __future__ import annotations

from collections.abc import Iterable

from streamlint.facts.code.fitting import takes
from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import DICT, LIST, arguments_of
from streamlint.facts.code.objects import (
    Activation,
    BoundMethod,
    Chosen,
    ClassObject,
    Constant,
    Container,
    External,
    FunctionObject,
    Group,
    Instance,
    LibraryObject,
    Many,
    Memory,
    Object,
    PartialObject,
    Scalar,
    Site,
    Unknown,
)
from streamlint.facts.values.flow import DEEPEST, DEEPEST_CPP
from streamlint.facts.values.frames import Arguments, Frame
from streamlint.facts.values.nodes import Node
from streamlint.facts.values.parameters import Parameters
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import led_to

PLAIN = (Constant, Scalar, Unknown)
"""Objects that are not distinguished by the call that returns them."""

MOST_APART = 60
"""A function that is called from more places stands for all of its calls; one to which more chains of calls lead is distinguished by
fewer calls behind one another."""


class Calls(Parameters):
    """Value flow of calls."""

    # --- arguments

    def arguments(self, frame: Frame, instruction: Instruction) -> Arguments:
        """The arguments of a call instruction."""
        key = (frame, instruction)
        found = self._arguments.get(key)
        if found is None:
            found = self._arguments[key] = Arguments(frame, Site(frame.function, instruction))
            self._fill(found, frame, arguments_of(frame.function, instruction))
        return found

    def _fill(self, found: Arguments, frame: Frame, given: Iterable[tuple[int, object]]) -> None:
        for register, kind in given:
            node = self.register(frame, register)
            if kind is None and not found.starred:
                found.positional.append(node)
            elif kind is None:
                found.starred.append(self.one_of(node))
            elif kind == LIST:
                found.starred.append(node)
            elif kind == DICT:
                found.double.append(node)
            else:
                found.keywords[str(kind)] = node

    def objects_of_node(self, node: Node) -> Object:
        """An iterable that gives what a node holds."""
        return self.objects(Group, "iterable", (node,))

    def one_of(self, node: Node) -> Node:
        """A node that holds an iterable which gives what another node holds."""
        return self.holding(self.objects_of_node(node))

    # --- calling an object

    def call(self, callee: Object, arguments: Arguments, target: Node) -> None:
        if not target.first("call", callee, arguments):
            return
        if isinstance(callee, FunctionObject):
            self._enter_taking(callee, None, arguments, target)
        elif isinstance(callee, BoundMethod):
            self._call_bound(callee, arguments, target)
        elif isinstance(callee, ClassObject):
            self.make_object(callee, arguments, target)
        elif isinstance(callee, Instance):
            self._call_instance(callee, arguments, target)
        elif isinstance(callee, Many):
            self.called_through(callee, arguments, target)
        elif isinstance(callee, PartialObject):
            self._call_partial(callee, arguments, target)
        elif isinstance(callee, External):
            self.library_call(callee, arguments, target)
        elif isinstance(callee, (LibraryObject, Memory)):
            self.library_object_call(callee, arguments, target)
        elif isinstance(callee, Container) and callee.kind == "modules":
            self.chain_call(callee, arguments, target)
        elif isinstance(callee, Unknown):
            self.unknown_call(callee.reason, arguments, target)
        elif isinstance(callee, Activation):  # a scope that `contextlib.contextmanager` has made decorates a function
            for node in arguments.positional[:1]:
                self.solver.edge(node, target)
        else:
            self.unknown(target, "dynamic")

    def effect(self, frame: Frame, one: Instruction) -> Node:
        """What an instruction without a result calls."""
        raise NotImplementedError

    def library_call(self, callee: External, arguments: Arguments, target: Node) -> None:
        """A function of a library is called."""
        raise NotImplementedError

    def library_object_call(self, callee: Object, arguments: Arguments, target: Node) -> None:
        """An object of a library is called: a module, a context manager that is used as a decorator."""
        raise NotImplementedError

    def chain_call(self, callee: Container, arguments: Arguments, target: Node) -> None:
        """A module that runs others, one behind the other, is called."""
        raise NotImplementedError

    def unknown_call(self, reason: str, arguments: Arguments, target: Node) -> None:
        """Code that is not part of the program is called. A function that it is given alone is most likely decorated: it comes back,
        unless what comes back is itself a decorator: ``@registry.register(Class)`` makes no object of the class."""
        self.unknown(target, reason)
        if len(arguments.positional) == 1 and not (arguments.keywords or arguments.starred) and not _makes_decorator(arguments.site):

            def arrived(value: Object) -> None:
                if isinstance(value, (FunctionObject, ClassObject, Many)):
                    self.solver.add(target, value, arguments.positional[0])

            self.solver.when(arguments.positional[0], arrived)

    def _joined(self, before: Arguments, behind: Arguments) -> Arguments:
        key = (before, behind)
        found = self._joined_arguments.get(key)
        if found is None:
            found = self._joined_arguments[key] = behind.behind(before, self.one_of)
        return found

    def hand_over(self, callee: Object, arguments: Arguments, is_all: bool) -> None:
        """A library is passed what it may call, with these arguments: of a partial object those that it was given, others may follow."""
        while isinstance(callee, PartialObject):
            arguments = self._joined(callee.arguments, arguments)
            callee = callee.callee
        if isinstance(callee, Instance):
            if self.has_method(callee, "__call__"):
                method = self.method_node(callee, "__call__", None)
                self.solver.when(method, lambda held: self.hand_over(held, arguments, is_all))
            return
        is_method = isinstance(callee, BoundMethod) and callee.method.function.has_receiver
        called, receiver = (callee.method, callee.receiver) if isinstance(callee, BoundMethod) and is_method else (callee, None)
        if isinstance(called, FunctionObject) and arguments.all:
            given = arguments.behind(Arguments(None, None), self.one_of)
            given.is_all = is_all
            self.tell(called, receiver, given)

    def _call_bound(self, callee: BoundMethod, arguments: Arguments, target: Node) -> None:
        """A method is called. Of a function that a class holds and is written elsewhere, as what a decorator gives, the receiver is an
        argument like any other."""
        function = callee.method.function
        if function.has_receiver or function.is_cpp:
            self._enter_taking(callee.method, callee.receiver, arguments, target)
            return
        first = self._receivers.get(callee.receiver)
        if first is None:
            first = self._receivers[callee.receiver] = Arguments(None, None)
            first.positional.append(self.holding(callee.receiver))
        self._enter_taking(callee.method, None, self._joined(first, arguments), target)

    def _call_instance(self, callee: Instance, arguments: Arguments, target: Node) -> None:
        names = ["__call__"] if self.has_method(callee, "__call__") else []
        libraries = self.hierarchy.libraries(callee.definition)
        names += [forwarded for library in libraries if (forwarded := self.forwarded(library)) and not names]
        for name in names[:1]:
            method = self.method_node(callee, name, None)
            self.solver.when(method, lambda held: self.call(held, arguments, target))
        if not names and libraries and not callee.definition.unit.is_cpp:  # what a library's class does: `contextlib.ContextDecorator`
            self.unknown_call("dynamic", arguments, target)
        elif not names:
            self.unknown(target, "dynamic")

    def forwarded(self, library: str) -> str:
        """The method that calling an object of a library's class runs; "" if none is known."""
        calling = self.models.marked("calls-forward")
        return "forward" if library in calling or not calling.isdisjoint(self.models.lineage(library)) else ""

    # --- entering a function

    def _call_partial(self, partial: PartialObject, arguments: Arguments, target: Node) -> None:
        """What a partial object holds is called; one of a generic function's bodies if the first argument is an object that it is for."""
        callee = partial.callee

        def arrived(value: Object) -> None:
            if not isinstance(callee, FunctionObject) or self.dispatched.takes(callee.function, value):
                self.call(callee, arguments, target)

        if isinstance(partial, Chosen) and arguments.positional:
            self.solver.when(arguments.positional[0], arrived)
        else:
            self.call(callee, self._joined(partial.arguments, arguments), target)

    def _enter_taking(self, called: FunctionObject, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        """Enter a function that takes the arguments; a call of another one raises."""
        is_of_python = arguments.site is None or not arguments.site.function.is_cpp
        if is_of_python and not takes(called.function, receiver is not None, len(arguments.positional), arguments.keywords):
            self.unknown(target, "dynamic")
        else:
            self.enter(called, receiver, arguments, target)

    def enter(self, called: FunctionObject, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        self.notify(called, receiver, arguments)
        flags = called.function.code.flags
        if "generator" in flags:
            frame = self._frame_of_call(called, receiver, arguments)
            self.solver.add(target, self.activation(frame, "generator"), None, arguments.site)
        elif "async" in flags:
            frame = self._frame_of_call(called, receiver, arguments)
            self.solver.add(target, self.activation(frame, "coroutine"), None, arguments.site)
        else:
            self._returned(called, receiver, arguments, target)

    def _returned(self, called: FunctionObject, receiver: Object | None, arguments: Arguments, target: Node) -> None:
        """What a call returns. Only where all calls together return what is worth telling apart, this one is looked at by itself."""
        if self._hands_back(called.function) and arguments.joint is None and not _is_within(arguments.frame, called.function):
            own = self.frame(called.function, called.frame, receiver, arguments)
            self.solver.edge(self.result(own), target, arguments.site)
            return
        shared = self.result(self.frame(called.function, called.frame))
        if not self.dependence(called.function) or len(self.call_places(called.function)) > MOST_APART:
            self.solver.edge(shared, target, arguments.site)
            return

        def arrived(value: Object) -> None:
            if isinstance(value, PLAIN):
                self.solver.add(target, value, shared, arguments.site)
            else:
                self._by_itself(called, receiver, arguments, shared, target)

        self.solver.when(shared, arrived)

    def _hands_back(self, function: Function) -> bool:
        """Whether a function gives back one of its parameters, whichever way it is left: what it decorates, or puts into a table."""
        found = self._backs.get(function)
        if found is None:
            backs = [one[2] for one in function.by_opcode[op.RETURN]] if not function.is_cpp else []
            plain = (index for index, one in enumerate(function.code.parameters) if one.kind in ("plain", "keyword"))
            same = any(all(function.is_parameter(register, index) for register in backs) for index in plain)
            found = self._backs[function] = bool(backs) and same and not _is_rebound(function)
        return found

    def _by_itself(self, called: FunctionObject, receiver: Object | None, arguments: Arguments, shared: Node, target: Node) -> None:
        """A call is looked at by itself; if too many of the function are, all of them give what all calls together do."""
        frames = self._apart.setdefault(called.function, {})
        if len(frames) <= MOST_APART:
            frame = self._frame_of_call(called, receiver, arguments)
            frames.setdefault(frame, []).append((shared, target, arguments.site))
            self.solver.edge(self.result(frame), target, arguments.site)
            if len(frames) > MOST_APART:
                for together, one, site in (place for places in frames.values() for place in places):
                    self.solver.edge(together, one, site)
        else:
            self.solver.edge(shared, target, arguments.site)

    def _frame_of_call(self, called: FunctionObject, receiver: Object | None, arguments: Arguments) -> Frame:
        function, outer = called.function, called.frame
        depends = self.dependence(function)
        first = 1 if function.has_receiver and receiver is not None else 0
        needs_arguments = any(index >= first for index in depends)
        kept = receiver if receiver is not None and (0 in depends or needs_arguments) else None
        caller = arguments.frame
        if not needs_arguments or arguments.joint is not None or (caller is not None and caller.is_entered(function)):
            return self.frame(function, outer, kept)
        if caller is not None and caller.depth >= self._deepest(function):
            if (nearest := self._of_all_calls(caller, arguments)) is None:
                return self.frame(function, outer, kept)
            arguments = nearest
        return self.frame(function, outer, kept, arguments)

    def _of_all_calls(self, caller: Frame, arguments: Arguments) -> Arguments | None:
        """The arguments that a call hands over in all calls of its caller together; None where that is no plain call."""
        home = self.base(caller.function)
        if caller is home or arguments.site is None:
            return None
        if self._arguments.get((caller, arguments.site.instruction)) is not arguments:
            return None
        return self.arguments(home, arguments.site.instruction)

    def _deepest(self, function: Function) -> int:
        """How many calls behind one another a function is distinguished by: as many as make no more than `MOST_APART` chains of calls."""
        found = self._depths.get(function)
        if found is None:
            found = DEEPEST_CPP if function.is_cpp else DEEPEST
            while found and self._chains(function, found) > MOST_APART:
                found -= 1
            self._depths[function] = found
        return found

    def _chains(self, function: Function, length: int) -> int:
        """How many chains of calls, at most so long, end in a function; counted to a little more than `MOST_APART`."""
        if not self.dependence(function):
            return 0
        key = (function, length)
        found = self._chain_counts.get(key)
        if found is None:
            places = self.call_places(function)
            found = len(places)
            for caller, _ in places if length > 1 and found <= MOST_APART else ():
                found += self._chains(caller, length - 1)
                if found > MOST_APART:
                    break
            self._chain_counts[key] = found
        return found

    def call_places(self, function: Function) -> list[tuple[Function, Instruction]]:
        """The calls that may enter a function, by names."""
        raise NotImplementedError

    def dependence(self, function: Function) -> frozenset[int]:
        """The parameters that a function's result may depend on, by their numbers."""
        found = self._dependence.get(function)
        if found is None:
            found = self._dependence[function] = frozenset(_slice(function))
        return found


def _slice(function: Function) -> set[int]:
    """The parameters from which what a function returns or yields is reached, backwards through its registers and cells."""
    constants = function.unit.ir.constants
    ends = [one[2] for one in function.by_opcode[op.RETURN] if one[2] != op.NONE]
    ends += [one[3] for one in function.by_opcode[op.YIELD] if one[3] != op.NONE]
    ends += [one[3] for one in function.by_opcode[op.YIELD_FROM]]

    def before(register: int) -> Iterable[int]:
        one = function.definitions[register]
        if one is not None and one[0] == op.LOAD:
            return [store[3] for store in function.by_opcode[op.STORE] if store[2] == one[3]]
        if one is not None and one[0] == op.FUNCTION:
            below = function.unit.function(one[3]).below
            names = {constants[load[3]] for inner in below for load in inner.by_opcode[op.LOAD]}
            return [*(store[3] for store in function.by_opcode[op.STORE] if constants[store[2]] in names), *one[4:]]
        return op.reads(one) if one is not None else ()

    reached = set(led_to(ends, before))
    return {one[3] for one in function.by_opcode[op.PARAM] if one[2] in reached}


def _is_within(frame: Frame | None, function: Function) -> bool:
    return frame is not None and frame.is_entered(function)


def _is_rebound(function: Function) -> bool:
    """Whether a function, or one inside of it, gives another value to a parameter that its inner functions see."""
    constants, number = function.unit.ir.constants, function.code.number
    cells = {(one.name, number) for one in function.code.parameters}
    stores = ((inner, one) for inner in function.below for one in inner.by_opcode[op.STORE] if constants[one[2]] in cells)
    given = (inner.definitions[one[3]] for inner, one in stores)
    return any(one is None or one[0] != op.PARAM for one in given)


def _makes_decorator(site: Site | None) -> bool:
    """Whether what a call gives is called with a function or class whose definition stands there."""
    if site is None:
        return False
    function, made = site.function, site.instruction[2]
    calls = (use for use in function.uses[made] if use[0] == op.CALL and use[3] == made and len(use) == 6)
    given = (function.definitions[use[5]] for use in calls if use[5] >= 0)
    return any(one is not None and one[0] in (op.FUNCTION, op.CLASS) for one in given)
