"""What a kernel's body plainly does with its pointers: which it stores through, and which of their elements it names.

A body is read once for all of its pointers: kernels of a thousand lines have dozens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORD = re.compile(r"\w+")
_ASSIGNED = re.compile(r"\s*(?:(?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+|--)")
_ELEMENT_ASSIGNED = re.compile(
    rf"\s*(?:\[[^\[\];]*(?:\[[^\[\];]*\][^\[\];]*)*\]|->\s*\w+)(?:\s*\.\s*\w+)*{_ASSIGNED.pattern}",
)
_ATOMIC = re.compile(r"\batomic(\w+)\s*(?=\(\s*&?\s*\(?\s*(\w+))")
_COMMUTES = re.compile(r"(Add|Sub|Min|Max|And|Or|Xor)(?:_block|_system)?")  # CUDA C++ Programming Guide, atomic functions
_REFERENCE = re.compile(r"&\s*\w+\s*=\s*(\w+)\s*\[")
_SUBSCRIPT = r"\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\]"
_GIVEN = re.compile(r"\b(\w+)\s*(?:[-+*/|^]|<<|>>)?=(?!=)\s*([^;]*)")
_OFFSET = re.compile(rf"\s*(?:({_SUBSCRIPT})|\+([^+=;,]*))")
_PARTS = (re.compile(r"\s*\[\s*(\d+)\s*\]"), re.compile(rf"(?:\s*{_SUBSCRIPT}\s*\.|\s*->)\s*(\w+)\b(?!\s*\()"))

_NAME_ASSIGNED = re.compile(rf"(?<![\w.>*&:])([A-Za-z_]\w*)(?:\s*\.\s*\w+|\s*{_SUBSCRIPT})*{_ASSIGNED.pattern}")
_ADDRESS = re.compile(r"[(,=?:]\s*&\s*([A-Za-z_]\w*)")
_DECLARED = re.compile(r"(?:^|[;{}(])\s*(?!else\b|return\b|case\b)(?:\w+(?:::\w+)*(?:<[^;<>]*>)?[\s*&]+)+(\w+)\s*(?=[=;,\[({:])")


def symbols(body: str, parameters: set[str]) -> frozenset[str]:
    """The names that a body stores to, or whose address it takes, and that neither it nor its head declares."""
    stored = {found[1] for pattern in (_NAME_ASSIGNED, _ADDRESS) for found in pattern.finditer(body)}
    return frozenset(stored - parameters - {found[1] for found in _DECLARED.finditer(body)})


class Pointers:
    """The places in a body where the names of pointers stand."""

    def __init__(self, body: str, names: Iterable[str]) -> None:
        self._body = body
        self._places: dict[str, list[tuple[int, int]]] = {name: [] for name in names if name}
        for word in _WORD.finditer(body):
            if (places := self._places.get(word[0])) is not None:
                places.append(word.span())
        self._given: dict[str, set[str]] | None = None  # by variable: the words of what it is given
        self._atomics: dict[str, list[str]] = {}  # by pointer: the kinds of atomic operations on it
        for atomic in _ATOMIC.finditer(body):
            self._atomics.setdefault(atomic[2], []).append(atomic[1])

    def stored(self) -> frozenset[str]:
        """Those that are plainly stored through: ``p[i] = x``, ``*p += x``, ``p[i].x++``, ``atomicAdd(&p[i], x)``.

        A reference to an element that is not constant (``float2& v = p[i]``) is there to be stored through. A pointer that is passed to
        another function may be stored through there; that is not plain.
        """
        referred = {found[1] for found in _REFERENCE.finditer(self._body) if "const" not in self._declared(found.start())}
        return frozenset(name for name in self._places if name in self._atomics or name in referred or self._is_assigned(name))

    def accumulated(self) -> dict[str, str]:
        """Those that nothing but one kind of atomic operation touches, whose order does not matter, with its name."""
        only = {name: set(kinds) for name, kinds in self._atomics.items() if len(kinds) == len(self._places.get(name, ()))}
        return {name: kind[1] for name, kinds in only.items() if len(kinds) == 1 and (kind := _COMMUTES.fullmatch(kinds.pop()))}

    def elements(self) -> dict[str, tuple[str, ...]]:
        """By name the numbers of the elements, if nothing else of a pointer is named; or the members of its elements."""
        return {name: found for name in self._places if (found := self._elements(name))}

    def placed(self) -> dict[str, frozenset[str]]:
        """By name the other parameters that move each of its places: ``p[tile * n + i]``, also through variables of the body."""
        return {name: found for name in self._places if (found := self._movers(name))}

    def _movers(self, name: str) -> frozenset[str]:
        common: frozenset[str] | None = None
        until = 0
        for begin, end in self._places[name]:
            if begin < until:
                continue  # in the subscript before
            offset = _OFFSET.match(self._body, end)
            if offset is None:
                return frozenset()
            until = offset.end()
            movers = self._behind(offset[1] or offset[2])
            common = movers if common is None else common & movers
            if not common:
                return frozenset()
        return common or frozenset()

    def _behind(self, expression: str) -> frozenset[str]:
        """The parameters that an expression names, itself or through what variables are given."""
        if self._given is None:
            self._given = {}
            for given in _GIVEN.finditer(self._body):
                self._given.setdefault(given[1], set()).update(_WORD.findall(given[2]))
        seen: set[str] = set()
        new = set(_WORD.findall(expression))
        while new:
            seen |= new
            new = {word for one in new for word in self._given.get(one, ())} - seen
        return frozenset(seen & self._places.keys())

    def _is_assigned(self, name: str) -> bool:
        return any(
            _ELEMENT_ASSIGNED.match(self._body, end) is not None
            or (self._follows_star(begin) and _ASSIGNED.match(self._body, end) is not None)
            for begin, end in self._places[name]
        )

    def _follows_star(self, begin: int) -> bool:
        while begin > 0 and self._body[begin - 1].isspace():
            begin -= 1
        return begin > 0 and self._body[begin - 1] == "*"

    def _declared(self, at: int) -> str:
        """What stands before the ``&`` of a reference."""
        return self._body[max(self._body.rfind(mark, 0, at) for mark in ";{}()") + 1 : at]

    def _elements(self, name: str) -> tuple[str, ...]:
        for part in _PARTS:
            named: list[str] = []
            until = 0
            for begin, end in self._places[name]:
                if begin < until:
                    continue  # in the subscript before
                found = part.match(self._body, end)
                named.append(found[1] if found is not None else "")
                until = found.end() if found is not None else end
            if named and all(named):
                return tuple(dict.fromkeys(named))
        return ()
