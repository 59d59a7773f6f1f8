"""What stands under a switch that a constructor leaves off is no reason to run a function, where nothing on its way turns it on."""

from __future__ import annotations

import pytest

from streamlint import models
from streamlint.analysis import Analysis
from streamlint.frontends.python import lower
from streamlint.interpreter.index import File, Program
from streamlint.interpreter.switches import Switches
from streamlint.options import Options
from streamlint.program import functions_of

CACHE = """
import torch

class Cache:
    def __init__(self, size, offload=False, side=None):
        self.offload = offload
        self.side = side
        if self.offload:
            self.side = torch.cuda.Stream()

class Store(Cache):
    held: int

    def __init__(self, size, layers=(), offload=False):
        super().__init__(size, offload=offload)

class Keeper:
    def __init__(self, size, offload=False):
        self.size = size
        self.offload = offload

    @classmethod
    def build(cls, *args):
        return cls(*args)

    @classmethod
    def small(cls):
        return cls(1)

    def update(self, x):
        if self.offload and self.size:
            with torch.cuda.stream(torch.cuda.Stream()):
                x = x * 2
        return x

    def late(self, x):
        if not self.offload:
            return x
        with torch.cuda.stream(torch.cuda.Stream()):
            x = x * 2
        return x

    def otherwise(self, x):
        if not self.offload or self.size:
            return x
        else:
            return self.moved(x)

    def moved(self, x):
        with torch.cuda.stream(torch.cuda.Stream()):
            x = x * 2
        return x

class Wide(Keeper):
    def __init__(self, size, layers=(), offload=False, **others):
        super().__init__(size, offload=offload, **others)

class Plain(Keeper):
    pass

class Always(Keeper):
    def __init__(self, size):
        super().__init__(size, offload=True)

class Field(Keeper):
    def set(self, value):
        self.offload = value

class Asking(Keeper):
    @property
    def offload(self):
        return self.size > 2

Other = Keeper
"""
LENT = """
from cache import Keeper

LENT = Keeper(4, offload=True)
"""
LENDER = """
from cache import Keeper

class Lender:
    keeper = Keeper(4, offload=True)
"""
MODEL = """
import torch
from cache import Always, Asking, Field, Keeper, Other, Plain, Wide

class Model:
    def __init__(self, offload=False):
        self.width = 4
        {made}

    def forward(self, x, offload=False, more=None):
        {body}
        return keeper.{method}(x)

def make(kind):
    return kind(4)

{module}
"""


def _asked(body: str, method: str = "update", made: str = "", module: str = "", text: str = "") -> bool:
    program, rows = Program(), models.builtin("python")
    program.add(lower("cache.py", CACHE), rows)
    program.add(lower("lent.py", LENDER if "Lender" in body else LENT), rows)
    text = text or MODEL.format(body=body.replace("\n", "\n        "), method=method, made=made, module=module)
    file = program.add(lower("a.py", text), rows)
    roots = Analysis(program, Options(codes=frozenset({"SL006"}))).roots(file)
    return any(root.qualname in ("Model.forward", "forward") for root in roots)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("keeper = Keeper(4)", id="left to its default"),
        pytest.param("keeper = Keeper(4, offload=False)", id="given what it is"),
        pytest.param("keeper = Keeper(size=4)", id="others given by name"),
        pytest.param("keeper = Other(4)", id="another name of the class"),
        pytest.param("keeper = Plain(4)", id="a class that derives from it"),
        pytest.param("keeper = Wide(4)", id="a class that hands its own switch on"),
        pytest.param("keeper = Wide(4, (x,))", id="a place that is another parameter's"),
        pytest.param("keeper = Keeper(4)\nx = [] if isinstance(more, (Keeper, Wide)) else x", id="asked for the class"),
        pytest.param("keeper: Keeper | None = more or Keeper(4)", id="annotated, and perhaps None"),
        pytest.param("keeper = Keeper(4)\nlater = dict(width=4)", id="another keyword"),
    ],
)
@pytest.mark.parametrize("method", ["update", "late", "otherwise"])
def test_off_for_what_is_made_on_the_way(body: str, method: str) -> None:
    assert not _asked(body, method)


