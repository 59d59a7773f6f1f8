"""What a function finds outside of itself: the module's own statements that give a value to a name which it says, or which those say."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator

from streamlint import program as p
from streamlint.interpreter.index import File
from streamlint.interpreter.letters import names_in_text
from streamlint.interpreter.no_stream import CURRENT, HOST_EVENTS, without_host_events, without_standard, without_text

# A word that changes the meaning of code anywhere in its file, where it has each allocation go to the driver (``File.settings``).
FILE_WIDE = frozenset({"set_allocator"})


class Outside:
    """Literals in a module's own statements, by the names that lead to them. In C++ a file's own statements hold for all of it."""

    def __init__(self, file: File, words: frozenset[str], text: Callable[[p.Node], str]) -> None:
        always = set(words & FILE_WIDE) if any(file.settings.values()) else set[str]()
        words -= FILE_WIDE
        found: dict[str, set[str]] = {}
        said: dict[str, set[str]] = {}  # the names that stand where a name is given its value
        for names, own in (part for statement in file.module.body for part in _parts(statement, file, text)):
            held = {word for word in words if word in own}
            if not names:
                always |= held
            for name in names:
                found.setdefault(name, set()).update(held)
                said.setdefault(name, set()).update(names_in_text(own))
        self.always = frozenset(always)
        self.leads = _grouped(found, said)

    def of(self, said: Collection[frozenset[str]]) -> frozenset[str]:
        """The literals that names lead to."""
        return self.always.union(*(words for names, words in self.leads if not all(map(names.isdisjoint, said))))


def _grouped(found: dict[str, set[str]], said: dict[str, set[str]]) -> list[tuple[frozenset[str], frozenset[str]]]:
    """The names that lead to the same literals; those that lead to none are left out."""
    changed = True
    while changed:
        changed = False
        for name, others in said.items():
            more = set[str]().union(*(found[other] for other in others & found.keys()))
            if not more <= found[name]:
                found[name] |= more
                changed = True
    groups: dict[frozenset[str], list[str]] = {}
    for name, words in found.items():
        if words:
            groups.setdefault(frozenset(words), []).append(name)
    return [(frozenset(names), words) for words, names in groups.items()]


def _bound(statement: p.Statement) -> Iterator[str]:
    """The names that a statement, or one in it, gives a value to; none where that cannot be told."""
    names = set(_bound_in(statement))
    if "*" not in names:
        yield from names


def _parts(statement: p.Statement, file: File, text: Callable[[p.Node], str]) -> Iterator[tuple[set[str], str]]:
    """What a statement of a module says, and for which names; for the whole file, if there are none."""
    if isinstance(statement, p.FunctionDef | p.ClassDef):
        return
    if file.is_cuda:
        yield set(), without_standard(text(statement))
    elif isinstance(statement, p.Import):
        for local, dotted, name in statement.names:
            yield {local} - {"*"}, without_text(f"{dotted} {name or ''} {local}") if _tells(dotted, name or "", file) else ""
    else:
        names = names_given(statement, file)
        if names or not is_main_guard(statement):
            yield names, without_host_events(without_text(text(statement)), ())


def names_given(statement: p.Statement, file: File) -> set[str]:
    """The names that lead to what a statement of a module does; none where it holds for the whole file."""
    return set(_bound(statement)) or _spoken_to(statement, file)


def _tells(dotted: str, name: str, file: File) -> bool:
    """Whether anything is known of what is imported, other than that it gives the current stream."""
    head = dotted.partition(".")[0]
    modules = (dotted, f"{dotted}.{name}") if name and name != "*" else (dotted,)
    if modules[-1] in HOST_EVENTS:
        return False
    if not head or any(file.program.python_module(module, file) is not None for module in modules):
        return True
    return name not in CURRENT and (file.models.is_known(head) or head in sys.stdlib_module_names)


def _spoken_to(statement: p.Statement, file: File) -> set[str]:
    """The module's own names in a statement that gives none a value: what it does, it does to these, if there are any."""
    if not isinstance(statement, p.ExprStatement):
        return set()
    said = {node.id for node in p.walk(statement.value) if isinstance(node, p.Name)}
    return (said & file.globals.keys()) - file.module.imports.keys()


def _bound_in(statement: p.Statement) -> Iterator[str]:
    for node in p.walk(statement):
        if isinstance(node, p.Import):
            yield from ("*" if name == "*" else local for local, _, name in node.names)
        elif isinstance(node, p.Assign):
            yield from _names(node.targets)
        elif isinstance(node, p.Loop) and node.target is not None:
            yield from _names((node.target,))
        elif isinstance(node, p.With):
            yield from _names(target for _, target in node.items if target is not None)
        elif isinstance(node, p.FunctionDef):
            yield node.function.name
        elif isinstance(node, p.ClassDef):
            yield node.definition.name


def _names(targets: Iterable[p.Expression]) -> Iterator[str]:
    yield from (node.id for target in targets for node in p.walk(target) if isinstance(node, p.Name))


def is_main_guard(statement: object) -> bool:
    """``if __name__ == "__main__":``."""
    test = statement.test if isinstance(statement, p.If) else None
    return isinstance(test, p.Compare) and any(isinstance(side, p.Name) and side.id == "__name__" for side in (test.left, test.right))
