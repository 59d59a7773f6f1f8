"""SL002 implicit-default-stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.interpreter.facts import FileFacts
from streamlint.interpreter.trace import Trace, call_trail, entered
from streamlint.operations import (
    Alloc,
    Conflict,
    Copy,
    Create,
    Direction,
    Launch,
    Opaque,
    Operation,
    Record,
    Synchronize,
    Wait,
    touched_on_device,
)

_PYTHON = frozenset({"torch", "cupy", "numba", "cuda_python"})
_CHOICES = frozenset({"omitted", "literal", "handle", "policy", "default"})


class ImplicitDefaultStream(Check):
    """Work on the default stream in code that otherwise uses streams.

    ## What it does
    Reports launches, copies, memsets and library calls on the default (null) stream in code that uses other streams: in torch
    extensions, in functions and classes that have a stream in scope, and between the work of several streams. The stream argument is
    missing, null or defaulted, or a library handle was never given a stream.

    ## Why is this bad
    The null stream synchronizes with all blocking streams, so that a pipeline runs one step after the other. It does not synchronize
    with non-blocking streams, which include PyTorch's: the work races with the work before and after it, and a captured graph does not
    contain it.

    ## Example
    ```cuda
    void blur(const float* in, float* out, int n, cudaStream_t stream) {
      cudaMemset(out, 0, n * sizeof(float));
      blur_kernel<<<(n + 255) / 256, 256, 0, stream>>>(in, out, n);
    }
    ```

    ## Use instead
    ```cuda
    void blur(const float* in, float* out, int n, cudaStream_t stream) {
      cudaMemsetAsync(out, 0, n * sizeof(float), stream);
      blur_kernel<<<(n + 255) / 256, 256, 0, stream>>>(in, out, n);
    }
    ```

    ## When it is fine
    Programs with a single stream, set-up (such as filling new memory before any stream exists), teardown, builds with the per-thread
    default stream, and torch's own operations, whose current stream is the default stream. Extension functions that are neither bound
    nor called are reported with ``evidence = "possible"`` only.

    ## Verify
    A gate blocks a kernel on one blocking stream. Null-stream work launched next keeps the kernel of a second stream from
    starting. In a torch extension under ``torch.cuda.stream(side)`` the kernel reads old values.

    ## References
    - CUDA Runtime API, Stream synchronization behavior
    - CUDA Programming Guide, default stream
    """

    code = "SL002"
    name = "implicit-default-stream"
    category = Category.STALL
    default = "on"
    rests_on = ("null-waits-for-blocking", "blocking-waits-for-null", "null-barrier-holds-nonblocking")
    signs = (
        "<<<",
        "cudaM",
        "cudaLaunch",
        "thrust::",
        "cub::",
        "cublas",
        "cufft",
        "curand",
        "cusparse",
        "cusolver",
        "cudnn",
        "cuMem",
        "cuLaunch",
        "cudaStream_t",
        "cutlass",
        "hipM",
        "nccl",
        "Stream(",
        "stream(",
        "tream",
        "cupy",
        "cp.",
        "numba",
        "](",
    )
    looks_at = (Record, Launch, Copy)

    def begins_with(self, operation: Operation) -> bool:
        return isinstance(operation, Record) or (
            isinstance(operation, Launch | Copy) and operation.stream is not None and operation.stream.kind != "ambient"
        )

    def on_operation(self, operation: Operation, path: Trace) -> Iterator[Finding]:
        if isinstance(operation, Record):
            yield from self._mark(operation, path)
        if not isinstance(operation, Launch | Copy) or operation.stream is None or operation.stream.kind != "null":
            return
        if operation.stream.how not in _CHOICES or operation.context.callback is not None:
            return
        if path.facts.file.is_cython and operation.api not in _PYTHON:
            reason = self._reason_cython(operation, path)
        else:
            reason = self._reason_cpp(operation, path) if path.facts.file.is_cuda else self._reason_python(operation)
        if reason is None or self._ordered_on_purpose(path):
            return
        race = self._is_race(operation, path)
        if not race and _is_timed(operation, path):
            return
        yield self.finding(
            operation,
            self._message(operation, race) + path.facts.if_legacy,
            span=operation.stream.chosen or operation.span,
            category=Category.RACE if race else Category.STALL,
            trail=self._trail(operation, reason) or self._beside(path.facts),
            help=self._help(operation, path),
            facts={"stream": "null", "api": operation.api, "direction": operation.direction.value if isinstance(operation, Copy) else None},
            shown=not path.facts.is_uncalled(operation),
        )

    def told(self, span: Span, what: str, how: str, race: bool, trail: Iterable[Step], help: str, suffix: str, qualname: str) -> Finding:
        """Work on the default stream beside other streams, as a finding."""
        owner = {"handle": "the handle's", "policy": "the policy's"}.get(how, "the")
        effect = "it is unordered with non-blocking streams" if race else "it serializes with all blocking streams"
        found = self.finding_at(span, f"{what} on {owner} default stream; {effect}{suffix}", trail=trail, help=help, qualname=qualname)
        return replace(found, category=Category.RACE if race else Category.STALL)

    def told_mark(self, span: Span, missed: str, trail: Iterable[Step], suffix: str, qualname: str) -> Finding:
        """An event on the default stream that misses what it is to mark, as a finding."""
        help = "record the event on the stream that the waiting streams depend on"
        return self.finding_at(span, f"event record on the default stream; {missed}{suffix}", trail=trail, help=help, qualname=qualname)

    def told_together(self, findings: list[Finding], suffix: str) -> Finding:
        """A file that uses no streams at all, told once."""
        first, *others = findings
        steps = tuple(Step("also on the default stream", finding.span) for finding in others)
        message = f"{first.message.partition(';')[0]}; no stream is used ({len(findings)} places)" + suffix
        return replace(first, trail=(*first.trail, *steps), message=message, covers=tuple(f.span for f in others))

    def _mark(self, record: Record, path: Trace) -> Iterator[Finding]:
        """C++: an event for other streams, recorded on the default stream where the work before it is on another."""
        facts, stream, context = path.facts, record.stream, record.context
        if stream is None or stream.kind != "null" or not facts.file.is_cuda or facts.per_thread or record.event is None:
            return
        if context.setup or context.teardown or context.callback is not None or not context.functions:
            return
        if not any(isinstance(o, Wait) and o.on is record.event for o in path.after(record)):
            return
        missed = self._marks_in_extension(path) if facts.is_torch_extension else self._marks_beside(record, path)
        if missed:
            yield self.finding(
                record,
                f"event record on the default stream; {missed}" + facts.if_legacy,
                span=stream.chosen or record.span,
                trail=(*stream.trail, *call_trail(record)),
                help="record the event on the stream that the waiting streams depend on",
                facts={"stream": "null", "api": record.api},
            )

    def _marks_in_extension(self, path: Trace) -> str:
        for operation in path.operations:
            stream = operation.stream if isinstance(operation, Launch | Copy | Record | Wait) else None
            if stream is not None and stream.kind == "ambient":
                return ""
        return "it may miss work on PyTorch's stream"

    def _marks_beside(self, record: Record, path: Trace) -> str:
        stream, functions = record.stream, record.context.functions
        if stream is None or stream.how not in ("omitted", "literal") or not path.facts.is_given_stream(functions[-1], record.span):
            return ""
        before = [o.stream for o in path.before(record) if isinstance(o, Launch | Copy) and o.stream is not None]
        if not before or any(stream.kind == "null" for stream in before) or self._ordered_on_purpose(path):
            return ""  # it may well mark what the default stream has been given elsewhere
        return "it may miss the stream parameter's work"

    def on_conflict(self, conflict: Conflict, path: Trace) -> Iterator[Finding]:
        """A race of which one side is on the default stream by a caller's choice: the choice is its cause."""
        if conflict.missing != "stream-wait":
            return
        if not path.facts.file.is_cuda:
            yield from self._from_python(conflict, path)
            return
        for operation in (conflict.first, conflict.second):
            if isinstance(operation, Launch | Copy) and operation.stream is not None and operation.stream.chosen != operation.span:
                for finding in self.on_operation(operation, path):
                    yield replace(finding, pairs=((conflict.first.span, conflict.second.span),))

    def _from_python(self, conflict: Conflict, path: Trace) -> Iterator[Finding]:
        """Python calls C++ whose work goes to the default stream: by its own choice, or because it is given null."""
        for operation, other in ((conflict.first, conflict.second), (conflict.second, conflict.first)):
            if not isinstance(operation, Launch | Copy) or operation.stream is None or operation.stream.kind != "null":
                continue
            beside = other.stream if isinstance(other, Launch | Copy) else None
            if beside is None or beside.kind != "created" or operation.stream.how not in _CHOICES or operation.context.crossing is None:
                continue
            if operation.context.setup or operation.context.callback is not None or self._ordered_on_purpose(path):
                continue
            if operation.context.opened:
                continue  # two libraries: SL027
            steps = tuple(Step(f"the other access runs on another stream: {step.message}", step.span) for step in beside.trail[:1])
            yield self.finding(
                operation,
                self._message(operation, race=True),
                span=operation.stream.chosen or operation.span,
                category=Category.RACE,
                trail=(*steps, *self._trail(operation, "")),
                help="pass the Python stream as an integer (`stream.cuda_stream`, `stream.ptr`) and launch on it",
                conflict=conflict,
                facts={"stream": "null", "api": operation.api},
            )

    def on_map(self, facts: FileFacts) -> Iterator[Finding]:
        """A current stream that was asked for once: as stale as none."""
        for kept in facts.kept_streams:
            yield self.told_kept(kept.name, kept.read, kept.uses, kept.function)

    def told_kept(self, name: str, read: Span, uses: Iterable[Span], qualname: str) -> Finding:
        """A current stream that is kept, as a finding."""
        what = f"current stream cached in `{name}`; later calls ignore a change of the current stream"
        steps = [Step("later work on the cached stream", use) for use in uses]
        help = "query the current stream where the work is launched"
        return replace(self.finding_at(read, what, trail=steps[:4], help=help, qualname=qualname), category=Category.RACE)

    # --- where it fires ------------------------------------------------------------------------------------------------------------------

    def _reason_cpp(self, operation: Launch | Copy, path: Trace) -> str | None:
        facts, context = path.facts, operation.context
        if facts.per_thread or context.teardown or context.handles_error:
            return None
        if facts.is_torch_extension:
            alone = context.setup or self._on_own_memory(operation, path)
            return None if alone else "torch extensions run on PyTorch's current stream"
        if context.setup or facts.lives_on_null or facts.has_one_stream or self._elsewhere(operation, facts):
            return None
        if operation.stream is not None and operation.stream.how == "default" and not self._chosen_beside_stream(operation, facts):
            return None
        if self._behind_device_wait(operation, path) or (self._fetches_at_rest(operation) and not self._of_given_stream(operation, path)):
            return None
        if self._sets_up(operation, path):
            return None
        if self._has_stream_at_hand(operation, facts) or self._works_on_another(operation, path):
            return "a stream is in scope"
        if operation.beside and (len(operation.beside) > 1 or context.loops or self._holds_up_another(operation)):
            return "other streams have work in flight"
        if self._beside_own_stream(operation, facts):
            return "other work in this file uses a stream"
        return None

    def _beside_own_stream(self, operation: Launch | Copy, facts: FileFacts) -> bool:
        """A launch or an asynchronous copy that leaves the stream of file scope on which the others are."""
        assert operation.stream is not None
        if operation.stream.how not in ("omitted", "literal") or (isinstance(operation, Copy) and not operation.asked_async):
            return False
        return facts.own_stream is not None and not any(function in facts.setup_functions for function in operation.context.functions)

    def _reason_cython(self, operation: Launch | Copy, path: Trace) -> str | None:
        """The function that Python calls puts other work on a stream: one that it is given, or made."""
        context, place = operation.context, operation.stream.chosen if operation.stream is not None else None
        if path.facts.per_thread or context.teardown or context.handles_error or context.setup or self._fetches_at_rest(operation):
            return None
        if (place or operation.span).file != path.facts.file.path or self._behind_device_wait(operation, path):
            return None
        for other in path.operations:
            stream = other.stream if isinstance(other, Launch | Copy) and other.api not in _PYTHON else None
            if stream is not None and stream.kind in ("parameter", "created") and other.context.functions[:1] == context.functions[:1]:
                return "a stream is in scope"
        return None

    def _chosen_beside_stream(self, operation: Launch | Copy, facts: FileFacts) -> bool:
        """A struct's stream was left at its null default in a function that was given a stream."""
        return any(facts.is_given_stream(function, place) for function, place in entered(operation))

    def _elsewhere(self, operation: Launch | Copy, facts: FileFacts) -> bool:
        """A helper of another file that has no stream to pass on: its callers cannot choose."""
        assert operation.stream is not None
        place = operation.stream.chosen or operation.span
        return place.file != facts.file.path

    def _fetches_at_rest(self, operation: Launch | Copy) -> bool:
        """A synchronous copy to the host, which wants the data now, with nothing in flight beside it but what the data may come from.

        That is the work of one stream that the code makes itself, as a blocking one: the copy is behind it.
        """
        fetches = isinstance(operation, Copy) and operation.direction is Direction.D2H and not operation.asked_async
        return fetches and (not operation.beside or (self._behind_own_stream(operation) and not self._holds_up_another(operation)))

    def _behind_own_stream(self, operation: Launch | Copy) -> bool:
        return len(operation.beside) == 1 and operation.beside[0].kind == "created" and operation.beside[0].blocking is True

    def _on_own_memory(self, operation: Launch | Copy, path: Trace) -> bool:
        """It works on memory that this path has from the driver, and no other stream touches it: a program of its own in the extension."""
        own = {buffer.storage for buffer in touched_on_device(operation)}
        if not own or not all(isinstance(storage.allocated, Alloc) and not storage.allocated.cached for storage in own):
            return False
        for other in path.operations:
            if not isinstance(other, Launch | Copy) or (other.stream is not None and other.stream.kind == "null"):
                continue
            if any(buffer.storage in own for buffer in touched_on_device(other)):
                return False
        return True

    def _sets_up(self, operation: Launch | Copy, path: Trace) -> bool:
        """A synchronous copy or a memset that fills memory which the path has just made and keeps, before it has any stream."""
        if operation.beside or (operation.asked_async if isinstance(operation, Copy) else operation.kind == "kernel"):
            return False
        own = {buffer.storage for buffer in touched_on_device(operation)}
        if not own or any(s.freed or not isinstance(s.allocated, Alloc) or s.allocated.cached for s in own):
            return False
        if any(path.facts.is_given_stream(function, place) for function, place in entered(operation)):
            return False
        made = {id(o.value) for o in path.after(operation) if isinstance(o, Create)}
        streams = (o.stream for o in path.operations if isinstance(o, Launch | Copy) and o.stream is not None)
        return all(s.kind == "null" or id(s) in made for s in streams) and not any(
            isinstance(o, Create) and o.what == "stream" for o in path.before(operation)
        )

    def _of_given_stream(self, operation: Launch | Copy, path: Trace) -> bool:
        """The function itself takes a stream, on which what it fetches is made, and nobody has waited yet."""
        function = operation.context.functions[-1] if operation.context.functions else ""
        return path.facts.is_given_stream(function, operation.span) and not any(isinstance(o, Synchronize) for o in path.before(operation))

    def _works_on_another(self, operation: Launch | Copy, path: Trace) -> bool:
        """The function puts other work on a stream that it asks somebody for."""
        for other in path.operations:
            stream = other.stream if isinstance(other, Launch | Copy) and other is not operation else None
            if stream is not None and stream.kind == "foreign" and other.context.functions == operation.context.functions:
                return True
        return False

    def _behind_device_wait(self, operation: Launch | Copy, path: Trace) -> bool:
        """The host has just waited for the whole device: nothing is there to be held up or to race with."""
        if operation.beside:
            return False
        for earlier in reversed(list(path.before(operation))):
            if isinstance(earlier, Synchronize):
                return earlier.of is None
            if isinstance(earlier, Opaque) and earlier.may_wait:
                return True
            if isinstance(earlier, Launch | Copy) and earlier.stream is not None:
                return False
        return False

    def _has_stream_at_hand(self, operation: Launch | Copy, facts: FileFacts) -> bool:
        choosers = self._choosers(operation, facts)
        for function, place in choosers:
            if function in facts.setup_functions:
                return False
            if facts.is_given_stream(function, place):
                return True
            owner = function.rpartition("::")[0]
            if owner in facts.classes_with_streams and not function.endswith(f"::{owner.rpartition('::')[2]}"):
                return True
        return any(self._mentions_context(facts, function) for function, _ in choosers)

    def _choosers(self, operation: Launch | Copy, facts: FileFacts) -> list[tuple[str, Span]]:
        """The functions entered, but for those that were handed the null stream: it is theirs, whatever their parameter could be."""
        found, stream = list(entered(operation)), operation.stream
        if stream is None or stream.how != "literal" or stream.chosen is None:
            return found
        holding = [number for number, (function, _) in enumerate(found) if facts.is_in(function, stream.chosen)]
        return found[: holding[-1] + 1] if holding else found

    def _mentions_context(self, facts: FileFacts, function: str) -> bool:
        """A function whose other launches in the same body have a stream."""
        return function in facts.functions_with_streams and any(given for _, name, given in facts.launches if name == function)

    def _reason_python(self, operation: Launch | Copy) -> str | None:
        if operation.api == "torch" or operation.context.setup:
            return None
        beside = [s for s in operation.beside if s.blocking and s.kind == "created"]
        if not beside:
            return None
        if len(beside) > 1 or operation.context.loops or self._holds_up_another(operation):
            return "other streams have work in flight"
        return None

    def _holds_up_another(self, operation: Launch | Copy) -> bool:
        """Behind it a stream that had nothing in flight gets work."""
        return any(stream not in operation.beside for stream in operation.followed_by)

    def _ordered_on_purpose(self, path: Trace) -> bool:
        """The path makes the null stream wait for an event, or others for one recorded on it: its place is deliberate."""
        return any(isinstance(o, Wait) and o.stream is not None and o.stream.kind == "null" for o in path.operations)

    # --- what it says --------------------------------------------------------------------------------------------------------------------

    def _is_race(self, operation: Launch | Copy, path: Trace) -> bool:
        if path.facts.is_torch_extension:
            return True
        return any(s.blocking is False for s in operation.beside)

    def _message(self, operation: Launch | Copy, race: bool) -> str:
        assert operation.stream is not None
        owner = {"handle": "the handle's", "policy": "the policy's"}.get(operation.stream.how, "the")
        where = f"{self._what(operation)} on {owner} default stream"
        if race:
            return f"{where}; it is unordered with non-blocking streams"
        return f"{where}; it serializes with all blocking streams"

    def _what(self, operation: Launch | Copy) -> str:
        name = operation.name.rpartition(".")[2]
        if isinstance(operation, Copy):
            kinds = {
                Direction.H2D: "host-to-device copy",
                Direction.D2H: "device-to-host copy",
                Direction.D2D: "device-to-device copy",
            }
            return f"{kinds.get(operation.direction, 'copy')} ({name})"
        if operation.kind == "kernel":
            return f"launch of {name}"
        return name

    def _trail(self, operation: Launch | Copy, reason: str) -> tuple[Step, ...]:
        assert operation.stream is not None
        steps = list(operation.stream.trail)
        for stream in operation.beside[:2]:
            steps.extend(replace(step, message=f"{reason}: {step.message}") for step in stream.trail)
        if operation.stream.chosen is not None and operation.stream.chosen != operation.span:
            steps.append(Step("the work on the default stream", operation.span))
        return (*steps, *(step for step in call_trail(operation) if step.span != operation.stream.chosen))

    def _beside(self, facts: FileFacts) -> tuple[Step, ...]:
        at = facts.own_stream
        return () if at is None else (Step("other work in this file uses a stream", replace(at, end_row=at.row, end_column=at.column + 1)),)

    def _help(self, operation: Launch | Copy, path: Trace) -> str:
        assert operation.stream is not None
        if path.facts.is_torch_extension:
            return "pass at::cuda::getCurrentCUDAStream(), with a CUDAGuard for the tensor's device"
        if operation.stream.how == "handle":
            return "set the handle's stream first (cublasSetStream, cufftSetStream, curandSetStream)"
        if operation.stream.how == "policy":
            return "use thrust::cuda::par_nosync.on(stream)"
        if isinstance(operation, Copy) and not operation.asked_async:
            return "use the asynchronous copy on that stream, and synchronize the stream before the host needs the data"
        return "pass the stream that the surrounding work uses"

    # --- one finding a file where streams are ignored altogether ------------------------------------------------------------------------

    def fold(self, findings: list[Finding], facts: FileFacts) -> list[Finding]:
        if not facts.is_torch_extension:
            return findings
        by_file = {path: [f for f in findings if f.span.file == path] for path in dict.fromkeys(f.span.file for f in findings)}
        folded = ([self._folded(own, facts)] if len(own) > 1 and facts.is_without_streams(path) else own for path, own in by_file.items())
        return [finding for group in folded for finding in group]

    def _folded(self, findings: list[Finding], facts: FileFacts) -> Finding:
        return self.told_together(findings, facts.if_legacy)


def _is_timed(operation: Operation, path: Trace) -> bool:
    """Whether the function takes the time between two events of its own: it measures, and waits on purpose."""
    calls = operation.context.calls
    return any(isinstance(o, Record) and o.event is not None and o.event.timed and o.context.calls == calls for o in path.operations)
