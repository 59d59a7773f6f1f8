"""What a program was asked across files, so that a cache knows on what the findings of a file rest.

What one file has from another goes through the program, asked for *on behalf of* a file: a module that it imports, the files whose text
holds a word, who imports a name. Python rests on what was asked while it was checked, and on what was asked for each answer that it found
kept (`notes`). C++ and Cython are one block: there questions are kept for the file that asks, and whoever comes to it rests on all of them,
and on the files that answers lead to from there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, ItemsView, Iterable, Iterator, ValuesView
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, overload

from streamlint.interpreter.notes import OWN, aside, begin, note, noted
from streamlint.interpreter.words import Words, folder_word, last_word
from streamlint.record import field, record

if TYPE_CHECKING:
    from streamlint.interpreter.index import File
    from streamlint.interpreter.questions import Question

T = TypeVar("T")
_INLINE = "#inline"  # behind the path of a file, in the key of the C++ in one of its strings
Tie = tuple[tuple[str, ...], tuple[str, ...]]  # some files, and those of them that imports tie to the one that asks
NATIVE = ""  # stands for all C++ and Cython among the paths of answers


class Files(dict[str, "File"]):
    """The files of a program by key, in order. One that waits is lowered when it is first asked for."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: dict[str, Callable[[], None]] = {}
        self._order: dict[str, int] = {}
        self._in_order = True
        self._parts: dict[str, list[str]] = {}  # by what stands before the mark of an inline module: the keys
        self.together: tuple[str, ...] = ()  # files that are, or hold, C++ or Cython

    def expect(self, paths: Iterable[str]) -> None:
        """Tell the order of the files, whenever they come."""
        self._order = {path: place for place, path in enumerate(paths)}

    def wait(self, key: str, load: Callable[[], None]) -> None:
        """Put a file off: ``load`` adds it, with the modules that its strings hold."""
        self._waiting[key] = load

    def holds(self, key: str) -> bool:
        """Whether a file is there, lowered or not."""
        return dict.__contains__(self, key) or key in self._waiting

    def load(self, keys: Iterable[str]) -> None:
        """Lower these files now, if they wait; C++ and Cython as a whole, in order: what one names may be in any other."""
        asked = list(keys)
        if not self._waiting.keys().isdisjoint(self.together) and not set(self.together).isdisjoint(asked):
            asked = [*self.together, *asked]
        for key in asked:
            if (load := self._waiting.pop(key, None)) is not None:
                load()

    def of(self, path: str) -> list[str]:
        """The keys of a file that is lowered, and of the C++ in its strings."""
        parts = self._parts.get(path.partition(_INLINE)[0], ())
        return [key for key in parts if key == path or key.startswith(f"{path}{_INLINE}")]

    def load_all(self) -> None:
        """Lower all that waits."""
        self.load(list(self._waiting))
        self.held()

    def held(self) -> list[File]:
        """What is lowered by now, in order."""
        if self._order and not self._in_order:
            files = sorted(super().items(), key=lambda item: self._order.get(item[0].partition(_INLINE)[0], -1))
            self.clear()
            self.update(files)
            self._in_order = True
        return list(super().values())

    def __setitem__(self, key: str, file: File) -> None:
        self._in_order = False
        if not dict.__contains__(self, key):
            self._parts.setdefault(key.partition(_INLINE)[0], []).append(key)
        super().__setitem__(key, file)

    @overload
    def get(self, key: str, default: None = None, /) -> File | None: ...
    @overload
    def get(self, key: str, default: T, /) -> File | T: ...
    def get(self, key: str, default: object = None, /) -> object:
        if key in self._waiting:
            self.load((key,))
        return super().get(key, default)

    def __getitem__(self, key: str) -> File:
        if key in self._waiting:
            self.load((key,))
        return super().__getitem__(key)

    def __iter__(self) -> Iterator[str]:
        self.load_all()
        return super().__iter__()

    def values(self) -> ValuesView[File]:  # type: ignore[override]
        self.load_all()
        return super().values()

    def items(self) -> ItemsView[str, File]:  # type: ignore[override]
        self.load_all()
        return super().items()


@record(slots=True)
class Seen:
    """What was asked for one file, by itself and by all that it came to."""

    paths: set[str] = field(default_factory=set)  # that asked, or were the answer
    modules: set[str] = field(default_factory=set)
    texts: set[Words] = field(default_factory=set)
    called: set[tuple[str, str, bool]] = field(default_factory=set)
    ties: set[tuple[str, Tie]] = field(default_factory=set)
    asked: set[tuple[str, str, tuple[str, ...], str]] = field(default_factory=set)  # about all exports, with what was said
    native: bool = False

    def take(self, kind: str, asking: str, *what: Any) -> None:
        """A row of notes; which rows of the user's were met is no question about other files."""
        if kind == OWN:
            return
        self.paths.add(asking)
        if kind == "module":
            word, answer = what
            self.modules.add(word)
            if answer is not None:
                self.paths.add(answer)
        elif kind == "folder":
            self.modules.add(what[0])
        elif kind == "text":
            self.texts.add(what[0])
        elif kind == "called":
            self.called.add(what[0])
        elif kind == "lead":
            said, answers = what
            self.asked.add(said)
            self.paths |= answers
        elif kind == "tied":
            self.ties.add((asking, what[0]))
        else:
            self.native = True


