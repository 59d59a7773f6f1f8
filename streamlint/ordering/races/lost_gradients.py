"""Gradients that a stream of the program's own works on: where an optimizer or a module gives them up, their pool gets the memory back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind
from streamlint.facts.code.objects import LibraryObject
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.memory.renewing import Renewing
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.states import State
from streamlint.ordering.places.flow import BUFFER, Tracked
from streamlint.ordering.places.gradients import GRADIENT
from streamlint.ordering.places.places import Place
from streamlint.ordering.places.weights import GRADIENTS
from streamlint.ordering.races.next_calls import NextCalls
from streamlint.ordering.streams.lanes import Lane
from streamlint.transfer.actions import NAMED
from streamlint.transfer.renewals import GRADIENTS as PART
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.work import Worked

_TAKEN = frozenset({op.UNPACK, op.ITEM, op.COPY})


class GradientUse(NamedTuple):
    """Work on a stream of the program's own that reads gradients, and the names of these."""

    function: Function
    instruction: Instruction
    work: Worked
    lane: Lane
    names: frozenset[Tracked]


class LostGradients(NextCalls):
    """Follows gradients to where they are given up."""

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.renewing = transfer.one_of(Renewing, transfer, self.places)

    def gradients(self) -> Iterator[GradientUse]:
        """The uses in the program. What a backward pass leaves is allocated on its stream: none of them may choose one."""
        works = [(each, self.lanes.of(Frame(each[0], None, None, 0), each[1], each[2].stream)) for each, _ in self.beginnings.found]
        chosen = [begun for begun in works if begun[1].kind == NAMED and not begun[0][0].is_cpp]
        if not chosen or any(work.leaves for (_, _, work), _ in chosen) or not self.renewing.renews_any():
            return
        for (function, one, work), lane in chosen:
            reads = work.reads if not work.assumed else ()
            names = {Tracked(BUFFER, place) for register in reads for place in self._gradients(function, register)}
            if names:
                yield GradientUse(function, one, work, lane, frozenset(names))

    def _gradients(self, function: Function, register: int) -> Iterator[Place]:
        """The names of gradients. One that a loop takes from its parameter is a single one of those that the modules have."""
        of_modules = [*self.training.held(function, [register]), *self._by_name(function, register)]
        is_one_of_many = self._is_of_loop(function, register)
        yield from of_modules
        yield from (place for place in self.names_of(function, register) if of_modules and (place.path or not is_one_of_many))

    def _by_name(self, function: Function, register: int) -> Iterator[Place]:
        """The gradients of the module of which a parameter is asked for by its name: ``module.weight.grad``."""
        one = function.definitions[register] if register >= 0 else None
        parameter = function.definitions[one[3]] if one is not None and one[0] == op.ATTR and function.text(one[4]) == GRADIENT else None
        if parameter is None or parameter[0] != op.ATTR:
            return
        if any(isinstance(value, LibraryObject) and value.kind == "module" for value in self.transfer.values(function, parameter[3])):
            yield from (place.behind(GRADIENTS) for place in self.places.names(function, parameter[3]))

    def _is_of_loop(self, function: Function, register: int) -> bool:
        one = function.definitions[register]
        taken = behind(function, [one[3]], lambda each: each[3:4] if each[0] in _TAKEN else ()) if one is not None else ()
        return one is not None and one[0] == op.ATTR and any(each[0] == op.NEXT for each in taken)

    def is_hooked(self, function: Function, one: Instruction) -> bool:
        is_gradient = one[0] == op.SET_ATTR and not function.is_cpp and function.text(one[3]) == GRADIENT
        return is_gradient or super().is_hooked(function, one)

    def may_meet(self, tracked: frozenset[Tracked], callee: Function) -> bool:
        """A function that is given an optimizer has no name for the modules whose gradients that frees."""
        return super().may_meet(tracked, callee) or (any(map(_is_gradient, tracked)) and self.renewing.renewed_in(callee))

    def _is_gradient_told(self, state: State, register: int) -> bool:
        """Whether a register holds gradients of modules whose gradients are tracked."""
        function = state.frame.function
        held = (*self.training.held(function, [register]), *self._by_name(function, register))
        wholes = (Place(place.root, place.path[:-1]) for place in held)
        return any(self.renewing.meets(place, PART, state.tracked) for place in wholes)

    def _let_go(self, state: State, one: Instruction) -> State:
        after = super()._let_go(state, one)
        if not any(map(_is_gradient, after.tracked)) or not self.renewing.is_renewed(after, one, PART):
            return after
        return after._replace(tracked=frozenset(held for held in after.tracked if held.kind != BUFFER or not _is_gradient(held)))


def _is_gradient(held: Tracked) -> bool:
    return GRADIENTS in held.place.path or held.place.path[-1:] == (GRADIENT,)
