"""Files that name no CUDA and yet belong to a run: bindings and Cython beside CUDA files, and the headers that they include; what stands
between C++ that works with CUDA; Python that makes tensors or batches for those who import it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from streamlint.config.options import Options, Source
from streamlint.discovery.files import Found
from streamlint.discovery.outlines import Reach, imports_in, outline
from streamlint.discovery.triggers import any_of, relevant
from streamlint.support.reading import Unreadable, decode, read_source, shared_folders
from streamlint.support.records import field, record

# Each branch begins with a letter of its own, so that a search runs past all others.
INCLUDE = re.compile(r"(?:#[ \t]*include[ \t]*|f(?<!\wf)rom\s*|i(?<=^i)nclude\s+)[\"'<]([^\"'>\n]+)[\"'>]", re.MULTILINE)
# Memory of the host, and what stands before it in its line where it is kept or given away: what other files may copy from.
_MADE = re.compile(r"torch\.(?:empty|zeros|ones|full|from_numpy)(?:_like)?\((?![^\n]*device)")
_KEPT = re.compile(r"(?:self\.\w+(?:\[[^\]\n]*\])?(?:[ \t]*:[^=\n]+)?[ \t]*=|append\(|\breturn)[ \t]*\Z")
NATIVE = re.compile(r"\b(?:CDLL|PyDLL|LoadLibrary|load_library|dlopen|FFI|cpp_extension)\b|\btorch\.ops\.")
OPENED = re.compile(r"\b(?:PYBIND11_(?:EMBEDDED_)?MODULE|NB_MODULE)\s*\(\s*(\w+)|\bPyInit_(\w+)")
_NAME = re.compile(r"\w+")
_CLASS = re.compile(r"\b(?:class|struct)\s+(?:\w+\s+)?(\w+)\s*(?:final\s*)?(?::[^:;{][^;{]*)?\{")
_LAMBDA = re.compile(r"\bauto[ \t]+(\w+)[ \t]*=[ \t]*\[")
_HELD = re.compile(r"\(\s*\*\s*(?:const\s+)?(\w+)\s*\)\s*\([^;{}=]*\)\s*[={]|\bfunction\s*<[^;{}=]*>\s+(\w+)\s*[={]")
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\((?:[^\n\\]|\\\n|\\.)*?(?:\bcu(?:da)?[A-Z]|<<<)", re.MULTILINE)
_FUNCTION = re.compile(r"\b(\w+)\s*\([^;{}()]{0,200}\)[\s\w]{0,40}\{")
_CAPTURES = re.compile(r"\bcuda\.graph\(|\bCUDAGraph\b|\bmake_graphed_callables\b")
# Without one of these in a text, the patterns above are not looked for: plain words are found fifty times as fast.
_MAY_BE_NATIVE = ("DLL", "LoadLibrary", "load_library", "dlopen", "FFI", "cpp_extension", "torch.ops.")
_MAY_CAPTURE = ("cuda.graph(", "CUDAGraph", "make_graphed_callables")
_NUMBER_OF = re.compile(r"\bfloat\(\s*[A-Za-z_]\w*(?:\.\w+\(\))*\s*\)")
_COLLATED = re.compile(r"\bcollate_fn\s*=\s*(\w+)")
_MOST_HEADERS = 400  # for one run
_MOST_IMPORTED = 60  # Python that captures reach, for one run


@record(slots=True)
class Seams:
    """``joining`` are files that call others' functions from Python; ``skipped`` what was passed over, by its last name."""

    joining: dict[Options, list[Source]] = field(default_factory=dict)
    skipped: dict[str, list[Found]] = field(default_factory=lambda: defaultdict(list))
    python: list[Found] = field(default_factory=list)  # what was passed over of Python
    taken: set[str] = field(default_factory=set)
    read: dict[str, Source | None] = field(default_factory=dict)  # what was passed over and has been looked at all the same
    _includes: dict[str, list[str]] = field(default_factory=dict)  # by path
    _batched: dict[str, list[str]] = field(default_factory=dict)  # by path
    _modules: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)  # by path
    _by_module: dict[str, list[Found]] | None = None  # what was passed over of Python, by the last names of its modules

    def skip(self, file: Found) -> None:
        """A file that nothing in it asks for: it may be included by one that counts."""
        if file.language == "python":
            self.python.append(file)
        else:
            self.skipped[_last(file.path)].append(file)

    def join(self, options: Options, source: Source) -> None:
        self.joining.setdefault(options, []).append(source)

    def completed(self, options: Options, sources: list[Source], is_seam: Callable[[Source], bool]) -> Iterator[Source]:
        """What joins these sources: bindings and Cython only where one of them is C++ or Cython, Python that one of them imports or that
        leads to their work, and C++ over includes."""
        joined = []
        for source in self._joining(options, sources, is_seam):
            joined.append(source)
            yield source
        for source in (*self._captured(sources), *self._trained(sources), *self._loaded(sources)):
            joined.append(source)
            yield source
        known = {source.path for source in (*sources, *joined)}
        for source in (*self._reaching(options, sources), *self._amid(sources)):
            if source.path not in known:
                yield source

    def _reaching(self, options: Options, sources: list[Source]) -> Iterator[Source]:
        """The Python files whose code leads to work with CUDA in these sources, over any number of files."""
        texts = {source.path: source.text for source in sources if source.language == "python"}
        if not texts:
            return
        candidates = {source.path: source for source in self.joining.get(options, []) if source.language == "python"}
        candidates |= {file.path: read for file in self.python if (read := self._read(file)) is not None}
        works = relevant("python", options.user_models)
        texts |= {path: source.text for path, source in candidates.items()}
        reach = Reach({path: outline(text, works) for path, text in texts.items()})
        yield from (source for path, source in candidates.items() if reach.names[path] or reach.called[path])

    def _amid(self, sources: list[Source]) -> list[Source]:
        """The C++ files that these sources include, and those that include them and name a function or class of theirs or define none, as
        headers of includes alone; each also through one another: what they hand one another goes through these. The nearest come
        first; `_MOST_HEADERS` of them are taken."""
        native = [source for source in sources if source.language == "cuda"] if self.skipped else []
        if not native:
            return []
        includes, includers = self._inclusions([*native, *filter(None, map(self._read, chain.from_iterable(self.skipped.values())))])
        found = {source.path: source for source in native}
        defined = _all_defined(native)
        ring, above = list(native), dict[str, Source]()
        while ring and len(found) < len(native) + _MOST_HEADERS:
            above |= {user.path: user for held in ring for user in includers[held.path]}
            users = [above.pop(path) for path, user in list(above.items()) if path in found or _uses(user.text, defined)]
            near = {one.path: one for one in (*users, *(part for held in ring for part in includes[held.path])) if one.path not in found}
            ring = [near[path] for path in sorted(near)]
            found |= near
            defined |= _all_defined(ring)
        return list(found.values())[len(native) : len(native) + _MOST_HEADERS]

    def _inclusions(self, sources: list[Source]) -> tuple[dict[str, list[Source]], dict[str, list[Source]]]:
        """What each of these sources includes of them, and by which of them it is included."""
        by_last: dict[str, list[Source]] = defaultdict(list)
        for source in sources:
            by_last[_last(source.path)].append(source)
        includes: dict[str, list[Source]] = {}
        includers: dict[str, list[Source]] = defaultdict(list)
        for source in sources:
            named = ((name, held) for name in self._includes_of(source) for held in by_last.get(_last(name), ()))
            includes[source.path] = [held for name, held in named if _names(name, held.path)]
            for held in includes[source.path]:
                includers[held.path].append(source)
        return includes, includers

    def _joining(self, options: Options, sources: list[Source], is_seam: Callable[[Source], bool]) -> Iterator[Source]:
        python = [s for s in self.joining.get(options, []) if s.language == "python"]
        callers: list[Source] = []
        if any(source.language != "python" for source in sources):
            callers = [s for s in python if _says(s.text, _MAY_BE_NATIVE, NATIVE)]
            yield from callers
        called = {source.path for source in callers}
        yield from self._imported([s for s in python if s.path not in called], sources)
        if all(source.language == "python" for source in sources):
            return
        joining = [source for source in self.joining.get(options, []) if source.language != "python"]
        yield from joining
        yield from self._calling([*joining, *sources])
        waiting = [*joining, *(source for source in sources if is_seam(source))]
        while waiting and len(self.taken) < _MOST_HEADERS:
            for found in self._included(waiting.pop()):
                yield found
                waiting.append(found)

    def _captured(self, sources: list[Source]) -> Iterator[Source]:
        """The Python files that a file which captures graphs imports, also through one another: what runs in a capture is in them."""
        python = [source for source in sources if source.language == "python"] if self.python else []
        waiting = [source for source in python if _says(source.text, _MAY_CAPTURE, _CAPTURES)]
        taken = 0
        for source in waiting:  # grows by what it imports
            for read in self._imports(source, lambda read: "torch" in read.text):
                if taken >= _MOST_IMPORTED:
                    return
                taken += 1
                yield read
                waiting.append(read)

    def _trained(self, sources: list[Source]) -> Iterator[Source]:
        """The Python files that a file which trains imports, and that make numbers of what they are given: meters, lists of losses."""
        waiting = [source for source in sources if source.language == "python" and ".backward(" in source.text] if self.python else []
        for source in waiting:
            yield from self._imports(source, lambda read: _NUMBER_OF.search(read.text) is not None)

    def _loaded(self, sources: list[Source]) -> Iterator[Source]:
        """The Python files that a file with a loader imports, and that have what makes its batches."""
        makes = self._makes_batches(sources) if self.python else None
        for source in filter(self._collated, sources if makes is not None else ()):
            yield from self._imports(source, lambda read: makes is not None and makes(read.text))

    def _imports(self, source: Source, wanted: Callable[[Source], bool]) -> Iterator[Source]:
        """The Python files that a source imports, were passed over so far and are wanted."""
        if self._by_module is None:
            self._by_module = defaultdict(list)
            for file in self.python:
                self._by_module[_module_of(file.path)[-1]].append(file)
        for tail in self._modules_in(source):
            named = [f for f in self._by_module.get(tail[-1], ()) if _module_of(f.path)[-len(tail) :] == tail]
            nearest = max(named, key=lambda f: shared_folders(f.path, source.path), default=None)
            if nearest is not None and nearest.path not in self.taken and (read := self._read(nearest)) is not None and wanted(read):
                self.taken.add(nearest.path)
                yield read

    def _imported(self, candidates: list[Source], sources: list[Source]) -> Iterator[Source]:
        """The Python files among the candidates that sources import."""
        by_module: dict[str, list[Source]] = defaultdict(list)
        makes = self._makes_batches(sources) if candidates else None
        for source in candidates:
            if not _keeps(source.text) and (makes is None or not makes(source.text)):
                continue
            by_module[_module_of(source.path)[-1]].append(source)
        if not by_module:
            return
        for importing in sources:
            for tail in self._modules_in(importing) if importing.language == "python" else ():
                for source in list(by_module.get(tail[-1], ())):
                    if _module_of(source.path)[-len(tail) :] == tail:
                        by_module[tail[-1]].remove(source)
                        yield source

    def _makes_batches(self, sources: list[Source]) -> Callable[[str], bool] | None:
        """Whether a text has a function or class that loaders are given to make their batches; None where there are none."""
        names = {name for source in sources if source.language == "python" for name in self._collated(source)}
        if not names:
            return None
        defined = re.compile(rf"\n(?:def|class)[ \t]+(?:{'|'.join(sorted(names))})\b")
        return lambda text: defined.search(f"\n{text}") is not None

    def _collated(self, source: Source) -> list[str]:
        """The names that loaders in a source are given to make their batches by."""
        if source.path not in self._batched:
            self._batched[source.path] = _COLLATED.findall(source.text) if "collate_fn" in source.text else []
        return self._batched[source.path]

    def _modules_in(self, source: Source) -> list[tuple[str, ...]]:
        """What the import statements of a source may mean, each once."""
        if source.path not in self._modules:
            self._modules[source.path] = list(dict.fromkeys(_modules_in(source.text)))
        return self._modules[source.path]

    def _calling(self, sources: list[Source]) -> Iterator[Source]:
        """The Python files that import a module which C++ opens by name."""
        opened = (match for source in sources if source.language == "cuda" for match in OPENED.findall(source.text))
        names = {name for match in opened for name in match if name and name != "TORCH_EXTENSION_NAME"}
        if not names or not self.python:
            return
        mentions = any_of(frozenset(names))
        imports = re.compile(rf"^[ \t]*(?:from|import)\b[^\n#]*\b(?:{'|'.join(sorted(names))})\b", re.MULTILINE)
        for file in self.python:
            try:
                data = read_source(file.path)
                text = decode(data, file.language, file.path)[0] if mentions(data) else ""
            except Unreadable:
                continue
            if imports.search(text):
                yield Source(file.path, text, file.language)

    def _included(self, source: Source, wanted: Callable[[Source], bool] = lambda source: True) -> Iterator[Source]:
        """The files that a source includes, were passed over so far and are wanted."""
        for name in self._includes_of(source):
            for file in self._named(name):
                if (read := self._read(file)) is not None and wanted(read):
                    self.taken.add(file.path)
                    yield read

    def _includes_of(self, source: Source) -> list[str]:
        if source.path not in self._includes:
            self._includes[source.path] = INCLUDE.findall(source.text)
        return self._includes[source.path]

    def _read(self, file: Found) -> Source | None:
        """A file that was passed over; read once."""
        if file.path not in self.read:
            try:
                self.read[file.path] = Source(file.path, decode(read_source(file.path), file.language, file.path)[0], file.language)
            except Unreadable:
                self.read[file.path] = None
        return self.read[file.path]

    def _named(self, include: str) -> Iterable[Found]:
        return [f for f in self.skipped.get(_last(include), ()) if f.path not in self.taken and _names(include, f.path)]


