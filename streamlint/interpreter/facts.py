"""Facts of a file that need no order: what it includes, which streams it makes or takes, which launches stand where."""

from __future__ import annotations

from dataclasses import dataclass, field

from streamlint import program as p
from streamlint.interpreter.index import File, is_declaration

_EXTENSION_HEADERS = ("torch/extension.h", "torch/torch.h", "torch/script.h", "torch/all.h", "torch/library.h", "torch/types.h", "ATen/", "c10/cuda", "torch/serialize")
_STREAM_TYPES = frozenset({"cudaStream_t", "CUstream", "hipStream_t", "at::cuda::CUDAStream", "c10::cuda::CUDAStream", "CUstream_st", "rmm::cuda_stream_view", "cuda_stream_view", "CUDAStream"})
_CURRENT = ("getCurrentCUDAStream", "getCurrentHIPStream", "getCurrentStream", "get_cuda_stream", "getStreamFromPool", "getCurrentCUDABlasHandle")


@dataclass(slots=True)
class FileFacts:
    """What a check may ask of the file that holds a root."""

    file: File
    is_torch_extension: bool = False
    launches: list[tuple[p.Launch, str, bool]] = field(default_factory=list)  # (launch, function, has a stream argument that is not a literal null)
    functions_with_streams: set[str] = field(default_factory=set)
    functions_given_streams: set[str] = field(default_factory=set)  # those that take one as a parameter, or ask for the current one
    classes_with_streams: set[str] = field(default_factory=set)
    binds_handles: bool = False  # some code gives a library handle its stream
    per_thread: bool = False

    @property
    def launches_with_stream(self) -> int:
        return sum(given for _, _, given in self.launches)


def facts_of(file: File) -> FileFacts:
    """Collect the facts of a file."""
    facts = FileFacts(file)
    if not file.is_cuda:
        return facts
    includes = file.module.includes
    facts.is_torch_extension = any(i.startswith(_EXTENSION_HEADERS) for i in includes) or any(
        i.startswith(_EXTENSION_HEADERS) for other in file.neighbours() for i in other.module.includes
    )
    for definition in dict.fromkeys(file.module.classes.values()):
        if any(f.type is not None and _is_stream(f.type) for f in definition.fields):
            facts.classes_with_streams.add(definition.qualname)
        for overloads in definition.methods.values():
            for function in overloads:
                _scan(facts, function)
    for overloads in file.module.functions.values():
        for function in overloads:
            _scan(facts, function)
    return facts


def _is_stream(kind: p.Type) -> bool:
    return kind.name in _STREAM_TYPES or any(_is_stream(arg) for arg in kind.args)


def _scan(facts: FileFacts, function: p.Function) -> None:
    if is_declaration(function) or function.space != "host":
        return
    if any(param.type is not None and _is_stream(param.type) for param in function.params):
        facts.functions_with_streams.add(function.qualname)
        facts.functions_given_streams.add(function.qualname)
    for node in p.walk(function):
        if isinstance(node, p.Launch):
            facts.launches.append((node, function.qualname, _given_stream(node)))
            if _given_stream(node):
                facts.functions_with_streams.add(function.qualname)
        elif isinstance(node, p.Call) and isinstance(node.function, p.Name) and node.function.id.endswith(("SetStream", "SetStream_v2")):
            facts.binds_handles = True
        elif isinstance(node, p.Declare) and _is_stream(node.type):
            facts.functions_with_streams.add(function.qualname)
        elif isinstance(node, p.Name) and node.id.endswith(_CURRENT):
            facts.functions_with_streams.add(function.qualname)
            facts.functions_given_streams.add(function.qualname)


def _given_stream(node: p.Launch) -> bool:
    if len(node.config) < 4:
        return False
    last = node.config[3]
    return not (isinstance(last, p.Const) and last.value in (0, None)) and not (isinstance(last, p.Name) and last.id in ("NULL", "nullptr", "cudaStreamLegacy"))
