"""Where a value was made, and what carried it to where it is: calls and their results, attributes, records, containers, closures.

The facts join all calls of a function, and what they know of a function that others may call is never all. A walk goes back from one
register instead, by the calls that lead there where these are known, and keeps in mind which part of an object is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import DICT, LIST
from streamlint.facts.code.objects import Activation, ClassObject, Container, Object, Site, may_be_under
from streamlint.facts.values.containers import put_by
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.support.memo import memoized
from streamlint.transfer.carried_calls import ANY, Key, asked, given_on
from streamlint.transfer.transfer import Transfer
from streamlint.waits.closures import is_captured, may_be_made_for
from streamlint.waits.constants import constants_of
from streamlint.waits.entered import Context, entered_by
from streamlint.waits.operands import all_given, argument_registers, bound_of, operand_of, spread_for
from streamlint.waits.questions import conditions
from streamlint.waits.record_fields import RecordFields

MOST = 300
"""Steps of one question; what they have not reached is taken as it is where they end."""
_MOST_CALLERS = 40
_SAME = {op.COPY: 3, op.AWAIT: 3, op.CAST: 4, op.REBIND: 5, op.ITER: 3}
_TAKEN: dict[int, Callable[[Function, Instruction], Key]] = {
    op.ATTR: lambda function, one: Key(function.text(one[4]), False),
    op.ITEM: lambda function, one: Key(function.constant(one[4])),
    op.UNPACK: lambda _, one: Key(one[4]) if one[6] == op.NONE else ANY,
    op.NEXT: lambda *_: ANY,
}
"""What an instruction takes of its operand."""
Started = Callable[[Function, int], Iterable[tuple[Function, int]]]
"""By function and number of a parameter: what is given for it where a thread or process is started."""


class Carried(NamedTuple):
    """A register from which a value comes, in the functions that were entered by some calls. ``keys`` lead from what it holds to the
    value, ``asked`` is the register behind the last of them. ``through``: a closure, and the function for which it was called there."""

    function: Function
    register: int
    context: Context = ()
    keys: tuple[Key, ...] = ()
    asked: tuple[Function, int, Context] | None = None
    through: tuple[Function, Function] | None = None

    @property
    def instruction(self) -> Instruction | None:
        """What defines the register."""
        return self.function.definitions[self.register] if self.register >= 0 else None

    def at(self, register: int, function: Function | None = None, context: Context | None = None) -> Carried:
        """The same part of another register."""
        around = self.context if context is None else context
        return self._replace(function=function or self.function, register=register, context=around)

    def part(self, register: int, key: Key) -> Carried:
        """What is taken of a register's value for this one."""
        asked = self.asked if self.keys else (self.function, self.register, self.context)
        return self._replace(register=register, keys=(key, *self.keys), asked=asked)

    def inside(self, register: int, function: Function | None = None, context: Context | None = None) -> Carried:
        """A register that holds the part that is asked for first."""
        left = self.keys[1:]
        return self.at(register, function, context)._replace(keys=left, asked=self.asked if left else None)


