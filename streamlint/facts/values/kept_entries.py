"""Keys of dictionaries that keep values: whether each round asks for another one."""

from __future__ import annotations

from streamlint import TYPE_CHECKING
from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import arguments_of
from streamlint.facts.code.objects import Site
from streamlint.facts.files.autograd import given_for, offset_of
from streamlint.ir import opcodes as op

if TYPE_CHECKING:
    from streamlint.facts.graph.facts import Facts

_DEEPEST = 4


def differs(facts: Facts, function: Function, register: int, depth: int = _DEEPEST) -> bool:
    """Whether a key may be another one in each round: the element or the number of a loop, also of one that calls."""
    one = function.definitions[register] if register >= 0 else None
    if one is None or depth == 0 or one[0] in (op.CONST, op.ATTR, op.NAME, op.LOAD):
        return False
    if one[0] != op.PARAM:
        parts = [given for given, _ in arguments_of(function, one)] if one[0] in (op.CALL, op.INVOKE) else op.reads(one)
        return one[0] in (op.NEXT, op.PHI) or any(differs(facts, function, part, depth - 1) for part in parts)
    sites = [arguments.site for _, arguments in facts.callers(function)]
    return any(_is_given_another(facts, site, function, one[3], depth) for site in sites if site is not None)


def _is_given_another(facts: Facts, site: Site, function: Function, index: int, depth: int) -> bool:
    """Whether a call gives a parameter such a key."""
    caller, call = site
    if call[0] not in (op.CALL, op.INVOKE) or offset_of(caller, call, function) is None:
        return True
    register = given_for(caller, call, function, index)
    return register is not None and differs(facts, caller, register, depth - 1)
