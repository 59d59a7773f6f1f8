"""Texts that try to be more than texts, by other ways than sources: names of files, configurations, words of the command line, git."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import forks
import pytest
from hardening.groups import begun, ended
from hardening.inputs import MISUSE

from streamlint import cli
from streamlint.report import FORMATS
from streamlint.triage.baseline import KEYS, VERSION

OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
COMMAND = re.compile(r"^\s*::[^:]")
EVIL = "a\n::error file=x::owned\n\x1b[31m\x1b]8;;http:x\x07\r\u202e\u2066\u2028\x85<b onload=x>]]>&\udcff"
TEXT = EVIL.replace("\udcff", "")  # no TOML holds half of a pair
TOML = json.dumps(TEXT)
EMPTY = "models = [{call = [{names = 'lib.f', effect = 'touch'}]}]\n"


def tell(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """A run's status and streams, of which no line is obeyed by a terminal or by GitHub."""
    code = cli.main([*words])
    out, errors = capsys.readouterr()
    assert "internal error" not in errors
    for text in (out, errors):
        assert OBEYED.findall(text) == []
        assert [row for row in text.split("\n") if COMMAND.match(row) and "github" not in words] == []
    return code, out, errors


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(MISUSE)
    return tmp_path


@pytest.fixture
def named(tree: Path) -> str:
    """The name of a file in a folder, both of them hostile."""
    folder = tree / EVIL.replace("/", "")
    folder.mkdir()
    path = folder / f"{EVIL.replace('/', '')}.py"
    path.write_text(MISUSE.replace("run", "other"))  # a copy would be told with the first
    return os.path.relpath(path, tree)


