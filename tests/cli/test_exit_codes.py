"""0 clean, 1 findings, 2 the linter could not do its work: through the installed command where the engine is not needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from streamlint import cli
from streamlint.runner import engine

PLAIN = "print(1)\n"
MISUSE = "import torch.cuda\nmisuse = torch.cuda.Stream()\n"


def test_version(run):
    done = run("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, "streamlint 0.1.0\n", "")


def test_clean_says_what_it_did(run, tmp_path):
    (tmp_path / "a.py").write_text(PLAIN)
    done = run("check", "a.py")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "1 file, 0 mention CUDA, 0 findings\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["check", "missing.py"], "streamlint: missing.py: no such file or folder"),
        (["check", "."], "streamlint: no lintable file in ."),
        (["check", "--exit-zero"], "streamlint: no lintable file in ."),
        (["check", "--show-files"], "streamlint: no lintable file in ."),
        (["check", "--selct", "SL001"], "streamlint check: unknown option '--selct'; did you mean '--select'?"),
        (["check", "--select", "SL9000"], "unknown rule 'SL9000'; did you mean 'SL900'?"),
        (["check", "--ignore", "unused-supression"], "did you mean 'unused-suppression'?"),
        (["check", "--output-format", "jsn"], "unknown output format 'jsn'; did you mean 'json'?"),
        (["check", "--output-format", "json", "--output-format", "full"], "two output formats for one place"),
        (["check", "--color", "green"], "invalid choice: 'green'"),
        (["check", "--jobs", "0"], "'0' is no positive number"),
        (["check", "--config", "missing.toml"], "missing.toml: No such file or directory"),
        (["check", "--config", "selct = []"], "unknown key 'selct'; did you mean 'select'?"),
        (["check", "--per-file-ignores", "tests"], "expected PATTERN:RULE, not 'tests'"),
        (["check", "-", "a.py"], "'-' reads standard input and takes no other path"),
        (["chek"], "streamlint: unknown command 'chek'; did you mean 'check'?"),
        (["--vrsion"], "streamlint: unknown option '--vrsion'; did you mean '--version'?"),
        (["rule", "SL9000"], "streamlint: unknown rule 'SL9000'; did you mean 'SL900'?"),
        (["explan"], "streamlint: unknown command 'explan'; did you mean 'explain'?"),
        (["lnt"], "streamlint: unknown command 'lnt'; did you mean 'lint'?"),
        (["scan"], "streamlint: unknown command 'scan'; did you mean 'check'?"),
        (["zzz"], "streamlint: unknown command 'zzz'\n"),
        (["check", "--list-rules"], "unknown option '--list-rules'; 'streamlint rules' lists the rules\n"),
        (["check", "--shwo-files"], "unknown option '--shwo-files'; did you mean '--show-files'?"),
        (["check", "-j", "zwei"], "argument -j/--jobs: 'zwei' is no positive number\n"),
        ([], "usage: streamlint COMMAND"),
    ],
    ids=" ".join,
)
def test_the_linter_could_not_do_its_work(run, words, message):
    done = run(*words)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_path_instead_of_a_command(run, tmp_path):
    (tmp_path / "a.py").write_text(PLAIN)
    assert "to lint it, run 'streamlint check a.py'" in run("a.py").stderr


def test_a_wrong_configuration(run, tmp_path):
    (tmp_path / "a.py").write_text(PLAIN)
    (tmp_path / "streamlint.toml").write_text("ignor = []\n")
    done = run("check")
    assert done.returncode == 2
    assert done.stderr == f"streamlint: {tmp_path}/streamlint.toml:1: unknown key 'ignor'; did you mean 'ignore'?\n"


def test_aliases_are_the_commands(run, tmp_path):
    (tmp_path / "a.py").write_text(PLAIN)
    done = run("lint", "a.py")
    assert (done.returncode, done.stderr) == (0, "1 file, 0 mention CUDA, 0 findings\n")
    assert run("explain", "SL005").stdout == run("rule", "SL005").stdout


@pytest.mark.parametrize("command", cli.NEED_POSIX)
def test_what_needs_posix_says_so_on_windows(command, monkeypatch, capsys):
    """Before anything of the command is imported: on Windows the import itself would fail."""
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setattr(cli.importlib, "import_module", lambda name: pytest.fail(f"{name} is imported"))
    assert cli.main([command]) == 2
    assert capsys.readouterr() == ("", f"streamlint: `{command}` does not run on Windows; use Linux or WSL 2. `check` runs on Windows\n")


def test_the_module_of_verify_says_so_on_windows(tmp_path):
    lines = (
        "import sys, runpy",
        "sys.platform = 'win32'",
        "try: runpy.run_module('streamlint.verify', run_name='__main__')",
        "except SystemExit as end: print(end.code, 'streamlint.verify.command' in sys.modules)",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "2 False\n"
    assert done.stderr.startswith("streamlint: `verify` does not run on Windows")


def test_force_exclude_may_empty_the_list(run, tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "a.py").write_text(PLAIN)
    assert run("check", "tests/a.py").stderr.startswith("1 file")
    done = run("check", "--force-exclude", "tests/a.py")
    assert (done.returncode, done.stderr) == (0, "0 files, 0 mention CUDA, 0 findings\n")


def test_findings(fake_engine, capsys):
    Path("a.py").write_text(MISUSE)
    assert cli.main(["check"]) == 1
    out, err = capsys.readouterr()
    assert "unpinned-non-blocking [SL001] made up" in out
    assert err == "1 file, 1 mentions CUDA, 1 finding\n"


@pytest.mark.parametrize("format", ["full", "concise", "json", "json-lines", "github"])
def test_findings_are_1_in_every_format(fake_engine, capsys, format):
    Path("a.py").write_text(MISUSE)
    assert cli.main(["check", "--output-format", format]) == 1
    assert "SL001" in capsys.readouterr().out
    assert cli.main(["check", "--output-format", format, "--exit-zero"]) == 0


def test_unreadable_files_are_findings(run, tmp_path):
    """Whatever rules are selected, as a syntax error is in other linters; only its own name ignores it."""
    (tmp_path / "a.py").write_bytes(b"# \xff\xfe\n")
    done = run("check", "--output-format", "json")
    (entry,) = json.loads(done.stdout)
    assert (entry["code"], entry["severity"], entry["filename"]) == ("SL000", "warning", "a.py")
    assert "warning:" not in done.stderr
    for options in ([], ["--select", "SL001"], ["--select", "ALL"], ["--ignore", "SL"]):
        assert run("check", *options).returncode == 1, options
    for options in (["--ignore", "SL000"], ["--ignore", "unreadable-source"], ["--per-file-ignores", "a.py:SL000"]):
        done = run("check", *options)
        assert (done.returncode, "not UTF-8" in done.stdout + done.stderr) == (0, False), options


def test_lost_functions_are_findings_and_lost_parts_are_not(run, tmp_path):
    """What the parser gave up in a C++ file is told by --coverage, unless a whole function goes with it."""
    kernel = "__global__ void k(float *p) {}\n"
    (tmp_path / "part.cu").write_text(kernel + "@@ odd @@\nvoid run(float *p) { k<<<1, 1>>>(p); }\n")
    (tmp_path / "lost.cu").write_text(kernel + "void run(float *p) { if (p) { k<<<1, 1>>>(p);\n\nvoid next(float *p) { k<<<1, 1>>>(p); }\n")
    done = run("check", "--output-format", "concise")
    assert done.returncode == 1
    assert [line.partition(": ")[0] for line in done.stdout.splitlines()] == ["lost.cu:2:6"], done.stdout


def test_a_crash_is_2_and_not_1(monkeypatch, tmp_path, capsys):
    def analyse(sources, options, jobs=1, keep=None):
        raise RuntimeError("oh")

    monkeypatch.setattr(engine, "analyse", analyse)
    (tmp_path / "a.py").write_text(MISUSE)
    assert cli.main(["check", str(tmp_path)]) == 2
    assert "internal error" in capsys.readouterr().err


@pytest.mark.parametrize("quiet", [True, False])
def test_an_interrupt_says_what_was_done(monkeypatch, tmp_path, capsys, quiet):
    def analyse(sources, options, jobs=1, keep=None):
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "analyse", analyse)
    (tmp_path / "a.py").write_text(MISUSE)
    assert cli.main(["check", str(tmp_path), *["--quiet"] * quiet]) == 130
    said = "streamlint: interrupted while reading: 1 of 1 file read, none linted; no finding is reported\n"
    assert capsys.readouterr() == ("", "" if quiet else said)


def test_a_broken_pipe_is_quiet(run, tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = run("rule", "--all", capture_output=False, stdout=writer, stderr=subprocess.PIPE)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")
