"""What the body of a file of Python stores in a global name and stores anew before anything reads it: functions never see it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Graph

if TYPE_CHECKING:
    from streamlint.facts.files.program import Unit


def overwritten(unit: Unit) -> frozenset[Instruction]:
    """The stores of a file's body whose values are gone on every way before the name is read or a function of the program may run."""
    body, stores = unit.body, defaultdict[int, list[Instruction]](list)
    for one in body.by_opcode[op.SET_NAME]:
        stores[one[2]].append(one)
    several = {name: each for name, each in stores.items() if len(each) > 1}
    if not several or unit.is_cpp:
        return frozenset()
    bodies = [each for each in unit.functions if each.code.kind == "class"]
    read = {one[3] for each in bodies for one in each.by_opcode[op.NAME]}
    return frozenset(one for name, each in several.items() for one in each if name not in read and _is_lost(unit, name, one))


def _is_lost(unit: Unit, name: int, store: Instruction) -> bool:
    body = unit.body
    after = Graph.of(body.code).successors
    block, place = body.homes[store]
    waiting, seen = [(block, place + 1)], {block}
    while waiting:
        block, place = waiting.pop()
        following = after[block][-1:] if block in body.code.handlers else ()
        for one in body.code.blocks[block][place:]:
            if one[0] == op.SET_NAME and one[2] == name:
                break
            if (one[0] == op.NAME and one[3] == name) or one[0] == op.RETURN or _may_enter(unit, one):
                return False
        else:
            following = after[block]
            if not following:
                return False
        waiting += [(each, 0) for each in following if each not in seen]
        seen.update(following)
    return True


def _may_enter(unit: Unit, one: Instruction) -> bool:
    """Whether an instruction of the body may call a function of the program: all but a name of a library or of the language."""
    if one[0] not in (op.CALL, op.INVOKE):
        return False
    name = unit.body.dotted(one[3]).partition(".")[0]
    made = [function.definitions[register] for function, register in unit.stored.get(name, ()) if register >= 0]
    if not name or any(each is None or each[0] != op.IMPORT for each in made):
        return True
    return any(unit.program.imported(unit.body.text(each[3]), unit) is not None for each in made if each is not None)
