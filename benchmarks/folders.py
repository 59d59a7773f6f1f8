"""The folders that a measurement is asked for: packages of the corpus, or any others."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from corpus import CorpusError, choose, read_pins


def folders(names: list[str], corpus: Path) -> Iterator[Path]:
    """The folders that are named, or those of the packages of the corpus."""
    known = {pin.name for pin in read_pins()}
    for name in names:
        if name in known:
            yield from (corpus / pin.tree for pin in choose(read_pins(), [name]))
        elif Path(name).is_dir():
            yield Path(name)
        else:
            raise CorpusError(f"{name} is neither a package of the corpus nor a folder")


def report(names: list[str], corpus: Path, lines: Callable[[Path], Iterable[str]]) -> int:
    """Print what is to be told of each folder, as soon as it is known; the exit status."""
    try:
        for folder in folders(names, corpus):
            print("\n".join(lines(folder)), flush=True)
    except CorpusError as error:
        print(error, file=sys.stderr)
        return 2
    return 0
