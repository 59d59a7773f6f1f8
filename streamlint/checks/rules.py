"""All rules that a user can name: the checks, and those about files, comments and declarations."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from streamlint.checks.base import Check, registry
from streamlint.checks.catalog import CONTRADICTED, UNREADABLE, UNUSED, code_of
from streamlint.findings import Category, Finding, Span, Step

__all__ = ["UNREADABLE", "UNUSED", "ContradictedDeclaration", "UnreadableSource", "UnusedSuppression", "all_rules", "code_of"]


class UnreadableSource(Check):
    """A file, or a whole function, could not be read or parsed.

    ## What it does

    Names the file, the place and the reason. It is reported for every selection of rules, like a syntax error in other linters; to ignore
    it, name it (`ignore = ["SL000"]`, or `per-file-ignores`). Parts of a C++ function that could not be read are listed by
    `--coverage` only.

    ## Why is this bad

    Code that was not read was not checked: the absence of findings says nothing about it.

    ## When it is fine

    Files that are not source code, such as templates with placeholders. Exclude them.
    """

    code, name, category, default = UNREADABLE, "unreadable-source", Category.PORTABILITY, "off"
    languages = ("Python", "Cython", "C++")


class UnusedSuppression(Check):
    """A suppression comment hides nothing.

    ## What it does

    Reports the codes of `streamlint: ignore[…]`, `streamlint: ignore-file[…]` and `noqa: SL…` comments that hid no finding in this run.
    Only rules that ran are judged. Off unless it is selected by name or code.

    ## Why is this bad

    The comment warns the reader of a hazard that is gone, and it would hide the next one in the same statement.

    ## When it is fine

    Where another configuration of the same code still needs the comment.
    """

    code, name, category, default = UNUSED, "unused-suppression", Category.PORTABILITY, "off"
    languages = ("Python", "Cython", "C++")


class ContradictedDeclaration(Check):
    """The program contradicts a declaration of memory or of a stream.

    ## What it does

    Compares declarations in code (`Annotated[torch.Tensor, "pinned"]`, `# streamlint: pinned`) with the arguments of calls, and with values
    that are assigned, stored and returned. Known facts take precedence, and the other rules follow them; a declaration only replaces
    unknown ones.

    ## Why is this bad

    For values from unknown code, the other rules rely on the declaration. A wrong one hides findings or causes false ones.

    ## When it is fine

    In code that never runs with the declared function. Suppress the finding there.
    """

    code, name, category, default = CONTRADICTED, "contradicted-declaration", Category.PORTABILITY, "on"

    def report(self, at: Span, what: str, known: str, declared: str, trail: Iterable[Step], qualname: str) -> Finding:
        """A contradiction as a finding: what the value is for, and what it is known and declared to be, in words."""
        message = f"{what} is {known}, but {declared} is declared"
        return self.finding_at(at, message, trail=trail, help="correct the declaration, or what is given", qualname=qualname)


_OWN = (UnreadableSource, UnusedSuppression, ContradictedDeclaration)


@functools.cache
def all_rules() -> dict[str, type[Check]]:
    """Every rule by code, in the order of codes."""
    return dict(sorted({**registry(), **{one.code: one for one in _OWN}}.items()))
