"""Comments of Python are cut off where they surely are comments, and nothing else is."""

from __future__ import annotations

import pytest

from streamlint.frontends.python_comments import without_comments


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("x = 1  # one\n# all\ny = 2\n", "x = 1\n\ny = 2\n"),
        ('x = "# no"  # yes\n', 'x = "# no"\n'),
        (r'x = "\"# no"  # yes' + "\n", r'x = "\"# no"' + "\n"),
        ("x = '''a\n# no \\''' # no\n'''  # yes\n", "x = '''a\n# no \\''' # no\n'''\n"),
        ('x = """a "" # no\n""" + \'\'  # yes\n', 'x = """a "" # no\n""" + \'\'\n'),
        ('x = "a\\\n# no"  # yes\n', 'x = "a\\\n# no"\n'),
        ("x = 'open  # yes\ny = 1\n", "x = 'open\ny = 1\n"),
        ("x = {'a': 1}  # yes\n", "x = {'a': 1}\n"),
        ("x = 1  # streamlint: ignore[SL001]\n", "x = 1\n"),
        ("x = 1  # streamlint: pinned\ny = 2  # yes\n", "x = 1  # streamlint: pinned\ny = 2\n"),
    ],
)
def test_what_is_cut_off(text: str, bare: str) -> None:
    assert without_comments(text) == bare


@pytest.mark.parametrize("string", ['f"{held["a"]} # no"', "F'{held['a']}'", 'rf"{a}{held["a"]}"', "f'x{[g('#')]}'"])
def test_a_string_that_may_hold_its_own_quote_leaves_all_as_it_is(string: str) -> None:
    text = f"x = 1  # stays\ny = {{'a': {string}}}  # stays"
    assert without_comments(text) == text


def test_long_strings_cost_no_more_than_their_length() -> None:
    text = 'x = """' + 'a "" \\" ' * 20_000 + '"""  # yes\n'
    assert without_comments(text) == text.removesuffix("  # yes\n") + "\n"
    never = 'x = """' + 'a "" \\" # ' * 20_000
    assert without_comments(never).startswith('x = """a ')


def test_long_lines_cost_no_more_than_their_length() -> None:
    text = "x = [" + '{"a": 1}, ' * 200_000 + "]  # yes\n"
    assert without_comments(text) == text.removesuffix("  # yes\n") + "\n"
