"""Arguments behind a tuple that is spread."""

from __future__ import annotations

import pytest
from facts.programs import facts_of, function

from streamlint.facts.graph.facts import describe

OF_ANYBODY = "def build(pair=None):\n    return (0, 'b') if pair is None else pair\n"


def given(text: str, index: int) -> set[str]:
    """What a parameter of the program's function ``use`` may be."""
    facts = facts_of(main=text)
    return {words for value in facts.argument(function(facts, "main", "use"), index).values for words in describe(value)}


@pytest.mark.parametrize("pair", ["(0, 'b')", "build()", "[0, 'b']", "[str(one) for one in (0, 'b')]"])
def test_a_tuple_that_is_written_out_tells_the_places_behind_it(pair: str) -> None:
    text = f"{OF_ANYBODY}class A: pass\nclass B: pass\ndef use(first, second, third, fourth): pass\nuse(*{pair}, A(), B())\n"
    assert "object of A" in given(text, 2)
    assert "object of B" in given(text, 3)
    for index, name in ((0, "A"), (1, "A"), (3, "A"), (0, "B"), (2, "B")):
        assert f"object of {name}" not in given(text, index)


@pytest.mark.parametrize(
    "pair", ["list((0, 1))", "[one for one in (0, 1) if one]", "[one for one in x]", "(0, 1) if x else (0, 1, 2)", "rest()"]
)
def test_what_has_no_known_length_tells_none(pair: str) -> None:
    text = f"class A: pass\ndef use(first, second, third): pass\ndef run(x, rest):\n    use(*({pair}), A())\n"
    assert "object of A" in given(text, 2)
    assert "object of A" in given(text, 1)


@pytest.mark.parametrize("change", ["pair.append(2)", "grow(pair)"])
def test_a_list_that_may_have_grown_tells_none(change: str) -> None:
    text = f"class A: pass\ndef use(first, second, third, fourth): pass\ndef run(grow):\n    pair = [0, 1]\n    {change}\n"
    text += "    use(*pair, A())\n"
    assert "object of A" in given(text, 2)
    assert "object of A" in given(text, 3)


def test_behind_two_that_are_spread_nothing_has_a_place() -> None:
    text = "class A: pass\ndef use(first, second, third): pass\ndef run(x):\n    use(*x, *(1,), A())\n"
    assert "object of A" in given(text, 1)
    assert "object of A" in given(text, 2)


@pytest.mark.parametrize(
    ("made", "words"), [("A()", "object of A"), ("value", "object of A"), ("{}", "container (dict)"), ("int", "int of a library")]
)
def test_what_a_loop_over_pairs_puts_under_their_names_is_found(made: str, words: str) -> None:
    text = (
        "class A: pass\ndef use(table): pass\ndef run(pairs):\n    table = {'a': A()}\n    other = {}\n"
        f"    for name, value in table.items():\n        other[name] = {made}\n    use(other['a'])\n"
    )
    assert words in given(text, 0)
