"""What an edit leaves alone: while the user types within one function, the roots that cannot see it keep their findings.

By words and rows, not by understanding: so it is asked only for what is shown between two keys. In a quiet moment everything is run again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from streamlint.findings import Finding, Span
from streamlint.lines import split_lines
from streamlint.program import Class, ClassDef, FunctionDef, Import, Module, functions_of

# What is said of a whole file may hang on such lines: streams, threads, locks, allocators, names that other functions see.
_FAR = re.compile(
    r"cuda|cupy|\bcp\.|numba|tream|vent|pin|lloc|ync|wait|notify|\.put\b|\.set\(|hread|\block|Lock|_lock|acquire|ueue|rocess|[Pp]ool|oader|submit|ctypes|cffi"
    r"|non_blocking|\.to\(|\.cpu\(|\.item\(|backward|global|nonlocal|import|yield|lambda|def |class |@|\"\"\"|'''"
)
_WORD = re.compile(r"\w+")
_BOUND = re.compile(r"(?:^|[;:])([^=:#]+?)(?::[^=]*)?(?:[-+*/|&^%@]|//|\*\*)?=(?!=)|\bfor\b(.*?)\bin\b|\bas\b(.*)")


@dataclass(frozen=True, slots=True)
class Edit:
    """The lines that two texts have in common at their beginning and at their end."""

    first: int  # the first row that may differ
    last: int  # the last row that may differ, in the old text
    moved: int  # by how many rows what stands below moves
    lines: tuple[str, ...]  # old and new, that differ

    @classmethod
    def between(cls, before: str, after: str) -> Edit:
        """The edit that leads from one text to the other."""
        old, new = split_lines(before), split_lines(after)
        most = min(len(old), len(new))
        head = next((at for at in range(most) if old[at] != new[at]), most)
        tail = next((at for at in range(most - head) if old[-1 - at] != new[-1 - at]), most - head)
        return cls(head + 1, len(old) - tail, len(new) - len(old), (*old[head : len(old) - tail], *new[head : len(new) - tail]))

    def row(self, row: int) -> int:
        """Where a row of the old text is in the new one."""
        return row + self.moved if row > self.last else row

    def finding(self, finding: Finding) -> Finding:
        """A finding of the old text at its place in the new one."""
        if not self.moved:
            return finding
        file = finding.span.file

        def span(old: Span) -> Span:
            return replace(old, row=self.row(old.row), end_row=self.row(old.end_row)) if old.file == file else old

        return replace(
            finding,
            span=span(finding.span),
            trail=tuple(replace(step, span=span(step.span)) for step in finding.trail),
            pairs=tuple((span(one), span(two)) for one, two in finding.pairs),
            covers=tuple(map(span, finding.covers)),
        )


def untouched(before: Module, after: Module, edit: Edit) -> Callable[[int], bool] | None:
    """Whether a root that begins at a row of the new text cannot see the edit; None where nothing can be said."""
    if before.language != "python" or before.dialect or before.inline or after.inline or any(map(_FAR.search, edit.lines)):
        return None
    old, new = list(_outlines(before)), list(_outlines(after))
    if [(name, edit.row(first), edit.row(body), edit.row(last)) for name, first, body, last in old] != new:
        return None  # something begins, ends or is called otherwise
    inside = [name for name, _, body, last in old if body <= edit.first <= last and edit.last <= last]
    if not inside:
        return None
    units, words = _units(after), {word for line in edit.lines for word in _WORD.findall(line)}
    row = edit.first
    seen = _seeing(units, [unit for unit in units if unit.first <= row <= unit.last])
    asked = {unit for unit in units if unit.names & words}  # whether somebody calls them may have changed
    return lambda row: any(unit.first <= row <= unit.last and unit not in seen | asked for unit in units)


# Attributes that are bound, or whose value is filled.
_FILLED = re.compile(
    r"\.(\w+)(?:\[[^\]]*\])*(?:\.(?:append|appendleft|add|put|extend|insert|update|setdefault|push)\(|\s*(?:[-+*/|&^%@]|//|\*\*)?=(?!=)|\s*,|\s*:[^=]*=)"
)


@dataclass(frozen=True, slots=True)
class _Unit:
    """A function, a method or a class without any of the module, with what stands above it; or a statement that is neither."""

    first: int
    last: int
    names: frozenset[str]
    words: frozenset[str]


def _units(module: Module) -> list[_Unit]:
    lines, above = split_lines(module.text), 0
    units: list[_Unit] = []
    for statement in module.body:
        last = max(statement.at[2], above + 1)
        if isinstance(statement, ClassDef) and statement.definition.methods:
            units += _methods(lines, above, last, statement.definition)
        elif not isinstance(statement, Import):
            name = statement.function.name if isinstance(statement, FunctionDef) else ""
            name = statement.definition.name if isinstance(statement, ClassDef) else name
            units.append(_unit(lines, above, last, {name} if name else None))
        above = last
    return units


def _methods(lines: list[str], above: int, last: int, definition: Class) -> Iterator[_Unit]:
    """The methods of a class, each with what stands above it; all of them see what the class's head names."""
    found = sorted((f for overloads in definition.methods.values() for f in overloads), key=lambda function: function.at)
    head = frozenset(word for line in lines[above : found[0].at[0]] for word in _WORD.findall(line))
    for number, function in enumerate(found):
        end = last if number == len(found) - 1 else max(function.at[2], above + 1)
        special = {definition.name} if function.name.startswith("__") else set()  # called without being named
        yield _unit(lines, above, end, {function.name} | special, head)
        above = end


def _unit(lines: list[str], above: int, last: int, names: set[str] | None, head: frozenset[str] = frozenset()) -> _Unit:
    text = lines[above:last]
    bound = [attribute for line in text for attribute in _FILLED.findall(line)]
    if names is None:  # what a plain statement binds, or may
        parts = [part for line in text for found in _BOUND.findall(line) for part in found]
        names = {word for part in parts for word in _WORD.findall(part)}
    return _Unit(above + 1, last, frozenset(names | set(bound)), head | {word for line in text for word in _WORD.findall(line)})


def _seeing(units: list[_Unit], changed: list[_Unit]) -> set[_Unit]:
    """The units that name what has changed, those that name them, and so on."""
    seen, waiting = set(changed), list(changed)
    for unit in waiting:
        for other in units:
            if other not in seen and other.words & unit.names:
                seen.add(other)
                waiting.append(other)
    return seen


def _outlines(module: Module) -> Iterator[tuple[str, int, int, int]]:
    """Each function's name, and the rows where it begins, where its body does, and where it ends."""
    for function, _ in functions_of(module):
        body = function.body[0].at[0] if function.body else function.at[0]
        yield function.qualname, function.at[0], max(body, function.at[0] + 1), function.at[2]
