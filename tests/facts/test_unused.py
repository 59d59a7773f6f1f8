"""Functions that nothing can call: which names count, what becomes of them, and what is said of their lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamlint import cli
from streamlint.ir import opcodes as op
from tests.facts.programs import facts_of, function

TAKES = "from .parts import cut\n\n\ndef run(rows):\n    return cut(rows)\n"
PARTS = "def cut(rows):\n    return rows\n\n\ndef _paste_rows(rows):\n    total = [len(row) for row in rows]\n    return max(total)\n"


def unused(**files: str) -> list[str]:
    """The names of the functions that nothing can call."""
    units = facts_of(**files).program.units.values()
    return [unit.ir.code(number).name for unit in units for number in sorted(unit.unused) if unit.ir.code(number).kind == "function"]


def test_a_function_that_nothing_calls_does_nothing() -> None:
    assert unused(parts=PARTS, main=TAKES) == ["_paste_rows"]
    found = function(facts_of(parts=PARTS, main=TAKES), "parts", "_paste_rows")
    assert [one[0] for one in found.code.instructions()] == [op.PARAM, op.UNREACHABLE]


@pytest.mark.parametrize(
    "more",
    [
        "_paste_rows([])\n",
        "__all__ = ['_paste_rows']\n",
        "call('parts:_paste_rows')\n",
        "def over(name):\n    return getattr(parts, f'_paste_{name}')\n",
        "def over(name):\n    return getattr(parts, '_%s_rows' % name)\n",
        "def over(name):\n    return getattr(parts, name + '_rows')\n",
        "def over():\n    return [one for name, one in globals().items() if name.startswith('_paste')]\n",
    ],
)
def test_a_name_that_stands_somewhere_or_may_be_put_together_counts(more: str) -> None:
    assert not unused(parts=PARTS + more, main=TAKES)
    assert not unused(parts=PARTS, main=TAKES + more.replace("_paste_rows([])", "parts._paste_rows([])"))


@pytest.mark.parametrize(
    "more", ["# _paste_rows([])\n", "print(1)  # _paste_rows\n", "def over(name):\n    return getattr(parts, name + '_lines')\n"]
)
def test_comments_and_other_names_count_for_nothing(more: str) -> None:
    assert unused(parts=PARTS + more, main=TAKES + more) == ["_paste_rows"]


def test_a_decorator_may_keep_a_function() -> None:
    assert not unused(parts=PARTS.replace("def _paste", "@enter\ndef _paste"), main=TAKES)


def test_names_that_others_call_by_convention_count() -> None:
    parts = "class Parts:\n    def _repr_html_(self):\n        return ''\n\n\ndef cut(rows):\n    return Parts()\n"
    assert not unused(parts=parts, main=TAKES)


def test_a_class_with_a_metaclass_or_a_base_out_of_view_may_be_asked_for_anything() -> None:
    for bases, found in (("", ["_paste"]), ("(object)", ["_paste"]), ("(Base)", []), ("(metaclass=Kind)", []), ("(made())", [])):
        made = f"from engine import Base\n\n\nclass Parts{bases}:\n    def _paste(self):\n        return 1\n"
        parts = made + "\n\ndef cut(rows):\n    return Parts()\n"
        assert unused(parts=parts, main=TAKES) == found


def test_a_line_in_such_a_function_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "parts.py").write_text("import torch\n\n\n" + PARTS.replace("len(row)", "row.cuda()"))
    (tmp_path / "main.py").write_text("import torch\nfrom parts import cut\n\n\ndef run(rows):\n    return cut(rows).cuda()\n")
    assert cli.main(["check", str(tmp_path), "--isolated", "--no-cache", "--explain-silence", f"{tmp_path}/parts.py:9"]) in (0, 1)
    assert "no code of the program calls '_paste_rows'" in capsys.readouterr().out
    assert cli.main(["debug", "facts", f"{tmp_path}/parts.py:9", "--root", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "nothing in this function runs: no code of the program calls '_paste_rows'\n"
