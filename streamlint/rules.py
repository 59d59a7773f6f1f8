"""All rules that a user can name: the checks, and the two that the linter itself reports."""

from __future__ import annotations

import functools

from streamlint.catalog import UNREADABLE, UNUSED, code_of
from streamlint.checks.base import Check, registry
from streamlint.findings import Category

__all__ = ["UNREADABLE", "UNUSED", "UnreadableSource", "UnusedSuppression", "all_rules", "code_of"]


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


@functools.cache
def all_rules() -> dict[str, type[Check]]:
    """Every rule by code, in the order of codes."""
    return dict(sorted({**registry(), UNREADABLE: UnreadableSource, UNUSED: UnusedSuppression}.items()))
