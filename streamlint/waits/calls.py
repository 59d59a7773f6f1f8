"""What calls make of a value that they are given, or that is their receiver: functions of the program by what they do, others by names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind
from streamlint.facts.code.objects import Constant, Container, Instance, Memory
from streamlint.facts.repetition.effects import GOES_BACKWARD
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.code import Parameter
from streamlint.waits import sinks
from streamlint.waits.constants import constants_of
from streamlint.waits.entered import Held
from streamlint.waits.holders import Frame, Holders, Member, Path, Places, State, fits, key_of
from streamlint.waits.operands import argument_registers, bound_of, operand_of, selected
from streamlint.waits.questions import alike

_COMPUTING = frozenset({"compute", "view", "factory", "transfer", "same"})
_DEEPEST = 6
"""Calls into one another that are followed."""


class Calls:
    """Follows a value through calls. An answer of None: the call needs the value. ``is_whole``: the value is a whole tensor, no number.
    ``serves``: the value is a result of rounds that serve: who shows it, writes it or computes with it on the host needs it."""

    def __init__(self, places: Places, holders: Holders, is_forward: bool, is_whole: bool, serves: bool) -> None:
        self.places = places
        self.facts = places.facts
        self.holders = holders
        self.is_forward = is_forward
        self.is_whole = is_whole
        self.serves = serves
        self.begun: set[tuple[Function, int]] = set()
        """The registers that are followed from."""

    def used(self, state: State, one: Instruction) -> Iterator[State | None]:
        """What a call makes of a value that a register of it holds."""
        function = state.frame.function
        if any(call.instruction == one and call.row.does in GOES_BACKWARD for call in self.places.hot.rounds.of(function)):
            if state.kept and not state.path:
                yield None  # a factor of the loss, from an earlier round
            return
        edges = self.places.hot.graph.calls(function).edges
        callees = [edge.callee for edge in edges if edge.instruction == one and not edge.is_higher_order]
        if one[3] == state.register:
            yield from self._asked(state, one)
        if any(register == state.register for _, register in argument_registers(function, one)):
            inner = [found for callee in callees for found in self._into(state, one, callee)]
            yield from inner
            if not inner or one in self.places.hot.graph.calls(function).unknown:
                yield from self._given(state, one)

    # --- functions of the program

    def _into(self, state: State, one: Instruction, callee: Function) -> Iterator[State]:
        """The parameters of a function for which a call hands a register over."""
        frame = state.frame
        if frame.depth >= _DEEPEST or frame.runs(callee):
            return
        inner = frame.enter(one, callee, self.places.blocks(callee))
        registers = {param[3]: param[2] for param in callee.by_opcode[op.PARAM]}
        for index, path in self._parameters(state, one, callee):
            if index in registers:
                yield State(inner, registers[index], path, state.kept, state.real)

    def read_by(self, state: State, one: Instruction, callee: Function) -> Iterator[State]:
        """What a function has captured that a call enters: the parameters that stand for a register."""
        taken = [index for index in range(len(callee.code.parameters)) if callee.default(index) == state.register]
        registers = {param[3]: param[2] for param in callee.by_opcode[op.PARAM]}
        if state.frame.depth < _DEEPEST and not state.frame.runs(callee):
            inner = state.frame.enter(one, callee, self.places.blocks(callee))
            yield from (State(inner, registers[index], state.path, state.kept, state.real) for index in taken if index in registers)

    def _parameters(self, state: State, one: Instruction, callee: Function) -> Iterator[tuple[int, Path]]:
        place = bound_of(state.frame.function, one, callee)
        for kind, register in argument_registers(state.frame.function, one):
            if register == state.register:
                yield from _takers(callee.code.parameters, kind, place, state.path)
            place += kind is None

    # --- the receiver

    def _asked(self, state: State, one: Instruction) -> Iterator[State | None]:
        function, path = state.frame.function, state.path
        if one[0] == op.CALL:
            if not path:
                yield state.at(one[2], ())
            return
        name = function.text(one[4])
        if not path:
            if name not in function.known("of-form"):
                yield None if self.is_forward else state.at(one[2], ())
        elif isinstance(path[0], Member) or name in function.known("drops", "puts", "extends"):
            return
        elif name in function.known("gives-entries"):
            yield state.at(one[2], (None, 1, *path[1:]))
        elif name in function.known("gives-values"):
            yield state.at(one[2], (None, *path[1:]))
        elif name in function.known("whole"):
            yield state.at(one[2], path)
        elif name in function.known("takes"):
            if len(one) <= 6 or fits(path[0], key_of(function, one[6])):
                yield state.at(one[2], path[1:])
        elif not self._is_of_program(function, one[3]):
            yield state.at(one[2], ())

    def _is_of_program(self, function: Function, register: int) -> bool:
        return any(isinstance(value, Instance) for value in self.facts.values(function, register).values)

    # --- arguments of libraries' functions, and of what is unknown

    def _given(self, state: State, one: Instruction) -> Iterator[State | None]:
        function, path = state.frame.function, state.path
        name = sinks.called_name(function, one)
        if self._is_launch(function, one):
            return  # a kernel loads a number as well
        is_text = _makes_text(function, one, name)
        if is_text and self.serves:
            yield None
        if is_text or (name in sinks.ASKS_KIND and one[0] != op.INVOKE) or (path and isinstance(path[0], Member)):
            return
        if (found := self._by_name(state, one, name)) is not None:
            yield from found
        elif self.is_forward:
            yield from self._forwarded(state, one, name)
        elif self.serves and not self._is_of_arrays(function, one):
            yield None
        else:
            is_computed = self.is_whole and not self._is_of_torch(function, one) and not self._is_on_device(function, state.register)
            yield state.at(one[2], ())._replace(kept=state.kept or is_computed)

    def _by_name(self, state: State, one: Instruction, name: str) -> Iterable[State | None] | None:
        """What a function or a method that is known by its name makes of an argument; None for others."""
        if sinks.decides(state.frame.function, name):
            return (None,) if not state.path or name in ("any", "all") else ()
        if name in state.frame.function.known("of-number") and self._is_uploaded(state.frame.function, one, name):
            return (None,) if state.kept and self.is_whole else ()
        if name == "step":
            return (None,)  # of a schedule or an environment: it goes by what it is given
        return self._by_method(state, one, name) if one[0] == op.INVOKE else self._by_builtin(state, one, name)

    def _by_method(self, state: State, one: Instruction, name: str) -> Iterable[State | None] | None:
        """What a method that is known by its name makes of an argument; None for other methods."""
        if name in state.frame.function.known("puts", "extends", "puts-if-absent"):
            return self._kept(state, one, name)
        if name.endswith("_") and not name.endswith("__"):
            return (state.at(one[2], ()),)  # `weight.add_(change, alpha=x)`: work on a tensor, which takes a tensor as well
        return None

    def _by_builtin(self, state: State, one: Instruction, name: str) -> Iterable[State | None] | None:
        """What a builtin function makes of an argument; None for other functions."""
        if name in sinks.EXTREMES:
            return self._extreme(state, one)
        if name == "setattr" and len(one) == 8 and one[7] == state.register:
            return self.holders.attribute(state, one[5], str(state.frame.function.constant(one[6])))
        paths = self._through(state, one, name)
        return [state.at(one[2], path) for path in paths] if paths is not None else None

    def reads_given(self, function: Function, one: Instruction, given: Function) -> bool:
        """Whether a library that takes a function reads its result: ``LBFGS.step(closure)``."""
        for call in self.places.hot.graph.calls(function).libraries:
            if call.instruction == one and call.row is not None:
                selectors = call.row.get("reads")
                for selector in selectors if isinstance(selectors, tuple) else ():
                    register = selected(function, one, selector, True) if selector.kind == "argument" else None
                    passed = self.facts.functions_in(self.facts.values(function, register).values) if register is not None else ()
                    if any(each.function is given for each in passed):
                        return True
        return False

    def _is_launch(self, function: Function, one: Instruction) -> bool:
        """``kernel[grid](...)`` of a function that Triton compiles."""
        called = function.definitions[one[3]] if one[0] == op.CALL else None
        if called is None or called[0] != op.ITEM:
            return False
        kernels = self.facts.functions_in(self.facts.values(function, called[3]).values)
        return any(name.partition(".")[0] == "triton" for kernel in kernels for name in kernel.function.decorators)

    def _is_of_torch(self, function: Function, one: Instruction) -> bool:
        """Whether the device could compute the same: of tensors that were copied, not what another function makes of lists or arrays. A
        method's receiver may be anything else that unknown callers pass."""
        calls = self.places.hot.graph.calls(function)
        meant = [call for call in calls.libraries if call.instruction == one]
        is_known = one not in calls.unknown or all(isinstance(call.receiver, Memory) for call in meant)
        return bool(meant) and is_known and all(call.name.startswith("torch.") for call in meant)

    def _is_on_device(self, function: Function, register: int) -> bool:
        """Whether what the host has made of a value is back on the device: the program works with it there."""
        spaces = {value.space for value in self.facts.values(function, register).values if isinstance(value, Memory)}
        return "device" in spaces and "host" not in spaces

    def _is_of_arrays(self, function: Function, one: Instruction) -> bool:
        """Whether a call computes an array of arrays, as the device could: functions of libraries that do nothing else."""
        calls = self.places.hot.graph.calls(function)
        rows = [call.row for call in calls.libraries if call.instruction == one]
        return bool(rows) and one not in calls.unknown and all(row is not None and row.effect in _COMPUTING for row in rows)

    def _forwarded(self, state: State, one: Instruction, name: str) -> Iterator[State | None]:
        """A forward hands a number to something that may take a size."""
        if sinks.is_kept(state.frame.function, name) or any(isinstance(key, str) for key in state.path):
            return
        if sinks.rounds_off(state.frame.function, name) or not state.real:
            yield None
        yield state.at(one[2], ())

    def _is_uploaded(self, function: Function, one: Instruction, name: str) -> bool:
        """Whether a number goes straight back to the device."""
        return name.startswith("new_") or any(kind == "device" for kind, _ in argument_registers(function, one))

    def _through(self, state: State, one: Instruction, name: str) -> list[Path] | None:
        """The paths to the value in what a builtin gives that computes nothing new; None for other functions."""
        path = state.path
        given = argument_registers(state.frame.function, one)
        if name in sinks.SAME:
            if self.is_forward and sinks.rounds_off(state.frame.function, name):
                return None
            return [path]
        if name == "sum":
            return [path[1:]]
        if sinks.copies(state.frame.function, name):
            return [(None, *path[1:]) if path else ()]
        if sinks.makes_dictionary(state.frame.function, name):
            return [(kind, *path) if isinstance(kind, str) else path for kind, register in given if register == state.register]
        if name == "enumerate":
            return [(None, 1, *path[1:])]
        if name == "zip":
            return [(None, place, *path[1:]) for place, (_, register) in enumerate(given) if register == state.register]
        return [path[1:]] if name == "next" else None

    def _extreme(self, state: State, one: Instruction) -> Iterator[State | None]:
        """``max(worst, x)``: the largest so far can be kept on the device, as a sum can; ``max(x, 1)`` is ``clamp`` there."""
        function = state.frame.function
        others = [register for _, register in argument_registers(function, one) if register != state.register]
        is_back = (function, one[2]) in self.begun  # what it gave has come to its own arguments
        if state.path or is_back or self._is_running(function, one, [*others, state.register]):
            yield state.at(one[2], state.path[1:])
        elif all(self._is_literal(function, register) for register in others):
            yield state.at(one[2], ())
        else:
            yield None

    def _is_literal(self, function: Function, register: int) -> bool:
        """Whether an argument is a number that is written out, here or where it comes from."""
        values = self.facts.values(function, register).values
        numbers = [value for value in values if isinstance(value, Constant) and isinstance(value.value, int | float)]
        return bool(numbers) and not any(isinstance(value, Memory) for value in values)

    def _is_running(self, function: Function, one: Instruction, others: list[int]) -> bool:
        """Whether another argument is what the call gave before: by a phi, from the place that the result is put into, or by a caller."""
        places: set[tuple[object, ...]] = set()
        for use in function.uses[one[2]]:
            if use[0] == op.SET_ATTR:
                places.add((op.ATTR, alike(function, use[2]), function.text(use[3])))
            elif use[0] == op.SET_ITEM:
                places.add((op.ITEM, alike(function, use[2]), alike(function, use[3])))
            elif use[0] in (op.STORE, op.SET_NAME):
                places.add((op.LOAD if use[0] == op.STORE else op.NAME, function.unit.ir.constants[use[2]]))
        before = behind(function, others, lambda each: each[3:] if each[0] == op.PHI else ())
        if any(each == one or self._place(function, each) in places for each in before):
            return True
        given = constants_of(self.facts).given
        return any(root[:2] == (function, one[2]) for other in others for root in given.roots(Held(function, other)) or ())

    def _place(self, function: Function, one: Instruction) -> tuple[object, ...]:
        if one[0] == op.ATTR:
            return op.ATTR, alike(function, one[3]), function.text(one[4])
        if one[0] == op.ITEM:
            return op.ITEM, alike(function, one[3]), alike(function, one[4])
        return (one[0], function.unit.ir.constants[one[3]]) if one[0] in (op.LOAD, op.NAME) else ()

    def _kept(self, state: State, one: Instruction, name: str) -> Iterator[State | None]:
        """A method of a container takes the value in."""
        function, path = state.frame.function, state.path
        for kind, register in argument_registers(function, one):
            if register != state.register:
                continue
            if name in function.known("puts-if-absent"):
                yield from self.holders.put(state, one[3], (key_of(function, one[6]), *path))
                yield state.at(one[2], path)
            elif name in function.known("puts"):
                yield from self.holders.put(state, one[3], (None, *path))
            elif isinstance(kind, str):
                yield from self.holders.put(state, one[3], (kind, *path))
            elif path or self._is_container(function, one[3]):
                yield from self.holders.put(state, one[3], (path[0] if function.invokes(one, "puts-entries") and path else None, *path[1:]))

    def _is_container(self, function: Function, register: int) -> bool:
        return any(isinstance(value, Container) for value in self.facts.values(function, register).values)

    def may_be_group(self, frame: Frame, register: int) -> bool:
        """Whether a register may hold one of an optimizer's groups: it is taken from them, or nothing says that it is a container."""
        waiting, seen = [(frame, register)], set()
        while waiting:
            place = waiting.pop()
            if place in seen:
                continue
            seen.add(place)
            inside, part = place
            function, one = inside.function, inside.function.definitions[part] if part >= 0 else None
            if one is None:
                continue
            if one[0] == op.ATTR and function.text(one[4]) == "param_groups":
                return True
            if one[0] == op.PARAM and inside.caller is not None and inside.call is not None and inside.call[0] in (op.CALL, op.INVOKE):
                given = operand_of(inside.caller.function, inside.call, function, one[3])
                waiting += [(inside.caller, given)] if given is not None else []
            elif one[0] in (op.ITEM, op.NEXT, op.ITER, op.UNPACK):
                waiting.append((inside, one[3]))
            elif one[0] in (op.PHI, op.CALL):
                waiting += [(inside, each) for each in one[3 if one[0] == op.PHI else 5 :]]
        return not self._is_container(frame.function, register)


