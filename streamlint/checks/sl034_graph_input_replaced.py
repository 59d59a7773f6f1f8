"""SL034 graph-input-replaced."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.findings.operations import Operation

# What happens to the memory that the graph reads, and what to do, by kind.
_MESSAGES = {
    "rebound": "assignment replaces a tensor that a captured graph reads; the replay reads the old one",
    "dropped": "captured graph input freed before a replay; the replay reads reused memory",
    "freed": "memory that a captured graph reads is freed; the next replay reads freed memory",
    "reused": "captured memory returned to a pool; the replay reads the next owner's values",
    "temporary": "array allocated in a capture is freed; the replay overwrites the block's next owner",
    "replaced": "storage of a captured graph input released; the replay reads the old memory",
    "weights": "parameters of a captured module get other memory; the replay reads the old parameters",
    "gradients": "gradients of a captured backward pass are freed; the replay writes to the old memory",
    "state": "state of a captured optimizer is replaced; the replay updates the old state",
}
_STEPS = {
    "rebound": "the name refers to another tensor from here on",
    "dropped": "the last reference is released here",
    "freed": "the memory is freed here",
    "reused": "the memory is returned to the pool here",
    "temporary": "the last reference is released here",
    "replaced": "the tensor loses the captured memory here",
    "weights": "the parameters get other memory here",
    "gradients": "the gradients are freed here",
    "state": "the state is replaced here",
}
_HELP = {
    "rebound": "copy the new values into the captured tensor (static.copy_(new)), or capture again",
    "dropped": "keep a reference to the tensor as long as the graph is replayed",
    "freed": "free the memory after the last replay",
    "reused": "return the memory to the pool after the last replay",
    "temporary": "allocate the array before the capture, and keep it as long as the graph is replayed",
    "replaced": "copy into the tensor in place, or capture again after the change",
    "weights": "copy the new values into the parameters, or capture again after the change",
    "gradients": "keep the gradients and fill them with zeros (set_to_none=False)",
    "state": "copy the new values into the state, or capture again after the change",
}


class GraphInputReplaced(Check):
    """A tensor that a captured CUDA graph reads is replaced, freed or dropped before a replay.

    ## What it does
    Reports a replay of a CUDA graph after an input of its capture was lost: the name or attribute through which the capture read the
    tensor is assigned another tensor, its last reference is released, its memory is freed, or its storage is replaced
    (``x.data = y``, ``x.set_(y)``, ``x.resize_(larger)``, ``x.untyped_storage().resize_(0)``). Of CuPy also arrays that the capture itself
    allocates. The same holds for memory that a capture reaches through modules and optimizers: weights (``load_state_dict(assign=True)``,
    moves to the CPU), gradients of a captured backward pass (``zero_grad(set_to_none=True)``), and the state of an
    optimizer whose step is captured. Also reports an input that is returned to a pool of the program, which gives it to other work before
    the replay; memory of the host that a captured copy reads is such an input, too.

    ## Why is this bad
    A graph holds addresses, not tensors. A replay reads the captured memory even if the name refers to another tensor by then: after an
    assignment it computes from the old values. Freed memory belongs to the next allocation, and the replay reads the values of its next
    owner. No error is raised in either case.

    ## Example
    ```python
    static = torch.zeros(1024, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = static * 2
    for batch in batches:
        static = batch.cuda()
        graph.replay()
    ```

    ## Use instead
    ```python
    static = torch.zeros(1024, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = static * 2
    for batch in batches:
        static.copy_(batch)
        graph.replay()
    ```

    ## When it is fine
    Memory that PyTorch allocates inside the capture belongs to the graph's private pool and lives as long as the graph (CuPy has no such
    pool). Gradients may be freed where the step of the optimizer is captured, too. A name may be assigned freely after the last replay,
    before a new capture, or where another name keeps the tensor and new values are copied into it. Callables of
    ``make_graphed_callables`` copy their inputs.

    ## Verify
    The snippet assigns or drops the input between capture and replay, and reads the result: it is that of the old tensor, or of the
    block's next owner.

    ## References
    - PyTorch, CUDA semantics, CUDA graphs (replays read and write the captured addresses), and its graph memory management
    - PyTorch, ``torch.cuda.graph``, ``check_input_liveness``, which raises an error at a replay where inputs are gone
    - CUDA Programming Guide, CUDA Graphs, memory of kernel and copy nodes
    """

    code = "SL034"
    name = "graph-input-replaced"
    category = Category.RACE

    def report(self, lost: Operation, kind: str, spans: tuple[Span | None, Span, Span, Span]) -> Finding:
        """A lost input, as a finding. ``spans``: where it is lost (None: at the end of a function), the capture, its read, the replay."""
        gone, capture, read, replay = spans
        trail = [Step("capture begins here", capture)]
        if read != lost.span:
            trail.append(Step("the capture reads the tensor here", read))
        if gone is not None and gone != lost.span:
            trail.append(Step(_STEPS[kind], gone))
        trail.append(Step("this replay reads the captured memory", replay))
        return self.finding(lost, _MESSAGES[kind], trail=tuple(trail), help=_HELP[kind], facts={"kind": kind, "api": lost.api})
