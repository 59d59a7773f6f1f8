"""What a command line may give where a program writes the choices out: ``parser.add_argument("--kind", choices=["one", "other"])``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Instance, Site
from streamlint.facts.graph.facts import Facts
from streamlint.ir import opcodes as op
from streamlint.waits.entered import Held
from streamlint.waits.operands import argument_registers

_OPEN = frozenset({"nargs", "action", "dest"})
"""Keywords of options that mean more than one of the choices, or another name."""


class CommandLine:
    """Answers for the options of a program. ``roots`` gives where what a register holds was made."""

    def __init__(self, facts: Facts, roots: Callable[[Held], frozenset[Held] | None]) -> None:
        self.facts = facts
        self.roots = roots

    def of(self, held: Held, register: int, name: str) -> list[Held]:
        """What an attribute of what a parser has read may hold: the choices of the options of that name, and the defaults; nothing where
        something else may be."""
        parsed = self.roots(held._replace(register=register)) if name in self._options else None
        if not parsed or not all(map(_is_parsed, parsed)) or self._is_set(name):
            return []
        every = [self._choices(*site) for site in self._options[name]]
        return [each for found in every for each in found] if all(every) else []

    @cached_property
    def _options(self) -> dict[str, list[Site]]:
        """By the name of the attribute: the calls that declare options."""
        found: dict[str, list[Site]] = defaultdict(list)
        for declaring in sorted(self.facts.models.known("declares-option")):
            for unit in self.facts.program.mentioning(declaring):
                for function, call in unit.attribute_uses.get(declaring, ()) if not unit.is_cpp else ():
                    for register in (register for kind, register in argument_registers(function, call) if kind is None):
                        if isinstance(text := function.constant(register), str):
                            found[text.lstrip("-").replace("-", "_")].append(Site(function, call))
        return found

    def _choices(self, function: Function, call: tuple[int, ...]) -> list[Held]:
        given = {kind: register for kind, register in argument_registers(function, call) if isinstance(kind, str)}
        texts = [function.constant(register) for kind, register in argument_registers(function, call) if kind is None]
        is_given = "default" in given or ("required" in given) or not any(str(text).startswith("-") for text in texts)
        if "choices" not in given or not is_given or not _OPEN.isdisjoint(given):
            return []
        lists = self.roots(Held(function, given["choices"])) or ()
        displays = [(each.function, one) for each in lists if (one := each.instruction) is not None and one[0] == op.BUILD]
        if not displays or len(displays) < len(lists):
            return []
        found = [Held(home, part) for home, one in displays for part in one[4:]]
        return [*found, *([Held(function, given["default"])] if "default" in given else [])]

    def _is_set(self, name: str) -> bool:
        """Whether code may set such an attribute itself."""
        for unit in self.facts.program.mentioning(name):
            for store in unit.attribute_stores.get(name, ()) if not unit.is_cpp else ():
                values = list(self.facts.values(store.function, store.receiver).values)
                if not values or not all(isinstance(value, Instance) for value in values):
                    return True
        return False


def _is_parsed(held: Held) -> bool:
    one, function = held.instruction, held.function
    return one is not None and one[0] == op.INVOKE and function.text(one[4]) in function.known("parses-options")
