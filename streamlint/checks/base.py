"""What every check is: a documented class that turns operations of a path into findings. A check imports this, operations and map facts."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, ClassVar

from streamlint.findings import Category, Finding, Span, Step
from streamlint.operations import Conflict, Operation

if TYPE_CHECKING:
    from streamlint.interpreter.facts import FileFacts
    from streamlint.interpreter.trace import Trace

__all__ = ["HEADINGS", "Category", "Check", "registry"]

# The headings of a check's docstring, in this order; `Example` to `Verify` are rendered on its page.
HEADINGS = (
    "What it does",
    "Why is this bad",
    "Example",
    "Use instead",
    "When it is fine",
    "Verify",
    "References",
)


class Check:
    """One rule. Subclasses set the class attributes and override the handlers that they need."""

    code: ClassVar[str]
    name: ClassVar[str]
    category: ClassVar[Category]
    default: ClassVar[str] = "on"  # on, preview, off
    # The facts of the CUDA model, by name, that its claim rests on: its page shows them with their strength.
    rests_on: ClassVar[tuple[str, ...]] = ()
    # A function is a root for this check only where it trains: where it holds a hot loop, or is the step of an optimizer.
    # It asks who holds Python's GIL: what C++ binds to Python is a root for it, run as Python calls it.
    from_python: ClassVar[bool] = False

    # The kinds of operations that `on_operation` is called for. Empty: all.
    looks_at: ClassVar[tuple[type[Operation], ...]] = ()

    # The literals of which one stands where code asks for an operation that it begins with (``begins_with``). Empty: any code may.
    signs: ClassVar[tuple[str, ...]] = ()

    def begins_with(self, operation: Operation) -> bool:
        """Whether a finding may rest on this operation. Where no path shows one, only arms that hold a sign are run for this check."""
        return True

    def on_operation(self, operation: Operation, path: Trace) -> Iterator[Finding]:
        """Called for each operation of a finished path that is among `looks_at`, in order."""
        return iter(())

    def on_conflict(self, conflict: Conflict, path: Trace) -> Iterator[Finding]:
        """Called for each pair of accesses that a path left unordered."""
        return iter(())

    def on_map(self, facts: FileFacts) -> Iterator[Finding]:
        """Called once a file, with facts that need no order."""
        return iter(())

    def fold(self, findings: list[Finding], facts: FileFacts) -> list[Finding]:
        """Called once a file with the findings of this check in it, in order; may join them."""
        return findings

    def finding(
        self,
        operation: Operation,
        message: str,
        *,
        trail: Iterable[Step] = (),
        help: str = "",
        span: Span | None = None,
        category: Category | None = None,
        facts: dict[str, object] | None = None,
        conflict: Conflict | None = None,
        shown: bool = True,
    ) -> Finding:
        """A finding of this rule at the operation, or at ``span`` where the place is a caller's choice.

        ``conflict`` is the pair of accesses that it tells of: a finding that names the cause of one of them replaces it.
        What is not ``shown`` to cost or break something here is told only where it is asked for (``evidence = "possible"``).
        """
        return Finding(
            code=self.code,
            name=self.name,
            category=category or self.category,
            message=message,
            span=span or operation.span,
            trail=tuple(dict.fromkeys(trail)),  # what two rounds of a loop share is told once
            help=help,
            facts=facts or {},
            qualname=operation.context.function,
            pairs=() if conflict is None else ((conflict.first.span, conflict.second.span),),
            shown=shown,
        )

    def finding_at(self, span: Span, message: str, *, trail: Iterable[Step] = (), help: str = "", qualname: str = "") -> Finding:
        """A finding that rests on no operation of a path."""
        return Finding(
            code=self.code,
            name=self.name,
            category=self.category,
            message=message,
            span=span,
            trail=tuple(trail),
            help=help,
            facts={},
            qualname=qualname,
        )

    @classmethod
    def documentation(cls) -> dict[str, str]:
        """The docstring by heading; the text before the first heading is under ``""``."""
        text = inspect.cleandoc(cls.__doc__ or "")
        parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
        sections = {"": parts[0].strip()}
        sections.update({parts[i]: parts[i + 1].strip() for i in range(1, len(parts) - 1, 2)})
        return sections


@functools.cache
def registry() -> dict[str, type[Check]]:
    """All checks by code: the modules of this folder whose names start with ``sl`` are the registry."""
    found: dict[str, type[Check]] = {}
    package = importlib.import_module("streamlint.checks")
    for module in pkgutil.iter_modules(package.__path__):
        if re.match(r"sl\d{3}_", module.name):
            loaded = importlib.import_module(f"streamlint.checks.{module.name}")
            for value in vars(loaded).values():
                if isinstance(value, type) and issubclass(value, Check) and value.__module__ == loaded.__name__:
                    found[value.code] = value
    return dict(sorted(found.items()))