@pytest.mark.parametrize("format", FORMATS)
def test_names_in_each_format(named: str, format: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = tell(capsys, "check", "--isolated", "--output-format", format, ".")
    assert code == 1
    assert format != "github" or len([row for row in out.split("\n") if COMMAND.match(row)]) == 2


ASKED = {
    "files": ["--show-files"],
    "settings": ["--show-settings"],
    "configurations": ["--verbose"],
    "coverage": ["--coverage"],
    "statistics": ["--statistics"],
    "diff": ["--diff"],
    "fixes": ["--fix", "--unsafe-fixes", "--show-fixes"],
    "comments": ["--add-ignore"],
    "a baseline": ["--write-baseline", f"{EVIL}.json"],
    "a report": ["-o", f"{EVIL}.json"],
    "a report in no folder": ["-o", f"{EVIL}/x"],
    "a report in a format of no name": ["--output-format", f"{EVIL}:x"],
    "a report beside": ["--output-format", f"json:{EVIL}"],
    "a revision": ["--since", EVIL],
    "a rule": ["--select", EVIL],
    "an option": [f"--{EVIL}"],
    "a value": ["--jobs", EVIL],
    "a shard": ["--shard", EVIL],
    "a configuration": ["--config", EVIL],
    "a setting": ["--config", f"{EVIL}=1"],
    "the value of a setting": ["--config", f"select={TOML}"],
    "a cache": ["--cache-dir", f"a.py/{EVIL}"],
    "a path": [EVIL],
    "a path to watch": ["--watch", f"{EVIL}.none"],
    "a folder to watch": ["--watch", EVIL],
    "a line": ["--explain-silence", EVIL],
}


@pytest.mark.parametrize("what", ASKED)
def test_words_of_the_command_line(tree: Path, named: str, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tree / named.rpartition("/")[0]
    (folder / "streamlint.toml").write_text(f"cache-dir = {TOML}\nexclude = [{TOML}]\nper-file-ignores = {{{TOML} = ['SL001']}}\n{EMPTY}")
    assert tell(capsys, "check", *ASKED[what], ".")[0] in (0, 1, 2)


@pytest.mark.parametrize(
    "words", [[EVIL], ["rule", EVIL], [f"--{EVIL}"], ["clean", "--cache-dir", EVIL], ["evidence", EVIL], ["merge", EVIL]]
)
def test_words_of_other_commands(tree: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    tell(capsys, *words)


def test_the_silence_of_a_line(named: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(named).write_text(f"import torch\nx = torch.cuda.Stream()  # {EVIL.replace(chr(10), '')}\n", encoding="utf-8", errors="replace")
    assert tell(capsys, "check", "--isolated", "--explain-silence", f"{named}:2", ".")[0] == 0


@pytest.mark.parametrize("format", FORMATS)
def test_the_name_of_standard_input(tree: Path, format: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["check", "--isolated", "--output-format", format, "--stdin-filename", f"{EVIL}.py", "-"]
    done = forks.run(tree, *words, input=MISUSE.encode())
    told = done.stdout + done.stderr
    assert (done.returncode, OBEYED.findall(told)) == (1, [])
    assert len([row for row in told.split("\n") if COMMAND.match(row)]) == (format == "github") * 1


def test_a_name_that_comes_while_it_is_watched(tree: Path) -> None:
    pytest.importorskip("watchfiles")
    with begun(tree, "check", "--isolated", "--no-cache", "--watch", ".") as process:
        assert process.stderr is not None
        while b"watching for changes" not in (row := process.stderr.readline()):
            assert row
        (tree / f"{EVIL.replace('/', '')}.py").write_text(MISUSE)
        status, _, errors = ended(process)
    assert (status, b"Traceback" in errors) == (2, False)
    assert OBEYED.findall(errors.decode()) == []


def test_the_environment(tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("STREAMLINT_NO_CACHE", "")
    monkeypatch.setenv("STREAMLINT_CACHE_DIR", f"a.py/{EVIL}")
    monkeypatch.setenv("STREAMLINT_FILE_SECONDS", EVIL)
    code, _, errors = tell(capsys, "check", "--isolated", ".")
    assert (code, "cannot be written" in errors) == (1, True)


SETTINGS = [
    f"{TOML} = 1\n",
    f"select = [{TOML}]\n",
    f"per-file-ignores = {{'*' = [{TOML}]}}\n",
    f"extend = {TOML}\n",
    f"baseline = {TOML}\n",
    f"cache-dir = {json.dumps('a.py/' + TEXT)}\n",
    *(f"{key} = {TOML}\n" for key in ("output-format", "hidden-sync", "default-stream", "target-device", "evidence", "preview", "exclude")),
    *(f"models = [{{{key} = {TOML}}}]\n" for key in ("call", "language", "library", "version", "triggers", "seams")),
    f"models = [{{{TOML} = 1}}]\n",
    f"models = [{{call = [{{names = {TOML}, effect = 'x'}}]}}]\n",
    f"models = [{{call = [{{names = 'lib.f', effect = {TOML}}}]}}]\n",
    f"models = [{{call = [{{names = 'lib.f', effect = 'factory', {TOML} = 1}}]}}]\n",
    f"models = [{{call = [{{names = 'lib.f', effect = 'factory', device = {TOML}}}]}}]\n",
    f"models = [{{call = [{{names = 'lib.f', effect = 'unpack', from = {TOML}}}]}}]\n",
    f"models = [{{type = [{{names = 'lib.T', kind = {TOML}}}]}}]\n",
    f"models = [{{constant = [{{names = 'lib.C', value = {TOML}}}]}}]\n",
    f"models = [{{step = [{{names = 'lib.S', methods = 'm', {TOML} = 1}}]}}]\n",
]


@pytest.mark.parametrize("text", SETTINGS, ids=range(len(SETTINGS)))
def test_configurations(tree: Path, text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMLINT_NO_CACHE", "")
    (tree / "streamlint.toml").write_text(text)
    code, _, errors = tell(capsys, "check", ".")
    assert (code, errors.count("\n") < 9) == (
        1 if "cache-dir" in text or "triggers" in text or "seams" in text else 2,
        True,
    )
    tell(capsys, "check", "--show-settings", ".")


@pytest.mark.parametrize("format", FORMATS)
def test_rows_whose_words_come_into_messages(tree: Path, format: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Types, libraries and names of a configuration's own models: each is refused, and named in the error."""
    for wrong in (
        f"library = {TOML}",
        f"type = [{{names = {TOML}, kind = 'buffer', space = 'device'}}]",
        f"type = [{{names = 'lib.T', kind = 'buffer', base = {TOML}}}]",
        f"library = 'torch', call = [{{names = 'lib.*', effect = 'factory', space = 'device', type = {TOML}}}]",
        f"call = [{{names = [{json.dumps(TEXT + '.get')}, {json.dumps('*' + TEXT + '*')}], effect = 'touch'}}]",
        f"call = [{{names = 'lib.f', effect = 'namespace', name = {TOML}}}]",
    ):
        (tree / "streamlint.toml").write_text(f"models = [{{triggers = [{TOML}], {wrong}}}]\n")
        code, _, errors = tell(capsys, "check", "--select", "ALL", "--output-format", format, ".")
        assert (code, "streamlint.toml:1: models[0]" in errors) == (2, True)


@pytest.mark.parametrize("value", [TEXT, [], {}, 1, None, TEXT * 9_999, "\0"], ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("key", KEYS)
def test_baselines(tree: Path, key: str, value: object, capsys: pytest.CaptureFixture[str]) -> None:
    entry = {**dict.fromkeys(KEYS, "x"), "code": "SL005", key: value}
    (tree / "known.json").write_text(json.dumps({"streamlint-baseline": VERSION, "findings": [entry]}))
    (tree / "streamlint.toml").write_text("baseline = 'known.json'\n")
    assert tell(capsys, "check", ".")[0] == (1 if isinstance(value, str) else 2)
    assert tell(capsys, "check", "--write-baseline", "known.json", ".")[0] == (0 if isinstance(value, str) else 2)


def test_git(named: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (
        ["init", "-q"],
        ["add", "a.py"],
        ["-c", "user.name=x", "-c", "user.email=x", "commit", "-qm", EVIL.replace("\udcff", "")],
    ):
        subprocess.run(["git", *words], check=True)
    for added in (False, True):
        if added:
            subprocess.run(["git", "add", "."], check=True)
        code, out, _ = tell(capsys, "check", "--isolated", "--since", "HEAD", "--output-format", "concise", ".")
        assert (code, out.count("SL005")) == (1, 1)


def test_a_patch_in_a_job_of_github(tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A patch keeps each byte, so what its lines say is not obeyed in between; ``git apply`` passes over the two lines."""
    source = MISUSE.replace("    host", '    """\n::error::owned\n"""\n    host')
    (tree / "a.py").write_text(source)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert cli.main(["check", "--isolated", "--diff", "a.py"]) == 1
    out, _ = capsys.readouterr()
    first, *between, last = out.rstrip("\n").split("\n")
    assert first == f"::stop-commands::{last.strip(':')}"
    assert " ::error::owned" in between
    assert last.strip(":") not in "\n".join(between)
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "apply", "-"], input=out.encode(), check=True)
    assert (tree / "a.py").read_text() != source
    monkeypatch.delenv("GITHUB_ACTIONS")
    (tree / "a.py").write_text(source)
    assert cli.main(["check", "--isolated", "--diff", "a.py"]) == 1
    assert capsys.readouterr().out.startswith("--- a.py\n")
