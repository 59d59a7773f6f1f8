"""Questions about files that their names and texts answer, without lowering them."""

from __future__ import annotations

from collections.abc import Mapping

Words = tuple[tuple[str, ...], tuple[str, ...]]  # one of these, and all of these


def mentioning(texts: Mapping[str, str], words: Words) -> list[str]:
    """The paths of the texts that hold one of the first words (any text, if there are none) and all of the second."""
    one, every = words
    return [path for path, text in texts.items() if (not one or any(word in text for word in one)) and all(word in text for word in every)]


def last_word(dotted: str, asking: str) -> str:
    """The name of the file, or of the folder of the ``__init__``, that an import may mean."""
    tail = dotted.rpartition(".")[2]
    if tail:
        return tail
    folders = asking.replace("\\", "/").split("/")[:-1]
    return folders[-len(dotted)] if len(dotted) <= len(folders) else ""


def word_of(path: str) -> str:
    """The word by which imports may mean a file: its stem, or its folder's name."""
    *folders, name = path.replace("\\", "/").split("/")
    stem = name.rpartition(".")[0]
    return (folders[-1] if folders else "") if stem == "__init__" else stem
