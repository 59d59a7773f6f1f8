"""Kernels that numba compiles from Python: which functions these are, and what their bodies do with their arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import External
from streamlint.facts.graph.call_graph import LibraryCall
from streamlint.facts.graph.facts import Facts
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.actions import NAMED, NULL, Copied, Stream
from streamlint.transfer.modelled import ModelledCall, operands_of
from streamlint.transfer.work import Worked

Libraries = Callable[[Function, Instruction], Iterable[LibraryCall]]
_STREAM = 2
"""Where the stream stands in the configuration of a launch."""
_COPY = "numba.cuda.cudadrv.devicearray.DeviceNDArray.copy_to_device"
_PLAIN = frozenset({op.ATTR, op.ITEM, op.PHI, op.BRANCH})


def kernel_in(facts: Facts, libraries: Libraries, function: Function, register: int) -> Function | None:
    """The function that numba compiles for a device, if a register holds one."""
    for value in facts.functions_in(facts.values(function, register).values):
        parent = value.function.parent
        for call in value.function.decorations if parent is not None else ():
            assert parent is not None
            names = {held.name for held in facts.values(parent, call[3]).values if isinstance(held, External)}
            made = parent.definitions[call[3]]
            if made is not None and made[0] in (op.CALL, op.INVOKE):
                names |= {each.name for each in libraries(parent, made)}
            if names & facts.models.marked("makes-kernel"):
                return value.function
    return None


def configured(function: Function, one: Instruction) -> tuple[int, tuple[int, ...]] | None:
    """``kernel[grid, block, stream](…)``: the register of the kernel, and those of its configuration."""
    made = function.definitions[one[3]] if one[0] == op.CALL and one[3] >= 0 and not function.is_cpp else None
    if made is None or made[0] != op.ITEM:
        return None
    config = function.definitions[made[4]]
    return made[3], tuple(config[4:]) if config is not None and config[0] == op.BUILD else ()


def launched(facts: Facts, libraries: Libraries, function: Function, one: Instruction) -> Iterator[Worked]:
    """The work of a call that launches such a kernel: it writes what its body stores through, or all that it is given."""
    found = configured(function, one)
    kernel = kernel_in(facts, libraries, function, found[0]) if found is not None else None
    if found is None or kernel is None:
        return
    stream = Stream(NULL, library="numba")
    if len(found[1]) > _STREAM:
        call = LibraryCall(one, None, "[]", None)
        stream = ModelledCall(facts, function, call, facts.models.calls["numba.cuda.to_device"]).stream_in(found[1][_STREAM])
    given = operands_of(function, one, False)
    stored = {index for index in range(len(given)) if any(is_store for _, is_store in _uses(kernel, index))}
    reads = tuple(register for index, register in enumerate(given) if stored and index not in stored)
    writes = tuple(register for index, register in enumerate(given) if not stored or index in stored)
    yield Worked(stream, reads, writes, kernel.code.name, "numba", op.NONE, False, True)


def carried(facts: Facts, libraries: Libraries, function: Function, one: Instruction) -> Iterator[Copied]:
    """The copies that a launch on a stream makes of arrays of the host: up before the kernel, and down again behind it, without a wait."""
    found = configured(function, one)
    if found is None or len(found[1]) <= _STREAM or kernel_in(facts, libraries, function, found[0]) is None:
        return
    row = facts.models.calls[_COPY]
    call = ModelledCall(facts, function, LibraryCall(one, row, "kernel launch", None), row)
    stream = call.stream_in(found[1][_STREAM])
    for register in operands_of(function, one, False) if stream.kind == NAMED else ():
        if call.is_on_host(register):
            yield Copied(op.NONE, register, stream, True, op.NONE, "h2d", call.call)
            yield Copied(register, op.NONE, stream, True, op.NONE, "d2h", call.call)


def added(kernel: Function) -> dict[str, str]:
    """By parameter that nothing but one kind of atomic operation touches, whose order does not matter: its name."""
    found: dict[str, str] = {}
    for index, parameter in enumerate(kernel.code.parameters):
        kinds = {kind for kind, _ in _uses(kernel, index)}
        if len(kinds) == 1 and (kind := kinds.pop()) in kernel.known("commutes"):
            found[parameter.name] = kind
    return found


def _uses(kernel: Function, index: int) -> Iterator[tuple[str, bool]]:
    """What a body does with a parameter: the name of an atomic operation or "", and whether it stores through it."""
    register = next((one[2] for one in kernel.by_opcode[op.PARAM] if one[3] == index), op.NONE)
    for use in kernel.uses.get(register, ()) if register >= 0 else ():
        if use[0] == op.INVOKE and use[3] != register and kernel.dotted(use[3]).endswith("atomic"):
            yield kernel.text(use[4]), len(use) > 6 and use[6] == register
        elif use[0] == op.SET_ITEM:
            yield "", use[2] == register
        elif use[0] in _PLAIN:
            yield "", False
