"""Methods of values that are not known: what their spelling and arguments leave no doubt about.

A parameter without a type that is asked to move to ``"cuda"`` is a tensor or a module of torch, whatever it is called.
"""

from __future__ import annotations

from streamlint import operations as ops
from streamlint.interpreter import weights
from streamlint.interpreter.arguments import Arguments, CallSite
from streamlint.interpreter.classes import library_bases
from streamlint.interpreter.handed import captured, presumed
from streamlint.interpreter.index import File
from streamlint.interpreter.notes import remembered
from streamlint.interpreter.run import STREAM_TYPES, Run
from streamlint.interpreter.values import Buffer, Const, Device, Handle, Instance, Opaque, Value
from streamlint.operations import Evidence, Memory

# Methods that only torch tensors (and modules) have, under a file that imports torch.
_TENSOR_METHODS = frozenset(
    {"to", "cuda", "cpu", "copy_", "pin_memory", "record_stream", "item", "tolist", "numpy", "detach", "clone", "unbind", "data_ptr"}
)
_NEW = frozenset({"new_empty", "new_zeros", "new_ones", "new_full", "new_empty_strided", "new_tensor"})
_CUPY, _TORCH, _NUMBA = {"cupy": "cupy"}, {"torch": "torch"}, {"numba": "numba"}
ON_TORCH = ("lightning", "pytorch_lightning", "transformers", "trl", "accelerate")  # whose values are torch's as well
# Methods of streams, and the library whose import says which.
_STREAM_METHODS: dict[str, dict[str, str]] = {
    "launch_host_func": _CUPY,
    "add_callback": {**_NUMBA, **_CUPY},
    "wait_stream": _TORCH,
    "wait_event": {**_TORCH, **_CUPY},
    "record_event": _TORCH,
    "synchronize": {**_TORCH, **_CUPY, **_NUMBA},
    "query": _TORCH,
    "begin_capture": _CUPY,
    "end_capture": _CUPY,
    "is_capturing": _CUPY,
}
_GRAPH_METHODS = frozenset({"capture_begin", "capture_end"})
OF_ARRAYS = frozenset({"blocking", "out", "stream"})  # arguments of CuPy's `get` and `set`
_ARRAY_METHODS = frozenset({"get", "set", "copy_to_host", "copy_to_device", "copy_from_host", "copy_from_host_async"})


# Methods of files and sockets that fill the memory that they are given, before they return.
_INTO = frozenset({"readinto", "readinto1", "recv_into", "recvfrom_into"})
# Methods that mean something whatever has them, and whatever their file imports.
EVERYWHERE = _INTO | {"to", "cuda", "cpu", "run_in_executor"}


def _filled(run: Run, memory: Value, name: str, site: CallSite) -> Value:
    """``file.readinto(view)``: the host writes the view, and gets a number."""
    from streamlint.interpreter.effects.host import buffers_in, host_write

    for buffer in buffers_in(memory):
        host_write(run, buffer, site.span, name)
    return run.opaque(f"{name}{run.visit_key(site.node)}")


