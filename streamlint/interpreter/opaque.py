"""Calls whose body is not at hand: what they may do, and what they give."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint import operations as ops
from streamlint import program as p
from streamlint.interpreter import weights
from streamlint.interpreter.arguments import Arguments, CallSite
from streamlint.interpreter.extension import TENSORS
from streamlint.interpreter.gradients import leave, step
from streamlint.interpreter.guards import called_name
from streamlint.interpreter.handed import computed_from, note_result, on_side_stream, presumed, works_in_fork
from streamlint.interpreter.hot import BACKWARD
from streamlint.interpreter.index import File, walk_module
from streamlint.interpreter.notes import remembered
from streamlint.interpreter.reach import reachable
from streamlint.interpreter.run import Run, family
from streamlint.interpreter.spelling import says
from streamlint.interpreter.values import (
    Buffer,
    Const,
    Device,
    Environment,
    FunctionValue,
    Handle,
    Instance,
    Opaque,
    Reference,
    Storage,
    Value,
)
from streamlint.operations import Evidence, Memory

_READS = frozenset({"item", "tolist"})  # methods that fetch a value and queue nothing else
_NEAR = 60  # of what a call can reach: what it is told about, not only what it may wait for


def opaque_call(run: Run, name: str, receiver: Value | None, arguments: Arguments, site: CallSite, awaits: str = "") -> Value:
    """A call of unknown effect: one launch on its GPU arguments; it may wait for all that it can reach."""
    values = arguments.all()
    reads = isinstance(receiver, Opaque) and not values and site.name in _READS
    if receiver is not None:
        values = [receiver, *values]
    run.coverage.opaque[name] += 1
    weights.read(run, receiver, site.span, name)
    inputs = arguments.all() if _runs_module(run, receiver, name) and on_side_stream(run) else []
    there = [buffer for value in inputs if (buffer := presumed(run, value)) is not None and buffer is not value]
    run.handed.extend((v, site.name) for v in values if isinstance(v, FunctionValue) and v.closure is not None)
    reached = list(reachable(values))
    near = reached[:_NEAR]
    memory = [v for v in near if isinstance(v, Buffer)]
    on_device = (_device_argument(memory) or _captured_argument(run, memory)) if memory else None
    tensors = bool(memory) and any(isinstance(v, Buffer) and not v.storage.on_host for v in near[:40])
    works = _module_work(run, receiver, on_device, name)
    operation = ops.Opaque(site.span, callee=name, on_device=tensors, works=works, stream=run.stream_of("torch"))
    operation.awaits = awaits
    operation.on_host = () if on_device is not None else tuple(v for v in memory if v.storage.on_host)
    run.machine.opaque_among(operation, reached)
    for value in arguments.positional:
        written_through(run, value, site)
    if run.file.is_cuda:
        if says(name, _SYNCS):
            operation.may_wait = True
            run.machine.forget_everything()
        if isinstance(receiver, Opaque) and receiver.name.startswith(_STATUS) and len(values) == 1:
            operation.of_status = True
            return run.opaque(f"{receiver.name}.{site.name}()", receiver)  # asked twice it gives the same answer
        operation.of_status = _wraps_status(run, site.node)
        answer: Value = run.opaque(f"{_STATUS if operation.of_status else 'result'}{run.visit_key(site.node)}", *values)
        if site.name == "forward" and receiver is not None and on_device is not None and on_device.type in TENSORS:
            output = _derived(on_device, f"result{run.visit_key(site.node)}")  # of a module out of view
            run.machine.opaque_work(operation, run.stream_of("torch"), [*_memory_on_device(arguments.all())], [output])
            answer = output
        return answer
    made = _result_of_module(run, receiver, site) if receiver is not None else None
    makes_object = _makes_object(run, site)
    if made is None and on_device is not None and not makes_object:
        made = _derived(on_device, f"result{run.visit_key(site.node)}")
    called = receiver is not None and name == receiver.term
    if called and on_device is None:
        works_in_fork(run, arguments.all(), site.span, name)
    result = made or run.opaque(f"result{run.visit_key(site.node)}", *values)
    if isinstance(result, Opaque):
        result.plain = reads and site.name == "item"
    if called and isinstance(receiver, Opaque) and arguments.positional:
        note_result(run, result)
    if not makes_object:
        computed_from(run, result, _worked_on(run, receiver, arguments, name), site.span, name)
    weights.listed(receiver, site.name, result)
    if site.name in BACKWARD:
        leave(run, receiver if not arguments.positional else None, site.span, name)
    else:
        step(run, site.node, site.name, values, site.span, name)
    if made is not None:
        made.storage.allocated = operation
    discarded = site.node is run.discarded
    if made is not None and made.storage.on_device and (not discarded or run.stream_of("torch").kind == "created"):
        given = [*_memory_on_device(arguments.all()), *there]
        operation.api = family(made.storage.library or "torch")
        run.machine.opaque_work(operation, run.stream_of(operation.api), given, [] if discarded else [made])
    return result


# C++: a project's function out of view that says so may wait for the whole device.
_SYNCS = frozenset("sync syncs synced syncing synchronize synchronizes synchronise synchronized synchronization synchronizer".split())


_STATUS = "status"
"""What an unknown value is called that a function out of view has made of the status of a CUDA call."""


_STATUS_TYPES = ("cudaError_t", "cudaError", "CUresult")


def _wraps_status(run: Run, node: p.Node) -> bool:
    """C++: ``checked(cudaMemcpyAsync(…))``, and calls in a body at hand that is given a status."""
    function = run.frames[-1].function
    if function is not None and any(param.type is not None and param.type.name in _STATUS_TYPES for param in function.params):
        return True
    given = (arg.value for arg in node.args) if isinstance(node, p.Call) else ()
    names = (value.function.id for value in given if isinstance(value, p.Call) and isinstance(value.function, p.Name))
    rows = (run.file.models.call(name) for name in names)
    return any(row is not None and row.library in ("cuda-runtime", "cuda-driver") for row in rows)


def _worked_on(run: Run, receiver: Value | None, arguments: Arguments, name: str) -> list[Value]:
    """What a call may compute on: a function on its arguments, a method that tensors have on its receiver."""
    of_argument = isinstance(receiver, Opaque) and receiver.made is not None and "." in receiver.term
    if receiver is None or _runs_module(run, receiver, name) or (name == receiver.term and not of_argument):
        return arguments.all()
    row = run.file.models.method("torch.Tensor", name.rpartition(".")[2])
    return [receiver, *arguments.all()] if row is not None and not row.names[0].endswith("*") else []


def _is_module(value: Value | None) -> bool:
    return isinstance(value, Handle) and value.type == "torch.nn.Module"


def _runs_module(run: Run, receiver: Value | None, name: str) -> bool:
    """Whether a module is called, one of PyTorch's own or one that was moved to a device: it computes on the tensors that it is given."""
    if isinstance(receiver, Buffer) and not run.file.is_cuda:
        return receiver.storage.on_device and name == receiver.term  # nobody calls a tensor
    return _is_module(receiver) and name.endswith((".__call__", ".forward"))


