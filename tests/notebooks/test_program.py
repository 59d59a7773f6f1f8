"""Notebooks as programs, and the way back to their bytes."""

from __future__ import annotations

import ast
import json

import pytest
from made_notebooks import code, notebook, text_of

from streamlint.support.notebooks import NotebookError, changed_cells, foreign_language, program_of, rewritten, rows_of, same_cells
from streamlint.support.notebooks.magics import Escapes, put_back


def test_code_cells_are_one_program():
    data = notebook(code("import torch\n"), {"cell_type": "markdown", "source": "%%x"}, code("x = 1"), {"cell_type": "raw", "source": "r"})
    assert program_of(data) == "import torch\n\n\f\nx = 1"
    assert [(row.cell, row.row, row.text) for row in rows_of(data)] == [
        *((1, 1, "import torch"), (1, 2, ""), (1, 3, "")),
        (3, 1, "x = 1"),
    ]


@pytest.mark.parametrize(
    ("source", "python"),
    [
        ("%matplotlib inline\nx = 1", "pass  #\f0\nx = 1"),
        ("if x:\n    !ls {x}\n", "if x:\n    pass  #\f0\n"),
        ("!pip install \\\n  torch\nx = 1", "pass  #\f0\n\nx = 1"),
        ("files = !ls 'a\nt = %time f()\n", "files = get_ipython()  #\f0\nt = get_ipython()  #\f1\n"),
        ("torch.sum?\n?torch\nx.y??  \n", "pass  #\f0\npass  #\f1\npass  #\f2\n"),
        ("pip install torch\npip = 1", "pass  #\f0\npip = 1"),
        ("/f x\n,f a\n;f b", "pass  #\f0\npass  #\f1\npass  #\f2"),
        ("%%time\nx = 1", "pass  #\f0\nx = 1"),
        ("\n%%timeit -n 3 y = 1\nx = 1", "\npass  #\f0\nx = 1"),
    ],
    ids=lambda text: text.split("\n")[0] or "blank",
)
def test_lines_for_ipython_are_taken_out_and_come_back(source, python):
    escapes = Escapes()
    assert escapes.take(source) == python
    ast.parse(python)
    assert put_back(python, escapes.lines) == source


@pytest.mark.parametrize(
    "source",
    [
        'text = """\n%matplotlib inline\n!ls\n"""\n',
        "x = (a\n     % b)\n",
        "x = a \\\n  % b\n",
        "why = f(x)  # really?\n",
        "assert a != b\nassert a == b % 2\n",
        "x = y if z else w\nprint('a = %d' % x)\n",
        "d['a=!b'] = 1\nf(a='x', b=c)\n",
        "# %%\nx = 1\n",
        "'''\n'''; x = 1\n@f\ndef g(): ...\n",
    ],
)
def test_python_is_left_alone(source):
    ast.parse(source)
    assert Escapes().take(source) == source


@pytest.mark.parametrize("magic", ["%%cuda", "%%writefile x.py", "%%bash", "\n  %%html", "%%"])
def test_cells_of_other_magics_are_passed_over(magic):
    assert program_of(notebook(code(f"{magic}\n__global__ void f();"), code("x = 1"))) == "x = 1"


def test_another_kernel_and_a_cell_in_another_language():
    r = notebook(code("x <- 1"), metadata={"kernelspec": {"language": "R"}})
    assert (program_of(r), foreign_language(r)) == ("", "R")
    assert foreign_language(notebook(metadata={"language_info": {"name": "python"}})) == ""
    sql = {**code("SELECT 1"), "metadata": {"vscode": {"languageId": "sql"}}}
    assert program_of(notebook(sql, code("x = 1"))) == "x = 1"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the file is empty"),
        (b"{", "not JSON: Expecting property name enclosed in double quotes at line 1, column 2"),
        (b"\xff", "not UTF-8: invalid start byte at byte 0"),
        (b"[" * 100_000, "its JSON is nested too deeply"),
        (b"[]", "its JSON is no object"),
        (b'{"cells": []}', "it names no nbformat"),
        (b'{"nbformat": 3, "worksheets": []}', "a notebook of nbformat 3; only nbformat 4 is read"),
        (b'{"nbformat": 4}', "it has no list of cells"),
        (b'{"nbformat": 4, "cells": [1]}', "cell 1 is no object"),
        (b'{"nbformat": 4, "cells": [{"cell_type": "code"}]}', "the source of cell 1 is neither text nor a list of texts"),
        (b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": ["a", 1]}]}', "the source of cell 1 is neither text"),
        (rb'{"nbformat": 4, "cells": [{"cell_type": "code", "source": "\ud800"}]}', "cell 1 holds half of a surrogate pair"),
        (rb'{"nbformat": 4, "cells": [{"cell_type": "code", "source": "\u0000"}]}', "cell 1 holds null bytes"),
    ],
    ids=lambda part: part[:30] if isinstance(part, str) else "",
)
def test_what_is_no_notebook(data, reason):
    with pytest.raises(NotebookError) as caught:
        program_of(data)
    assert reason in str(caught.value)