def _defined(text: str) -> Iterator[str]:
    """The names that a C++ text gives to functions, classes and lambdas, to variables that hold functions, and to macros that work."""
    yield from _FUNCTION.findall(text)
    yield from _CLASS.findall(text)
    yield from _LAMBDA.findall(text)
    yield from (pointer or held for pointer, held in _HELD.findall(text))
    yield from _MACRO.findall(text) if "define" in text else ()


def _all_defined(sources: Iterable[Source]) -> set[str]:
    return {name for source in sources for name in _defined(source.text)}


def _uses(text: str, names: set[str]) -> bool:
    """Whether a C++ text names one of these, or defines nothing and hands them on."""
    return not names.isdisjoint(_NAME.findall(text)) or not any(_defined(text))


def _says(text: str, words: Iterable[str], pattern: re.Pattern[str]) -> bool:
    """Whether a pattern is found, in a text that holds one of the words that a match would hold."""
    return any(word in text for word in words) and pattern.search(text) is not None


def _keeps(text: str) -> bool:
    """Whether a text keeps or gives away memory that it makes on the host."""
    return any(_KEPT.search(text, text.rfind("\n", 0, made.start()) + 1, made.start()) for made in _MADE.finditer(text))


def _last(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def _names(include: str, path: str) -> bool:
    """Whether an include may mean the file at a path."""
    tail = include.replace("\\", "/").lstrip("./")
    return f"/{path}".replace("\\", "/").endswith(f"/{tail}")


def _module_of(path: str) -> tuple[str, ...]:
    parts = path.replace("\\", "/").removesuffix(".py").split("/")
    return tuple(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def _modules_in(text: str) -> Iterator[tuple[str, ...]]:
    """What import statements may mean: the module itself, and its members."""
    for module, members, plain in imports_in(text):
        home = tuple(filter(None, module.split(".")))
        yield from ((*home, name) for name in _NAME.findall(members))
        yield from (tuple(_NAME.findall(part.partition(" as ")[0])) for part in plain.split(",") if _NAME.search(part))
        if home:
            yield home