def _makes_object(run: Run, site: CallSite) -> bool:
    """Whether what is called is a class out of view, whose objects hold what they are given: its file uses the name as that of a type."""
    return isinstance(site.node, p.Call) and called_name(site.node.function) in _types_named(run.file)


@remembered(64)
def _types_named(file: File) -> frozenset[str]:
    """The last names of what a file uses as types: in annotations, as bases, and where it asks of what kind a value is."""
    found: set[str] = set()
    for node in walk_module(file.module):
        kinds: list[object] = []
        if isinstance(node, p.Param | p.Function | p.Field | p.Assign):
            kinds.append(node.annotation)
        elif isinstance(node, p.Class):
            kinds.extend(node.bases)
        elif isinstance(node, p.Call) and called_name(node.function) in ("isinstance", "issubclass"):
            kinds.extend(arg.value for arg in node.args[1:])
        for part in (inner for kind in kinds if kind is not None for inner in p.walk(kind)):
            if isinstance(part, p.Name | p.Attr):
                found.add(called_name(part))
    return frozenset(found)


def _module_work(run: Run, receiver: Value | None, given: Buffer | None, name: str) -> Evidence:
    """Why a module that is called works on a device: it was moved there, or is given a tensor that is there."""
    if isinstance(receiver, Buffer) and receiver.storage.on_device and not run.file.is_cuda:
        return Evidence(max(receiver.storage.evidence, Evidence.DERIVED))  # an unknown value that was moved, and is called
    if isinstance(receiver, Opaque) and given is not None and not run.file.is_cuda and name == receiver.term:
        return Evidence.SCOPE  # an unknown value that is called with a device tensor: nearly always a module
    if run.file.is_cuda or not isinstance(receiver, Handle | Instance):
        return Evidence.NONE
    run.read.add("(device)")
    home = receiver.attrs.get("(device)")
    if isinstance(home, Device):
        return Evidence(max(home.evidence, Evidence.DERIVED)) if home.space == "device" else Evidence.NONE
    return Evidence(max(given.storage.evidence, Evidence.DERIVED)) if _is_module(receiver) and given is not None else Evidence.NONE


