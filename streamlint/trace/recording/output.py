"""The file that a recording goes into: whose it is, and when its old content may go."""

from __future__ import annotations

import io
import os
import time

from streamlint import TYPE_CHECKING
from streamlint.support.errors import StreamlintError
from streamlint.trace.recording import form

if TYPE_CHECKING:
    from streamlint.trace.recording.sessions import Session

WAIT = 15.0  # seconds in which another process of the run must have begun its file
_LOOK = 0.02


class Output:
    """A file that this process alone writes, as long as it is open. What it held stays until :meth:`begin`.

    Opening raises OSError, and StreamlintError where the file is no recording, or another run is recorded into it. Where another process of
    the same run records or has recorded into it, as ranks do that were started alike, the file is ``NAME.PID``.
    """

    def __init__(self, path: str, session: Session, process: int) -> None:
        self.path = path
        self.process = process
        self._made = False
        self.file = self._opened(path)
        if self._is_anothers(session):
            self.file.close()
            self.path = f"{path}.{process}"
            self.file = self._opened(self.path)
            if not self._lock():
                self.file.close()
                raise StreamlintError(f"{self.path}: another process records into it")
        try:
            self._require_recording()
        except StreamlintError:
            self.file.close()
            raise

    def begin(self, facts: dict[str, object]) -> None:
        """Drop what the file held, and write the head of a recording. Raises OSError."""
        self.file.truncate(0)
        self.file.seek(0)
        form.begin(self.file)
        form.write_rows(self.file, [["run", facts]])

    def discard(self) -> None:
        """Close the file before anything was written: it is as it was, or gone if it was not there."""
        if self._made:
            os.unlink(self.path)
        self.file.close()

    def _opened(self, path: str) -> io.FileIO:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            number = os.open(path, flags | os.O_EXCL, 0o666)
            self._made = True
        except FileExistsError:
            number = os.open(path, flags, 0o666)
            self._made = False
        return io.FileIO(number, "r+b")

    def _lock(self) -> bool:
        import fcntl  # platform: Windows has none, and no CUPTI that is looked for

        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def _is_anothers(self, session: Session) -> bool:
        """Whether the file is that of another process of the same run. Raises StreamlintError where another run has it open."""
        if self._lock():
            facts = form.head(self.path) if session.is_shared else {}
            return facts.get("session") == session.id and facts.get("process") != self.process
        until = time.monotonic() + WAIT
        while session.is_shared and time.monotonic() < until:
            if form.head(self.path).get("session") == session.id:
                return True
            time.sleep(_LOOK)
        self.file.close()
        raise StreamlintError(f"{self.path}: another run is being recorded into it; choose another file")

    def _require_recording(self) -> None:
        start = self.file.read(len(form.MAGIC)) or b""
        if start and start != form.MAGIC:
            raise StreamlintError(f"{self.path}: this file is no recording, so nothing is written into it; choose another one")
