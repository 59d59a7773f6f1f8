"""What tasks of a run gave, kept under all that they were made of: texts, options, and what build files said meanwhile."""

from __future__ import annotations

from collections.abc import Iterable

from streamlint import build_files
from streamlint.cache import records
from streamlint.cache.store import Store, digest
from streamlint.config.options import Options, Source
from streamlint.findings import Part


class Parts:
    """The parts of a store for one kind of run."""

    def __init__(self, store: Store, options: Options) -> None:
        self.store = store
        self._salt = digest(_as_text(options))
        self._texts: dict[str, str] = {}

    def load(self, name: str, sources: Iterable[Source]) -> Part | None:
        """What a task with this name gave for these sources, if build files say what they said."""
        record = self.store.read("parts", self._key(name, sources))
        if not records.PART.fits(record):
            return None
        part = records.PART.to(record)
        try:
            return part if says_the_same(part) else None
        except (AttributeError, KeyError, TypeError, ValueError):  # nobody of ours has written that
            return None

    def keep(self, name: str, sources: Iterable[Source], part: Part) -> None:
        """Write what a task gave, unless it comes from a fault of ours or would not come back as it is."""
        if not part.problems and records.holds(part.findings):
            self.store.write("parts", self._key(name, sources), records.PART.of(part))

    def _key(self, name: str, sources: Iterable[Source]) -> str:
        texts = (part for source in sources for part in (source.path, source.language, self._text(source)))
        return digest("\0".join((self._salt, name, *texts)))

    def _text(self, source: Source) -> str:
        if source.path not in self._texts:
            self._texts[source.path] = digest(source.text)
        return self._texts[source.path]


def says_the_same(part: Part) -> bool:
    """Whether build files say here and now what they said for a part."""
    return all(build_files.plain_answer(build_files.answer(str(word), str(path))) == said for path, word, said in part.built)


def _as_text(options: Options) -> str:
    values = (sorted(options.codes), options.default_stream, options.target_device, options.hidden_sync, options.evidence)
    return repr((*values, options.user_models))
