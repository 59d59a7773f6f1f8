"""Comments and docstrings are no code; strings that code uses are."""

from __future__ import annotations

import pytest

from streamlint.interpreter.prose import without_prose

PYTHON = [
    ('"""Streams."""\nimport torch\n', ["", "import torch"]),
    ('# stream\n\n"""Streams\nof work."""\nx = 1  # a stream\n', ["", "", "", "", "x = 1  "]),
    ('def f(x):  # it\n    """A "stream".\n\n    # and events\n    """\n    return x\n', ["def f(x):", "", "", "", "", "    return x"]),
    ("class A:\n    'the stream'\n    s = 'a stream'\n", ["class A:", "", "    s = 'a stream'"]),
    ('code = {\n    "name":\n        """stream""",\n}\n', ["code = {", '    "name":', '        """stream""",', "}"]),
    ('x = f(\n    """\n    stream # 1\n    """\n)\n', ["x = f(", '    """', "    stream # 1", '    """', ")"]),
    ('def f():\n    """It\'s said of \\""" too."""\n    g("#")\n', ["def f():", "", '    g("#")']),
    ('if a:\n    "x".join(b)\n', ["if a:", '    "x".join(b)']),
    ("a = 1\n\f\nb = 2\n", ["a = 1", "\f", "b = 2"]),  # a form feed ends no line
]


@pytest.mark.parametrize(("text", "lines"), PYTHON)
def test_python(text: str, lines: list[str]) -> None:
    assert without_prose(text, "python") == [*lines, ""]


CUDA = [
    ("int a; // stream\nint b;\n", ["int a;  ", "int b;"]),
    ("f(/* of */ x);\n", ["f(         x);"]),  # what stands behind keeps its place
    ("/* a\n stream */ int a;\n", ["    ", "           int a;"]),
    ('const char* a = "// stream";\n', ['const char* a = "// stream";']),
    ("auto a = R\"(/* stream)\"; // it's\nchar b = '\"'; /* stream\n", ['auto a = R"(/* stream)";  ', "char b = '\"';          "]),
    ("int n = 1'000'000; // don't\nf(s);\n", ["int n = 1'000'000;  ", "f(s);"]),
]


@pytest.mark.parametrize(("text", "lines"), CUDA)
def test_cuda(text: str, lines: list[str]) -> None:
    assert without_prose(text, "cuda") == [*lines, ""]
