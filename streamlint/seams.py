"""Files that name no CUDA and yet belong to a run: bindings and Cython beside CUDA files, and the headers that they include."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from streamlint.files import Found
from streamlint.options import Options, Source
from streamlint.reading import Unreadable, decode, read_bytes

_INCLUDE = re.compile(r"(?:#[ \t]*include[ \t]*|\bfrom\s*|^include\s+)[\"'<]([^\"'>\n]+)[\"'>]", re.MULTILINE)
_MOST_HEADERS = 400  # for one run


@dataclass(slots=True)
class Seams:
    """``joining`` are files that call others' functions from Python; ``skipped`` what was passed over, by its last name."""

    joining: dict[Options, list[Source]] = field(default_factory=dict)
    skipped: dict[str, list[Found]] = field(default_factory=lambda: defaultdict(list))
    taken: set[str] = field(default_factory=set)

    def skip(self, file: Found) -> None:
        """A file that nothing in it asks for: it may be included by one that counts."""
        if file.language != "python":
            self.skipped[file.path.replace("\\", "/").rpartition("/")[2]].append(file)

    def join(self, options: Options, source: Source) -> None:
        self.joining.setdefault(options, []).append(source)

    def completed(self, options: Options, sources: list[Source], is_seam: Callable[[Source], bool]) -> Iterator[Source]:
        """What joins these sources: nothing where none of them is C++ or Cython."""
        if all(source.language == "python" for source in sources):
            return
        joining = self.joining.get(options, [])
        yield from joining
        waiting = [*joining, *(source for source in sources if is_seam(source))]
        while waiting and len(self.taken) < _MOST_HEADERS:
            for found in self._included(waiting.pop()):
                yield found
                waiting.append(found)

    def _included(self, source: Source) -> Iterator[Source]:
        for name in _INCLUDE.findall(source.text):
            for file in self._named(name):
                self.taken.add(file.path)
                try:
                    text, _ = decode(read_bytes(file.path), file.language)
                except Unreadable:
                    continue
                yield Source(file.path, text, file.language)

    def _named(self, include: str) -> Iterable[Found]:
        tail = include.replace("\\", "/").lstrip("./")
        held = self.skipped.get(tail.rpartition("/")[2], ())
        return [f for f in held if f.path not in self.taken and f"/{f.path}".replace("\\", "/").endswith(f"/{tail}")]