def layouts():
    """One notebook as different writers lay it out."""
    cells = [code(["import torch\n", "%time x = 'é'\n", "y = 2"]), {"cell_type": "markdown", "source": ["é"]}, code(["z = 3\n"])]
    told = {"nbformat": 4, "cells": cells, "metadata": {"a": [{"source": "z = 3"}], "n": 1.50}}
    yield json.dumps(told, indent=1, ensure_ascii=False) + "\n"
    yield json.dumps(told, indent=4).replace("\n", "\r\n")
    yield json.dumps(told, separators=(",", ":"))
    yield "\ufeff" + json.dumps({**told, "cells": [{**cell, "source": "".join(cell["source"])} for cell in cells]}, indent=2)


@pytest.mark.parametrize("before", list(layouts()), ids=["jupyter", "escaped", "dense", "texts"])
def test_only_the_source_of_a_changed_cell_changes(before):
    data = before.encode()
    program = program_of(data)
    assert rewritten(data, program) == data
    after = rewritten(data, program.replace("y = 2", "y = 2\nz = 'ü'")).decode()
    old, new = '"y = 2"', '"y = 2\\n"'
    if old not in before:
        assert after == before.replace("y = 2", "y = 2\\nz = 'ü'" if "é" in before else "y = 2\\nz = '\\u00fc'")
        return
    joint = before[before.index("torch\\n") + len('torch\\n"') : before.index('"%time')]
    letter = "\\u00fc" if "é" not in before else "ü"
    assert after == before.replace(old, f"{new}{joint}\"z = '{letter}'\"")


def test_a_change_stays_in_its_cell():
    """Also at its ends: what goes in after a cell's last line is no part of the next one, and a cell may become empty."""
    data = notebook(code("for i in x:\n    f(i)"), code("g()\n"), code("h()"))
    text = program_of(data)
    inserted = text.replace("    f(i)\n", "    f(i)\n    wait()\n", 1)
    assert changed_cells(data, inserted) == [(1, "for i in x:\n    f(i)", "for i in x:\n    f(i)\n    wait()")]
    emptied = text.replace("g()\n\n", "")
    assert same_cells(text, emptied)
    assert [text_of(rewritten(data, emptied), cell) for cell in range(3)] == ["for i in x:\n    f(i)", "", "h()"]
    over = text.replace("g()\n\n\f\nh()", "h()")
    assert not same_cells(text, over)
    with pytest.raises(NotebookError, match="goes over the border of two cells"):
        rewritten(data, over)


def test_lines_for_ipython_outlive_a_change():
    data = notebook(code("%time f()\nx = 1\n!ls \\\n  -l\ny = !pwd"))
    changed = program_of(data).replace("x = 1\n", "").replace("y = ", "with s:\n    y = ")
    assert text_of(rewritten(data, changed), 0) == "%time f()\n!ls \\\n  -l\nwith s:\n    y = !pwd"


def test_form_feeds_of_the_source_are_no_border():
    data = notebook(code("x = 1\n\f\n\f\f\ny = 2"), code("z = 3"))
    assert program_of(data) == "x = 1\n\f\n\f\f\ny = 2\n\f\f\f\nz = 3"
    assert changed_cells(data, program_of(data).replace("z", "w")) == [(2, "z = 3", "w = 3")]


def test_rows_of_the_file():
    """Whether a source is a list of lines, of something else, or one text."""
    one, other = b'["a\\n",\n"b\\nc\\n",\n"d"]', b'\n"e\\nf"'
    data = b'{"nbformat": 4,\n"cells": [\n{"cell_type": "code", "source": %b},\n{"cell_type": "code", "source": %b}]}' % (one, other)
    assert [(row.text, row.file_row) for row in rows_of(data)] == [
        *(("a", 3), ("b", 4), ("c", 4), ("d", 5), ("", 5)),
        *(("e", 7), ("f", 7)),
    ]
