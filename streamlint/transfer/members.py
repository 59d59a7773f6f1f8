"""Members: in C++ those that stand in the memory of their object, and what is written there; in Python those that are called."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import behind
from streamlint.facts.code.objects import Instance
from streamlint.facts.code.stores import Store
from streamlint.facts.files.cpp_scopes import last_part
from streamlint.facts.graph.facts import Facts
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.code import TypeTuple
from streamlint.transfer.actions import Action, Viewed, Written

_DEEPEST = 6
_MAKING = frozenset({op.CALL, op.INVOKE, op.ATTR, op.COPY, op.BUILD, op.DICT, op.PHI})
_SAME = {op.COPY: 3, op.REBIND: 5, op.DEREF: 3, op.ITEM: 3}


def member(facts: Facts, function: Function, one: Instruction) -> Iterator[Action]:
    """``p->values`` of an array is in the memory that ``p`` points to; ``p->x = 1`` writes it."""
    if one[0] == op.SET_ATTR:
        yield Written(one[2], "assignment")
    elif (kind := _type_of_member(facts, function, one)) is not None and kind[4] is not None:
        yield Viewed(one[3])


def _type_of_member(facts: Facts, function: Function, one: Instruction) -> TypeTuple | None:
    definition = _class_in(facts, function, one[3])
    found = facts.field_of(definition, function.text(one[4])) if definition is not None else None
    return found[1].type if found is not None else None


def _class_in(facts: Facts, function: Function, register: int, depth: int = _DEEPEST) -> ClassInfo | None:
    """The class of the object that a register holds or points to, as it is declared."""
    one = function.definitions[register] if register >= 0 else None
    kind: TypeTuple | None = None
    if one is None or depth == 0:
        return None
    if one[0] in _SAME:
        return _class_in(facts, function, one[_SAME[one[0]]], depth - 1)
    if one[0] == op.PARAM:
        kind = function.code.parameters[one[3]].type
    elif one[0] == op.CAST:
        kind = function.unit.ir.constants[one[3]]
    elif one[0] == op.ATTR:
        kind = _type_of_member(facts, function, one)
    elif one[0] == op.NAME and (owner := facts.member_of(function, function.text(one[3]))) is not None:
        kind = next((field.type for field in owner.ir.fields if field.name == last_part(function.text(one[3]))), None)
    meant = facts.named_type(function, kind)[1] if kind is not None else None
    return meant if isinstance(meant, ClassInfo) else None


def calls_member_of_others(facts: Facts, function: Function, one: Instruction) -> bool:
    """Python: whether a call by the syntax of a method calls what objects of a class keep and were given: it does not know the object."""
    if function.is_cpp or one[3] in one[6:]:
        return False
    name, values = function.text(one[4]), list(facts.values(function, one[3]).values)
    objects = [
        value.definition for value in values if isinstance(value, Instance) and facts.hierarchy.lookup(value.definition, name) is None
    ]
    lines = [facts.hierarchy.order(definition) for definition in objects]
    stores = [[store for each in line for store in each.own_stores.get(name, ())] for line in lines]
    return len(objects) == len(values) > 0 and all(each and all(map(_is_of_others, each)) for each in stores)


def _is_of_others(store: Store) -> bool:
    """Whether what a method keeps is not made with its object, or with what the object has."""
    leaves = behind(store.function, [store.value], lambda one: op.reads(one) if one[0] in _MAKING else ())
    return all(one[0] in (*_MAKING, op.CONST, op.NAME, op.FUNCTION) or (one[0] == op.PARAM and one[2] != store.receiver) for one in leaves)
