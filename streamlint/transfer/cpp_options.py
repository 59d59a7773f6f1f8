"""C++: what the options of a tensor say: its device, and whether its memory is pinned."""

from __future__ import annotations

from typing import NamedTuple

from streamlint.facts.code.objects import Constant, DeviceValue, LibraryObject, Memory
from streamlint.facts.graph.call_graph import LibraryCall
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models.vocabulary import SPACES
from streamlint.transfer.contexts import Contexts, Known
from streamlint.transfer.modelled import ModelledCall

_WORDS = {"cuda": "device", "cpu": "host"}
_OPTIONS = frozenset({"device", "same", "pinned_options", "object"})
"""The effects of calls that give options."""
_DEEPEST = 8


class Option(NamedTuple):
    """The space that an option names, "" for none; ``pinned`` is None where nobody knows."""

    space: str = ""
    pinned: bool | None = False


def _by_name(contexts: Contexts, known: Known, one: Instruction) -> list[ModelledCall]:
    """A method of options whose receiver is taken for a device."""
    row = contexts.facts.cpp_models.method("at::TensorOptions", known.function.text(one[4]), "::") if one[0] == op.INVOKE else None
    return [ModelledCall(contexts.facts, known.function, LibraryCall(one, row, row.names[0], None), row)] if row is not None else []


def option(contexts: Contexts, known: Known, depth: int = 0) -> Option | None:
    """What an argument says as an option; None where it is none."""
    known = contexts.traced(known)
    one, function = contexts.definition(known), known.function
    if one is None or depth > _DEEPEST:
        return None
    if one[0] == op.NAME and (word := contexts.facts.cpp_models.constants.get(function.text(one[3]), "")):
        return Option(SPACES.get(word, ""))
    if one[0] in (op.CALL, op.INVOKE):
        for call in list(contexts.calls(function, one)) or _by_name(contexts, known, one):
            if call.row.effect in _OPTIONS:
                return _by_call(contexts, known, call, depth)
    return _by_value(contexts, known)


def _by_call(contexts: Contexts, known: Known, call: ModelledCall, depth: int) -> Option:
    """What a call makes of the options that it is called on, and of those that it is given."""
    receiver = call.receiver
    before = (option(contexts, known._replace(register=receiver), depth + 1) if receiver is not None else None) or Option()
    given = [option(contexts, known._replace(register=each), depth + 1) for each in call.operands if each != receiver]
    named = next((each.space for each in given if each is not None and each.space), "")
    if call.row.effect == "pinned_options":
        return Option(before.space, contexts.truth_of(known._replace(register=call.operands[-1])) if given else True)
    if call.row.effect == "device" and not named:
        return Option("unknown", before.pinned)
    return Option(named or before.space, before.pinned)


def _by_value(contexts: Contexts, known: Known) -> Option | None:
    """What is known of a value: the space of which some code tells, where code that does not tell may set it too."""
    values = list(contexts.facts.values(known.function, known.register).values)
    words = (str(value.value).partition(":")[0] for value in values if isinstance(value, Constant))
    spaces = {_WORDS[word] for word in words if word in _WORDS} | {
        value.space for value in values if isinstance(value, (DeviceValue, Memory))
    }
    is_open = any(isinstance(value, Memory) for value in values) or any(
        isinstance(value, LibraryObject) and value.type.endswith("TensorOptions") for value in values
    )
    one_of = spaces & {"device", "host"}
    return Option(one_of.pop() if len(one_of) == 1 else "unknown", None if is_open else False) if spaces or is_open else None
