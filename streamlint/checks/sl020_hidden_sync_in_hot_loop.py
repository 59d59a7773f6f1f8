"""SL020 hidden-sync-in-hot-loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.interpreter.facts import FileFacts
from streamlint.interpreter.trace import Trace, round_trail
from streamlint.operations import MADE_ON_HOST, HostWait, Operation


class HiddenSyncInHotLoop(Check):
    """A value is fetched from the device in each step of a training loop, though nothing in the step needs it.

    ## What it does
    Reports what makes the host wait without saying so (``item()``, ``float()``, ``cpu()``, ``tolist()``, ``print``, ``nonzero``, a
    constant that is uploaded again, a tensor where ``add(alpha=)``, ``addcmul(value=)`` or ``masked_fill`` need a number) in each round of
    a loop that trains, where the value comes from the loss, the model's output, parameters, gradients or a batch that was moved, and where
    it only goes into logs, sums, text or containers. A loop trains if its body, through calls in view, runs a backward pass or steps an
    optimizer. Steps that a framework calls (``training_step`` of a LightningModule, ``compute_loss`` of a Trainer) and the ``forward`` of
    losses and layers are looked at with ``hidden-sync = "all-loops"``.

    ## Why is this bad
    The host stands still until the GPU has done all the work of the step, and the GPU then stands still until the host has issued the next.
    The second ``item()`` of a step costs little, the first one costs the overlap.

    ## Example
    ```python
    total = 0.0
    for inputs, targets in loader:
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(total / len(loader))
    ```

    ## Use instead
    ```python
    total = 0.0
    for inputs, targets in loader:
        loss = torch.nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
    print(float(total) / len(loader))
    ```

    ## When it is fine
    Values that the step needs (a check for NaN, an early stop, a learning rate that adapts, a size), reads behind a condition that is
    rarely true, a read right behind or right before another wait that has to stay (nothing is queued in between, so it costs nothing),
    values on the CPU, loops that evaluate, and code that measures or tests. A loop over the cases that stand in the source, or over what
    makes the leaves whose gradients it reads, only tries something out; one over pieces that are one by default is no round.

    Noise and zeros that are made on the host and then uploaded (``torch.randn(n).to(device)``) are told with ``evidence = "possible"``
    alone: some want the numbers of the host's generator.

    ## Verify
    A gate holds the stream shut: the step with the read returns only when the gate opens, the step without it at once.

    ## References
    - PyTorch performance tuning guide, "Avoid unnecessary CPU-GPU synchronization"
    - ``torch.cuda.set_sync_debug_mode``, which reports most of these calls as they happen
    """

    code = "SL020"
    name = "hidden-sync-in-hot-loop"
    category = Category.STALL
    default = "on"
    rests_on = ("d2h-sync-waits", "h2d-pageable-sync-waits")
    in_training = True
    needs = (
        (
            (
                "item(",
                "tolist(",
                ".cpu(",
                "numpy(",
                "float(",
                "int(",
                "print(",
                "format(",
                "{",
                "[",
                "nonzero",
                "unique",
                "masked_select",
                "tensor(",
                ".to(",
                "bool(",
                "if ",
                "alpha=",
                "value=",
                "masked_fill",
            ),
        ),
    )
    looks_at = (HostWait,)

    def on_operation(self, operation: Operation, path: Trace) -> Iterator[Finding]:
        if not isinstance(operation, HostWait) or operation.what in ("device", "cache") or operation.loop is None:
            return
        if path.is_idle(operation) or path.is_refused(operation):
            return
        yield self.finding(
            operation,
            self._message(operation),
            shown=operation.origin != MADE_ON_HOST,
            trail=round_trail(operation, operation.loop),
            help=self._help(operation),
            facts={"api": operation.name, "what": operation.what, "origin": operation.origin},
        )

    def fold(self, findings: list[Finding], facts: FileFacts) -> list[Finding]:
        """One finding a loop: the second read of a step costs little."""
        loops: dict[Span, list[Finding]] = {}
        for finding in findings:
            loops.setdefault(finding.trail[0].span, []).append(finding)
        return [self._joined(group) for group in loops.values()]

    def _joined(self, group: list[Finding]) -> Finding:
        first, *others = sorted(group, key=lambda finding: (not finding.shown, _place_in_loop(finding)))
        known = {first.span, *(step.span for step in first.trail)}
        more = [Step("read in the same round" if f.shown else "uploaded in the same round", f.span) for f in others if f.span not in known]
        return replace(first, trail=(*first.trail, *more))

    def _message(self, wait: HostWait) -> str:
        word = wait.name.rpartition(".")[2]
        if wait.origin == MADE_ON_HOST:
            return f"made on the host and uploaded in each {wait.round}: the host waits for the copy if the model is on a GPU"
        if wait.what == "upload" and wait.origin in ("a size", "a list of tensors"):
            return f"{wait.origin} is uploaded in each {wait.round}: the host waits for the copy if the model is on a GPU"
        if wait.what == "upload":
            return f"a constant is uploaded again in each {wait.round}: the host waits for the copy if the model is on a GPU"
        if wait.what == "size" and word in ("indexing", "slicing"):
            return f"{word} with a value on the device makes the host wait for it in each {wait.round}"
        if wait.what == "size":
            return f"{word} makes the host wait for the device in each {wait.round}: the size of its result is fetched"
        if wait.what == "number":
            return f"{word} needs a number: the host waits for {wait.origin} in each {wait.round} if the model is on a GPU"
        return f"{word} makes the host wait for {wait.origin} in each {wait.round} if the model is on a GPU"

    def _help(self, wait: HostWait) -> str:
        if wait.what == "upload" and wait.origin == "a size":
            return "use the number as it is, or torch.full((), n, device=...), which fills on the device"
        if wait.what == "upload" and wait.origin == "a list of tensors":
            return "join them where they are: torch.stack, torch.cat, expand"
        if wait.origin == MADE_ON_HOST:
            return "give the factory the device: torch.randn(..., device=...) draws, fills and counts there"
        if wait.what == "upload":
            return "make the tensor once before the loop"
        if wait.what == "size" and wait.name in ("indexing", "slicing"):
            return "keep the table where its index is, or the index on the host; weigh with a mask in place of selecting by it"
        if wait.what == "size":
            return "use a form whose size is known beforehand: a mask, torch.where, topk, nonzero_static"
        if wait.what == "number":
            return "this argument has to be a number, and is fetched from the device: compute with the tensor (x - y * a, torch.where)"
        if wait.what == "cast" and wait.name.rpartition(".")[2] in ("max", "min"):
            return "compare where the tensor is: torch.clamp, torch.maximum, torch.minimum; the result stays a tensor"
        return "keep the detached tensor, add up on the device, and fetch it once at the next log line or behind the loop"


def _place_in_loop(finding: Finding) -> Span:
    """Where the body of the loop comes to the read: at itself, or at the call that leads there."""
    return finding.trail[1].span if len(finding.trail) > 1 else finding.span
