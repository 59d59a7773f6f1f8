"""SL029: a stream that each round of a loop makes and uses up."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl029_stream_churn import StreamChurn
from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.code.objects import Instance, Site
from streamlint.facts.code.passing import is_put
from streamlint.facts.values.constructions import is_constructor
from streamlint.findings import Finding
from streamlint.findings.operations import LoopFrame, Operation
from streamlint.hazards.churn import Churn, Churning
from streamlint.hazards.context import Context, span_of
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Loop
from streamlint.ordering.places.places import Place, rest_behind
from streamlint.ordering.walk.lifetimes import Held, made_by
from streamlint.transfer.modelled import ModelledCall, operands_of

RULE = StreamChurn
_POOL = 32
"""PyTorch's streams for each priority and device: loops of fewer rounds make none anew."""
_USING = frozenset({op.CALL, op.INVOKE, op.CONSTRUCT, op.LAUNCH, op.ENTER})
_TAKING = frozenset({op.ITER, op.NEXT, op.UNPACK, op.MORE, op.BIND})
_HOLDING = frozenset({op.BUILD, op.DICT, op.INVOKE, op.ITER, op.NEXT, op.UNPACK, op.ITEM})
_KEEPING = frozenset({op.SET_ITEM, op.APPEND, op.PUT})
_RESTING = frozenset({"synchronize", "query", "record", "wait", "destroy", "elapsed"})
"""Effects of what puts no work on a stream."""


