"""What branches say of values: of a type of Python or of NumPy, or no tensor, they are on the host; and of the device at hand."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import arguments_of, last_name
from streamlint.facts.code.objects import External
from streamlint.facts.graph.facts import Facts
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.origins import TENSOR
from streamlint.waits.questions import Key, alike, conditions

_OF_PYTHON = frozenset({"bool", "bytes", "complex", "dict", "float", "frozenset", "int", "list", "range", "set", "str", "tuple"})


def is_of_host(facts: Facts, function: Function, one: Instruction, register: int) -> bool:
    """Whether the branches that lead to an instruction say that a register holds an object of a type that lives on the host."""
    if function.is_cpp or not ({"isinstance"} | function.known("asks-tensor")) & function.called_names:
        return False
    block, key = function.blocks[one], alike(function, register)
    tested = _tested(function, block, key)
    return _is_no_tensor(function, block, key) or any(
        (are_of_host if holds else _has_tensor)(facts, function, kinds) for kinds, holds in tested
    )


def _is_no_tensor(function: Function, block: int, key: Key) -> bool:
    """Whether all ways to a block have found that a value is no tensor: ``torch.is_tensor`` was false."""
    refused = (function.definitions[asked] for asked, holds in conditions(function, block) if asked >= 0 and not holds)
    asking = (call for call in refused if call is not None and last_name(function, call) in function.known("asks-tensor"))
    return any(alike(function, given) == key for call in asking for given, _ in arguments_of(function, call))


def is_of_other(facts: Facts, function: Function, one: Instruction, register: int, owner: ClassInfo) -> bool:
    """Whether the branches that lead to an instruction say that a register holds an object of a library's type, and of no class's of the
    program that does not derive from it."""
    if function.is_cpp or "isinstance" not in function.called_names:
        return False
    tested = (kinds for kinds, holds in _tested(function, function.blocks[one], alike(function, register)) if holds)
    meant = [list(facts.values(function, kinds).values) for kinds in tested]
    libraries = facts.hierarchy.libraries(owner)
    return any(values and all(isinstance(value, External) and value.name not in libraries for value in values) for values in meant)


def _tested(function: Function, block: int, key: Key) -> Iterator[tuple[int, bool]]:
    """The registers of the types of which all ways to a block have found a value to be, or not to be."""
    for asked, holds in conditions(function, block):
        call = function.definitions[asked] if asked >= 0 else None
        if call is not None and call[0] == op.CALL and len(call) == 7 and function.dotted(call[3]) == "isinstance":
            yield from ((call[6], holds),) if alike(function, call[5]) == key else ()


def runs_without_cuda(function: Function, one: Instruction, register: int) -> bool:
    """Whether the branches that lead to an instruction have found that the device of what a register holds is none of CUDA's.

    Which device is asked: the value's own, or one that a variable or an object keeps, which is the device at hand.
    """
    if function.is_cpp or not function.by_opcode[op.COMPARE]:
        return False
    for asked, holds in conditions(function, function.blocks[one]):
        compared = function.definitions[asked] if asked >= 0 else None
        if compared is not None and compared[0] == op.COMPARE and _is_other(function, compared, holds, register):
            return True
    return False


def _is_other(function: Function, compared: Instruction, holds: bool, register: int) -> bool:
    """Whether a comparison that comes out so says that the type of a value's device is not `cuda`."""
    of, (left, right) = function.text(compared[3]), compared[4:6]
    asked = function.definitions[left] if left >= 0 else None
    if of not in ("==", "!=") or asked is None or asked[0] != op.ATTR or function.text(asked[4]) != "type":
        return False
    device = function.definitions[asked[3]] if asked[3] >= 0 else None
    if device is not None and device[0] == op.ATTR and function.text(device[4]) == "device":
        is_kept = function.owner is not None and function.is_parameter(device[3])
        if not is_kept and alike(function, device[3]) != alike(function, register):
            return False
    name, is_equal = function.constant(right), (of == "==") == holds
    return name in function.known("host-device", "other-device") if is_equal else name == "cuda"


def _has_tensor(facts: Facts, function: Function, kinds: int) -> bool:
    """Whether one of the types that a register holds is the tensor's own."""
    built = function.definitions[kinds] if kinds >= 0 else None
    if built is not None and built[0] == op.BUILD:
        return any(_has_tensor(facts, function, part) for part in built[4:])
    return any(isinstance(value, External) and value.name == TENSOR for value in facts.values(function, kinds).values)


def are_of_host(facts: Facts, function: Function, kinds: int) -> bool:
    """Whether all types that a register holds are of the host: one, or a tuple of them."""
    built = function.definitions[kinds] if kinds >= 0 else None
    if built is not None and built[0] == op.BUILD:
        return len(built) > 4 and all(are_of_host(facts, function, part) for part in built[4:])
    values = list(facts.values(function, kinds).values)
    return bool(values) and all(isinstance(value, External) and _is_of_host(value.name) for value in values)


def _is_of_host(name: str) -> bool:
    return name in _OF_PYTHON or name.startswith("numpy.")
