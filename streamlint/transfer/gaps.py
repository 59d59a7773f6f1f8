"""Whether a part of memory has gaps: such a part of pinned memory is staged through pageable memory."""

from __future__ import annotations

from collections.abc import Iterable

from streamlint.facts.code.objects import Site
from streamlint.ir import opcodes as op
from streamlint.transfer.contexts import Contexts, Known
from streamlint.transfer.language import leaves_out
from streamlint.transfer.modelled import ModelledCall
from streamlint.waits.entered import Context


def has_gaps(contexts: Contexts, views: Iterable[Site], context: Context) -> bool:
    """Whether one of the views on the way from memory to a use takes a part that has gaps."""
    return any(_leaves_gaps(contexts, site, context) for site in views)


def may_leave_gaps(contexts: Contexts, site: Site) -> bool:
    """Whether a view may take a part that has gaps, for some numbers."""
    if site.instruction[0] == op.ITEM:
        return _by_index(contexts, site)
    return any(call.row.get("part") in ("some", "repeated") for call in contexts.calls(*site))


def _leaves_gaps(contexts: Contexts, site: Site, context: Context) -> bool:
    function, one = site.function, site.instruction
    if one[0] == op.ITEM:
        return _by_index(contexts, site)
    for call in contexts.calls(function, one):
        part = call.row.get("part")
        if part == "some":
            axis = call.one("axis")
            step = call.one("step")
            if step is not None and contexts.number(Known(function, step, context)) not in (None, 1):
                return True
            return axis is not None and contexts.number(Known(function, axis, context)) not in (None, 0)
        if part == "repeated":
            return _repeats(contexts, call, context)
    return False


def _repeats(contexts: Contexts, call: ModelledCall, context: Context) -> bool:
    sizes = [number for register in call.all("sizes") for number in _numbers(contexts, Known(call.function, register, context))]
    sizes += [number for register in call.operands[1:] for number in _numbers(contexts, Known(call.function, register, context))]
    return any(number not in (1, -1) for number in sizes)


def _numbers(contexts: Contexts, known: Known) -> list[int | None]:
    one = contexts.definition(known)
    if one is not None and one[0] == op.BUILD:
        return [signed_number(contexts, known._replace(register=each)) for each in one[4:]]
    return [signed_number(contexts, known)]


def signed_number(contexts: Contexts, known: Known) -> int | None:
    """A whole number, also one that is written with a minus."""
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
