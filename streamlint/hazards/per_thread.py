"""``CUDA_API_PER_THREAD_DEFAULT_STREAM`` and the option of the compiler: which files have per-thread default streams, and which do not.

The macro is read once, by ``cuda_runtime_api.h`` (``cuda.h`` for the driver API). nvcc reads that header before the first line of a CUDA
source, so the macro does nothing there; in a C++ source it works if it is defined above the first header that brings the runtime's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from streamlint.build_files import language_of_source, per_thread_default_stream, sources_built_with
from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.facts.files.program import Unit
from streamlint.findings import Span
from streamlint.hazards.context import Context, span_of
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.operands import argument_registers, operand_of

MACRO = "CUDA_API_PER_THREAD_DEFAULT_STREAM"
_RUNTIME = (
    "cuda_runtime.h",
    "cuda_runtime_api.h",
    "cublas",
    "cuda_bf16.h",
    "cuda_fp16.h",
    "cudnn.h",
    "curand.h",
    "cusolver",
    "cusparse.h",
    "nccl.h",
    "cuda_gl_interop.h",
    "thrust/",
    "cub/",
    "c10/cuda/CUDA",
    "ATen/cuda/CUDA",
)
"""Headers that read the runtime's header, whoever includes them, by the beginning of their names (CUDA 13.0)."""
_DRIVER = "cuda.h"
_CUDA_SOURCES = (".cu",)
_SOURCES = (".c", ".cc", ".cpp", ".cxx", ".c++")
_OPTIONS = frozenset({"extra_cuda_cflags", "extra_compile_args", "define_macros"})
_FLAG = re.compile(rf"-?-default-stream[= ]per-thread\Z|-D ?{MACRO}(?:=.*)?\Z|{MACRO}(?:=.*)?\Z")


class IdleMacro(NamedTuple):
    """A definition of the macro that nothing reads: compiled as CUDA, or below a header that has read it."""

    at: Span
    is_compiled: bool
    because: Span | None
    header: str


class Mix(NamedTuple):
    """What makes one part per-thread, and what shows that the other part is not. ``other`` is torch, or a source's name."""

    at: Span
    other: str
    because: Span


