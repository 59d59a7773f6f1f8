"""Threads that their starter waits for, and the arguments that calls were given before."""

from __future__ import annotations

from textwrap import dedent

import pytest
from facts.programs import facts_of, function

from streamlint.facts.code.handing import Called
from streamlint.facts.code.objects import Constant
from streamlint.facts.graph.call_graph import CallGraph, Edge
from streamlint.facts.graph.facts import describe
from streamlint.ir import opcodes as op
from streamlint.waits.operands import operand_of

HEAD = """
import asyncio
import functools
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

def work(first, second=0):
    return first

class Worker(threading.Thread):
    def run(self):
        pass

class Part:
    def act(self, first):
        pass
"""


def edges(body: str, head: str = "def go(x, condition):") -> dict[tuple[str, int], Edge]:
    """The calls that a function enters, by the name of what they enter and the line of the body, from 1 on."""
    text = HEAD + f"\n{head}\n" + "\n".join(f"    {line}" for line in body.splitlines())
    facts = facts_of(a=text)
    used = function(facts, "a", "go")
    first = used.code.first_row
    found = CallGraph(facts).all_calls(used).edges
    return {(edge.callee.name, used.code.at(edge.instruction[1])[0] - first): edge for edge in found}


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("w = threading.Thread(target=work, args=(x,))\nw.start()\nw.join()", ("work", 2)),
        ("w = Worker()\nw.start()\nw.join()", ("Worker.run", 2)),
        ("ws = [threading.Thread(target=work) for _ in x]\nfor w in ws:\n    w.start()\nfor w in ws:\n    w.join()", ("work", 3)),
        ("p = ThreadPoolExecutor()\nf = p.submit(work, x)\nf.result()", ("work", 2)),
        ("with ThreadPoolExecutor() as p:\n    p.submit(work, x)", ("work", 2)),
    ],
)
def test_a_thread_that_is_waited_for_is_followed(body: str, place: tuple[str, int]) -> None:
    edge = edges(body)[place]
    assert edge.is_joined
    assert edge.is_elsewhere
    assert edge.is_followed


def test_what_is_awaited_is_followed() -> None:
    assert edges("await asyncio.to_thread(work, x)", "async def go(x):")["work", 1].is_followed
    assert not edges("later = asyncio.to_thread(work, x)\nreturn later", "async def go(x):")["work", 1].is_followed


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("w = threading.Thread(target=work, args=(x,))\nw.start()", ("work", 2)),
        ("w = threading.Thread(target=work)\nw.start()\nif condition:\n    w.join()", ("work", 2)),
        ("w = threading.Thread(target=work)\nv = threading.Thread(target=print)\nw.start()\nv.join()", ("work", 3)),
        ("p = ThreadPoolExecutor()\nf = p.submit(work, x)\ng = p.submit(print, x)\ng.result()", ("work", 2)),
        ("with ProcessPoolExecutor() as p:\n    p.submit(work, x)", ("work", 2)),
    ],
)
def test_a_thread_that_nobody_waits_for_is_not_followed(body: str, place: tuple[str, int]) -> None:
    edge = edges(body)[place]
    assert edge.is_elsewhere
    assert not edge.is_followed


def given(line: str, before: str = "") -> Called | None:
    """What the last call of a function runs, with the arguments that were given before."""
    facts = facts_of(a=HEAD + f"\ndef go(a, b, p):\n{before}    {line}\n")
    used = function(facts, "a", "go")
    calls = [one for one in used.code.instructions() if one[0] in (op.CALL, op.INVOKE)]
    handing = facts.program.handing
    assert handing is not None
    return handing.of(used, calls[-1])


@pytest.mark.parametrize(
    ("line", "before"),
    [
        ("act()", "    act = functools.partial(work, a, second=b)\n"),
        ("act(second=b)", "    act = functools.partial(work, a, second=1)\n"),
        ("outer()", "    inner = functools.partial(work, a)\n    outer = functools.partial(inner, second=b)\n"),
        ("w.start()", "    w = threading.Thread(target=work, args=(a,), kwargs={'second': b})\n"),
        ("w.start()", "    w = threading.Thread(None, work, None, (a, b))\n"),
        ("p.submit(work, a, second=b)", "    p = ThreadPoolExecutor()\n"),
        ("asyncio.to_thread(work, a, b)", ""),
    ],
)
def test_arguments_that_were_given_before(line: str, before: str) -> None:
    found = given(line, before)
    assert found is not None
    assert len(found.given) == 2
    assert [kind for kind, _ in found.given] in ([None, None], [None, "second"])


@pytest.mark.parametrize("line", ["work(a, b)", "p.start()", "p.submit(work, a)", "print(work(a), b)"])
def test_a_plain_call_was_given_nothing_before(line: str) -> None:
    assert given(line) is None


def test_parameters_get_what_was_given_before() -> None:
    facts = facts_of(
        a=HEAD
        + dedent("""
        def go(a, b):
            part = Part()
            w = threading.Thread(target=part.act, args=(b,))
            w.start()
        """)
    )
    used, act = function(facts, "a", "go"), function(facts, "a", "Part.act")
    start = next(one for one in used.by_opcode[op.INVOKE] if used.text(one[4]) == "start")
    receiver, first = (operand_of(used, start, act, index) for index in (0, 1))
    assert first == used.by_opcode[op.PARAM][1][2]
    assert receiver is not None
    made = used.definitions[receiver]
    assert made is not None
    assert used.dotted(made[3]) == "Part"


def test_a_partial_method_is_called_of_its_object() -> None:
    text = "class C:\n    def f(self, x, y): return y\n    g = functools.partialmethod(f, 1)\n\ndef go():\n    return C().g(2)\n"
    facts = facts_of(a="import functools\n\n" + text)
    used = function(facts, "a", "go")
    (end,) = used.by_opcode[op.RETURN]
    assert [value.value for value in facts.values(used, end[2]).values if isinstance(value, Constant)] == [2]


def test_the_result_of_a_thread_arrives_where_it_is_waited_for() -> None:
    text = "def give(): return 7\ndef go():\n    with ThreadPoolExecutor() as pool:\n        return pool.submit(give).result()\n"
    facts = facts_of(a="from concurrent.futures import ThreadPoolExecutor\n" + text)
    used = function(facts, "a", "go")
    values = [value for end in used.by_opcode[op.RETURN] if end[2] >= 0 for value in facts.values(used, end[2]).values]
    assert 7 in [value.value for value in values if isinstance(value, Constant)]


@pytest.mark.parametrize(
    ("waited", "held"),
    [
        ("pool.submit(work, torch.zeros(3)).result()", {"torch.Tensor in pageable host memory"}),
        ("pool.submit(functools.partial(work, torch.zeros(3))).result()", {"torch.Tensor in pageable host memory"}),
        ("pool.submit(torch.zeros, 3).result()", {"torch.Tensor in pageable host memory"}),
        ("pool.submit(condition, 3).result()", {"unknown (external)"}),
        ("Future().result()", {"unknown (external)"}),
    ],
)
def test_what_another_thread_gives_is_no_number(waited: str, held: set[str]) -> None:
    text = (
        HEAD + f"import torch\nfrom concurrent.futures import Future\ndef go(pool: ThreadPoolExecutor, condition):\n    return {waited}\n"
    )
    facts = facts_of(a=text)
    used = function(facts, "a", "go")
    (end,) = used.by_opcode[op.RETURN]
    assert {words for value in facts.values(used, end[2]).values for words in describe(value)} - {"unknown (caller)"} == held
