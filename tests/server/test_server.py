"""The installed server as an editor meets it."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from lsp_editor import COMMAND, editor, play
from lsprotocol import types

HEAD = "import torch\n\n\n"
LOAD = 'def load(n=1 << 20):\n    host = torch.empty(n)\n    return host.to("cuda", non_blocking=True)\n\n\n'
READ = 'def read(x):\n    host = x.cuda().to("cpu", non_blocking=True)\n    return {before}host.numpy()\n'
PLAIN = HEAD + LOAD + READ.format(before="")
# Two letters beyond U+FFFF before the finding: UTF-16 counts each twice.
WIDE = HEAD + LOAD + READ.format(before='"𝄞𝄞", ')
WAIT = "    torch.cuda.current_stream().synchronize()\n"
FIXALL = "source.fixAll.streamlint"


def check(folder, *words, **more):
    return subprocess.run([str(COMMAND), "check", *words], cwd=folder, capture_output=True, text=True, timeout=120, **more)


def titles(actions):
    return [(each.title, each.kind, each.is_preferred) for each in actions]


def test_a_user_edits_a_file(tmp_path):
    """Findings, fixes that give the text of ``check --fix``, pages, a file that does not parse, and the end."""
    path = tmp_path / "a.py"
    path.write_text(WIDE, encoding="utf-8")

    async def scenario():
        async with editor(tmp_path) as user:
            user.open("a.py", WIDE)
            pageable, early = await user.diagnostics("a.py")
            assert user.answer.capabilities.position_encoding == "utf-16"
            assert (early.code, early.source, early.severity) == ("SL005", "streamlint", types.DiagnosticSeverity.Error)
            assert (pageable.code, pageable.severity) == ("SL001", types.DiagnosticSeverity.Warning)
            assert early.code_description.href == "https://streamlint.readthedocs.io/rules/d2h-read-before-sync/"
            line = WIDE.splitlines()[10]
            before = line[: line.index("numpy")]
            start = len(before) + 2
            assert early.range == types.Range(types.Position(10, start), types.Position(10, start + 5))
            (step,) = early.related_information
            assert (step.location.uri, step.location.range.start) == (user.uri("a.py"), types.Position(9, 20))
            assert early.message.startswith("host read before the asynchronous device-to-host copy completes; ")
            assert early.tags is None

            quick = await user.actions("a.py", 10, "quickfix")
            assert titles(quick) == [
                ("SL005: wait for the copy", "quickfix", True),
                ("suppress SL005 with a comment", "quickfix", None),
            ]
            fixed = user.applied("a.py", quick[0].edit)
            assert fixed == WIDE.replace("    return (", WAIT + "    return (").replace('    return "', WAIT + '    return "')
            hidden = user.applied("a.py", quick[1].edit)
            unsafe, _ = await user.actions("a.py", 5, "quickfix")
            assert unsafe.title == "SL001: pin the allocation (unsafe: read it before you keep it)"
            assert not unsafe.is_preferred
            assert "pin_memory=True" in user.applied("a.py", unsafe.edit)
            (everything,) = await user.actions("a.py", 0, FIXALL)
            assert user.applied("a.py", everything.edit) == fixed
            assert titles(await user.actions("a.py", 0, "source")) == [("streamlint: fix all that can be fixed safely", FIXALL, None)]
            assert await user.actions("a.py", 10, "refactor") == []

            page = await user.hover("a.py", 10, start + 1)
            assert page.contents.value.startswith("# d2h-read-before-sync (SL005)")
            assert "NVIDIA H200" in page.contents.value
            assert await user.hover("a.py", 0, 1) is None
            user.type("a.py", hidden)
            assert [each.code for each in await user.diagnostics("a.py")] == ["SL001"]
            place = hidden.splitlines()[10].index("SL005") + 2 + 2
            assert (await user.hover("a.py", 10, place)).contents.value == page.contents.value
            assert await user.hover("a.py", 10, 5) is None

            user.type("a.py", WIDE.replace("def read(x)", "def read(x"))
            (broken,) = await user.diagnostics("a.py")
            assert (broken.code, broken.severity, broken.range.start.line) == ("SL000", types.DiagnosticSeverity.Warning, 8)
            assert broken.message.startswith("syntax error: ")
            assert await user.actions("a.py", 8, "quickfix") == []
            user.type("a.py", fixed)
            await user.codes("a.py", ["SL001"])
            user.close("a.py")
            await user.codes("a.py", [])
            assert (user.logged, user.alerts) == ([], [])
        return fixed, hidden

    fixed, hidden = play(scenario)
    check(tmp_path, "--fix")
    assert path.read_text(encoding="utf-8") == fixed
    path.write_text(WIDE, encoding="utf-8")
    check(tmp_path, "--add-ignore", "--select", "SL005")
    assert path.read_text(encoding="utf-8") == hidden


def test_typing_shows_the_newest_text_alone(tmp_path):
    async def scenario():
        async with editor(tmp_path) as user:
            user.open("a.py", PLAIN)
            for number in range(20):
                user.type("a.py", PLAIN.replace("host", f"host{number}"))
            user.type("a.py", HEAD + READ.format(before=""))
            assert [each.code for each in await user.diagnostics("a.py")] == ["SL005"]
            # The keys came within the delay: nothing was linted in between, and nothing older comes after.
            assert [(each.version, len(each.diagnostics)) for each in user.history][-1] == (22, 1)
            assert {each.version for each in user.history} <= {1, 22}

    play(scenario)


def test_settings_are_read_again(tmp_path):
    """Configuration files, the editor's own settings, suppressions, a baseline, excluded files."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "baseline.json").write_text('{"streamlint-baseline": 1, "findings": []}')

    def configure(text):
        (tmp_path / "streamlint.toml").write_text(text)

    async def scenario():
        async with editor(tmp_path, options={"settings": {"delay": 1}}) as user:
            assert user.alerts == []
            user.open("a.py", PLAIN)
            user.open("tests/test_a.py", PLAIN)
            await user.codes("a.py", ["SL001", "SL005"])
            assert await user.diagnostics("tests/test_a.py") == []
            assert user.registered == ["workspace/didChangeWatchedFiles"]

            configure('ignore = ["SL001"]\n')
            user.touch("streamlint.toml")
            await user.codes("a.py", ["SL005"])
            configure('ignore = ["SL01"]\nselct = []\n')
            user.touch("streamlint.toml")
            await user.codes("a.py", [])
            assert user.logged == [f"{tmp_path / 'streamlint.toml'}:2: unknown key 'selct'; did you mean 'select'?"]
            configure("")
            user.touch("streamlint.toml")
            await user.codes("a.py", ["SL001", "SL005"])

            (tmp_path / "a.py").write_text(PLAIN)
            check(tmp_path, "--write-baseline", "baseline.json", "--select", "SL005")
            configure('baseline = "baseline.json"\n')
            user.touch("streamlint.toml")
            await user.codes("a.py", ["SL001"])
            user.type("a.py", PLAIN.replace("True)\n\n", "True)  # streamlint: ignore[SL001] small\n\n"))
            assert await user.diagnostics("a.py") == []
            user.type("a.py", "# a comment that moves everything\n" + PLAIN)
            await user.codes("a.py", ["SL001"])

            change = types.DidChangeConfigurationParams({"streamlint": {"configuration": {"select": ["SL900"]}, "colour": 1}})
            user.client.workspace_did_change_configuration(change)
            await user.codes("a.py", [])
            assert user.alerts[-1] == "streamlint: setting streamlint.colour is not known; there are configuration, delay, path, args"
            user.type("a.py", "import torch\n\nx = 1  # streamlint: ignore[SL005]\n")
            assert await user.diagnostics("a.py") == []
            change = types.DidChangeConfigurationParams({"streamlint": {"configuration": {"select": ["SL900", "SL005"]}}})
            user.client.workspace_did_change_configuration(change)
            await user.codes("a.py", ["SL900"])
            (unused,) = user.shown[user.uri("a.py")].diagnostics
            assert unused.tags == [types.DiagnosticTag.Unnecessary] or list(unused.tags) == [types.DiagnosticTag.Unnecessary]
            both = await user.hover("a.py", unused.range.start.line, unused.range.start.character + len("# streamlint: ignore[S"))
            assert re.findall(r"^# .*\((SL\d+)\)$", both.contents.value, re.MULTILINE) == ["SL900", "SL005"]
            assert both.range == unused.range

    play(scenario)


