"""Which calls that receive memory of a device, pinned memory, streams or events no row describes, and which of them let a finding pass.

    python benchmarks/unmodelled.py TREE… [--decided] [--top 60] [--limit 300] [--output FILE] [--only LIBRARY…]
    python benchmarks/unmodelled.py --read FILE                     print a record again

TREE is a folder of sources, read in a process of its own. A call counts where what it is given is known to be such: *modelled* with a row,
with a body in view, or as a module of PyTorch; *unmodelled* where code out of view may run. It has a *library* where its dotted name is
known, and else calls a value of which nothing is known (a parameter, a member that others set). With `--decided`, which runs all rules,
it *decided* where one would have a finding, did the call not receive what would tell that the work is done; it *hides* where a call with a
row is made on what it gives, or is given it. The share is printed for both kinds; the list has calls of libraries alone, first those that
decided most.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamlint.config.options import Source
    from streamlint.facts.code.functions import Function
    from streamlint.facts.code.objects import Object
    from streamlint.hazards.context import Context
    from streamlint.ir import Instruction

NOTHING = "a value"
"""In place of a library's name: nothing is known of what is called."""


@dataclass
class Tree:
    """What one tree gave: calls that count, unmodelled ones of libraries by name, and others, which name none."""

    calls: int = 0
    nameless: int = 0
    unmodelled: dict[str, int] = field(default_factory=dict)
    decided: dict[str, int] = field(default_factory=dict)
    hides: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    crash: str = ""


# In the child: read one tree


def read_tree(root: Path, decided: bool) -> Tree:
    """The figures of a folder of sources."""
    from streamlint.config.options import Options
    from streamlint.hazards.findings import context_of, hazard, registry
    from streamlint.ir import ModuleIR
    from streamlint.runner.parsing import headers_of, parsed
    from streamlint.support.memory import seldom_collected
    from streamlint.support.recursion import deeper

    sources = list(sources_of(root))
    headers = headers_of(sources)

    def lowered(source: Source) -> ModuleIR | None:
        made = parsed(source, headers)
        return made if isinstance(made, ModuleIR) else None

    with seldom_collected(), deeper():
        context = context_of(sources, Options(evidence="possible"), lowered)
        context.transfer.passed = []
        for code in sorted(registry()) if decided else ():
            for _ in hazard(code).find(context):
                pass
        return counted(context)


def sources_of(root: Path) -> Iterator[Source]:
    """The Python and C++ files below a folder."""
    from streamlint.commands import debug_facts
    from streamlint.config.options import Source

    for file in debug_facts.sources(root):
        yield Source(file.path, file.text, file.language)


def counted(context: Context) -> Tree:
    """The calls of the program, behind all rules: what these did not ask is asked now."""
    from streamlint.transfer.actions import Lost

    passed = {(order.by.function, order.by.instruction) for order in context.transfer.passed or () if isinstance(order.action, Lost)}
    tree, unmodelled, decided, hides = Tree(), Counter[str](), Counter[str](), Counter[str]()
    for function, one in calls(context):
        tree.calls += 1
        if not any(isinstance(action, Lost) for action in context.transfer.of(function, one)) or is_module(context, function, one):
            continue
        name = library_name(context, function, one)
        if name == NOTHING:
            tree.nameless += 1
            continue
        unmodelled[name] += 1
        decided[name] += (function, one) in passed
        hides[name] += leads_on(context, function, one)
    tree.unmodelled, tree.decided, tree.hides = dict(unmodelled), dict(+decided), dict(+hides)
    return tree


def calls(context: Context) -> Iterator[tuple[Function, Instruction]]:
    """The calls that receive what is followed, in functions with an operation of a library."""
    from streamlint.ir import opcodes as op
    from streamlint.transfer import launches
    from streamlint.transfer.modelled import operands_of
    from streamlint.transfer.transfer import EFFECTS

    working = {call.function for call in context.transfer.sites(frozenset(EFFECTS) | launches.WORKING)}
    for function in sorted(working, key=lambda each: (each.unit.number, each.code.number)):
        for one in function.code.instructions():
            if one[0] in (op.CALL, op.INVOKE) and any(is_followed(context, function, each) for each in operands_of(function, one)):
                yield function, one


def is_module(context: Context, function: Function, one: Instruction) -> bool:
    """Whether a module is called: whatever it computes, it computes on the current stream."""
    return any(work.runs and not work.assumed for work in context.transfer.works(function, one))


def is_followed(context: Context, function: Function, register: int) -> bool:
    """Whether a register may hold memory of a device, pinned memory, a stream or an event."""
    return any(map(is_counted, context.transfer.values(function, register)))


def is_counted(value: Object) -> bool:
    """Whether an object is such."""
    from streamlint.facts.code.objects import LibraryObject, Memory

    if isinstance(value, Memory):
        return value.space in ("device", "managed") or value.pinning == "pinned"
    return isinstance(value, LibraryObject) and value.kind in ("stream", "event")


