"""The fields of records that calls make: which class takes them, and in which order."""

from __future__ import annotations

import pytest

from streamlint.facts.code.objects import Instance
from streamlint.ir import opcodes as op
from streamlint.waits.record_fields import RecordFields
from tests.facts.programs import facts_of, function

HEAD = "import threading\nfrom collections import namedtuple\nfrom dataclasses import dataclass\nfrom typing import NamedTuple\n\n"
TWICE = "if len('x'):\n    Record = namedtuple('Record', '{}')\nelse:\n    Record = namedtuple('Record', '{}')\n"


def given(text: str) -> list[str]:
    """The fields that ``Record(a, done=b)`` is given, with the parameter that gives it."""
    facts = facts_of(main=f"{HEAD}{text}\n\ndef make(a, b):\n    return Record(a, done=b)\n")
    make = function(facts, "main", "make")
    (call,) = make.by_opcode[op.CALL]
    names = {one[2]: make.code.parameters[one[3]].name for one in make.by_opcode[op.PARAM]}
    return [f"{field}={names[register]}" for field, register in RecordFields(facts).given(make, call)]


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("class Record(NamedTuple):\n    rows: list\n    done: bool\n", ["rows=a", "done=b"]),
        ("@dataclass\nclass Record(threading.Thread):\n    rows: list\n    done: bool\n", ["rows=a", "done=b"]),
        ("class Record(threading.Thread):\n    rows: list\n    done: bool\n", ["done=b"]),
        (TWICE.format("rows done", "rows done"), ["rows=a", "done=b"]),
        (TWICE.format("rows done", "done rows"), []),
    ],
)
def test_fields_are_taken_by_position_where_that_is_known(text: str, fields: list[str]) -> None:
    assert given(text) == fields


def test_an_attribute_is_not_what_a_constructor_of_a_library_takes_first() -> None:
    text = "class Part: pass\n{}class Record(threading.Thread):\n    rows: object\n\n"
    text += "def read(record: Record):\n    return record.rows\n\nread(Record(Part()))\n"
    for decorator, is_given in (("@dataclass\n", True), ("", False)):
        facts = facts_of(main=HEAD + text.format(decorator))
        read = function(facts, "main", "read")
        values = facts.values(read, read.by_opcode[op.RETURN][0][2]).values
        assert any(isinstance(value, Instance) for value in values) == is_given