@pytest.mark.parametrize(
    ("body", "made", "module"),
    [
        pytest.param("keeper = Keeper(4, offload=True)", "", "", id="by name"),
        pytest.param("keeper = Keeper(4, offload=self.width > 2)", "", "", id="by name, what is not known"),
        pytest.param("keeper = Keeper(4, offload=offload)", "", "", id="what a root's caller gives"),
        pytest.param("keeper = Keeper(4, True)", "", "", id="by its place"),
        pytest.param("keeper = Other(4, True)", "", "", id="by its place, under another name"),
        pytest.param("keeper = Plain(4, True)", "", "", id="by its place in the base's constructor"),
        pytest.param("keeper = Wide(4, (), True)", "", "", id="by its place in a constructor that hands it on"),
        pytest.param("keeper = Keeper(*more)", "", "", id="by a star"),
        pytest.param("keeper = Keeper(4, **more)", "", "", id="by two stars"),
        pytest.param("keeper = Wide(4, **{'offload': True})", "", "", id="by a literal"),
        pytest.param("keeper = Keeper(4)\nkeeper.offload = True", "", "", id="later"),
        pytest.param("keeper = Keeper(4)\nsetattr(keeper, 'offload', True)", "", "", id="later, by a literal"),
        pytest.param("keeper = Keeper.build(4, True)", "", "", id="by the class's own maker"),
        pytest.param("keeper = make(Keeper)", "", "", id="the class is handed on"),
        pytest.param("keeper = Always(4)", "", "", id="by a class that derives from it"),
        pytest.param("keeper = Field(4)\nkeeper.set(True)", "", "", id="assigned by a class that derives from it"),
        pytest.param("keeper: Keeper = more", "", "", id="an object by its annotation"),
        pytest.param("keeper = self.keeper", "self.keeper = Keeper(4, offload=True)", "", id="held by the object"),
        pytest.param("keeper = self.keeper", "self.keeper = Keeper(4, offload=offload)", "", id="what is given to the object"),
        pytest.param("keeper = KEEPER", "", "KEEPER = Keeper(4, offload=True)", id="made by the module"),
        pytest.param("keeper = LENT", "", "from lent import LENT", id="made by another module"),
        pytest.param("keeper = Lender.keeper", "", "from lent import Lender", id="made for a class"),
        pytest.param("keeper = Asking(4)", "", "", id="a property of a class that derives from it"),
    ],
)
def test_perhaps_on(body: str, made: str, module: str) -> None:
    assert _asked(body, made=made, module=module)


def test_an_own_object_s_switch_is_not_known() -> None:
    text = CACHE.replace("class Keeper:", "class Model:").replace("(Keeper)", "(Model)").replace("= Keeper", "= Model")
    assert _asked("", text=text.replace("def update", "def forward"))


def test_a_parameter_by_its_annotation() -> None:
    text = "from cache import Keeper\n\ndef forward(keeper: {}, x):\n    return keeper.update(x)\n"
    assert _asked("", text=text.format("Keeper"))
    assert not _asked("", text=text.format("'int'"))


def _switches(text: str) -> dict[str, list[str]]:
    """The switches of each method, where something stands under them."""
    program = Program()
    file: File = program.add(lower("a.py", text), models.builtin("python"))
    of = Switches(file.relevance).of
    return {f.name: [switch.attribute for switch in of(f)] for f, owner in functions_of(file.module) if owner is not None}


@pytest.mark.parametrize(
    ("change", "is_switch"),
    [
        (("", ""), True),
        (("a=False", "a=None"), True),
        (("a=False", "a=True"), False),
        (("a=False", "a"), False),
        (("= a", "= not a"), False),
        (("= a", "= a\n        a = True"), False),
        (("self.a = a", "a = a or x\n        self.a = a"), False),
        (("pass", "self.a = True"), False),
        (("class A:", "class A:\n    a: bool"), False),
        (("pass", "pass\n\n    def a(self):\n        return True"), False),
        (("if self.a:", "if not self.a:"), False),
        (("if self.a:", "if self.a or self.b:"), False),
        (("if self.a:", "if self.a and self.b:"), True),
        (("if self.a:", "if a.a:"), False),
    ],
)
def test_what_a_switch_is(change: tuple[str, str], is_switch: bool) -> None:
    text = (
        "class A:\n    def __init__(self, x, a=False):\n        self.a = a\n\n    def f(self):\n        if self.a:\n            print()\n\n"
    )
    assert _switches((text + "    def g(self):\n        pass\n").replace(*change))["f"] == (["a"] if is_switch else [])


@pytest.mark.parametrize(("test", "is_switch"), [("self.a is not None", True), ("self.a is None", False), ("self.a == 2", False)])
@pytest.mark.parametrize("default", ["None", "False"])
def test_asked_for_none(test: str, default: str, is_switch: bool) -> None:
    text = (
        f"class A:\n    def __init__(self, a={default}):\n        self.a = a\n\n    def f(self):\n        if {test}:\n            print()\n"
    )
    found = _switches(text)["f"]
    assert found == (["a"] if is_switch and default == "None" else [])
