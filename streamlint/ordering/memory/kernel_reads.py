"""What a kernel reads through its pointers before it waits for the kernels ahead of it on its stream.

An unknown call may wait, and so may one of a function of the program that calls such a one: what is read behind it is read in order, as
far as is known. So is what a wait may come before on any way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind
from streamlint.facts.code.objects import Site
from streamlint.facts.files.device_code import DeviceCode
from streamlint.facts.graph.facts import Facts
from streamlint.frontends import LOST
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.cpp import PLAIN
from streamlint.ir.graph import Loop
from streamlint.models import Row
from streamlint.ordering.places.leading import leads_to
from streamlint.support.memo import memoized
from streamlint.waits.operands import argument_registers, selectors

WAIT, TRIGGER = "wait", "trigger"
_DEEPEST = 4
_ASSEMBLY = "asm"
_STATEMENTS = re.compile(r"[;{}\n]")
_INSTRUCTION = re.compile(r"\s*(?:@!?%?\w+\s+)?([a-z][\w.]*)")
_STEPS = {
    op.COPY: (3,),
    op.CAST: (4,),
    op.REBIND: (5,),
    op.ADDRESS_ITEM: (3,),
    op.ADDRESS_ATTR: (3,),
    op.BINARY: (4, 5),
    op.INPLACE: (4, 5),
}
"""By opcode: the operands that a pointer is made of."""
_ACCESSES = {op.ITEM: 3, op.DEREF: 3, op.ATTR: 3}
_STORES = (op.SET_ITEM, op.SET_DEREF)
_CALLS = (op.CALL, op.INVOKE, op.CONSTRUCT, op.NEW)


class Read(NamedTuple):
    """Where a kernel reads, with the calls that lead there, and a wait that comes behind it only."""

    at: Site
    calls: tuple[Site, ...]
    late: Site | None


class KernelReads:
    """Asks for the early reads of kernels."""

    def __init__(self, facts: Facts, code: DeviceCode) -> None:
        self.facts = facts
        self.code = code
        self._effects: dict[tuple[Function, str], Site | None] = {}
        self._waits: dict[Function, list[Instruction]] = {}
        self._made: dict[tuple[Function, int], frozenset[int]] = {}

    @memoized
    def early(self, kernel: Function, index: int) -> Read | None:
        """Where a kernel reads through a parameter with nothing before that may wait."""
        return self._find_early(kernel, index)

    def _find_early(self, kernel: Function, index: int) -> Read | None:
        body = self.code.body(kernel)
        found = self._early(body, index, 0) if body is not None and not self._is_torn(body) else None
        if found is None or body is None:
            return None
        return found._replace(late=self._effect(body, WAIT, 0))

    @memoized
    def written(self, kernel: Function) -> frozenset[int] | None:
        """The numbers of the parameters that a kernel writes through for sure; None where its body is not known."""
        body = self.code.body(kernel)
        found = None
        if body is not None and not self._is_torn(body):
            found = frozenset(index for index in range(len(body.code.parameters)) if self._is_written(body, index, 0))
        return found

    def _is_written(self, body: Function, index: int, depth: int) -> bool:
        pointers = self._pointers(body, index)
        for one in body.code.instructions():
            if (one[0] in _STORES and one[2] in pointers) or (one[0] == op.SET_ATTR and self._is_element(body, one[2], pointers)):
                return True
            for row, callee, places in self._passed_pointers(body, one, pointers) if depth <= _DEEPEST else ():
                if row is not None and any(selector.position in places for selector in selectors(row, "writes")):
                    return True
                if callee is not None and any(self._is_written(callee, place, depth + 1) for place in places):
                    return True
        return False

    @memoized
    def reads(self, kernel: Function, index: int) -> bool:
        """Whether a kernel plainly reads through a parameter."""
        body = self.code.body(kernel)
        if body is None or self._is_torn(body):
            return False
        pointers = self._pointers(body, index)
        return any(self._read(body, one, pointers, 0) is not None for one in body.code.instructions())

    @memoized
    def watches(self, kernel: Function, index: int) -> bool:
        """Whether a kernel may go round until somebody has changed what is behind a parameter."""
        body = self.code.body(kernel)
        return body is not None and (self._is_torn(body) or self._watches(body, index, 0))

    def _watches(self, body: Function, index: int, depth: int) -> bool:
        pointers = self._pointers(body, index)
        if any(self._waits_for_change(body, loop, pointers) for loop in body.control.loops):
            return True
        passed = (each for one in body.code.instructions() for each in self._passed_pointers(body, one, pointers))
        return any(
            row is None and (callee is None or depth > _DEEPEST or any(self._watches(callee, place, depth + 1) for place in places))
            for row, callee, places in passed
        )

    def _waits_for_change(self, body: Function, loop: Loop, pointers: frozenset[int]) -> bool:
        """Whether a loop ends by what each round reads through one of some pointers."""
        ends = [body.code.blocks[block][-1] for block, _ in loop.exits]
        asked = list(behind(body, [end[2] for end in ends if end[0] == op.BRANCH], op.reads))
        again = [one for one in asked if one in body.homes and body.homes[one][0] in loop.body]
        through = asked if any(one[0] == op.INVOKE for one in again) else again  # an object that was made of a reference
        return any(self._looks(body, one, pointers) for one in through)

    def _looks(self, body: Function, one: Instruction, pointers: frozenset[int]) -> bool:
        """Whether an instruction may read through a pointer: an access, or a call that is given one."""
        if one[0] in _ACCESSES:
            return one[_ACCESSES[one[0]]] in pointers
        return one[0] in _CALLS and any(register in pointers for register in op.reads(one))

    def triggers(self, kernel: Function) -> Site | None:
        """Where a kernel lets the next one begin before it has written all that it writes."""
        body = self.code.body(kernel)
        if body is None:
            return None
        writes = list(self._writes(body))
        for one, site in self._effective(body, TRIGGER, 0):
            if any(leads_to(body, one, write) for write in writes):
                return site
        return None

    def _writes(self, body: Function) -> Iterator[Instruction]:
        """What writes through a pointer of a kernel, or may: a call that is given one."""
        pointers = frozenset[int]().union(*(self._pointers(body, index) for index in range(len(body.code.parameters))))
        for one in body.code.instructions():
            is_call = one[0] in _CALLS and any(register in pointers for _, register in argument_registers(body, one))
            if (
                is_call
                or (one[0] in _STORES and one[2] in pointers)
                or (one[0] == op.SET_ATTR and self._is_element(body, one[2], pointers))
            ):
                yield one

    def _is_element(self, body: Function, register: int, pointers: frozenset[int]) -> bool:
        one = body.definitions[register] if register >= 0 else None
        return register in pointers or (one is not None and one[0] in _ACCESSES and one[3] in pointers)

    def _is_torn(self, body: Function) -> bool:
        """Whether a body could not be read in full, or nobody knows where it ends."""
        problems, parent, made = body.unit.ir.problems, body.parent, body.definition
        if not problems or parent is None or made is None or any(text.startswith(LOST) for _, text in problems):
            return bool(problems)
        begin, _, end, _ = parent.code.at(made[1])
        return any(begin <= at[0] <= end for at, _ in problems)

    def _early(self, body: Function, index: int, depth: int) -> Read | None:
        pointers = self._pointers(body, index)
        for one in body.code.instructions():
            inner = self._read(body, one, pointers, depth)
            if inner is not None and not self._is_behind_wait(body, one):
                return inner
        return None

    # --- what is read

    def _pointers(self, body: Function, index: int) -> frozenset[int]:
        """The registers that hold a parameter, or a pointer that is made of it."""
        found = self._made.get((body, index))
        if found is not None:
            return found
        derived: set[int] = {one[2] for one in body.by_opcode[op.PARAM] if one[3] == index}
        cells: set[int] = set()
        count = -1
        while count != len(derived) + len(cells):
            count = len(derived) + len(cells)
            cells.update(one[2] for one in body.by_opcode[op.STORE] if one[3] in derived)
            derived.update(one[2] for one in body.code.instructions() if self._is_made_of(body, one, derived, cells))
        found = self._made[body, index] = frozenset(derived)
        return found

    def _is_made_of(self, body: Function, one: Instruction, made: set[int], cells: set[int]) -> bool:
        """Whether an instruction gives one of some pointers, or one that is made of it."""
        if one[0] == op.LOAD:
            return one[3] in cells
        if one[0] == op.PHI:
            return not made.isdisjoint(one[3:])
        return any(one[place] in made for place in _STEPS.get(one[0], ())) and self._is_pointer(body, one)

    def _is_pointer(self, body: Function, one: Instruction) -> bool:
        if one[0] == op.CAST:
            kind = body.unit.ir.constants[one[3]]
            return bool(kind[2]) or str(kind[0]) == "auto"
        return one[0] not in (op.BINARY, op.INPLACE) or body.text(one[3])[:1] in ("+", "-")

    def _read(self, body: Function, one: Instruction, pointers: frozenset[int], depth: int) -> Read | None:
        """What an instruction reads through one of the pointers."""
        here = Site(body, one)
        if one[0] in _ACCESSES:
            return Read(here, (), None) if one[_ACCESSES[one[0]]] in pointers and not self._is_target(body, one) else None
        for row, callee, places in self._passed_pointers(body, one, pointers) if depth <= _DEEPEST else ():
            if row is not None and any(selector.position in places for selector in selectors(row, "reads")):
                return Read(here, (), None)
            for place in places if callee is not None else ():
                inner = self._early(callee, place, depth + 1) if callee is not None else None
                if inner is not None:
                    return inner._replace(calls=(here, *inner.calls))
        return None

    def _passed_pointers(
        self, body: Function, one: Instruction, pointers: frozenset[int]
    ) -> Iterator[tuple[Row | None, Function | None, tuple[int, ...]]]:
        """What a call that is given some pointers calls, as a function of kernels or with a body, if that is known; where they stand."""
        given = [register for _, register in argument_registers(body, one)] if one[0] == op.CALL else []
        places = tuple(place for place, register in enumerate(given) if register in pointers)
        if not places:
            return
        callees = self.code.meant(body, body.dotted(one[3])) or []
        fitting = [callee for callee in callees if len(callee.code.parameters) == len(given)]
        row = self._row(body, one) if not callees else None
        if row is not None and row.effect == "in_kernel":
            yield row, None, places
        else:
            yield None, fitting[0] if len(fitting) == 1 else None, places

    def _is_target(self, body: Function, one: Instruction) -> bool:
        """Whether an element is only named to write to a member or an element of it."""
        uses = body.uses[one[2]]
        return bool(uses) and all(use[0] in (op.SET_ATTR, op.SET_ITEM) and use[2] == one[2] for use in uses)

    # --- what may wait

    def _is_behind_wait(self, body: Function, one: Instruction) -> bool:
        """Whether a wait, or what may be one, comes before an instruction on some way."""
        return any(wait is not one and leads_to(body, wait, one) for wait in self._waiting(body))

    def _waiting(self, body: Function) -> list[Instruction]:
        found = self._waits.get(body)
        if found is None:
            found = self._waits[body] = []  # of one that calls itself
            found += [one for one in body.code.instructions() if one[0] in _CALLS and self._may_wait(body, one, 0)]
        return found

    def _may_wait(self, body: Function, one: Instruction, depth: int) -> bool:
        if one[0] in (op.CONSTRUCT, op.NEW):
            return self._is_made_by_unknown(body, one)
        if one[0] == op.INVOKE or depth > _DEEPEST:
            return True
        closure = self._closure(body, one[3])
        if closure is not None:
            return self._holds_wait(closure, depth)
        name = body.dotted(one[3])
        if name == _ASSEMBLY:
            return any(row.get("what") == WAIT for row in self._instructions(body, one))
        callees = self.code.meant(body, name) if name else None
        if callees:
            return any(self._holds_wait(callee, depth) for callee in callees)
        row = self._row(body, one)
        if row is not None:
            return row.effect == "in_kernel" and row.get("what") == WAIT
        return not (name in PLAIN or name in body.code.template or (bool(name) and self.code.is_plain_class(body, name)))

    def _holds_wait(self, callee: Function, depth: int) -> bool:
        if self._is_torn(callee):
            return True
        return any(one[0] in _CALLS and self._may_wait(callee, one, depth + 1) for one in callee.code.instructions())

    def _is_made_by_unknown(self, body: Function, one: Instruction) -> bool:
        """Whether an object is made with arguments by a constructor that may do anything."""
        if len(one) <= 5:
            return False
        name = str(body.unit.ir.constants[one[3]][0])
        known = self.facts.cpp_models.types
        return not (name in PLAIN or name in body.code.template or name in known or self.code.is_plain_class(body, name))

    def _closure(self, body: Function, register: int) -> Function | None:
        one = body.definitions[register] if register >= 0 else None
        return body.unit.function(one[3]) if one is not None and one[0] == op.FUNCTION else None

    # --- rows

    def _row(self, body: Function, one: Instruction) -> Row | None:
        name = body.dotted(one[3]).removeprefix("::")
        return self.facts.cpp_models.call(name) if name else None

    def _instructions(self, body: Function, one: Instruction) -> Iterator[Row]:
        """The rows of the instructions in inline PTX."""
        text = body.constant(one[5]) if len(one) > 5 else None
        for statement in _STATEMENTS.split(text) if isinstance(text, str) else ():
            word = _INSTRUCTION.match(statement)
            row = self.facts.cpp_models.call(word[1].replace(".", "::")) if word is not None and "." in word[1] else None
            if row is not None and row.effect == "in_kernel":
                yield row

    def _effect(self, body: Function, what: str, depth: int) -> Site | None:
        """Where a body waits, or lets the next kernel begin, for sure: itself or in what it calls."""
        key = (body, what)
        if key not in self._effects:
            self._effects[key] = None
            self._effects[key] = next((site for _, site in self._effective(body, what, depth)), None)
        return self._effects[key]

    def _effective(self, body: Function, what: str, depth: int) -> Iterator[tuple[Instruction, Site]]:
        """The instructions of a body that have an effect, each with where it really is."""
        for one in body.by_opcode[op.CALL]:
            callees = self.code.meant(body, body.dotted(one[3])) if depth < _DEEPEST else None
            if body.dotted(one[3]) == _ASSEMBLY:
                rows = list(self._instructions(body, one))
            else:
                row = self._row(body, one)
                rows = [row] if row is not None and not callees else []
            if any(row.effect == "in_kernel" and row.get("what") == what for row in rows):
                yield one, Site(body, one)
            for callee in callees or ():
                if (inner := self._effect(callee, what, depth + 1)) is not None:
                    yield one, inner
