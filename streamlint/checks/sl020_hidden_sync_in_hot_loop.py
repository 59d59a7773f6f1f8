"""SL020 hidden-sync-in-hot-loop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.findings.operations import DRAWN, FILLED, HostWait
from streamlint.support.records import replace

_ONCE = "create the tensor once before the loop"
# What to do about a wait: the first advice whose case it is.
_ADVICE: tuple[tuple[dict[str, tuple[str, ...]], str], ...] = (
    (
        {"what": ("upload",), "origin": ("a size",)},
        "pass the number itself, or use torch.full((), n, device=...), which fills on the device",
    ),
    ({"what": ("upload",), "origin": ("a list of tensors",)}, "join the tensors on the device: torch.stack, torch.cat, expand"),
    ({"what": ("upload",), "origin": ("a constant",)}, _ONCE),
    (
        {"what": ("upload",), "name": ("indexing",)},
        "make the index on the device (torch.arange(n, device=...)), or upload it once for all that it selects from",
    ),
    ({"origin": (DRAWN,)}, "pass the device to the factory: torch.randn(..., device=...) computes on the device"),
    ({"origin": (FILLED,)}, "pass the device to the factory: torch.zeros(..., device=...) fills on the device, with no copy"),
    ({"what": ("upload",)}, _ONCE),
    (
        {"what": ("size",), "name": ("indexing", "slicing")},
        "keep the table on the device of its index, or the index on the host; multiply by a mask instead of selecting with it",
    ),
    ({"what": ("size",)}, "use an operation with a known result size: a mask, torch.where, topk"),
    ({"what": ("fetch",)}, "compute it once for several steps, or outside of the loop; every form of it waits"),
    (
        {"what": ("cast",), "origin": ("the model's input",)},
        "fetch the numbers once before the loop (values.tolist()), and compare those",
    ),
    (
        {"what": ("number",)},
        "this argument must be a number and is copied to the host; compute with the tensor (x - y * a, torch.where)",
    ),
    (
        {"what": ("cast",), "word": ("max", "min")},
        "compare on the device: torch.clamp, torch.maximum, torch.minimum; the result stays a tensor",
    ),
    ({"what": ("cast",), "word": ("bool",)}, "choose on the device (torch.where, a mask), or test at the next log line or after the loop"),
    ({}, "keep the detached tensor, accumulate on the device, and read it once at the next log line or after the loop"),
)


class InRound(NamedTuple):
    """A finding of a loop's round: whether calls are known to lead to it, whether it asks if a number is one, whether it hangs on a choice
    of the program, and the places of the findings right behind which it stands."""

    finding: Finding
    is_sure: bool
    asks_odd: bool
    is_chosen: bool
    behind: frozenset[Span]

    @property
    def standing(self) -> tuple[bool, ...]:
        """What decides which finding of a round is reported; the least one is."""
        return not self.finding.shown, not self.is_sure, self.asks_odd, self.is_chosen, _is_aside(self.finding)


class HiddenSyncInHotLoop(Check):
    """A device value is read on every step of a training loop, though the step does not need it.

    ## What it does
    Reports implicit host synchronization on every iteration of a training loop: ``item()``, ``float()``, ``cpu()``, ``tolist()``,
    ``print``, ``nonzero``, the repeated upload of a constant or of a tensor that the host fills (``zeros``, ``eye``, ``arange``), or a
    tensor in place of the number for ``add(alpha=)``, ``addcmul(value=)`` or ``masked_fill``, and calls that look at a value themselves
    (``torch.linalg.cholesky`` at its status, ``one_hot`` without ``num_classes``). The value comes from the loss, the model's
    output, parameters, gradients or a moved batch, and only reaches logs, sums, text or containers. Numbers that are fetched from one
    gradient after the other are reported even if the step needs their sum: one read of the sum gives it.

    A loop is a training loop if its body, through known calls, runs a backward pass or steps an optimizer. A method that a framework
    calls in each step counts as well, where its class is shown to derive from the framework's own (``training_step`` of a
    LightningModule, ``compute_loss`` of a Trainer). Loops that decode, denoise or serve, those that compute with CuPy arrays, the
    ``forward`` of losses and layers, and functions that work on all gradients, or that are part of a step and called by another program,
    are included with ``hidden-sync = "all-loops"``.

    ## Why is this bad
    The host blocks until the GPU has completed all work of the step, and the GPU then idles until the host has issued the next work.
    The second ``item()`` of a step costs little; the first one costs the overlap.

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
    Values that the step needs (a check for NaN, an early stop, an adaptive learning rate, a size), reads under a condition that is
    rarely true, a read next to another wait that has to stay (no work is queued in between, so it costs nothing), values on the CPU,
    evaluation loops, benchmarks and tests. Loops over literal test cases, gradient checks and single-chunk loops are not treated as
    training loops. A read after the step of an enabled ``GradScaler`` costs nothing either: the step has waited for the gradients. On an
    H200 it adds 0.3 % to a step of convolutions, after a plain optimizer 3.5 %, before the backward pass 7 %
    (``benchmarks/reads_in_steps.json``).

    Random numbers that are drawn on the host and then uploaded (``torch.randn(n).to(device)``) are reported only with
    ``evidence = "possible"``, because some programs need the numbers of the host's generator. A tensor without random numbers
    (``torch.zeros(n).to(device)``) is the same wherever it is made, unless data is put into it before the upload.

    ## Verify
    A gate blocks the stream: the step with the read returns only after the gate opens, the step without it returns at once.

    ## References
    - PyTorch performance tuning guide, "Avoid unnecessary CPU-GPU synchronization"
    - ``torch.cuda.set_sync_debug_mode``, which reports most of these calls as they happen
    """

    code = "SL020"
    name = "hidden-sync-in-hot-loop"
    category = Category.STALL
    default = "on"
    rests_on = ("d2h-sync-waits", "h2d-pageable-sync-waits")

    def report(self, operation: HostWait, trail: tuple[Step, ...]) -> Finding:
        """A wait as a finding."""
        found = self.finding(
            operation,
            self._message(operation),
            trail=trail,
            help=self._help(operation),
            facts={"api": operation.name, "what": operation.what, "origin": operation.origin},
        )
        return replace(found, shown=operation.origin != DRAWN)

    def by_loop(self, findings: Iterable[InRound]) -> list[Finding]:
        """One finding a loop: the second read of a step costs little. One that calls are known to lead to stands first, for of the others
        nobody knows whether this loop has them; then what does not ask whether a number is one, what no option of the program leaves out,
        a read before what is filled, which is mended on its own, and the wait that costs before one that comes right behind it."""
        loops: dict[Span, list[InRound]] = {}
        for one in findings:
            loops.setdefault(one.finding.trail[0].span, []).append(one)
        return [self._joined(group) for group in loops.values()]

    def _joined(self, group: list[InRound]) -> Finding:
        places = {(one.finding.span, one.standing) for one in group}

        def order(one: InRound) -> tuple[object, ...]:
            return *one.standing, any((span, one.standing) in places for span in one.behind), _place_in_loop(one.finding)

        first, *others = [one.finding for one in sorted(group, key=order)]
        known = {first.span, *(step.span for step in first.trail)}
        more = [
            Step("uploaded in the same iteration" if f.facts["origin"] in (DRAWN, FILLED) else "read in the same iteration", f.span)
            for f in others
            if f.span not in known
        ]
        return replace(first, trail=(*first.trail, *more))

    def _message(self, wait: HostWait) -> str:
        word = wait.word
        if wait.what == "upload":
            known = (DRAWN, FILLED, "a size", "a list of tensors", "an index")
            data = wait.origin if wait.origin in known else "a constant"
            return f"upload of {data} each {wait.round}; the host waits (if on CUDA)"
        if wait.what == "size" and word in ("indexing", "slicing"):
            return f"{word} with a device value each {wait.round}; the host waits for the value"
        if wait.what == "size":
            return f"{word} with a data-dependent size each {wait.round}; the host waits for the device"
        return f"read of {wait.origin} ({word}) each {wait.round}; the host waits (if on CUDA)"

    def _help(self, wait: HostWait) -> str:
        return wait.instead or next(
            advice for case, advice in _ADVICE if all(getattr(wait, name) in values for name, values in case.items())
        )


def _is_aside(finding: Finding) -> bool:
    """Whether it is mended on its own: what is filled, and what a call looks at by itself."""
    return finding.facts["origin"] == FILLED or finding.facts["what"] == "fetch"


def _place_in_loop(finding: Finding) -> Span:
    """Where the body of the loop comes to the read: at itself, or at the call that leads there."""
    return finding.trail[1].span if len(finding.trail) > 1 else finding.span
