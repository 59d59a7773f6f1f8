"""Kernels whose text a library compiles while the program runs (CuPy's RawKernel): what that text says of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Constant, LibraryObject, Memory, Site
from streamlint.facts.graph.call_graph import LibraryCall
from streamlint.facts.graph.facts import Facts
from streamlint.frontends.kernel_text import written
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models.vocabulary import Selector
from streamlint.transfer.modelled import ModelledCall, operands_of
from streamlint.transfer.work import Worked
from streamlint.waits.operands import argument_registers

Libraries = Callable[[Function, Instruction], Iterable[LibraryCall]]

_PLAIN = 8
"""As long is a call that gives a kernel its grid, blocks and arguments alone."""


def launched(facts: Facts, libraries: Libraries, function: Function, one: Instruction) -> Iterator[Worked]:
    """The work of a call of such a kernel."""
    for called in libraries(function, one) if one[0] == op.CALL and not function.is_cpp else ():
        row = called.row if called.name.endswith(".__call__") else None
        if row is None:
            continue
        call = ModelledCall(facts, function, called, row)
        if row.effect == "launch":
            given = tuple(part for register in call.all("given") for part in _parts_of(function, register))
            writes = _written(facts, libraries, function, one[3], given)
        elif writes := _behind_inputs(facts, libraries, function, one):
            given = operands_of(function, one, False)
        else:
            continue
        reads = tuple(register for register in given if register not in writes)
        yield Worked(call.stream(), reads, writes, call.name, row.library, op.NONE, False, True)


def on_named_stream(facts: Facts, libraries: Libraries, function: Function) -> Iterator[ModelledCall]:
    """The calls of kernels in a function that are given their stream."""
    for one in function.by_opcode[op.CALL]:
        for called in libraries(function, one) if len(one) > _PLAIN else ():
            row = called.row if called.name.endswith(".__call__") else None
            stream = row.get("stream") if row is not None and row.effect == "launch" else None
            call = ModelledCall(facts, function, called, row) if row is not None and isinstance(stream, Selector) else None
            if call is not None and isinstance(stream, Selector) and call.given(stream) is not None:
                yield call


def _behind_inputs(facts: Facts, libraries: Libraries, function: Function, one: Instruction) -> tuple[int, ...]:
    """The arguments behind the inputs that a kernel declares in a text: its outputs."""
    texts = (_text(facts, site, call, "inputs") for site, call in _makers(facts, libraries, function, one[3]))
    declared = next((text for text in texts if text is not None), None)
    given = [register for kind, register in argument_registers(function, one) if not isinstance(kind, str)]
    return tuple(given[len([each for each in declared.split(",") if each.strip()]) :]) if declared is not None else ()


def _parts_of(function: Function, register: int) -> tuple[int, ...]:
    """The elements of a tuple of arguments."""
    built = function.definitions[register] if register >= 0 else None
    return tuple(built[4:]) if built is not None and built[0] == op.BUILD else (register,)


def _written(facts: Facts, libraries: Libraries, function: Function, kernel: int, given: tuple[int, ...]) -> tuple[int, ...]:
    """The arguments that a kernel writes for sure: by its text; of one whose text says nothing, the one that alone is memory."""
    known = next(filter(None, (written(*text) for text in _texts(facts, libraries, function, kernel))), None)
    if known is not None and len(known.arguments) == len(given):
        may = tuple(register for register, is_written in zip(given, known.arguments, strict=True) if is_written)
        return may if known.sure or len(may) == 1 else ()
    memory = tuple(each for each in given if any(isinstance(value, Memory) for value in facts.values(function, each).values))
    return memory if len(memory) == 1 else ()


def _texts(facts: Facts, libraries: Libraries, function: Function, kernel: int) -> Iterator[tuple[str, str]]:
    """The texts and names of the kernels that a register may hold."""
    for site, call in _makers(facts, libraries, function, kernel):
        name = _text(facts, site, call, "kernel")
        text = _text(facts, site, call, "text")
        owner = site.instruction[3] if site.instruction[0] == op.INVOKE else op.NONE
        for holder, made in _makers(facts, libraries, site.function, owner) if text is None and owner >= 0 else ():
            text = text or _text(facts, holder, made, "text")
        if name is not None and text is not None:
            yield text, name.partition("<")[0]


def _makers(facts: Facts, libraries: Libraries, function: Function, register: int) -> Iterator[tuple[Site, LibraryCall]]:
    """The calls that make the objects in a register."""
    node = facts.values(function, register)
    for value in list(node.values):
        for site in list(node.trace(value))[-1:] if isinstance(value, LibraryObject) else ():
            if site.instruction[0] in (op.CALL, op.INVOKE):
                yield from ((site, call) for call in libraries(site.function, site.instruction) if call.row is not None)


def _text(facts: Facts, site: Site, call: LibraryCall, key: str) -> str | None:
    """What a call is given for a field, if that is text."""
    assert call.row is not None
    selector = call.row.get(key)
    register = ModelledCall(facts, site.function, call, call.row).given(selector) if isinstance(selector, Selector) else None
    values = facts.values(site.function, register).values if register is not None and register >= 0 else ()
    held = [value.value for value in values if isinstance(value, Constant)]
    constant = held[0] if held else site.function.constant(register) if register is not None and register >= 0 else None
    return constant if isinstance(constant, str) else None
