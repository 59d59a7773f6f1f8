"""What is open in the editor, when it is linted, and what is shown of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from streamlint.server.desk import Desk, Died
from streamlint.server.jobs import Answer, FixAll, Lint, Linted, Repair, Repairs, Setup, Text, Told, Touched

SETTLED = 1.0  # seconds after a quick look before a document is looked at as a whole
STALE = 0.5  # seconds before documents are linted again because another one has changed


class Screen(Protocol):
    """Where things are shown."""

    def show(self, document: Document, rows: tuple[Told, ...]) -> None:
        """The findings of a document, instead of those before."""

    def log(self, message: str, aloud: bool = False) -> None:
        """A fault; ``aloud`` where the user can mend it."""


@dataclass(eq=False, slots=True)
class Document:
    """An open document. ``rows`` were found in the text of version ``looked``."""

    uri: str
    path: str
    version: int
    text: str
    language: str
    rows: tuple[Told, ...] = ()
    looked: int | None = None
    timer: asyncio.TimerHandle | None = None


class Session:
    """The documents, and the child that lints them."""

    def __init__(self, screen: Screen, setup: Callable[[], Setup]) -> None:
        self.delay = 0.0
        self.documents: dict[str, Document] = {}  # by path
        self._screen, self._setup = screen, setup
        self._desk = Desk(self._greet)
        self._tasks: set[asyncio.Task[None]] = set()
        self._last_fault = ""

    # What the editor does -----------------------------------------------------------------------------------------------------

    def open(self, document: Document) -> None:
        """A document is opened, and linted at once."""
        self.documents[document.path] = document
        self._desk.tell(Text(document.path, document.text, document.language))
        self._schedule(document, 0)

    def change(self, document: Document, version: int, text: str) -> None:
        """A document has another text: it is linted when nothing more comes for a while."""
        document.version, document.text = version, text
        self._desk.tell(Text(document.path, text, document.language))
        self._schedule(document, self.delay)

    def close(self, document: Document) -> None:
        """A document is closed, and nothing is shown of it any more."""
        _cancel(document)
        del self.documents[document.path]
        self._screen.show(document, ())
        self._spawn(self._refresh(Text(document.path, None)))

    def touched(self, paths: Iterable[str], settings: bool) -> None:
        """Files changed on disk."""
        self._spawn(self._refresh(Touched(tuple(paths), settings)))

    def reload(self) -> None:
        """The settings or the folders are others: everything is linted again."""
        self._last_fault = ""
        self._desk.tell(self._setup())
        for document in self.documents.values():
            self._schedule(document, 0)

    def end(self) -> None:
        """The editor ends."""
        for document in self.documents.values():
            _cancel(document)
        self._desk.close()

    # What it asks -------------------------------------------------------------------------------------------------------------

    async def current(self, document: Document) -> tuple[Told, ...]:
        """The findings in the text as it is now; none where it changes meanwhile."""
        if document.looked != document.version:
            _cancel(document)
            await self._lint(document, whole=True)
        return document.rows if document.looked == document.version else ()

    async def repairs(self, document: Document, rows: list[Told]) -> list[list[Repair]]:
        """What repairs findings; nothing where the text changes meanwhile."""
        answer = await self._asked(Repairs(document.path, tuple(row.fingerprint for row in rows)), document)
        return answer.value if answer and answer.status == "done" and answer.value else [[] for _ in rows]

    async def fix_all(self, document: Document) -> Repair | None:
        """All safe fixes of a document."""
        answer = await self._asked(FixAll(document.path), document)
        return answer.value if answer and answer.status == "done" else None

    # Linting ------------------------------------------------------------------------------------------------------------------

    def _greet(self) -> None:
        """A new child learns what there is."""
        self._desk.tell(self._setup())
        for document in self.documents.values():
            self._desk.tell(Text(document.path, document.text, document.language))

    def _schedule(self, document: Document, delay: float, whole: bool = False) -> None:
        _cancel(document)
        loop = asyncio.get_running_loop()
        document.timer = loop.call_later(delay, lambda: self._spawn(self._lint(document, whole)))

    async def _lint(self, document: Document, whole: bool) -> None:
        document.timer = None
        versions = {path: other.version for path, other in self.documents.items()}
        answer = await self._asked(Lint(document.path, whole), document)
        if answer is None:
            return
        if answer.status == "overtaken":
            if document.timer is None:
                self._schedule(document, self.delay, whole)
        elif isinstance(answer.value, Linted):
            self._take(answer.value, versions)
            if answer.value.partial:
                self._schedule(document, SETTLED, whole=True)
            self._again(path for path in answer.value.stale if path != document.path)
        else:
            self._show(document, ())

    def _take(self, linted: Linted, versions: dict[str, int]) -> None:
        for path, rows in linted.shown.items():
            document = self.documents.get(path)
            if document is not None and versions.get(path) == document.version:
                self._show(document, rows)

    def _show(self, document: Document, rows: tuple[Told, ...]) -> None:
        document.rows, document.looked = rows, document.version
        self._screen.show(document, rows)

    def _again(self, paths: Iterable[str]) -> None:
        for path in paths:
            document = self.documents.get(path)
            if document is not None and document.timer is None:
                self._schedule(document, STALE)

    async def _refresh(self, job: Text | Touched) -> None:
        try:
            answer = await self._desk.ask(job)
        except Died:
            return
        self._judge(answer)
        if answer.status == "done":
            self._again(answer.value)

    async def _asked(self, job: Lint | Repairs | FixAll, document: Document) -> Answer | None:
        """An answer that still holds; None where the document changed meanwhile, or the child died."""
        version = document.version
        try:
            answer = await self._desk.ask(job)
        except Died as error:
            self._screen.log(f"{error}, over {document.path}; it is linted again when it changes", aloud=True)
            self._show(document, ())
            return None
        if self.documents.get(document.path) is not document or document.version != version:
            return None
        self._judge(answer)
        return answer

    def _judge(self, answer: Answer) -> None:
        """Tell what went wrong, a wrong configuration once."""
        if answer.status == "failed":
            self._screen.log(f"internal error, nothing is known about the code; please report:\n{answer.value}")
        elif answer.status == "refused" and answer.value != self._last_fault:
            self._last_fault = answer.value
            self._screen.log(str(answer.value), aloud=True)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _cancel(document: Document) -> None:
    if document.timer is not None:
        document.timer.cancel()
        document.timer = None
