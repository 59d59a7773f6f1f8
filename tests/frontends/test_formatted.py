"""The code in f-strings has places in the file, under each Python."""

from __future__ import annotations

import documents
import pytest

from streamlint.frontends.python import lower
from streamlint.frontends.python_comments import without_comments
from streamlint.program import Name, walk
from streamlint.support.lines import split_lines

STRINGS = [
    "f'{a}{b.c(d)!r:>{e.f}.{g}}{{{h}}}'",
    "f'{a=}{b = !s}{c=:{d}}{e!=f}{g<=h}{(lambda i: i)}'",
    "f'{j[\"k\"]}' rf'\\{l}' F\"{m['n']}\" f'\\N{BULLET}{o}\\t{p}'",
    "(f'é{é.ü(a)}'  # {no}\n  'ö' f'''ä{\n  ü}''')",
    "f'''\n  {a +\n   b.c}\n{d(\n e)}'''",
    "f'{a, b}{ c, d }{*e,}{(f, g)}'",
    "f'{f\"{a.b}{c}\"}{d}' + f'{ {e: f}[g] }'",
    "x[f'{a:{b}}'] = f'{yield_}', f'{await_(a)[1:2]}' if f'{c}' else d",
    'f"{a["b"]}{", ".join(c)!r:>{d}}" f"{e(f"{g}")}"',
]


def misplaced(text: str) -> list[tuple[str, str]]:
    """The names of a text that do not stand where they are said to stand, with what stands there."""
    lines = split_lines(text)
    names = [node for statement in lower("sample.py", text).body for node in walk(statement) if isinstance(node, Name)]
    found = [(node.id, lines[node.at[0] - 1][node.at[1] - 1 : node.at[3] - 1]) for node in names]
    return [(name, written) for name, written in found if name != written]


@pytest.mark.parametrize("text", STRINGS)
def test_names_stand_where_they_are_written(text: str) -> None:
    assert misplaced(f"{text}\n") == []


def test_the_rules_documents() -> None:
    texts = [
        file.text for one in documents.DOCUMENTS for section in documents.read(one) for file in section.files if file.language == "python"
    ]
    formatted = [without_comments(text) for text in texts if "f'" in text or 'f"' in text]
    assert len(formatted) > 30
    made = ("NamedTuple", "Any")  # what is made of ``namedtuple("A", "a b")`` stands where that does
    assert [found for text in formatted for found in misplaced(text) if found[0] not in made] == []