class Streams(Churning):
    """Finds the streams that are made repeatedly."""

    def __init__(self, context: Context) -> None:
        super().__init__(context.transfer, self._destroyed, _POOL)
        self._names = context.transfer.names({"destroy"})

    def find(self) -> Iterator[tuple[ModelledCall, Churn, Site]]:
        """The creations, the loops, and where the stream is used in the same round."""
        for call in self.transfer.sites({"stream", "stream_of"}):
            is_lent = call.row.effect == "stream_of"  # the next stream of a pool, which nobody has to give back
            if is_lent and call.row.get("which") != "pool":
                continue
            held = Held(call.function, call.instruction, made_by(self.places, call), is_lent or not call.function.is_cpp)
            for churn in self.follow(held):
                use = self._use(churn)
                if (
                    use is not None
                    and not self._is_of_worker(churn)
                    and not any(self._is_of_owner(churn, site.function) for site in churn.made)
                ):
                    yield call, churn, use
                    if made_at(churn) == len(churn.made) - 1:
                        break

    def _is_of_owner(self, churn: Churn, function: Function) -> bool:
        """Whether a constructor makes the stream: in C++, of an object whose destructor does not end it in the same round."""
        return function.is_cpp and function.code.name == "__init__" and not churn.ended

    def _is_of_worker(self, churn: Churn) -> bool:
        """Whether a round starts a thread that works through a loop of its own with the stream: one for each of a few workers."""
        held, start = churn.held, churn.made[0]
        rows = self.transfer.facts.rows(start.function, start.instruction) if len(churn.made) > 1 else ()
        if not any(row.effect in ("thread", "start") for row in rows):
            return False
        function, graph, home = held.function, held.function.control, held.function.blocks[held.instruction]
        loops = [loop for loop in graph.loops if graph.dominates(home, loop.header)]
        inside = (one for loop in loops for block in sorted(loop.body) for one in function.code.blocks[block])
        return any(work.evident or work.assumed for one in inside for work in self.transfer.works(function, one))

    def _ends_within(self, site: Site, loop: Loop) -> bool:
        """The tasks of a pool are as many as a loop has rounds, though no more run at once than it has threads."""
        rows = self.transfer.facts.rows(site.function, site.instruction)
        return super()._ends_within(site, loop) or any(row.effect == "thread" and row.get("pool") is not None for row in rows)

    def _tasks(self, site: Site) -> Loop | None:
        """The calls of a function with many elements, one after another."""
        function, one = site
        handing = self.transfer.facts.program.handing
        called = handing.of(function, one) if handing is not None and not function.is_cpp else None
        if called is None or (op.NONE not in (register for _, register in called.given)):
            return None
        elements = [register for register in operands_of(function, one, receiver=False) if register != called.callee]
        if self.rounds.are_few(function, elements, _POOL):
            return None
        block = function.blocks[one]
        return Loop(block, frozenset({block}), (), (), function.control.innermost[block], 1, True)

    def _destroyed(self, function: Function, one: Instruction) -> Iterator[int]:
        if one[0] not in (op.CALL, op.INVOKE):
            return
        name = last_name(function, one)
        for call in self.transfer.modelled(function, one) if name in self._names else ():
            of = call.one("of", call.receiver) if call.row.effect == "destroy" else None
            if of is not None:
                yield of

    def _outlives(self, held: Held, loop: Loop) -> bool:
        """A list of the function alone keeps no stream alive for more work if the function only waits for what it holds."""
        return super()._outlives(held, loop) and not self._is_set_aside(held, loop)

    def _is_set_aside(self, held: Held, loop: Loop) -> bool:
        """Whether behind the loop nothing but waits is done with a stream, which lists of the function hold, and nobody else."""
        if self._leaves(held) or any(place.root[0] != "register" for place in held.places):
            return False
        inner_first = sorted(held.places, key=lambda place: not place.path)  # a register that holds the stream itself overrides
        registers = {int(str(place.root[1])): place for place in inner_first}
        return len(registers) > 1 and all(self._only_rests(held.function, loop, registers, register) for register in registers)

    def _only_rests(self, function: Function, loop: Loop, registers: dict[int, Place], register: int) -> bool:
        """Whether a register, of those that hold a stream or a list of it, is of the loop alone, or serves only waits behind it."""
        home, one, is_list = self.rounds.body(function).home, function.definitions[register], bool(registers[register].path)
        if one is None or (one[0] == op.PHI and home[one] == loop.header):
            return False
        if home[one] in loop.body:
            return True
        is_allowed = self._is_of_list if is_list else self._is_at_rest
        uses = (use for use in function.uses[register] if not (home[use] in loop.body and use[0] == op.ITEM and use[2] in registers))
        return (not is_list or one[0] in _HOLDING) and all(is_allowed(function, use, register) for use in uses)

    def _is_of_list(self, function: Function, use: Instruction, register: int) -> bool:
        """Whether a use of a list takes something out of it or puts something into it."""
        if use[0] == op.ITEM:
            return use[3] == register and all(self._is_at_rest(function, each, use[2]) for each in function.uses[use[2]])
        if use[0] == op.INVOKE:
            return use[3] == register
        if use[0] == op.BUILD:
            return all(self._is_of_list(function, each, use[2]) for each in function.uses[use[2]])
        return use[0] in _TAKING or (use[0] in _KEEPING and use[2] == register)

    def _is_at_rest(self, function: Function, use: Instruction, register: int) -> bool:
        """Whether a use of a stream, or of its key, puts no work on it."""
        if use[0] == op.ITEM and use[4] == register:
            return all(self._is_at_rest(function, each, use[2]) for each in function.uses[use[2]])
        effects = {call.row.effect for call in self.transfer.modelled(function, use)} if use[0] in (op.CALL, op.INVOKE) else set()
        return use[0] == op.BIND or (bool(effects) and effects <= _RESTING)

    def _use(self, churn: Churn) -> Site | None:
        """The first work on the stream, or behind it."""
        held, made, function = churn.held, churn.held.instruction, churn.held.function
        for one in function.code.instructions():
            if one == made or one[0] not in _USING:
                continue
            if one in (site.instruction for site in churn.ended) or is_put(function, one):
                continue
            if any(self.lifetimes.holds(held, register) or self._owns(held, register) for register in op.reads(one)):
                return Site(function, one)
        return None

    def _owns(self, held: Held, register: int) -> bool:
        """Whether a register holds an object of which the stream is a part."""
        if not any(isinstance(value, Instance) for value in self.transfer.values(held.function, register)):
            return False
        names = self.places.names(held.function, register)
        return any(rest_behind(name, place) is not None for name in names for place in held.places)


def made_at(churn: Churn) -> int:
    """Which of the instructions that make a stream is where the program does; C++: where an object is made that has one."""
    number = len(churn.made) - 1
    while number and churn.made[number].function.is_cpp and is_constructor(churn.made[number].function):
        number -= 1
    return number


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    rule, seen = RULE(), set[Site]()
    for call, churn, use in Streams(context).find():
        number = made_at(churn)
        made = churn.made[number]
        if made in seen:
            continue
        seen.add(made)
        around = context.surroundings(made.function, churn.made[:number])
        created = Operation(span_of(made), call.row.library, call.name, context=around)
        yield rule.report(created, LoopFrame(span_of(churn.head)), Operation(span_of(use)))
