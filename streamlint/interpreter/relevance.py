"""What can matter: which functions are roots for which checks, which calls can be passed over, which branches are worth a second path.

Everything here is decided from words in the text of a function and of what it calls, before anything is run. Passing over is only right
where nothing that a check asks of could have happened; a test holds this against runs without it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from streamlint import program as p
from streamlint.interpreter.index import File, is_declaration

# For each check its alternatives, each a conjunction of groups of which one literal must stand in the text.
Needs = tuple[tuple[tuple[tuple[str, ...], ...], ...], ...]
# A word that changes the meaning of code anywhere in its file.
_FILE_WIDE = frozenset({"set_allocator"})
# Methods that run without their name being written: where an object is made, called, entered, iterated, left.
_UNSAID = frozenset("__init__ __call__ forward operator() __enter__ __exit__ __iter__ __next__ __del__ __getitem__".split())
_MOST_CALLEES = 200
_DEEPEST = 2

# Words without which a body neither makes nor moves device memory, nor orders anything.
_WORDS = (
    "cuda",
    "Cuda",
    "CUDA",
    "tream",
    "vent(",
    "Event",
    "record(",
    "pin",
    "non_block",
    "blocking",
    "device",
    ".to(",
    ".cpu(",
    "item(",
    "numpy",
    "tolist",
    "copy_",
    "cupy",
    "cp.",
    "malloc",
    "Malloc",
    "ynchronize",
    "<<<",
    "thrust",
    "cub",
    "wait(",
    "query(",
    "Memcpy",
    "memcpy",
    "empty_cache",
    "launch_host_func",
    "callback",
    ".get(",
    ".set(",
    "free(",
    "Free(",
    "hip",
    "DataLoader",
    "collate",
    "loader",
    "to_host",
    "asnumpy",
    "done",
    "new ",
    "vector<",
    "std::move",
    "torch.",
    "Queue",
    "Thread",
    "Lock",
    "Executor",
    "get_context",
    "Condition",
)


# Words of what orders, copies or allocates: only branches with such are worth a path of their own.
_DECISIVE = (
    "ynchronize",
    "tream",
    "vent",
    "record(",
    "wait",
    "query()",
    "non_block",
    "blocking",
    "pin_",
    "pinned",
    "copy_",
    ".to(",
    ".cpu(",
    ".cuda(",
    "Async",
    "alloc",
    "Alloc",
    "free(",
    "Free(",
    "Launch",
    "launch",
    "<<<",
    "empty_cache",
    "item()",
    "tolist",
    ".numpy()",
    ".get(",
    ".set(",
    "device_array",
    "to_host",
    "callback",
    "std::move",  # of an owner, whose end may be a cudaFree
)
_OF_A_DICT = re.compile(r"\.get\(\s*[fr]?[\"']")  # no array, no queue


@dataclass(eq=False, slots=True)
class Relevance:
    """Words of the bodies of one file, with those of what they call."""

    file: File
    _text: dict[int, str] = field(default_factory=dict)
    _callees: dict[int, list[p.Function]] = field(default_factory=dict)
    _matters: dict[int, bool] = field(default_factory=dict)
    _bodies: dict[int, bool] = field(default_factory=dict)
    _decides: dict[int, bool] = field(default_factory=dict)
    _methods: dict[str, list[p.Function]] | None = None
    _files: list[File] | None = None
    _library_names: tuple[re.Pattern[str] | None] | None = None
    _outside: dict[frozenset[str], frozenset[str]] = field(default_factory=dict)
    _words: dict[tuple[int, frozenset[str]], frozenset[str]] = field(default_factory=dict)

    def text(self, node: p.Node) -> str:
        """The source lines of a node, as far as they are code."""
        key = id(node)
        if key not in self._text:
            self._text[key] = "\n".join(self.file.words[max(node.at[0] - 1, 0) : node.at[2]])
        return self._text[key]

    def callees(self, function: p.Function) -> list[p.Function]:
        """The functions of the file, and of those that it imports or includes, that a body may call: by name."""
        key = id(function)
        if key not in self._callees:
            self._callees[key] = []
            names = {
                node.name if isinstance(node, p.Attr) else node.id.rpartition("::")[2]
                for node in p.walk(function)
                if isinstance(node, p.Attr | p.Name)
            }
            found: list[p.Function] = []
            for name in sorted(self._meant(names)):
                found.extend(self._defined(f) for f in self.named(name) if f is not function)
            self._callees[key] = found
        return self._callees[key]

    def _defined(self, function: p.Function) -> p.Function:
        """C++: the body of a declaration, where another file has it."""
        home = self.file.program.owner(function, self.file)
        if not home.is_cuda or not is_declaration(function):
            return function
        found = self.file.program.definition(function, home)
        return found[0] if found is not None else function

    def named(self, name: str) -> Sequence[p.Function]:
        """The functions of the file, and of those that it names, that may be called by a name."""
        if self._methods is None:
            self._methods = {}
            for file in self._reach():
                for function, definition in p.functions_of(file.module):
                    for called in _names_of(function, definition):
                        self._methods.setdefault(called, []).append(function)
        found = self._methods.get(name, ())
        exports = self.file.program.exports
        return [*found, *exports.functions_named(name)] if not self.file.is_cuda and exports.seen_from(self.file) else found

    def _reach(self) -> list[File]:
        """This file and the files at hand that it names in imports or includes."""
        if self._files is None:
            self._files = [self.file]
            if self.file.is_cuda:
                self._files += self.file.neighbours()
            else:
                self._files += self._imported()
                self._files += [f for held in list(self._files) for f in _behind(held)]
        return self._files

    def _imported(self) -> list[File]:
        found: list[File] = []
        for dotted in dict.fromkeys(self.file.module.imports.values()):
            for candidate in (dotted, dotted.rpartition(".")[0]):
                target = self.file.program.python_module(candidate, self.file) if candidate else None
                if target is not None and target is not self.file and target not in found:
                    found.append(target)
        return found

    def matters(self, function: p.Function, depth: int = 4) -> bool:
        """Whether a body, or one that it calls, holds any of the words."""
        key = id(function)
        if key in self._matters:
            return self._matters[key]
        self._matters[key] = False
        holder = self._holder(function)
        own = holder._has_word(holder.text(function))
        result = own or (depth > 0 and any(holder.matters(callee, depth - 1) for callee in holder.callees(function)))
        self._matters[key] = result
        return result

    def text_of(self, function: p.Function) -> str:
        """The text of a function, wherever in the program it stands."""
        return self._holder(function).text(function)

    def _holder(self, function: p.Function) -> Relevance:
        return self.file.program.owner(function, self.file).relevance

    def body_matters(self, body: Sequence[p.Statement]) -> bool:
        """Whether statements hold any of the words, or call what does."""
        if not body:
            return False
        key = id(body)
        if key not in self._bodies:
            text = "\n".join(self.file.words[max(body[0].at[0] - 1, 0) : max(s.at[2] for s in body)])
            self._bodies[key] = (
                self._decisive(text) or self._expands_to_work(body) or any(self.decides(f) for s in body for f in self._called_in(s))
            )
        return self._bodies[key]

    def _expands_to_work(self, body: Sequence[p.Statement]) -> bool:
        """C++: a macro's body stands elsewhere, and the text here only names it."""
        return self.file.is_cuda and any(
            isinstance(node, p.Launch) or (isinstance(node, p.Name) and self._decisive(node.id)) for s in body for node in p.walk(s)
        )

    def expression_matters(self, node: p.Expression) -> bool:
        """Whether an expression holds any of the words, or calls what does."""
        key = id(node)
        if key not in self._bodies:
            rows = self.file.words[max(node.at[0] - 1, 0) : node.at[2]]
            if rows:
                rows[-1] = rows[-1][: max(node.at[3] - 1, 0)]
                rows[0] = rows[0][max(node.at[1] - 1, 0) :]
            self._bodies[key] = self._has_word("\n".join(rows)) or any(self.matters(f) for f in self._called_in(node))
        return self._bodies[key]

    def decides(self, function: p.Function, depth: int = 3) -> bool:
        """Whether a body, or one that it calls, orders, copies or allocates."""
        key = id(function)
        if key not in self._decides:
            self._decides[key] = False
            holder = self._holder(function)
            self._decides[key] = self._decisive(holder.text(function) + holder._macros_in(function)) or (
                depth > 0 and any(holder.decides(callee, depth - 1) for callee in holder.callees(function))
            )
        return self._decides[key]

    def _decisive(self, text: str) -> bool:
        own = self.file.models.own_words
        text = _OF_A_DICT.sub("(", text)
        return any(word in text for word in (*_DECISIVE, *own)) or (self.file.is_cuda and "cu" in text)

    def _has_word(self, text: str) -> bool:
        own = self.file.models.own_words
        if any(word in text for word in (*_WORDS, *own)) or (self.file.is_cuda and "cu" in text):
            return True
        names = self.library_names()
        return names is not None and names.search(text) is not None

    def library_names(self) -> re.Pattern[str] | None:
        """What the file calls the libraries that hold memory (``np``), and what it imports from them."""
        if self._library_names is None:
            packages = self.file.models.packages
            names = [name for name, dotted in self.file.module.imports.items() if dotted.partition(".")[0] in packages]
            self._library_names = (re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b") if names else None,)
        return self._library_names[0]

    def _called_in(self, statement: p.Node) -> Iterable[p.Function]:
        names = {n.name if isinstance(n, p.Attr) else n.id.rpartition("::")[2] for n in p.walk(statement) if isinstance(n, p.Attr | p.Name)}
        for name in self._meant(names):
            yield from map(self._defined, self.named(name))

    def _meant(self, names: set[str]) -> set[str]:
        """Names, and what those that were imported under another name are called at home."""
        imports = self.file.module.imports
        return names | {imports[name].rpartition(".")[2] for name in names if name in imports}

    def satisfies(self, function: p.Function, needs: Needs) -> bool:
        """Whether a root's text, with that of what it may call, holds what one of the checks needs."""
        words = literals(needs)
        found = set(self.words_of(function, words)) | self._words_outside(words)
        seen = {id(function)}
        waiting = [(callee, 1) for callee in self.callees(function)]
        if function.class_name:
            # A method's object is made by its constructor first.
            name = function.class_name.rpartition("::" if self.file.is_cuda else ".")[2]
            waiting += [(made, 0) for made in self.named(name) if made.name == "__init__" and made is not function]
        while waiting and len(seen) < _MOST_CALLEES:
            callee, depth = waiting.pop()
            if id(callee) in seen:
                continue
            seen.add(id(callee))
            holder = self._holder(callee)
            found |= holder.words_of(callee, words)
            if depth < _DEEPEST:
                waiting.extend((inner, depth + 1) for inner in holder.callees(callee))
        return fulfilled(found, needs)

    def _macros_in(self, function: p.Function) -> str:
        """C++: the bodies of the macros that a function's text names."""
        if not self.file.is_cuda:
            return ""
        text = self.text(function)
        return "\n".join(body for file in self._reach() for name, body in file.module.macros.items() if name in text)

    def _words_outside(self, words: frozenset[str]) -> frozenset[str]:
        """The literals of the module's own statements: what a function finds in its globals."""
        if words not in self._outside:
            own = [s for s in self.file.module.body if not isinstance(s, p.FunctionDef | p.ClassDef)]
            text = "\n".join(self.text(statement) for statement in own)
            whole = self.file.module.text
            self._outside[words] = frozenset(word for word in words if word in (whole if word in _FILE_WIDE else text))
        return self._outside[words]

    def words_of(self, function: p.Function, words: frozenset[str]) -> frozenset[str]:
        """The literals that stand in a function's own text."""
        key = (id(function), words)
        if key not in self._words:
            text = self.text(function) + self._macros_in(function)
            self._words[key] = frozenset(word for word in words if word in text)
        return self._words[key]


def _behind(file: File) -> list[File]:
    """Cython: the C++ and the declarations that a file stands on."""
    return [*file.neighbours(), *file.program.declarations(file)] if file.is_cython else []


def _names_of(function: p.Function, definition: p.Class | None) -> Iterator[str]:
    """The names that may stand where it is called: its own, and its class's where an object is made or used."""
    if definition is None or function.name != "__init__":
        yield function.name
    if definition is not None and function.name in _UNSAID:
        yield definition.name
    elif definition is None and function.class_name and function.name == "__init__":
        yield function.class_name.rpartition("::")[2]  # C++: a constructor that stands behind its class


@functools.lru_cache(maxsize=64)
def literals(needs: Needs) -> frozenset[str]:
    return frozenset(word for need in needs for alternative in need for group in alternative for word in group)


def fulfilled(found: Collection[str], needs: Needs) -> bool:
    """Whether the literals that were found are what one of the checks needs."""
    return any(all(any(word in found for word in group) for group in alternative) for need in needs for alternative in need)


def satisfies_text(text: str, needs: Needs) -> bool:
    """Whether one text holds what one of the checks needs."""
    return fulfilled([word for word in literals(needs) if word in text], needs)
