"""C++: from a declaration in one file to the body in another, as a linker would find it."""

from __future__ import annotations

from collections.abc import Collection
from itertools import takewhile
from pathlib import PurePosixPath

from streamlint.interpreter.index import File, Program, is_declaration
from streamlint.interpreter.questions import question
from streamlint.program import Function, functions_of

Body = tuple[Function, File]
_MOST_ALTERNATIVES = 4  # files that define a function: of more it is not known which are meant


class Linker:
    """The bodies of a program's C++ functions, by class and qualified name."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._found: dict[int, tuple[Body, ...]] = {}
        self._alternatives: dict[int, tuple[Body, ...]] = {}  # by the first body of several
        self._bodies: dict[tuple[str, str], list[Body]] = {}
        for file in program.cpp():
            for function, _ in functions_of(file.module):
                if not is_declaration(function):
                    self._bodies.setdefault((function.class_name, function.qualname), []).append((function, file))

    def definition(self, declared: Function, file: File) -> Body | None:
        """The body; the first, where a build takes one of several. None where it is not plain which are meant."""
        if id(declared) not in self._found:
            self._found[id(declared)] = found = self._link(declared, file)
            if file.is_cuda:
                bodies_named(file, declared.class_name, declared.qualname)
            self.program.consulted.link(file.path, (home.path for _, home in found))
            for function, _ in found:
                for own, other in zip(function.params, declared.params, strict=True):
                    own.default = own.default or other.default
            if len(found) > 1:
                self._alternatives[id(found[0][0])] = found
        return next(iter(self._found[id(declared)]), None)

    def alternatives(self, function: Function) -> tuple[Body, ...]:
        """The bodies of which a build takes one, where ``function`` is the first of them; else none."""
        return self._alternatives.get(id(function), ())

    def _link(self, declared: Function, file: File) -> tuple[Body, ...]:
        held = self.held(declared.class_name, declared.qualname)
        fitting = [(f, home) for f, home in held if _is_linked(f) and _takes_the_same(f, declared)]
        including = [(f, home) for f, home in fitting if file in self.program.included(home)] or fitting
        by_path = {home.path: (f, home) for f, home in reversed(including)}
        if len(by_path) == 1:
            return (including[0],)
        by_text = {home.module.text: (f, home) for f, home in nearest(file, by_path.values())}
        return tuple(sorted(by_text.values(), key=lambda body: body[1].path)) if len(by_text) <= _MOST_ALTERNATIVES else ()

    def held(self, class_name: str, qualname: str) -> list[Body]:
        """All bodies that a declaration of these names may mean."""
        return self._bodies.get((class_name, qualname)) or self._in_parts(class_name, qualname)

    def _in_parts(self, class_name: str, qualname: str) -> list[Body]:
        """Bodies in a file that another one includes within its namespace, and that names none itself."""
        key = (class_name.rpartition("::")[2], "::".join(qualname.split("::")[-2:]))
        if not class_name or key == (class_name, qualname):
            return []
        return [(f, home) for f, home in self._bodies.get(key, ()) if self.program.includer(home) is not None]


def nearest(file: File, bodies: Collection[Body]) -> list[Body]:
    """Those of some bodies whose files have the most folders above them in common with a file."""
    shared = [len(shared_folders(file.path, home.path)) for _, home in bodies]
    return [body for body, count in zip(bodies, shared, strict=True) if count == max(shared)]


def shared_folders(*paths: str) -> tuple[str, ...]:
    """The folders above some files that are above all of them."""
    above = [PurePosixPath(path.replace("\\", "/")).parent.parts for path in paths]
    return tuple(parts[0] for parts in takewhile(lambda parts: len(set(parts)) == 1, zip(*above, strict=False)))


@question
def bodies_named(file: File, class_name: str, qualname: str) -> list[tuple[str, bool, list[str], bool, int]]:
    """What linking goes by: where the bodies stand, what they take, whether they include the file that declares them, and copies."""
    program = file.program
    texts = [home.module.text for _, home in program.linker.held(class_name, qualname)]
    return [
        (
            home.key,
            _is_linked(body),
            [p.type.name if p.type is not None else "" for p in body.params],
            file in program.included(home),
            texts.index(home.module.text),
        )
        for body, home in program.linker.held(class_name, qualname)
    ]


def _takes_the_same(one: Function, other: Function) -> bool:
    """Whether two functions have parameters of the same types, as far as they are spelled."""
    pairs = zip(one.params, other.params, strict=False)
    return len(one.params) == len(other.params) and all(
        a.type is None or b.type is None or a.type.name.rpartition("::")[2] == b.type.name.rpartition("::")[2] for a, b in pairs
    )


def _is_linked(function: Function) -> bool:
    """Whether other files can call it: host code that is not private to its file."""
    return function.space == "host" and (bool(function.class_name) or not function.static)
