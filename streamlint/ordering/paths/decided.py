"""What a chain of calls decides: the constants and the template arguments that each function on the way is entered with."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import uncast
from streamlint.facts.code.objects import Constant, Site
from streamlint.facts.files.cpp_scopes import last_part, scope_of
from streamlint.facts.files.cpp_templates import Meant, is_parameter
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.code import TemplateArgument
from streamlint.support.memo import memoized
from streamlint.transfer.contexts import Contexts
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import operand_of

_GIVING = frozenset({op.CALL, op.INVOKE, op.CONSTRUCT, op.NEW})
_OBJECTS = frozenset({op.DECLARE, op.CONSTRUCT, op.NEW, op.CAST})
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_DEEPEST = 12


class Link(NamedTuple):
    """A function, and the call that has entered it; the outermost one with the template arguments that it is named with."""

    function: Function
    site: Site | None = None
    outer: Link | None = None
    named: tuple[Meant | None, ...] = ()


class Origin(NamedTuple):
    """A register of a function that a chain of calls enters."""

    link: Link
    register: int


class Decided:
    """Asks what is decided on a chain of calls. Only C++ is looked at."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.templates = transfer.facts.templates
        self.contexts = Contexts(transfer)

    def chain(self, first: Function, binding: Site | None, calls: Sequence[Site], last: Site) -> list[Link]:
        """The functions that a chain of calls enters, the outermost first; ``binding`` is the call that hands the first one over."""
        found = [Link(first, None, None, tuple(self._named(first, binding)) if binding is not None else ())]
        entered = [site.function for site in (*calls, last)]
        for call, function in zip(calls, entered[1:], strict=True):
            found.append(Link(function, call, found[-1]))
        return found

    def _named(self, function: Function, binding: Site) -> Iterator[Meant | None]:
        """The template arguments that a function is named with where it is passed."""
        holder = binding.function
        for register in binding.instruction[5:]:
            one = holder.definitions[uncast(holder, register)] if register >= 0 else None
            if one is not None and one[0] in (op.NAME, op.ADDRESS_NAME) and last_part(holder.text(one[3])) == function.code.name:
                yield from (self.templates.meant(holder, each) for each in holder.code.templates.get(one[1], ()))

    # --- values

    def origin(self, link: Link, register: int) -> Origin:
        """Where a register has its value from, over parameters, defaults, variables that functions share, casts and copies."""
        for _ in range(_DEEPEST):
            one = link.function.definitions[register] if register >= 0 else None
            if one is None:
                break
            if one[0] in (op.CAST, op.COPY):
                register = one[-1]
            elif one[0] == op.REBIND and self.contexts.is_by_value(link.function, one):
                register = one[5]
            elif one[0] in (op.PARAM, op.LOAD):
                before = self._of_parameter(link, one[3]) if one[0] == op.PARAM else self._of_cell(link, one)
                if before is None:
                    break
                link, register = before
            else:
                break
        return Origin(link, register)

    def value(self, link: Link, register: int, depth: int = 0) -> Meant | None:
        """What a register holds in a function as a chain enters it; None where that is not known."""
        link, register = self.origin(link, register)
        function = link.function
        one = function.definitions[register] if register >= 0 else None
        if one is None or depth > _DEEPEST or not function.is_cpp:
            return None
        code = one[0]
        if code == op.CONST:
            return Meant("value", function.unit.ir.constants[one[3]])
        if code == op.NAME:
            return self._of_name(link, one)
        if code == op.COMPARE:
            return self.compared(link, one, *(self.value(link, each, depth + 1) for each in one[4:6]))
        if code == op.UNARY and function.text(one[3]) in ("not", "!"):
            held = self.value(link, one[4], depth + 1)
            return Meant("value", not held.held) if held is not None and held.kind == "value" else None
        return None

    def truth(self, link: Link, condition: int) -> bool | None:
        """Whether a condition holds."""
        held = self.value(link, condition)
        return bool(held.held) if held is not None and held.kind == "value" else None

    def compared(self, link: Link, one: Instruction, left: Meant | None, right: Meant | None) -> Meant | None:
        """What a comparison of two values gives."""
        sign = link.function.text(one[3])
        if left is None or right is None:
            return None
        if sign in ("==", "!="):
            same = left.is_same(right)
            return Meant("value", same == (sign == "==")) if same is not None else None
        if sign not in _ORDERS or not all(each.kind == "value" and isinstance(each.held, (int, float)) for each in (left, right)):
            return None
        return Meant("value", _ORDERS[sign](left.held, right.held))

    def _of_parameter(self, link: Link, index: int) -> Origin | None:
        """What the call gives for a parameter, or its default."""
        function, site, outer = link.function, link.site, link.outer
        if not function.is_cpp or site is None or outer is None or site.instruction[0] not in _GIVING or self._is_higher_order(link):
            return None
        register = operand_of(site.function, site.instruction, function, index)
        if register is not None:
            return Origin(outer, register)
        default = function.default_place(index)
        return Origin(Link(default[0]), default[1]) if default is not None else None

    def _is_higher_order(self, link: Link) -> bool:
        """Whether a function is called by what it was passed to, with arguments that the call itself does not have."""
        site = link.site
        edges = self.transfer.edges(site.function, site.instruction) if site is not None else ()
        return any(edge.callee is link.function and edge.is_higher_order for edge in edges)

    def _of_cell(self, link: Link, one: Instruction) -> Origin | None:
        """What a variable that functions share was set to, once."""
        unit = link.function.unit
        number: int = unit.ir.constants[one[3]][1]
        home: Link | None = link
        while home is not None and not (home.function.unit is unit and home.function.code.number == number):
            home = home.outer
        store = self._store(home.function, one[3]) if home is not None else None
        return Origin(home, store[3]) if home is not None and store is not None else None

    @memoized
    def _store(self, function: Function, cell: int) -> Instruction | None:
        """The only instruction that sets a variable of a function which others see, if nobody has its address."""
        stores = stores_of(function, cell)
        is_given = any(one[3] == cell for each in function.below for one in each.by_opcode[op.ADDRESS])
        return stores[0][1] if len(stores) == 1 and stores[0][0] is function and not is_given else None

    def _of_name(self, link: Link, one: Instruction) -> Meant | None:
        function, name = link.function, link.function.text(one[3])
        if is_parameter(function, name):
            return self.argument(link, name)
        held = list(self.facts.values(function, one[2]).values)
        if len(held) == 1 and isinstance(held[0], Constant):
            return Meant("value", held[0].value)
        found = self.templates.meant(function, (name, (), 0, False, None))
        head, _, _ = name.rpartition("::")
        if found is None or not head or found.kind not in ("constant", "name"):
            return None
        is_member = self.facts.cpp.find_class(function.unit, scope_of(function), head) is not None  # it may be a variable
        return None if found.kind == "name" and is_member else found

    # --- template arguments

    def meant(self, link: Link, argument: TemplateArgument, depth: int = 0) -> Meant | None:
        """What a template argument stands for in a function as a chain enters it."""
        if isinstance(argument, tuple) and is_parameter(link.function, str(argument[0])):
            return self.argument(link, str(argument[0]), depth + 1) if not any(argument[1:4]) else None
        return self.templates.meant(link.function, argument)

    def argument(self, link: Link, name: str, depth: int = 0) -> Meant | None:
        """The argument that a template parameter has."""
        home: Link | None = link
        while home is not None and home.function.code.kind != "function":
            home = self._around(home)
        if home is None or depth > _DEEPEST:
            return None
        function, owner = home.function, home.function.owner
        if owner is not None and name in owner.ir.template:
            return self._of_class(home, owner, owner.ir.template.index(name), depth)
        own = [each for each in function.code.template if owner is None or each not in owner.ir.template]
        given = self.given(home, depth)
        place = own.index(name) if name in own else len(given)
        return given[place] if place < len(given) else None

    def _around(self, link: Link) -> Link | None:
        """The function that a lambda stands in, on the way to it."""
        home = link.outer
        while home is not None and home.function is not link.function.parent:
            home = home.outer
        return home

    def given(self, link: Link, depth: int = 0) -> list[Meant | None]:
        """The template arguments that a call names."""
        if link.site is None or link.outer is None:
            return list(link.named)
        held = link.site.function.code.templates.get(link.site.instruction[1], ())
        return [self.meant(link.outer, each, depth) for each in held]

    def _of_class(self, link: Link, owner: ClassInfo, index: int, depth: int) -> Meant | None:
        """An argument of the class whose method is called, as its object is declared."""
        site, outer = link.site, link.outer
        if site is None or outer is None:
            return None
        one: Instruction | None = site.instruction
        if one is not None and one[0] == op.INVOKE:
            one = site.function.definitions[one[3]]
            while one is not None and one[0] in (op.COPY, op.REBIND):
                one = site.function.definitions[one[5] if one[0] == op.REBIND else one[3]]
        method = outer.function.method
        if method is not None and method.owner is owner and (one is None or one[0] not in _OBJECTS):
            return self.argument(outer, owner.ir.template[index], depth + 1)  # a method of the same object
        kind = site.function.unit.ir.constants[one[3]] if one is not None and one[0] in _OBJECTS else None
        return self.meant(outer, kind[1][index], depth + 1) if kind is not None and index < len(kind[1]) else None

    # --- specialisations

    def is_chosen(self, link: Link) -> bool | None:
        """Whether a call means this specialisation of a template, or what no specialisation is for; None where that is not known."""
        function, site = link.function, link.site
        given = self.given(link)
        if function.code.specialised:
            return self.templates.is_for(function, function.code.specialised, given)
        if site is None or not given:
            return None
        edges = self.transfer.edges(site.function, site.instruction)
        others = {edge.callee for edge in edges if edge.callee.code.specialised and edge.callee.name == function.name}
        return False if others and function not in self.templates.chosen([function, *others], given) else None


def stores_of(function: Function, cell: int) -> list[tuple[Function, Instruction]]:
    """The instructions that set a variable of a function, there or in the functions inside of it."""
    return [(each, one) for each in function.below for one in each.by_opcode[op.STORE] if one[2] == cell]