def assumed_method(run: Run, receiver: Value, name: str, arguments: Arguments, site: CallSite) -> Value | None:
    """What ``receiver.name(…)`` does where the receiver's type is not known but the method leaves no doubt; None otherwise."""
    from streamlint.interpreter.effects import apply, buffer_of

    if run.file.is_cuda:
        return None
    if isinstance(receiver, Handle | Instance) and name in ("to", "cuda", "cpu"):
        return _moved(run, receiver, name, arguments, site)
    if not isinstance(receiver, Opaque) or receiver.type:
        return None
    if name in _INTO and arguments.positional:
        return _filled(run, arguments.positional[0], name, site)
    if name == "run_in_executor":
        row = run.file.models.method("asyncio.AbstractEventLoop", name)
        return apply(run, row, row.names[0], receiver, arguments, site) if row is not None else None
    if name in ("item", "tolist", "cpu", "numpy") and _imports(run, "torch") and not arguments.positional:
        from streamlint.interpreter.effects.host import maybe_device_read

        if name != "numpy":
            maybe_device_read(run)
        row = run.file.models.method("torch.Tensor", name)
        if name != "numpy" and row is not None and (there := captured(run, receiver)) is not None:
            return apply(run, row, f"torch.Tensor.{name}", there, arguments, site)
    if _imports(run, "torch"):
        _fetch_numbers(run, receiver, name, arguments, site)
    if name == "to" and site.node is run.discarded and _imports(run, "torch") and _moves_module(run, receiver, arguments, site):
        return receiver
    if name.endswith("_") and not name.endswith("__") and _imports(run, "torch") and _is_computed(receiver):
        row = run.file.models.method("torch.Tensor", name)  # ``total.add_(part)`` in the scope of a stream that was made
        if row is not None and not row.names[0].endswith("*") and (there := presumed(run, receiver)) is not None:
            return apply(run, row, f"torch.Tensor.{name}", there, arguments, site)
    if (name in _TENSOR_METHODS or name in _NEW) and _imports(run, "torch") and _speaks_torch(run, name, arguments):
        buffer = buffer_of(run, receiver)
        row = run.file.models.method("torch.Tensor", name)
        if buffer is not None and row is not None:
            result = apply(run, row, f"torch.Tensor.{name}", buffer, arguments, site)
            _keep_origin(receiver, result)
            return result
    if name in _GRAPH_METHODS and _imports(run, "torch"):
        row = run.file.models.method("torch.cuda.CUDAGraph", name)
        return apply(run, row, f"torch.cuda.CUDAGraph.{name}", receiver, arguments, site) if row is not None else None
    if name in _STREAM_METHODS:
        return _as_stream_method(run, receiver, name, arguments, site)
    if name in _ARRAY_METHODS and _speaks_cupy(run, name, arguments):
        buffer = buffer_of(run, receiver, "cupy.ndarray")
        row = run.file.models.method("cupy.ndarray", name)
        if buffer is not None and row is not None:
            if buffer.storage.memory is Memory.UNKNOWN:
                buffer.storage.memory, buffer.storage.evidence = Memory.DEVICE, Evidence.DERIVED
            return apply(run, row, f"cupy.ndarray.{name}", buffer, arguments, site)
    if name in ("copy_to_host", "copy_to_device") and _imports(run, "numba"):
        buffer = buffer_of(run, receiver, "numba.cuda.devicearray")
        row = next((r for n, r in run.file.models.calls.items() if n.startswith("numba") and n.endswith(f".{name}")), None)
        if buffer is not None and row is not None:
            if buffer.storage.memory is Memory.UNKNOWN:
                buffer.storage.memory, buffer.storage.evidence = Memory.DEVICE, Evidence.DERIVED
            return apply(run, row, row.names[0], buffer, arguments, site)
    return None


def _fetch_numbers(run: Run, receiver: Opaque, name: str, arguments: Arguments, site: CallSite) -> None:
    """``grad.add_(weight, alpha=share)``: only tensors have such arguments; each has to be a number, and is fetched where it is none."""
    from streamlint.interpreter.effects import Call
    from streamlint.interpreter.effects.host import numbers_fetched

    row = run.file.models.method("torch.Tensor", name)
    if row is None or row.get("scalars") is None:
        return
    if f"torch.Tensor.{name}" in row.names or _OF_SCALARS & arguments.keywords.keys():
        numbers_fetched(Call(run, row, f"torch.Tensor.{name}", receiver, arguments, site))


_OF_SCALARS = frozenset({"alpha", "beta", "value"})


def _as_stream_method(run: Run, receiver: Opaque, name: str, arguments: Arguments, site: CallSite) -> Value | None:
    """A method that only streams have, or that only a stream in use can mean."""
    from streamlint.interpreter.effects import Call, apply
    from streamlint.interpreter.effects.streams import as_stream
    from streamlint.models import Row

    library = next((lib for lib, names in _STREAM_METHODS[name].items() if _imports(run, names)), None)
    if library is None or (name in ("synchronize", "query") and "(stream)" not in receiver.attrs):
        return None
    stream = as_stream(Call(run, Row((name,), "none", {}, library), name, receiver, arguments, site), receiver)
    row = run.file.models.method(STREAM_TYPES[library], name)
    if stream is None or row is None:
        return None
    return apply(run, row, f"{STREAM_TYPES[library]}.{name}", stream, arguments, site)


