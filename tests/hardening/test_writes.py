"""Files that are written, with the writer killed at any step, a full disk, odd links and encodings: old or new, never half."""

from __future__ import annotations

import errno
import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import forks
import pytest
from hardening.groups import kill_group
from hardening.inputs import MISUSE

from streamlint import cli
from streamlint.support import writing
from streamlint.support.errors import ConfigError
from streamlint.triage import rewriting
from streamlint.verify import evidence

# A process that writes, and is killed by itself at one of the system's calls that Python makes for it.
KILLED = """
import os, signal, sys
left = [int(sys.argv[1])]
def hook(name, arguments):
    if name in ("open", "os.rename", "os.remove", "os.chmod", "os.chown", "os.listxattr", "tempfile.mkstemp"):
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
def step(function):
    def call(*words, **more):
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*words, **more)
    return call
from streamlint.triage.rewriting import rewrite
from streamlint.support.writing import write_output
import tempfile, shutil, random
before, after, path, kind = sys.argv[2:6]
sys.addaudithook(hook)
for name in ("fsync", "replace", "fchmod", "fchown", "unlink", "stat", "close"):
    setattr(os, name, step(getattr(os, name)))
rewrite(path, before, after) if kind == "source" else write_output(path, after)
"""


@pytest.mark.parametrize("kind", ["source", "output"])
def test_a_file_is_old_or_new_at_whatever_step_the_writer_is_killed(tmp_path: Path, kind: str) -> None:
    path, before, after = tmp_path / "a.py", "x = 1\n" * 5_000, "y = 2\n" * 9_000
    seen = set()
    for step in range(60):
        path.write_text(before)
        done = forks.run(tmp_path, str(step), before, after, str(path), kind, script=KILLED)
        content = path.read_text()
        assert content in (before, after)
        seen.add((done.returncode, content == after))
        for left in tmp_path.iterdir():
            assert left == path or left.name.endswith(writing.SUFFIX)
            if left != path:
                left.unlink()
        if done.returncode == 0:
            break
    assert (0, True) in seen, done.stderr
    assert (-9, False) in seen
    assert (-9, True) in seen
    assert step > 8


def test_a_run_that_is_killed_at_any_moment_leaves_whole_files(tmp_path: Path) -> None:
    files = {tmp_path / f"m{number}.py": MISUSE.replace("run", f"run_{number}") for number in range(6)}
    for path, text in files.items():
        path.write_text(text)
    words = ["check", "--isolated", "--no-cache", "--fix", "--unsafe-fixes", "--select", "ALL", "."]
    pick = random.Random(1)
    for _ in range(8):
        with forks.begin(tmp_path, *words, stdout=forks.DEVNULL, stderr=forks.DEVNULL) as run:
            time.sleep(pick.uniform(0, 1.5))
            kill_group(run.pid)
        for path, text in files.items():
            now = path.read_text()
            compile(now, str(path), "exec")
            assert now == text or "synchronize()" in now
    done = forks.run(tmp_path, *words)
    assert all("synchronize()" in path.read_text() for path in files), done.stderr


