"""What every check is: a documented class with the words of its findings. A check imports this, operations and findings."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
import textwrap
from collections.abc import Iterable
from typing import ClassVar

from streamlint.findings import Category, Finding, Span, Step
from streamlint.findings.operations import Conflict, Operation

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
    """One rule. Subclasses set the class attributes, and build findings by methods whose names begin with ``report``."""

    code: ClassVar[str]
    name: ClassVar[str]
    category: ClassVar[Category]
    default: ClassVar[str] = "on"  # on, preview, off
    languages: ClassVar[tuple[str, ...]] = ("Python", "C++")  # in which it finds something; also Cython
    fixes: ClassVar[tuple[str, ...]] = ()  # safe, unsafe: the fixes that `streamlint/fix` has for it
    # The facts of the CUDA model, by name, that its claim rests on: its page shows them with their strength.
    rests_on: ClassVar[tuple[str, ...]] = ()
    # It asks who holds Python's GIL where Python calls C++.
    from_python: ClassVar[bool] = False

    def finding(
        self,
        operation: Operation,
        message: str,
        *,
        trail: Iterable[Step] = (),
        help: str = "",
        span: Span | None = None,
        facts: dict[str, object] | None = None,
        conflict: Conflict | None = None,
    ) -> Finding:
        """A finding of this rule at the operation, or at ``span`` where the place is a caller's choice.

        ``conflict`` is the pair of accesses that it reports: a finding that names the cause of one of them replaces it.
        """
        return Finding(
            code=self.code,
            name=self.name,
            category=self.category,
            message=message,
            span=span or operation.span,
            trail=tuple(dict.fromkeys(trail)),  # a step that two rounds of a loop share is listed once
            help=help,
            facts=facts or {},
            qualname=operation.context.function,
            pairs=() if conflict is None else ((conflict.first.span, conflict.second.span),),
        )

    def finding_at(self, span: Span, message: str, *, trail: Iterable[Step] = (), help: str = "", qualname: str = "") -> Finding:
        """A finding that rests on no operation."""
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
        first, _, rest = (cls.__doc__ or "").partition("\n")
        text = f"{first}\n{textwrap.dedent(rest)}"
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
