"""What the C++ of a program makes known to Python, by name: bindings, operators of PyTorch's dispatcher, tables of the C API, symbols.

A name that several files bind means none of them, unless one stands nearest to the file that asks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeVar

from streamlint import program as p
from streamlint.interpreter.bindings import Binding, bindings_of, registered
from streamlint.interpreter.index import File, Program, is_declaration
from streamlint.interpreter.interface import EXTENSION, Interface
from streamlint.interpreter.questions import Led, about_exports
from streamlint.reading import shared_folders
from streamlint.record import field, record, replace

Kind = Literal["binding", "operator", "table", "inline", "symbol", "held"]  # held: a symbol that is called with the GIL

_OPENERS = ("PYBIND11_MODULE", "PYBIND11_EMBEDDED_MODULE", "PYBIND11_PLUGIN", "NB_MODULE", "NB_MODULE_")
_NAMED_BY_BUILD = "TORCH_EXTENSION_NAME"
_OTHER_DEVICES = frozenset({"CPU", "Meta", "MPS", "XPU", "HPU", "QuantizedCPU", "MkldnnCPU"})
_SYMBOL = re.compile(r'extern\s+"C"|dllexport|visibility\s*\(\s*"default"')
_TABLE_TYPES = ("PyMethodDef",)


@record(frozen=True, slots=True)
class Export:
    """A function of ``file`` that Python knows by a name; ``function`` is it, where no binding has to be asked for it."""

    kind: Kind
    file: File
    binding: Binding | None = None
    function: p.Function | None = None


@record(slots=True)
class ExportedClass:
    """A C++ class that Python knows: its binding's type, and what is bound to it by name."""

    file: File
    kind: p.Type
    members: dict[str, list[Export]] = field(default_factory=dict)


Names = dict[str, list[Export]]


