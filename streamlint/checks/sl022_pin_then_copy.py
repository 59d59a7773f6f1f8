"""SL022 pin-then-copy."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.interpreter.trace import Trace, is_inside
from streamlint.operations import Alloc, Copy, Direction, HostWrite, Memory, Operation


class PinThenCopy(Check):
    """A tensor is pinned for a single copy, which costs more than it saves.

    ## What it does
    Reports ``x.pin_memory().to(device)`` in a loop, in ``__call__`` or in a module's ``forward``, if the pinned tensor is new and
    serves only this copy, on the computing thread. The rule is off by default, and silent above 64 KB: large tensors, whose pinned
    blocks are cached, were measured to copy faster this way than without pinning.

    ## Why is this bad
    ``pin_memory()`` copies the tensor on the host and blocks until the copy completes. Only then does the copy to the device start. For
    a small tensor that is new on every step, this takes twice as long as a copy of the pageable tensor, measured up to 16 KB on an
    H200, and 1.4 times as long at 64 KB; from 1 MB on, pinning was faster.

    ## Example
    ```python
    for ids in documents:
        tokens = torch.tensor(ids).pin_memory().to("cuda", non_blocking=True)
        rows.append(encoder(tokens))
    ```

    ## Use instead
    ```python
    for ids in documents:
        tokens = torch.tensor(ids).to("cuda", non_blocking=True)
        rows.append(encoder(tokens))
    ```

    ## When it is fine
    Pinning once and copying often, pinning in another thread (``DataLoader(pin_memory=True)`` does), large tensors, and code that
    prefers a second copy to a wait for the stream.

    ## Verify
    Both forms run alternately with a warm allocator; the ratio of the pairs is the verdict.

    ## References
    - PyTorch tutorial "A guide on good usage of non_blocking and pin_memory()"
    """

    code = "SL022"
    name = "pin-then-copy"
    category = Category.STALL
    default = "off"
    signs = ("pin",)
    looks_at = (Copy,)

    def begins_with(self, operation: Operation) -> bool:
        made = operation.src.storage.allocated if isinstance(operation, Copy) and operation.src is not None else operation
        return isinstance(made, Alloc) and _is_pinned_by_call(made)

    def on_operation(self, operation: Operation, path: Trace) -> Iterator[Finding]:
        if not isinstance(operation, Copy) or operation.direction is not Direction.H2D or operation.src is None:
            return
        storage = operation.src.storage
        pinned = storage.allocated
        if not isinstance(pinned, Alloc) or not self._fresh(pinned, operation, path):
            return
        if operation.nbytes is not None and not operation.known_small:
            return
        yield self.told(operation, (*pinned.trail[:1], Step("pinned here", pinned.span)))

    def told(self, copy: Copy, trail: tuple[Step, ...]) -> Finding:
        """A copy of what was pinned for it alone, as a finding."""
        return self.finding(
            copy,
            "tensor pinned for a single copy; pinning copies it on the host and blocks",
            trail=trail,
            help="copy the pageable tensor, or pin one buffer once and refill it",
            facts={"bytes": copy.nbytes, "api": copy.api},
        )

    def _fresh(self, pinned: Alloc, copy: Copy, path: Trace) -> bool:
        """Pinned by a call in the same round of a loop, for no other copy, and not on a thread of its own."""
        here, there = copy.context, pinned.context
        if not _is_pinned_by_call(pinned) or not pinned.trail:
            return False
        if here.loops != there.loops or here.setup or here.callback is not None:
            return False
        made = pinned.trail[0].span
        if not here.loops and not self._in_each_call(copy, made, path):
            return False  # what is done once may cost what it likes
        if here.loops and is_inside(pinned.span, there.loops[-1].span) and not is_inside(made, there.loops[-1].span):
            return False
        if any(name.rpartition(".")[2] in path.facts.threads.handed for name in here.functions):
            return False
        storage = copy.src.storage if copy.src is not None else None
        uses = [op for op in path.operations if op is not copy and isinstance(op, Copy | HostWrite) and _touches(op, storage)]
        return not uses

    def _in_each_call(self, copy: Copy, made: Span, path: Trace) -> bool:
        """Whether an object is called for it, which makes the tensor anew: it was made to be called again and again."""
        function = copy.context.functions[-1] if copy.context.functions else ""
        called = function.endswith(".__call__") or path.facts.is_stepwise(function)
        return called and path.facts.is_in(function, made)


def _is_pinned_by_call(made: Alloc) -> bool:
    return made.name.endswith("pin_memory") and made.memory is Memory.PINNED


def _touches(operation: Copy | HostWrite, storage: object) -> bool:
    buffers = (operation.src, operation.dst) if isinstance(operation, Copy) else (operation.buffer,)
    return any(buffer is not None and buffer.storage is storage for buffer in buffers)
