"""What the languages do with memory: operators, elements, attributes that are views, truth tests, text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Container, Group, Memory, Object, Unknown
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.actions import Action, Read, Viewed, Written

Values = Callable[[Function, int], Iterable[Object]]
OPERATORS = frozenset({op.BINARY, op.INPLACE, op.COMPARE, op.UNARY, op.FORMAT, op.BRANCH})
ELEMENTS = frozenset({op.ITEM, op.DEREF, op.NEXT, op.SET_ITEM, op.SET_DEREF})
OF_RECORDS = frozenset({"_asdict", "_replace"})
"""Methods that named tuples alone have: they look at nothing, and wait for nothing."""
_WAITING = {op.FORMAT: "format", op.BRANCH: "bool"}
_ON_HOST = frozenset({"is", "is not", "in", "not in"})


def is_host_comparison(function: Function, one: Instruction) -> bool:
    """Whether a comparison asks which object something is, or for a member: the answer is a truth of the language, and no tensor."""
    return one[0] == op.COMPARE and not function.is_cpp and function.text(one[3]) in _ON_HOST


def operator(function: Function, one: Instruction, tensors: Collection[int]) -> Iterator[Action]:
    """Operators compute; text and truth tests fetch. In C++ an address with an offset is the same memory;
    ``tensors`` are the operands that are none."""
    if function.is_cpp:
        yield from _operator_of_cpp(function, one, tensors)
        return
    if one[0] == op.COMPARE and function.text(one[3]) in ("is", "is not"):
        return
    is_search = one[0] == op.COMPARE and function.text(one[3]) in ("in", "not in")
    name = _WAITING.get(one[0], "arithmetic")
    yield from (Read(register, name, one[0] in _WAITING) for register in (one[5:6] if is_search else op.reads(one)))
    if one[0] == op.INPLACE:
        yield Written(one[4], name)
        yield Viewed(one[4])


def _operator_of_cpp(function: Function, one: Instruction, tensors: Collection[int]) -> Iterator[Action]:
    if tensors:
        yield from (Read(register, "arithmetic", False) for register in tensors)
        yield from (Written(one[4], "arithmetic"), Viewed(one[4])) if one[0] == op.INPLACE and one[4] in tensors else ()
    elif one[0] in (op.BINARY, op.INPLACE) and function.text(one[3]) in ("+", "-", "+=", "-="):
        yield from (Viewed(register) for register in one[4:6])


def element(function: Function, one: Instruction, values: Values, is_tensor: Callable[[Function, int], bool]) -> Iterator[Action]:
    """A part of a tensor is a view; a number of an array, or behind a pointer, is read; an assignment writes."""
    is_store = one[0] in (op.SET_ITEM, op.SET_DEREF)
    base = one[2] if is_store else one[3]
    kept = list(values(function, base))
    held = [value for value in kept if isinstance(value, Memory)]
    if not is_store:
        yield from _taken(function, one, held, values)
    elif kept and not function.is_cpp and all(isinstance(value, Container | Group) for value in kept):
        return  # a list or dict keeps what is put into it, under whatever key
    elif held or function.is_cpp or (one[0] == op.SET_ITEM and (is_tensor(function, one[3]) or _copies_elements(function, one, values))):
        if function.is_cpp or not _is_of_device(values(function, one[-1])):
            yield Written(base, "assignment")
        if not function.is_cpp or not is_pointer(values(function, one[-1])):
            yield Read(one[-1], "assignment", False)


def is_pointer(values: Iterable[Object]) -> bool:
    """C++: whether a value is a pointer: who keeps it reads nothing of the memory to which it leads."""
    return any(isinstance(value, Memory) and value.type in ("pointer", "array") for value in values)


def _copies_elements(function: Function, one: Instruction, values: Values) -> bool:
    """Whether an assignment takes the elements of an array of the host, whatever it puts them into: a slice of a list does so as well."""
    index = function.definitions[one[3]] if one[3] >= 0 else None
    given = [value for value in values(function, one[4]) if isinstance(value, Memory)]
    return index is not None and index[0] == op.SLICE and bool(given) and all(value.type.startswith("numpy.") for value in given)


def _is_of_device(values: Iterable[Object]) -> bool:
    """Whether a tensor of the device is assigned: its stream writes, or an entry of a batch is replaced; not the host."""
    spaces = {value.space for value in values if isinstance(value, Memory) and value.type.endswith("Tensor")}
    return spaces == {"device"}


def _taken(function: Function, one: Instruction, held: list[Memory], values: Values) -> Iterator[Action]:
    base = one[3]
    is_of_c = function.is_cpp or (function.unit.source.language == "cython" and not any("." in value.type for value in held))
    if not held and not is_of_c:
        unknown = any(isinstance(value, Unknown) for value in values(function, base))
        if one[0] == op.ITEM and unknown and not isinstance(function.constant(one[4]), str):
            yield Viewed(base)  # of a tensor, if it is one
        return
    if is_of_c:
        is_read = not any(value.type.endswith("Tensor") for value in held)
    else:
        is_read = any(value.type.startswith("numpy.") for value in held) and one[0] != op.DEREF and not _is_slice(function, one)
    if is_read:
        yield Read(base, "indexing", False)
    elif one[0] != op.DEREF:
        yield Viewed(base)


def filled(function: Function, one: Instruction) -> Iterator[Action]:
    """``file.readinto(view)``, whoever has the method."""
    if one[0] == op.INVOKE and not function.is_cpp and len(one) > 6 and function.text(one[4]) in function.known("reads-into"):
        yield Written(one[6], function.text(one[4]))


def _is_slice(function: Function, one: Instruction) -> bool:
    index = function.definitions[one[4]] if one[0] == op.ITEM and one[4] >= 0 else None
    return index is not None and index[0] in (op.SLICE, op.BUILD)


def leaves_out(function: Function, index: Instruction) -> bool:
    """Whether an index of several axes takes elements that do not lie side by side.

    Those lie side by side that one number picks on each of the first axes, then a part of one axis, then all of the others.
    """
    is_begun = False
    for part in (function.definitions[each] for each in index[4:]):
        if part is not None and part[0] == op.CONST and function.text(part[3]) == "None":
            continue
        if not is_begun:
            is_begun = _is_several(function, part)
            if part is not None and part[0] == op.SLICE and part[5] >= 0 and function.constant(part[5]) != 1:
                return True
        elif not _is_whole(function, part):
            return True
    return False


def _is_several(function: Function, part: Instruction | None) -> bool:
    """Whether a part of an index takes more than one element of its axis: what is no slice picks one."""
    if part is None or part[0] != op.SLICE:
        return _is_whole(function, part)
    low, high = (function.constant(each) if each >= 0 else None for each in part[3:5])
    if isinstance(low, int) and isinstance(high, int):
        return high - low != 1
    end = function.definitions[part[4]] if part[4] >= 0 else None
    return not (end is not None and end[0] == op.BINARY and end[4] == part[3] and function.constant(end[5]) == 1)


def _is_whole(function: Function, part: Instruction | None) -> bool:
    if part is not None and part[0] == op.CONST:
        return function.text(part[3]) == "Ellipsis"
    return part is not None and part[0] == op.SLICE and part[3:6] == (op.NONE, op.NONE, op.NONE)
