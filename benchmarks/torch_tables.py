"""PyTorch's own tables of its operators, from a wheel that is read and not imported: the facts of each name that Python has.

``native_functions.yaml`` has the types, views and writes of all overloads, the stubs have the names. A name has one set of facts, joined
over its overloads.
"""

from __future__ import annotations

import ast
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TENSOR = "torch.Tensor"
TABLE = "torchgen/packaged/ATen/native/native_functions.yaml"
STUBS = {"torch": "torch/_C/_VariableFunctions.pyi", TENSOR: "torch/_C/__init__.pyi", "nn": "torch/_C/_nn.pyi"}
FUNCTIONAL = "torch/nn/functional.pyi"
MODULES = {"linalg": "torch.linalg", "special": "torch.special", "fft": "torch.fft"}
FETCHING = ("data_dependent_output", "dynamic_output_shape")  # tags of operators whose answer, or its size, comes back to the host
_ARGUMENT = re.compile(r"(\w+)(?:\(([\w!|>* -]+)\))?((?:\[\d*\]|\?)*) (\w+)(?:=.*)?")
_RETURNED = re.compile(r"(\w+)(?:\(([\w!|>* -]+)\))?((?:\[\d*\]|\?)*)(?: (\w+))?")
_PLAIN = frozenset("bool int float complex str Number Size dtype layout device memory_format SymInt SymBool _size".split())


@dataclass(frozen=True)
class Value:
    """An argument or a result of an operator."""

    type: str  # with its brackets: Tensor, Tensor[], Scalar?
    alias: str  # the set of memory that it is of; with ! where it is written
    name: str
    by_name: bool = False  # it has no position

    @property
    def has_tensors(self) -> bool:
        return self.type.startswith("Tensor")


@dataclass(frozen=True)
class Operator:
    """An overload."""

    name: str
    arguments: tuple[Value, ...]
    results: tuple[Value, ...]
    variants: str = "function"
    module: str = ""
    tags: str = ""


@dataclass(frozen=True)
class Facts:
    """What all overloads of a name say together. Places are written as in rows."""

    result: str  # buffer, sequence, scalar, none, self, or a view of one of the arguments
    names: tuple[str, ...] = ()  # of the parts of a tuple
    several: str = ""  # the argument that makes the result a tuple
    of: str = ""  # what a view is of
    written: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()  # arguments that no overload takes as a tensor
    has_out: bool = False
    waits: bool = False
    is_random: bool = False


# --- the tables ----------------------------------------------------------------------------------------------------------------


def operators(text: str) -> Iterator[Operator]:
    """The overloads of ``native_functions.yaml``."""
    for entry in re.split(r"^- func: ", text, flags=re.MULTILINE)[1:]:
        schema = entry.partition("\n")[0]
        called, _, rest = schema.partition("(")
        given, _, back = rest.rpartition(" -> ")
        keys = dict(re.findall(r"^  (variants|python_module|tags): (.*)$", entry, re.MULTILINE))
        arguments: list[Value] = []
        parts = _parts(given.strip().removesuffix(")"))
        for part in parts:
            if part != "*" and (found := _ARGUMENT.fullmatch(part)):
                arguments.append(Value(found[1] + found[3], _set_of(found[2]), found[4], "*" in parts[: parts.index(part)]))
        results = [
            found
            for part in _parts(back.removeprefix("(").removesuffix(")") if back[0] == "(" else back)
            if (found := _RETURNED.fullmatch(part))
        ]
        yield Operator(
            called.partition(".")[0],
            tuple(arguments),
            tuple(Value(found[1] + found[3], _set_of(found[2]), found[4] or "") for found in results),
            keys.get("variants", "function"),
            keys.get("python_module", ""),
            keys.get("tags", ""),
        )


def _set_of(alias: str | None) -> str:
    """The set of memory that ``a``, ``a!`` or ``a -> *`` names."""
    return (alias or "").partition(" ")[0]


def _parts(text: str) -> list[str]:
    """What commas outside of brackets separate."""
    return [part.strip() for part in re.split(r",(?![^(\[]*[)\]])", text) if part.strip()]


def facts_of(overloads: Sequence[Operator], is_method: bool) -> Facts | None:
    """The facts of a name; None where its overloads give things of different kinds."""
    plain = [one for one in overloads if not any(each.by_name and "!" in each.alias for each in one.arguments)]
    kinds = {_kind(one): one for one in plain or overloads}
    several = ""
    if set(kinds) == {"buffer", "sequence"}:  # ``max()`` and ``max(dim)``
        others = {each.name for one in plain if _kind(one) == "buffer" for each in one.arguments}
        place = next((each for each in kinds["sequence"].arguments if each.name not in others and not each.has_tensors), None)
        several = _place(kinds["sequence"], place, is_method) if place is not None else ""
        kinds.pop("buffer" if several else "sequence")
    if len(kinds) != 1:
        return None
    kind, one = next(iter(kinds.items()))
    names = tuple(each.name for each in one.results if each.name) if kind == "sequence" and len(one.results) > 1 else ()
    viewed = next((each for each in one.arguments if one.results and each.alias and each.alias == one.results[0].alias), None)
    written = [_place(one, each, is_method) for one in plain for each in one.arguments if each.has_tensors and "!" in each.alias]
    written = [] if kind == "same" else written
    return Facts(
        kind,
        names if len(names) == len(one.results) else (),
        several,
        _place(one, viewed, is_method) if viewed is not None and kind in ("view", "parts", "same") else "",
        tuple(dict.fromkeys(written)),
        tuple(_numbers(plain, is_method)),
        len(plain) < len(overloads),
        any(tag in one.tags for one in plain for tag in FETCHING if len(one.results) == 1),
        any("nondeterministic_seeded" in one.tags for one in plain),
    )


