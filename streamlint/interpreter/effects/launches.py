"""Launches: kernels of the project, and calls of libraries that work on a stream."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from streamlint import operations as ops
from streamlint import program as p
from streamlint.findings import Span
from streamlint.interpreter.arguments import Arguments, CallSite, evaluate_arguments
from streamlint.interpreter.effects import Call, buffer_of
from streamlint.interpreter.effects.copies import issue_copy
from streamlint.interpreter.effects.host import buffers_in, host_write, read_values
from streamlint.interpreter.effects.kernels import Signature, kernel_named, launch_kernel, passed_by_address, signature
from streamlint.interpreter.effects.sources import compiled
from streamlint.interpreter.effects.streams import NO_WAIT, as_stream, stream_argument
from streamlint.interpreter.gradients import gradient_of, left
from streamlint.interpreter.guards import called_name
from streamlint.interpreter.interop import handed_over
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import (
    Buffer,
    Const,
    Environment,
    FunctionValue,
    Handle,
    KernelConfig,
    Opaque,
    Series,
    Storage,
    Stream,
    Value,
)
from streamlint.models import Row
from streamlint.models.vocabulary import Selector
from streamlint.operations import Direction, Evidence, Memory

_COMMUTES = frozenset({"add", "sub", "min", "max", "nanmin", "nanmax", "and_", "or_", "xor"})  # numba, supported atomic operations


def chevron_launch(run: Run, node: p.Launch) -> Value:
    """``kernel<<<grid, block, shared, stream>>>(args)``."""
    config = [run.evaluate(e) for e in node.config]
    args = evaluate_arguments(run, node.args).positional
    span = run.span(p.called_at(node))
    stream = _chevron_stream(run, config, span)
    name = node.kernel.id if isinstance(node.kernel, p.Name) else "kernel"
    kernel = run.file.function(name, len(args)) if isinstance(node.kernel, p.Name) else None
    if kernel is None and isinstance(node.kernel, p.Name):
        kernel = kernel_named(run, run.evaluate(node.kernel), len(args))
    launch_kernel(run, span, "cuda-runtime", name, stream, args, signature(kernel))
    return Const(None)


def _chevron_stream(run: Run, config: list[Value], span: Span) -> Stream | None:

    call = Call(run, Row(("launch",), "launch", {}, "cuda-runtime"), "launch", None, Arguments(), CallSite(p.Unknown(), span))
    if len(config) < 4:
        return Stream("null", "null", None, "cuda-runtime", chosen=span, how="omitted")
    return as_stream(call, config[3], how="literal")


@functools.lru_cache(maxsize=1024)
def _of_python(function: p.Function) -> Signature:
    """For each parameter of a Python kernel, whether its body stores through it, and the one atomic operation that alone touches it.

    That is told where the order of such operations does not matter.
    """
    stored: set[str] = set()
    named: Counter[str] = Counter()
    atomics: dict[str, list[str]] = {}
    for node in p.walk(function):
        if isinstance(node, p.Name):
            named[node.id] += 1
        elif isinstance(node, p.Assign):
            stored |= {target.value.id for target in node.targets if isinstance(target, p.Index) and isinstance(target.value, p.Name)}
        elif isinstance(node, p.Call) and _is_atomic(node.function) and node.args and isinstance(node.args[0].value, p.Name):
            atomics.setdefault(node.args[0].value.id, []).append(called_name(node.function))
    alone = {name: kinds[0] for name, kinds in atomics.items() if named[name] == len(kinds) and len(set(kinds)) == 1}
    kinds = [kind if (kind := alone.get(param.name, "")) in _COMMUTES else "" for param in function.params]
    return Signature([param.name in stored or param.name in atomics for param in function.params], (), kinds, sure=True)


def _is_atomic(function: p.Expression) -> bool:
    """``cuda.atomic.add`` and its kin."""
    return isinstance(function, p.Attr) and isinstance(function.value, p.Attr) and function.value.name == "atomic"


def numba_launch(run: Run, config: KernelConfig, arguments: Arguments, site: CallSite) -> Value:
    """``kernel[grid, block, stream](args)``; host arrays are copied there and back."""

    call = Call(run, Row(("kernel",), "launch", {}, "numba"), "kernel", None, arguments, site)
    given = config.config[2] if len(config.config) > 2 else None
    if given is None:
        stream: Stream | None = Stream("null", "null", None, "numba", chosen=config.span, how="omitted")
    else:
        stream = as_stream(call, given)
    copies: list[tuple[Buffer, Buffer]] = []
    for array in [b for v in arguments.positional for b in buffers_in(v) if b.storage.on_host]:
        device = _implicit_array(run, config.span)
        _implicit_copy(call, config.span, device, array, Direction.H2D, stream)
        copies.append((array, device))
    _take_over(run, arguments.positional, stream)
    function = config.kernel.function if isinstance(config.kernel, FunctionValue) else None
    name, known = ("kernel", Signature()) if function is None else (function.name, _of_python(function))
    launch_kernel(run, config.span, "numba", name, stream, arguments.positional, known)
    for array, device in copies:
        _implicit_copy(call, config.span, array, device, Direction.D2H, stream)
        run.machine.free(ops.Free(config.span, "numba", "kernel", memory=Memory.DEVICE, buffer=device, kind="drop"))
    return Const(None)


_PROTOCOL = ("torch.Tensor", "cupy.ndarray")  # types with `__dlpack__`


def _take_over(run: Run, values: Sequence[Value], stream: Stream | None) -> None:
    """A kernel of numba takes foreign arrays through the DLPack protocol, and names its stream (numba-cuda 0.30, devicearray.py).

    On an H200 a torch tensor that is given as it is was read right in 20 of 20 runs, one under ``as_cuda_array`` in none.
    """
    if stream is None:
        return
    for buffer in (b for value in values for b in buffers_in(value)):
        if not buffer.storage.on_host and any(kind in _PROTOCOL for kind in run.file.models.lineage(buffer.type)):
            handed_over(run, buffer, "numba", "dlpack", stream)


def numba_call(run: Run, callee: FunctionValue, arguments: Arguments, site: CallSite) -> Value:
    """A function under ``cuda.reduce`` or ``cuda.vectorize``: device work on the stream that it is given, else on the null stream."""
    call = Call(run, Row((callee.function.name,), "launch", {}, "numba"), callee.function.name, None, arguments, site)
    given = arguments.keywords.get("stream")
    stream = as_stream(call, given if given is not None else Const(0))
    if given is None and stream is not None:
        stream.how = "omitted"
    launch_kernel(run, site.span, "numba", callee.function.name, stream, arguments.all(), Signature())
    return run.opaque(f"result{run.visit_key(site.node)}")


def _implicit_array(run: Run, span: Span) -> Buffer:
    """The device array that stands in for a host array: allocated for this launch alone, and numba has no pool."""
    storage = run.storage(Memory.DEVICE, "argument", evidence=Evidence.LITERAL, library="numba")
    buffer = Buffer(storage, type="numba.cuda.cudadrv.devicearray.DeviceNDArray")
    cached = not run.file.settings.get("numba", True)
    run.machine.alloc(ops.Alloc(span, "numba", "kernel", memory=Memory.DEVICE, cached=cached, buffer=buffer))
    return buffer


def _implicit_copy(call: Call, span: Span, dst: Buffer, src: Buffer, direction: Direction, stream: Stream | None) -> None:
    """numba copies host arrays to the device before the launch and back after it, on the launch's stream (args.py)."""
    asynchronous = stream is not None and stream.kind != "null"
    call.site.span = span
    issue_copy(call, dst, src, direction, asynchronous=asynchronous, stream=stream, evidence=Evidence.LITERAL)


