"""An editor, played by pygls' client, and the installed command in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient

COMMAND = Path(sys.executable).with_name("streamlint")
PATIENCE = 60.0
EVERYTHING = types.ClientCapabilities(
    workspace=types.WorkspaceClientCapabilities(
        workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True),
        did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(dynamic_registration=True),
        workspace_folders=True,
    ),
    text_document=types.TextDocumentClientCapabilities(
        publish_diagnostics=types.PublishDiagnosticsClientCapabilities(related_information=True),
    ),
)


class Editor:
    """What a user does, and what the user sees."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.client = LanguageClient("test", "1")
        self.shown: dict[str, types.PublishDiagnosticsParams] = {}
        self.history: list[types.PublishDiagnosticsParams] = []
        self.logged: list[str] = []
        self.alerts: list[str] = []
        self.settings: Any = None
        self.registered: list[str] = []
        self.answer: types.InitializeResult | None = None
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self._news = asyncio.Event()
        self._listen()

    def _listen(self) -> None:
        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: types.PublishDiagnosticsParams) -> None:
            self.shown[params.uri] = params
            self.history.append(params)
            self._news.set()

        @self.client.feature(types.WINDOW_LOG_MESSAGE)
        def logged(params: types.LogMessageParams) -> None:
            self.logged.append(params.message)
            self._news.set()

        @self.client.feature(types.WINDOW_SHOW_MESSAGE)
        def alerted(params: types.ShowMessageParams) -> None:
            self.alerts.append(params.message)

        @self.client.feature(types.CLIENT_REGISTER_CAPABILITY)
        def register(params: types.RegistrationParams) -> None:
            self.registered += [each.method for each in params.registrations]

        @self.client.feature(types.WORKSPACE_CONFIGURATION)
        def configuration(params: types.ConfigurationParams) -> list[Any]:
            return [self.settings for _ in params.items]

    def uri(self, name: str) -> str:
        return (self.root / name).as_uri()

    def open(self, name: str, text: str | None = None, language: str = "python") -> None:
        text = (self.root / name).read_text() if text is None else text
        self.texts[name], self.versions[name] = text, 1
        item = types.TextDocumentItem(self.uri(name), language, 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def type(self, name: str, text: str) -> None:
        """The text as it is after a key was pressed."""
        self.texts[name] = text
        self.versions[name] += 1
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(self.versions[name], self.uri(name)),
                [types.TextDocumentContentChangeWholeDocument(text)],
            )
        )

    def close(self, name: str) -> None:
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(self.uri(name))))

    def touch(self, name: str, kind: types.FileChangeType = types.FileChangeType.Changed) -> None:
        change = types.FileEvent(self.uri(name), kind)
        self.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([change]))

    async def until(self, holds: Callable[[], Any]) -> Any:
        """Wait for what the server says."""
        async with asyncio.timeout(PATIENCE) if sys.version_info >= (3, 11) else contextlib.nullcontext():
            while not (found := holds()):
                self._news.clear()
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._news.wait(), 1)
        return found

    async def diagnostics(self, name: str, version: int | None = None) -> list[types.Diagnostic]:
        """What is shown of a document's newest version."""
        wanted = self.versions[name] if version is None else version
        uri = self.uri(name)
        await self.until(lambda: uri in self.shown and self.shown[uri].version == wanted)
        return list(self.shown[uri].diagnostics)

    async def codes(self, name: str, expected: list[str]) -> None:
        """Wait until these codes are shown of a document."""
        uri = self.uri(name)
        await self.until(lambda: uri in self.shown and [each.code for each in self.shown[uri].diagnostics] == expected)

    async def actions(self, name: str, line: int, *only: str) -> list[types.CodeAction]:
        place = types.Range(types.Position(line, 0), types.Position(line, 200))
        context = types.CodeActionContext([], only=list(only) or None)
        document = types.TextDocumentIdentifier(self.uri(name))
        found = await self.client.text_document_code_action_async(types.CodeActionParams(document, place, context))
        return [each for each in found or () if isinstance(each, types.CodeAction)]

    async def hover(self, name: str, line: int, character: int) -> types.Hover | None:
        document = types.TextDocumentIdentifier(self.uri(name))
        return await self.client.text_document_hover_async(types.HoverParams(document, types.Position(line, character)))

    def applied(self, name: str, edit: types.WorkspaceEdit | None) -> str:
        """The text of a document after an edit, as an editor that counts in UTF-16 makes it."""
        assert edit is not None
        assert edit.document_changes
        (change,) = edit.document_changes
        assert isinstance(change, types.TextDocumentEdit)
        assert change.text_document.uri == self.uri(name)
        assert change.text_document.version == self.versions[name]
        text = self.texts[name]
        ordered = sorted(change.edits, key=lambda each: (each.range.start.line, each.range.start.character), reverse=True)
        for each in ordered:
            start, end = (offset(text, place) for place in (each.range.start, each.range.end))
            text = text[:start] + each.new_text + text[end:]
        return text


def offset(text: str, place: types.Position) -> int:
    """A place in UTF-16 as an index of a text."""
    lines = text.split("\n")
    before = sum(len(line) + 1 for line in lines[: place.line])
    if place.line >= len(lines):
        return len(text)
    return before + len(lines[place.line].encode("utf-16-le")[: 2 * place.character].decode("utf-16-le"))


@contextlib.asynccontextmanager
async def editor(
    root: Path,
    *words: str,
    capabilities: types.ClientCapabilities = EVERYTHING,
    folders: list[Path] | None = None,
    options: Any = None,
    quiet: bool = True,
) -> AsyncIterator[Editor]:
    """An editor with a server, which ends as it should: with 0, and (where ``quiet``) nothing on stderr."""
    user = Editor(root)
    env = {key: value for key, value in os.environ.items() if "COLOR" not in key}
    await user.client.start_io(str(COMMAND), "server", *words, env=env, cwd=root)
    process = user.client._server
    assert process is not None
    named = [types.WorkspaceFolder(folder.as_uri(), folder.name) for folder in ([root] if folders is None else folders)]
    parameters = types.InitializeParams(capabilities, process_id=os.getpid(), workspace_folders=named, initialization_options=options)
    try:
        user.answer = await asyncio.wait_for(user.client.initialize_async(parameters), PATIENCE)
        user.client.initialized(types.InitializedParams())
        yield user
        await asyncio.wait_for(user.client.shutdown_async(None), PATIENCE)
        user.client.exit(None)
        await asyncio.wait_for(process.wait(), PATIENCE)
        assert process.stderr is not None
        assert process.returncode == 0
        assert not quiet or (await process.stderr.read()).decode() == ""
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        await user.client.stop()


def play(scenario: Callable[[], Any]) -> Any:
    """Run a scenario to its end."""
    return asyncio.run(asyncio.wait_for(scenario(), 5 * PATIENCE))
