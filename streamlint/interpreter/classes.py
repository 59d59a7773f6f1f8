"""Classes at hand: their bases, and which of their methods a name means."""

from __future__ import annotations

from collections.abc import Sequence

from streamlint import program as p
from streamlint.interpreter.index import File, accepts, is_declaration
from streamlint.interpreter.run import Frame, Run
from streamlint.interpreter.values import (
    ClassValue,
    Environment,
    Instance,
    LibraryName,
)


def bases_of(run: Run, definition: p.Class, file: File) -> list[tuple[p.Class | None, File, str]]:
    """The direct bases: (class at hand or None, its file, dotted name)."""
    found: list[tuple[p.Class | None, File, str]] = []
    for base in definition.bases:
        if file.is_cuda:
            name = base.id if isinstance(base, p.Name) else ""
            found.append((*(file.class_at_hand(name) or (None, file)), name))
            continue
        with run.entered(Frame(None, file, Environment(), qualname=definition.qualname), None):
            value = run.evaluate(base.value if isinstance(base, p.Index) else base)
        if isinstance(value, ClassValue):
            found.append((value.definition, value.file, value.definition.qualname))
        else:
            found.append((None, file, value.name if isinstance(value, LibraryName) else ""))
    return found


def lineage(run: Run, definition: p.Class, file: File) -> list[tuple[p.Class, File]]:
    """A class at hand and its bases at hand, nearest first."""
    key = f"lineage:{file.path}:{definition.qualname}"
    cached = run.lines.get(key)
    if cached is not None:
        return cached
    found: list[tuple[p.Class, File]] = [(definition, file)]
    run.lines[key] = found[:]
    for base, owner, _ in bases_of(run, definition, file):
        if base is not None and base is not definition:
            found.extend(pair for pair in lineage(run, base, owner) if pair not in found)
    run.lines[key] = found
    return found


def library_bases(run: Run, definition: p.Class, file: File) -> set[str]:
    """Dotted names of the bases that are not at hand."""
    return {name for c, f in lineage(run, definition, file) for base, _, name in bases_of(run, c, f) if base is None and name}


def find_method(run: Run, definition: p.Class, file: File, name: str, arity: int | None = None) -> tuple[p.Function, p.Class, File] | None:
    for owner, source in lineage(run, definition, file):
        found = _cpp_method(run, owner, source, name, arity) if file.is_cuda else _first(owner.methods.get(name, ()), source)
        if found is not None:
            return found[0], owner, found[1]
    return None


def _first(overloads: Sequence[p.Function], source: File) -> tuple[p.Function, File] | None:
    return (overloads[0], source) if overloads else None


def _cpp_method(run: Run, owner: p.Class, source: File, name: str, arity: int | None) -> tuple[p.Function, File] | None:
    """A method by name and number of arguments; its body may stand behind the class, or in another file."""
    overloads = list(owner.methods.get(name, ()))
    outside = source.functions.get(f"{owner.qualname}::{_SPELLED.get(name, '{0}').format(name, owner.name)}", ())
    bodies = [f for f in overloads if not is_declaration(f)]
    fitting = [f for f in bodies if arity is None or accepts(f, arity)]
    if fitting:
        return fitting[0], source
    declared = [f for f in (*overloads, *outside) if is_declaration(f) and f.class_name == owner.qualname]
    for function in declared:
        if (arity is None or accepts(function, arity)) and (linked := run.program.definition(function, source)) is not None:
            return linked
    if not overloads:
        return None
    return _first([f for f in outside if not is_declaration(f)] or bodies or overloads, source)


# What stands for a constructor or a destructor in a qualified name.
_SPELLED = {"__init__": "{1}", "__del__": "~{1}"}


def has_member(this: Instance, name: str) -> bool:
    return name in this.attrs or any(f.name == name for f in this.definition.fields)