class Exports:
    """All that a program's C++ exports."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.modules: dict[str, Names] = {}
        self.loose: Names = {}  # bound in functions that are given the module
        self.operators: Names = {}
        self.classes: dict[str, list[ExportedClass]] = {}
        self.by_type: dict[tuple[str, str], ExportedClass] = {}
        self.symbols: Names = {}
        self.inline: dict[str, Names] = {}
        for file in program.cpp():
            self._take(file.key, file)
        self.any = bool(self.modules or self.operators or self.symbols or self.inline or self.loose)
        self._found: dict[tuple[str, str], Sequence[Export] | ExportedClass | None] = {}

    # --- what there is ----------------------------------------------------------------------------------------------------------------

    def _take(self, key: str, file: File) -> None:
        for binding in bindings_of(file):
            self._take_binding(file, binding)
        for binding in (*bindings_of(file, "operator"), *registered(file)):
            name = _first_text(binding.call).partition("(")[0].rpartition("::")[2].partition(".")[0].strip()
            if name and len(binding.call.args) > 1 and not _is_elsewhere(binding):
                self.operators.setdefault(f"{_namespace(binding)}::{name}", []).append(Export("operator", file, binding))
        for name, function, module in _tables(file):
            names = self.modules.setdefault(module, {}) if module else self.loose
            names.setdefault(name, []).append(Export("table", file, function=function))
        if "#inline" in key:
            names = self.inline.setdefault(file.path, {})
            for function in _plain(file):
                kind: Kind = "inline" if function.name in file.module.bound else "symbol"
                names.setdefault(function.name, []).append(Export(kind, file, function=function))
        if _SYMBOL.search(file.module.text):
            for function in _plain(file):
                if not function.static and not is_declaration(function):
                    self.symbols.setdefault(function.name, []).append(Export("symbol", file, function=function))

    def _take_binding(self, file: File, binding: Binding) -> None:
        name = _first_text(binding.call)
        self.program.adopt(binding.thunk, file)
        export = Export("binding", file, binding)
        if binding.receiver.name.rpartition("::")[2] == "class_":
            self._take_member(file, binding, name or ("__init__" if binding.is_constructor else ""), export)
        elif name:
            opened = binding.within.name in _OPENERS and binding.within.params
            names = self.modules.setdefault(_module_name(binding.within), {}) if opened else self.loose
            names.setdefault(name, []).append(export)

    def _take_member(self, file: File, binding: Binding, name: str, export: Export) -> None:
        public = _class_name(binding)
        if not public or not binding.receiver.args:
            return
        kind = binding.receiver.args[0]
        key = (file.path, kind.name)
        if key not in self.by_type:
            self.by_type[key] = ExportedClass(file, kind)
            self.classes.setdefault(public, []).append(self.by_type[key])
            if binding.within.name in _OPENERS and binding.within.params:
                self.modules.setdefault(_module_name(binding.within), {})
        if name:
            self.by_type[key].members.setdefault(name, []).append(export)

    # --- what a name means -------------------------------------------------------------------------------------------------------------

    def find(self, name: str, asking: str, known: bool) -> Sequence[Export] | ExportedClass | None:
        """What a dotted name of the Python file ``asking`` stands for, as far as one file alone binds it; ``known``: it is a library's."""
        key = (name, asking)
        if key not in self._found:
            self._found[key] = self._find(name, asking, known) if self.any else None
        return self._found[key]

    def _find(self, name: str, asking: str, known: bool) -> Sequence[Export] | ExportedClass | None:
        parts = [part for part in name.split(".") if part]
        if len(parts) > 3 and parts[:2] == ["torch", "ops"]:
            return _one(self._operators(parts[2], parts[3]), asking)
        if name.startswith(EXTENSION):
            return self._in_extension(name, asking)
        last, heads = parts[-1], parts[:-1]
        for head in reversed(heads):
            if head in self.modules and head != "":
                return self._in_module(self.modules[head], last, asking)
        if not heads or known:
            return None
        if heads[-1] == "lib" and last in self.symbols:  # cffi's compiled modules
            return _one(self.symbols[last], asking)
        return self._in_module(self.modules[""], last, asking) if "" in self.modules else None

    def _operators(self, space: str, name: str) -> list[Export]:
        """The implementations of an operator: the one for CUDA first."""
        found = [*self.operators.get(f"{space}::{name}", ()), *self.operators.get(f"::{name}", ())]
        for_cuda = [e for e in found if e.binding is not None and "CUDA" in _key_of(e.binding)]
        return for_cuda or found

    def _in_module(self, names: Names, last: str, asking: str) -> Sequence[Export] | ExportedClass | None:
        found = names.get(last) or self.loose.get(last)
        if found:
            return _one(found, asking)
        return _nearest(self.classes.get(last, ()), asking)

    def _in_extension(self, name: str, asking: str) -> Sequence[Export] | ExportedClass | None:
        held, _, last = name.removeprefix(EXTENSION).rpartition(".")
        part, _, where = held.partition(":")
        if part in ("symbols", "held"):
            found = _one(self.symbols.get(last, ()), asking)
            return [replace(export, kind="held") for export in found] if found and part == "held" else found
        every = [names.get(last, ()) for names in (*self.modules.values(), self.loose)]
        if part == "inline":
            bound = [e for exports in every for e in exports if e.file.path == where]
            own = [e for e in self.inline.get(where, {}).get(last, ()) if e.function is not None]
            whole = [e for e in own if e.function is not None and not is_declaration(e.function)]
            classes = [c for c in self.classes.get(last, ()) if c.file.path == where]
            return bound or whole[:1] or own[:1] or (classes[0] if classes else None)
        sources = {source.replace("/", ".") for source in where.split(",")} if where else set()
        found = [e for exports in every for e in exports if not sources or os.path.basename(e.file.path) in sources]
        if found:
            return _one(found, asking)
        classes = [c for c in self.classes.get(last, ()) if not sources or os.path.basename(c.file.path) in sources]
        return _nearest(classes, asking)

    def class_of(self, qualname: str, last: str, key: str) -> ExportedClass | None:
        """What Python knows of the objects of a C++ class, by its names and by the key of the file that defines it."""
        fitting = [e for (_, name), e in self.by_type.items() if name == qualname or name.rpartition("::")[2] == last]
        return next((e for e in fitting if e.file.key == key), None) or _nearest(fitting, key.partition("#")[0])

    # --- by names alone ----------------------------------------------------------------------------------------------

    def interface(self) -> Interface:
        """What Python may see of this."""
        tables = (*self.modules.values(), self.loose, self.symbols, *self.inline.values())
        names = {name for table in tables for name in table} | set(self.classes)
        names |= {name for exported in self.by_type.values() for name in exported.members}
        names |= {key.rpartition("::")[2] for key in self.operators}
        unnamed = sorted({*self.modules[""], *self.loose, *self.classes}) if "" in self.modules else None
        return Interface(self.any, sorted(name for name in self.modules if name), unnamed, bool(self.symbols), sorted(names))

    def named(self, name: str) -> list[Export]:
        """What Python may call by a name."""
        tables: Iterable[Names] = (*self.modules.values(), self.loose, self.symbols, *self.inline.values())
        found = [export for names in tables for export in names.get(name, ())]
        found += [export for exported in self.classes.get(name, ()) for export in exported.members.get("__init__", ())]
        found += [export for exported in self.by_type.values() for export in exported.members.get(name, ())]
        return found + [export for key, exports in self.operators.items() if key.rpartition("::")[2] == name for export in exports]

    def functions_named(self, name: str) -> list[p.Function]:
        """The functions, or what binds them, that Python may call by a name."""
        return [function for export in self.named(name) for function in _shown(export)]


