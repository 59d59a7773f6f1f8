"""Classes at hand: their bases, and which of their methods a name means."""

from __future__ import annotations

from streamlint import program as p
from streamlint.interpreter.index import File, accepts, is_declaration
from streamlint.interpreter.run import Frame, Run
from streamlint.interpreter.values import (
    ClassValue,
    Environment,
    Instance,
    LibraryName,
    Series,
)


def bases_of(run: Run, definition: p.Class, file: File) -> list[tuple[p.Class | None, File, str]]:
    """The direct bases: (class at hand or None, its file, dotted name)."""
    found: list[tuple[p.Class | None, File, str]] = []
    for base in definition.bases:
        if file.is_cuda:
            name = base.id if isinstance(base, p.Name) else ""
            owner = next((f for f in (file, *file.neighbours()) if f.class_named(name) is not None), None)
            found.append((owner.class_named(name) if owner else None, owner or file, name))
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
    cached = run.memo.get(key)
    if isinstance(cached, Series):
        return [(c.definition, c.file) for c in cached.items or [] if isinstance(c, ClassValue)]
    found: list[tuple[p.Class, File]] = [(definition, file)]
    run.memo[key] = Series([ClassValue(definition, file)])
    for base, owner, _ in bases_of(run, definition, file):
        if base is not None and base is not definition:
            found.extend(pair for pair in lineage(run, base, owner) if pair not in found)
    run.memo[key] = Series([ClassValue(c, f) for c, f in found])
    return found


def library_bases(run: Run, definition: p.Class, file: File) -> set[str]:
    """Dotted names of the bases that are not at hand."""
    return {name for c, f in lineage(run, definition, file) for base, _, name in bases_of(run, c, f) if base is None and name}


def find_method(run: Run, definition: p.Class, file: File, name: str, arity: int | None = None) -> tuple[p.Function, p.Class, File] | None:
    for owner, source in lineage(run, definition, file):
        overloads = list(owner.methods.get(name, ()))
        if file.is_cuda:
            bodies = [f for f in overloads if not is_declaration(f)]
            fitting = [f for f in bodies if arity is None or accepts(f, arity)]
            if not fitting and overloads:
                fitting = [f for f in source.functions.get(f"{owner.qualname}::{name}", ()) if not is_declaration(f)] or bodies or overloads
            overloads = fitting
        if overloads and file.is_cuda and is_declaration(overloads[0]):
            linked = run.program.definition(overloads[0], source)
            return (linked[0], owner, linked[1]) if linked is not None else (overloads[0], owner, source)
        if overloads:
            return overloads[0], owner, source
    return None


def has_member(this: Instance, name: str) -> bool:
    return name in this.attrs or any(f.name == name for f in this.definition.fields)
