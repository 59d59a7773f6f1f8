"""The server that the editor talks to: pygls carries the protocol, `session` knows what to do."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import traceback
from collections.abc import Generator, Iterator, Sequence
from pathlib import PurePath
from typing import Any, BinaryIO, cast

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, default_converter, lsp_method
from pygls.uris import from_fs_path, to_fs_path

from streamlint import __version__
from streamlint.server import hover, settings, shapes
from streamlint.server.greeting import INCREMENTAL, Incoming, Outgoing
from streamlint.server.jobs import FindingRow, Range, Repair, Setup
from streamlint.server.notebooks import SYNC, Cell, Notebooks
from streamlint.server.positions import Lines, applied
from streamlint.server.session import Document, Session
from streamlint.support.reading import LANGUAGES, is_notebook, language_of

CONFIGURATIONS = ("pyproject.toml", "streamlint.toml", ".streamlint.toml", ".gitignore")
BUILDS = ("setup.py", "setup.cfg", "CMakeLists.txt", "meson.build", "compile_commands.json")
SUFFIXES = ",".join(sorted(suffix.removeprefix(".") for suffix in LANGUAGES))
# The languages of documents whose name has no known suffix.
SPOKEN = {"python": "python", "cython": "cython", "cuda": "cuda", "cuda-cpp": "cuda", "cpp": "cuda", "c": "cuda"}
NO_FOLDER = f"{os.path.abspath(os.sep)}untitled"


class _Protocol(LanguageServerProtocol):
    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> Generator[Any, Any, None]:
        """Leave changes to our own documents: pygls cuts lines by `str.splitlines`, where editors do not (form feeds, U+2028)."""
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CHANGE], (params,), None

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def lsp_notebook_document__did_open(self, params: types.DidOpenNotebookDocumentParams) -> Generator[Any, Any, None]:
        """Leave notebooks to us, as documents."""
        yield self.fm.features[types.NOTEBOOK_DOCUMENT_DID_OPEN], (params,), None

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def lsp_notebook_document__did_change(self, params: types.DidChangeNotebookDocumentParams) -> Generator[Any, Any, None]:
        """The same."""
        yield self.fm.features[types.NOTEBOOK_DOCUMENT_DID_CHANGE], (params,), None

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def lsp_notebook_document__did_close(self, params: types.DidCloseNotebookDocumentParams) -> Generator[Any, Any, None]:
        """The same."""
        yield self.fm.features[types.NOTEBOOK_DOCUMENT_DID_CLOSE], (params,), None


class Server(LanguageServer):
    """One editor's server, with a linting process that is started already."""

    def __init__(self, start: Setup, child: subprocess.Popen[bytes] | None = None) -> None:
        kind = types.TextDocumentSyncKind(INCREMENTAL)
        super().__init__("streamlint", __version__, kind, SYNC, protocol_cls=_Protocol, converter_factory=default_converter)
        self.start = start
        self.settings = settings.EditorSettings()
        self.folders: tuple[str, ...] = ()
        self.ended = False
        self.notebooks = Notebooks()
        self.session = Session(self, self.setup, child)

    def setup(self) -> Setup:
        """The settings that the child gets."""
        return settings.setup(self.start, self.folders, self.encoding, self.settings)

    @property
    def encoding(self) -> str:
        """What the client's characters are: units of UTF-16, unless it offered something else first."""
        return types.PositionEncodingKind(self.workspace.position_encoding or "utf-16").value

    def take(self, value: object) -> None:
        """The client's settings."""
        self.settings = settings.read(value)
        self.session.delay = self.settings.delay
        for fault in self.settings.faults:
            self.log(fault, aloud=True)

    def document(self, uri: str) -> Document | None:
        """An open document that streamlint reads; of a cell, that of its notebook."""
        notebook = self.notebooks.of(uri)
        return self.session.documents.get(notebook.path if notebook is not None else path_of(uri))

    def show(self, document: Document, rows: tuple[FindingRow, ...]) -> None:
        """Publish a document's findings."""
        capabilities = self.client_capabilities.text_document
        related = bool(capabilities and capabilities.publish_diagnostics and capabilities.publish_diagnostics.related_information)
        notebook = self.notebooks.of(document.uri)
        if notebook is None:
            shown = [shapes.diagnostic(row, self.uri_of, related) for row in rows]
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(document.uri, shown, document.version))
            return
        found = [notebook.located(row) for row in rows]
        for cell in notebook.cells:
            shown = [shapes.diagnostic(row, self.uri_of, related) for place, row in found if place is cell]
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(cell.uri, shown, cell.version))

    def log(self, message: str, aloud: bool = False) -> None:
        """Tell the editor's log, and where ``aloud`` the user."""
        self.window_log_message(types.LogMessageParams(types.MessageType.Error, message))
        if aloud:
            self.window_show_message(types.ShowMessageParams(types.MessageType.Error, f"streamlint: {message}"))

    def uri_of(self, path: str) -> str:
        """The client's own spelling for what it has open; that of a cell is its own."""
        if self.notebooks.of(path) is not None:
            return path
        document = self.session.documents.get(path)
        return document.uri if document else from_fs_path(path) or path

    def cell(self, uri: str) -> Cell | None:
        """The open cell of this URI."""
        notebook = self.notebooks.of(uri)
        return notebook.cell(uri) if notebook is not None else None

    def inside(self, uri: str, place: Range) -> Range | None:
        """A place as the session counts it; None for one in a cell that is not read."""
        notebook = self.notebooks.of(uri)
        return place if notebook is None else notebook.inside(uri, place)

    def located(self, document: Document, row: FindingRow) -> FindingRow:
        """A finding of a document as the client counts its places."""
        notebook = self.notebooks.of(document.uri)
        return row if notebook is None else notebook.located(row)[1]

    def edit_of(self, document: Document, version: int, repair: Repair) -> types.WorkspaceEdit:
        """A repair of a document that had a version, bound to it where the client knows such edits."""
        notebook = self.notebooks.of(document.uri)
        edits: shapes.Edits = {}
        if notebook is None:
            edits[document.uri, version] = list(repair.edits)
        else:
            for cell, place, text in notebook.edits(repair) if notebook.version == version else ():
                edits.setdefault((cell.uri, cell.version), []).append((place, text))
        return shapes.workspace_edit(edits, self.versioned_edits)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Errors outside of requests (which are answered with them)."""
        self.log("".join(traceback.format_exception_only(type(error), error)).strip())

    @property
    def pulls_settings(self) -> bool:
        """Whether the client can be asked for its settings."""
        workspace = self.client_capabilities.workspace
        return bool(workspace and workspace.configuration)

    @property
    def versioned_edits(self) -> bool:
        """Whether the client takes edits for a version of a document."""
        workspace = self.client_capabilities.workspace
        return bool(workspace and workspace.workspace_edit and workspace.workspace_edit.document_changes)

    @property
    def resolves_edits(self) -> bool:
        """Whether the client asks for an action's edit when it is chosen."""
        document = self.client_capabilities.text_document
        resolve = document.code_action.resolve_support if document and document.code_action else None
        return bool(resolve and "edit" in resolve.properties)


