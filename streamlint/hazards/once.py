"""What a program runs once, or never: constructors, bodies of modules, and what is behind a branch that is taken the first time alone."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import is_none
from streamlint.facts.graph.aliases import path_of
from streamlint.facts.graph.conditions import Conditions
from streamlint.facts.graph.importers import importers
from streamlint.facts.graph.unused import Unused
from streamlint.hazards.repetition import Repetition
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.transfer import Transfer
from streamlint.waits.questions import conditions

_DEEPEST = 8


class Once:
    """Asks for the ways on which the code of a program comes to a function."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.repetition = Repetition(transfer)
        self.unused = self.facts.shared.one_of(Unused, self.facts.program, self.facts.hierarchy)
        self._bound: dict[Function, bool] = {}
        self._known: dict[Function, bool] = {}

    def is_bound_once(self, function: Function) -> bool:
        """Whether Python calls what C++ binds for it somewhere in the program, everywhere only once, and hands it to nobody."""
        if function not in self._bound:
            exports = self.facts.exports.of(function) if function.is_cpp else []
            names = {one.name for one in exports} or {function.code.name}
            places = [place for place in self.transfer.callers(function) if not place[0].is_cpp]
            others = [place for name in names for place in self._mentions(name) if self._is_open(*place)]
            is_once = all(self._is_once(*place, _DEEPEST) for place in places) and all(self._is_of_life(*place) for place in others)
            self._bound[function] = bool(places or others) and is_once and not self._is_offered({one.module for one in exports})
        return self._bound[function]

    def is_first(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction stands behind a branch that is taken the first time alone."""
        rare = Conditions(self.facts, function).rare({})
        home = function.blocks[one]
        return any(each.why == "the first time" and function.control.dominates(each.after, home) for each in rare)

    def sets_up(self, function: Function, depth: int = _DEEPEST) -> bool:
        """Whether a function is a constructor that no loop runs but those of constructors, or is called by such alone."""
        if function.is_cpp or depth == 0:
            return False
        is_constructor = function.owner is not None and function.code.name == "__init__"
        callers = [each for each in self.transfer.callers(function) if each[0] is not function]
        return (is_constructor or bool(callers)) and all(
            self.sets_up(caller, depth - 1) or (is_constructor and not any(True for _ in self.repetition.of(caller, one)))
            for caller, one in callers
        )

    def _is_of_life(self, caller: Function, call: Instruction) -> bool:
        """Whether a call of what nobody knows sets an object up, or is the last one before the object lets go of what it calls."""
        return call[0] == op.INVOKE and (self.sets_up(caller) or self._lets_go(caller, call))

    def _lets_go(self, function: Function, call: Instruction) -> bool:
        """Whether an object keeps ``None`` behind a call in place of what is called, which constructors alone put there."""
        receiver, _, name = path_of(function, call[3]).rpartition(".")
        stores = list(self._stores(name)) if receiver and not function.is_repeated(call) else []
        ends = [(user, one) for user, one in stores if is_none(user, one[4])]
        is_left = any(user is function and path_of(user, one[2]) == receiver and user.runs_before(call, one) for user, one in ends)
        return is_left and all(each in ends or self.sets_up(each[0]) for each in stores)

    def _is_once(self, caller: Function, call: Instruction, depth: int) -> bool:
        if self.is_first(caller, call) or self._leaves_state(caller, call):
            return True
        return not caller.is_repeated(call) and self._runs_once(caller, depth)

    def _leaves_state(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction runs in one state of an object, which is put into another one there, and back by no constant."""
        for asked, holds in conditions(function, function.blocks[one]):
            test = function.definitions[asked] if asked >= 0 else None
            if test is None or test[0] != op.COMPARE or (function.text(test[3]) in ("==", "is")) != holds:
                continue
            receiver, _, name = path_of(function, test[4]).rpartition(".")
            begun = _state(function, test[5])
            stores = list(self._stores(name)) if receiver and begun else []
            own = (store for user, store in stores if user is function and path_of(function, store[2]) == receiver)
            there = (store for store in own if (asked, holds) in conditions(function, function.blocks[store]))
            if any(_state(function, store[4]) not in ("", begun) for store in there):
                return all(user.code.name == "__init__" or _state(user, store[4]) != begun for user, store in stores)
        return False

    def _stores(self, name: str) -> Iterator[tuple[Function, Instruction]]:
        """The instructions that set attributes of a name."""
        for unit in self.facts.program.mentioning(name):
            for function in unit.functions if not unit.is_cpp else ():
                yield from ((function, one) for one in function.by_opcode[op.SET_ATTR] if function.text(one[3]) == name)

    def _runs_once(self, function: Function, depth: int) -> bool:
        if function not in self._known:
            self._known[function] = False  # where it calls itself
            self._known[function] = self._find(function, depth)
        return self._known[function]

    def _find(self, function: Function, depth: int) -> bool:
        if function.code.kind in ("module", "class"):
            return function.code.kind == "module"
        if depth == 0:
            return False
        if self.unused.is_unused(function) or self.is_left_over(function) or self.sets_up(function):
            return True
        callers = self.transfer.callers(function)
        return (
            bool(callers)
            and self.facts.frameworks.row(function) is None
            and not self._is_exported(function.code.name)
            and all(self._is_once(*each, depth - 1) for each in callers)
        )

    def is_left_over(self, function: Function) -> bool:
        """Whether no code names a function of a module from which the program's other files take others, and no package offers it."""
        parent = function.parent
        if function.owner is not None or parent is None or parent.code.kind != "module" or self.unused.is_named(function):
            return False
        takers = list(importers(function.unit))
        return bool(takers) and not any(other.stars or other.path.endswith("__init__.py") for other in takers)

    def _is_offered(self, modules: set[str]) -> bool:
        """Whether a file takes all that one of these modules of C++ has; "" is one that the build names."""
        program = self.facts.program
        for unit in program.mentioning("import"):
            for module in unit.stars if not unit.is_cpp else ():
                is_meant = module.rpartition(".")[2] in modules or "" in modules
                if is_meant and program.imported(module, unit) is None:
                    return True
        return False

    def _is_exported(self, name: str) -> bool:
        """Whether code takes a function of a name otherwise than to call it, calls one that nobody knows, or imports it to offer it."""
        return any(self._is_open(user, one) for user, one in self._mentions(name))

    def _mentions(self, name: str) -> Iterator[tuple[Function, Instruction]]:
        for unit in self.facts.program.mentioning(name):
            if not unit.is_cpp:
                yield from (*unit.name_uses.get(name, ()), *unit.attribute_uses.get(name, ()))
                yield from unit.taken.get(name, ()) if name not in unit.name_uses else ()

    def _is_open(self, user: Function, one: Instruction) -> bool:
        if one[0] == op.IMPORT and user.code.kind in ("module", "class"):
            return True
        if one[0] == op.INVOKE:
            return not self.transfer.edges(user, one) and not self.transfer.libraries(user, one)
        uses = (use for use in user.uses[one[2]] if use[0] != op.BIND)
        return any(use[0] != op.CALL or use[3] != one[2] or one[2] in use[5:] for use in uses)


def _state(function: Function, register: int) -> str:
    """A state as code names it: a text, a number, or the member of something that has a name; else ""."""
    held = function.constant(register)
    return repr(held) if held is not None else function.dotted(register)