def _takers(parameters: Sequence[Parameter], kind: object, place: int, path: Path) -> Iterator[tuple[int, Path]]:
    """The parameters that take an argument behind ``place`` others without a keyword, each with the path to the value in it."""
    plain, star, double = (_of_kind(parameters, each) for each in ("plain", "star", "double"))
    named = {parameters[index].name: index for index in (*plain, *_of_kind(parameters, "keyword"))}
    if kind is None:
        if place < len(plain):
            yield plain[place], path
        elif star:
            yield star[0], (place - len(plain), *path)
    elif isinstance(kind, str):
        if kind in named:
            yield named[kind], path
        elif double:
            yield double[0], (kind, *path)
    elif kind == 1:
        yield from _spread([index for index in plain if index >= place], star, path)
    elif kind == 2:
        yield from _spread([named[name] for name in named if not path or path[0] in (None, name, "*")], double, path)


def _makes_text(function: Function, one: Instruction, name: str) -> bool:
    """Whether a call makes a text of its arguments."""
    return name in sinks.TEXT or (one[0] == op.INVOKE and name == "join" and isinstance(function.constant(one[3]), str))


def _of_kind(parameters: Sequence[Parameter], kind: str) -> list[int]:
    return [index for index, parameter in enumerate(parameters) if parameter.kind == kind]


def _spread(indices: list[int], gathers: list[int], path: Path) -> Iterator[tuple[int, Path]]:
    """The parameters that take an element of an argument behind ``*`` or ``**``; else the one that gathers the rest."""
    yield from ((index, path[1:]) for index in indices)
    if not indices:
        yield from ((index, path or (None,)) for index in gathers)
