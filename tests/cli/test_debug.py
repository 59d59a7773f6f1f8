"""``streamlint debug``: its subcommands, and what they say of a wrong word, file or function."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from streamlint import cli
from streamlint.commands import debug, debug_ir

SOURCES = {
    "a.py": "class A:\n    def f(self):\n        return g(self)\n\n\ndef f():\n    pass\n",
    "a.pyx": "cdef int f(int x) nogil:\n    return x + 1\n",
    "a.cu": "namespace n {\nstruct B {\n  int f(int k) { return k; }\n};\n}\n",
    "a.cpp": "int f(int k) { return k; }\n",
    "bad.py": "def f(:\n",
    "binary.py": "\0",
    "notes.txt": "",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in SOURCES.items():
        (tmp_path / name).write_text(text)


@pytest.mark.parametrize(
    ("place", "heads"),
    [
        ("a.py", ["module <module>()", "class A()", "function A.f(self)", "function f()"]),
        ("a.py:A.f", ["function A.f(self)"]),
        ("a.py:f", ["function A.f(self)", "function f()"]),
        ("a.py:", ["module <module>()", "class A()", "function A.f(self)", "function f()"]),
        ("a.pyx:f", ["function f(x: int)"]),
        ("a.cu:n::B::f", ["function n::B::f(this: n::B*, k: int) -> int"]),
        ("a.cpp:f", ["function f(k: int) -> int"]),
    ],
)
def test_functions_are_printed(capsys: pytest.CaptureFixture[str], place: str, heads: list[str]) -> None:
    assert cli.main(["debug", "ir", place]) == 0
    printed = capsys.readouterr().out
    assert [block.split("\n")[0] for block in printed.split("\n\n")] == heads


def test_a_line_of_an_instruction(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["debug", "ir", "a.py:A.f"]) == 0
    assert "  r2 = call r1 - r0                            ; 3\n  return r2 " in capsys.readouterr().out


def test_a_file_whose_name_holds_a_colon(capsys: pytest.CaptureFixture[str]) -> None:
    Path("odd:name.py").write_text("def f(): pass\n")
    assert cli.main(["debug", "ir", "odd:name.py:f"]) == 0
    assert capsys.readouterr().out.startswith("function f()")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["ir", "absent.py"], "streamlint: absent.py: no such file\n"),
        (["ir", "absent.py:f"], "streamlint: absent.py:f: no such file\n"),
        (["ir", "a.py:A.g"], "streamlint: a.py: no function 'A.g'; did you mean 'A.f'?\n"),
        (["ir", "a.cu:nothing_alike"], "streamlint: a.cu: no function 'nothing_alike'\n"),
        (["ir", "."], "streamlint: .: not a source file"),
        (["ir", "notes.txt"], "streamlint: notes.txt: not a source file (its name ends in none of .py "),
        (["ir", "binary.py"], "streamlint: binary.py: holds null bytes\n"),
        (["ir", "bad.py"], "streamlint: bad.py:1:7: syntax error"),
        (["ir"], "streamlint debug ir: the following arguments are required: FILE[:FUNCTION]\n"),
        (["ir", "a.py", "--rows"], "streamlint debug ir: unknown option '--rows'\n"),
        (["irs"], "streamlint debug: unknown subcommand 'irs'; did you mean 'ir'?\n"),
        (["--it"], "streamlint debug: unknown option '--it'"),
        ([], "usage: streamlint debug"),
    ],
    ids=" ".join,
)
def test_mistakes(capsys: pytest.CaptureFixture[str], words: list[str], told: str) -> None:
    assert cli.main(["debug", *words]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(told)


@pytest.mark.parametrize("name", debug.SUBCOMMANDS)
def test_a_subcommand_has_help(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert cli.main(["debug", name, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"usage: streamlint debug {name} ")


def test_examples_are_command_lines() -> None:
    for command, _ in (*debug.EXAMPLES, *debug_ir.EXAMPLES):
        program, group, subcommand, *words = shlex.split(command)
        assert (program, group) == ("streamlint", "debug")
        assert subcommand in debug.SUBCOMMANDS
        if subcommand == "ir":
            debug_ir.build_parser().read(words)
