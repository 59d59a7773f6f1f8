"""In which order the server starts: it answers before it imports, and works out repairs before somebody asks."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys

import pytest
from lsp_editor import editor, play
from lsprotocol import types

from streamlint.server import greeting
from streamlint.server.app import Server, _documents, _lifetime, _notebooks, _requests
from streamlint.server.jobs import Answer, FindingRow, FixAll, Linted, Repair, Repairs, Setup
from streamlint.server.session import Document, Session

HEAVY = (
    "pygls",
    "lsprotocol",
    "attrs",
    "cattrs",
    "asyncio",
    "tree_sitter",
    "streamlint.runner.engine",
    "streamlint.runner.linter",
)
PLAIN = 'import torch\n\n\ndef load(n=1 << 20):\n    return torch.empty(n).to("cuda", non_blocking=True)\n'


def framed(message: object) -> bytes:
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def request(**capabilities: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {"processId": None, "rootUri": None, "capabilities": capabilities}}


def test_the_editor_is_answered_before_anything_heavy_is_imported(tmp_path):
    script = (
        "import sys\n"
        "from streamlint.commands import server\n"
        "real = server.greet\n"
        "def greet(*streams):\n"
        "    made = real(*streams)\n"
        f"    print([name for name in {HEAVY!r} if name in sys.modules], 'answered', file=sys.stderr)\n"
        "    return made\n"
        "server.greet = greet\n"
        "from streamlint.cli import main\n"
        "main(['server'])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, input=framed(request()), capture_output=True, timeout=120)
    assert done.stderr.decode().splitlines() == ["[] answered"]
    assert done.stdout.count(b"Content-Length") == 1  # pygls' own answer is dropped
    assert json.loads(done.stdout.partition(b"\r\n\r\n")[2])["id"] == 7


@pytest.mark.parametrize(
    "capabilities",
    [
        {},
        {"general": {"positionEncodings": ["utf-8", "utf-16"]}},
        {"general": {"positionEncodings": ["utf-7", "utf-32"]}},
        {"general": {"positionEncodings": []}},
        {"notebookDocument": {"synchronization": {}}},
        {"textDocument": {"synchronization": {"didSave": True}, "codeAction": {"resolveSupport": {"properties": ["edit"]}}}},
    ],
)
def test_the_early_answer_is_that_of_pygls(capabilities):
    """But for a list of commands, of which there are none, and what is empty."""
    server = Server(Setup(()))
    for register in (_lifetime, _documents, _notebooks, _requests):
        register(server)
    sent = io.BytesIO()
    server.start_io(io.BytesIO(framed(request(**capabilities))), sent)
    theirs = json.loads(sent.getvalue().partition(b"\r\n\r\n")[2])["result"]
    del theirs["capabilities"]["executeCommandProvider"], theirs["capabilities"]["workspace"]["fileOperations"]
    assert greeting.result(request(**capabilities)["params"]) == theirs
    assert theirs["capabilities"]["textDocumentSync"]["change"] == types.TextDocumentSyncKind.Incremental


@pytest.mark.parametrize(
    "data",
    [
        b"hello\r\n\r\n",
        framed(b"{no json"),
        framed(b"[1]"),
        framed({"jsonrpc": "2.0", "id": 1, "method": "shutdown"}),
        framed({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": None}),
        framed({"jsonrpc": "2.0", "id": True, "method": "initialize", "params": {"capabilities": {}}}),
    ],
)
def test_what_is_no_beginning_is_left_to_pygls(data):
    sent = io.BytesIO()
    incoming, _ = greeting.greet(io.BytesIO(data + framed(request())), sent)
    assert sent.getvalue() == b""
    assert b"".join(iter(incoming.readline, b"")) == data + framed(request())


def test_an_error_of_a_request_that_was_answered_is_logged():
    sent = io.BytesIO()
    out = greeting.Outgoing(sent, 7)
    out.write(framed({"jsonrpc": "2.0", "id": 7, "error": {"code": 1, "message": "odd"}}))
    out.write(framed({"jsonrpc": "2.0", "id": 7, "result": 1}))
    assert b"initialize' is not understood: odd" in sent.getvalue()
    assert b"window/logMessage" in sent.getvalue()
    assert sent.getvalue().count(b'"id": 7') == 1


class Desk:
    """Counts what it is asked."""

    def __init__(self, *_):
        self.jobs = []

    def tell(self, job):
        self.jobs.append(job)

    async def ask(self, job):
        self.jobs.append(job)
        rows = tuple(FindingRow("SL001", "warning", "m", "", (0, 0, 0, 1), fingerprint=name) for name in "ab")
        repair = Repair("t", "safe", ())
        values = {"Lint": Linted({"a.py": rows}), "Repairs": [[repair]] * len(getattr(job, "fingerprints", ())), "FixAll": repair}
        return Answer(1, "done", values[type(job).__name__])

    def asked(self, kind):
        return [job for job in self.jobs if isinstance(job, kind)]


class Screen:
    def show(self, document, rows):
        pass

    def log(self, message, aloud=False):
        raise AssertionError(message)


def test_repairs_are_worked_out_once_for_each_version(monkeypatch):
    monkeypatch.setattr("streamlint.server.session.Desk", Desk)
    monkeypatch.setattr("streamlint.server.session.READY", 0)

    async def scenario():
        session = Session(Screen(), lambda: Setup(()))
        desk, document = session._desk, Document("file:///a.py", "a.py", 1, "x", "python")
        session.open(document)
        while not document.all_fixes:
            await asyncio.sleep(0.001)
        assert [job.fingerprints for job in desk.asked(Repairs)] == [("a",), ("b",)]
        before = len(desk.jobs)
        assert len(await session.repairs(document, list(await session.current(document)))) == 2
        assert await session.fix_all(document) is not None
        assert len(desk.jobs) == before  # nothing is asked again
        session.change(document, 2, "y")
        assert not session.is_looked_at(document)
        await session.repairs(document, list(await session.current(document)))
        assert [job.fingerprints for job in desk.asked(Repairs)][2:] == [("a", "b")]
        assert len(desk.asked(FixAll)) == 1

    asyncio.run(scenario())


def test_an_editor_that_sends_parts(tmp_path):
    """Edits of parts give the findings of the whole; an editor that asks by itself while the user types costs no look."""

    async def scenario():
        async with editor(tmp_path) as user:
            assert user.answer.capabilities.text_document_sync.change == types.TextDocumentSyncKind.Incremental
            user.open("a.py", "# 𝄞\x0c\u2028\n" + PLAIN)
            await user.codes("a.py", ["SL001"])
            user.versions["a.py"] = 2
            place = types.Range(types.Position(0, 2), types.Position(0, 4))
            parts = [
                types.TextDocumentContentChangePartial(place, "a clef\n# "),
                types.TextDocumentContentChangePartial(types.Range(types.Position(6, 24), types.Position(6, 24)), ", pin_memory=True"),
            ]
            document = types.VersionedTextDocumentIdentifier(2, user.uri("a.py"))
            user.client.text_document_did_change(types.DidChangeTextDocumentParams(document, parts))
            context = types.CodeActionContext([], trigger_kind=types.CodeActionTriggerKind.Automatic)
            asked = types.CodeActionParams(types.TextDocumentIdentifier(user.uri("a.py")), place, context)
            assert list(await user.client.text_document_code_action_async(asked) or ()) == []
            await user.codes("a.py", [])

    play(scenario)
