"""Which files without a word of CUDA belong to a run: those whose code calls, over any number of files, a function that has one, and those
that such code calls in turn, also through a table that their definitions are entered in, or by a dotted path in a text.

A file's outline is what its top-level statements define, import and name. It is read from the text, without a parser: it says which
files are worth parsing, and nothing about what they mean.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from streamlint.facts.code.modules import Resolver, late_imports
from streamlint.support.memo import memoized

_BEGIN = re.compile(r"^(?=[^\s#)\]}])", re.MULTILINE)
_DEFINED = re.compile(r"(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)|(\w+(?:[ \t]*,[ \t]*\w+)*)[ \t]*(?::[^=\n]+)?=(?!=)")
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
# Of a text behind the end of a line, which begins each line: a search runs from one to the next.
_IMPORT = re.compile(r"\n[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n#]+)|import[ \t]+([\w., \t]+))")
_TAKEN = re.compile(r"(\w+|\*)(?:[ \t]+as[ \t]+(\w+))?")
_MODULE = re.compile(r"([\w.]+)(?:[ \t]+as[ \t]+(\w+))?")
_PATH = re.compile(r"[\"']([^\W\d]\w*(?:\.[^\W\d]\w*)+)[\"']")
_BY_NAME = "getattr"
"""What takes a definition of a module by a name that no text shows."""


class Block(NamedTuple):
    """A top-level statement: the name that it defines (or ""), the identifiers in it, and whether it says a word of CUDA itself; those of
    its decorators, and the dotted paths in its texts."""

    name: str
    identifiers: frozenset[str]
    works: bool
    decorators: frozenset[str] = frozenset()
    paths: tuple[str, ...] = ()


class Outline(NamedTuple):
    """A file's blocks, and what its names mean that it imports: by the local name, a module and a name of it (None: the module itself)."""

    blocks: tuple[Block, ...]
    imported: Mapping[str, tuple[str, str | None]]
    stars: tuple[str, ...]


def outline(text: str, works: Callable[[bytes], bool]) -> Outline:
    """The outline of a Python file."""
    imported, stars, libraries = _imported(text, works)
    starts = [match.start() for match in _BEGIN.finditer(text)]
    blocks: list[Block] = []
    decorators = ""
    for begin, end in zip(starts, [*starts[1:], len(text)], strict=False):
        body = decorators + text[begin:end]
        decorators = body if text[begin] == "@" else ""
        if decorators or text.startswith(("import ", "from "), begin):
            continue
        defined = _DEFINED.match(text, begin)
        names = _IDENTIFIER.findall(defined[1] or defined[2]) if defined is not None else []
        identifiers = frozenset(_IDENTIFIER.findall(body))
        at_work = not libraries.isdisjoint(identifiers) or works(body.encode("utf-8", "replace"))
        above = frozenset(_IDENTIFIER.findall(body, 0, len(body) - (end - begin))) if text[begin] != body[0] else frozenset[str]()
        blocks += [Block(name, identifiers, at_work, above, tuple(_PATH.findall(body))) for name in names or [""]]
    return Outline(tuple(blocks), imported, tuple(stars))


def _imported(text: str, works: Callable[[bytes], bool]) -> tuple[dict[str, tuple[str, str | None]], list[str], set[str]]:
    """What a text imports by local name, the modules of which it takes all, and the local names whose import says a word of CUDA."""
    imported: dict[str, tuple[str, str | None]] = {}
    stars: list[str] = []
    libraries: set[str] = set()
    for module, members, plain in imports_in(text):
        for name, alias in _TAKEN.findall(members):
            if name == "*":
                stars.append(module)
                continue
            imported[alias or name] = (module, name)
            if works(f"{module}.{name} ".encode("utf-8", "replace")):
                libraries.add(alias or name)
        for name, alias in _MODULE.findall(plain):
            imported[alias or name.partition(".")[0]] = (name if alias else name.partition(".")[0], None)
            if works(f"import {name} ".encode("utf-8", "replace")):
                libraries.add(alias or name.partition(".")[0])
    return imported, stars, libraries


def imports_in(text: str) -> list[tuple[str, str, str]]:
    """The imports of a text, by statement or by `import_module`: the module and its members, or the modules of a plain one."""
    late = [(".", module.lstrip("."), "") if module.startswith(".") else ("", "", module) for module in late_imports(text)]
    return [*_IMPORT.findall(f"\n{text}"), *late]


