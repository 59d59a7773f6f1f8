"""What instructions say by themselves, without any facts: the arguments and the name of a call, and what is a copy of what."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models.vocabulary import Selector

COPIES = {op.CAST: 4, op.COPY: 3, op.REBIND: 5, op.AWAIT: 3}
"""By opcode: the operand of which the result is a copy, a cast, or what it is behind a call that may change it."""

LIST, DICT = 1, 2
"""What stands for the keyword of an argument that is spread: ``*`` and ``**``."""


def arguments_of(function: Function, call: Instruction) -> Iterator[tuple[int, object]]:
    """The registers of a call's arguments, each with its keyword; None by position, 1 behind ``*``, 2 behind ``**``. What a dictionary,
    tuple or list holds that the function writes out and spreads there stands in its place."""
    for register, kind in _as_written(function, call):
        if kind == LIST and (elements := _elements(function, register)) is not None:
            yield from ((each, None) for each in elements)
            continue
        entries = _entries(function, register) if kind == DICT else None
        yield from ((register, kind),) if entries is None else entries


def _as_written(function: Function, call: Instruction) -> Iterator[tuple[int, object]]:
    first, shape = (6, call[5]) if call[0] == op.INVOKE else (5, call[4])
    if call[0] == op.LAUNCH:
        first, shape = 6 + call[5], op.NONE  # behind what configures it
    return with_kinds(function, call[first:], shape)


def with_kinds(function: Function, registers: tuple[int, ...], shape: int) -> Iterator[tuple[int, object]]:
    """Arguments, each with its keyword, as the constant of a call's shape has them."""
    return zip(registers, function.unit.ir.constants[shape] if shape != op.NONE else (None,) * len(registers), strict=False)


def pairs_of(function: Function, one: Instruction) -> Iterator[tuple[object, int]]:
    """The keys with which a dictionary is written out, each with the register of its value: None for one that is not constant, `DICT` for
    what is spread. None of another call than that of ``dict``."""
    if one[0] == op.DICT:
        keys = (DICT if key == op.NONE else function.constant(key) for key in one[3::2])
        yield from zip(keys, one[4::2], strict=True)
    elif one[0] == op.CALL and function.dotted(one[3]) == "dict":
        yield from ((kind, register) for register, kind in _as_written(function, one))


def is_dictionary(function: Function, one: Instruction) -> bool:
    """Whether a dictionary is written out: ``{"a": x}``, ``dict(a=x)``."""
    return one[0] == op.DICT or (one[0] == op.CALL and function.dotted(one[3]) == "dict")


def _entries(function: Function, register: int) -> list[tuple[int, object]] | None:
    """The entries of a dictionary that is written out, and what its block sets in it; None of another one."""
    made = function.definitions[register] if register >= 0 and not function.is_cpp else None
    if made is None or not is_dictionary(function, made):
        return None
    entries = [(value, key) for key, value in pairs_of(function, made)]
    for use in function.uses[register]:
        if use[0] == op.SET_ITEM and use[2] == register and function.blocks[use] == function.blocks[made]:
            entries.append((use[4], function.constant(use[3])))
        elif use[0] != op.BIND and not (use[0] in (op.CALL, op.INVOKE) and (register, DICT) in _as_written(function, use)):
            return None
    return entries if all(isinstance(key, str) for _, key in entries) else None


def _elements(function: Function, register: int) -> tuple[int, ...] | None:
    """The elements of a tuple or list that is written out, and that the function only spreads; of a comprehension over one that of each
    round. None of another one."""
    made = function.definitions[register] if register >= 0 and not function.is_cpp else None
    kind = function.unit.ir.constants[made[3]] if made is not None and made[0] == op.BUILD else None
    if made is None or kind not in ("tuple", "list"):
        return None
    return made[4:] if kind == "tuple" else _of_list(function, made, register)


def _of_list(function: Function, made: Instruction, register: int) -> tuple[int, ...] | None:
    appended = [use for use in function.uses[register] if use[0] == op.APPEND and use[2] == register]
    if not all(use in appended or _only_spreads(function, use, register) for use in function.uses[register]):
        return None
    if not appended:
        return made[4:]
    return appended[0][3:4] * _rounds(function, made, appended[0]) or None if len(appended) == 1 else None


def _only_spreads(function: Function, use: Instruction, register: int) -> bool:
    """Whether a use of a list names it, or spreads it in a call."""
    if use[0] not in (op.CALL, op.INVOKE):
        return use[0] == op.BIND
    return use[3] != register and all(one != register or kind == LIST for one, kind in _as_written(function, use))


def _rounds(function: Function, made: Instruction, appended: Instruction) -> int:
    """How often a comprehension appends an element: once for each of what is written out; 0 where that is not known."""
    graph, block = function.control, function.blocks[appended]
    around, outside = graph.innermost[block], graph.innermost[function.blocks[made]]
    loop = graph.loops[around] if around >= 0 else None
    if loop is None or loop.parent != outside or block not in graph.every_round(loop):
        return 0
    taken = [one for one in function.by_opcode[op.NEXT] if function.blocks[one] in loop.body]
    over = function.definitions[taken[0][3]] if len(taken) == 1 else None
    return len(_elements(function, over[3]) or ()) if over is not None and over[0] == op.ITER else 0


