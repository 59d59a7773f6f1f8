"""The gradients that a backward pass leaves in the parameters of modules, and the steps of optimizers that read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.flow import BUFFER, Tracked
from streamlint.ordering.places.origins import EACH, Origins
from streamlint.ordering.places.places import ANY, OWN, Place, Places, rest_behind
from streamlint.ordering.places.weights import GRADIENTS, WEIGHTS, ModuleMemory
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.work import Weights, Worked
from streamlint.waits.operands import argument_registers

GRADIENT = "grad"
"""What a tensor has that a backward pass writes."""
_GRADED = frozenset({(), (EACH,)})
"""The keys between a value and the parameters that it is, or of which it is a container."""
_LISTED = {op.BUILD: 4, op.PHI: 3, op.COPY: 3}
"""By opcode: where the registers begin that are elements of a value, or what it may be."""


class Training:
    """Names gradients, and what optimizers were made with."""

    def __init__(self, transfer: Transfer, places: Places, modules: ModuleMemory) -> None:
        self.transfer = transfer
        self.places = places
        self.modules = modules
        self.origins = Origins(transfer, places)
        self._steps: dict[Function, bool] = {}

    def left(self, function: Function, modules: Iterable[Weights]) -> Iterator[Tracked]:
        """The gradients that a backward pass leaves."""
        for module in modules:
            yield from (Tracked(BUFFER, place.behind(GRADIENTS)) for place in self.modules.names(function, module))

    def held(self, function: Function, registers: Iterable[int]) -> Iterator[Place]:
        """The gradients that some registers hold, by the modules of whose parameters they are: ``param.grad``, or a list of such."""
        waiting = [] if function.is_cpp else [register for register in registers if register >= 0]
        for register in waiting:
            one = function.definitions[register]
            if one is None:
                continue
            if one[0] == op.ATTR and function.text(one[4]) == GRADIENT:
                yield from (place.behind(GRADIENTS) for place in self.modules.parameters.owners(function, one[3]))
            elif one[0] in _LISTED:
                put = (use[-1] for use in function.uses[register] if use[0] == op.APPEND and use[2] == register)
                waiting += [each for each in (*one[_LISTED[one[0]] :], *put) if each >= 0 and each not in waiting]

    def named(self, function: Function, tracked: Iterable[Tracked]) -> set[Tracked]:
        """Gradients of parameters, by the modules of these, or by the container that a function was given them in."""
        found: set[Tracked] = set()
        for each in tracked:
            root, path = each.place.root, each.place.path
            if root[0] == "register" and path[-1:] == (GRADIENT,) and path[:-1] in _GRADED:
                register = int(str(root[1]))
                modules = (place.behind(GRADIENTS) for place in self.modules.parameters.owners(function, register))
                given = (place for place in self.origins.of(function, register, path) if path == (GRADIENT,))
                found |= {each._replace(place=place) for place in (*modules, *(place for place in given if place.root[0] == "parameter"))}
        return found

    def updated(self, function: Function, optimizers: Iterable[int]) -> Iterator[Tracked]:
        """What optimizers write."""
        for register in optimizers:
            for place, is_module in self._made_with(function, register) or ():
                yield Tracked(BUFFER, place.behind(WEIGHTS) if is_module else place.behind(ANY))

    def stepped(self, function: Function, optimizer: int) -> Iterator[Place]:
        """The modules whose weights a step of an optimizer writes."""
        yield from (place for place, is_module in self._made_with(function, optimizer) or () if is_module)

    @staticmethod
    def are_weights(modules: Iterable[Place], tracked: Iterable[Tracked]) -> bool:
        """Whether the weights of modules, or of parts of them, are tracked."""
        held = [Place(one.place.root, one.place.path[: one.place.path.index(WEIGHTS)]) for one in tracked if WEIGHTS in one.place.path]
        return bool(held) and any(are_joined(place, one) for place in modules for one in held)

    def reads(self, function: Function, work: Worked, tracked: Iterable[Tracked]) -> bool:
        """Whether work reads gradients that are tracked: an optimizer that is not known may be one of any module."""
        held = [Place(one.place.root, one.place.path[: one.place.path.index(GRADIENTS)]) for one in tracked if GRADIENTS in one.place.path]
        if not held:
            return False
        for register in work.steps:
            made = self._made_with(function, register)
            if made is None or any(is_module and are_joined(place, one) for place, is_module in made for one in held):
                return True
        owners = [place for register in work.clips for place in self.modules.parameters.owners(function, register)]
        owners += [Place(place.root, place.path[:-1]) for place in self.held(function, (*work.reads, *work.writes))]
        return any(are_joined(place, one) for place in owners for one in held)

    def steps_in(self, function: Function) -> bool:
        """Whether a function, or one that it calls, steps with an optimizer."""
        known = self._steps.get(function)
        if known is None:
            self._steps[function] = False  # in a cycle, the others tell
            known = self._steps[function] = any(
                any(work.steps for work in self.transfer.works(function, one))
                or any(edge.is_direct and self.steps_in(edge.callee) for edge in self.transfer.edges(function, one))
                for one in (*function.by_opcode[op.CALL], *function.by_opcode[op.INVOKE])
            )
        return known

    def _made_with(self, function: Function, register: int) -> list[tuple[Place, bool]] | None:
        """Where an optimizer has its parameters from, and whether that is a module; None where nobody knows."""
        register = element_of(function, register)
        makers = list(self.origins.makers(function, register))
        if not any(self._is_maker(*maker) for maker in makers):
            return None
        found: list[tuple[Place, bool]] = []
        for maker, one in makers:
            given = argument_registers(maker, one)[:1]
            for _, params in given:
                places = [(place, True) for place in self.modules.parameters.owners(maker, params)]
                places += [(place, False) for place in self.places.names(maker, params)]
                if maker is not function:
                    places = [(other, is_module) for place, is_module in places for other in self._with_kept(maker, place)]
                found += [each for each in places if maker is function or each[0].root[0] in ("parameter", "global")]
        return found

    def _with_kept(self, maker: Function, place: Place) -> Iterator[Place]:
        """A place, and where a method keeps it in its object."""
        yield place
        for one in maker.by_opcode[op.SET_ATTR] if place.root[0] == "parameter" and place.root != OWN.root else ():
            for target, value in self.places.assigned(maker, one):
                rest = rest_behind(self.places.of(maker, value), place) if target.root == OWN.root else None
                if rest is not None:
                    yield target.behind(*rest)

    def _is_maker(self, function: Function, one: Instruction) -> bool:
        return any(call.row.effect == "object" for call in self.transfer.modelled(function, one))


def are_joined(first: Place, second: Place) -> bool:
    """Whether one of two objects is the other one, or leads to it."""
    return rest_behind(first, second) is not None or rest_behind(second, first) is not None


def element_of(function: Function, register: int) -> int:
    """The register of an element of a tuple that a function has built."""
    one = function.definitions[register] if register >= 0 else None
    if one is None or one[0] not in (op.ITEM, op.UNPACK) or (one[0] == op.UNPACK and one[6] != op.NONE):
        return register
    built, index = function.definitions[one[3]], function.constant(one[4]) if one[0] == op.ITEM else one[4]
    is_built = built is not None and built[0] == op.BUILD and isinstance(index, int) and 0 <= index < len(built) - 4
    return built[4 + index] if built is not None and is_built and isinstance(index, int) else register
