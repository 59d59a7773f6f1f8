"""What a container of the program holds, wherever its elements go."""

from __future__ import annotations

import pytest
from facts.programs import facts_of, function

from streamlint.facts.files.steps import MOST_PLACES
from streamlint.facts.graph.facts import Facts, describe
from streamlint.facts.values.calls import MOST_APART
from streamlint.ir import opcodes as op

TABLE = """
class Table:
    def __init__(self):
        self.kinds = {}

    def put(self, name, kind):
        self.kinds[name] = kind
        return kind

    def get(self, name):
        found = %s
        return found


TABLE = Table()


class Net: pass


TABLE.put("net", Net)
"""


def _given_back(facts: Facts) -> set[str]:
    """What the function `last` gives back."""
    last = function(facts, "main", "last")
    (back,) = last.by_opcode[op.RETURN]
    return {words for value in facts.values(last, back[2]).values for words in describe(value)}


READS = ("self.kinds.get(name)", "self.kinds[name]", "self.kinds.pop(name)")


@pytest.mark.parametrize("read", READS)
def test_elements_that_go_to_many_places_are_not_the_container(read: str) -> None:
    uses = "".join(f"def use_{n}(names):\n    one = TABLE.get(names[{n}])\n    two = one\n    return two\n" for n in range(MOST_PLACES))
    last = "def last(name):\n    return TABLE.get(name)\n"
    facts = facts_of(main=TABLE % read + uses + last)
    assert "class Net" in _given_back(facts)


DECORATED = """
TABLE = {}


def put(name):
    def wrap(kind):
        TABLE[name] = kind
        return kind

    return wrap
"""


def test_a_class_that_a_table_takes_among_many_is_itself_and_no_other() -> None:
    kinds = "".join(f"@put('{n}')\nclass Kind{n}: pass\n" for n in range(MOST_APART + 10))
    facts = facts_of(main=DECORATED + kinds + "def last():\n    return Kind3()\n")
    assert _given_back(facts) == {"object of Kind3"}


def test_a_decorator_that_gives_back_another_value_is_followed() -> None:
    wrapped = DECORATED.replace("        return kind\n", "        kind = Other if name else kind\n        return kind\n")
    kinds = "class Other: pass\n@put('one')\nclass Kind: pass\n"
    facts = facts_of(main=wrapped + kinds + "def last():\n    return Kind()\n")
    assert {"object of Kind", "object of Other"} <= _given_back(facts)


PARTS = {
    "kinds/__init__": "from kinds.first import One, helper\nfrom kinds.second import *\nimport json\n",
    "kinds/first": "class One: pass\ndef helper(): pass\nclass Hidden: pass\n",
    "kinds/second": "class Two: pass\n",
}


@pytest.mark.parametrize("read", ["getattr(kinds, name)", "getattr(importlib.import_module('kinds'), name)"])
def test_a_package_asked_for_a_name_from_outside_gives_what_it_defines_or_takes(read: str) -> None:
    facts = facts_of(main=f"import importlib\nimport kinds\ndef last(name):\n    return {read}()\n", **PARTS)
    found = _given_back(facts)
    assert {"object of One", "object of Two"} <= found
    assert "object of Hidden" not in found


def test_the_names_of_the_own_file_are_what_it_defines() -> None:
    facts = facts_of(main="class One: pass\nLIMIT = 3\ndef last(name):\n    return globals()[name]()\n")
    assert {one for one in _given_back(facts) if one.startswith("object")} == {"object of One"}
    facts = facts_of(main="class One: pass\nclass Two: pass\ndef last():\n    return globals()['Two']()\n")
    assert _given_back(facts) == {"object of Two"}


def test_an_object_asked_for_a_name_from_outside_gives_nothing_known() -> None:
    facts = facts_of(main="class One:\n    def go(self): pass\ndef last(name):\n    return getattr(One(), name)()\n")
    assert _given_back(facts) == {"unknown (dynamic)"}


BAG = """
class Bag(dict):
    def put(self, kind):
        %s
        return kind


BAG = Bag()


@BAG.put
class One: pass


class Two: pass
BAG.put(Two)


class Never: pass
"""
PUTS = ("self[kind.__name__] = kind", "super().__setitem__(kind.__name__, kind)")


@pytest.mark.parametrize("read", ["BAG[name]", "BAG.get(name)", "[each for each in BAG.values()][0]"])
@pytest.mark.parametrize("put", PUTS)
def test_an_object_whose_class_derives_from_dict_holds_what_its_methods_put(put: str, read: str) -> None:
    found = _given_back(facts_of(main=BAG % put + f"def last(name):\n    return {read}()\n"))
    assert {"object of One", "object of Two"} <= found
    assert "object of Never" not in found


def test_a_key_that_is_known_gives_what_is_put_under_it_alone() -> None:
    text = BAG % "self['one'] = kind" + "class Other(dict):\n    def __getitem__(self, key):\n        return Never\n"
    assert "object of One" not in _given_back(facts_of(main=text + "def last():\n    return BAG['two']()\n"))
    assert "object of Never" in _given_back(facts_of(main=text + "def last():\n    return Other()['two']()\n"))
