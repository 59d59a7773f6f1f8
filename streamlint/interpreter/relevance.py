"""What can matter: which branches are worth a second path.

Everything here is decided from words in the text of a function and of what it calls, before anything is run. Passing over is only right
where nothing that a check asks of could have happened; a test holds this against runs without it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from streamlint import program as p
from streamlint.interpreter.decisive import DECISIVE, cleared, has_word, meant
from streamlint.interpreter.index import File, dotted_name, is_declaration
from streamlint.interpreter.makers import classes_given
from streamlint.interpreter.no_stream import without_text
from streamlint.interpreter.notes import Kept, kept, kept_in_rounds
from streamlint.interpreter.python_names import PythonNames
from streamlint.interpreter.quiet import is_plain
from streamlint.interpreter.said import Said
from streamlint.record import field, record

# Effects of what may as well be a data type (``torch.float16``), or a function that only works where its arguments are.
_PLAIN = frozenset({"compute", "unknown"})
MOST_CALLEES = 200
DEEPEST = 24
# Methods that run without their name being written: where an object is made, called, entered, iterated, left.
UNSAID = frozenset(
    "__init__ __call__ forward operator() __enter__ __exit__ __aenter__ __aexit__ __iter__ __next__ __del__ __getitem__".split()
)


@record(eq=False, slots=True)
class Relevance:
    """Words of the bodies of one file, with those of what they call."""

    file: File
    _text: dict[int, str] = field(default_factory=dict)
    _callees: dict[int, Kept[list[p.Function]]] = field(default_factory=dict)
    _matters: dict[int, Kept[bool]] = field(default_factory=dict)
    _bodies: dict[int, Kept[bool]] = field(default_factory=dict)
    _decides: dict[int, Kept[bool]] = field(default_factory=dict)
    _methods: dict[str, Kept[dict[str, list[p.Function]]]] = field(default_factory=dict)
    _files: dict[str, Kept[list[File]]] = field(default_factory=dict)
    _library_names: tuple[re.Pattern[str] | None] | None = None
    _at_hand: dict[str, Kept[bool]] = field(default_factory=dict)  # packages of libraries whose source is linted here
    _plain: dict[int, Kept[bool]] = field(default_factory=dict)
    _holds: dict[tuple[int, frozenset[str]], Kept[bool]] = field(default_factory=dict)
    said: Said = field(init=False)
    python: PythonNames = field(init=False)

    def __post_init__(self) -> None:
        self.said, self.python = Said(self), PythonNames(self)

    def text(self, node: p.Node) -> str:
        """The source of a node, as far as it is code."""
        key = id(node)
        if key not in self._text:
            self._text[key] = self._between(node.at[:2], node.at[2:])
        return self._text[key]

    def callees(self, function: p.Function) -> list[p.Function]:
        """The functions of the file, and of those that it imports or includes, that a body may call: by name."""
        return kept_in_rounds(self._callees, id(function), [], self._find_callees, function)

    def _find_callees(self, function: p.Function) -> list[p.Function]:
        return [f for f in (*self.called_in(function), *self._makers_given(function)) if f is not function]

    def _makers_given(self, function: p.Function) -> Iterator[p.Function]:
        """The constructors of what a constructor is given wherever the file calls it."""
        owner = self.file.class_named(function.class_name) if function.name == "__init__" and not self.file.is_cuda else None
        for name in classes_given(owner, self.file) if owner is not None else ():
            yield from self.named(name)

    def _defined(self, function: p.Function) -> list[p.Function]:
        """C++: the bodies of a declaration, where other files have them."""
        home = self.holder(function).file
        if not home.is_cuda or not is_declaration(function):
            return [function]
        found = self.file.program.definition(function, home)
        return [f for f, _ in self.file.program.linker.alternatives(found[0]) or (found,)] if found is not None else [function]

    def named(self, name: str) -> Sequence[p.Function]:
        """The functions of the file, and of those that it names, that may be called by a name."""
        bound = self._bound(name)
        found = self._methods_named(name)
        return [*found, *bound] if bound else found

    def _methods_named(self, name: str) -> Sequence[p.Function]:
        """The same without the C++ that Python calls."""
        return kept(self._methods, "", self._find_methods).get(name, ())

    def _find_methods(self) -> dict[str, list[p.Function]]:
        found: dict[str, list[p.Function]] = {}
        for file in self.reach():
            for function, definition in p.functions_of(file.module):
                for called in _names_of(function, definition):
                    found.setdefault(called, []).append(function)
        return found

    def _bound(self, name: str) -> Sequence[p.Function]:
        """The C++ that a Python file may call by a name."""
        program = self.file.program
        return program.bound(name, self.file) if program.interface.may_call(name, self.file) else ()

    def reach(self) -> list[File]:
        """This file and the files at hand that it names in imports or includes."""
        return kept_in_rounds(self._files, "", [self.file], self._find_files)

    def _find_files(self) -> list[File]:
        if self.file.is_cuda:
            return [self.file, *self.file.neighbours()]
        files = [self.file, *self._imported()]
        return [*files, *(f for held in files for f in _behind(held))]

    def _imported(self) -> list[File]:
        found: list[File] = []
        for dotted in dict.fromkeys(self.file.imports.values()):
            for candidate in (dotted, dotted.rpartition(".")[0]):
                target = self.file.program.python_module(candidate, self.file) if candidate else None
                if target is not None and target is not self.file and target not in found:
                    found.append(target)
        return found

    def matters(self, function: p.Function, depth: int = 4) -> bool:
        """Whether a body, or one that it calls, holds any of the words."""
        return kept_in_rounds(self._matters, id(function), False, self._find_matters, function, depth)

    def _find_matters(self, function: p.Function, depth: int) -> bool:
        holder = self.holder(function)
        own = holder._has_word(holder.text(function))
        return own or (depth > 0 and any(holder.matters(callee, depth - 1) for callee in holder.callees(function)))

    def text_of(self, function: p.Function) -> str:
        """The text of a function, wherever in the program it stands."""
        return self.holder(function).text(function)

    def holder(self, function: p.Function) -> Relevance:
        """Of the file that a function stands in."""
        return self.file.program.owner(function, self.file).relevance

    def body_matters(self, body: Sequence[p.Statement]) -> bool:
        """Whether statements hold any of the words, or call what does."""
        return bool(body) and kept(self._bodies, id(body), self._find_body_matters, body)

    def _find_body_matters(self, body: Sequence[p.Statement]) -> bool:
        return (
            self._decisive(self._between(body[0].at[:2], max(s.at[2:] for s in body)))
            or self._expands_to_work(body)
            or any(self.decides(f) for f in self.called_in(*body))
        )

    def _expands_to_work(self, body: Sequence[p.Node]) -> bool:
        """C++: a macro's body stands elsewhere, and the text here only names it."""
        return self.file.is_cuda and any(
            isinstance(node, p.Launch) or (isinstance(node, p.Name) and self._decisive(node.id)) for s in body for node in p.walk(s)
        )

    def holds(self, nodes: Sequence[p.Node], signs: frozenset[str]) -> bool:
        """Whether statements or expressions, or what they call, hold one of the literals, or a word of the user's own models."""
        return any(self._holds_one(node, signs) for node in nodes)

    def is_quiet(self, function: p.Function, signs: frozenset[str]) -> bool:
        """Whether a function of Python and all that it calls, as far as that can be looked through, bring nothing into play."""
        seen: set[int] = set()
        for each in self._below([(function, 0)], seen):
            holder = self.holder(each)
            if not kept(holder._plain, id(each), holder._find_plain, each) or holder.said.by(each, signs):
                return False
        return len(seen) < MOST_CALLEES

    def _find_plain(self, function: p.Function) -> bool:
        text = self.text(function)  # (of a library's names is_plain knows)
        return not has_word(text) and not any(word in text for word in self.file.models.own_words) and is_plain(function, self.file)

    def _holds_one(self, node: p.Node, signs: frozenset[str]) -> bool:
        return kept(self._holds, (id(node), signs), self._find_holds, node, signs)

    def _find_holds(self, node: p.Node, signs: frozenset[str]) -> bool:
        text = self.text(node) if self.file.is_cuda else without_text(self.text(node))
        return (
            self._has_sign(text, self.said.telling(signs)) or self._expands_to_work((node,)) or self._reaches(self.called_in(node), signs)
        )

    def _has_sign(self, text: str, signs: frozenset[str]) -> bool:
        return any(sign in text for sign in signs) or any(word in text for word in self.file.models.own_words)

    def _reaches(self, functions: Iterable[p.Function], signs: frozenset[str]) -> bool:
        """Whether one of the functions, or what they call, holds one of the literals."""
        seen: set[int] = set()
        for function in self._below([(function, 0) for function in functions], seen):
            holder = self.holder(function)
            if holder.said.by(function, signs) or holder._has_sign(holder.text(function), frozenset()):
                return True
        return len(seen) >= MOST_CALLEES

    def _below(self, waiting: list[tuple[p.Function, int]], seen: set[int]) -> Iterator[p.Function]:
        """The functions that wait, each with its depth, and what they may call, as far as that is looked at; each once."""
        while waiting and len(seen) < MOST_CALLEES:
            function, depth = waiting.pop()
            if id(function) in seen:
                continue
            seen.add(id(function))
            yield function
            if depth < DEEPEST:
                waiting.extend((inner, depth + 1) for inner in self.holder(function).callees(function))

    def expression_matters(self, node: p.Expression) -> bool:
        """Whether an expression holds any of the words, or calls what does. A layer, a data type, an enumeration of a library do not."""
        return kept(self._bodies, id(node), self._find_expression_matters, node)

    def _find_expression_matters(self, node: p.Expression) -> bool:
        text = _without(self.text(node), self._idle_names(node))
        return self._has_word(text) or any(self.matters(f) for f in self.called_in(node))

    def _between(self, begin: tuple[int, int], end: tuple[int, int]) -> str:
        """The source from one place to another, as far as it is code."""
        rows = self.file.words[max(begin[0] - 1, 0) : end[0]]
        if rows:
            rows[-1] = rows[-1][: max(end[1] - 1, 0)]
            rows[0] = rows[0][max(begin[1] - 1, 0) :]
        return "\n".join(rows)

    def _idle_names(self, node: p.Expression) -> set[str]:
        """The names in an expression, as spelled, that mean something of a library which neither is nor makes memory or an order."""
        called = {id(n.function) for n in p.walk(node) if isinstance(n, p.Call)}
        found: set[str] = set()
        for inner in p.walk(node):
            dotted = self.of_library(inner) if isinstance(inner, p.Attr | p.Name) else ""
            if not dotted:
                continue
            row, kind = self.file.models.call(dotted), self.file.models.type_named(dotted)
            is_layer = row is not None and row.effect == "object" and row.get("type") == "torch.nn.Module"
            only_named = kind is None and id(inner) not in called and isinstance(inner, p.Attr)
            if is_layer or (only_named and (row is None or row.effect in _PLAIN)):
                found.add(_spelled(inner))
        return found

    def decides(self, function: p.Function, depth: int = 3) -> bool:
        """Whether a body, or one that it calls, orders, copies or allocates."""
        return kept_in_rounds(self._decides, id(function), False, self._find_decides, function, depth)

    def _find_decides(self, function: p.Function, depth: int) -> bool:
        holder = self.holder(function)
        return self._decisive(holder.text(function) + holder.said.macros_in(function)) or (
            depth > 0 and any(holder.decides(callee, depth - 1) for callee in holder.callees(function))
        )

    def _decisive(self, text: str) -> bool:
        own = self.file.models.own_words
        text = meant(text)
        return any(word in text for word in (*DECISIVE, *own)) or (self.file.is_cuda and "cu" in text)

    def _has_word(self, text: str) -> bool:
        own = self.file.models.own_words
        if not self.file.is_cuda and not self.file.is_cython:
            text = cleared(text)
        if has_word(text) or any(word in text for word in own) or (self.file.is_cuda and "cu" in text):
            return True
        names = self.library_names()
        return names is not None and names.search(text) is not None

    def library_names(self) -> re.Pattern[str] | None:
        """What the file calls the libraries that hold memory (``np``), and what it imports from them."""
        if self._library_names is None:
            packages = self.file.models.packages
            names = [name for name, dotted in self.file.imports.items() if dotted.partition(".")[0] in packages]
            self._library_names = (re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b") if names else None,)
        return self._library_names[0]

    def called_in(self, *nodes: p.Node) -> Iterable[p.Function]:
        """What may be called in there: by name, which a library's own name (``nn.Linear``) means only where C++ at hand is bound to it."""
        names: set[str] = set()
        foreign: set[str] = set()
        open_names: set[str] = set()  # that may be those of C++
        inside: set[int] = set()
        for node in (inner for outer in nodes for inner in p.walk(outer)):
            if isinstance(node, p.Declare) and node.type is not None:
                names.add(node.type.name.rpartition("::")[2])  # C++: its constructor runs, and it may be called
            if not isinstance(node, p.Attr | p.Name) or id(node) in inside:
                continue
            spelled = self.of_library(node)
            if spelled:
                foreign.update(spelled.split("."))
                inside.update(id(part) for part in p.walk(node))
            else:
                names.add(name := node.name if isinstance(node, p.Attr) else node.id.rpartition("::")[2])
                if name not in open_names and not self.python.means(node):
                    open_names.add(name)
        own = self._meant(names)
        bound = own if self.file.is_cuda else self._meant(open_names)
        for name in sorted(own):
            for function in self.named(name) if name in bound else self._methods_named(name):
                yield from self._defined(function)
        for name in sorted(foreign - own):
            yield from self._bound(name)

    def of_library(self, node: p.Attr | p.Name) -> str:
        """The dotted name that a name spells, where it is that of a library out of view which holds memory; else nothing."""
        if self.file.is_cuda:
            return ""
        dotted = dotted_name(self.file, node)
        package = dotted.partition(".")[0]
        if not package or package not in self.file.models.packages:
            return ""
        return "" if kept(self._at_hand, package, self._find_at_hand, package) else dotted

    def _find_at_hand(self, package: str) -> bool:
        named = [d for d in dict.fromkeys(self.file.imports.values()) if d.partition(".")[0] == package]
        candidates = (package, *(c for d in named for c in (d, d.rpartition(".")[0]) if c))
        return any(self.file.program.python_module(c, self.file) is not None for c in candidates)

    def _meant(self, names: set[str]) -> set[str]:
        """Names, and what those that were imported under another name are called at home."""
        imports = self.file.imports
        return names | {imports[name].rpartition(".")[2] for name in names if name in imports}


def _spelled(node: object) -> str:
    """A dotted name as the source has it."""
    names: list[str] = []
    while isinstance(node, p.Attr):
        names.append(node.name)
        node = node.value
    return ".".join((node.id if isinstance(node, p.Name) else "", *reversed(names)))


def _without(text: str, names: Collection[str]) -> str:
    for name in names:
        text = re.sub(rf"(?<![\w.]){re.escape(name)}(?![\w.])", "", text)
    return text


def _behind(file: File) -> list[File]:
    """Cython: the C++ and the declarations that a file stands on."""
    return [*file.neighbours(), *file.program.declarations(file)] if file.is_cython else []


def _names_of(function: p.Function, definition: p.Class | None) -> Iterator[str]:
    """The names that may stand where it is called: its own, and its class's where an object is made or used."""
    if definition is None or function.name != "__init__":
        yield function.name
    if definition is not None and function.name in UNSAID:
        yield definition.name
    elif definition is None and function.class_name and function.name == "__init__":
        yield function.class_name.rpartition("::")[2]  # C++: a constructor that stands behind its class
