"""The child's records as the protocol's objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lsprotocol import types

from streamlint.server.greeting import KINDS
from streamlint.server.jobs import FindingRow, Range, Repair

QUICK, ALL = KINDS
Edits = dict[tuple[str, int], list[tuple[Range, str]]]  # by URI and version

_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}


def range_of(place: Range) -> types.Range:
    """A range of the protocol."""
    return types.Range(types.Position(place[0], place[1]), types.Position(place[2], place[3]))


def place_of_range(place: types.Range) -> Range:
    """A range of the client's."""
    return place.start.line, place.start.character, place.end.line, place.end.character


def place_of(change: types.TextDocumentContentChangeEvent) -> Range | None:
    """Where a text changes; None for a whole new text."""
    if isinstance(change, types.TextDocumentContentChangeWholeDocument):
        return None
    return place_of_range(change.range)


def diagnostic(row: FindingRow, uri_of: Callable[[str], str], related: bool) -> types.Diagnostic:
    """A finding; its trail only if the client shows related places."""
    places = [
        types.DiagnosticRelatedInformation(types.Location(uri_of(path), range_of(place)), message) for message, path, place in row.trail
    ]
    return types.Diagnostic(
        range=range_of(row.range),
        message=row.message,
        severity=_SEVERITIES[row.severity],
        code=row.code,
        code_description=types.CodeDescription(row.url),
        source="streamlint",
        tags=[types.DiagnosticTag.Unnecessary] if row.unused else None,
        related_information=places if related and places else None,
        data={"fingerprint": row.fingerprint} if row.fingerprint else None,
    )


def quick_fix(row: FindingRow, repair: Repair, edit: types.WorkspaceEdit, shown: types.Diagnostic) -> types.CodeAction:
    """A repair of one finding: the safe one is the one to prefer."""
    notes = {"unsafe": " (unsafe: read it before you keep it)"}
    return types.CodeAction(
        title=f"{row.code}: {repair.title}{notes.get(repair.kind, '')}" if repair.kind != "ignore" else repair.title,
        kind=QUICK,
        diagnostics=[shown],
        is_preferred=True if repair.kind == "safe" else None,
        edit=edit,
    )


def workspace_edit(edits: Edits, versioned: bool) -> types.WorkspaceEdit:
    """A repair of documents, bound to their versions where the client knows such edits."""
    by_file = {name: [types.TextEdit(range_of(place), text) for place, text in mine] for name, mine in edits.items()}
    if not versioned:
        return types.WorkspaceEdit(changes={uri: mine for (uri, _), mine in by_file.items()})
    named = [(types.OptionalVersionedTextDocumentIdentifier(uri, version), mine) for (uri, version), mine in by_file.items()]
    return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(document, list(mine)) for document, mine in named])


def is_requested(kind: str, only: Sequence[str | types.CodeActionKind] | None) -> bool:
    """Whether a client wants actions of a kind: it names kinds, or what they begin with."""
    words = [word.value if isinstance(word, types.CodeActionKind) else word for word in only or ()]
    return not words or any(kind == word or kind.startswith(f"{word}.") for word in words)


def inside(place: Range, line: int, character: int) -> bool:
    """Whether a position lies in a range, or at its end."""
    return (place[0], place[1]) <= (line, character) <= (place[2], place[3])


def touches(place: Range, other: Range) -> bool:
    """Whether two ranges share a position."""
    return place[:2] <= other[2:] and other[:2] <= place[2:]
