"""Facts of a file that need no order: what it includes, which streams it makes or takes, which launches stand where."""

from __future__ import annotations

import functools
import re

from streamlint import program as p
from streamlint.build import build_root
from streamlint.findings import Span
from streamlint.interpreter.absence import ordering_events
from streamlint.interpreter.at_hand import contains
from streamlint.interpreter.extension import is_own_program, is_torch_extension
from streamlint.interpreter.holders import is_private
from streamlint.interpreter.index import File, is_declaration, walk_module
from streamlint.interpreter.measuring import measures_time
from streamlint.interpreter.per_thread import built_per_thread
from streamlint.interpreter.questions import question
from streamlint.interpreter.stale import Kept, kept_streams
from streamlint.interpreter.stand_ins import stand_ins
from streamlint.interpreter.uncalled import is_uncalled
from streamlint.operations import Operation
from streamlint.record import field, record

_STREAM_TYPES = frozenset(
    {
        "cudaStream_t",
        "CUstream",
        "hipStream_t",
        "at::cuda::CUDAStream",
        "c10::cuda::CUDAStream",
        "CUstream_st",
        "rmm::cuda_stream_view",
        "cuda_stream_view",
        "CUDAStream",
    }
)
_CURRENT = (
    "getCurrentCUDAStream",
    "getCurrentHIPStream",
    "getCurrentStream",
    "get_cuda_stream",
    "getStreamFromPool",
    "getCurrentCUDABlasHandle",
)
_MAKES_OR_SWITCHES = re.compile(r"Stream(?:Create|Guard|FromPool|PerThread)|setCurrent\w*Stream|\bcuda_stream(?:_pool)?\b")


@record(slots=False)
class FileFacts:
    """What a check may ask of the file that holds a root."""

    file: File
    is_torch_extension: bool = False
    launches: list[tuple[p.Launch, str, bool]] = field(
        default_factory=list
    )  # (launch, function, has a stream argument that is not a literal null)
    functions_with_streams: set[str] = field(default_factory=set)
    functions_given_streams: set[str] = field(default_factory=set)  # those that take one as a parameter, or ask for the current one
    without_stream: dict[str, list[p.Position]] = field(default_factory=dict)  # where functions stand that are given none
    classes_with_streams: set[str] = field(default_factory=set)
    setup_functions: set[str] = field(default_factory=set)  # those that create streams themselves
    has_one_stream: bool = False  # C++: a program whose streams, parameters and the current one, are the null stream
    per_thread: bool = False
    stream_is_told: bool = True  # C++: whether settings or build files say which default stream it is built with
    measures_time: bool = False  # the time between two events that may be any is asked for, here or in a file at hand

    def is_given_stream(self, function: str, place: Span) -> bool:
        """Whether the function of this name that holds a place is given a stream: of its overloads some may not be."""
        return function in self.functions_given_streams and not any(
            place.file == self.file.path and contains(at, place.at) for at in self.without_stream.get(function, ())
        )

    def is_uncalled(self, operation: Operation) -> bool:
        """Whether an operation stands on a path through a function that nothing at hand calls, and nobody else can."""
        entered = next((function for function in operation.context.functions if function != "<module>"), "")
        return bool(entered) and is_uncalled(self.file, entered)

    def is_stand_in(self, span: Span) -> bool:
        """Whether a place is in a class that is taken where another one, which pins its memory, cannot be."""
        file = self._met(span.file)
        names = stand_ins(file) if file is not None and not file.is_cuda else ()
        methods = p.functions_of(file.module) if file is not None and names else ()
        return any(owner is not None and owner.qualname in names and contains(method.at, span.at) for method, owner in methods)

    def is_in(self, function: str, span: Span) -> bool:
        """Whether a place is in the body of the function of that name."""
        file = self._met(span.file)
        return file is not None and any(f.qualname == function and contains(f.at, span.at) for f, _ in p.functions_of(file.module))

    @property
    def if_legacy(self) -> str:
        """What a message says of the default stream where no build file tells which one it is."""
        return "" if self.stream_is_told else " (with --default-stream=legacy)"

    def is_private(self, made: Span) -> bool:
        """Whether only this file's code can use the stream that is made there, and none of it makes that stream wait."""
        return not self.file.is_cuda and is_private(self.file, made)

    @functools.cached_property
    def own_stream(self) -> Span | None:
        """C++: the first launch of a file that works on a stream of file scope: four at least, and four for each on the null stream."""
        files = (self.file, *self.file.neighbours())
        names = {g.name for file in files if file.is_cuda for g in file.module.globals if _is_stream(g.type) and not g.type.pointers}
        own = [launch for launch, _, given in self.launches if given and _stream_name(launch) in names]
        enough = len(own) >= max(4, 4 * sum(not given for *_, given in self.launches))
        return Span(self.file.path, *own[0].at) if enough else None

    @property
    def kept_streams(self) -> list[Kept]:
        """C++: current streams that are asked for once and used by later calls."""
        return kept_streams(self.file) if self.file.is_cuda else []

    def only_orders(self, made: Span) -> bool:
        """Whether no code at hand can ask for the time of the event that is made there."""
        file = self.file if made.file == self.file.path else self._met(made.file)
        return file is not None and made in ordering_events(file)

    def is_without_streams(self, path: str) -> bool:
        """Whether no function of this file, or of another one that a run was led to, works with a stream."""
        if path == self.file.path:
            return not self.functions_with_streams
        other = self._met(path)
        return other is not None and not facts_of(other).functions_with_streams

    def _met(self, path: str) -> File | None:
        """A file that a run was led to."""
        return self.file.program.files.get(path)

    @property
    def lives_on_null(self) -> bool:
        """Whether the project works on the null stream by design: most of its launches are there."""
        null, given = launches_of_project(self.file)
        return null > max(given, 4)