def _result_of_module(run: Run, receiver: Value, site: CallSite) -> Buffer | None:
    """What a module makes is where its parameters are, as far as it was moved in view."""
    name = f"result{run.visit_key(site.node)}"
    run.read.add("(device)")
    home = receiver.attrs.get("(device)") if isinstance(receiver, Handle | Instance) else None
    if isinstance(home, Device) and home.space == "device":
        return Buffer(run.storage(Memory.DEVICE, name, evidence=max(home.evidence, Evidence.DERIVED), library="torch"), type="torch.Tensor")
    if (isinstance(home, Device) and home.space == "host") or (isinstance(receiver, Buffer) and receiver.storage.on_host):
        result = run.unknown_buffer(name)
        result.storage.host = True
        return result
    return None


def _derived(source: Buffer, name: str) -> Buffer:
    """A device value computed from another."""
    storage = Storage(
        Memory.DEVICE, name, evidence=Evidence(max(source.storage.evidence, Evidence.DERIVED)), library=source.storage.library
    )
    storage.trail = source.storage.trail
    return Buffer(storage, type=source.type)


def written_through(run: Run, value: Value, site: CallSite) -> None:
    """C++ ``&x``: the variable may hold anything afterwards."""
    if isinstance(value, Reference) and isinstance(value.target, p.Name):
        held = value.environment.find(value.target.id)
        if held is not None and isinstance(held.names[value.target.id], Const | Opaque):
            held.names[value.target.id] = run.opaque(f"{value.target.id}{run.visit_key(site.node)}", type=_type_name(held, value.target.id))


def _type_name(scope: Environment, name: str) -> str:
    kind = scope.type_of(name)
    return kind.name if kind is not None else ""


def _captured_argument(run: Run, near: list[Buffer]) -> Buffer | None:
    """What is computed from tensors while PyTorch captures a graph is on the device: nothing else can be captured."""
    step = run.machine.captures.step
    if step is None or run.file.is_cuda or run.machine.captures.active[-1].library != "torch":
        return None
    tensors = (v for v in near if v.type.startswith("torch."))
    tensor = next((v for v in tensors if v.storage.memory is Memory.UNKNOWN and not v.storage.host), None)
    return Buffer(Storage(Memory.DEVICE, "captured", evidence=Evidence.SCOPE, library="torch"), type=tensor.type) if tensor else None


def _memory_on_device(values: Iterable[Value]) -> Iterator[Buffer]:
    """The memory that arguments are, also those that were found to be memory after they were made."""
    for value in values:
        memory = value.buffer if isinstance(value, Opaque) else value
        if isinstance(memory, Buffer) and memory.storage.on_device:
            yield memory


def _device_argument(near: list[Buffer]) -> Buffer | None:
    return next((value for value in near if value.storage.on_device), None)
