"""Files that cannot be imported: when that is sure, what becomes of their functions, and what is said of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamlint import cli
from tests.facts.programs import facts_of

PARTS = "import logging\n\nlog = logging.getLogger(__name__)\n\n\ndef _cut(rows):\n    return rows\n"
TAKES = "from .parts import cut\n\n\ndef run(rows):\n    return cut(rows)\n"
WHY = "line 1 imports 'cut' from parts.py, which defines no such name"


def failing(**files: str) -> dict[str, str]:
    """By the path of each file that cannot be imported: why."""
    return {unit.path: str(failure) for unit, failure in facts_of(**files).program.failing.items()}


def test_a_name_that_the_imported_file_does_not_have_ends_the_file() -> None:
    assert failing(parts=PARTS, main=TAKES) == {"main.py": WHY}
    assert [one.name for one in facts_of(parts=PARTS, main=TAKES).program.units["main.py"].functions] == ["<module>"]


@pytest.mark.parametrize("words", ["cuts = short_cut = 1", "cutter = 1\n# a cut9 and a 9cut", "uncut = cut_ = 1"])
def test_longer_words_are_not_the_name(words: str) -> None:
    assert failing(parts=PARTS + words + "\n", main=TAKES) == {"main.py": WHY}
    assert not failing(parts=f"{PARTS}{words}\ncut = 1\n", main=TAKES)


@pytest.mark.parametrize(
    "takes",
    [
        "from .parts import _cut\n",
        "from .parts import _cut as cut\n",
        "from .parts import (\n    _cut,  # cut in two\n)\n",
        "try:\n    from .parts import cut\nexcept ImportError:\n    cut = None\n",
        "def run(rows):\n    from .parts import cut\n    return cut(rows)\n",
        '"""\nfrom .parts import cut\n"""\n',
        '"""\nfrom .parts import cut\n"""\nfrom .others import cut\n',
        '"""\nfrom .parts import cut\n"""\n\n\ndef run(rows):\n    from .parts import cut\n    return cut(rows)\n',
        '"""\nfrom .parts import cut\n"""\ntry:\n    from .parts import cut\nexcept ImportError:\n    cut = None\n',
        "from parts import cut\n",
        "from .others import cut\n",
    ],
)
def test_what_is_there_or_asked_elsewhere_ends_nothing(takes: str) -> None:
    assert not failing(parts=PARTS, main=takes)


@pytest.mark.parametrize(
    "parts",
    [
        "cut = len\n",
        "from os import *\n",
        "def __getattr__(name):\n    return len\n",
        "globals()['cu' + 't'] = len\n",
        "import sys\nsetattr(sys.modules[__name__], 'cu' + 't', len)\n",
        "from ffi import fill\nfill('topi', 'lib.parts')\n",
        "from ffi import fill\nfill(__name__)\n",
        "if len('x'):\n    def cut(rows):\n        return rows\n",
    ],
)
def test_a_file_that_may_make_the_name_ends_nothing(parts: str) -> None:
    assert not failing(parts=parts, main=TAKES)


def test_a_name_that_another_file_gives_the_module_ends_nothing() -> None:
    assert not failing(parts=PARTS, main=TAKES, setup="from . import parts\nparts.cut = len\n")
    assert not failing(parts=PARTS, main=TAKES, setup="from . import parts\nsetattr(parts, 'cut', len)\n")


TABLES = "def label(row):\n    return row\n"
ABSOLUTE = "from data.parts import cut\nfrom data.tables import label\n\n\ndef run(rows):\n    return cut(rows)\n"


def test_a_module_named_from_the_top_is_sure_beside_one_of_its_folder() -> None:
    held = {"data/parts": PARTS, "data/tables": TABLES, "main": ABSOLUTE}
    why = "line 1 imports 'cut' from data/parts.py, which defines no such name"
    assert failing(**held) == {"main.py": why}
    assert failing(**{**held, "models/net": ABSOLUTE, "main": "x = 1\n"}) == {"models/net.py": why}


@pytest.mark.parametrize(
    "held",
    [
        {"data/parts": PARTS + "cut = 1\n", "data/tables": TABLES, "main": ABSOLUTE},
        {"data/parts": PARTS, "data/tables": "pass\n", "main": ABSOLUTE},  # neither is of this folder, as it seems
        {"data/parts": PARTS, "main": ABSOLUTE.replace("from data.tables import label\n", "")},
        {"data/parts": PARTS, "data/tables": TABLES, "other/data/parts": PARTS + "cut = 1\n", "main": ABSOLUTE},
        {"data/parts": PARTS, "data/tables": TABLES, "main": ABSOLUTE.replace("data.tables", "marks.tables"), "marks/tables": TABLES},
        {"parts": PARTS, "tables": TABLES, "main": ABSOLUTE.replace("data.", "")},
        {"data/parts": PARTS + "from os import *\n", "data/tables": TABLES, "main": ABSOLUTE},
    ],
)
def test_a_module_named_from_the_top_may_be_another_one(held: dict[str, str]) -> None:
    assert not failing(**held)


PLAIN = "from parts import cut\nfrom tables import label\n\n\ndef run(rows):\n    return cut(rows)\n"
OTHER = "from parts import _cut\nfrom tables import label\n"


def test_a_module_of_one_word_is_sure_where_another_file_takes_what_it_has() -> None:
    held = {"src/parts": PARTS, "src/tables": TABLES, "src/main": OTHER, "src/old/run": PLAIN}
    why = "line 1 imports 'cut' from src/parts.py, which defines no such name"
    assert failing(**held) == {"src/old/run.py": why}
    assert failing(**held, over="from src.tables import label\nfrom src.old.run import run\n") == {
        "src/old/run.py": why,
        "over.py": "line 2 imports src/old/run.py, which cannot be imported",
    }


@pytest.mark.parametrize(
    "changed",
    [
        {"src/parts": PARTS + "cut = 1\n"},
        {"src/main": "from tables import label\n"},  # nobody takes anything that is there
        {"src/old/run": PLAIN.replace("from tables import label\n", "")},
        {"lib/parts": PARTS + "cut = 1\n"},
        {"src/types": PARTS, "src/main": OTHER.replace("parts", "types"), "src/old/run": PLAIN.replace("parts", "types")},
    ],
)
def test_a_module_of_one_word_may_be_another_one(changed: dict[str, str]) -> None:
    assert not failing(**{"src/parts": PARTS, "src/tables": TABLES, "src/main": OTHER, "src/old/run": PLAIN, **changed})


def test_who_imports_such_a_file_cannot_be_imported_either() -> None:
    files = {
        "parts": PARTS,
        "main": TAKES,
        "over": "from . import main\n",
        "told": '"""Use it so:\n\nfrom . import main\n"""\n',
        "tried": "try:\n    from . import main\nexcept ImportError:\n    pass\n",
    }
    assert failing(**files) == {"main.py": WHY, "over.py": "line 1 imports main.py, which cannot be imported"}


def test_a_package_that_would_be_of_no_use_is_not_believed_to_be() -> None:
    files = {"pack/parts": PARTS, "pack/main": TAKES}
    assert set(failing(**files)) == {"pack/main.py"}
    assert not failing(**files, **{"pack/__init__": "from .main import run\n"})


def test_the_commands_say_why_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    parts = "import torch\n\n\ndef _cut(rows):\n    torch.cuda.synchronize()\n    return rows\n"
    Path("parts.py").write_text(parts)
    waits = "import torch\nfrom .parts import cut\n\n\ndef run(x, s):\n    h = x.to('cpu', non_blocking=True)\n    return cut(h.tolist())\n"
    Path("main.py").write_text(waits)
    assert cli.main(["debug", "facts", "main.py:7", "--root", "."]) == 0
    assert capsys.readouterr().out == f"nothing in this file runs: {WHY}\n".replace("line 1", "line 2")
    cli.main(["check", "--no-cache", "--explain-silence", "main.py:7", "."])
    assert f"nothing in this file runs: {WHY}".replace("line 1", "line 2") in capsys.readouterr().out
    Path("parts.py").write_text(parts + "cut = len\n")
    assert cli.main(["check", "--no-cache", "--select", "SL005", "."]) == 1