def library_name(context: Context, function: Function, one: Instruction) -> str:
    """The dotted name of what a call calls, where it is one of a library without a row."""
    from streamlint.facts.code.objects import LibraryObject, Memory

    for call in context.transfer.libraries(function, one):
        if call.row is None and call.name:
            held = call.receiver
            is_typed = isinstance(held, (LibraryObject, Memory)) and held.type and not call.name.startswith(held.type)
            return f"{held.type}: {call.name}" if is_typed and isinstance(held, (LibraryObject, Memory)) else call.name
    return NOTHING


def leads_on(context: Context, function: Function, one: Instruction) -> bool:
    """Whether a call with a row uses what a call gives."""
    from streamlint.ir import opcodes as op

    uses = function.uses[one[2]] if op.DEFINES[one[0]] and one[2] >= 0 else ()
    return any(use[0] in (op.CALL, op.INVOKE) and any(context.transfer.modelled(function, use)) for use in uses)


def child(root: Path, decided: bool) -> None:
    """Read a tree and print its figures as JSON."""
    start = time.process_time()
    tree = read_tree(root, decided)
    tree.seconds = round(time.process_time() - start, 1)
    print(json.dumps(asdict(tree)))


# In the parent: one child a tree


def measure(root: Path, limit: float, decided: bool) -> Tree:
    """Read a tree in a child process; one that dies or runs past the limit gives no figures."""
    command = [sys.executable, __file__, "--child", str(root), *(["--decided"] if decided else [])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return Tree(seconds=limit, crash=f"no end within {limit:.0f} s")
    if done.returncode:
        return Tree(crash=(done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1])
    return tree_of(json.loads(done.stdout.splitlines()[-1]))


def tree_of(table: Mapping[str, Any]) -> Tree:
    """A tree's figures from their JSON form; keys that are not known any more are passed over."""
    known = {item.name for item in fields(Tree)}
    return Tree(**{key: value for key, value in table.items() if key in known})


# What is printed


def summed(trees: Iterable[Tree], which: str) -> Counter[str]:
    """The counts of all trees by name."""
    found = Counter[str]()
    for tree in trees:
        found.update(getattr(tree, which))
    return found


def table(trees: Mapping[str, Tree], top: int, only: Sequence[str] = ()) -> Iterator[str]:
    """The shares, then the unmodelled calls of libraries, those first that decided most, then those that hide and occur most."""
    every = list(trees.values())
    unmodelled, decided, hides = (summed(every, which) for which in ("unmodelled", "decided", "hides"))
    total, nameless = sum(tree.calls for tree in every), sum(tree.nameless for tree in every)
    named = sum(unmodelled.values())
    yield f"{len(every)} trees, {total} calls that receive memory of a device, pinned memory, streams or events"
    yield f"unmodelled: {named} of libraries ({percent(named, total)}), {nameless} of unknown values ({percent(nameless, total)})"
    yield "decided  hides  calls  trees  name"
    chosen = [name for name in unmodelled if not only or name.partition(".")[0] in only]
    for name in sorted(chosen, key=lambda each: (-decided[each], -hides[each], -unmodelled[each], each))[:top]:
        held = sum(name in tree.unmodelled for tree in every)
        yield f"{decided[name]:7}  {hides[name]:5}  {unmodelled[name]:5}  {held:5}  {name}"
    yield from (f"{name}: {tree.crash}" for name, tree in trees.items() if tree.crash)


def percent(part: int, whole: int) -> str:
    """A share for people."""
    return f"{part / whole:.1%}" if whole else "-"


def main(given: Sequence[str] | None = None) -> int:
    """0: measured; 1: a run died."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="*", type=Path, metavar="TREE", help="folders of sources, each a program")
    parser.add_argument("--decided", action="store_true", help="run all rules, to count the findings that calls let pass")
    parser.add_argument("--top", type=int, default=60, metavar="N", help="how many calls are listed")
    parser.add_argument("--limit", type=float, default=300, metavar="SECONDS", help="for one tree")
    parser.add_argument("--output", type=Path, metavar="FILE", help="where the figures go as JSON, after each tree")
    parser.add_argument("--read", type=Path, metavar="FILE", help="print what was kept so, and read nothing")
    parser.add_argument("--only", nargs="+", default=(), metavar="LIBRARY", help="list calls of these libraries alone")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(given)
    if options.child:
        child(options.child, options.decided)
        return 0
    kept = json.loads(options.read.read_text(encoding="utf-8")) if options.read else {}
    trees = {name: tree_of(figures) for name, figures in kept.items()}
    for root in options.trees:
        trees[root.name] = measure(root, options.limit, options.decided)
        if options.output:
            text = json.dumps({name: asdict(tree) for name, tree in trees.items()}, indent=1)
            options.output.write_text(f"{text}\n", encoding="utf-8")
    print("\n".join(table(trees, options.top, options.only)))
    return int(any(tree.crash for tree in trees.values()))


if __name__ == "__main__":
    sys.exit(main())
