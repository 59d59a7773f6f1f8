"""Suppressions, configuration and output of the command with the real rules."""

from __future__ import annotations

import json
import os

import pytest

from streamlint.config.settings import FORMATS

COPY = 'host.to("cuda", non_blocking=True)'
STALL = f"import torch\n\n\ndef load(n):\n    host = torch.empty(n)\n    return {COPY}\n"
CPP = (
    "#include <cuda_runtime.h>\n\nvoid load(float* out, cudaStream_t stream) {\n  float* host = (float*)malloc(1 << 24);\n"
    "  cudaMemcpyAsync(out, host, 1 << 24, cudaMemcpyHostToDevice, stream);\n}\n"
)
CYTHON = (
    "# cython: language_level=3\nimport torch\n\n\ndef load(int n):\n    host = torch.empty(n)\n"
    '    return host.to("cuda", non_blocking=True)\n'
)
SOURCES = {"a.py": (STALL, COPY, "#"), "a.cu": (CPP, "stream);", "//"), "a.pyx": (CYTHON, COPY, "#")}


@pytest.fixture
def run(forked):
    return forked


def commented(name, comment):
    text, place, mark = SOURCES[name]
    return text.replace(place, f"{place}  {mark} {comment}")


# Suppressions -----------------------------------------------------------------------------------------------------------------


COMMENTS = {
    "streamlint: ignore[SL001] small": 0,
    "streamlint: ignore[unpinned-non-blocking]": 0,
    "noqa: SL001": 0,
    "streamlint: ignore[SL005]": 1,
    "streamlint: ignore": 1,
    "streamlint: ignore[SL001] small until=2001-01-01": 1,
    "streamlint: ignore[SL001] small until=2999-01-01": 0,
}


def test_comments(run, tmp_path):
    """In Python, C++ and Cython, all in one run."""
    expected = {}
    for number, (comment, findings) in enumerate(COMMENTS.items()):
        (tmp_path / str(number)).mkdir()
        for name in SOURCES:
            # A remark of its own for each: files that are the same are told as one.
            text = commented(name, comment) + f"{SOURCES[name][2]} {number}\n"
            (tmp_path / str(number) / name).write_text(text)
            expected[f"{number}/{name}"] = findings
    rows = json.loads(run("check", "--select", "SL001", "--output-format", "json").stdout)
    found = [row["filename"] for row in rows if row["code"] == "SL001"]
    assert {file: found.count(file) for file in expected} == expected


def test_reasons_may_be_required(run, tmp_path):
    (tmp_path / "streamlint.toml").write_text("require-reasons = true\nselect = ['SL001']\n")
    for name in SOURCES:
        (tmp_path / name).write_text(commented(name, "streamlint: ignore[SL001]"))
    rows = json.loads(run("check", "--output-format", "json").stdout)
    assert {row["filename"]: "its suppression gives no reason" in row["help"] for row in rows} == dict.fromkeys(SOURCES, True)


def test_unused_comments(run, tmp_path):
    for name in SOURCES:
        (tmp_path / name).write_text(commented(name, "streamlint: ignore[SL001, SL005] small"))
    rows = json.loads(run("check", "--select", "SL001,SL005,unused-suppression", "--output-format", "json").stdout)
    assert {(row["filename"], row["code"], row["message"]) for row in rows} == {
        (name, "SL900", "suppression of SL005 hides nothing") for name in SOURCES
    }


# Configuration ----------------------------------------------------------------------------------------------------------------


def test_the_nearest_file_and_what_it_extends(run, tmp_path):
    (tmp_path / "base.toml").write_text("ignore = ['SL001']\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/streamlint.toml").write_text("extend = '../base.toml'\n")
    (tmp_path / "pyproject.toml").write_text("[tool.streamlint]\nselect = ['SL001']\n")
    for name in ("a.py", "sub/a.py"):
        (tmp_path / name).write_text(STALL)
    rows = json.loads(run("check", "--output-format", "json").stdout)
    assert [row["filename"] for row in rows] == ["a.py"]
    assert run("check", "sub", "--isolated").returncode == 1
    assert run("check", "--config", "base.toml").returncode == 0
    assert run("check", "--config", "ignore = ['SL001']").returncode == 0


