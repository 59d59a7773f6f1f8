"""What PyTorch's own tables say of its operators: compared with the rows of the models, and written as rows.

    python benchmarks/torch_operators.py WHEEL [--write] [--all]

WHEEL is a wheel of torch, or a folder with one unpacked. The disagreements with the rows that the models give today are printed by kind,
with ``--all`` each by its name. With ``--write`` the rows of ``torch_operators.toml`` are made anew: of the names that no exact row in a
file written by hand is about, those of which the row of a pattern says something else.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from torch_tables import TENSOR, Facts, public, read

from streamlint import models as shipped
from streamlint.models import Models, Row, builtin
from streamlint.models.vocabulary import Selector
from streamlint.support.toml import read_rows

ROWS = Path(shipped.__file__).parent / "torch_operators.toml"


# --- what the rows say ---------------------------------------------------------------------------------------------------------


def row_of(models: Models, name: str) -> Row | None:
    """The row that the models give for a name."""
    owner, _, last = name.rpartition(".")
    return models.method(owner, last) if owner == TENSOR else models.call(name)


def disagreements(models: Models, name: str, facts: Facts) -> Iterator[str]:
    """What the row of a name says otherwise, in words."""
    row = row_of(models, name)
    if row is None or row.effect == "unknown":
        return
    said = _said(row)
    if facts.names and said in ("buffer", "sequence") and _parts_of(models, row) != facts.names:
        yield "names of a tuple's parts not known"
    elif facts.result in ("sequence", "parts") and said == "buffer" and not facts.several:
        yield "tuple taken for a tensor"
    if facts.result == "scalar" and said not in ("scalar", "device"):
        yield "plain value taken for a tensor"
    if facts.result == "none" and said not in ("none", "scalar"):
        yield "nothing taken for a tensor"
    if facts.result in ("buffer", "sequence", "self") and said in ("scalar", "none"):
        yield "tensor taken for a plain value"
    if facts.of and said in ("buffer", "sequence", "scalar", "none"):
        yield "view taken for new memory"
    if facts.result == "same" and said == "self":
        yield "new shape taken for a write"
    written = {place.partition(":")[0] or place for key in ("writes", "out", "dst", "of") for place in _places(row, key)}
    if row.effect in ("compute", "copy") and not {place.partition(":")[0] or place for place in facts.written} <= written:
        yield "written argument not told"
    if row.effect == "compute" and facts.waits and not any(row.get(key) for key in ("waits", "waits_on", "waits_without")):
        yield "wait not told"
    if row.effect == "compute" and not {place.partition(":")[2] for place in facts.numbers} <= _numbered(row):
        yield "fetched number not told"
    if row.effect == "compute" and facts.is_random and not row.get("random"):
        yield "random numbers not told"


def _parts_of(models: Models, row: Row) -> tuple[str, ...]:
    """The names of the parts of the tuple that a row gives."""
    known = models.types.get(str(row.get("type")))
    return known.fields if known is not None else ()


def _said(row: Row) -> str:
    """The kind of result of a row, as facts have it."""
    if row.effect == "compute":
        return str(row.get("result", "buffer"))
    given = {"none": "scalar", "read": str(row.get("result", "scalar")), "device": "device", "record_use": "none"}
    return given.get(row.effect, "view" if row.effect in ("view", "same", "copy") else "made")


def _places(row: Row, key: str) -> Iterator[str]:
    held = row.get(key)
    for one in held if isinstance(held, tuple) else (held,):
        if isinstance(one, Selector):
            yield "self" if one.kind == "self" else f"{'' if one.position is None else one.position}:{one.keyword or ''}"


def _numbered(row: Row) -> set[str]:
    return {place.partition(":")[2] for place in _places(row, "scalars")}


# --- the rows that are written -------------------------------------------------------------------------------------------------


def keys_of(facts: Facts, name: str, types: Mapping[tuple[str, ...], str]) -> dict[str, object]:
    """The keys of the row for a name."""
    if facts.result == "same":
        return {"effect": "same", "of": facts.of}
    if facts.of:
        return {"effect": "view", "of": facts.of, "part": "elements" if facts.result == "parts" else "some"}
    if facts.result in ("scalar", "none") and not facts.waits and not facts.written:
        return {"effect": "none", "result": facts.result}
    is_method = name.startswith(f"{TENSOR}.")
    keys: dict[str, object] = {"effect": "compute"}
    returned = facts.written[:1] if facts.result == "self" and not is_method else ()
    if facts.has_out or returned:
        keys["out"] = [*returned, *([":out"] if facts.has_out else [])]
    if written := [place for place in facts.written if place not in returned]:
        keys["writes"] = written
    if facts.numbers:
        keys["scalars"] = list(facts.numbers)
    keys["result"] = "buffer" if returned else facts.result
    keys.update({"waits": True} if facts.waits else {}, **({"random": True} if facts.is_random else {}))
    if facts.several:
        keys["several"] = facts.several
    if keys["result"] in ("buffer", "sequence"):
        keys["type"] = types.get(facts.names, TENSOR)
    return keys


def types_of(found: Mapping[str, Facts]) -> dict[tuple[str, ...], list[str]]:
    """By the names of its parts: the types of tuples, as ``torch.return_types`` has them."""
    types: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for name, facts in found.items():
        if facts.names:
            owner, _, last = name.removeprefix(f"{TENSOR}.").removeprefix("torch.").rpartition(".")
            types[facts.names].add(f"torch.return_types.{owner}_{last}" if owner else f"torch.return_types.{last}")
    return {names: sorted(types[names]) for names in sorted(types)}


def rows(found: Mapping[str, Facts], models: Models) -> str:
    """The file of rows."""
    types = types_of(found)
    groups: dict[str, list[str]] = defaultdict(list)
    by_hand = replace_operators(models)
    for name, facts in found.items():
        if name not in models.calls and any(disagreements(by_hand, name, facts)):
            keys = keys_of(facts, name, {names: kinds[0] for names, kinds in types.items()})
            groups["\n".join(f"{key} = {_toml(value)}" for key, value in keys.items())].append(name)
    text = [HEAD]
    for names, kinds in types.items():
        text.append(f'\n[[type]]\nnames = {_listed(kinds)}\nkind = "buffer"\nbase = "{TENSOR}"\nfields = {_toml(list(names))}\n')
    text += [f"\n[[call]]\nnames = {_listed(names)}\n{keys}\n" for keys, names in sorted(groups.items(), key=lambda item: item[1])]
    return "".join(text)


HEAD = """\
# What PyTorch's own tables say of operators (native_functions.yaml and the stubs): benchmarks/torch_operators.py writes this file.
# Rows of files that are written by hand come first, rows by patterns last.
library = "torch"
language = "python"
version = 1
fallback = true
"""


def replace_operators(models: Models) -> Models:
    """The models without the rows of the tables."""
    return replace(models, operators={}, _cache={})


def _toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else f'"{value}"'


def _listed(names: Sequence[str]) -> str:
    """A list of names, in lines of at most 140 characters."""
    lines, line = [], ""
    for name in names:
        if len(line) + len(name) > 130:
            lines.append(line.rstrip())
            line = ""
        line += f'"{name}", '
    if not lines:
        return f"[{line.removesuffix(', ')}]" if len(names) > 1 else f'"{names[0]}"'
    return "[\n" + "".join(f"    {each}\n" for each in (*lines, line.rstrip())) + "]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--write", action="store_true", help="write the rows")
    parser.add_argument("--all", action="store_true", help="name what disagrees")
    arguments = parser.parse_args()
    found, models = public(read(arguments.wheel)), builtin("python")
    if arguments.write:
        text = rows(found, models)
        models = replace_operators(models)
        models.add(read_rows(text) or {}, ROWS.name)
        ROWS.write_text(text, encoding="utf-8")
    kinds: dict[str, list[str]] = defaultdict(list)
    for name, facts in found.items():
        for kind in disagreements(models, name, facts):
            kinds[kind].append(name)
    owners = Counter(name.rpartition(".")[0] for name in found)
    print(f"{len(found)} names with facts:", ", ".join(f"{owner} {count}" for owner, count in owners.most_common()))
    for kind, names in sorted(kinds.items()):
        print(f"{len(names):5} {kind}" + (f": {' '.join(names)}" if arguments.all else ""))


if __name__ == "__main__":
    main()