# --- what Python rests on: which files the answers lead to ------------------------------------------------------------------------------


@about_exports
def named(exports: Exports, name: str) -> list[Led]:
    """What Python may call by a name."""
    return [(export.file.key, export.kind) for export in exports.named(name)]


@about_exports
def meant(exports: Exports, name: str, asking: str, known: str) -> list[Led]:
    """What a name means in a Python file."""
    found = exports.find(name, asking, bool(known))
    if isinstance(found, ExportedClass):
        return [(found.file.key, found.kind.name)]
    return [(export.file.key, export.kind) for export in found or ()]


@about_exports
def known_class(exports: Exports, qualname: str, last: str, key: str) -> list[Led]:
    """What Python knows of a C++ class."""
    found = exports.class_of(qualname, last, key)
    return [(found.file.key, found.kind.name)] if found is not None else []


def _shown(export: Export) -> Iterator[p.Function]:
    if export.function is not None:
        yield export.function
    elif export.binding is not None:
        export.file.program.adopt(export.binding.thunk, export.file)
        yield export.binding.thunk
        yield from export.file.relevance.callees(export.binding.thunk)


def _one(found: Sequence[Export], asking: str) -> Sequence[Export] | None:
    """The exports of one file: all of them are overloads; of several files the one nearest to who asks."""
    home = _nearest(list({export.file.path: export for export in found}.values()), asking)
    return [export for export in found if export.file is home.file] if home is not None else None


_Placed = TypeVar("_Placed", Export, ExportedClass)


def _nearest(found: Sequence[_Placed], asking: str) -> _Placed | None:
    """The one in the file that is nearest to who asks; None where two are equally near."""
    ranked = sorted(found, key=lambda each: -shared_folders(each.file.path, asking))
    if len(ranked) > 1 and shared_folders(ranked[0].file.path, asking) == shared_folders(ranked[1].file.path, asking):
        return None
    return ranked[0] if ranked else None


# --- names within a binding ------------------------------------------------------------------------------------------------------------


def _first_text(call: p.Call) -> str:
    first = call.args[0].value if call.args else None
    if isinstance(first, p.Call) and first.args:  # TORCH_SELECTIVE_SCHEMA("…"), torch::schema("…")
        first = first.args[0].value
    return first.value if isinstance(first, p.Const) and isinstance(first.value, str) else ""