def test_folders_have_their_own_settings(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    for folder, code in ((one, "SL001"), (two, "SL005")):
        folder.mkdir()
        (folder / "pyproject.toml").write_text(f'[tool.streamlint]\nselect = ["{code}"]\n')

    async def scenario():
        pulled = types.ClientCapabilities(
            workspace=types.WorkspaceClientCapabilities(configuration=True, workspace_folders=True),
            general=types.GeneralClientCapabilities(position_encodings=["utf-8", "utf-16"]),
        )
        async with editor(tmp_path, folders=[one], capabilities=pulled) as user:
            user.open("one/a.py", WIDE)
            user.open("two/a.py", WIDE)
            await user.codes("one/a.py", ["SL001"])
            await user.codes("two/a.py", ["SL005"])  # in no folder of the workspace: alone, with the nearest settings
            assert user.answer.capabilities.position_encoding == "utf-8"
            (found,) = user.shown[user.uri("two/a.py")].diagnostics
            line = WIDE.splitlines()[10]
            assert found.range.start.character == len(line[: line.index("numpy")].encode())
            assert found.related_information is None
            quick = await user.actions("two/a.py", 10, "quickfix")
            assert [list(each.edit.changes) for each in quick] == [[user.uri("two/a.py")]] * 2

            user.settings = {"configuration": {"ignore": ["SL005"]}}
            user.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(None))
            await user.codes("two/a.py", [])
            user.settings = {}
            user.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(None))
            await user.codes("two/a.py", ["SL005"])
            event = types.WorkspaceFoldersChangeEvent(
                [types.WorkspaceFolder(two.as_uri(), "two")], [types.WorkspaceFolder(one.as_uri(), "one")]
            )
            (one / "pyproject.toml").write_text("")
            user.client.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(event))
            await user.codes("one/a.py", ["SL001", "SL005"])
            assert user.logged == []

    play(scenario)


