"""The reference of model rows: keys, places and effects, from the table that rows are validated by, with a shipped row of each effect."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from streamlint.models.effects import GROUPS
from streamlint.models.keys import HEAD, ROWS, VALUES, Effect, Key
from streamlint.models.listing import Entry, shipped
from streamlint.models.traits import MEANINGS
from streamlint.models.user_rows import libraries
from streamlint.models.vocabulary import DEFAULTS, PLACES, VERSION

TITLES = {
    "call": "Calls",
    "attribute": "Attributes",
    "type": "Types",
    "constant": "Constants",
    "step": "Training steps",
    "round": "Rounds",
    "trait": "Traits",
}
HEADER = """# Model reference

A *row* says what a call of a library does. [Your own functions](models.md) shows how to write rows for a package of yours, and
[Adding a model](adding-a-model.md) how to add a library to streamlint itself. This page lists every key of the vocabulary. Any other key or
word is an error when streamlint reads the configuration; it names the line and the nearest right word. Editors check the rows with
[configuration.json](schemas/configuration.json).

`streamlint models` lists all rows, `streamlint models torch.Tensor.copy_` explains one of them in the words of this page.
"""
KNOWN = ("torch", "cupy", "cuda-runtime")  # the libraries that readers know best: examples are theirs where they have one


def page() -> str:
    """The whole page."""
    parts = [HEADER.rstrip(), _tables(), _places(), _rows(), "## Effects", _index()]
    for title, effects in GROUPS.items():
        parts.append(f"## {title}")
        parts += [_effect(effect) for effect in effects]
    return "\n\n".join(parts) + "\n"


def _tables() -> str:
    return (
        "## The table\n\nRows are in a table `[[tool.streamlint.models]]` of `pyproject.toml` (`[[models]]` in `streamlint.toml`), or in a"
        f" file of `streamlint/models/`. The table has these keys; this is version {VERSION} of the vocabulary.\n\n{_keys(HEAD)}\n\n"
        f"The libraries are {_listed(libraries())}. `python` is right for a package that uses the current stream of none of the others."
    )


def _places() -> str:
    places = "\n".join(f"| `{place}` | {meaning} |" for place, meaning in PLACES.items())
    defaults = "\n".join(f"| `={word}` | {meaning} |" for word, meaning in DEFAULTS.items())
    return (
        f"## Places\n\nA *place* says where in a call a value is.\n\n| place | the value |\n|---|---|\n{places}\n\n"
        "A word behind the place says what holds when the argument is left out, as in `2:non_blocking=false`. It is a whole number or one"
        " of these:\n\n"
        f"| default | the value |\n|---|---|\n{defaults}\n\n"
        "A *flag* key takes `true`, `false`, or the place of a flag. `!` before the place means the opposite: `blocking = "
        '"!1:non_blocking=false"`. In a list of places, for overloads, the first that holds true or false decides, else the last.'
    )


def _rows() -> str:
    parts = [
        "## Rows",
        "\n".join(f"* [`{kind}`](#{TITLES[kind].lower().replace(' ', '-')}): {meaning}" for kind, (meaning, _) in ROWS.items()),
    ]
    for kind, (meaning, keys) in ROWS.items():
        parts += [f"### {TITLES[kind]}", meaning, _keys(keys)]
        if kind == "constant":
            parts.append("| value | meaning |\n|---|---|\n" + "\n".join(f"| `{word}` | {text} |" for word, text in VALUES.items()))
        if kind == "trait":
            parts.append("| trait | they |\n|---|---|\n" + "\n".join(f"| `{word}` | {text} |" for word, text in MEANINGS.items()))
        if (example := _example(entry for entry in shipped() if entry.kind == kind)) is not None and kind not in ("call", "attribute"):
            parts.append(_shown(example))
    return "\n\n".join(parts)


def _index() -> str:
    head = (
        "The effect of a call, or of reading an attribute, decides the other keys of its row.\n\n"
        "| effect | the call | group |\n|---|---|---|\n"
    )
    rows = [(effect.name, effect.meaning, title) for title, effects in GROUPS.items() for effect in effects]
    return head + "\n".join(f"| [`{name}`](#{name}) | {_cell(meaning)} | {title} |" for name, meaning, title in sorted(rows))


def _effect(effect: Effect) -> str:
    parts = [f"### {effect.name}", f"The call {effect.meaning}."]
    parts.append(_keys(effect.keys) if effect.keys else "It takes no other keys.")
    if (example := _example(entry for entry in shipped() if entry.table.get("effect") == effect.name)) is not None:
        parts.append(_shown(example))
    return "\n\n".join(parts)


def _keys(keys: Iterable[Key]) -> str:
    rows = [f"| `{key.name}`{' (required)' if key.needed else ''} | {_accepted(key)} | {_cell(key.meaning)} |" for key in keys]
    return "| key | accepts | meaning |\n|---|---|---|\n" + "\n".join(rows)


# What the table says of each kind of value; the section on places has the rest.
ACCEPTED: Mapping[str, str] = {
    "bool": "`true` or `false`",
    "place": "a [place](#places)",
    "places": "a [place](#places), or a list of them",
    "cases": "a [place](#places) with the value that counts behind `=`, or a list of them",
    "switch": "a flag: `true`, `false`, or a [place](#places)",
    "text": "a text",
    "texts": "a text, or a list of them",
    "number": "a number",
    "version": f"`{VERSION}`",
    "names": "a name, or a list of them; `*` matches any characters",
    "type": "a type that has a row",
    "module": "a module or type with rows",
    "library": "a [library](#the-table)",
}


def _accepted(key: Key) -> str:
    if key.kind == "word" and not key.words:
        return "an [effect](#effects)"
    if key.kind == "words":
        return f"one of the {len(key.words)} [words](#traits) below, or a list of them"
    if key.kind == "word":
        return _listed(key.words)
    return f"{_listed(key.words)}, or a [place](#places)" if key.kind == "word or place" else ACCEPTED[key.kind]


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _example(entries: Iterable[Entry]) -> Entry | None:
    """The row that shows most of the keys, and of these the one with the fewest names."""
    return max(entries, key=lambda entry: (entry.library in KNOWN, len(entry.table), -len(entry.names)), default=None)


def _shown(entry: Entry) -> str:
    table = {**entry.table, "names": entry.names[0]}
    lines = [f"[[{entry.kind}]]", *(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in table.items())]
    return f"A row of {entry.library}:\n\n```toml\n" + "\n".join(lines) + "\n```"
