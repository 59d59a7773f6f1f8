"""C++: from a declaration in one file to the body in another, as a linker would find it."""

from __future__ import annotations

from streamlint.interpreter.index import File, Program, is_declaration
from streamlint.interpreter.questions import question
from streamlint.program import Function, functions_of

Body = tuple[Function, File]


class Linker:
    """The bodies of a program's C++ functions, by class and qualified name."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._found: dict[int, Body | None] = {}
        self._bodies: dict[tuple[str, str], list[Body]] = {}
        for file in program.cpp():
            for function, _ in functions_of(file.module):
                if not is_declaration(function):
                    self._bodies.setdefault((function.class_name, function.qualname), []).append((function, file))

    def definition(self, declared: Function, file: File) -> Body | None:
        """The body; None where several files have one of that name, and it is not plain which is meant."""
        if id(declared) not in self._found:
            self._found[id(declared)] = found = self._link(declared, file)
            if file.is_cuda:
                bodies_named(file, declared.class_name, declared.qualname)
            if found is not None:
                self.program.consulted.link(file.path, (found[1].path,))
                for own, other in zip(found[0].params, declared.params, strict=True):
                    own.default = own.default or other.default
        return self._found[id(declared)]

    def _link(self, declared: Function, file: File) -> Body | None:
        held = self.held(declared.class_name, declared.qualname)
        fitting = [(f, home) for f, home in held if _is_linked(f) and _takes_the_same(f, declared)]
        including = [(f, home) for f, home in fitting if file in self.program.included(home)] or fitting
        return including[0] if len({home.path for _, home in including}) == 1 else None

    def held(self, class_name: str, qualname: str) -> list[Body]:
        """All bodies that a declaration of these names may mean."""
        return self._bodies.get((class_name, qualname)) or self._in_parts(class_name, qualname)

    def _in_parts(self, class_name: str, qualname: str) -> list[Body]:
        """Bodies in a file that another one includes within its namespace, and that names none itself."""
        key = (class_name.rpartition("::")[2], "::".join(qualname.split("::")[-2:]))
        if not class_name or key == (class_name, qualname):
            return []
        return [(f, home) for f, home in self._bodies.get(key, ()) if self.program.includer(home) is not None]


@question
def bodies_named(file: File, class_name: str, qualname: str) -> list[tuple[str, bool, list[str], bool]]:
    """What linking goes by: where the bodies stand, what they take, and whether they include the file that declares them."""
    program = file.program
    return [
        (home.key, _is_linked(body), [p.type.name if p.type is not None else "" for p in body.params], file in program.included(home))
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