def facts_of(file: File, default_stream: str = "auto") -> FileFacts:
    """Collect the facts of a file."""
    facts = FileFacts(file)
    said = default_stream == "per-thread" if default_stream != "auto" else built_per_thread(file)
    facts.per_thread, facts.stream_is_told = said is True, said is not None or not file.is_cuda
    facts.measures_time = measures_time(file)
    if not file.is_cuda:
        return facts
    facts.is_torch_extension = is_torch_extension(file)
    near = (file, *(other for other in file.neighbours() if other.is_cuda))
    for definition in dict.fromkeys(held for other in near for held in other.module.classes.values()):
        if any(f.type is not None and (_is_stream(f.type) or _wraps_stream(facts, f.type)) for f in definition.fields):
            facts.classes_with_streams.add(definition.qualname)
    for function, _ in p.functions_of(file.module):
        _scan(facts, function)
    facts.has_one_stream = is_own_program(file) and not any(_MAKES_OR_SWITCHES.search(other.module.text) for other in near)
    return facts


@question
def launches_of_project(file: File) -> tuple[int, int]:
    """How many launches of the files at hand under one build root go to the null stream, and how many have a stream."""
    root = build_root(file.path)
    counts, files = file.program.launch_counts, file.program.cpp(file)
    if root not in counts:
        null = given = 0
        for other in files:
            if build_root(other.path) == root:
                for node in walk_module(other.module):
                    if isinstance(node, p.Launch):
                        given, null = (given + 1, null) if _given_stream(node) else (given, null + 1)
        counts[root] = (null, given)
    return counts[root]


def _is_stream(kind: p.Type) -> bool:
    return kind.name in _STREAM_TYPES or any(_is_stream(arg) for arg in kind.args)


def _has_stream(facts: FileFacts, kind: p.Type) -> bool:
    """Whether a parameter is an object of a class that holds a stream."""
    row = facts.file.models.types.get(kind.name)
    if row is not None and row.holds_stream:
        return True
    found = facts.file.class_at_hand(kind.name)
    return found is not None and any(f.type is not None and _is_stream(f.type) for f in found[0].fields)


def _wraps_stream(facts: FileFacts, kind: p.Type) -> bool:
    """Whether a member is an object that is a stream and no more: all that its class holds is one."""
    found = facts.file.class_at_hand(kind.name) if not kind.pointers and not kind.reference else None
    held = [field.type for field in found[0].fields if not field.static] if found is not None else []
    return bool(held) and all(one is not None and _is_stream(one) for one in held)


def _scan(facts: FileFacts, function: p.Function) -> None:
    if is_declaration(function) or function.space != "host":
        return
    given = any(param.type is not None and (_is_stream(param.type) or _has_stream(facts, param.type)) for param in function.params)
    if given:
        facts.functions_with_streams.add(function.qualname)
        facts.functions_given_streams.add(function.qualname)
    for node in p.walk(function):
        if isinstance(node, p.Launch):
            facts.launches.append((node, function.qualname, _given_stream(node)))
            if _given_stream(node):
                facts.functions_with_streams.add(function.qualname)
        elif (
            isinstance(node, p.Call)
            and isinstance(node.function, p.Name)
            and node.function.id.startswith(("cudaStreamCreate", "hipStreamCreate"))
        ):
            facts.setup_functions.add(function.qualname)
        elif isinstance(node, p.Declare) and _is_stream(node.type):
            facts.functions_with_streams.add(function.qualname)
        elif isinstance(node, p.Name) and node.id.endswith(_CURRENT):
            facts.functions_with_streams.add(function.qualname)
            facts.functions_given_streams.add(function.qualname)
            given = True
    if not given:
        facts.without_stream.setdefault(function.qualname, []).append(function.at)


def _stream_name(node: p.Launch) -> str:
    stream = node.config[3] if len(node.config) > 3 else None
    return stream.id if isinstance(stream, p.Name) else ""


def _given_stream(node: p.Launch) -> bool:
    if len(node.config) < 4:
        return False
    last = node.config[3]
    return not (isinstance(last, p.Const) and last.value in (0, None)) and not (
        isinstance(last, p.Name) and last.id in ("NULL", "nullptr", "cudaStreamLegacy")
    )
