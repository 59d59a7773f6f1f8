"""Cython source as a fix sees it: lines, and what declares C in them."""

from __future__ import annotations

import re

from streamlint.findings import Edit
from streamlint.fix.base import Lines, NotThere

_CALL = re.compile(r"(?:(?P<target>\w+)\s*=\s*)?(?P<callee>\w+)\((?P<given>.*)\)\s*(?:#.*)?")
_CAST = re.compile(r"<\s*[\w.\s]+\**\s*>")
_FREE = frozenset({"NULL", "self", "sizeof", "True", "False", "not", "and", "or"})


class CythonCode(Lines):
    """A Cython module."""

    def without_gil(self, row: int) -> Edit:
        """A statement of one line in a block that holds no GIL.

        Raises NotThere where it is not a call of C with what C knows.
        """
        line = self.lines[row - 1]
        found = _CALL.fullmatch(line.strip())
        if found is None or found["given"].count("(") != found["given"].count(")") or re.search(r"[\[\]'\"{}]", found["given"]):
            raise NotThere
        if not self._without_gil_by_declaration(found["callee"]):
            raise NotThere
        words = set(re.findall(r"(?<![\w.])[A-Za-z_]\w*", _CAST.sub("", found["given"]))) - _FREE
        if found["target"]:
            words.add(found["target"])
        if not all(self._is_c(word, row) for word in words):
            raise NotThere
        lead = self.indent(row)
        step = "\t" if lead.startswith("\t") else "    "
        return self.edit(row, 1, row, len(line) + 1, f"{lead}with nogil:{self.newline}{lead}{step}{line.strip()}")

    def _without_gil_by_declaration(self, name: str) -> bool:
        """Whether a function is declared ``nogil``: itself, or the block of C around its declaration."""
        inside, depth = False, 0
        for line in self.lines:
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            if inside and len(line) - len(line.lstrip()) <= depth:
                inside = False
            if re.match(r"\s*cdef\s+extern\b.*\bnogil\s*:", line):
                inside, depth = True, len(line) - len(line.lstrip())
                continue
            declared = re.search(rf"\b{name}\s*\(", line)
            if declared and (inside or re.match(r"\s*(?:cdef|cpdef)\b.*\bnogil\s*:", line) or re.search(r"\)[^)]*\bnogil\s*$", line)):
                return True
        return False

    def _is_c(self, name: str, row: int) -> bool:
        """Whether a name is declared with a type of C above a row, in the function around it or for the module."""
        head = next(
            (number for number in range(row, 0, -1) if re.match(r"\s*(?:def|cdef|cpdef)\b.*\(.*:\s*(?:#.*)?$", self.lines[number - 1])), 0
        )
        if head and re.search(rf"[(,]\s*(?!object\b)\w+(?:\s+\w+)*[\s*]+{name}\s*[,)=]", self.lines[head - 1]):
            return True
        declared = re.compile(rf"\s*cdef\s+(?!object\b|class\b|list\b|dict\b|str\b|bytes\b|tuple\b|set\b)[\w.]+[\s*].*\b{name}\b")
        return any(declared.match(line) for line in self.lines[head:row])