def _pointed_to(value: Value, depth: int = 3) -> Iterator[Buffer]:
    """The memory that a kernel is given, also through arrays of addresses (the arguments of a driver's launch)."""
    for buffer in buffers_in(value):
        yield buffer
        for held in buffer.storage.addresses if depth else ():
            yield from _pointed_to(held, depth - 1)


def _updated(call: Call) -> tuple[Buffer, ...]:
    """The memory that a call writes among what its receiver was made with."""
    selector = call.row.get("updates")
    if not isinstance(selector, Selector) or not isinstance(call.receiver, Handle):
        return ()
    made = call.receiver.args
    held = made.get(selector.keyword or "", made.get(str(selector.position)))
    return tuple(_memory_in(call.run, held, anywhere=True)) if held is not None else ()


def _update_on_host(call: Call, updated: Iterable[Buffer]) -> None:
    """Parameters that live on the host are updated by the host, now: it reads their gradients, and writes what has one."""
    for buffer in updated:
        gradient = gradient_of(call.run, buffer)
        if isinstance(gradient, Const) or not buffer.storage.on_host:
            continue
        read_values(call.run, [gradient] if gradient is not None else [], call.span, call.name, wait=False)
        host_write(call.run, buffer, call.span, call.name)


def _launch(call: Call) -> Value:
    run = call.run
    query = call.value("size_query")
    if isinstance(query, Const) and query.value in (None, 0):
        return call.status()
    if call.flag("policy") and _on_host(call):
        read_values(run, [b for b in call.arguments.positional if isinstance(b, Buffer) and b.storage.on_host], call.span, call.name)
        return run.opaque(f"result{run.visit_key(call.site.node)}")
    stream = _policy_stream(call) if call.flag("policy") else stream_argument(call, default="none")
    if (passed := _kernel_arguments(call)) is not None:
        known = signature(kernel_named(run, call.value("kernel"), len(passed)))
        launch_kernel(run, call.span, call.library, call.name, stream, passed, known)
        return call.status()
    if call.row.get("given") is not None:
        given = call.value("given")
        args = given.items if isinstance(given, Series) and given.items is not None else call.values("given")
        launch_kernel(run, call.span, call.library, call.name, stream, args, compiled(call.receiver, len(args)))
        return Const(None)
    fields = call.row.get("reads"), call.row.get("writes")
    values = call.arguments.all() if fields == (None, None) else [*call.values("reads"), *call.values("writes")]
    touched = tuple(b for v in values for b in _pointed_to(v) if not b.storage.on_host)
    if fields == (None, None):
        reads = writes = touched
    else:
        reads, writes = (tuple(b for v in call.values(f) for b in _memory_in(run, v)) for f in ("reads", "writes"))
    updated = _updated(call)
    _update_on_host(call, updated)
    if call.flag("gradients") and not any(b.storage.on_host for b in updated):
        reads += left(run)
    writes += tuple(b for b in updated if b.storage.on_device)
    if call.flag("makes") and writes and all(_is_unused(run, b.storage) for b in writes):
        return call.status()
    operation = ops.Launch(
        call.span,
        call.library,
        call.name,
        stream=stream,
        reads=reads,
        writes=writes,
        kind="graph" if call.flag("graph") else "library",
        host_waits=call.flag("waits") and (stream is None or stream.how != NO_WAIT or fields[1] == ()),
        long=call.flag("long"),
        assumed=fields == (None, None),
    )
    run.machine.launch(operation)
    run.coverage.launches[(call.span, call.name)] = stream is not None
    return call.status() if run.file.is_cuda else Const(None)