def is_none(function: Function, register: int) -> bool:
    """Whether a register holds None, written as such."""
    one = function.definitions[register] if register >= 0 else None
    return one is not None and one[0] == op.CONST and function.unit.ir.constants[one[3]] is None


def repeats(function: Function, one: Instruction) -> bool:
    """Whether an instruction makes a list of several times what one holds: ``[None] * count``."""
    return one[0] == op.BINARY and function.text(one[3]) == "*"


def selected(function: Function, one: Instruction, selector: Selector) -> list[int]:
    """The registers of the argument that a selector means."""
    given = list(arguments_of(function, one))
    by_place = [register for place, (register, kind) in enumerate(given) if kind is None and place == selector.position]
    return by_place or [register for register, kind in given if kind == selector.keyword and kind is not None]


def behind(function: Function, registers: Iterable[int], onward: Callable[[Instruction], Iterable[int]]) -> Iterator[Instruction]:
    """The instructions that define registers, and those that these go back to over the registers that ``onward`` gives; each once."""
    waiting, seen = list(registers), set[int]()
    while waiting:
        register = waiting.pop()
        one = function.definitions[register] if register >= 0 else None
        if one is not None and one[2] not in seen:
            seen.add(one[2])
            yield one
            waiting += onward(one)


def passed_on(one: Instruction) -> Iterable[int]:
    """The registers that a value goes on from where it is copied or joined; none of what makes one: for `behind`."""
    return one[3:] if one[0] == op.PHI else (one[COPIES[one[0]]],) if one[0] in COPIES else ()


def only_source(function: Function, register: int) -> int:
    """C++: the register that loops and calls by reference hand on under other names; itself where several come together."""
    steps = behind(function, [register], _handed_on)
    sources = {one[2] for one in steps if one[0] not in (op.PHI, op.REBIND)}
    return sources.pop() if len(sources) == 1 else register


def _handed_on(one: Instruction) -> Iterable[int]:
    return one[3:] if one[0] == op.PHI else (one[5],) if one[0] == op.REBIND else ()


def uncopied(function: Function, register: int) -> Instruction | None:
    """The instruction that a register has its value from, through copies."""
    made = function.definitions[register] if register >= 0 else None
    while made is not None and made[0] == op.COPY:
        made = function.definitions[made[3]]
    return made


def uncast(function: Function, register: int) -> int:
    """The register that another one is a copy or a cast of; itself if it is neither."""
    return behind_copies(function, register, (op.COPY, op.CAST))


def behind_copies(function: Function, register: int, kinds: Container[int] = COPIES) -> int:
    """The register of which another one is a copy, a cast, or what it is behind a call that may change it: by such opcodes."""
    while register >= 0 and (one := function.definitions[register]) is not None and one[0] in kinds:
        register = one[COPIES[one[0]]]
    return register


def assigned_at_once(function: Function, one: Instruction) -> int | None:
    """The register that a name of ``a, b = x, y`` is another name of; None of what is no such assignment."""
    made = function.definitions[one[3]] if one[0] == op.UNPACK and one[3] >= 0 and one[6] == op.NONE else None
    is_written = made is not None and made[0] == op.BUILD and len(made) == 4 + one[5]
    return made[4 + one[4]] if is_written and made is not None and made[4 + one[4]] >= 0 else None


def unnegated(function: Function, register: int) -> tuple[int, bool]:
    """A condition without ``not`` around it, and whether it was turned round."""
    turned = False
    while (
        (one := function.definitions[register] if register >= 0 else None) is not None
        and one[0] == op.UNARY
        and function.text(one[3]) in ("not", "!")
    ):
        register, turned = one[4], not turned
    return register, turned


def last_name(function: Function, one: Instruction) -> str:
    """The last part of the name of what a call calls."""
    if one[0] == op.INVOKE:
        return function.text(one[4])
    if one[0] == op.CONSTRUCT:
        return str(function.unit.ir.constants[one[3]][0]).rpartition("::")[2]
    if one[0] not in (op.CALL, op.LAUNCH):
        return ""
    return function.dotted(one[3]).replace("::", ".").rpartition(".")[2]


def placeholder(function: Function, register: int) -> int | None:
    """C++: which argument of the call of what `std::bind` gives stands there; None of a value that is bound."""
    one = function.definitions[register] if register >= 0 else None
    last = function.text(one[3]).rpartition("::")[2] if one is not None and one[0] == op.NAME else ""
    return int(last[1:]) if last[:1] == "_" and last[1:].isdecimal() else None


def element_given(function: Function) -> Instruction | None:
    """C++: what takes the element to which a function gives back a reference: it is read where the reference is used, not there."""
    kind = function.code.returns if function.is_cpp and function.code.name != "operator[]" else None  # an element is no call
    ends = function.by_opcode[op.RETURN]
    if not isinstance(kind, tuple) or not kind[3] or len(ends) != 1 or ends[0][2] < 0:
        return None
    one = function.definitions[uncast(function, ends[0][2])]
    return one if one is not None and one[0] in (op.ITEM, op.DEREF) else None