@record(slots=True)
class Consulted:
    """The questions, by the path of the file that they were asked for."""

    edges: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # to the paths of the answers
    modules: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # the last words of the imports
    texts: dict[str, set[Words]] = field(default_factory=lambda: defaultdict(set))
    leaves: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # to paths of which no more than the text was asked
    ties: dict[str, set[Tie]] = field(default_factory=lambda: defaultdict(set))
    questions: dict[str, dict[Question, str]] = field(default_factory=lambda: defaultdict(dict))  # about all C++, and what was said
    answering: bool = False  # a question
    touched: set[str] = field(default_factory=set)  # for what files anything was asked since the current root began
    called: set[tuple[str, str, bool]] = field(default_factory=set)  # since then: is this name of this file called

    def begin(self) -> None:
        """A new file is checked."""
        self.touched = set()
        self.called = set()
        begin()

    def module(self, dotted: str, asking: str, answer: str | None) -> None:
        """Note what an import means."""
        word = last_word(dotted, asking)
        note(("module", asking, word, answer))
        self.touched.add(asking)
        self.modules[asking].add(word)
        if answer is not None and answer != asking:
            self.edges[asking].add(answer)

    def folder(self, name: str, asking: str) -> None:
        """Note that more files in folders of a name would be another answer."""
        note(("folder", asking, folder_word(name)))
        self.touched.add(asking)
        self.modules[asking].add(folder_word(name))

    def call(self, name: str, home: File, elsewhere: bool) -> None:
        """Note whether other files import a name of a file."""
        note(("called", home.path, (name, home.key, elsewhere)))
        self.touched.add(home.path)
        self.called.add((name, home.key, elsewhere))

    def tie(self, asking: str, others: tuple[str, ...], answers: tuple[str, ...]) -> None:
        """Note which of some files imports tie to one."""
        note(("tied", asking, (others, answers)))
        self.touched.add(asking)
        self.ties[asking].add((others, answers))

    def lead(self, asked: Question, said: str, asking: str, answers: Iterable[str]) -> None:
        """Note a question of Python about all exports, and the files that it leads to."""
        note(("lead", asking, (*asked, said), frozenset(answers)))
        self.touched.add(asking)
        self.edges[asking].add(NATIVE)

    def native(self, asking: File) -> None:
        """Note that C++ was looked at, by whoever will not do it again with a question."""
        if self.answering and asking.is_cuda:
            return
        note(("native", asking.path))
        self.touched.add(asking.path)
        self.edges[asking.path].add(NATIVE)

    def mention(self, words: Words, asking: str, answers: Iterable[str]) -> None:
        """Note which files' text holds words."""
        note(("text", asking, words))
        self.touched.add(asking)
        self.texts[asking].add(words)
        self.edges[asking].update(answers)

    def text(self, words: Words, asking: str, answers: Iterable[str]) -> None:
        """Note which files' text holds words, where nothing else is asked of them."""
        note(("text", asking, words))
        self.touched.add(asking)
        self.texts[asking].add(words)
        self.leaves[asking].update(answers)

    def link(self, asking: str, answers: Iterable[str]) -> None:
        """Note to which C++ files a C++ file leads."""
        self.edges[asking].update(answers)
        self.edges[asking].discard(asking)

    def question(self, asked: Question, said: str, asking: str) -> None:
        """Note a question about all C++."""
        self.touched.add(asking)
        self.questions[asking][asked] = said

    @contextmanager
    def apart(self) -> Iterator[None]:
        """While a question is answered: what is looked at for it is looked at again with it, and is not what findings rest on."""
        before = self.answering, self.touched, self.called
        self.answering, self.touched, self.called = True, set(), set()
        try:
            with aside():
                yield
        finally:
            self.answering, self.touched, self.called = before

    def within(self, starts: Iterable[str], block: frozenset[str]) -> frozenset[str]:
        """The files of the block that answers lead to from some of them; with `NATIVE` where all of it was looked at."""
        found = set(starts)
        waiting = list(found)
        while waiting:
            fresh = {path for path in self.edges.get(waiting.pop(), ()) if path in block or path == NATIVE} - found
            found |= fresh
            waiting += fresh
        return frozenset(found)

    def seen(self) -> Seen:
        """What was asked since the file at hand was begun."""
        seen = Seen()
        for row in noted().rows():
            seen.take(*row)
        return seen

    def reach(self, starts: Iterable[str]) -> set[str]:
        """The files that may have had a part in what was said of these."""
        found = {*starts, *self.touched}
        waiting = list(found)
        while waiting:
            fresh = self.edges.get(waiting.pop(), set()) - found
            found |= fresh
            waiting += fresh
        return found