def serve(start: Setup, child: subprocess.Popen[bytes], way: tuple[str, int] | tuple[Incoming, Outgoing]) -> int:
    """Serve one editor, at an address or by streams. The exit code is 0 where the editor has said that it ends, else 1."""
    logging.getLogger("pygls.protocol.json_rpc").addFilter(_is_for_log)
    server = Server(start, child)
    _lifetime(server)
    _workspace(server)
    _documents(server)
    _notebooks(server)
    _requests(server)
    if isinstance(way[0], str):
        server.start_tcp(*way)
    else:
        incoming, outgoing = way
        server.start_io(cast("BinaryIO", incoming), cast("BinaryIO", outgoing))
    server.session.end()
    return 0 if server.ended else 1


def _is_for_log(record: logging.LogRecord) -> bool:
    """Whether a line of pygls is for the editor's log. Editors take back requests whose answers are on their way: nothing is wrong."""
    return not record.getMessage().startswith("Cancel notification for unknown message id")


def path_of(uri: str) -> str:
    """The path of a document; one in no folder for what is no file."""
    path = to_fs_path(uri) if uri.startswith("file:") else None
    return os.path.normpath(path) if path else os.path.join(NO_FOLDER, PurePath(uri.partition(":")[2]).name or "text")


def _lifetime(server: Server) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        named = [folder.uri for folder in params.workspace_folders or ()]
        if not named and (params.root_uri or params.root_path):
            named = [params.root_uri or from_fs_path(params.root_path or "") or ""]
        server.folders = tuple(path_of(uri) for uri in named if uri.startswith("file:"))
        server.take(params.initialization_options)

    @server.feature(types.INITIALIZED)
    async def initialized(_: types.InitializedParams) -> None:
        if wanted := list(_registrations(server)):
            await server.client_register_capability_async(types.RegistrationParams(wanted))
        if server.pulls_settings:
            await _pull(server)

    @server.feature(types.SHUTDOWN)
    def shutdown(*_: object) -> None:
        server.ended = True
        server.session.end()


