"""What is open in the editor, when it is linted, and what is shown of it."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from streamlint.server.desk import Desk, Died
from streamlint.server.jobs import Answer, FindingRow, FixAll, Lint, Linted, Repair, Repairs, Setup, Text, Touched

SETTLED = 1.0  # seconds after a quick look before a document is looked at as a whole
READY = 0.2  # seconds after a look before the repairs of its findings are worked out, one after the other
MOST_READY = 50  # findings of a document whose repairs are worked out before somebody asks
STALE = 0.5  # seconds before documents are re-linted because another one has changed


class Screen(Protocol):
    """Where things are shown."""

    def show(self, document: Document, rows: tuple[FindingRow, ...]) -> None:
        """The findings of a document, instead of those before."""

    def log(self, message: str, aloud: bool = False) -> None:
        """A fault; ``aloud`` where the user can mend it."""


@dataclass(eq=False, slots=True)
class Document:
    """An open document. ``rows`` were found in the text of version ``looked``; ``repairs`` of some of them are known, by fingerprint."""

    uri: str
    path: str
    version: int
    text: str
    language: str
    rows: tuple[FindingRow, ...] = ()
    looked: int | None = None
    repairs: dict[str, list[Repair]] = field(default_factory=dict)
    all_fixes: list[Repair | None] = field(default_factory=list)  # one, once it was worked out
    timer: asyncio.TimerHandle | None = None
    later: asyncio.TimerHandle | None = None  # until repairs are worked out


class Session:
    """The documents, and the child that lints them."""

    def __init__(self, screen: Screen, setup: Callable[[], Setup], child: subprocess.Popen[bytes] | None = None) -> None:
        self.delay = 0.0
        self.documents: dict[str, Document] = {}  # by path
        self._screen, self._setup = screen, setup
        self._desk = Desk(self._greet, child)
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
        """The settings or the folders are others: everything is re-linted."""
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

    async def current(self, document: Document) -> tuple[FindingRow, ...]:
        """The findings in the text as it is now; none where it changes meanwhile."""
        if document.looked != document.version:
            _cancel(document)
            await self._lint(document, whole=True)
        return document.rows if document.looked == document.version else ()

    async def repairs(self, document: Document, rows: list[FindingRow]) -> list[list[Repair]]:
        """What repairs findings; nothing where the text changes meanwhile. Earlier answers are reused."""
        unknown = tuple(dict.fromkeys(row.fingerprint for row in rows if row.fingerprint not in document.repairs))
        known = document.repairs
        if unknown:
            answer = await self._asked(Repairs(document.path, unknown), document)
            if answer is None or answer.status != "done" or not answer.value:
                return [[] for _ in rows]
            known.update(zip(unknown, answer.value, strict=True))
        return [known[row.fingerprint] for row in rows]

    def is_looked_at(self, document: Document) -> bool:
        """Whether what is shown of a document was found in its text as it is now."""
        return document.looked == document.version

    async def fix_all(self, document: Document) -> Repair | None:
        """All safe fixes of a document."""
        if self.is_looked_at(document) and document.all_fixes:
            return document.all_fixes[0]
        answer = await self._asked(FixAll(document.path), document)
        if answer is None or answer.status != "done":
            return None
        repair: Repair | None = answer.value
        if self.is_looked_at(document):
            document.all_fixes = [repair]
        return repair

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
            self._check_others(path for path in answer.value.stale if path != document.path)
        else:
            self._show(document, ())

    def _take(self, linted: Linted, versions: dict[str, int]) -> None:
        for path, rows in linted.shown.items():
            document = self.documents.get(path)
            if document is not None and versions.get(path) == document.version:
                self._show(document, rows)

    def _show(self, document: Document, rows: tuple[FindingRow, ...]) -> None:
        document.rows, document.looked, document.repairs = rows, document.version, {}
        document.all_fixes = []
        self._screen.show(document, rows)
        if document.later is not None:
            document.later.cancel()
            document.later = None
        if any(row.fingerprint for row in rows):
            later = asyncio.get_running_loop().call_later
            document.later = later(READY, lambda: self._spawn(self._prepare(document, rows)))

    async def _prepare(self, document: Document, rows: tuple[FindingRow, ...]) -> None:
        """Work out the repairs of what is shown, one by one: nothing else waits for more than one. A change ends it."""

        def holds() -> bool:
            return document.rows is rows and self.is_looked_at(document) and document.timer is None

        mendable = [row for row in rows if row.fingerprint]
        for row in mendable[:MOST_READY]:
            if not holds():
                return
            await self.repairs(document, [row])
        if holds() and len(mendable) <= MOST_READY:
            await self.fix_all(document)

    def _check_others(self, paths: Iterable[str]) -> None:
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
            self._check_others(answer.value)

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
    for timer in (document.timer, document.later):
        if timer is not None:
            timer.cancel()
    document.timer = document.later = None
