"""SL022 pin-then-copy."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Step
from streamlint.findings.operations import Copy


class PinThenCopy(Check):
    """A tensor is pinned for a single copy, which costs more than it saves.

    ## What it does
    Reports ``x.pin_memory().to(device)`` in a loop, in a function that a loop calls, in ``__call__`` or in a module's ``forward``, if the
    pinned tensor is new in each iteration and serves only this copy, on the computing thread. The rule is off by default, and silent above
    64 KB: large tensors, whose pinned blocks are cached, were measured to copy faster this way than without pinning.

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
    languages = ("Python",)
    fixes = ("safe", "unsafe")

    def report(self, copy: Copy, trail: tuple[Step, ...]) -> Finding:
        """A copy of what was pinned for it alone, as a finding."""
        return self.finding(
            copy,
            "tensor pinned for a single copy; pinning copies it on the host and blocks",
            trail=trail,
            help="copy the pageable tensor, or pin one buffer once and refill it",
            facts={"bytes": copy.nbytes, "api": copy.api},
        )
