"""Work that code puts on streams: kernels, copies, memsets and library calls, with who says which stream each goes to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.code.objects import External, FunctionObject, LibraryObject, Memory, Site
from streamlint.facts.files.cpp_scopes import last_part, scope_of
from streamlint.facts.graph.call_graph import LibraryCall
from streamlint.ir import Instruction, Parameter
from streamlint.ir import opcodes as op
from streamlint.models import Models
from streamlint.transfer.actions import Lost
from streamlint.transfer.copies import is_algorithm, is_within
from streamlint.transfer.launch_rows import (
    CURRENT,
    GIVEN,
    OMITTED,
    LaunchRows,
    Queued,
)
from streamlint.transfer.modelled import ModelledCall, operands_of, packed_arguments
from streamlint.transfer.numba_kernels import configured, kernel_in
from streamlint.transfer.uses import Uses
from streamlint.waits.operands import argument_registers

WORKING = frozenset({"launch", "copy", "memset", "compute", "transfer", "factory", "collective", "read"})
OPENED = "opened"
"""The library of work that a function of a library does which ctypes or cffi has opened."""
_OPERATORS = frozenset({op.BINARY, op.INPLACE, op.COMPARE, op.UNARY})


class Kernel(NamedTuple):
    """The parameters of a kernel, those that its body stores through, and the kernel itself where its body is in view."""

    parameters: tuple[Parameter, ...]
    stores: tuple[str, ...]
    function: Function | None


class Launches(LaunchRows):
    """The work on streams of a program's functions."""

    def of(self, function: Function) -> list[tuple[Instruction, Queued]]:
        """The work of a function's own instructions, in order."""
        found = self._known.get(function)
        if found is None:
            found = self._known[function] = []
            if not {"kernel", "device"} & function.code.flags:
                found += ((one, each) for one in function.code.instructions() for each in self.at(function, one))
        return found

    def at(self, function: Function, one: Instruction) -> Iterator[Queued]:
        """What an instruction puts on a stream."""
        if one[0] == op.LAUNCH:
            yield self._launch(function, one)
        elif one[0] in (op.CALL, op.INVOKE) and self._may_work(function, one):
            found = self._numba(function, one) if one[0] == op.CALL else None
            if found is not None:
                yield found
            elif self.presumes and any(isinstance(action, Lost) for action in self.transfer.of(function, one)):
                yield from self._presumed(function, one, operands_of(function, one, receiver=False))
            for call in self.transfer.modelled(function, one):
                if call.row.effect in WORKING:
                    yield from self._modelled(call)
            yield from self._of_object(function, one)
            yield from self._of_extern(function, one)
            yield from self._of_opened(function, one)
        elif function.is_cpp:
            yield from self._constructed(function, one)
        elif one[0] in _OPERATORS:
            yield from self._operator(function, one)

    def _constructed(self, function: Function, one: Instruction) -> Iterator[Queued]:
        """C++: a container that is made of what is in other memory."""
        if one[0] == op.CONSTRUCT and self._may_work(function, one):
            yield from (
                each for call in self.transfer.modelled(function, one) if call.row.effect == "copy" for each in self._modelled(call)
            )

    def _may_work(self, function: Function, one: Instruction) -> bool:
        """Whether a call may be one of a library, by the way it is written: solving what it calls costs."""
        if not function.is_cpp:
            return True
        if one[0] in (op.INVOKE, op.CONSTRUCT):
            return last_name(function, one) in self._cpp_names
        made = function.definitions[one[3]] if one[3] >= 0 else None
        if made is not None and made[0] == op.CALL:
            return True  # a function that another one has given: ``solver_of<T>()(handle, …)``
        name = function.dotted(one[3])
        row = self.facts.cpp_models.call(name) if name else None
        return (row is not None and row.effect in WORKING) or last_name(function, one) in self._cpp_names

    @cached_property
    def _cpp_names(self) -> frozenset[str]:
        """The names of functions of C++ that work. Many of Python's libraries are methods of anything there, such as ``get``."""
        return self.facts.cpp_models.gathered(_working_names)

    # --- kernels

    def _launch(self, function: Function, one: Instruction) -> Queued:
        config, given = one[6 : 6 + one[5]], one[6 + one[5] :]
        name = self._kernel(function, one[3])
        reads, writes, is_known = self.accesses(function, one[3], given)
        how, operand = (GIVEN, config[3]) if len(config) > 3 else (OMITTED, op.NONE)
        return Queued(how, operand, "kernel", name, "cuda-runtime", reads, writes, is_known=is_known, kernel=one[3], given=given)

    def _kernel(self, function: Function, register: int) -> str:
        return function.dotted(register).rpartition("::")[2] or "kernel"

    def accesses(self, function: Function, kernel: int, given: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
        """What a kernel reads and writes of its arguments: by its body, or by the types of its parameters.

        A pointer to constants is only read through; one pointer that is none is written, and of several nobody knows which.
        """
        found = next(self.kernels(function, kernel), None)
        if found is None:
            return tuple(given), tuple(given), False
        parameters, stores, _ = found
        pointers = [index for index, one in enumerate(parameters) if one.type is not None and (one.type[2] or one.type[4] is not None)]
        free = [index for index in pointers if not parameters[index].constant]
        written = {index for index in free if parameters[index].name in stores} or (set(free) if len(free) == 1 else set())
        writes = tuple(given[index] for index in sorted(written) if index < len(given))
        reads = tuple(given[index] for index in pointers if index < len(given) and index not in written)
        return reads, writes, len(free) < 2 or bool(stores)

    def kernels(self, function: Function, register: int) -> Iterator[Kernel]:
        """The kernels that a register may hold."""
        cpp = self.facts.program.cpp
        names = [
            function.dotted(register),
            *(value.name for value in self.transfer.values(function, register) if isinstance(value, External)),
        ]
        for name in names if function.is_cpp else ():
            for meaning in cpp.find(function.unit, scope_of(function), name) if name else ():
                if isinstance(meaning, Function):
                    yield Kernel(meaning.code.parameters, meaning.code.stores, meaning)
            for unit in cpp.mentioning(last_part(name)) if name else ():
                for declared in unit.declared.get(name, ()):
                    yield Kernel(declared.parameters, (), None)
        for value in self.transfer.values(function, register):
            if isinstance(value, FunctionObject):
                yield Kernel(value.function.code.parameters, value.function.code.stores, value.function)

    def _numba(self, function: Function, one: Instruction) -> Queued | None:
        """``kernel[grid, block, stream](…)`` of a function that numba compiles."""
        found = configured(function, one)
        if found is None or kernel_in(self.facts, self.transfer.libraries, function, found[0]) is None:
            return None
        kernel, parts = found
        how, operand = (GIVEN, parts[2]) if len(parts) > 2 else (OMITTED, op.NONE)
        given = tuple(register for _, register in argument_registers(function, one))
        name = function.dotted(kernel).rpartition(".")[2] or "the kernel"
        return Queued(how, operand, "kernel", name, "numba", given, given, is_known=False)

    def _of_object(self, function: Function, one: Instruction) -> Iterator[Queued]:
        """Python: a kernel of CuPy that is called, or a module of PyTorch, which works on what it is given."""
        for call in self.transfer.libraries(function, one) if not function.is_cpp else ():
            held = call.receiver
            if call.row is not None or not isinstance(held, LibraryObject):
                continue
            row = self.facts.models.call(call.name)
            if row is not None and row.effect in WORKING:
                yield from self._modelled(ModelledCall(self.facts, function, call, row))
            elif held.kind == "module" and self.presumes:
                given = operands_of(function, one)
                yield Queued(CURRENT, op.NONE, "compute", call.name, "torch", given, (one[2],))

    def _presumed(self, function: Function, one: Instruction, given: Sequence[int]) -> Iterator[Queued]:
        """Python: work on what is on a device: of a call out of view, or with what such a call gives."""
        there = tuple(register for register in given if self._uses.on_device(function, register))
        if there:
            name, library = last_name(function, one) or "arithmetic", self._uses.library(function, there)
            yield Queued(CURRENT, op.NONE, "compute", name, library, there, (one[2],))

    @cached_property
    def _uses(self) -> Uses:
        return Uses(self.transfer)

    def _of_extern(self, function: Function, one: Instruction) -> Iterator[Queued]:
        """Cython: a function of the runtime, or the work of a C++ function of the program on the stream that it is given."""
        name = function.dotted(one[3]) if one[0] == op.CALL and not function.is_cpp else ""
        if not name or "." in name or self.transfer.edges(function, one) or not function.unit.path.endswith(".pyx"):
            return
        calls = self.transfer.libraries(function, one)
        row = self.facts.cpp_models.call(name)
        if row is not None and row.effect in WORKING and all(call.row is None for call in calls):
            yield from self._modelled(ModelledCall(self.facts, function, LibraryCall(one, row, name, None), row))
            return
        callees = [each for unit in self.facts.program.cpp.mentioning(name) for each in unit.named.get(name, ())]
        yield from self._of_callees(callees, one[5:], name, "cython")

    def _of_opened(self, function: Function, one: Instruction) -> Iterator[Queued]:
        """Python: the work of a C++ function of the program, in a library that ctypes or cffi has opened."""
        if one[0] != op.INVOKE or function.is_cpp or not self.facts.program.cpp.any:
            return
        name = function.text(one[4])
        callees = [each for unit in self.facts.program.cpp.mentioning(name) for each in unit.named.get(name, ())]
        if callees and self._is_opened(function, one[3]):
            yield from self._of_callees(callees, one[6:], name, OPENED)

    def _is_opened(self, function: Function, register: int) -> bool:
        one = function.definitions[register] if register >= 0 else None
        held = function.unit.globals.get(function.text(one[3]), ()) if one is not None and one[0] == op.NAME else [(function, register)]
        for holder, made in held:
            opening = holder.definitions[made] if made >= 0 else None
            calls = self.transfer.modelled(holder, opening) if opening is not None else ()
            if any(call.row.effect == "extension" for call in calls):
                return True
        return False

    def _of_callees(self, callees: Sequence[object], given: tuple[int, ...], name: str, library: str) -> Iterator[Queued]:
        for callee in callees:
            for one, work in self.of(callee) if isinstance(callee, Function) else ():
                found = self._through_parameter(given, callee, work, name) if isinstance(callee, Function) else None
                if found is not None and isinstance(callee, Function):
                    yield found._replace(library=library, inner=Site(callee, one))
                    return

    def _through_parameter(self, given: tuple[int, ...], callee: Function, work: Queued, name: str) -> Queued | None:
        """The work of a callee whose stream is one of its parameters, as work of the call."""
        index = _parameter(callee, work.operand) if work.how == GIVEN else None
        if index is None or index >= len(given):
            return None
        reads, writes = (
            tuple(given[place] for each in side if (place := _parameter(callee, each)) is not None and place < len(given))
            for side in (work.reads, work.writes)
        )
        return Queued(GIVEN, given[index], "library", name, "cython", reads, writes, is_known=work.is_known)

    # --- calls of libraries

    def _modelled(self, call: ModelledCall) -> Iterator[Queued]:
        row, effect = call.row, call.row.effect
        if row.library in call.facts.models.marked("reads-pointers") or call.asks_for_size():
            return
        how, operand = self.chosen(call)
        if effect == "launch" or (effect == "copy" and is_algorithm(call)):
            yield self._launched(call, how, operand)
        elif effect in ("copy", "transfer"):
            direction = self._direction(call)
            if direction == "h2h" or is_within(call) or (effect == "transfer" and not self._is_on_device(call)):
                return
            source, target = call.one("src", call.one("of", call.receiver)), call.one("dst", call.one("out", call.result))
            _, asynchronous = call.switch("asynchronous")
            reads, writes = _sides(source, target)
            yield Queued(how, operand, "copy", call.name, row.library, reads, writes, direction, asynchronous is False, True, call)
        elif effect == "memset":
            target = call.one("dst")
            yield Queued(how, operand, "memset", call.name, row.library, (), () if target is None else (target,), call=call)
        elif self._is_on_device(call) and not self._is_view(call):
            yield self._computed(call, how, operand)

    def _launched(self, call: ModelledCall, how: str, operand: int) -> Queued:
        """The launch of a kernel, or of work of a library."""
        row = call.row
        reads, writes = tuple(call.all("reads")), tuple(call.all("writes"))
        is_known = row.get("reads") is not None or row.get("writes") is not None
        given = tuple(call.all("given")) or call.operands
        waits = call.waits_for_result()
        kind = "kernel" if row.get("kernel") is not None else "library"
        kernel = call.one("kernel")
        arguments: list[int] = []
        if kernel is not None:
            arguments = self._arguments(call)
            reads, writes, is_known = self.accesses(call.function, kernel, arguments)
        elif call.function.is_cpp and (packed := packed_arguments(call)):
            given = tuple(packed)
        queued = Queued(how, operand, kind, call.name, row.library, waits=waits, is_known=is_known, call=call)
        queued = queued._replace(kernel=op.NONE if kernel is None else kernel, given=tuple(arguments))
        return queued._replace(reads=reads if is_known else given, writes=writes if is_known else given)

    def _arguments(self, call: ModelledCall) -> list[int]:
        """The arguments of a kernel that a function of the runtime launches: behind it, or by their addresses."""
        if call.one("packed") is not None:
            return packed_arguments(call)
        kernel = call.one("kernel")
        given = [register for _, register in argument_registers(call.function, call.instruction)]
        return given[given.index(kernel) + 1 :] if kernel in given else []

    def _is_view(self, call: ModelledCall) -> bool:
        """Whether a factory takes over the memory that it is given."""
        given = call.all("data") if call.row.get("alias") else []
        return any(value.space != "host" for register in given for value in call.memory(register))

    def _computed(self, call: ModelledCall, how: str, operand: int) -> Queued:
        effect = call.row.effect
        of_module = call.call.receiver is None
        given = operands_of(call.function, call.instruction, receiver=not of_module)
        reads = call.all("reads") if call.row.get("reads") is not None else list(given)
        if effect == "factory":
            reads = call.all("data")
        if effect == "read":
            reads = call.all("of") or [register for register in (call.receiver,) if register is not None]
        writes = [*call.all("writes"), *call.all("out"), *(() if effect == "read" else (call.result,))]
        waits = effect == "read" or call.waits(call.is_of_device)
        return Queued(how, operand, "compute", call.name, call.row.library, tuple(reads), tuple(writes), "", waits, True, call)

    def _is_on_device(self, call: ModelledCall) -> bool:
        """Whether work of a Python library runs on a device: of its own arrays, or of values there."""
        if call.row.library in call.facts.models.marked("device-alone"):
            return call.row.effect != "factory" or not (self._leaves_empty(call) or call.is_on_host(call.result))
        if call.function.is_cpp:
            return False
        registers = [call.result, *call.operands]
        spaces = {value.space for register in registers for value in call.memory(register)}
        return "device" in spaces or (self.presumes and call.row.library == "torch" and ("unknown" in spaces or not spaces))

    def _leaves_empty(self, call: ModelledCall) -> bool:
        """Whether a factory only takes memory, which nothing fills."""
        return bool(call.row.get("raw")) or "empty" in call.name or call.name == call.row.get("type")

    def _operator(self, function: Function, one: Instruction) -> Iterator[Queued]:
        """Operators of arrays are kernels on the current stream of their library."""
        if one[0] == op.COMPARE and function.text(one[3]) in ("is", "is not"):
            return
        reads = op.reads(one)
        for register in reads:
            for value in self.transfer.values(function, register):
                if isinstance(value, Memory) and (value.space == "device" or (self.presumes and value.space == "unknown")):
                    library = "cupy" if value.type.startswith("cupy") else "torch" if value.type.startswith("torch") else ""
                    if library:
                        writes = (one[2], one[4]) if one[0] == op.INPLACE else (one[2],)
                        yield Queued(CURRENT, op.NONE, "compute", "arithmetic", library, tuple(reads), writes)
                        return
        if self.presumes:
            yield from self._presumed(function, one, reads)


def _sides(source: int | None, target: int | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The registers of the memory that a copy reads, and of what it writes."""
    return () if source is None else (source,), () if target is None else (target,)


def _parameter(function: Function, register: int) -> int | None:
    """The number of the parameter that a register holds."""
    one = function.definitions[register] if register >= 0 else None
    while one is not None and one[0] in (op.CAST, op.COPY):
        one = function.definitions[one[4 if one[0] == op.CAST else 3]]
    return one[3] if one is not None and one[0] == op.PARAM else None


def _working_names(models: Models) -> frozenset[str]:
    return frozenset(name for effect in WORKING for name in models.with_effect(effect))
