"""Where values come from: what calls give for parameters (an argument, what stands in a dictionary or list that is spread, or the default),
what attributes, global names and variables around closures are set to, what functions give back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import DICT, LIST, pairs_of, unnegated
from streamlint.facts.code.objects import BoundMethod, Container, FunctionObject, Instance, Object, Site, may_be_under
from streamlint.facts.graph.facts import Facts
from streamlint.facts.values.containers import put_by
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.command_line import CommandLine
from streamlint.waits.entered import Context, Held, entered_by
from streamlint.waits.members import Members
from streamlint.waits.operands import all_given, bound_of, operand_of, spread_for
from streamlint.waits.questions import conditions

_DEEPEST = 16
_MOST_CALLS = 40
_SAME = {op.COPY: 3, op.CAST: 4}
_KEEPING = frozenset({"staticmethod", "classmethod"})
_FILLED = frozenset({"star", "double"})
_OPEN = frozenset({op.NAME, op.IMPORT, op.LOAD, op.ATTR, op.CALL, op.INVOKE})
"""What may hold more than is known of where it comes from, and counts as where it begins then."""


Roots = frozenset[Held]
_ABSENT = None
"""Stands for what a container does not hold."""
_Parts = list[Held | None]
Truth = Callable[[Function, int, Context], bool | None]
"""How a condition comes out; None where that is not known."""


class Given:
    """Asks what calls give: those by which a path has come, and where there is none, all calls in view. ``truth`` says how conditions come
    out: what a variable gets on ways that nobody takes is left out."""

    def __init__(self, facts: Facts, truth: Truth) -> None:
        self.facts = facts
        self.truth = truth
        self.members = Members(facts)
        self.command_line = CommandLine(facts, self.roots)
        self._known: dict[Held, Roots | None] = {}
        self._seen: dict[Held, tuple[int, Roots | None]] = {}  # of one question: what hangs on what is asked is not the whole there
        self._asking: set[Held] = set()
        self._cut = 0  # how often one was too deep
        self.cycles = 0  # how often what is asked hung on itself

    def roots(self, held: Held) -> Roots | None:
        """Where all that a register may hold was made; None where that is unknown."""
        around, self._seen = self._seen, {}
        found = self._roots(held, _DEEPEST)
        self._seen = around
        return found

    def values(self, function: Function, register: int) -> list[Object]:
        """What a register may hold, by what makes it as far as the program shows: what callers out of view may give is left out then."""
        roots = self.roots(Held(function, register)) if register >= 0 and not function.is_cpp else None
        every = [self.facts.values(each.function, each.register).values for each in roots or (Held(function, register),)]
        return list(dict.fromkeys(value for values in every for value in values))

    def _roots(self, held: Held, depth: int) -> Roots | None:
        if held in self._known:
            return self._known[held]
        if held in self._asking:
            self.cycles += 1
            return frozenset()  # what hangs on itself adds nothing
        seen = self._seen.get(held)
        if seen is not None and seen[0] >= depth:
            return seen[1]
        cycles, cut = self.cycles, self._cut
        self._asking.add(held)
        found = self._find(held, depth) if depth else None
        self._asking.discard(held)
        self._cut += not depth
        if not self._asking or (self.cycles, self._cut) == (cycles, cut):
            self._known[held] = found
        else:
            self._seen[held] = depth, found
        return found

    def _find(self, held: Held, depth: int) -> Roots | None:
        parts = self.before(held, depth)
        if parts is None or parts == [held]:
            return None if parts is None else frozenset({held})
        found, one = self._joined(parts, depth - 1), held.instruction
        return frozenset({held}) if found is None and one is not None and one[0] in _OPEN else found

    def before(self, held: Held, depth: int = _DEEPEST) -> _Parts | None:
        """Where all that a register may hold was right before: the register alone where it begins there; None where that is unknown."""
        found = self._before(held, depth)
        if not held.makers or found is None:
            return found
        return [part if part is None else part._replace(makers=held.makers) for part in found]

    def _before(self, held: Held, depth: int) -> _Parts | None:
        one, function = held.instruction, held.function
        if one is None:
            return None
        if one[0] in _SAME:
            return [held._replace(register=one[_SAME[one[0]]])]
        if (parameter := function.kept_parameter(held.register)) >= 0:
            given = function.definitions[parameter]
            return self._of_parameter(held._replace(register=parameter), given[3], depth) if given is not None else None
        if function.is_cpp:
            return [held]
        if one[0] == op.PHI:
            return list(self._ways(held, one))
        if one[0] in (op.ITEM, op.INVOKE) and (parts := self._of_entry(held, one, depth)) != [held]:
            return parts
        return self._read(held, one) or [held]

    def _read(self, held: Held, one: Instruction) -> _Parts | None:
        """The same of what reads a name or an attribute, or calls a function."""
        if one[0] == op.NAME:
            return [*self.members.of_file(held.function.unit, held.function.text(one[3]))]
        if one[0] == op.IMPORT:
            unit = self.facts.program.imported(held.function.text(one[3]), held.function.unit)
            return [*self.members.of_file(unit, held.function.text(one[4]))] if unit is not None and one[4] != op.NONE else None
        if one[0] == op.LOAD:
            return list(self._shared(held, held.function.unit.ir.constants[one[3]]))
        asked = (one[3], held.function.text(one[4])) if one[0] == op.ATTR else _asked_by_name(held.function, one)
        if asked is not None:
            return [*(self.members.of(held, *asked) or self.command_line.of(held, *asked))]
        return self._returned(held, one) if one[0] in (op.CALL, op.INVOKE) else None

    def _ways(self, held: Held, phi: Instruction) -> Iterator[Held]:
        """What a variable gets on the ways that may be taken to where they meet."""
        function, block = held.function, held.function.blocks[phi]
        is_head = block in function.loop_heads
        common = () if is_head else tuple(conditions(function, block))
        for before, register in zip(function.phi_order[block], phi[3:], strict=True):
            if register != held.register and (is_head or not self._is_never(held, before, block, common)):
                yield held._replace(register=register)

    def _is_never(self, held: Held, before: int, block: int, common: tuple[tuple[int, bool], ...]) -> bool:
        """Whether no call takes the way from one block to another, as conditions say that do not hold for all ways."""
        function, cycles = held.function, self.cycles
        asked = [each for each in conditions(function, before) if each not in common]
        end = function.code.blocks[before][-1]
        if end[0] == op.BRANCH and end[3] != end[4]:
            register, is_turned = unnegated(function, end[2])
            asked.append((register, (block == end[3]) != is_turned))
        return any(self.truth(function, register, held.context) is (not holds) for register, holds in asked) and self.cycles == cycles

    def _shared(self, held: Held, cell: tuple[str, int]) -> Iterator[Held]:
        """What functions set a variable to that closures share; of one that a known call has called, its caller tells more."""
        if entered_by(held.context, held.function) is None:
            unit = held.function.unit
            for each in unit.function(cell[1]).below:
                yield from (Held(each, store[3]) for store in each.by_opcode[op.STORE] if unit.ir.constants[store[2]] == cell)

    def _returned(self, held: Held, one: Instruction) -> _Parts | None:
        """What the functions of the program give back that a call may call, but for those of unknown callers, if all give something."""
        called = self.facts.callees(held.function, one)
        callees = [_plain(value) for value in called if getattr(value, "reason", "") != "caller"]
        found: _Parts = []
        for callee in callees:
            if callee is None or entered_by(held.context, callee) is not None:
                return None
            context = ((callee, Site(held.function, one)), *held.context)
            found += [Held(callee, end[2], context) for end in callee.by_opcode[op.RETURN]]
        return found if all(part is not None and part.register >= 0 for part in found) else None

    def _joined(self, parts: Iterable[Held | None], depth: int) -> Roots | None:
        every = [self._roots(part, depth) if part is not None else None for part in parts]
        return frozenset[Held]().union(*(each for each in every if each is not None)) if None not in every else None

    # --- parameters

    def entries(self, held: Held) -> list[Site] | None:
        """The calls by which a function may have been entered; None where they are not known."""
        function = held.function
        if entered := [site for callee, site in (*held.context, *held.makers) if callee is function]:
            return entered
        if function.is_cpp:
            return None
        calls = self.facts.callers(function)
        if (classes := held.classes) is not None:
            calls = [call for call in calls if not isinstance(call[0], Instance) or call[0].definition in classes]
        sites = [arguments.site for _, arguments in calls]
        found = list(dict.fromkeys(site for site in sites if site is not None))
        return found if found and None not in sites and len(found) <= _MOST_CALLS else None

    def _of_parameter(self, held: Held, index: int, depth: int) -> _Parts | None:
        entries = self.entries(held)
        if entries is None or held.function.code.parameters[index].kind in _FILLED:
            kept: _Parts = [held]
            return kept if entries is not None else None
        return [part for site in entries for part in self._by_call(held, index, site, depth)]

    def _by_call(self, held: Held, index: int, call: Site, depth: int) -> _Parts:
        """What a call gives for a parameter of a function, or leaves at its default; with None in it where that is not known."""
        callee, (caller, one) = held.function, call
        if one[0] not in (op.CALL, op.INVOKE):
            return [None]
        register = operand_of(caller, one, callee, index)
        if register is not None:
            return [_outside(held, call, register) if register >= 0 else None]
        found: _Parts = []
        for key, spread in spread_for(caller, one, callee, index):
            taken = _taken_out(caller, spread, key, one) if spread >= 0 else None
            parts = [_ABSENT] if taken else self.under(_outside(held, call, spread), key, depth - 1) if taken is False else None
            if parts is None:
                return [None]
            found += [part for part in parts if part is not _ABSENT]
            if _ABSENT not in parts:
                return found
        default = callee.default_place(index)
        return [*found, Held(*default) if default is not None else None]

    # --- containers

    def _of_entry(self, held: Held, one: Instruction, depth: int) -> _Parts | None:
        """What stands under a constant key of a dictionary or list that the program shows whole."""
        function = held.function
        if one[0] == op.ITEM:
            receiver, key, default = one[3], function.constant(one[4]), op.NONE
        elif function.text(one[4]) in function.known("looks-up", "pops-key") and len(one) > 6 and one[5] == op.NONE:
            receiver, key, default = one[3], function.constant(one[6]), one[7] if len(one) > 7 else op.NONE
        else:
            return [held]
        parts = self.under(held._replace(register=receiver), key, depth - 1) if key is not None else None
        if parts is None or (_ABSENT in parts and one[0] == op.INVOKE and default < 0):
            return [held]
        found: _Parts = [part for part in parts if part is not _ABSENT]
        found += [held._replace(register=default)] if _ABSENT in parts and default >= 0 else []
        return found or [held]

    def under(self, held: Held, key: object, depth: int = _DEEPEST) -> _Parts | None:
        """What a container holds under a key, with `_ABSENT` in it where that may be nothing; None where that is not known."""
        whole = self._roots(held, depth) if depth > 0 else None
        every = [self._of_container(root, key, depth) for root in whole or ()]
        return [part for each in every for part in each or ()] if every and None not in every else None

    def _of_container(self, root: Held, key: object, depth: int) -> _Parts | None:
        one, function = root.instruction, root.function
        if one is None or one[0] not in (op.DICT, op.BUILD, op.PARAM, op.CALL) or self._is_changed(root, key):
            return None
        if one[0] == op.PARAM:
            return self._collected(root, one[3], key, depth)
        if one[0] == op.BUILD:
            parts, is_plain = one[4:], isinstance(function.unit.ir.constants[one[3]], str)
            return [root._replace(register=parts[key]) if key < len(parts) else _ABSENT] if is_plain and isinstance(key, int) else None
        return self._of_pairs(root, one, key, depth)

    def _of_pairs(self, root: Held, one: Instruction, key: object, depth: int) -> _Parts | None:
        """The same of a dictionary as it is written out."""
        pairs = list(pairs_of(root.function, one))
        found: _Parts = []
        for name, register in reversed(pairs):
            if name == key and name is not None:
                return [*found, root._replace(register=register)]
            inner = self.under(root._replace(register=register), key, depth - 1) if name == DICT else [_ABSENT]
            if inner is None or name is None:
                return None
            found += [part for part in inner if part is not _ABSENT]
            if _ABSENT not in inner:
                return found
        return [*found, _ABSENT] if pairs or one[0] == op.DICT else None

    def _collected(self, root: Held, index: int, key: object, depth: int) -> _Parts | None:
        """The same of ``*args`` and ``**kwargs``."""
        kind = root.function.code.parameters[index].kind
        entries = self.entries(root) if kind in _FILLED else None
        if entries is None:
            return None
        found: _Parts = []
        for site in entries:
            parts = (self._collected_by_place if kind == "star" else self._collected_by_name)(root, site, key, depth)
            if parts is None:
                return None
            found += parts
        return found

    def _collected_by_place(self, root: Held, site: Site, key: object, depth: int) -> _Parts | None:
        """What a call gives for an element of ``*args``."""
        callee = root.function
        ahead = bound_of(*site, callee) - sum(parameter.kind == "plain" for parameter in callee.code.parameters)
        found: _Parts = [_ABSENT]
        for kind, register in all_given(*site, callee):
            held = _outside(root, site, register)
            if kind is None:
                found = [held] if ahead == key else found
                ahead += 1
            elif kind == LIST and _ABSENT in found:
                further = self.under(held, key - ahead if isinstance(key, int) else key, depth - 1)
                if further is None:
                    return None
                found = further
        return found

    def _collected_by_name(self, root: Held, site: Site, key: object, depth: int) -> _Parts | None:
        """What a call gives for an element of ``**kwargs``."""
        found: _Parts = [_ABSENT]
        for kind, register in all_given(*site, root.function):
            held = _outside(root, site, register)
            further = self.under(held, key, depth - 1) if kind == DICT and kind != key and _ABSENT in found else found
            if further is None:
                return None
            found = [held] if kind == key else further
        return found

    def _is_changed(self, root: Held, key: object) -> bool:
        """Whether something may be put under a key into a container behind its display."""
        values = self.facts.values(root.function, root.register).values
        made = next((value for value in values if isinstance(value, Container) and value.instruction is root.instruction), None)
        uses = self.facts.container_uses(made) if made is not None else [(root.function, use) for use in root.function.uses[root.register]]
        for function, use in uses:
            for receiver, name, _, spreads in put_by(function, use):
                held = self.facts.values(function, receiver).values
                is_it = (function, receiver) == root[:2] or any(isinstance(each, Container) and each is made for each in held)
                if is_it and (spreads or may_be_under(name, key)):
                    return True
        return False


def _outside(held: Held, call: Site, register: int) -> Held:
    """A register of what calls a function. A constructor that another one calls for its own object is one of the same classes."""
    caller, one = call
    is_same = one[0] == op.INVOKE and caller.text(one[4]) == held.function.code.name and caller.code.name == held.function.code.name
    context = tuple(entry for entry in held.context if entry[0] is not held.function)
    return Held(caller, register, context, held.classes if is_same else None, held.makers)


def _taken_out(function: Function, register: int, key: object, call: Instruction) -> bool | None:
    """Whether a key was taken out of a dictionary before a call that spreads it; None where that happens on some ways alone."""
    pops = [use for use in function.uses[register] if use[0] == op.INVOKE and use[3] == register and function.invokes(use, "pops-key")]
    taken = [use for use in pops if len(use) > 6 and function.constant(use[6]) == key and not function.runs_before(call, use)]
    return any(function.runs_before(use, call) for use in taken) or (None if taken else False)


def _asked_by_name(function: Function, one: Instruction) -> tuple[int, str] | None:
    """The object and the name of ``getattr(x, "name", default)``."""
    is_asked = one[0] == op.CALL and len(one) in (7, 8) and function.dotted(one[3]) == "getattr"
    name = function.constant(one[6]) if is_asked else None
    return (one[5], name) if isinstance(name, str) else None


def _plain(value: Object) -> Function | None:
    """The function that a value is or a method calls, if it runs as it is written: no generator, not wrapped by decorators."""
    made = value.method if isinstance(value, BoundMethod) else value
    is_plain = isinstance(made, FunctionObject) and not made.function.is_cpp and made.function.code.name != "__init__"
    return made.function if isinstance(made, FunctionObject) and is_plain and not _is_wrapped(made.function) else None


def _is_wrapped(function: Function) -> bool:
    return function.is_generator or "async" in function.code.flags or not _KEEPING.issuperset(function.decorators)
