"""What one file gave, and all that this rests on: the record of a unit, and whether it still holds.

A unit is a source with the C++ that its strings hold. What it rests on was noted while it was checked (`interpreter.consulted`): the text
of the files that answers led to, the words of imports that a new file could answer otherwise, the files that mention words, who imports a
name, what build files say. All C++ and Cython of a run is one block, of which one hash stands in each unit that has to do with it: as long
as that is the same, nothing else is asked. Where it is not, C++, and Python that comes to C++, hold if the files of the block that they
came to are made of the same and what they asked of all others is answered alike; Cython does not. Other Python rests on the block's
names alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from streamlint import build
from streamlint.cache import records
from streamlint.cache.shapes import PART, UNIT, fits, is_interface
from streamlint.cache.store import Store, digest
from streamlint.findings import Fix, Problem
from streamlint.interpreter.consulted import NATIVE
from streamlint.options import Options, Source
from streamlint.record import field, record

if TYPE_CHECKING:
    from streamlint.analysis import Part
    from streamlint.interpreter.index import Program
    from streamlint.interpreter.words import Imports, Words

BUILT_OF_NATIVES = ("per_thread_default_stream", "per_thread_place", "build_root", "language_of_source", "sources_built_with")


@record(slots=True)
class Unit:
    """What is kept of a source. ``outline``: by the key of each module of it, what it imports."""

    outline: dict[str, list[str]] = field(default_factory=dict)  # empty: it does not parse
    problems: list[Problem] = field(default_factory=list)  # of reading it
    native: str = ""  # the hash of the C++ and Cython of the run
    rests: dict[str, Any] = field(default_factory=dict)
    parts: list[Part] | None = None
    fixes: dict[str, Fix | None] = field(default_factory=dict)  # that were tried, by the names of what they mend
    tried: list[dict[str, Any]] = field(default_factory=list)  # what each trial rests on


@record(slots=True)
class View:
    """The sources of a run, as far as units ask for them."""

    hashes: dict[str, str]
    outlines: dict[str, frozenset[str]]
    texts: Mapping[str, str]
    native: str
    interface: str  # a hash of what Python may see of the block
    paths: list[str]  # of all that parses
    cpp: frozenset[str] = frozenset()  # the C++ among them
    block: frozenset[str] = frozenset()  # the C++ and the Cython
    trees: Callable[[str], str] | None = None  # what a C++ file is made of
    answer: Callable[[str, str, tuple[str, ...]], str | None] = lambda name, key, words: None  # to a question about all C++
    _importers: dict[str, set[str]] | None = None
    _mentioned: dict[str, list[str]] = field(default_factory=dict)
    _added: dict[str, frozenset[str] | None] = field(default_factory=dict)
    _imports: Imports | None = None

    def tied(self, path: str, others: Iterable[str]) -> list[str]:
        """Those of some files that imports tie to one."""
        from streamlint.interpreter.words import MOST_TIED, imports_among, lasts_of, module_path, tied

        if self._imports is None:
            there, lasts = frozenset(self.paths), {last for each in self.paths for last in lasts_of(each)}
            resolve = lambda dotted, asking: module_path(dotted, asking, there.__contains__, lasts)  # noqa: E731
            self._imports = imports_among(list(self.texts)[:MOST_TIED], lambda each: self.outlines.get(each, ()), resolve)
        found = tied(path, self._imports)
        return [other for other in others if other in found]

    def imported_elsewhere(self, name: str, key: str) -> bool:
        """Whether another module than this imports a name."""
        if self._importers is None:
            from streamlint.interpreter.words import importers

            self._importers = importers(self.outlines.items())
        return not self._importers.get(name, set()) <= {key}

    def mentioning(self, one: Sequence[str], every: Sequence[str]) -> list[str]:
        """The paths whose text holds words."""
        from streamlint.interpreter.words import mentioning

        asked = "\0".join((*one, "", *every))
        if asked not in self._mentioned:
            self._mentioned[asked] = sorted(mentioning(self.texts, (tuple(one), tuple(every))))
        return self._mentioned[asked]

    def added(self, store: Store, name: str) -> frozenset[str] | None:
        """The words of the files that came since a list of paths was written; None if that list is gone."""
        from streamlint.interpreter.words import words_of

        if name not in self._added:
            held = store.read("paths", name)
            self._added[name] = None if held is None else frozenset[str]().union(*(words_of(path) for path in set(self.paths) - set(held)))
        return self._added[name]


class Units:
    """The units of a store for one kind of run."""

    def __init__(self, store: Store, options: Options) -> None:
        self.store, self.options = store, options
        self._salt = digest(_told(options))

    def load(self, source: Source, content: str) -> Unit | None:
        """What is kept of a source with this text."""
        record = self.store.read("units", self._key(source, content))
        return _to_unit(record) if fits(record, UNIT) else None

    def keep(self, source: Source, content: str, unit: Unit) -> None:
        """Write a unit, unless it comes from a fault of ours or would not come back as it is."""
        parts = unit.parts or []
        lost = any(part.coverage.failures or part.problems for part in parts)
        lost = lost or any(problem.message.startswith("left out") for problem in unit.problems)
        if lost or not all(records.holds(part.findings) for part in parts):
            return
        self.store.write("units", self._key(source, content), _of_unit(unit, self.options.coverage))

    def keep_paths(self, paths: list[str]) -> str:
        """Write the list of the files of a run, by its hash."""
        name = digest("\0".join(sorted(paths)))
        if self.store.read("paths", name) is None:
            self.store.write("paths", name, sorted(paths))
        return name

    def interface(self, native: str) -> dict[str, Any] | None:
        """What Python may see of C++ with this hash."""
        record = self.store.read("interfaces", digest(f"{self._salt}\0{native}"))
        return record if is_interface(record) else None

    def keep_interface(self, native: str, record: dict[str, Any]) -> None:
        """Write what Python may see of C++ with this hash."""
        self.store.write("interfaces", digest(f"{self._salt}\0{native}"), record)

    def load_whole(self, key: str) -> Part | None:
        """What files with these texts gave as a whole."""
        record = self.store.read("wholes", digest(f"{self._salt}\0{key}"))
        return records.to_part(record) if fits(record, PART) else None

    def keep_whole(self, key: str, part: Part) -> None:
        """Write what files with these texts gave as a whole."""
        if records.holds(part.findings):
            self.store.write("wholes", digest(f"{self._salt}\0{key}"), records.of_part(part, coverage=False))

    def _key(self, source: Source, content: str) -> str:
        return digest(f"{self._salt}\0{source.path}\0{source.language}\0{content}")


def holds(unit: Unit, view: View, store: Store) -> bool:
    """Whether all that a unit rests on is as it was."""
    return unit.parts is not None and is_as_it_was(unit.rests, view, store)


def is_as_it_was(rests: dict[str, Any], view: View, store: Store) -> bool:
    """Whether all that something rests on is as it was."""
    if not (rests.get("native") in (view.native, view.interface) or _answered_alike(rests, view)):
        return False
    if any(view.hashes.get(path) != content for path, content in rests["files"].items()):
        return False
    added = view.added(store, rests["paths"])
    if added is None or not added.isdisjoint(rests["modules"]):
        return False
    return (
        all(view.imported_elsewhere(name, key) == elsewhere for name, key, elsewhere in rests["called"])
        and all(view.mentioning(one, every) == paths for one, every, paths in rests["texts"])
        and all(view.tied(path, others) == answers for path, others, answers in rests["ties"])
        and all(build.answer(word, path) == said for path, word, said in rests["built"])
    )


def _answered_alike(rests: dict[str, Any], view: View) -> bool:
    """Whether the files of the block that a unit has to do with are as they were, and all others say of it what they said."""
    if "asked" not in rests or view.trees is None or not view.block.issuperset(rests["trees"]):
        return False
    if "interface" in rests and rests["interface"] != view.interface:  # of Python
        return False
    return all(view.trees(path) == made for path, made in rests["trees"].items()) and all(
        view.answer(name, key, tuple(words)) == said for name, key, words, said in rests["asked"]
    )


def rests_on(program: Program, path: str, natives: Iterable[str], view: View, paths: str) -> dict[str, Any]:
    """What the findings of a file that was just checked rest on."""
    block = frozenset(natives)
    if path in block:
        return _rests_of_native(program, path, block, view, paths)
    seen, noted = program.consulted.seen(), program.consulted
    inside = seen.native or bool(seen.asked) or not block.isdisjoint(seen.paths)
    behind = noted.within(block & seen.paths, block)  # of the C++ what it came to; what is asked there is asked for all who come
    alone = inside and not seen.native and view.trees is not None and NATIVE not in behind
    more = {"interface": view.interface, **_alone(program, behind, view, seen.asked)} if alone else {}
    behind = behind if alone or not inside else block
    words = seen.texts.union(*(noted.texts.get(member, ()) for member in behind))
    texts = _texts(words, view)
    files = seen.paths.union((path,), *((*noted.edges.get(member, ()), *noted.leaves.get(member, ())) for member in behind)) - {NATIVE}
    files |= {found for _, _, found_in in texts for found in found_in}
    return {
        **more,
        "native": view.native if inside else view.interface,
        "files": {member: view.hashes[member] for member in sorted(files - block)},
        "paths": paths,
        "modules": sorted(seen.modules.union(*(noted.modules.get(member, ()) for member in behind))),
        "texts": texts,
        "called": sorted(map(list, seen.called)),
        "ties": sorted([asking, list(others), list(answers)] for asking, (others, answers) in seen.ties),
        "built": _built(files | behind, block, behind if alone else frozenset()),
    }


def trial_rests_on(program: Program, path: str, natives: Iterable[str], view: View, paths: str) -> dict[str, Any]:
    """What was found of a file with another text rests on, as the files stand around it and not as they were for the trial."""
    rests = rests_on(program, path, natives, view, paths)
    if "asked" in rests:
        rests["asked"] = [[name, key, words, view.answer(name, key, tuple(words))] for name, key, words, _ in rests["asked"]]
    rests["called"] = [[name, key, view.imported_elsewhere(name, key)] for name, key, _ in rests["called"]]
    rests["ties"] = [[asking, others, view.tied(asking, others)] for asking, others, _ in rests["ties"]]
    return rests


def _rests_of_native(program: Program, path: str, block: frozenset[str], view: View, paths: str) -> dict[str, Any]:
    """The same for C++, for Cython, and for Python that holds C++."""
    noted = program.consulted
    reach = noted.reach((path,))
    alone = path in view.cpp and view.trees is not None and NATIVE not in reach and view.cpp.issuperset(reach & block)
    more: dict[str, Any] = {}
    if alone:
        more = _alone(program, reach & block, view, ())
    else:
        reach = noted.reach((path, *block)) - {NATIVE}
    leaves = {leaf for member in reach for leaf in noted.leaves.get(member, ())}
    words = {words for member in reach for words in noted.texts.get(member, ())}
    texts = _texts(words, view)
    asked = {path, *noted.touched, *(found for _, _, found_in in texts for found in found_in)} | block
    return {
        **more,
        "native": view.native,
        "files": {member: view.hashes[member] for member in sorted((reach | leaves) - block | {path})},
        "paths": paths,
        "modules": sorted({word for member in reach for word in noted.modules.get(member, ())}),
        "texts": texts,
        "called": sorted(map(list, noted.called)),
        "ties": sorted([member, list(some), list(answers)] for member in reach for some, answers in noted.ties.get(member, ())),
        "built": _built(asked, block, frozenset(reach if alone else ())),
    }


def _texts(words: Iterable[Words], view: View) -> list[list[Any]]:
    """Words that texts were asked for, and the paths of those that hold them."""
    return [[list(one), list(every), view.mentioning(one, every)] for one, every in sorted(words)]


def _alone(program: Program, members: Iterable[str], view: View, asked: Iterable[tuple[Any, ...]]) -> dict[str, Any]:
    """Files of the block by all that they are made of, and what was asked there about all others."""
    members, noted = sorted(members), program.consulted
    assert view.trees is not None
    for member in members:
        if (file := program.file_of(member)) is not None and file.is_cuda:
            program.answers.of("index.includes", file, ())
    asked = {*asked, *((*question, said) for member in members for question, said in noted.questions.get(member, {}).items())}
    return {"trees": {member: view.trees(member) for member in members}, "asked": sorted(map(list, asked))}


def _built(asked: Iterable[str], block: frozenset[str], alone: frozenset[str]) -> list[list[object]]:
    """What build files said of these files; of the block, only of those that are looked at without the rest of it."""
    return sorted(
        [member, word, build.plain_answer(said)]
        for member in asked
        for word, said in build.asked.get(member, {}).items()
        if member not in block or word not in BUILT_OF_NATIVES or member in alone  # else they stand in the block's hash
    )


def native_hash(natives: Iterable[str], hashes: Mapping[str, str]) -> str:
    """One hash for the C++ and Cython of a run, and what build files say of it; empty if there is none."""
    parts = []
    for path in natives:
        said = [str(build.answer(word, path)) for word in BUILT_OF_NATIVES]
        parts.append("\0".join((path, hashes[path], *said)))
    return digest("\0\0".join(parts)) if parts else ""


def _told(options: Options) -> str:
    return repr(
        (
            sorted(options.codes),
            options.default_stream,
            options.target_device,
            options.hidden_sync,
            options.evidence,
            options.user_models,
            options.coverage,
        )
    )


def _of_unit(unit: Unit, coverage: bool) -> dict[str, Any]:
    return {
        "outline": unit.outline,
        "problems": [records.of_problem(problem) for problem in unit.problems],
        "native": unit.native,
        "rests": unit.rests,
        "parts": None if unit.parts is None else [records.of_part(part, coverage) for part in unit.parts],
        "fixes": {name: records.of_fix(fix) for name, fix in unit.fixes.items()},
        "tried": unit.tried,
    }


def _to_unit(record: dict[str, Any]) -> Unit:
    parts = record["parts"]
    return Unit(
        record["outline"],
        [records.to_problem(problem) for problem in record["problems"]],
        record["native"],
        record["rests"],
        None if parts is None else [records.to_part(part) for part in parts],
        {name: records.to_fix(fix) for name, fix in record["fixes"].items()},
        record["tried"],
    )