KERNEL = """\
#include <cuda_runtime.h>

void fill(float* out, const float* in, size_t n, cudaStream_t s) {
    for (int i = 0; i < 100; ++i) {
        float* d;
        cudaMalloc(&d, n);
        cudaMemcpyAsync(d, in, n, cudaMemcpyHostToDevice, s);
        cudaFree(d);
    }
}
"""
LOADERS = "import torch\n\n\ndef make(n):\n    return torch.empty(n{pinned})\n"
USES = 'import torch\nfrom loaders import make\n\n\ndef run(n=1 << 20):\n    return make(n).to("cuda", non_blocking=True)\n'


def test_other_languages_and_other_files(tmp_path):
    """C++ and Cython; a change in one file is seen in another, in the editor and on disk."""
    (tmp_path / "loaders.py").write_text(LOADERS.format(pinned=""))
    wanted = [
        row["code"] for row in json.loads(check(tmp_path, "-", "--stdin-filename", "k.cu", "--output-format", "json", input=KERNEL).stdout)
    ]
    assert wanted

    async def scenario():
        async with editor(tmp_path) as user:
            user.open("k.cu", KERNEL, "cuda-cpp")
            await user.codes("k.cu", wanted)
            user.open("plain", KERNEL, "cuda")  # no suffix: the editor says what it is
            await user.codes("plain", wanted)
            user.open("notes.txt", "import torch", "plaintext")
            user.open("a.py", USES)
            await user.codes("a.py", ["SL001"])
            user.open("loaders.py")
            user.type("loaders.py", LOADERS.format(pinned=", pin_memory=True"))
            await user.codes("a.py", [])
            user.close("loaders.py")  # without saving
            await user.codes("a.py", ["SL001"])
            (tmp_path / "loaders.py").write_text(LOADERS.format(pinned=", pin_memory=True"))
            user.touch("loaders.py")
            await user.codes("a.py", [])
            (tmp_path / "loaders.py").unlink()
            user.touch("loaders.py", types.FileChangeType.Deleted)
            await user.diagnostics("a.py")
            assert user.uri("notes.txt") not in user.shown
            assert user.logged == []

    play(scenario)


