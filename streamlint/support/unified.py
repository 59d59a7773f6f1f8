"""What differs between two texts, as a unified diff, in time that is linear where most lines differ by their text.

`difflib` looks for the longest stretch that two texts share, and for the next one beside it: the square of the number of changes. So the
lines that stand once in each text are paired first, and it compares only what lies between two of them.
"""

from __future__ import annotations

import collections
import difflib
import itertools
from bisect import bisect_left
from collections.abc import Iterator, Sequence

Step = tuple[str, int, int, int, int]  # of `difflib.SequenceMatcher.get_opcodes`
CONTEXT = 3  # lines


class _Known(difflib.SequenceMatcher[str]):
    """Groups steps that are known."""

    def __init__(self, known: list[Step]) -> None:
        super().__init__()
        self._known = known

    def get_opcodes(self) -> list[Step]:  # type: ignore[override]  # a plain tuple is the same one
        return self._known


def unified(old: Sequence[str], new: Sequence[str], old_name: str, new_name: str) -> Iterator[str]:
    """The lines of a patch, each with the end that it has; nothing where both are the same."""
    groups = _Known(steps(old, new)).get_grouped_opcodes(CONTEXT) if old != new else ()
    for number, group in enumerate(groups):
        if number == 0:
            yield from (f"--- {old_name}\n", f"+++ {new_name}\n")
        (_, begin, _, new_begin, _), (_, _, end, _, new_end) = group[0], group[-1]
        yield f"@@ -{_rows(begin, end)} +{_rows(new_begin, new_end)} @@\n"
        for kind, i, i_end, j, j_end in group:
            if kind == "equal":
                yield from (f" {line}" for line in old[i:i_end])
                continue
            yield from (f"-{line}" for line in old[i:i_end])
            yield from (f"+{line}" for line in new[j:j_end])


def steps(old: Sequence[str], new: Sequence[str]) -> list[Step]:
    """How to come from one to the other."""
    found: list[Step] = []
    ends = [(-1, -1), *_pairs(old, new), (len(old), len(new))]
    for (i, j), (i_end, j_end) in itertools.pairwise(ends):
        if i >= 0:
            _add(found, ("equal", i, i + 1, j, j + 1))
        i, j = i + 1, j + 1
        for kind, a, a_end, b, b_end in difflib.SequenceMatcher(None, old[i:i_end], new[j:j_end]).get_opcodes():
            _add(found, (kind, i + a, i + a_end, j + b, j + b_end))
    return found


def _add(found: list[Step], step: Step) -> None:
    if found and found[-1][0] == step[0] == "equal":
        step = ("equal", found[-1][1], step[2], found.pop()[3], step[4])
    found.append(step)


def _pairs(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """The lines that stand once in each, in an order that both have: as many as there can be."""
    counts, new_counts = collections.Counter(old), collections.Counter(new)
    at = {line: j for j, line in enumerate(new) if new_counts[line] == 1}
    once = [(i, at[line]) for i, line in enumerate(old) if line in at and counts[line] == 1]
    lasts: list[int] = []  # for each length, the least place at which as many pairs in order can end
    before: list[int] = []
    ending: list[int] = []
    for number, (_, j) in enumerate(once):
        length = bisect_left(lasts, j)
        lasts[length : length + 1] = [j]
        before.append(ending[length - 1] if length else -1)
        ending[length : length + 1] = [number]
    chosen: list[tuple[int, int]] = []
    number = ending[-1] if ending else -1
    while number >= 0:
        chosen.append(once[number])
        number = before[number]
    return chosen[::-1]


def _rows(begin: int, end: int) -> str:
    """A stretch of lines as patches write it."""
    if end - begin == 1:
        return str(begin + 1)
    return f"{begin + (end > begin)},{end - begin}"