# What stays ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"x = 1\r\ny = 2\r\n",
        b"x = 1\ry = 2\r",
        b"\xef\xbb\xbfx = 1\n",
        b"# coding: latin-1\nx = '\xe9'\n",
        b"# coding: cp1252\r\nx = '\x80'\r\n",
        b"x = 1",
        b"",
        b"\n\n",
        b"x = '\xf0\x9f\x98\x80\xc2\x85\xe2\x80\xa8'\x0c\n",
    ],
)
def test_bytes_that_do_not_change_stay(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(data)
    text = rewriting.decode(data, "python")[0]
    rewriting.rewrite(str(path), text, text + "z = 3")
    assert path.read_bytes() == data + b"z = 3"


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o755, 0o640, 0o4755])
def test_the_mode_stays(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "a.py"
    path.write_text("x")
    path.chmod(mode)
    rewriting.rewrite(str(path), "x", "y")
    assert (path.read_text(), path.stat().st_mode & 0o7777) == ("y", mode)
    writing.write_output(path, "z")
    assert (path.read_text(), path.stat().st_mode & 0o7777) == ("z", mode)


def test_a_new_file_has_the_mode_of_any_new_file(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        writing.write_output(tmp_path / "a", "x")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_extended_attributes_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("x")
    try:
        os.setxattr(path, "user.streamlint", b"1")
    except OSError:
        pytest.skip("no extended attributes here")
    rewriting.rewrite(str(path), "x", "y")
    assert os.getxattr(path, "user.streamlint") == b"1"


# What is refused ----------------------------------------------------------------------------------------------------------------


def test_a_file_that_changed_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("x = 2\n")
    with pytest.raises(ConfigError, match="changed while it was linted"):
        rewriting.rewrite(str(path), "x = 1\n", "y = 1\n")
    assert path.read_text() == "x = 2\n"


def test_a_file_that_changes_at_the_last_moment_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.py"
    path.write_text("x = 1\n")
    real = os.fsync

    def editor(handle: int) -> None:
        real(handle)
        path.write_text("x = 3\n")

    monkeypatch.setattr(os, "fsync", editor)
    with pytest.raises(ConfigError, match="changed while it was linted"):
        rewriting.rewrite(str(path), "x = 1\n", "y = 1\n")
    assert path.read_text() == "x = 3\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_in_the_tree_is_written_through_and_one_out_of_it_is_not(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / ".git").mkdir(parents=True)
    (tree / "a.py").write_text("x")
    (tmp_path / "outside.py").write_text("x")
    (tree / "near.py").symlink_to("a.py")
    (tree / "far.py").symlink_to("../outside.py")
    rewriting.rewrite(str(tree / "near.py"), "x", "y")
    assert (tree / "near.py").is_symlink()
    assert (tree / "a.py").read_text() == "y"
    with pytest.raises(ConfigError, match="out of the tree"):
        rewriting.rewrite(str(tree / "far.py"), "x", "y")
    assert (tmp_path / "outside.py").read_text() == "x"


def test_text_that_the_encoding_does_not_have_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"# coding: latin-1\n")
    with pytest.raises(ConfigError, match="encoding"):
        rewriting.rewrite(str(path), "# coding: latin-1\n", "# coding: latin-1\n# \N{SNOWMAN}\n")
    assert path.read_bytes() == b"# coding: latin-1\n"


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS])
def test_a_disk_that_takes_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int) -> None:
    path = tmp_path / "a.py"
    path.write_text("x")

    def full(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, call, full)
    with pytest.raises(ConfigError, match=f"cannot write .*{os.strerror(number)}"):
        rewriting.rewrite(str(path), "x", "y")
    with pytest.raises(OSError, match=os.strerror(number)):
        writing.write_output(path, "y")
    assert path.read_text() == "x"
    assert list(tmp_path.iterdir()) == [path]


def test_a_real_limit_on_the_size_of_files(tmp_path: Path) -> None:
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096));"
        "from streamlint.cli import main; sys.exit(main(['check', '--isolated', '-o', 'out.json', '--output-format', 'json', 'a.py']))"
    )
    (tmp_path / "a.py").write_text("".join(MISUSE.replace("run", f"run_{number}") for number in range(9)))
    (tmp_path / "out.json").write_text("old")
    done = forks.run(tmp_path, script=code)
    assert done.returncode == 2, done.stderr
    assert "cannot write out.json" in done.stderr
    assert (tmp_path / "out.json").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.py", "out.json"]


# Outputs ------------------------------------------------------------------------------------------------------------------------