def _kind(one: Operator) -> str:
    """The kind of result of an overload."""
    if not one.results:
        return "none"
    first = one.results[0]
    if not first.has_tensors:
        return "scalar"
    is_list = len(one.results) > 1 or "[" in first.type
    if first.alias and not is_list:
        return "view" if "!" not in first.alias else "same" if "inplace_view" in one.tags else "self"
    if first.alias and len(one.results) == 1 and "!" not in first.alias:
        return "parts"
    return "sequence" if is_list else "buffer"


def _place(one: Operator, value: Value, is_method: bool) -> str:
    """Where an argument is in a call of Python."""
    if value.name == "self" and is_method:
        return "self"
    by_position = [each for each in one.arguments if not each.by_name and not (is_method and each.name == "self")]
    name = "input" if value.name == "self" and "[" not in value.type else value.name
    return f":{name}" if value.by_name else f"{by_position.index(value)}:{name}"


def _numbers(overloads: Sequence[Operator], is_method: bool) -> Iterator[str]:
    """The arguments that are Scalars in each overload which has them: of a tensor there, ``PythonArgs::scalar`` takes the item."""
    tensors = {each.name for one in overloads for each in one.arguments if each.has_tensors}
    seen = set()
    for one in overloads:
        for each in one.arguments:
            if each.type in ("Scalar", "Scalar?") and each.name not in tensors and each.name not in seen:
                seen.add(each.name)
                place = _place(one, each, is_method)
                at = place.partition(":")[0]
                is_mixed = at and any(_is_tensor_at(other, int(at), is_method) for other in overloads)
                yield f":{each.name}" if is_mixed else place


def _is_tensor_at(one: Operator, place: int, is_method: bool) -> bool:
    by_position = [each for each in one.arguments if not each.by_name and not (is_method and each.name == "self")]
    return place < len(by_position) and by_position[place].has_tensors


# --- the names that Python has -------------------------------------------------------------------------------------------------


def public(files: Mapping[str, str]) -> dict[str, Facts]:
    """The facts of each public name."""
    found: dict[str, Facts] = {}
    table: dict[tuple[str, str], list[Operator]] = defaultdict(list)
    for one in operators(files[TABLE]):
        table[one.module, one.name].append(one)
    for owner, path in STUBS.items():
        for name, stubs in _stubs(files[path], owner).items():
            is_method = owner == TENSOR
            variant = "method" if is_method else "function"
            overloads = [one for one in table["nn" if owner == "nn" else "", name] if variant in one.variants]
            facts = facts_of(overloads, is_method) if overloads else of_stubs(stubs)
            is_hidden = name.startswith("_") and not (facts is not None and facts.written and not name.startswith("__"))
            if facts is not None and not is_hidden and name != "Tensor":
                found[f"{owner}.{name}"] = facts
    for (module, name), overloads in table.items():
        short = name.removeprefix(f"{module}_")
        if module in MODULES and not short.startswith("_") and (facts := facts_of(overloads, False)) is not None:
            found[f"{MODULES[module]}.{short}"] = facts
    nn = {name: facts for name, facts in found.items() if name.startswith("nn.")}
    for name, facts in _functional(files[FUNCTIONAL], found):
        found[f"torch.nn.functional.{name}"] = facts
    return {name: facts for name, facts in sorted(found.items()) if name not in nn}


def _stubs(text: str, owner: str) -> dict[str, list[ast.FunctionDef]]:
    """The functions of a stub, or the methods of tensors."""
    body = ast.parse(text).body
    if owner == TENSOR:
        body = next(node.body for node in body if isinstance(node, ast.ClassDef) and node.name == "TensorBase")
    found: dict[str, list[ast.FunctionDef]] = defaultdict(list)
    for node in body:
        if isinstance(node, ast.FunctionDef):
            found[node.name].append(node)
    return found


def of_stubs(stubs: Iterable[ast.FunctionDef]) -> Facts | None:
    """The facts of a name that is written by hand, of what it returns."""
    kinds = {_annotated(ast.unparse(node.returns)) if node.returns is not None else "" for node in stubs}
    return Facts(kinds.pop()) if len(kinds) == 1 and "" not in kinds else None


def _annotated(text: str) -> str:
    """The kind of result of an annotation."""
    if text in ("Tensor", "None"):
        return {"Tensor": "buffer", "None": "none"}[text]
    words = set(re.findall(r"\w+", text.replace("torch.", ""))) - {"tuple", "list"}
    if words == {"Tensor"} and "|" not in text:
        return "sequence"
    return "scalar" if words and {word.removeprefix("_") for word in words} <= _PLAIN | {"size"} else ""


def _functional(text: str, known: Mapping[str, Facts]) -> Iterator[tuple[str, Facts]]:
    """``torch.nn.functional``: what it takes from elsewhere, and its own functions."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.ImportFrom) and node.module in ("torch", "torch._C._nn"):
            for item in node.names:
                facts = known.get(f"{'nn' if node.module != 'torch' else 'torch'}.{item.name}")
                if facts is not None:
                    yield item.asname or item.name, facts
    for name, stubs in _stubs(text, "").items():
        if not name.startswith("_") and (facts := of_stubs(stubs)) is not None:
            yield name, facts


def read(wheel: Path) -> dict[str, str]:
    """The tables in a wheel, or in a folder with one unpacked."""
    paths = (TABLE, *STUBS.values(), FUNCTIONAL)
    if wheel.is_dir():
        return {path: (wheel / path).read_text(encoding="utf-8") for path in paths}
    with zipfile.ZipFile(wheel) as archive:
        return {path: archive.read(path).decode() for path in paths}