def _imports(run: Run, package: str) -> bool:
    return _names(run.file, package)


@remembered(1024)
def _names(file: File, package: str) -> bool:
    wanted = {package, *ON_TORCH} if package == "torch" else {package}
    return any(d.partition(".")[0] in wanted for d in file.imports.values())


def _speaks_torch(run: Run, name: str, arguments: Arguments) -> bool:
    from streamlint.interpreter.effects.devices import as_device, looks_like_dtype

    if name == "to":
        given = [*arguments.positional[:1], *(v for k, v in arguments.keywords.items() if k == "device")]
        return (
            "non_blocking" in arguments.keywords
            or any(looks_like_dtype(v) or isinstance(v, Device) or (isinstance(v, Const) and as_device(run, v) is not None) for v in given)
            or any(isinstance(v, Opaque) and v.term.endswith(".device") for v in given)
        )
    if name == "copy_":
        return True
    return name in _NEW or name in ("cuda", "cpu", "pin_memory", "record_stream", "detach", "data_ptr")


def _speaks_cupy(run: Run, name: str, arguments: Arguments) -> bool:
    if name == "get":
        return bool(OF_ARRAYS & set(arguments.keywords))
    if name == "set":
        given = arguments.positional[0] if arguments.positional else None
        arrays = isinstance(given, Buffer) and given.storage.on_host and _imports(run, "cupy")
        return "stream" in arguments.keywords or arrays
    return False


def _is_computed(value: Opaque) -> bool:
    """Whether work in view made the value, if it is memory of a device: no argument as it was handed over."""
    return value.made is not None and not isinstance(value.made.operation, ops.Entry)


def _moves_module(run: Run, receiver: Opaque, arguments: Arguments, site: CallSite) -> bool:
    """``part.to(device, non_blocking=True)``, and nobody takes the result: a tensor would not have moved."""
    from streamlint.interpreter.effects.devices import as_device

    asked = arguments.keywords.get("non_blocking")
    if asked is None or (isinstance(asked, Const) and not asked.value) or receiver.buffer is not None:
        return False
    target = next((d for v in arguments.all() if not isinstance(v, Const) or isinstance(v.value, str) if (d := as_device(run, v))), None)
    return weights.move(run, receiver, target or Device("unknown"), site.span, "torch.nn.Module.to")


def _moved(run: Run, receiver: Handle | Instance, name: str, arguments: Arguments, site: CallSite) -> Value | None:
    """A module (or an object that may be one) moves and returns itself."""
    from streamlint.interpreter.effects.devices import as_device

    if isinstance(receiver, Instance) and not library_bases(run, receiver.definition, receiver.file):
        return None
    if name == "cuda":
        run.machine.note(ops.Touch(site.span, "torch", f"torch.nn.Module.{name}", evidence=Evidence.LITERAL))
        receiver.attrs["(device)"] = Device("device", Evidence.LITERAL)
    elif name == "cpu":
        receiver.attrs["(device)"] = Device("host", Evidence.LITERAL)
    else:
        found = next((d for v in arguments.all() if (d := as_device(run, v)) is not None), None)
        if found is not None:
            if found.space == "device":
                run.machine.note(ops.Touch(site.span, "torch", f"torch.nn.Module.{name}", evidence=found.evidence))
            receiver.attrs["(device)"] = found
    return receiver


def _keep_origin(receiver: Opaque, result: Value) -> None:
    """The result of moving an unknown value may be a module: it keeps the attributes that were seen on it."""
    if isinstance(result, Buffer) and receiver.attrs:
        result.attrs.update({k: v for k, v in receiver.attrs.items() if not k.startswith("[")})
