"""Comments that declare something: where they stand, what is wrong with them, and that a run sees a change of one."""

from __future__ import annotations

import pytest

import streamlint
from streamlint.cli import main
from streamlint.frontends import cuda, cython, python
from streamlint.frontends.python_comments import without_comments
from streamlint.ir.modules import lower
from streamlint.support.declared_words import VOCABULARY, words_in
from streamlint.triage.suppress import suppress

UPLOAD = """\
import torch


def upload(rows):  # streamlint: synchronizes
    table = native.take(rows)  # streamlint: {word}
    return table.to("cuda", non_blocking=True)
"""


def declared(text, front_end=python.lower):
    """What is declared of the values of a file, and what is wrong with its comments."""
    made = lower(front_end("a.py", text))
    found = {text for code in made.codes() for text in code.declared.values()}
    found |= {one.annotation for code in made.codes() for one in code.parameters if one.annotation}
    found |= {one.annotation for owner in made.classes for one in owner.fields if one.annotation}
    found |= {str(code.returns) for code in made.codes() if isinstance(code.returns, str) and code.returns}
    return {one.removeprefix("Annotated[").removesuffix("]").replace("streamlint: ", "") for one in found}, made.problems


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        ("# streamlint: pinned", ["pinned"]),
        ("# streamlint: device, non-blocking", ["device", "non-blocking"]),
        ("# streamlint: pinned - the pool registers its blocks", ["pinned"]),
        ("# streamlint: pinned (by the pool)", ["pinned"]),
        ("# streamlint: pinned; see pool.py", ["pinned"]),
        ("# streamlint: pinned  # noqa: E501", ["pinned"]),
        ("# type: ignore  # streamlint: default-stream", ["default-stream"]),
        ("// streamlint: managed", ["managed"]),
        ("/* streamlint: pinned */", ["pinned"]),
        ("# streamlint: ignore[SL001] pinned", []),
        ("# streamlint: ignore[SL001] by the pool  # streamlint: pinned", ["pinned"]),
        ("# pinned", []),
    ],
)
def test_words(comment, words):
    assert words_in(comment) == words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x = f()  # streamlint: pinned\n", {"Any,'pinned'"}),
        ("x: T = f()  # streamlint: pinned\n", {"T,'pinned'"}),
        ("x = f(\n    1,  # streamlint: pinned\n)\n", {"Any,'pinned'"}),
        ("# streamlint: pinned\n# why\nx = f()\n", {"Any,'pinned'"}),
        ("# streamlint: pinned\n\nx = f()\n", {"Any,'pinned'"}),
        ("def f(a, b):  # streamlint: pinned\n    pass\n", {"Any,'pinned'"}),
        ("def f(\n    a,  # streamlint: pinned\n    b,\n): pass\n", {"Any,'pinned'"}),
        ("def f(\n    # streamlint: pinned\n    a: T = g(1),\n    b=2,\n): pass\n", {"T,'pinned'"}),
        ("class C:\n    x: T  # streamlint: device\n", {"T,'device'"}),
        ("class C:\n    def f(self): return g()  # streamlint: pinned\n", {"Any,'pinned'"}),
        ("def f(\n    a,\n) -> T:  # streamlint: pinned\n    pass\n", {"T,'pinned'"}),
        ('x = "# streamlint: pinned"\n', set()),
        ("x = f()  # streamlint: pined\n", set()),
    ],
)
def test_what_a_comment_stands_at(text, found):
    assert declared(without_comments(text)) == (found, [])


@pytest.mark.parametrize(
    "text",
    [
        "print(1)  # streamlint: pinned\n",
        "x = f()  # streamlint: synchronizes\n",
        "def f(\n    a, b,  # streamlint: pinned\n    c,\n): pass\n",
        "if x:  # streamlint: pinned\n    y = f()\n",
    ],
)
def test_misplaced(text):
    (_, message), *others = declared(text)[1]
    assert message.startswith("misplaced comment 'streamlint: ")
    assert others == []


def test_cython():
    text = "cdef class C:\n    pass\n\ndef f(float[:] rows):\n    table = take(rows)  # streamlint: pageable\n    return table\n"
    found, problems = declared(text, cython.lower)
    assert ("Any,'pageable'" in found, problems) == (True, [])


def test_cpp():
    member = "struct S {\n  float* a;  // streamlint: pinned\n};\n"
    text = member + "void f(float* b /* streamlint: device */) {\n  p = g();  // streamlint: managed\n}\n"
    assert declared(text, cuda.lower) == ({"Any,'pinned'", "Any,'device'", "Any,'managed'"}, [])


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("pined", "unknown comment 'streamlint: pined'; did you mean 'pinned'?"),
        ("pinned, devise", "unknown comment 'streamlint: devise'; did you mean 'device'?"),
        ("synchronises", "unknown comment 'streamlint: synchronises'; did you mean 'synchronizes'?"),
        ("ignored[SL001]", "unknown comment 'streamlint: ignored'; did you mean 'ignore'?"),
        ("xyz", f"unknown comment 'streamlint: xyz'; it is 'ignore[…]' or 'ignore-file[…]', or declares one of {', '.join(VOCABULARY)}"),
    ],
)
def test_unknown_words(comment, message):
    assert [one.message for one in suppress("a.py", f"x = 1  # streamlint: {comment}\n", "python", []).problems] == [message]


def test_all_words_are_known():
    text = "".join(f"x = 1  # streamlint: {word}\n" for word in VOCABULARY)
    assert suppress("a.py", text, "python", []).problems == []


def test_a_run_tells_what_is_wrong(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("import torch.cuda\n\nprint(1)  # streamlint: pinned\nx = 1  # streamlint: pined\n")
    assert main(["check", "--no-cache"]) == 0
    told = capsys.readouterr().err
    assert "a.py:3:11: misplaced comment 'streamlint: pinned'" in told
    assert "a.py:4:8: unknown comment 'streamlint: pined'; did you mean 'pinned'?" in told


def test_a_run_sees_another_word(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["check", "--cache-dir", "cache", "--output-format", "concise"]
    codes = []
    for word in ("pinned", "pageable", "pinned"):
        (tmp_path / "a.py").write_text(UPLOAD.format(word=word))
        codes.append(main(words))
        capsys.readouterr()
    assert codes == [0, 1, 0]


def test_types_of_a_file_that_names_no_cuda(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kinds = 'from typing import Annotated\n\nimport torch\n\nHeap = Annotated[torch.Tensor, "{word}"]\n'
    (tmp_path / "upload.py").write_text('from kinds import Heap\n\n\ndef up(rows: Heap):\n    return rows.to("cuda", non_blocking=True)\n')
    found = []
    for word in ("pageable", "pinned"):
        (tmp_path / "kinds.py").write_text(kinds.format(word=word))
        found.append([one.code for one in streamlint.lint(["."]).findings])
    assert found == [["SL001"], []]


def test_a_contradiction_is_a_finding_that_a_comment_hides(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = "    x = torch.rand(4)  # streamlint: pinned{more}\n    return x\n"
    codes = []
    for more in ("", "  # streamlint: ignore[SL901] not yet", "  # streamlint: ignore[contradicted-declaration]"):
        (tmp_path / "a.py").write_text("import torch\n\n\ndef f():\n" + line.format(more=more))
        codes.append([(one.code, one.severity.value) for one in streamlint.lint(["."]).findings])
    assert codes == [[("SL901", "warning")], [], []]
