"""The language server with a client that is broken, hostile or gone: it answers on or ends, and leaves no process behind."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hardening.inputs import MISUSE

pytest.importorskip("pygls")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes of a group")
ROOT = Path(__file__).parents[2]
PATIENCE = 90.0


class Client:
    """Bytes in, messages out, and the processes that there are."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.number = folder, 0
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "streamlint", "server", "--isolated"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, start_new_session=True
        )
        self.messages: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self.others: list[dict[str, Any]] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
                while self.process.stdout.readline().strip():
                    pass
                self.messages.put(json.loads(self.process.stdout.read(length)))
        self.messages.put(None)

    def raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def body(self, data: bytes) -> None:
        self.raw(b"Content-Length: %d\r\n\r\n" % len(data) + data)

    def say(self, **message: Any) -> None:
        self.body(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def ask(self, method: str, params: Any = None) -> dict[str, Any]:
        """The answer to a request; what comes before it is kept."""
        self.number += 1
        self.say(id=self.number, method=method, params=params)
        end = time.monotonic() + PATIENCE
        while True:
            message = self.messages.get(timeout=max(end - time.monotonic(), 0.1))
            assert message is not None, "the server has ended"
            if message.get("id") == self.number and "method" not in message:
                return message
            self.others.append(message)

    def begin(self) -> None:
        self.ask("initialize", {"processId": None, "rootUri": self.folder.as_uri(), "capabilities": {}})
        self.say(method="initialized", params={})

    def open(self, name: str, text: str, version: int = 1) -> None:
        item = {"uri": (self.folder / name).as_uri(), "languageId": "python", "version": version, "text": text}
        self.say(method="textDocument/didOpen", params={"textDocument": item})

    def change(self, name: str, version: int, *changes: dict[str, Any]) -> None:
        document = {"uri": (self.folder / name).as_uri(), "version": version}
        self.say(method="textDocument/didChange", params={"textDocument": document, "contentChanges": list(changes)})

    def findings(self, name: str) -> list[str]:
        """The codes that are shown for a document, once they are."""
        uri, end = (self.folder / name).as_uri(), time.monotonic() + PATIENCE
        while True:
            for message in self.others:
                if message.get("method") == "textDocument/publishDiagnostics" and message["params"]["uri"] == uri:
                    self.others.clear()
                    return [str(row.get("code")) for row in message["params"]["diagnostics"]]
            message = self.messages.get(timeout=max(end - time.monotonic(), 0.1))
            assert message is not None, "the server has ended"
            self.others.append(message)

    def answers(self) -> None:
        """It lints on."""
        self.others.clear()
        self.number += 1
        name = f"well{self.number}.py"
        self.open(name, MISUSE)
        assert self.findings(name) == ["SL005"]

    def is_alone(self) -> bool:
        """Whether no process of the server is left."""
        try:
            os.killpg(self.process.pid, 0)
        except ProcessLookupError:
            return True
        return False

    def ends(self) -> int:
        code = self.process.wait(PATIENCE)
        end = time.monotonic() + PATIENCE
        while not self.is_alone() and time.monotonic() < end:
            time.sleep(0.05)
        assert self.is_alone()
        return code


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    made = Client(tmp_path)
    yield made
    with contextlib.suppress(ProcessLookupError):
        os.killpg(made.process.pid, signal.SIGKILL)
    made.process.wait(10)
    for pipe in (made.process.stdin, made.process.stdout):
        with contextlib.suppress(OSError):
            pipe.close()  # type: ignore[union-attr]


BODIES = {
    "empty": b"",
    "no JSON": b"{",
    "no object": b"[1, 2]",
    "null": b"null",
    "a number": b"3",
    "batch": b'[{"jsonrpc": "2.0", "id": 90, "method": "shutdown"}]',
    "no version": b'{"id": 91, "method": "textDocument/hover"}',
    "other version": b'{"jsonrpc": "9", "id": 92, "method": "textDocument/hover", "params": {}}',
    "no method": b'{"jsonrpc": "2.0", "id": 93}',
    "unknown method": b'{"jsonrpc": "2.0", "id": 94, "method": "no/such"}',
    "method of numbers": b'{"jsonrpc": "2.0", "id": 95, "method": 7, "params": {}}',
    "wrong parameters": b'{"jsonrpc": "2.0", "id": 96, "method": "textDocument/hover", "params": {"textDocument": 3}}',
    "parameters that are a list": b'{"jsonrpc": "2.0", "id": 97, "method": "textDocument/codeAction", "params": [1]}',
    "odd number": b'{"jsonrpc": "2.0", "id": {"a": 1}, "method": "textDocument/hover", "params": {}}',
    "an answer that nobody asked for": b'{"jsonrpc": "2.0", "id": "made-up", "result": {"x": 1}}',
    "an error that nobody asked for": b'{"jsonrpc": "2.0", "id": "made-up", "error": {"code": 1, "message": "x"}}',
    "no UTF-8": b'{"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": "\xff\xfe"}',
    "deep": b'{"jsonrpc": "2.0", "id": 98, "method": "x", "params": ' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    "not a number": b'{"jsonrpc": "2.0", "id": NaN, "method": "textDocument/hover", "params": {}}',
    "notification with wrong parameters": b'{"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {"a": []}}',
    "cancelled, never asked": b'{"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 4711}}',
}
HEADERS = {
    "words": b"hello\r\n\r\n",
    "bytes": bytes(range(256)) + b"\r\n\r\n",
    "no length": b"Content-Type: x\r\n\r\n",
    "length of letters": b"Content-Length: abc\r\n\r\n",
    "negative length": b"Content-Length: -5\r\n\r\n",
    "length of 0": b"Content-Length: 0\r\n\r\n",
}


def test_messages_that_are_none(client: Client) -> None:
    client.begin()
    for body in BODIES.values():
        client.body(body)
    client.answers()
    for header in HEADERS.values():
        client.raw(header)
    client.answers()
    assert client.ask("shutdown")["result"] is None
    client.say(method="exit")
    assert client.ends() == 0


@pytest.mark.parametrize("data", [b"Content-Length: 999999999999\r\n\r\n{}", b"Content-Length: 50\r\n\r\n{", b"Content-Le"])
def test_a_message_that_never_ends_ends_with_its_client(client: Client, data: bytes) -> None:
    client.begin()
    client.raw(data)
    assert client.process.stdin is not None
    client.process.stdin.close()
    assert client.ends() == 1


def test_documents_that_are_odd(client: Client, tmp_path: Path) -> None:
    client.begin()
    odd = {
        "large.py": MISUSE + "x = 1\n" * 100_000,
        "larger.py": MISUSE + "#" * (17 << 20),
        "line.py": MISUSE + "x = '" + "a" * 3_000_000 + "'\n",
        "surrogate.py": MISUSE + "x = '\ud800'\n",
        "null.py": MISUSE + "\0",
        "deep.py": "import torch\ntorch.cuda.synchronize()\nx = " + "(" * 5000,
        "binary.py": bytes(range(256)).decode("latin-1"),
        "declared.py": "# coding: no-such\n" + MISUSE,
    }
    for name, text in odd.items():
        client.open(name, text)
    (tmp_path / "latin.py").write_bytes(b"# \xff\xfe\n" + MISUSE.encode())  # read from disk, where an open document imports it
    client.open("imports.py", "from latin import run\n" + MISUSE)
    client.open("../../etc/passwd.py", MISUSE)
    client.say(
        method="textDocument/didOpen", params={"textDocument": {"uri": "bad uri %zz", "languageId": "python", "version": 1, "text": MISUSE}}
    )
    client.answers()
    assert client.ask("shutdown")["result"] is None
    client.say(method="exit")
    assert client.ends() == 0


def test_edits_that_do_not_fit(client: Client) -> None:
    client.begin()
    client.open("a.py", MISUSE)
    far = {"line": 4_000_000, "character": 4_000_000}
    back = {"start": {"line": 5, "character": 3}, "end": {"line": 1, "character": 0}}
    client.change("a.py", 2, {"range": {"start": far, "end": far}, "text": "x = 1\n"})
    client.change("a.py", 1, {"range": back, "text": "y = 2\n"})  # an older version, and the wrong way round
    client.change("a.py", 3, {"range": {"start": {"line": -1, "character": -7}, "end": far}, "text": "z"})
    client.change("a.py", 4)
    client.change("never-opened.py", 2, {"text": MISUSE})
    client.say(method="textDocument/didClose", params={"textDocument": {"uri": client.folder.as_uri() + "/never-opened.py"}})
    for _ in range(2):
        client.say(method="textDocument/didClose", params={"textDocument": {"uri": (client.folder / "a.py").as_uri()}})
    client.change("a.py", 5, {"text": MISUSE})
    document = {"textDocument": {"uri": (client.folder / "b.py").as_uri()}}
    client.open("b.py", MISUSE)
    assert "result" in client.ask("textDocument/hover", {**document, "position": far})
    where = {"range": {"start": far, "end": {"line": 0, "character": 0}}, "context": {"diagnostics": []}}
    client.ask("textDocument/codeAction", {**document, **where})
    client.answers()


def test_requests_before_the_beginning_and_after_the_end(client: Client) -> None:
    place = {"textDocument": {"uri": client.folder.as_uri() + "/a.py"}, "position": {"line": 0, "character": 0}}
    client.ask("textDocument/hover", place)
    client.begin()
    client.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
    client.answers()
    client.ask("shutdown")
    client.open("late.py", MISUSE)
    client.say(id=4711, method="textDocument/hover", params=place)  # pygls answers no more
    client.say(id=4712, method="shutdown")
    client.say(method="exit")
    assert client.ends() == 0


@pytest.mark.parametrize("how", ["closes", "kills"])
def test_a_client_that_disappears(client: Client, how: str) -> None:
    """While a text is linted that takes long: it closes its end, or kills the server that it had started."""
    client.begin()
    client.open("long.py", MISUSE + "".join(MISUSE.replace("run", f"run_{number}") for number in range(3_000)))
    time.sleep(2)
    assert not client.is_alone()
    assert client.process.stdin is not None
    if how == "kills":
        client.process.send_signal(signal.SIGKILL)
    else:
        client.process.stdin.close()
    assert client.ends() == (-9 if how == "kills" else 1)
