"""What a kernel of the project does with its arguments: what its body plainly stores through, or what its declaration lets it write."""

from __future__ import annotations

from collections.abc import Sequence

from streamlint import operations as ops
from streamlint import program as p
from streamlint.findings import Span
from streamlint.interpreter.effects import buffer_of
from streamlint.interpreter.effects.host import buffers_in
from streamlint.interpreter.index import is_declaration
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Buffer, FunctionValue, Opaque, Reference, Series, Stream, Value
from streamlint.record import record


@record(frozen=True, slots=True)
class Signature:
    """``written``: of each argument, whether the kernel may write what it points to; None where nothing is known of the kernel.

    ``elements`` are those that it touches, where it touches no others; ``accumulates`` names the atomic operation that alone touches it,
    where there is one and the order of such operations does not matter; ``placed`` are the numbers of the arguments that say which part
    of it the kernel touches. ``sure`` says that a body shows which it writes.
    """

    written: Sequence[bool] | None = None
    elements: Sequence[tuple[str, ...]] = ()
    accumulates: Sequence[str] = ()
    placed: Sequence[Sequence[int]] = ()
    sure: bool = False


def signature(kernel: p.Function | None) -> Signature:
    """What is known of a kernel."""
    if kernel is None:
        return Signature()
    if kernel.space == "kernel" and not is_declaration(kernel):
        written = [param.name in kernel.stores for param in kernel.params]
        elements = [kernel.elements.get(param.name, ()) for param in kernel.params]
        accumulates = [kernel.accumulates.get(param.name, "") for param in kernel.params]
        return Signature(written, elements, accumulates, _placed(kernel) if kernel.placed else (), sure=True)
    return Signature([_is_writable(param) for param in kernel.params])


def _placed(kernel: p.Function) -> list[list[int]]:
    """For each parameter the numbers of those, not pointers themselves, that move all of its places."""
    movers = [kernel.placed.get(param.name, frozenset()) for param in kernel.params]
    plain = [number for number, param in enumerate(kernel.params) if param.type is None or not param.type.pointers]
    return [[number for number in plain if kernel.params[number].name in names] for names in movers]


def _is_writable(param: p.Param) -> bool:
    return param.type is None or not param.type.pointers or param.constant is not True


def kernel_named(run: Run, value: Value | None, count: int) -> p.Function | None:
    """The kernel that a value means: its name, or a variable that holds its address."""
    value = run.at(value) if isinstance(value, Reference) else value
    if not isinstance(value, FunctionValue):
        return None
    return value.file.function(value.function.qualname, count) or value.function


def launch_kernel(run: Run, span: Span, library: str, name: str, stream: Stream | None, args: Sequence[Value], known: Signature) -> None:
    """Issue the launch of a kernel."""
    reads: list[Buffer] = []
    writes: list[list[Buffer]] = []
    for number, value in enumerate(args):
        pointer = isinstance(value, Opaque) and _is_address(run, value)
        buffer = buffer_of(run, value) if pointer or isinstance(value, Buffer) else None
        touched = [b for b in ([buffer] if buffer is not None else buffers_in(value)) if not b.storage.on_host]
        if number < len(known.elements) and known.elements[number]:
            touched = [Buffer(b.storage, (*b.part, ("i", index)), b.type) for b in touched for index in known.elements[number]]
        elif number < len(known.accumulates) and known.accumulates[number]:
            touched = [Buffer(b.storage, (*b.part, ("+", known.accumulates[number])), b.type) for b in touched]
        elif number < len(known.placed) and (movers := known.placed[number]):
            place = ("@", *(args[mover].term for mover in movers if mover < len(args)))
            touched = [Buffer(b.storage, (*b.part, place), b.type) for b in touched]
        reads.extend(touched)
        if touched and (known.written is None or number >= len(known.written) or known.written[number]):
            writes.append(touched)
    # A kernel is there to write: where one argument alone lets it, that is the one.
    assumed = known.written is None or not (known.sure or len(writes) == 1)
    written = tuple(buffer for touched in writes for buffer in touched)
    run.machine.launch(ops.Launch(span, library, name, stream=stream, reads=tuple(reads), writes=written, assumed=assumed))
    run.coverage.launches[(span, name)] = stream is not None


def _is_address(run: Run, value: Opaque) -> bool:
    """A pointer, or a number that is one by its type (``CUdeviceptr``)."""
    if value.cpp_type is not None:
        return value.cpp_type.pointers > 0
    row = run.file.models.type_named(value.type) if value.type else None
    return row is not None and row.kind == "pointer"


def passed_by_address(run: Run, value: Value) -> list[Value] | None:
    """The arguments in an array of their addresses (``cudaLaunchKernel``, ``cuLaunchKernel``); None where the array is not known."""
    if not isinstance(value, Series) or value.items is None or not any(isinstance(item, Reference) for item in value.items):
        return None
    return [run.at(item) if isinstance(item, Reference) else item for item in value.items]
