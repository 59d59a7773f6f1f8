"""Instructions of Python that always raise, wherever they are reached: they read what nobody sets, or call with arguments that are missing.

An attribute of the object itself is missing if the program makes such objects, no class above or below has it, no code sets one of that
name anywhere, and no text holds the name. A call misses an argument if the only function that it enters asks for one more. What stands
in a ``try`` may be caught. A global name that nothing binds says nothing: pieces of programs are linted, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import DICT, LIST, arguments_of
from streamlint.facts.code.objects import FunctionObject
from streamlint.facts.files.autograd import given_for
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.facts.graph.facts import Facts
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Graph

_COMPUTED = ("setattr", "__dict__", "vars", "__getattr__", "__getattribute__", "__slots__")


def missing_in(graph: CallGraph, function: Function) -> frozenset[int]:
    """The blocks of a function that raise."""
    unit = function.unit
    if unit.is_cpp or not unit.path.endswith(".py") or function.code.kind != "function":
        return frozenset()
    found = {function.blocks[one] for one in (*_attributes(graph.facts, function), *_calls(graph, function))}
    caught = Graph.of(function.code)
    return frozenset(block for block in found if len(caught.successors[block]) == len(function.control.successors[block]))


def _attributes(facts: Facts, function: Function) -> Iterator[Instruction]:
    """What reads attributes of the receiver that no object has."""
    owner = function.owner
    reads = (*function.by_opcode[op.ATTR], *function.by_opcode[op.INVOKE]) if owner is not None and function.has_receiver else ()
    for one in reads:
        name = function.text(one[4])
        if owner is not None and function.is_parameter(one[3], 0) and not name.startswith("__") and _is_missing(facts, owner, name):
            yield one


def _is_missing(facts: Facts, owner: ClassInfo, name: str) -> bool:
    """Whether no object of a class, or of one below it, has an attribute, though the program makes such objects."""
    cone = facts.hierarchy.cone(owner) or ()
    classes = list(dict.fromkeys(each for one in cone for each in facts.hierarchy.order(one)))
    if not classes or any(_has(each, name) or not _is_whole(facts, each) for each in classes):
        return False
    return any(map(facts.construction_places, cone)) and not _is_set(facts, name)


def _has(definition: ClassInfo, name: str) -> bool:
    return any(name in held for held in (definition.methods, definition.assigned, definition.own_stores, definition.fields))


def _is_set(facts: Facts, name: str) -> bool:
    """Whether code anywhere sets an attribute of a name, or has the name as a text."""
    return any(unit.is_cpp or name in unit.attribute_stores or name in unit.texts for unit in facts.program.mentioning(name))


def _is_whole(facts: Facts, definition: ClassInfo) -> bool:
    """Whether all that gives objects of a class attributes is in view: its bases are of the program, and nothing computes names."""
    bases, unit = facts.hierarchy.bases(definition), definition.unit
    plain = unit.models.marked("plain-base")
    if len(bases) != len(definition.ir.bases) or not all(isinstance(base, ClassInfo) or base.name in plain for base in bases):
        return False
    return not any(word in held for word in _COMPUTED for held in (unit.attribute_uses, unit.name_uses, definition.methods))


def _calls(graph: CallGraph, function: Function) -> Iterator[Instruction]:
    """Calls that leave out what the only function that they enter asks for."""
    for edge in graph.calls(function).edges:
        one, callee = edge.instruction, edge.callee
        if one[0] == op.CALL and callee.owner is None and not callee.is_cpp and not callee.decorators and _lacks(function, one, callee):
            called = graph.facts.callees(function, one)
            if all(isinstance(each, FunctionObject) and each.function is callee for each in called):
                yield one


def _lacks(function: Function, one: Instruction, callee: Function) -> bool:
    """Whether a call gives nothing for a parameter of a function that has no default."""
    if any(kind in (LIST, DICT) for _, kind in arguments_of(function, one)):
        return False
    asked = (index for index, each in enumerate(callee.code.parameters) if each.kind in ("plain", "keyword") and not each.default)
    return any(given_for(function, one, callee, index) is None for index in asked)