def _workspace(server: Server) -> None:
    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def configured(params: types.DidChangeConfigurationParams) -> None:
        if server.pulls_settings:
            await _pull(server)
        else:
            server.take(params.settings)
            server.session.reload()

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def folders(params: types.DidChangeWorkspaceFoldersParams) -> None:
        gone = {path_of(folder.uri) for folder in params.event.removed}
        new = [path_of(folder.uri) for folder in params.event.added if folder.uri.startswith("file:")]
        server.folders = (*(folder for folder in server.folders if folder not in gone), *new)
        server.session.reload()

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def watched(params: types.DidChangeWatchedFilesParams) -> None:
        paths = [path_of(change.uri) for change in params.changes]
        decisive = any(PurePath(path).name in (*CONFIGURATIONS, *BUILDS) for path in paths)
        server.session.touched(paths, decisive)


def _registrations(server: Server) -> Iterator[types.Registration]:
    """The notifications that the client is asked for: files that matter, and its own settings."""
    workspace = server.client_capabilities.workspace
    if workspace and workspace.did_change_watched_files and workspace.did_change_watched_files.dynamic_registration:
        patterns = [f"**/{name}" for name in (*CONFIGURATIONS, *BUILDS)] + [f"**/*.{{{SUFFIXES}}}"]
        watched = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher(pattern) for pattern in patterns])
        yield types.Registration("streamlint-files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, watched)
    if workspace and workspace.did_change_configuration and workspace.did_change_configuration.dynamic_registration:
        section = types.DidChangeConfigurationRegistrationOptions(section=settings.SECTION)
        yield types.Registration("streamlint-settings", types.WORKSPACE_DID_CHANGE_CONFIGURATION, section)


async def _pull(server: Server) -> None:
    """Ask the client for its settings."""
    item = types.ConfigurationItem(section=settings.SECTION)
    (value,) = await server.workspace_configuration_async(types.ConfigurationParams([item]))
    if value is not None:
        server.take(value)
    server.session.reload()


def _documents(server: Server) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        path = path_of(item.uri)
        language = language_of(path) or SPOKEN.get(str(item.language_id), "")
        if language and not is_notebook(path) and not item.uri.startswith("vscode-notebook-cell:"):
            server.session.open(Document(item.uri, path, item.version, item.text, language))

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        if document := server.document(params.text_document.uri):
            edits = [(shapes.place_of(change), change.text) for change in params.content_changes]
            server.session.change(document, params.text_document.version, applied(document.text, edits, server.encoding))

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        if document := server.document(params.text_document.uri):
            server.session.close(document)


def _notebooks(server: Server) -> None:
    @server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenNotebookDocumentParams) -> None:
        path = path_of(params.notebook_document.uri)
        if is_notebook(path):
            notebook = server.notebooks.open(params, path, server.encoding)
            server.session.open(Document(notebook.uri, path, notebook.version, notebook.text, "python"))

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeNotebookDocumentParams) -> None:
        notebook, gone = server.notebooks.change(params)
        for cell in gone:
            server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(cell.uri, []))
        if notebook is not None and (document := server.document(notebook.uri)):
            server.session.change(document, notebook.version, notebook.text)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseNotebookDocumentParams) -> None:
        notebook = server.notebooks.of(params.notebook_document.uri)
        if notebook is not None and (document := server.document(notebook.uri)):
            server.session.close(document)
            server.notebooks.close(notebook)