class PerThread:
    """What files say of per-thread default streams."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.facts = context.facts
        self.program = context.facts.program
        self.cpp = context.facts.program.cpp

    def idle_macros(self, unit: Unit) -> Iterator[IdleMacro]:
        """The definitions of the macro in a file that have no effect, whoever compiles it."""
        for at, above in self._definitions(unit):
            late = self._read_above(unit, above)
            if self._compiled_as_cuda(unit):
                yield IdleMacro(at, True, self._shows_cuda(unit, late), "")
            elif late is not None:
                yield IdleMacro(at, False, self._include(unit, late), unit.ir.includes[late])
            elif (source := self._read_by_includers(unit)) is not None:
                yield IdleMacro(at, False, self._include(*source), source[0].ir.includes[source[1]])

    def _read_by_includers(self, unit: Unit) -> tuple[Unit, int] | None:
        """A source that has read the runtime's header above a header, and which include brought it; None where one has not."""
        found = None
        for source in self.cpp.seeing(unit):
            if source is unit or not source.path.endswith(_SOURCES):
                continue
            number = next((number for number, one in enumerate(source.ir.includes) if self._brings(source, one, unit)), None)
            late = self._read_above(source, number) if number is not None else None
            if late is None:
                return None
            found = source, late
        return found

    def _brings(self, source: Unit, include: str, unit: Unit) -> bool:
        target = self.cpp.included(include, source)
        return target is not None and (target is unit or unit in self.cpp.visible(target))

    def working_macro(self, unit: Unit) -> Span | None:
        """The definition of the macro that gives a C++ source per-thread default streams."""
        if self._compiled_as_cuda(unit) is not False:
            return None
        return next((at for at, above in self._definitions(unit) if self._read_above(unit, above) is None), None)

    def _definitions(self, unit: Unit) -> Iterator[tuple[Span, int]]:
        for name, value, at, above in unit.ir.defined:
            if name == MACRO and value not in ("0", "false"):
                yield Span(unit.path, *at), above

    def _compiled_as_cuda(self, unit: Unit) -> bool | None:
        """Whether nvcc compiles a file as CUDA; None for a header that both compilers may read, or where no rule is known."""
        sources = [one for one in self.cpp.seeing(unit) if one.path.endswith((*_CUDA_SOURCES, *_SOURCES))]
        answers = {self._is_cuda_source(source) for source in sources}
        if not sources and unit.path.endswith((".py", ".ipynb", ".cuh")):
            return True if _launch(unit) is not None or self._has_kernels(unit) else None  # only nvcc takes a launch
        return answers.pop() if len(answers) == 1 else None

    def _has_kernels(self, unit: Unit) -> bool:
        return any({"kernel", "device"} & function.code.flags for function in unit.functions)

    def _is_cuda_source(self, unit: Unit) -> bool:
        said = language_of_source(unit.path)
        return said == "CUDA" if said else unit.path.endswith(_CUDA_SOURCES) or _launch(unit) is not None

    def _read_above(self, unit: Unit, count: int) -> int | None:
        """Which of the first includes has brought the header that reads the macro."""
        includes = unit.ir.includes
        for number, include in enumerate(includes[:count]):
            if include.startswith(_RUNTIME) or self._brings_runtime(unit, include):
                return number
        if _DRIVER in includes[:count] and not any(one.startswith(_RUNTIME) or self._brings_runtime(unit, one) for one in includes[count:]):
            return includes.index(_DRIVER)
        return None

    def _brings_runtime(self, unit: Unit, include: str) -> bool:
        """Whether a known header includes the runtime's, and does not define the macro itself."""
        target = self.cpp.included(include, unit)
        if target is None:
            return False
        headers = list(self.cpp.visible(target))
        if any(name == MACRO for one in headers for name, *_ in one.ir.defined):
            return False
        return any(include.startswith(_RUNTIME) for one in headers for include in one.ir.includes)

    def _include(self, unit: Unit, number: int) -> Span | None:
        places = unit.ir.included_at
        return Span(unit.path, *places[number]) if number < len(places) else None

    def _shows_cuda(self, unit: Unit, late: int | None) -> Span | None:
        """What stands in the file and shows that it is CUDA: the runtime's header (read before already), a launch, a function."""
        includes = unit.ir.includes
        runtime = late if late is not None else next((number for number, one in enumerate(includes) if one.startswith(_RUNTIME)), None)
        if runtime is not None and (found := self._include(unit, runtime)) is not None:
            return found
        launch = _launch(unit)
        return span_of(launch) if launch is not None else None

    # --- mixes

    def mixes(self, unit: Unit) -> Iterator[Mix]:
        """The mixes that a file makes: Python that builds an extension of PyTorch, C++ beside CUDA sources."""
        yield from self._sibling(unit) if unit.is_cpp else self._extensions(unit)

    def _sibling(self, unit: Unit) -> Iterator[Mix]:
        """A source with the macro, and another of the same target that launches on the legacy default stream."""
        at = self.working_macro(unit)
        together = sources_built_with(unit.path) if at is not None else frozenset()
        for other in self.program.units.values():
            if at is None or not other.is_cpp or other is unit or str(Path(other.path)) not in together:
                continue
            if other in self.program.mentioning(MACRO):
                continue
            launch = _launch(other, implicit=True) if not per_thread_default_stream(other.path) else None
            if launch is not None:
                yield Mix(at, other.path.rpartition("/")[2], span_of(launch))
                return

    def _extensions(self, unit: Unit) -> Iterator[Mix]:
        for function in unit.functions:
            for opcode in (op.CALL, op.INVOKE):
                for one in function.by_opcode[opcode]:
                    options = [register for kind, register in argument_registers(function, one) if kind in _OPTIONS]
                    if options and any(
                        call.name in unit.models.marked("builds-for-device") for call in self.context.transfer.libraries(function, one)
                    ):
                        for register in options:
                            for flag in self._flags(function, register):
                                yield Mix(span_of(flag), "torch", span_of(Site(function, one)))

    def _flags(self, function: Function, register: int) -> Iterator[Site]:
        """The options for per-thread default streams in what an argument is made of."""
        waiting: list[tuple[Function, int]] = [(function, register)]
        seen: set[tuple[Function, int]] = set()
        while waiting:
            holder, register = waiting.pop()
            one = holder.definitions[register] if register >= 0 else None
            if one is None or (holder, register) in seen:
                continue
            seen.add((holder, register))
            if one[0] == op.NAME:
                waiting += holder.unit.globals.get(holder.text(one[3]), ())
            elif one[0] == op.CONST and isinstance(text := holder.constant(register), str) and _FLAG.match(text):
                yield Site(holder, one)
            elif one[0] == op.BUILD:
                yield from _words(holder, one)
            waiting += self._sources_of(holder, one)
            waiting += [(holder, inner) for inner in reversed((*op.reads(one), *_put_in(holder, register)))]

    def _sources_of(self, function: Function, one: Instruction) -> list[tuple[Function, int]]:
        """What functions of the program give back that a call enters, and what callers give for a parameter."""
        if one[0] == op.PARAM:
            calls = [each for each in self.context.transfer.callers(function) if each[1][0] in (op.CALL, op.INVOKE)]
            given = ((caller, operand_of(caller, call, function, one[3])) for caller, call in calls)
            return [(caller, register) for caller, register in given if register is not None]
        edges = self.context.transfer.edges(function, one) if one[0] in (op.CALL, op.INVOKE) else ()
        return [(edge.callee, end[2]) for edge in edges if edge.is_followed for end in edge.callee.by_opcode[op.RETURN] if end[2] >= 0]


def _put_in(function: Function, register: int) -> Iterator[int]:
    """What methods put into a list."""
    for use in function.uses[register]:
        if use[0] == op.INVOKE and use[3] == register and function.text(use[4]) in function.known("puts", "extends"):
            yield from use[6:]


def _words(function: Function, built: Instruction) -> Iterator[Site]:
    """The option as two words of a list."""
    words = [function.constant(register) for register in built[4:]]
    for register, word, after in zip(built[4:], words, [*words[1:], None], strict=False):
        made = function.definitions[register] if register >= 0 else None
        if word in ("--default-stream", "-default-stream") and after == "per-thread" and made is not None:
            yield Site(function, made)


def _launch(unit: Unit, implicit: bool = False) -> Site | None:
    """The first launch in a file; ``implicit``: that names no stream."""
    for function in unit.functions:
        for one in function.by_opcode[op.LAUNCH]:
            if not implicit or one[5] < 4:
                return Site(function, one)
    return None
