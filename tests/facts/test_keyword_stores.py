"""Attributes that a method sets by the names of its keywords."""

from __future__ import annotations

import pytest
from facts.programs import facts_of, function

from streamlint.facts.code.objects import Instance
from streamlint.facts.graph.facts import describe
from streamlint.ir import opcodes as op

SETTERS = {
    "items": "for name, value in kw.items():\n            if value is not None:\n                setattr(self, name, value)",
    "keys": "for name in kw:\n            setattr(self, name, kw[name])",
    "dict": "self.__dict__.update(kw)",
    "spread": "vars(self).update(**kw)",
}
OTHERS = {
    "another object": "for name, value in kw.items():\n            setattr(other, name, value)",
    "another value": "for name, value in kw.items():\n            setattr(self, name, 1)",
    "another dict": "other.update(kw)",
}


def held(text: str) -> set[str]:
    """What ``self.part`` of the program's method ``use`` may be."""
    facts = facts_of(main=text)
    function = next(one for one in facts.program.units["main.py"].functions if one.code.name == "use")
    (read,) = function.by_opcode[op.ATTR]
    return {words for value in facts.values(function, read[2]).values for words in describe(value)}


@pytest.mark.parametrize("body", SETTERS.values(), ids=SETTERS)
@pytest.mark.parametrize("is_inherited", [True, False])
def test_a_method_sets_its_keywords(body: str, is_inherited: bool) -> None:
    setter = f"    def take(self, **kw):\n        {body}\n"
    base = f"class Base:\n{setter}" if is_inherited else ""
    own = "class C(Base):\n" if is_inherited else f"class C:\n{setter}"
    call = "    def __init__(self):\n        self.take(part=Part(), other=1)\n    def use(self):\n        self.part\n"
    assert held(f"class Part: pass\n{base}{own}{call}") == {"object of Part"}


@pytest.mark.parametrize("body", SETTERS.values(), ids=SETTERS)
def test_a_constructor_sets_its_keywords(body: str) -> None:
    text = f"class Part: pass\nclass C:\n    def __init__(self, **kw):\n        {body}\n    def use(self):\n        self.part\n"
    assert held(f"{text}C(part=Part(), other=1).use()\n") == {"object of Part"}


@pytest.mark.parametrize("body", OTHERS.values(), ids=OTHERS)
def test_what_sets_none_of_them(body: str) -> None:
    text = f"class Part: pass\nother = {{}}\nclass C:\n    def take(self, **kw):\n        {body}\n"
    call = "    def __init__(self):\n        self.take(part=Part())\n    def use(self):\n        self.part\n"
    assert "object of Part" not in held(f"{text}{call}")


def test_a_parameter_that_is_declared_with_a_class_is_not_searched_for() -> None:
    text = "class A: pass\nclass B(A): pass\ndef use(x: A):\n    x.part\nuse(B())\n"
    facts = facts_of(main=text)
    function = next(one for one in facts.program.units["main.py"].functions if one.code.name == "use")
    assert {words for value in facts.argument(function, 0).values for words in describe(value)} == {"object of A or a subclass"}


@pytest.mark.parametrize("taken", ['pop("size", None)', 'get("size")', 'setdefault("size", None)'])
@pytest.mark.parametrize(("given", "is_held"), [("size", True), ("state", False)])
def test_a_method_takes_what_is_under_the_key_that_it_names(taken: str, given: str, is_held: bool) -> None:
    facts = facts_of(main=f"class Part: pass\ndef make(**kwargs):\n    return kwargs.{taken}\nmake({given}=Part())\n")
    make = function(facts, "main", "make")
    held = facts.values(make, make.by_opcode[op.RETURN][0][2]).values
    assert any(isinstance(value, Instance) for value in held) == is_held
