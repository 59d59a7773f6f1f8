"""What an unknown value can still be, by the comparisons with constants that came out on this path: ``mode == "a"`` excludes ``"b"``."""

from __future__ import annotations

import re
from collections.abc import Hashable

from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Const, Opaque, Series, Value
from streamlint.record import record


@record(frozen=True, slots=True)
class Range:
    """``among`` holds all that a value can be (None: anything), ``never`` what it is not."""

    among: frozenset[Hashable] | None = None
    never: frozenset[Hashable] = frozenset()

    def within(self, constants: frozenset[Hashable]) -> bool | None:
        """Whether the value is one of these; None where it may be or not."""
        left = None if self.among is None else self.among - self.never
        if left is not None and left and left <= constants:
            return True
        if constants <= self.never or (left is not None and not left & constants):
            return False
        return None

    def told(self, constants: frozenset[Hashable], within: bool) -> Range:
        """The same with one more answer."""
        if not within:
            return Range(self.among, self.never | constants)
        return Range(constants if self.among is None else self.among & constants, self.never)


def known(run: Run, op: str, left: Value, right: Value) -> bool | None:
    """What earlier answers say of a comparison; None where they leave it open."""
    asked = _asked(op, left, right)
    if asked is None or (held := run.ranges.get(asked[0])) is None:
        return None
    within = held.within(asked[1])
    return None if within is None else within != op.startswith(("!", "not", "is not"))


def learn(run: Run, op: str, left: Value, right: Value, answer: bool) -> None:
    """Keep how a comparison came out."""
    if (asked := _asked(op, left, right)) is not None:
        term, constants = asked
        run.ranges[term] = run.ranges.get(term, Range()).told(constants, answer != op.startswith(("!", "not", "is not")))


def _asked(op: str, left: Value, right: Value) -> tuple[str, frozenset[Hashable]] | None:
    """The unknown value of a comparison and the constants that it is compared with."""
    if op in ("in", "not in"):
        if isinstance(left, Opaque) and isinstance(right, Series) and right.items is not None:
            items = [item.value for item in right.items if isinstance(item, Const) and isinstance(item.value, Hashable)]
            return (left.term, frozenset(items)) if items and len(items) == len(right.items) else None
        return None
    if op not in ("==", "!=", "is", "is not"):
        return None
    if isinstance(left, Const):
        left, right = right, left
    if isinstance(left, Opaque) and _CHANGES.search(left.term):
        return None
    if isinstance(left, Opaque) and isinstance(right, Const) and isinstance(right.value, Hashable):
        return left.term, frozenset([right.value])
    return None


# A list that grew, and a view of another shape, are still called the same.
_CHANGES = re.compile(r"^len\(|\.(?:shape|ndim|dtype|size)\b")