def _module_name(within: p.Function) -> str:
    name = within.params[0].name
    return "" if name == _NAMED_BY_BUILD else name


def _namespace(binding: Binding) -> str:
    params = binding.within.params
    if not binding.within.name.startswith("TORCH_LIBRARY") or not params:
        return _first_text(binding.call).partition("(")[0].rpartition("::")[0].strip()
    return "" if params[0].name == _NAMED_BY_BUILD or params[0].name.isupper() else params[0].name


def _key_of(binding: Binding) -> str:
    """For which device an implementation is registered, as it is spelled."""
    params = binding.within.params
    own = params[1].name if binding.within.name.startswith("TORCH_LIBRARY_IMPL") and len(params) > 2 else ""
    named = [n.id for arg in binding.call.args[1:-1] for n in p.walk(arg.value) if isinstance(n, p.Name)]
    return " ".join([own, *named])


def _is_elsewhere(binding: Binding) -> bool:
    words = {word.rpartition("::")[2].removeprefix("k") for word in _key_of(binding).split()}
    return bool(words & _OTHER_DEVICES) or any(word.startswith("Autograd") for word in words)


def _class_name(binding: Binding) -> str:
    """The name that Python knows a class by: the text among the arguments of its ``class_``."""
    node: p.Expression | None = binding.call.function
    while isinstance(node, p.Attr | p.Call):
        if isinstance(node, p.Call) and not isinstance(node.function, p.Attr):
            return _text_in(node.args)
        node = node.value if isinstance(node, p.Attr) else node.function
    if isinstance(node, p.Construct):
        return _text_in(node.args)
    if isinstance(node, p.Name):
        declared = next((d for d in p.walk(binding.within) if isinstance(d, p.Declare) and d.name == node.id), None)
        if declared is not None and declared.args is not None:
            return _text_in(declared.args)
        if declared is not None and isinstance(declared.value, p.Construct | p.Call):
            return _text_in(declared.value.args)
    return ""


def _text_in(args: Sequence[p.Arg]) -> str:
    return next((a.value.value for a in args if isinstance(a.value, p.Const) and isinstance(a.value.value, str)), "")


def _plain(file: File) -> Iterator[p.Function]:
    """The functions of a file that belong to no class, in whatever namespace."""
    for overloads in file.module.functions.values():
        yield from (f for f in overloads if f.space == "host" and f.name.isidentifier() and not f.class_name and not f.template)


# --- tables of the C API ---------------------------------------------------------------------------------------------------------------


def _tables(file: File) -> Iterator[tuple[str, p.Function, str]]:
    """``{"wait", wait_method, …}`` in a PyMethodDef table of a module: name, function, and the module's name."""
    if "PyMethodDef" not in file.module.text or "PyModuleDef" not in file.module.text:
        return
    declared = [s for s in (*file.module.body, *file.module.globals) if isinstance(s, p.Declare) and s.value is not None]
    modules = {
        n.id: _module_of(d) for d in declared if d.type.name.endswith("PyModuleDef") for n in p.walk(d.value) if isinstance(n, p.Name)
    }
    for table in dict.fromkeys(declared):
        if table.type.name not in _TABLE_TYPES or table.name not in modules:
            continue
        for row in table.value.items if isinstance(table.value, p.Collection) else ():
            items = row.items if isinstance(row, p.Collection) else ()
            named = [n.id for item in items[1:2] for n in p.walk(item) if isinstance(n, p.Name) and n.id in file.functions]
            function = file.function(named[0]) if named else None
            if function is not None and isinstance(items[0], p.Const) and isinstance(items[0].value, str):
                yield items[0].value, function, modules[table.name]


def _module_of(declared: p.Declare) -> str:
    texts = [n.value for n in p.walk(declared.value) if isinstance(n, p.Const) and isinstance(n.value, str)]
    return texts[0].rpartition(".")[2] if texts else ""