def test_faults_are_told_and_survived(tmp_path):
    """Unknown methods, wrong parameters, and a linting process that dies."""
    children = "/proc/{pid}/task/{pid}/children"

    async def scenario():
        async with editor(tmp_path, quiet=False) as user:
            protocol = user.client.protocol
            with pytest.raises(Exception, match=r"[Mm]ethod"):
                await protocol.send_request_async("textDocument/unheardOf", {})
            protocol.notify("textDocument/didChange", {"nothing": True})
            await user.until(lambda: user.logged)
            assert await user.actions("never_opened.py", 0) == []
            user.open("a.py", PLAIN)
            await user.codes("a.py", ["SL001", "SL005"])
            if sys.platform == "linux":
                pid = user.client._server.pid
                with open(children.format(pid=pid)) as listed:
                    (child,) = map(int, listed.read().split())
                subprocess.run(["kill", "-9", str(child)], check=True)
                user.type("a.py", PLAIN + "\n")
                await user.codes("a.py", ["SL001", "SL005"])
            user.logged.clear()

    play(scenario)


def test_an_answer_that_is_taken_back_is_no_fault(tmp_path):
    """Editors cancel requests that have been answered meanwhile. ``editor`` sees that nothing is said on stderr."""

    async def scenario():
        async with editor(tmp_path) as user:
            user.client.cancel_request(types.CancelParams("4711"))
            user.open("a.py", PLAIN)
            await user.codes("a.py", ["SL001", "SL005"])
            assert user.logged == []

    play(scenario)


def frame(message):
    body = message if isinstance(message, bytes) else json.dumps({"jsonrpc": "2.0", **message}).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


START = frame({"id": 1, "method": "initialize", "params": {"processId": None, "rootUri": None, "capabilities": {}}})
SHUTDOWN, EXIT = frame({"id": 2, "method": "shutdown"}), frame({"method": "exit"})


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (START + SHUTDOWN + EXIT, 0),
        (START + EXIT, 1),
        (START, 1),  # the editor is gone
        (START + frame(b"{no json") + frame({"id": 3}) + frame({"id": 4, "method": 5}) + SHUTDOWN + EXIT, 0),
    ],
    ids=["shutdown", "exit alone", "end of input", "no json"],
)
def test_how_it_ends(sent, code, tmp_path):
    done = subprocess.run([str(COMMAND), "server"], input=sent, cwd=tmp_path, capture_output=True, timeout=120)
    assert done.returncode == code
    assert done.stdout.startswith(b"Content-Length: ")
    assert b'"id":1' in done.stdout.replace(b" ", b"")


def test_without_pygls_it_says_what_to_install(tmp_path):
    hide = "import importlib.util as u, sys; real = u.find_spec; u.find_spec = lambda name: None if name == 'pygls' else real(name); "
    run = "from streamlint.cli import main; sys.exit(main(['server']))"
    done = subprocess.run([sys.executable, "-c", hide + run], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "streamlint: the server needs pygls; install it with: pip install 'streamlint[server]'\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--tcp", "nowhere"], "streamlint server: argument --tcp: expected HOST:PORT, not 'nowhere'\n"),
        (["--config", "selct = []"], "streamlint: --config: unknown key 'selct'; did you mean 'select'?\n"),
        (["--stdoi"], "streamlint server: unknown option '--stdoi'; did you mean '--stdio'?\n"),
    ],
    ids=["tcp", "config", "option"],
)
def test_wrong_words_are_refused(words, message, tmp_path):
    done = subprocess.run([str(COMMAND), "server", *words], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


def test_the_command_line_knows_nothing_of_the_server(tmp_path):
    """Its libraries are not imported by ``check``."""
    (tmp_path / "a.py").write_text(PLAIN)
    code = (
        "import sys; from streamlint.cli import main; main(['check', '--fix']); "
        "print([name for name in sys.modules if name.partition('.')[0] in ('pygls', 'lsprotocol') or name.startswith('streamlint.server')])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines()[-1] == "[]"
