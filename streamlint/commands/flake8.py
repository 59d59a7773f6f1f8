"""A plug-in for flake8, off until ``enable-extensions = SL``: each Python file by itself, with the settings of its folder."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint import TYPE_CHECKING, __version__
from streamlint.checks.rules import UNREADABLE
from streamlint.config.settings import Resolver
from streamlint.runner import linter
from streamlint.support.reading import encode

if TYPE_CHECKING:
    import ast


class Plugin:
    """What flake8 makes of each file: the syntax tree, which is not used, the file's name and its lines."""

    name = "streamlint"
    version = __version__
    off_by_default = True

    def __init__(self, tree: ast.AST, filename: str, lines: list[str]) -> None:
        self._filename = filename
        self._lines = lines

    def run(self) -> Iterator[tuple[int, int, str, type[Plugin]]]:
        """Rows from 1, columns from 0, and ``SL001 message``.

        Raises StreamlintError, which flake8 shows, where a configuration is wrong.
        """
        text = "".join(self._lines)
        data = encode(text, text.encode("utf-8", "surrogatepass"), "python")  # as the file declares
        report = linter.run_text(data, self._filename, Resolver())
        for finding in report.findings:
            yield finding.span.row, finding.span.column - 1, f"{finding.code} {finding.message}", Plugin
        for problem in report.problems:
            yield problem.row, problem.column - 1, f"{UNREADABLE} {problem.message}", Plugin
