"""Outlines: which files lead to work with CUDA, by what they import and name."""

from __future__ import annotations

import pytest

from streamlint.discovery.outlines import Reach, outline

WORK = "def send(x):\n    return x.cuda()\n\ndef plain(x):\n    return x\n"


def names(**files: str) -> dict[str, set[str]]:
    """The names of each file by which work is reached."""
    return in_files({f"{name}.py": text for name, text in files.items()})


def in_files(texts: dict[str, str]) -> dict[str, set[str]]:
    return reach(texts).names


def reach(texts: dict[str, str]) -> Reach:
    return Reach({path: outline(text, lambda data: b".cuda(" in data or b"cupy" in data) for path, text in texts.items()})


@pytest.mark.parametrize(
    ("text", "reached"),
    [
        ("from a import send\ndef hop(x):\n    return send(x)\n", {"send", "hop"}),
        ("from a import send as s\nhop = lambda x: s(x)\n", {"s", "hop"}),
        ("import a\ndef hop(x):\n    return a.send(x)\n", {"hop"}),
        ("import a as b\nclass Hop:\n    def run(self, x):\n        return b.send(x)\n", {"Hop"}),
        ("def hop(x):\n    from a import send\n    return send(x)\n", {"send", "hop"}),
        ("from a import *\n@wrap(send)\ndef hop(x): ...\n", {"send", "hop"}),
        ("from a import plain\ndef hop(x):\n    return plain(x)\n", set()),
        ("import a\ndef hop(x):\n    return a.plain(x)\n", set()),
        ("def send(x):\n    return x\n", set()),
        ("", set()),
    ],
)
def test_what_names_work_of_another_file_leads_to_it(text: str, reached: set[str]) -> None:
    assert names(a=WORK, b=text)["b.py"] == reached


def test_any_number_of_files_may_stand_between() -> None:
    files = {
        "f0": WORK.replace("send", "g0"),
        **{f"f{i}": f"from f{i - 1} import g{i - 1}\ndef g{i}(x): return g{i - 1}(x)\n" for i in range(1, 9)},
    }
    assert names(**files)["f8.py"] == {"g7", "g8"}


def test_a_package_hands_on_what_it_imports() -> None:
    user = "from p import send\ndef hop(x): return send(x)\n"
    found = in_files({"p/a.py": WORK, "p/__init__.py": "from .a import send\n", "b.py": user})
    assert found["b.py"] == {"send", "hop"}


def test_files_that_import_one_another() -> None:
    found = names(a="from b import g\ndef f(): g()\n", b="from a import f\ndef g(): f()\ndef h(): x.cuda()\n")
    assert found == {"a.py": set(), "b.py": {"h"}}


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("from b import keep\ndef go(x):\n    return keep(x.cuda())\n", {"keep", "note"}),
        ("import b\ndef go(x):\n    return b.keep(x.cuda())\n", {"keep", "note"}),
        ("from b import *\ndef go(x):\n    return note(x.cuda())\n", {"note"}),
        ("from b import keep\ndef go(x):\n    return x.cuda()\ndef plain(x):\n    return keep(x)\n", set()),
    ],
)
def test_what_work_calls_is_read(text: str, called: set[str]) -> None:
    other = "def keep(x):\n    return note(x)\n\ndef note(x):\n    return x.tolist()\n\ndef unused(x):\n    return x\n"
    assert reach({"a.py": text, "b.py": other}).called["b.py"] == called


def test_what_work_calls_is_read_where_a_package_hands_it_on() -> None:
    texts = {
        "a.py": "from p import part\ndef go(x):\n    return part.keep(x.cuda())\n",
        "p/__init__.py": "",
        "p/part/__init__.py": "from .inner import keep\n",
        "p/part/inner.py": "def keep(x):\n    return x.tolist()\n",
    }
    found = reach(texts).called
    assert found["p/part/__init__.py"] == {"keep"}
    assert found["p/part/inner.py"] == {"keep"}


def test_what_uses_a_library_of_cuda_works() -> None:
    texts = {"a.py": "import cupy as cp\ndef send(x):\n    return cp.asarray(x)\n", "b.py": "from a import send\n"}
    assert in_files(texts) == {"a.py": {"send"}, "b.py": {"send"}}


def test_what_no_file_has_is_not_called() -> None:
    user = "from c import *\nfrom a import send\ndef hop(x):\n    return send(other(missing(x)))\n"
    found = reach({"a.py": WORK, "b.py": user, "c.py": "def other(x): return x\ndef rest(x): return x\n"})
    assert found.called["c.py"] == {"other"}
    assert "missing" not in found.called["b.py"]


def test_of_a_file_that_takes_all_of_another_those_names_are_noted_that_it_has() -> None:
    texts = {
        "a.py": "from b import *\ndef go(x):\n    return lay(turn(x.cuda()), one, two, three)\n",
        "b.py": "from c import *\nfrom e import lay\ndef one(x): return x\n",
        "c.py": "from d import *\ndef two(x): return x\n",
        "d.py": "def turn(x): return x.tolist()\ndef other(x): return x\n",
        "e.py": "def lay(x): return three(x)\ndef three(x): return x\n",
    }
    found = reach(texts).called
    assert found == {
        "a.py": {"go", "lay", "turn", "one", "two"},
        "b.py": {"lay", "turn", "one", "two"},
        "c.py": {"turn", "two"},
        "d.py": {"turn"},
        "e.py": {"lay", "three"},
    }


ENTRIES = {
    "table.py": "KINDS = {}\ndef enter(name):\n    def put(kind):\n        KINDS[name] = kind\n        return kind\n    return put\n",
    "kinds.py": "from table import enter\n@enter('one')\nclass One:\n    def run(self, x):\n        return helper(x)\nclass Alone: pass\n"
    "def helper(x): return x.tolist()\n",
}


@pytest.mark.parametrize(
    ("user", "called"),
    [
        ("from table import KINDS\ndef go(x):\n    return KINDS['one']().run(x.cuda())\n", {"One", "helper", "enter"}),
        ("import kinds\ndef go(x, name):\n    return getattr(kinds, name)(x.cuda())\n", {"One", "helper", "Alone", "enter"}),
        ("PLACE = 'kinds.Alone'\ndef go(x):\n    return made(PLACE)(x.cuda())\n", {"Alone"}),
        ("from table import KINDS\ndef go(x):\n    return x.cuda()\n", set()),
    ],
)
def test_what_a_table_or_a_text_leads_to_is_read(user: str, called: set[str]) -> None:
    assert reach({"a.py": user, **ENTRIES}).called["kinds.py"] == called


def test_several_names_of_one_statement_are_defined() -> None:
    texts = {
        "reg.py": "def make():\n    return {}, lambda name: lambda kind: kind\n",
        "kinds.py": "from tables import enter\n@enter('one')\nclass One: pass\n",
        "tables.py": "from reg import make\nKINDS, enter = make()\n",
        "a.py": "from tables import KINDS\ndef go(x):\n    return KINDS['one']().run(x.cuda())\n",
    }
    assert reach(texts).called["kinds.py"] >= {"One"}
