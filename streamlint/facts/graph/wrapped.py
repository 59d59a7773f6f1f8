"""Closures that decorators make around functions: which function a call of one runs, with the arguments that it is given.

A decorator's closure is one function, whatever it was made for. Where it hands all that it is given on to what its decorator was given,
the call that enters it runs that function too: the one of its name, where several were decorated.
"""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import arguments_of, last_name, uncast
from streamlint.facts.code.objects import FunctionObject
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.support.memo import memoized

MOST_MEANT = 3
"""Functions that one call may run in a closure; behind that the call is not followed past it."""
_STARS = ("star", "double")
_NOTHING: tuple[frozenset[Instruction], int] = (frozenset(), op.NONE)


class Wrapped:
    """Answers for the calls of closures."""

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph
        self.facts = graph.facts

    def passes_on(self, closure: Function) -> frozenset[Instruction]:
        """The calls by which a closure hands on all that it is given."""
        return self._found(closure)[0]

    def always_passes_on(self, closure: Function) -> bool:
        """Whether a closure hands on what it is given whichever way it goes."""
        return not _may_pass_by(closure, {closure.blocks[call] for call in self.passes_on(closure)})

    @memoized
    def _found(self, closure: Function) -> tuple[frozenset[Instruction], int]:
        """Those calls, and the number of the decorator's parameter that they call."""
        kinds, decorator = {one.kind for one in closure.code.parameters}, closure.parent
        is_closure = decorator is not None and decorator.code.kind == "function" and kinds.issuperset(_STARS)
        return self._find(closure, decorator) if is_closure and decorator is not None else _NOTHING

    def _find(self, closure: Function, decorator: Function) -> tuple[frozenset[Instruction], int]:
        constants = closure.unit.ir.constants
        found: dict[object, list[Instruction]] = {}
        for call in closure.by_opcode[op.CALL]:
            called = closure.definitions[call[3]]
            given = {kind: closure.definitions[uncast(closure, register)] for register, kind in arguments_of(closure, call)}
            spread = [one for kind, one in given.items() if kind in (1, 2) and one is not None and one[0] == op.PARAM]
            if called is not None and called[0] == op.LOAD and [closure.code.parameters[one[3]].kind for one in spread] == list(_STARS):
                found.setdefault(constants[called[3]], []).append(call)
        for index, parameter in enumerate(decorator.code.parameters):
            calls = found.get((parameter.name, decorator.code.number), [])
            if calls:
                return frozenset(calls), index
        return _NOTHING

    def meant(self, function: Function, call: Instruction, closure: Function) -> list[Function]:
        """The functions that a call runs in a closure which it enters; none where that is unknown."""
        (calls, number), decorator = self._found(closure), closure.parent
        if not calls or decorator is None or call[0] not in (op.CALL, op.INVOKE):
            return []
        register = next((one[2] for one in decorator.by_opcode[op.PARAM] if one[3] == number), op.NONE)
        values = self.facts.functions_in(self.graph.called(function, call).values)
        frames = [value.frame for value in values if value.function is closure]
        nodes = [self.facts.solver.demand(self.facts.register(frame or self.facts.base(decorator), register)) for frame in frames]
        self.facts.solver.solve()
        found = dict.fromkeys(one.function for node in nodes for one in node.values if isinstance(one, FunctionObject))
        name = last_name(function, call)
        named = [one for one in found if one.code.name == name]
        several = named or list(found)
        return several if len(several) <= MOST_MEANT else []


def _may_pass_by(function: Function, blocks: set[int]) -> bool:
    """Whether a way through a function returns without any of some blocks."""
    return any(function.code.blocks[block][-1][0] == op.RETURN for block in function.control.reach([0], blocks))