def test_per_file_ignores_and_gitignore(run, tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("made/\n")
    for folder in ("made", "tools", "src"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.py").write_text(STALL)
    files = run("check", "--show-files").stdout.split()
    assert files == ["src/a.py", "tools/a.py"]
    assert run("check", "--show-files", "--no-respect-gitignore").stdout.split()[0] == "made/a.py"
    done = run("check", "--per-file-ignores", "tools/*:unpinned-non-blocking", "--output-format", "concise")
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == ["src/a.py"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("selct = []", "unknown key 'selct'; did you mean 'select'?"),
        ("select = ['unpined-non-blocking']", "unknown rule 'unpined-non-blocking'; did you mean 'unpinned-non-blocking'?"),
        ("default-stream = 'thread'", "'thread' is none of auto, legacy, per-thread; did you mean 'per-thread'?"),
        ("preview = 'yes'", "preview: expected true or false, not 'yes'"),
        ("extend = 'missing.toml'", "missing.toml: No such file or directory"),
        ("select = [", "streamlint.toml: "),
    ],
)
def test_wrong_configurations(run, tmp_path, text, message):
    (tmp_path / "a.py").write_text(STALL)
    (tmp_path / "streamlint.toml").write_text(text + "\n")
    done = run("check")
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_settings_are_shown(run, tmp_path):
    (tmp_path / "a.py").write_text(STALL)
    done = run("check", "--show-settings", "--select", "SL001", "--config", "require-reasons = true")
    assert done.returncode == 0
    assert "require-reasons = True\n" in done.stdout
    assert "rules = SL001\n" in done.stdout


# Output -----------------------------------------------------------------------------------------------------------------------


def test_several_outputs_in_one_run(installed, tmp_path):
    (tmp_path / "a.py").write_text(STALL)
    formats = [format for format in FORMATS if format != "concise"]
    words = [word for format in formats for word in ("--output-format", f"{format}:out.{format}")]
    done = installed("check", *words, "--output-format", "concise", env={**os.environ, "FORCE_COLOR": "1"})
    assert done.returncode == 1
    assert "\x1b[" in done.stdout
    for format in formats:
        text = (tmp_path / f"out.{format}").read_text()
        assert "SL001" in text
        assert "\x1b" not in text


@pytest.mark.parametrize("format", FORMATS)
def test_the_exit_code_is_the_same_in_every_format(run, tmp_path, format):
    (tmp_path / "a.py").write_text(STALL)
    done = run("check", "--output-format", format)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "1 file, 1 mentions CUDA, 1 finding"


def test_exit_zero_spares_findings_only(run, tmp_path):
    (tmp_path / "a.py").write_text(STALL)
    assert run("check", "-e").returncode == 0
    assert run("check", "-e", "missing.py").returncode == 2


@pytest.mark.parametrize(
    ("env", "words", "colored"),
    [
        ({}, (), False),
        ({"FORCE_COLOR": "1"}, (), True),
        ({"CLICOLOR_FORCE": "1"}, (), True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, (), False),
        ({"NO_COLOR": "1"}, ("--color", "always"), True),
        ({"FORCE_COLOR": "1"}, ("--color", "never"), False),
    ],
)
def test_colours(run, tmp_path, env, words, colored):
    (tmp_path / "a.py").write_text(STALL)
    assert ("\x1b[" in run("check", *words, env=env).stdout) is colored


def test_names_are_links_on_a_terminal(tmp_path):
    import pty
    import subprocess
    import sys

    (tmp_path / "a.py").write_text(STALL)
    ours, theirs = pty.openpty()
    env = {**{key: value for key, value in os.environ.items() if "COLOR" not in key}, "TERM": "xterm"}
    with subprocess.Popen([sys.executable, "-m", "streamlint", "check"], cwd=tmp_path, env=env, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        seen = b""
        while b"1 finding" not in seen:
            seen += os.read(ours, 65536)
        assert process.wait(60) == 1
    os.close(ours)
    assert b"\x1b]8;;https://" in seen
    assert b"/rules/unpinned-non-blocking/" in seen
