"""A file of a run looked at once more with another text, among the files that it was read with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from streamlint import engine
from streamlint.findings import Finding, Report
from streamlint.options import Options, Source
from streamlint.precedence import winners


class Relint:
    """The sources of a run, of which one is changed."""

    def __init__(self, sources: Sequence[Source], options: Options) -> None:
        self._sources, self._options = {source.path: source for source in sources}, options
        self._program: Any = None
        self._found: Mapping[str, Sequence[Finding]] = {}

    def keep(self, program: Any, found: Mapping[str, Sequence[Finding]] = MappingProxyType({})) -> None:
        """Spares the work of doing again what the run has done."""
        self._program, self._found = program, found

    def found(self, path: str) -> list[Finding]:
        """What the run itself found from one file, by its own rules."""
        return list(winners(self._found.get(path, ())))

    def findings(self, path: str, text: str, codes: frozenset[str]) -> list[Finding] | None:
        """What these rules find in one file with another text; None if it does not parse, or the linter fails on it."""
        from streamlint.analysis import Analysis

        options, report = replace(self._options, codes=codes, coverage=False), Report()
        program = self._with(path, text, report)
        if report.problems:
            return None
        analysis = Analysis(program, options)
        parts = [analysis.check(name) for name, file in program.files.items() if file.path == path]
        if any(part.problems for part in parts):
            return None
        return list(winners(finding for part in parts for finding in part.findings))

    def _with(self, path: str, text: str, report: Report) -> Any:
        """The program with one text changed; the others are lowered once."""
        from streamlint.interpreter.index import Program

        if self._program is None:
            self._program, headers = Program(), engine.headers_of(self._sources.values())
            for source in self._sources.values():
                engine.lower(source, self._options, self._program, Report(), headers)
        changed, program = replace(self._sources[path], text=text), Program()
        headers = engine.headers_of({**self._sources, path: changed}.values())
        for key, file in self._program.files.items():
            if file.path != path:
                program.add(file.module, file.models, key=key if key != file.path else None)
            elif key == path:
                engine.lower(changed, self._options, program, report, headers)
        return program
