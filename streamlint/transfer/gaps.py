"""Whether a part of memory has gaps: such a part of pinned memory is staged through pageable memory."""

from __future__ import annotations

from streamlint.facts.objects import Site
from streamlint.ir import opcodes as op
from streamlint.transfer.contexts import Contexts, Known
from streamlint.transfer.language import leaves_out
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.origin import Origin


def has_gaps(contexts: Contexts, origin: Origin) -> bool:
    """Whether the way from its origin to a use takes a part of memory that has gaps."""
    return any(_leaves_gaps(contexts, site, origin) for site in origin.views)


def _leaves_gaps(contexts: Contexts, site: Site, origin: Origin) -> bool:
    function, one = site.function, site.instruction
    if one[0] == op.ITEM:
        return _by_index(contexts, site)
    for call in contexts.calls(function, one):
        part = call.row.get("part")
        if part == "some":
            axis = call.one("axis")
            step = call.one("step")
            if step is not None and contexts.number(Known(function, step, origin.known.context)) not in (None, 1):
                return True
            return axis is not None and contexts.number(Known(function, axis, origin.known.context)) not in (None, 0)
        if part == "repeated":
            return _repeats(contexts, call, origin)
    return False


def _repeats(contexts: Contexts, call: ModelledCall, origin: Origin) -> bool:
    sizes = [
        number for register in call.all("sizes") for number in _numbers(contexts, Known(call.function, register, origin.known.context))
    ]
    sizes += [
        number for register in call.operands[1:] for number in _numbers(contexts, Known(call.function, register, origin.known.context))
    ]
    return any(number not in (1, -1) for number in sizes)


def _numbers(contexts: Contexts, known: Known) -> list[int | None]:
    one = contexts.definition(known)
    if one is not None and one[0] == op.BUILD:
        return [_signed(contexts, known._replace(register=each)) for each in one[4:]]
    return [_signed(contexts, known)]


def _signed(contexts: Contexts, known: Known) -> int | None:
    one = contexts.definition(known)
    if one is not None and one[0] == op.UNARY and known.function.text(one[3]) == "-":
        number = contexts.number(known._replace(register=one[4]))
        return None if number is None else -number
    return contexts.number(known)


def _by_index(contexts: Contexts, site: Site) -> bool:
    """``x[::2]`` and ``x[:, :k]`` leave gaps; ``x[a:b]`` and ``x[i]`` do not."""
    function, one = site.function, site.instruction
    index = function.definitions[one[4]]
    if index is None:
        return False
    if index[0] == op.SLICE:
        return index[5] >= 0 and contexts.number(Known(function, index[5], ())) != 1
    if index[0] == op.BUILD:
        return leaves_out(function, index)
    return False
