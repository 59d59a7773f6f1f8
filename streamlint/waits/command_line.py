"""What a command line may give where a program writes the choices out: ``parser.add_argument("--kind", choices=["one", "other"])``.

A program whose option for a device begins with the host runs there: that somebody asks for another one is no evidence of CUDA.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import External, Instance, Site
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
        every = [self._choices(*site) for site in self._declared(held, register, name)]
        return [each for found in every for each in found] if all(every) else []

    def _declared(self, held: Held, register: int, name: str) -> list[Site]:
        """The calls that declare the option behind an attribute of what a parser has read; none where it may be something else."""
        parsed = self.roots(held._replace(register=register)) if name in self._options else None
        if not parsed or not all(map(_is_parsed, parsed)) or self._is_set(name):
            return []
        parsers = [self._parsers(each.function, each.instruction[3]) for each in parsed if each.instruction is not None]
        return [site for site in self._options[name] if self._may_declare(site, parsers)]

    def _may_declare(self, site: Site, parsers: list[frozenset[Held] | None]) -> bool:
        """Whether a call may declare an option of some parsers: not if it does so of others, which the program makes elsewhere."""
        declared = self._parsers(site.function, site.instruction[3])
        return declared is None or any(each is None or not each.isdisjoint(declared) for each in parsers)

    def _parsers(self, function: Function, register: int) -> frozenset[Held] | None:
        """The calls that make the parsers that a register may hold; None where these are not known, or where it is a group of one."""
        found = self.roots(Held(function, register))
        return found if found and all(map(self._makes_parser, found)) else None

    def _makes_parser(self, held: Held) -> bool:
        """Whether a call makes a parser."""
        called = self.facts.callees(held.function, held.instruction) if held.instruction is not None else ()
        return bool(called) and all(isinstance(each, External) and each.name in self._classes for each in called)

    @cached_property
    def _classes(self) -> frozenset[str]:
        """The classes of parsers."""
        return frozenset(name.rpartition(".")[0] for name in self.facts.models.traits.get("declares-option", ()))

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
        default = [Held(function, given["default"])] if "default" in given else []
        if not is_given or not _OPEN.isdisjoint(given):
            return []
        if "choices" not in given:
            return [each for each in default if function.constant(each.register) in function.unit.models.marked("host-device")]
        found = self._listed(function, given["choices"])
        return [*found, *default] if found else []

    def _listed(self, function: Function, register: int) -> list[Held]:
        """The elements of a list that the program writes out; none of another one."""
        lists = self.roots(Held(function, register)) or ()
        displays = [(each.function, one) for each in lists if (one := each.instruction) is not None and one[0] == op.BUILD]
        return [Held(home, part) for home, one in displays for part in one[4:]] if len(displays) == len(lists) else []

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
