"""The order of the arguments that a partial object was given and of those of its call, whatever is spread."""

from __future__ import annotations

import pytest

from streamlint.facts.graph.facts import describe
from streamlint.ir import opcodes as op
from tests.facts.programs import facts_of, function


def prepared(text: str) -> list[tuple[object, str]]:
    """The arguments that the last call of the function ``run`` runs a partial object with, by kind and name."""
    facts = facts_of(main=f"from functools import partial\n\ndef run(f, a, b, kw, other):\n    {text}\n")
    run = function(facts, "main", "run")
    handing = facts.program.handing
    assert handing is not None
    call = max(run.by_opcode[op.CALL], key=lambda one: one[2])
    found = handing.prepared(run, call)
    assert found is not None
    names = {one[2]: run.code.parameters[one[3]].name for one in run.by_opcode[op.PARAM]}
    return [(kind, names[register]) for kind, register in found.given]


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("partial(f, a)(b)", [(None, "a"), (None, "b")]),
        ("partial(f, *a)(b)", [(1, "a"), (None, "b")]),
        ("partial(f, *a)(*b)", [(1, "a"), (1, "b")]),
        ("partial(f, a, **kw)(b)", [(None, "a"), (None, "b"), (2, "kw")]),
        ("partial(f, a, **kw)(b, **other)", [(None, "a"), (None, "b"), (2, "other"), (2, "kw")]),
        ("partial(f, x=a, y=kw)(x=b)", [("x", "b"), ("y", "kw")]),
    ],
)
def test_what_is_spread_keeps_its_place(text: str, given: list[tuple[object, str]]) -> None:
    assert prepared(text) == given


def test_a_plain_argument_behind_one_that_is_spread_is_not_the_first() -> None:
    text = "from functools import partial\nclass A: pass\nclass B: pass\ndef use(first, second): pass\npartial(use, *(A(),))(B())\n"
    facts = facts_of(main=text)
    use = function(facts, "main", "use")
    held = [{words for value in facts.argument(use, index).values for words in describe(value)} - {"unknown (caller)"} for index in (0, 1)]
    assert held == [{"object of A"}, {"object of B"}]