class Reach:
    """The names by which work with CUDA is reached, file by file: the least set that holds what says a word of it and what names it.

    ``called`` are the names that such code names in turn: their arguments may be in flight.
    """

    def __init__(self, outlines: Mapping[str, Outline]) -> None:
        self._outlines = outlines
        self._resolver = Resolver(outlines.keys())
        self.names: dict[str, set[str]] = {path: set() for path in outlines}
        self._importers: dict[str, set[str]] = defaultdict(set)
        self._meant: dict[str, list[tuple[str, str, str | None]]] = {}
        self._taken: dict[str, dict[str, list[tuple[str, str | None]]]] = {}  # the same by local name
        for path, found in outlines.items():
            self._meant[path] = list(self._resolved(path, found))
            self._taken[path] = defaultdict(list)
            for local, target, name in self._meant[path]:
                self._importers[target].add(path)
                self._taken[path][local].append((target, name))
        self._defined = {path: _by_name(found.blocks) for path, found in outlines.items()}
        self._solve()
        self.called: dict[str, set[str]] = {path: set() for path in outlines}
        self._follow()

    def _follow(self) -> None:
        """Find `called`: what is named in blocks that work or lead to work, and what is named in what defines that."""
        waiting = [
            (path, block)
            for path, found in self._outlines.items()
            for block in found.blocks
            if block.works or block.name in self.names[path]
        ]
        modules = {
            path: [(local, target) for local, target, name in meant if local == "*" or name is None] for path, meant in self._meant.items()
        }
        entered = self._entered()
        while waiting:
            path, block = waiting.pop()
            waiting += self._called(self._named(path, block, modules[path]), entered)

    def _named(self, path: str, block: Block, modules: list[tuple[str, str]]) -> set[tuple[str, str]]:
        """What a block names for the first time: of its own file, of modules that it imports, by dotted paths."""
        fresh = {(path, name) for name in block.identifiers & self._had(path) - self.called[path]}
        for local, target in modules:
            if local in block.identifiers and _BY_NAME in block.identifiers:
                fresh |= {(target, one) for one in self._had(target) - self.called[target]}
            elif local == "*" or local in block.identifiers:
                fresh |= {(target, one) for one in block.identifiers & self._had(target) - self.called[target]}
        for dotted in block.paths:
            module, _, name = dotted.rpartition(".")
            home = self._resolver.find(module, path)
            if home is not None and name in self._had(home) - self.called[home]:
                fresh.add((home, name))
        return fresh

    def _entered(self) -> dict[tuple[str, str], list[tuple[str, str]]]:
        """By file and name of a table, and of what enters others in one: the definitions that a decorator may enter there."""
        found: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
        for path, outlined in self._outlines.items():
            for block in outlined.blocks:
                for local in block.decorators & self._had(path) if block.name else ():
                    for home, name in self._origins(path, local):
                        held = {(home, name)}
                        for one in self._defined[home].get(name, ()):
                            held |= {place for inner in one.identifiers & self._had(home) for place in self._origins(home, inner)}
                        for place in held - {(path, block.name)}:
                            found[place].append((path, block.name))
        return found

    def _origins(self, path: str, local: str) -> set[tuple[str, str]]:
        """The files that define what a file knows by a name, each with its name there."""
        waiting, seen = [(path, local)], {(path, local)}
        while waiting:
            home, name = waiting.pop()
            taken = self._taken[home]
            new = {(target, inner or name) for each in (name, "*") if each in taken for target, inner in taken[each]} - seen
            seen |= new
            waiting += new
        return {(home, name) for home, name in seen if name in self._defined[home]}

    @memoized
    def _had(self, path: str) -> frozenset[str]:
        """The names that a file defines or imports, also those of files of which it takes all."""
        paths = {path: None}
        waiting = [path]
        while waiting:
            new = [target for target, _ in self._taken[waiting.pop()].get("*", ()) if target not in paths]
            paths.update(dict.fromkeys(new))
            waiting += new
        return frozenset(name for each in paths for name in (*self._defined[each], *self._taken[each]) if name != "*")

    def _called(self, fresh: set[tuple[str, str]], entered: Mapping[tuple[str, str], list[tuple[str, str]]]) -> Iterator[tuple[str, Block]]:
        """Note names of files, if they have them; give the blocks that these name, wherever their files have them from."""
        while fresh:
            path, name = fresh.pop()
            if name in self.called[path]:
                continue
            blocks = self._defined[path].get(name)
            taken = self._taken[path]
            passed_on = [(target, inner or name) for target, inner in taken.get(name, ())]
            passed_on += [(target, name) for target, _ in taken.get("*", ()) if name in self._had(target)]
            if blocks or passed_on:
                self.called[path].add(name)
                yield from ((path, block) for block in blocks or ())
                fresh.update(passed_on)
                fresh.update(entered.get((path, name), ()))

    def _resolved(self, path: str, found: Outline) -> Iterator[tuple[str, str, str | None]]:
        """By local name: the file that it comes from, and the name there; None for a module; ``*`` for all names of a file."""
        for local, (module, name) in found.imported.items():
            dotted = None if name is None else f"{module}{'' if module.endswith('.') else '.'}{name}"
            inner = self._resolver.find(dotted, path) if dotted is not None else None
            target = inner or self._resolver.find(module, path)
            if target is not None and target != path:
                yield local, target, None if inner is not None else name
        for module in found.stars:
            if (target := self._resolver.find(module, path)) is not None and target != path:
                yield "*", target, None

    def _solve(self) -> None:
        waiting = dict.fromkeys(self._outlines)
        while waiting:
            path = next(iter(waiting))
            del waiting[path]
            if self._grow(path):
                waiting.update(dict.fromkeys(self._importers[path]))

    def _grow(self, path: str) -> bool:
        """Add the names of one file that lead to work; whether there were any more."""
        names = self.names[path]
        before = len(names)
        modules: dict[str, set[str]] = {}
        for local, target, name in self._meant[path]:
            if local == "*":
                names |= self.names[target]
            elif name is None:
                modules[local] = self.names[target]
            elif name in self.names[target]:
                names.add(local)
        blocks = [block for block in self._outlines[path].blocks if not block.name or block.name not in names]
        grown = True
        while grown:
            grown = False
            for block in blocks:
                if block.name not in names and self._leads(block, names, modules):
                    names.add(block.name)
                    grown = True
        return len(names) > before

    @staticmethod
    def _leads(block: Block, names: set[str], modules: Mapping[str, set[str]]) -> bool:
        if block.works or not names.isdisjoint(block.identifiers):
            return True
        return any(local in block.identifiers and not reached.isdisjoint(block.identifiers) for local, reached in modules.items())


def _by_name(blocks: tuple[Block, ...]) -> dict[str, list[Block]]:
    found: dict[str, list[Block]] = defaultdict(list)
    for block in blocks:
        if block.name:
            found[block.name].append(block)
    return dict(found)
