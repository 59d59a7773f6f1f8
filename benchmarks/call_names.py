"""The plainest call graph: a call may reach every function of the package that has the right name."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

Target = tuple[str, str]  # file, qualified name
CONSTRUCTORS = ("__init__", "__new__")


def graph(root: Path) -> Callable[[str, int], set[Target]]:
    """`targets(file, line)` for a package: the functions named as what calls on the line name, and constructors of such classes."""
    trees = {path.relative_to(root).as_posix(): ast.parse(path.read_bytes()) for path in sorted(root.rglob("*.py"))}
    named: defaultdict[str, set[Target]] = defaultdict(set)
    for file, tree in trees.items():
        for name, qualified in definitions(tree):
            named[name].add((file, qualified))
    for name, constructors in list(inherited(trees, named)):
        named[name] |= constructors
    lines: defaultdict[tuple[str, int], set[Target]] = defaultdict(set)
    for file, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                lines[file, node.lineno] |= named.get(said(node.func), set())
    return lambda file, line: lines.get((file, line), set())


def definitions(node: ast.AST, above: str = "") -> Iterator[tuple[str, str]]:
    """The names that calls may use, with the qualified names of the functions that they reach, as the interpreter spells them."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            methods = [part.name for part in child.body if isinstance(part, ast.FunctionDef)]
            yield from ((child.name, f"{above}{child.name}.{name}") for name in CONSTRUCTORS if name in methods)
            yield from definitions(child, f"{above}{child.name}.")
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child.name, above + child.name
            yield from definitions(child, f"{above}{child.name}.<locals>.")
        else:
            yield from definitions(child, above)


def inherited(trees: Mapping[str, ast.Module], named: Mapping[str, set[Target]]) -> Iterator[tuple[str, set[Target]]]:
    """For each class the constructors of the classes that its bases may be, by their names, however far up."""
    bases: defaultdict[str, set[str]] = defaultdict(set)
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                bases[node.name] |= {said(base) for base in node.bases}
    for name in list(bases):
        met, waiting = {name}, [name]
        while waiting:
            new = bases.get(waiting.pop(), set()) - met
            met |= new
            waiting += new
        yield name, {target for above in met for target in named.get(above, set()) if target[1].rpartition(".")[2] in CONSTRUCTORS}


def said(node: ast.expr) -> str:
    """The last name of an expression; none if it does not end in one."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