class Carriers:
    """Finds where the values of a program come from."""

    def __init__(self, transfer: Transfer, started: Started | None = None) -> None:
        self.transfer = transfer
        self.started = started
        self.facts = transfer.facts
        self.records = RecordFields(transfer.facts)
        self.constants = constants_of(transfer.facts)
        self._known: dict[tuple[Function, int, Context], tuple[Carried, ...]] = {}
        self._parts: dict[tuple[Function, int, tuple[Key, ...]], tuple[Carried, ...]] = {}

    def sources(self, function: Function, register: int, context: Context = ()) -> tuple[Carried, ...]:
        """The registers in which the value of a register was first, as far back as that is known."""
        roots = self.roots(function, register, context)
        return tuple(dict.fromkeys(each if each.asked is None else Carried(*each.asked) for each in roots))

    def values(self, function: Function, register: int, context: Context = ()) -> list[Object]:
        """What a register may hold where its function is entered by the calls in view alone."""
        found = [(each.function, each.register) for each in self.sources(function, register, context)]
        return list(dict.fromkeys(value for each in found for value in self.transfer.values(*each)))

    def roots(self, function: Function, register: int, context: Context = ()) -> tuple[Carried, ...]:
        """The same; where it is not known what holds the value, what that is taken from, with the keys that lead from there."""
        asked = (function, register, context)
        found = self._known.get(asked)
        if found is None:
            found = self._known[asked] = tuple(dict.fromkeys(self._walk(Carried(*asked))))
        return found

    def parts(self, function: Function, register: int, keys: tuple[Key, ...]) -> tuple[Carried, ...]:
        """What is found behind some keys of a container, record or object that is made in a register; empty where that is unknown."""
        asked = (function, register, keys)
        found = self._parts.get(asked)
        if found is None:
            is_made = self._is_made(function, function.definitions[register])
            found = tuple(dict.fromkeys(self._walk(Carried(*asked[:2], (), keys)))) if is_made else ()
            found = self._parts[asked] = found if not any(each.keys for each in found) else ()
        return found

    def _is_made(self, function: Function, one: Instruction | None) -> bool:
        """Whether an instruction makes a container, a record or an object of the program."""
        if one is None or one[0] in (op.BUILD, op.DICT):
            return one is not None
        is_call = one[0] in (op.CALL, op.INVOKE)
        return is_call and (any(self._classes(function, one)) or bool(self.records.of(function, one)))

    @memoized
    def alone(self, way: Carried) -> Carried:
        """As far back as a value was in one register at a time: None, and arguments that a call does not give, aside."""
        return self._find_alone(way)

    def _find_alone(self, way: Carried) -> Carried:
        for _ in range(MOST):
            steps = [step for step in dict.fromkeys(self._steps(way) or ()) if not _is_none(step)]
            if len(steps) > 1:
                steps = [step for step in steps if any(True for _ in self._walk(step))]
            if len(steps) != 1:
                break
            way = steps[0]
        return way

    def _walk(self, begin: Carried) -> Iterator[Carried]:
        seen, waiting = {begin}, [begin]
        while waiting:
            way = waiting.pop()
            steps = self._steps(way) if len(seen) <= MOST else None
            if steps is None:
                yield way
                continue
            waiting += [step for step in dict.fromkeys(steps) if step not in seen]
            seen.update(steps)

    # --- one step back

    def before(self, way: Carried) -> list[Carried]:
        """The registers that a value was in just before."""
        return list(dict.fromkeys(self._steps(way) or ()))

    def _steps(self, way: Carried) -> list[Carried] | None:
        """The registers that a value was in before; None where that is unknown."""
        one = way.instruction
        if one is None or (way.function.is_cpp and (one[0] != op.PARAM or way.keys)):  # there pointers lead to what calls fill
            return None
        return self._given(way, one) if one[0] == op.PARAM else list(self._before(way, one)) or None

    def _before(self, way: Carried, one: Instruction) -> Iterable[Carried]:
        function, opcode = way.function, one[0]
        if opcode in _SAME:
            return (way.at(one[_SAME[opcode]]),)
        if opcode == op.PHI:
            return self._joined(way, one)
        if opcode in _TAKEN:
            return (way.part(one[3], _TAKEN[opcode](function, one)),)
        if opcode == op.ENTER:
            return self._entered(way, one)
        if opcode == op.LOAD:
            return self._cell(way, one[3])
        if opcode == op.NAME:
            return (way.at(each, holder) for holder, each in function.unit.globals.get(function.text(one[3]), ()))
        if opcode == op.IMPORT:
            return self._imported(way, one)
        if opcode in (op.BUILD, op.DICT):
            return self._displayed(way, one) if way.keys else ()
        return self._called(way, one) if opcode in (op.CALL, op.INVOKE) else ()

    def _joined(self, way: Carried, one: Instruction) -> Iterator[Carried]:
        """What the ways bring that meet at an instruction, those that the calls may take which have entered its function."""
        function = way.function
        ways = zip(function.phi_order[function.blocks[one]], one[3:], strict=False)
        is_known = entered_by(way.context, function) is not None and not function.is_cpp
        for block, register in ways:
            if register != one[2] and not (is_known and self._is_never(function, block, way.context)):
                yield way.at(register)

    def _entered(self, way: Carried, one: Instruction) -> Iterator[Carried]:
        """What a scope gives: what its generator yields, or the object that is entered."""
        entered, given = (set(self.transfer.values(way.function, register)) for register in (one[3], one[2]))
        if any(isinstance(value, Activation) for value in entered):
            yield way.part(one[3], ANY)
        elif given and given <= entered:
            yield way.at(one[3])

    def _cell(self, way: Carried, constant: int) -> Iterator[Carried]:
        unit = way.function.unit
        name, owner = cell = unit.ir.constants[constant]
        home = unit.function(owner)
        for each in home.below:
            yield from (way.at(one[3], each) for one in each.by_opcode[op.STORE] if unit.ir.constants[one[2]] == cell)
        names = [parameter.name for parameter in home.code.parameters]
        if name in names and not any(unit.ir.constants[one[2]] == cell for one in home.by_opcode[op.STORE]):
            yield from (way.at(one[2], home) for one in home.by_opcode[op.PARAM] if one[3] == names.index(name))

    def _imported(self, way: Carried, one: Instruction) -> Iterator[Carried]:
        """What a file of the program defines: by the name that is imported, or by an attribute of the module."""
        function = way.function
        target = self.facts.program.imported(function.text(one[3]), function.unit)
        if target is None:
            return
        if one[4] != op.NONE:
            yield from (way.at(each, holder) for holder, each in target.globals.get(function.text(one[4]), ()))
        elif way.keys and not way.keys[0].is_element:
            yield from (way.inside(each, holder) for holder, each in target.globals.get(str(way.keys[0].name), ()))

    # --- parameters

    def _given(self, way: Carried, one: Instruction) -> list[Carried] | None:
        """What callers give for a parameter; for an attribute of the receiver, what is stored there."""
        function = way.function
        if function.has_receiver and one[3] == 0 and way.keys and function.owner is not None:
            return list(self._stored(way, function.owner)) or None
        places = self._entries(way)
        outside = way._replace(context=tuple(entry for entry in way.context if entry[0] is not function))
        started = [outside.at(each, holder) for holder, each in self.started(function, one[3])] if self.started is not None else []
        if not (places or started) or len(places) > _MOST_CALLERS:
            return None
        return [*started, *(step for place in places for step in self._from_call(outside, one[3], place))]

    def _entries(self, way: Carried) -> list[Site]:
        """The calls by which a function may have been entered."""
        entered = entered_by(way.context, way.function)
        places = [entered] if entered is not None else [Site(*place) for place in self.transfer.callers(way.function)]
        if way.through is not None and way.through[0] is way.function:
            places = [place for place in places if may_be_made_for(self.facts, place, *way.through)]
        return places

    def _from_call(self, way: Carried, index: int, place: Site) -> Iterator[Carried]:
        """What a call gives for a parameter: an argument, a part of what is spread, or the default."""
        callee, (caller, call) = way.function, place
        way = way._replace(through=(caller, callee) if is_captured(caller, call) else None)
        parameter = callee.code.parameters[index]
        if parameter.kind in ("star", "double"):
            yield from self._collected(way, parameter.kind, place)
            return
        register = operand_of(caller, call, callee, index) if call[0] in (op.CALL, op.INVOKE) else None
        if register is not None:
            yield way.at(register, caller)
            return
        spread = list(spread_for(caller, call, callee, index))
        for key, given in spread if all(given >= 0 for _, given in spread) else ():
            yield way.at(given, caller)._replace(keys=(Key(key), *way.keys), asked=way.asked or (callee, way.register, way.context))
        default = callee.default_register(index) if not spread else None
        if default is not None and callee.parent is not None:
            yield way.at(default, callee.parent)

    def _collected(self, way: Carried, kind: str, place: Site) -> Iterator[Carried]:
        """What ``*args`` or ``**kwargs`` holds: the arguments that no parameter takes, and what is spread."""
        callee, (caller, call) = way.function, place
        position, key = bound_of(caller, call, callee), way.keys[0] if way.keys else ANY
        first = sum(parameter.kind == "plain" for parameter in callee.code.parameters)
        for given, register in all_given(caller, call, callee):
            if given == (LIST if kind == "star" else DICT):
                yield way.at(register, caller)
            elif kind == "star" and given is None:
                if way.keys and key.name in (None, position - first) and position >= first:
                    yield way.inside(register, caller)
                position += 1
            elif kind == "double" and isinstance(given, str) and way.keys and key.name in (None, given):
                yield way.inside(register, caller)

    # --- objects

    def _stored(self, way: Carried, owner: ClassInfo, made: Site | None = None) -> Iterator[Carried]:
        """What is stored under an attribute of the objects of a class: by its methods, or by what makes a record."""
        key = way.keys[0]
        for each in self._having(owner, made is None) if not key.is_element else ():
            if properties := list(self._given_by_property(way, each, str(key.name))):
                yield from properties
                continue
            for store in each.own_stores.get(str(key.name), ()):
                is_making = made is not None and store.function.code.name == "__init__"
                entered = (*way.context, (store.function, made)) if is_making and made is not None else way.context
                yield way.inside(store.value, store.function, entered)
            yield from (way.inside(register, each.body) for register in each.assigned.get(str(key.name), ()))
        places = [made] if made is not None else []
        if made is None and str(key.name) in self.facts.fields(owner):
            places = [Site(*place) for place in self.facts.construction_places(owner)]
        for place in places:
            yield from self._recorded(way, place)

    def _having(self, owner: ClassInfo, is_open: bool) -> dict[ClassInfo, None]:
        """The classes whose methods may set an attribute of an object of a class; ``is_open``: it may be of one below."""
        order = self.facts.hierarchy.order
        below = (self.facts.hierarchy.cone(owner) or []) if is_open else []
        return dict.fromkeys((*order(owner), *(base for one in below for base in order(one))))

    def _given_by_property(self, way: Carried, owner: ClassInfo, name: str) -> Iterator[Carried]:
        for method in (one for one in owner.methods.get(name, ()) if one.is_property):
            yield from (way.inside(end[2], method) for end in method.by_opcode[op.RETURN] if end[2] >= 0)

    def _recorded(self, way: Carried, place: Site) -> Iterator[Carried]:
        """What a call that makes a record gives for a field."""
        key, fields = way.keys[0], self.records.of(*place)
        for field, register in self.records.given(*place):
            if key.name in ((field, None) if not key.is_element else (fields.index(field), None)):
                yield way.inside(register, place.function)

    def _displayed(self, way: Carried, one: Instruction) -> Iterator[Carried]:
        """The elements of a display, and what is put into it in its function."""
        key, function = way.keys[0], way.function
        if not key.is_element:
            return
        if one[0] == op.BUILD:
            parts, added = one[4:], list(self._put(way, one))
            is_plain = isinstance(function.unit.ir.constants[one[3]], str)
            is_known = isinstance(key.name, int) and is_plain and not added and -len(parts) <= key.name < len(parts)
            yield from (way.inside(each) for each in ([parts[key.name]] if is_known and isinstance(key.name, int) else parts))
            yield from added
            return
        for name, register in zip(one[3::2], one[4::2], strict=True):
            if name == op.NONE:
                yield way.at(register)
            elif key.name is None or function.constant(name) in (None, key.name):
                yield way.inside(register)
        yield from self._put(way, one)

    def _put(self, way: Carried, one: Instruction) -> Iterator[Carried]:
        """What is put into the container that an instruction makes, wherever that goes."""
        key, made = way.keys[0], self._container(way.function, one)
        for function, use in self.facts.container_uses(made) if made is not None and key.is_element else ():
            for receiver, name, register, spreads in put_by(function, use):
                held = self.transfer.values(function, receiver)
                if not any(isinstance(value, Container) and value.instruction is one for value in held):
                    continue
                if spreads:
                    yield way.at(register, function)
                elif not isinstance(key.name, str | int) or may_be_under(name, key.name):
                    yield way.inside(register, function)

    def _container(self, function: Function, one: Instruction) -> Container | None:
        """The container that an instruction makes."""
        held = self.transfer.values(function, one[2])
        return next((value for value in held if isinstance(value, Container) and value.instruction is one), None)

    # --- calls

    def _called(self, way: Carried, one: Instruction) -> Iterator[Carried]:
        """What the functions give back that a call enters, or a part of what it makes."""
        function = way.function
        site = Site(function, one)
        made = list(self._classes(function, one)) if way.keys else []
        for definition in made:
            yield from self._stored(way, definition, site)
        if way.keys and not made and self.records.of(function, one):
            yield from self._recorded(way, site)
        if made:
            yield from (way.inside(use[-1]) for use in function.uses[one[2]] if self._sets(function, use, one[2], way.keys[0]))
            return
        edges = [edge.callee for edge in self.transfer.edges(function, one) if edge.is_direct]
        if (taken := asked(function, one, edges)) is not None:
            yield way.part(*taken)
            return
        for callee in dict.fromkeys(edges):
            yield from self._returned(way, callee, site)
        if not edges and not function.is_cpp:
            yield from self._put(way, one) if way.keys else ()
            yield from self._taken(way, one)

    def _returned(self, way: Carried, callee: Function, site: Site) -> Iterator[Carried]:
        """What a function gives back to a call that enters it."""
        if entered_by(way.context, callee) is not None or callee.code.name == "__init__":
            return
        entered = (*way.context, (callee, site))
        if callee.by_opcode[op.YIELD]:
            if any(use[0] == op.ITER for use in site.function.uses[site.instruction[2]]):
                return  # what a loop orders with what the generator does between its rounds is not known
            given = (end[3] for end in callee.by_opcode[op.YIELD] if way.keys and way.keys[0].is_element and end[3] >= 0)
            yield from (way.inside(register, callee, entered) for register in given)
        else:
            ends = [end for end in callee.by_opcode[op.RETURN] if end[2] >= 0]
            taken = ends if len(ends) == 1 else [end for end in ends if not self._is_never(callee, callee.blocks[end], entered)]
            yield from (way.at(end[2], callee, entered) for end in taken)

    def _is_never(self, callee: Function, block: int, entered: Context) -> bool:
        """Whether a function does not come to a block by the calls that have entered it, as constants decide."""
        asked = conditions(callee, block) if not callee.is_cpp else ()
        return any(self.constants.truth(callee, register, entered) is (not holds) for register, holds in asked)

    def _classes(self, function: Function, one: Instruction) -> Iterator[ClassInfo]:
        """The classes of the program of which a call makes an object."""
        values = self.transfer.values(function, one[3]) if one[0] == op.CALL else self.facts.callees(function, one)
        yield from (value.definition for value in values if isinstance(value, ClassObject))

    def _sets(self, function: Function, use: Instruction, register: int, key: Key) -> bool:
        """Whether an attribute of what a register holds is set."""
        if use[0] == op.CALL and len(use) == 8 and use[5] == register and function.dotted(use[3]) == "setattr":
            return not key.is_element and function.constant(use[6]) == key.name
        return use[0] == op.SET_ATTR and use[2] == register and not key.is_element and function.text(use[3]) == key.name

    def _taken(self, way: Carried, one: Instruction) -> Iterator[Carried]:
        """An element that a method of a container gives, or the elements of what a function of the language copies."""
        function = way.function
        given = argument_registers(function, one)
        if one[0] == op.INVOKE and (name := function.text(one[4])) in function.known("takes"):
            key = Key(function.constant(given[0][1])) if given and name in function.known("looks-up", "pops-key") else ANY
            if not any(True for _ in self.transfer.modelled(function, one)):
                yield way.part(one[3], key)
        else:
            for register, keys in given_on(function, one, self.facts.callees(function, one), way.keys):
                yield way.at(register)._replace(keys=keys)


def _is_none(way: Carried) -> bool:
    """Whether a register holds None."""
    one = way.instruction
    return one is not None and one[0] == op.CONST and way.function.unit.ir.constants[one[3]] is None