def _requests(server: Server) -> None:
    kinds = types.CodeActionOptions(code_action_kinds=[shapes.QUICK, shapes.ALL], resolve_provider=True)

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, kinds)
    async def actions(params: types.CodeActionParams) -> Sequence[types.CodeAction]:
        document = server.document(params.text_document.uri)
        if document is None or (_is_automatic(params) and not server.session.is_looked_at(document)):
            return []  # editors ask at each key: the next request gets what is found meanwhile
        found: list[types.CodeAction] = []
        if shapes.is_requested(shapes.QUICK, params.context.only):
            found += await _quick_fixes(server, document, params.text_document.uri, params.range)
        if shapes.is_requested(shapes.ALL, params.context.only):
            found += await _fix_all(server, document, named=bool(params.context.only))
        return found

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve(action: types.CodeAction) -> types.CodeAction:
        data = action.data if isinstance(action.data, dict) else {}
        document = server.document(str(data.get("uri", "")))
        if document is not None and document.version == data.get("version") and (repair := await server.session.fix_all(document)):
            action.edit = server.edit_of(document, document.version, repair)
        return action

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hovered(params: types.HoverParams) -> types.Hover | None:
        document = server.document(params.text_document.uri)
        return await _hover(server, document, params.text_document.uri, params.position) if document else None


def _is_automatic(params: types.CodeActionParams) -> bool:
    """Whether no user has asked."""
    return params.context.trigger_kind == types.CodeActionTriggerKind.Automatic


async def _quick_fixes(server: Server, document: Document, uri: str, place: types.Range) -> list[types.CodeAction]:
    current = await server.session.current(document)
    here = server.inside(uri, shapes.place_of_range(place))
    rows = [row for row in current if row.fingerprint and here is not None and shapes.touches(row.range, here)]
    if not rows:
        return []
    version, found = document.version, []
    for row, repairs in zip(rows, await server.session.repairs(document, rows), strict=True):
        shown = shapes.diagnostic(server.located(document, row), server.uri_of, related=False)
        for repair in repairs:
            edit = server.edit_of(document, version, repair)
            found.append(shapes.quick_fix(row, repair, edit, shown))
    return found


async def _fix_all(server: Server, document: Document, named: bool) -> list[types.CodeAction]:
    """All safe fixes at once: worked out when they are chosen, or asked for by name as editors do on save."""
    action = types.CodeAction("streamlint: fix all that can be fixed safely", kind=shapes.ALL)
    if server.resolves_edits and not named:
        action.data = {"uri": document.uri, "version": document.version}
        return [action] if any(row.fingerprint for row in await server.session.current(document)) else []
    version = document.version
    repair = await server.session.fix_all(document)
    if repair is None:
        return []
    action.edit = server.edit_of(document, version, repair)
    return [action]


async def _hover(server: Server, document: Document, uri: str, position: types.Position) -> types.Hover | None:
    """The pages of all that is found at a place, and of the code that a comment names there."""
    rows = document.rows if document.looked == document.version else ()
    here = server.inside(uri, (position.line, position.character, position.line, position.character))
    found = [row for row in rows if here is not None and shapes.inside(row.range, *here[:2])]
    rules = [(row.code, server.located(document, row).range) for row in found]
    cell = server.cell(uri)
    lines = Lines(document.text if cell is None else cell.text, server.encoding)
    named = hover.code_at(lines.line(position.line), lines.column(position.line, position.character))
    if named is not None:
        rules.append((named[0], lines.columns(position.line, *named[1:])))
    if not rules:
        return None
    codes = dict.fromkeys(code for code, _ in rules)
    pages = await asyncio.to_thread(lambda: [hover.page(code) for code in codes])  # the first page imports all rules
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, "\n---\n\n".join(pages)), shapes.range_of(rules[0][1]))
