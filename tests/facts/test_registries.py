"""What a container of the program holds, wherever its elements go."""

from __future__ import annotations

import pytest
from facts.programs import facts_of

from streamlint.facts.calls import MOST_APART
from streamlint.facts.facts import describe
from streamlint.facts.tracker import MOST_PLACES
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
READS = ("self.kinds.get(name)", "self.kinds[name]", "self.kinds.pop(name)")


@pytest.mark.parametrize("read", READS)
def test_elements_that_go_to_many_places_are_not_the_container(read: str) -> None:
    uses = "".join(f"def use_{n}(names):\n    one = TABLE.get(names[{n}])\n    two = one\n    return two\n" for n in range(MOST_PLACES))
    last = "def last(name):\n    return TABLE.get(name)\n"
    facts = facts_of(main=TABLE % read + uses + last)
    function = next(one for one in facts.program.units["main.py"].functions if one.code.name == "last")
    (call,) = function.by_opcode[op.INVOKE]
    assert "class Net" in {words for value in facts.values(function, call[2]).values for words in describe(value)}


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
    function = next(one for one in facts.program.units["main.py"].functions if one.code.name == "last")
    (call,) = function.by_opcode[op.CALL]
    assert {words for value in facts.values(function, call[2]).values for words in describe(value)} == {"object of Kind3"}


def test_a_decorator_that_gives_back_another_value_is_followed() -> None:
    wrapped = DECORATED.replace("        return kind\n", "        kind = Other if name else kind\n        return kind\n")
    kinds = "class Other: pass\n@put('one')\nclass Kind: pass\n"
    facts = facts_of(main=wrapped + kinds + "def last():\n    return Kind()\n")
    function = next(one for one in facts.program.units["main.py"].functions if one.code.name == "last")
    (call,) = function.by_opcode[op.CALL]
    found = {words for value in facts.values(function, call[2]).values for words in describe(value)}
    assert {"object of Kind", "object of Other"} <= found