def _is_unused(run: Run, storage: Storage) -> bool:
    """Whether the path has made memory itself, and no operation has touched it."""
    touched = (b for o in run.machine.operations if isinstance(o, ops.Launch | ops.Copy) for b in ops.touched_on_device(o))
    if storage.owner or storage.made_in is None or storage.made_in != run.context.calls[: len(storage.made_in)]:
        return False  # (what an object held before was made around it)
    return all(b.storage is not storage for b in touched)


def _kernel_arguments(call: Call) -> list[Value] | None:
    """What a kernel is given that is launched by a call: behind its own name, or by the addresses in an array."""
    if not call.run.file.is_cuda:
        return None
    packed = call.value("packed")
    if packed is not None:
        return passed_by_address(call.run, packed)
    kernel = call.row.get("kernel")
    if not isinstance(kernel, Selector) or kernel.position is None or call.row.get("packed") is not None or call.arguments.open:
        return None
    return call.arguments.positional[kernel.position + 1 :]


def _memory_in(run: Run, value: Value, anywhere: bool = False) -> Iterator[Buffer]:
    """The device memory that a library is given (``anywhere``: and the host's): a plain pointer that a caller handed over as well."""
    pointer = isinstance(value, Opaque) and value.cpp_type is not None and value.cpp_type.pointers == 1
    buffer = buffer_of(run, value) if pointer else None
    yield from (b for b in ([buffer] if buffer is not None else _pointed_to(value)) if anywhere or not b.storage.on_host)


def _on_host(call: Call) -> bool:
    """thrust: whether an algorithm runs on the host, by its policy, or because all its iterators are of the host's memory."""
    first = call.arguments.positional[0] if call.arguments.positional else None
    if first is not None and call.run.file.models.constants.get(first.term) == "host-policy":
        return True
    buffers = [v for v in call.arguments.positional if isinstance(v, Buffer)]
    return isinstance(first, Buffer) and all(b.storage.on_host for b in buffers)


def _policy_stream(call: Call) -> Stream | None:
    """thrust: the stream of the policy that is the first argument; without one, the null stream if device memory is in play."""
    first = call.arguments.positional[0] if call.arguments.positional else None
    if isinstance(first, Stream):
        return as_stream(call, first)
    text = first.term if first is not None else ""
    constant = call.run.file.models.constants.get(text)
    if constant == "policy" or text in ("thrust::device", "thrust::cuda::par", "thrust::cuda::par_nosync"):
        return Stream("null", "null", None, "thrust", chosen=call.span, how="policy")
    second = call.arguments.positional[1] if len(call.arguments.positional) > 1 else None
    if isinstance(first, Opaque) and first.buffer is None and isinstance(second, Buffer):
        return None  # no iterator: a policy that is made out of view
    on_device = any(isinstance(v, Buffer) and v.storage.on_device for v in call.arguments.positional)
    return Stream("null", "null", None, "thrust", chosen=call.span, how="policy") if on_device else None


_STREAMS = frozenset({"cudaStream_t", "CUstream", "hipStream_t"})


def work_of_declared(run: Run, function: p.Function, environment: Environment, site: CallSite) -> None:
    """A call of a function that is only declared, with a stream among its parameters: device work on that stream."""

    param = next((pm for pm in function.params if pm.type is not None and pm.type.name in _STREAMS and not pm.type.pointers), None)
    if param is None:
        return
    call = Call(run, Row(("declared",), "launch", {}, "cuda-runtime"), function.name, None, Arguments(), site)
    stream = as_stream(call, environment.names[param.name])
    touched = tuple(b for v in environment.names.values() for b in buffers_in(v) if b.storage.on_device)
    run.machine.launch(ops.Launch(site.span, "cuda-runtime", function.name, stream=stream, reads=touched, kind="library"))


EFFECTS: dict[str, Callable[[Call], Value]] = {
    "launch": _launch,
}
