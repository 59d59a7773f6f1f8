"""Attributes in which the rounds of a loop are counted that runs elsewhere: in the program, or in a framework."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.counters import is_number_of_round, is_raised_in
from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.objects import Instance
from streamlint.facts.graph.facts import Facts
from streamlint.ir import Instruction


def counts_in_attribute(facts: Facts, function: Function, one: Instruction) -> bool:
    """Whether an attribute that is read counts rounds: its class counts in it, or the row of a framework that is used near says so."""
    name = function.text(one[4])
    setting = [each for each in classes_of(facts, function, one[3]) if name in each.own_stores]
    if setting:
        return any(is_raised_in(each, name) or _is_numbered(each, name) for each in setting)
    return any(facts.program.is_used_near(function.unit, package) for package in facts.models.counters(name))


def _is_numbered(owner: ClassInfo, name: str) -> bool:
    """``for epoch in range(epochs): self.epoch = epoch``."""
    stores = owner.own_stores[name]
    made = ((store.function, store.function.definitions[store.value]) for store in stores if store.value >= 0)
    return any(one is not None and is_number_of_round(function, one) for function, one in made)


def classes_of(facts: Facts, function: Function, register: int) -> Iterator[ClassInfo]:
    """The classes of the program that an object may have, with their bases."""
    if function.method is not None and function.method.owner is not None and function.is_parameter(register, 0):
        yield from facts.hierarchy.order(function.method.owner)
        return
    for value in facts.values(function, register).values:
        if isinstance(value, Instance):
            yield from facts.hierarchy.order(value.definition)
