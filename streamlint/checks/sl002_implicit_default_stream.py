"""SL002 implicit-default-stream."""

from __future__ import annotations

from collections.abc import Iterable

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.support.records import replace


class ImplicitDefaultStream(Check):
    """Work on the default stream in code that otherwise uses streams.

    ## What it does
    Reports launches, copies, memsets and library calls on the default (null) stream in code that uses other streams: in torch
    extensions, in functions and classes that have a stream in scope, between the work of several streams, and on memory that a
    non-blocking stream works on at the same time. The stream argument is missing, null or defaulted, or a library handle was never
    given a stream. A synchronous upload from pageable memory counts as in flight after it returns: the driver has staged the bytes then,
    and a non-blocking stream does not wait for the rest.

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
    - CUDA Runtime API, API synchronization behavior: ``cudaMemcpy`` from pageable memory
    """

    code = "SL002"
    name = "implicit-default-stream"
    category = Category.STALL
    default = "on"
    languages = ("Python", "Cython", "C++")
    fixes = ("safe", "unsafe")
    rests_on = ("null-waits-for-blocking", "blocking-waits-for-null", "null-barrier-holds-nonblocking")

    def report(self, span: Span, what: str, how: str, race: bool, suffix: str, qualname: str) -> Finding:
        """Work on the default stream beside other streams, as a finding."""
        owner = {"handle": "the handle's", "policy": "the policy's"}.get(how, "the")
        effect = "it is unordered with non-blocking streams" if race else "it serializes with all blocking streams"
        found = self.finding_at(span, f"{what} on {owner} default stream; {effect}{suffix}", qualname=qualname)
        return replace(found, category=Category.RACE if race else Category.STALL)

    def report_mark(self, span: Span, missed: str, trail: Iterable[Step], suffix: str, qualname: str) -> Finding:
        """An event on the default stream that misses what it is to mark, as a finding."""
        help = "record the event on the stream that the waiting streams depend on"
        return self.finding_at(span, f"event record on the default stream; {missed}{suffix}", trail=trail, help=help, qualname=qualname)

    def report_together(self, findings: list[Finding], suffix: str) -> Finding:
        """One finding for a file that uses no streams at all."""
        first, *others = findings
        steps = tuple(Step("also on the default stream", finding.span) for finding in others)
        message = f"{first.message.partition(';')[0]}; no stream is used ({len(findings)} places)" + suffix
        return replace(first, trail=(*first.trail, *steps), message=message, covers=tuple(f.span for f in others))

    def report_kept(self, name: str, read: Span, uses: Iterable[Span], qualname: str) -> Finding:
        """A current stream that is kept, as a finding."""
        what = f"current stream cached in `{name}`; later calls ignore a change of the current stream"
        steps = [Step("later work on the cached stream", use) for use in uses]
        help = "query the current stream where the work is launched"
        return replace(self.finding_at(read, what, trail=steps[:4], help=help, qualname=qualname), category=Category.RACE)
