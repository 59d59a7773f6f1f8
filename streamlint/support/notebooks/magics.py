"""What a cell holds for IPython and not for Python: magics, lines for the shell, questions for help.

Such a line becomes ``pass``, or a call that nothing is known of where its result is assigned, with a mark that names the line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from streamlint.support.records import field, record

# Cell magics whose cell is Python that runs with the other cells; ruff reads those of IPython alike.
PYTHON_CELLS = frozenset(
    ("capture", "prun", "pypy", "python", "python3", "time", "timeit", "memit", "mprun", "pyinstrument", "scalene", "snakeviz")
)
_CELL_MAGIC = re.compile(r"\s*%%(\w*)")
_REST = r"(?:\\(?:\r\n|\r|\n)|[^\r\n])*"  # a line, with those that it goes on in
_ESCAPED = re.compile(
    rf"(?P<before>[ \t]*)(?P<line>[%!?,;/]{_REST}"
    r"|[^\W\d][\w.*\[\]]*\?{1,2}[ \t;]*(?=[\r\n]|\Z)"  # obj? and obj??
    rf"|(?:pip|conda|mamba|uv)[ \t]+(?:install|uninstall|list|show)\b{_REST})"
)
_TARGET = r"[^\W\d](?:[\w.,:* \t\[\]]|'[^'\r\n]*'|\"[^\"\r\n]*\")*"
_ASSIGNED = re.compile(rf"(?P<before>[ \t]*{_TARGET}=[ \t]*)(?P<line>[%!]{_REST})")
_TOKEN = re.compile(
    r'"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*(?:"""|\Z)|' + r"'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*(?:'''|\Z)"
    r"|\"(?:\\.|[^\"\\\r\n])*\"?|'(?:\\.|[^'\\\r\n])*'?|#[^\r\n]*|\\(?:\r\n|\r|\n)"
    r"|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<end>\r\n|\r|\n)",
    re.DOTALL,
)
_ENDS = re.compile(r"\r\n|\r|\n")
_MARKED = re.compile(r"(?:pass|get_ipython\(\))  #\f(\d+)(?!\d)")


@record(slots=True)
class Escapes:
    """The lines for IPython that were taken out of a notebook, in order."""

    lines: list[str] = field(default_factory=list)

    def take(self, source: str) -> str | None:
        """A cell's source as Python, row by row; None where a cell magic gives the whole cell to something else."""
        if (magic := _CELL_MAGIC.match(source)) is not None and magic[1] not in PYTHON_CELLS:
            return None
        parts: list[str] = []
        at = 0
        while at < len(source):
            escaped = _ESCAPED.match(source, at)
            found = escaped or _ASSIGNED.match(source, at)
            if found is not None:
                parts.append(found["before"] + self._marked(found["line"], "pass" if escaped else "get_ipython()"))
                at = found.end()
            end = _line_end(source, at)
            parts.append(source[at:end])
            at = end
        return "".join(parts)

    def _marked(self, line: str, instead: str) -> str:
        self.lines.append(line)
        return f"{instead}  #\f{len(self.lines) - 1}{''.join(_ENDS.findall(line))}"


def put_back(text: str, lines: Sequence[str]) -> str:
    """A program's text, changed or not, with the lines for IPython that were taken out of it."""
    parts: list[str] = []
    at = 0
    while (mark := _MARKED.search(text, at)) is not None:
        parts.append(text[at : mark.start()])
        at = mark.end()
        if int(mark[1]) < len(lines):
            line = lines[int(mark[1])]
            parts.append(line)
            at += len("".join(_ENDS.findall(line)))
        else:
            parts.append(mark[0])
    return "".join([*parts, text[at:]])


def _line_end(source: str, at: int) -> int:
    """Where the logical line that begins at an offset has ended."""
    depth = 0
    for token in _TOKEN.finditer(source, at):
        if token["open"]:
            depth += 1
        elif token["close"]:
            depth = max(0, depth - 1)
        elif token["end"] and not depth:
            return token.end()
    return len(source)
