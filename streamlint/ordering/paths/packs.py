"""C++: the arguments of a call that expands a pack: those that the callers of the function around give for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import LIST
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.called_arguments import CalledArguments
from streamlint.waits.operands import all_given, bound_of

_DEEPEST = 4


class Expanded(NamedTuple):
    """All arguments of a call, each with the function whose register holds it, and the calls above that give some of them."""

    arguments: tuple[tuple[Function, int], ...]
    calls: tuple[Site, ...]


def expands(caller: Function, call: Instruction, callee: Function) -> bool:
    """Whether a call expands a pack."""
    return caller.is_cpp and any(kind == LIST for kind, _ in all_given(caller, call, callee))


def expanded(called: CalledArguments, caller: Function, call: Instruction, callee: Function, depth: int = _DEEPEST) -> Iterator[Expanded]:
    """The arguments of a call, for each way in which callers give a pack that it expands."""
    given = [(kind, (caller, register)) for kind, register in all_given(caller, call, callee)]
    place = next((number for number, (kind, _) in enumerate(given) if kind == LIST), None)
    if place is None:
        yield Expanded(tuple(held for _, held in given), ())
        return
    first = next((number for number, parameter in enumerate(caller.code.parameters) if parameter.kind == "star"), None)
    for outer, above in called.facts.call_places(caller) if first is not None and depth else ():
        if above[0] not in (op.CALL, op.INVOKE) or outer is caller or not called.may_give(outer, above, caller, call, callee):
            continue
        for one in expanded(called, outer, above, caller, depth - 1):
            pack = one.arguments[(first or 0) - bound_of(outer, above, caller) :]
            before, behind = (held for _, held in given[:place]), (held for _, held in given[place + 1 :])
            yield Expanded((*before, *pack, *behind), (*one.calls, Site(outer, above)))