def test_what_is_no_regular_file_is_written_to_as_it_is(tmp_path: Path) -> None:
    writing.write_output("/dev/null", "x")
    assert not Path("/dev/null").is_file()
    code = "from streamlint.support.writing import write_output; write_output('/dev/stdout', 'hello')"
    done = forks.run(tmp_path, script=code)
    assert (done.returncode, done.stdout) == (0, "hello")
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    writing.write_output(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


@pytest.mark.parametrize(
    "words", [["-o", "gone/out"], ["-o", "."], ["--write-baseline", "gone/b.json"], ["--coverage-file", "gone/c.json"]]
)
def test_outputs_that_cannot_be_written_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text("import torch\n")
    assert cli.main(["check", "--isolated", *words]) == 2
    assert "cannot write" in capsys.readouterr().err


# Evidence -----------------------------------------------------------------------------------------------------------------------

FACTS = {"gpu": "Fake GPU (tests)", "driver": "1.2.3", "cuda_runtime": "13.0", "packages": {}}
WRITER = """
import sys
from pathlib import Path
from streamlint.verify import evidence
facts = {"gpu": "Fake GPU (tests)", "driver": "1.2.3", "cuda_runtime": "13.0", "packages": {}}
for number in range(int(sys.argv[3])):
    cases = [{"rule": "SL001", "case": f"{sys.argv[2]}-{number}", "api": "torch", "verdict": "CONFIRMED", "reason": "x" * 2000}]
    evidence.save(cases, facts, Path(sys.argv[1]))
"""


def _writers(folder: Path, number: int, entries: int) -> list[forks.Process]:
    streams = {"stdout": forks.DEVNULL, "stderr": forks.DEVNULL}
    return [forks.begin(folder, str(folder), str(each), str(entries), script=WRITER, **streams) for each in range(number)]  # type: ignore[arg-type]


def test_parallel_writers_of_evidence_lose_nothing(tmp_path: Path) -> None:
    for process in _writers(tmp_path, 4, 6):
        assert process.wait(120) == 0
    assert {entry["case"] for entry in evidence.read(tmp_path)} == {f"{writer}-{number}" for writer in range(4) for number in range(6)}


def test_killed_writers_of_evidence_leave_it_whole(tmp_path: Path) -> None:
    pick = random.Random(2)
    evidence.save([_case("first")], FACTS, tmp_path)
    for _ in range(5):
        writers = _writers(tmp_path, 2, 400)
        time.sleep(pick.uniform(0.1, 1))
        for process in writers:
            process.kill()
            process.wait()
        (path,) = tmp_path.glob("*.json")
        assert evidence.parse(path.read_text(encoding="utf-8"))
    assert "first" in {entry["case"] for entry in evidence.read(tmp_path)}
    assert not list(tmp_path.glob("*.bad"))


def _case(name: str) -> dict[str, object]:
    return {"rule": "SL001", "case": name, "api": "torch", "verdict": "CONFIRMED", "reason": ""}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"schema": 1, "entries": [1]}', b"\0" * 4096])
def test_evidence_that_was_spoiled_is_kept_beside_and_begun_anew(tmp_path: Path, content: bytes) -> None:
    path = evidence.save([_case("a")], FACTS, tmp_path)
    path.write_bytes(content)
    evidence.save([_case("b")], FACTS, tmp_path)
    assert [entry["case"] for entry in evidence.read(tmp_path)] == ["b"]
    assert path.with_suffix(".json.bad").read_bytes() == content


def test_evidence_for_a_home_that_takes_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    evidence.save([_case("a")], FACTS, tmp_path)
    call: Callable[..., object] = full
    monkeypatch.setattr(os, "replace", call)
    with pytest.raises(OSError, match="Read-only"):
        evidence.save([_case("b")], FACTS, tmp_path)
    assert [entry["case"] for entry in evidence.read(tmp_path)] == ["a"]
    assert json.loads(next(tmp_path.glob("*.json")).read_text(encoding="utf-8"))["schema"] == evidence.SCHEMA
