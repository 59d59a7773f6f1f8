"""C++: the declared types of registers, and containers of plain data."""

from __future__ import annotations

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.graph.facts import Facts
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.code import TypeTuple
from streamlint.transfer.contexts import Contexts, Known
from streamlint.waits.entered import entered_by

_DEEPEST = 4


def declared_type(contexts: Contexts, known: Known) -> TypeTuple | None:
    """The declared type of a variable, a member, or an element of one."""
    one, function = contexts.definition(known), known.function
    if one is None:
        return None
    constants = function.unit.ir.constants
    if one[0] in (op.DECLARE, op.CONSTRUCT, op.NEW, op.NEW_ARRAY):
        found: TypeTuple = constants[one[3]]
        return found
    if one[0] == op.CAST:
        return declared_type(contexts, known._replace(register=one[-1])) or constants[one[3]]
    if one[0] == op.REBIND:
        return declared_type(contexts, known._replace(register=one[5]))
    if one[0] == op.PARAM:
        return function.code.parameters[one[3]].type
    if one[0] in (op.DEREF, op.LOAD, op.ATTR):
        return _held_type(contexts, known, one)
    if one[0] in (op.ITEM, op.ADDRESS_ITEM, op.INVOKE):
        if one[0] == op.INVOKE and function.text(one[4]) not in function.known("element-of"):
            return None
        kind = declared_type(contexts, known._replace(register=one[3]))
        return kind[1][0] if kind is not None and kind[1] else None
    if one[0] == op.NAME:
        return _own_type(function, function.text(one[3]))
    return None


def _own_type(function: Function, name: str) -> TypeTuple | None:
    """The declared type of a member of the object whose method a function is."""
    owner = function.method.owner if function.method is not None else None
    return _field_type(owner, name) if owner is not None else None


def _held_type(contexts: Contexts, known: Known, one: Instruction) -> TypeTuple | None:
    """The declared type of what a reference is of, of a variable, or of a member of another object."""
    function = known.function
    if one[0] == op.LOAD:
        stored = (function.definitions[each[3]] for each in function.by_opcode[op.STORE] if each[2] == one[3])
        return next((function.unit.ir.constants[each[3]] for each in stored if each is not None and each[0] == op.DECLARE), None)
    base = declared_type(contexts, known._replace(register=one[3]))
    if one[0] == op.DEREF or base is None:
        return base
    _, meant = contexts.facts.named_type(function, base)
    return _field_type(meant, function.text(one[4])) if isinstance(meant, ClassInfo) else None


def _field_type(owner: ClassInfo, name: str) -> TypeTuple | None:
    return next((field.type for field in owner.ir.fields if field.name == name), None)


def bound_type(contexts: Contexts, known: Known, kind: TypeTuple, depth: int = 0) -> TypeTuple:
    """A type of which parameters of the method's class template are replaced by what the object is declared with, from call to call."""
    method = known.function.method
    owner = method.owner if method is not None else None
    site = entered_by(known.context, known.function)
    if owner is None or kind[0] not in owner.ir.template or site is None or site.instruction[0] != op.INVOKE or depth > _DEEPEST:
        return kind
    receiver = known._replace(function=site.function, register=site.instruction[3])
    declared = declared_type(contexts, receiver)
    while declared is not None and str(declared[0]) in known.function.unit.models.marked("owner") and declared[1]:
        declared = declared[1][0]
    index = owner.ir.template.index(str(kind[0]))
    if declared is None or index >= len(declared[1]):
        return kind
    return bound_type(contexts, receiver, declared[1][index], depth + 1)


def is_plain_container(facts: Facts, function: Function, kind: TypeTuple | None) -> bool:
    """Whether a type is a vector, with the allocator of the language, of numbers or of structures of numbers."""
    if kind is None or kind[0] != "std::vector" or len(kind[1]) != 1:
        return False
    return is_plain(facts, function, kind[1][0])


def is_plain(facts: Facts, function: Function, kind: TypeTuple, depth: int = 0) -> bool:
    """Whether a type is a number, or a structure of plain members."""
    if kind[2] or depth > _DEEPEST:
        return False
    if facts.is_plain(function, (kind[0], kind[1], kind[2], False, None)):
        return True
    _, meant = facts.named_type(function, (kind[0], (), 0, False, None))
    if not isinstance(meant, ClassInfo) or not meant.ir.fields:
        return False
    types = [field.type for field in meant.ir.fields if not field.static]
    return all(each is not None and is_plain(facts, function, (each[0], each[1], each[2], False, None), depth + 1) for each in types)
