"""Facts of a file that need no order."""

from __future__ import annotations

from streamlint import program as p
from streamlint.findings import Span
from streamlint.interpreter.at_hand import contains
from streamlint.interpreter.holders import is_private
from streamlint.interpreter.index import File
from streamlint.interpreter.stand_ins import stand_ins
from streamlint.record import record


@record(slots=False)
class FileFacts:
    """What a check may ask of the file that holds a root."""

    file: File

    def is_stand_in(self, span: Span) -> bool:
        """Whether a place is in a class that is taken where another one, which pins its memory, cannot be."""
        file = self.file.program.files.get(span.file)
        names = stand_ins(file) if file is not None and not file.is_cuda else ()
        methods = p.functions_of(file.module) if file is not None and names else ()
        return any(owner is not None and owner.qualname in names and contains(method.at, span.at) for method, owner in methods)

    def is_private(self, made: Span) -> bool:
        """Whether only this file's code can use the stream that is made there, and none of it makes that stream wait."""
        return not self.file.is_cuda and is_private(self.file, made)
