"""C++: the records that lists in braces make where the type is said elsewhere: a container's element, a parameter, a member."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.passing import STORES
from streamlint.facts.files.cpp_scopes import last_part, scope_of
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.code import TypeTuple

if TYPE_CHECKING:
    from streamlint.facts.cpp.cpp_names import CppNames

_DEEPEST = 6
_SAME = {op.COPY: 3, op.REBIND: 5, op.ITER: 3}
_MADE = frozenset({op.DECLARE, op.CONSTRUCT, op.NEW, op.NEW_ARRAY})


class Typed(NamedTuple):
    """A declared type, and a function in whose scope its names mean what they mean."""

    scope: Function
    kind: TypeTuple

    def less(self) -> Typed:
        """The type of what a pointer leads to, or of an element of an array."""
        name, args, pointers, _, array = self.kind
        return self._replace(kind=(name, args, max(0, pointers - (array is None)), False, None))


class BraceLists:
    """Asks for the types of lists in braces, by what is done with them."""

    def __init__(self, facts: CppNames) -> None:
        self.facts = facts
        self._found: dict[tuple[Function, Instruction], ClassInfo | None] = {}

    def record(self, function: Function, one: Instruction) -> ClassInfo | None:
        """The class without constructors that an instruction makes an object of which builds a list."""
        key = (function, one)
        if key not in self._found:
            self._found[key] = None
            self._found[key] = self._record(self._expected(function, one, 0)) if function.is_cpp else None
        return self._found[key]

    def fields(self, function: Function, one: Instruction) -> list[str]:
        """The members that the elements of a list become, in order."""
        made = self.record(function, one)
        return [member.name for member in made.ir.fields if not member.static] if made is not None else []

    def emplaced(self, function: Function, one: Instruction) -> list[str]:
        """The members that the arguments become of which a method makes an element in its container."""
        made = self._record(self._made_inside(function, one))
        return [member.name for member in made.ir.fields if not member.static] if made is not None else []

    def constructed(self, function: Function, one: Instruction) -> str:
        """The last part of the name of the class whose constructor a method of a container runs with its arguments; empty for others."""
        typed = self._made_inside(function, one)
        return last_part(str(typed.kind[0])) if typed is not None and not typed.kind[2] else ""

    def is_holder(self, function: Function, register: int) -> bool:
        """Whether a register is declared to hold what stands for the one object that it holds, as `std::optional` does."""
        typed = self._type(function, register) if function.is_cpp else None
        kind = self.facts.named_type(typed.scope, typed.kind)[0] if typed is not None else None
        return kind is not None and not kind[2] and kind[0] in self.facts.cpp_models.marked("smart")

    def is_object(self, function: Function, register: int, definition: ClassInfo) -> bool:
        """Whether a register is declared to hold an object of a class itself, whatever hands it on."""
        one = function.definitions[register] if register >= 0 else None
        if (
            one is not None
            and one[0] == op.CALL
            and len(one) == 6
            and function.dotted(one[3]) in self.facts.cpp_models.marked("gives-argument")
        ):
            return self.is_object(function, one[5], definition)
        typed = self._type(function, register)
        return typed is not None and not typed.kind[2] and self.facts.named_type(typed.scope, typed.kind)[1] is definition

    def owned(self, function: Function, register: int, use: Instruction) -> tuple[list[Function], ClassInfo | None]:
        """Of what a use assigns a value to, if it owns an object: the deleters of its type, and the class of the object."""
        typed = self._wanted(function, register, use, 0)
        return (self._deleters(typed), self._class(typed)) if typed is not None and self._is_owner(typed) else ([], None)

    def deleters(self, function: Function, register: int) -> list[Function]:
        """The call operators of the deleter that the declared type of a smart pointer names."""
        typed = self._type(function, register)
        return self._deleters(typed) if typed is not None and self._is_owner(typed) else []

    def _is_owner(self, typed: Typed) -> bool:
        kind = self.facts.named_type(typed.scope, typed.kind)[0]
        return not kind[2] and kind[0] in self.facts.cpp_models.marked("owner") | self.facts.cpp_models.marked("holds-value")

    def _deleters(self, typed: Typed) -> list[Function]:
        given = self.facts.named_type(typed.scope, typed.kind)[0][1][1:2]
        meant = self.facts.named_type(typed.scope, given[0])[1] if given and given[0] is not None and not given[0][2] else None
        return meant.methods.get("operator()", []) if isinstance(meant, ClassInfo) else []

    def _made_inside(self, function: Function, one: Instruction) -> Typed | None:
        """The type of the element that a method makes of its arguments in its container; a map has a key and a value made."""
        if not function.is_cpp or not function.invokes(one, "emplaces"):
            return None
        holder = self._type(function, one[3])
        if holder is None or self.facts.named_type(holder.scope, holder.kind)[0][0] in self.facts.cpp_models.marked("mapped"):
            return None
        return self._element(holder) or self._inside(holder)

    def _inside(self, holder: Typed) -> Typed | None:
        """The type of what is held inside of an object that holds one alone, as `std::optional` does."""
        kind = self.facts.named_type(holder.scope, holder.kind)[0]
        is_inside = kind[0] in self.facts.cpp_models.marked("holds-value") and not kind[2]
        return Typed(holder.scope, kind[1][0]) if is_inside and kind[1] else None

    def _record(self, typed: Typed | None) -> ClassInfo | None:
        meant = self._class(typed) if typed is not None and not typed.kind[2] and typed.kind[4] is None else None
        return meant if meant is not None and meant.unit.is_cpp and not meant.methods.get("__init__") and meant.ir.fields else None

    def _class(self, typed: Typed) -> ClassInfo | None:
        """The class of an object, or of what a pointer or an owner leads to."""
        scope, kind = typed
        for _ in range(_DEEPEST):
            held = self.facts.held_type(kind)
            if held is None:
                break
            kind = held
        meant = self.facts.named_type(scope, kind)[1]
        return meant if isinstance(meant, ClassInfo) else None

    # --- where a list goes

    def _expected(self, function: Function, one: Instruction, depth: int) -> Typed | None:
        """The type of what a list is made into."""
        if depth > _DEEPEST:
            return None
        found = (self._wanted(function, one[2], use, depth) for use in function.uses[one[2]])
        return next((each for each in found if each is not None), None)

    def _wanted(self, function: Function, register: int, use: Instruction, depth: int) -> Typed | None:
        """The type that a use wants a value to have."""
        rule = _WANTED.get(use[0])
        return rule(self, function, register, use, depth) if rule is not None else None

    def _by_method(self, function: Function, register: int, use: Instruction, depth: int) -> Typed | None:
        name, given = function.text(use[4]), use[6:]
        is_stored = name in function.known(*STORES) and not function.invokes(use, "emplaces")
        holder = self._type(function, use[3]) if register in given else None
        if holder is None:
            return None
        element = self._element(holder) if is_stored else None
        owner = self._class(holder) if element is None else None
        found = self._parameter(self.facts.overloads(owner, name), given.index(register)) if owner is not None else None
        return element or (self._bound(found, owner, holder) if found is not None and owner is not None else None)

    def _bound(self, found: Typed, owner: ClassInfo, holder: Typed) -> Typed:
        """A type of a class template; one that names a parameter of the template is what the object is declared with."""
        arguments = holder.kind[1]
        index = owner.ir.template.index(str(found.kind[0])) if found.kind[0] in owner.ir.template else len(arguments)
        return Typed(holder.scope, arguments[index]) if index < len(arguments) and isinstance(arguments[index], tuple) else found

    def _by_call(self, function: Function, register: int, use: Instruction, depth: int) -> Typed | None:
        callee = function.definitions[use[3]]
        if callee is None or callee[0] != op.NAME or register not in use[5:]:
            return None
        text = function.text(callee[3])
        owner = function.method.owner if function.method is not None else None
        found = [each for each in self.facts.cpp.find(function.unit, scope_of(function), text) if isinstance(each, Function)]
        return self._parameter([*found, *(self.facts.overloads(owner, text) if owner is not None else ())], use[5:].index(register))

    def _parameter(self, callees: Iterator[Function] | list[Function] | tuple[()], place: int) -> Typed | None:
        for callee in callees:
            parameters = callee.code.parameters[1 if callee.has_receiver else 0 :]
            if place < len(parameters) and (kind := parameters[place].type) is not None:
                return Typed(callee, kind)
        return None

    def _by_object(self, function: Function, register: int, use: Instruction, depth: int) -> Typed | None:
        """An object or a container is made of lists."""
        return self._part(Typed(function, function.unit.ir.constants[use[3]]), use[5:].index(register)) if register in use[5:] else None

    def _by_list(self, function: Function, register: int, use: Instruction, depth: int) -> Typed | None:
        whole = self._expected(function, use, depth + 1)
        return self._part(whole, use[4:].index(register)) if whole is not None else None

    def _part(self, whole: Typed, place: int) -> Typed | None:
        """The type of a part of what is made of a list: of an element, of a parameter of a constructor, of a member."""
        element = self._element(whole)
        made = self._class(whole) if element is None else None
        if made is None:
            return element
        if made.methods.get("__init__"):
            return self._parameter(made.methods["__init__"], place)
        fields = [member for member in made.ir.fields if not member.static]
        kind = fields[place].type if place < len(fields) else None
        return Typed(made.body, kind) if kind is not None else None

    def _by_item(self, function: Function, register: int, use: Instruction, depth: int) -> Typed | None:
        holder = self._type(function, use[2]) if use[4] == register else None
        return self._element(holder) if holder is not None else None

    def _by_member(self, function: Function, register: int, use: Instruction, depth: int) -> Typed | None:
        return self._member(function, use[2], function.text(use[3])) if use[4] == register else None

    def _by_initialiser(self, function: Function, register: int, use: Instruction, depth: int) -> Typed | None:
        whole = self._named(function, function.text(use[3]))
        return self._part(whole, use[5:].index(register)) if whole is not None and register in use[5:] else None

    def _by_name(self, function: Function, register: int, use: Instruction, depth: int) -> Typed | None:
        return self._named(function, function.text(use[2]))

    def _by_variable(self, function: Function, register: int, use: Instruction, depth: int) -> Typed | None:
        return self._variable(function, use[2], depth)

    def _by_binding(self, function: Function, register: int, use: Instruction, depth: int) -> Typed | None:
        """Another value of a local variable: its type is that of the ones before."""
        others = (one[3] for one in function.by_opcode[op.BIND] if one[2] == use[2] and one[3] != register)
        found = (self._type(function, each, depth + 1) for each in others)
        return next((each for each in found if each is not None), None)

    def _by_cast(self, function: Function, register: int, use: Instruction, depth: int) -> Typed | None:
        kind = function.unit.ir.constants[use[3]]
        return Typed(function, kind) if isinstance(kind, tuple) else None

    # --- declared types

    def _type(self, function: Function, register: int, depth: int = 0) -> Typed | None:
        """The declared type of what a register holds."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or depth > _DEEPEST:
            return None
        if one[0] in _MADE:
            return self._made(function, one)
        if one[0] in _SAME:
            return self._type(function, one[_SAME[one[0]]], depth + 1)
        rule = _TYPES.get(one[0])
        return rule(self, function, one, depth) if rule is not None else None

    def _of_parameter(self, function: Function, one: Instruction, depth: int) -> Typed | None:
        kind = function.code.parameters[one[3]].type
        return Typed(function, kind) if kind is not None else None

    def _of_variable(self, function: Function, one: Instruction, depth: int) -> Typed | None:
        return self._variable(function, one[3], depth)

    def _of_name(self, function: Function, one: Instruction, depth: int) -> Typed | None:
        return self._named(function, function.text(one[3]))

    def _of_member(self, function: Function, one: Instruction, depth: int) -> Typed | None:
        return self._member(function, one[3], function.text(one[4]), depth)

    def _of_element(self, function: Function, one: Instruction, depth: int) -> Typed | None:
        """The type of what is taken out of a container, by an index, a loop or a method."""
        if one[0] == op.INVOKE and function.text(one[4]) not in function.known("element-of"):
            return None
        holder = self._type(function, one[3], depth + 1)
        return self._element(holder) if holder is not None else None

    def _of_pointee(self, function: Function, one: Instruction, depth: int) -> Typed | None:
        found = self._type(function, one[3], depth + 1)
        return found.less() if found is not None else None

    def _made(self, function: Function, one: Instruction) -> Typed:
        name, args, pointers, reference, array = function.unit.ir.constants[one[3]]
        return Typed(function, (name, args, pointers + (one[0] in (op.NEW, op.NEW_ARRAY)), reference, array))

    def _variable(self, function: Function, number: int, depth: int) -> Typed | None:
        """The type of a variable that closures share, by what makes it."""
        for each, one in function.on_variable(op.STORE, number):
            made = each.definitions[one[3]]
            if made is not None and made[0] != op.BUILD and (found := self._type(each, one[3], depth + 1)) is not None:
                return found
        return None

    def _named(self, function: Function, name: str) -> Typed | None:
        """The type of a member that a method names."""
        owner = self.facts.member_of(function, name)
        return self._field(owner, last_part(name)) if owner is not None else None

    def _member(self, function: Function, register: int, name: str, depth: int = 0) -> Typed | None:
        holder = self._type(function, register, depth + 1)
        owner = self._class(holder) if holder is not None else None
        return self._field(owner, name) if owner is not None else None

    def _field(self, owner: ClassInfo, name: str) -> Typed | None:
        found = self.facts.field_of(owner, name)
        return Typed(found[0].body, found[1].type) if found is not None and found[1].type is not None else None

    def _element(self, holder: Typed) -> Typed | None:
        """The type of the elements of a container, or of what a pointer leads to."""
        kind = self.facts.named_type(holder.scope, holder.kind)[0]
        if kind[4] is not None or kind[2]:
            return Typed(holder.scope, kind).less()
        held = self.facts.kind_inside(str(kind[0]), kind[1]) if kind[0] in self.facts.cpp_models.marked("sequence") else None
        return Typed(holder.scope, held) if held is not None else None


_WANTED: dict[int, Callable[[BraceLists, Function, int, Instruction, int], Typed | None]] = {
    op.INVOKE: BraceLists._by_method,
    op.CALL: BraceLists._by_call,
    op.CONSTRUCT: BraceLists._by_object,
    op.NEW: BraceLists._by_object,
    op.BUILD: BraceLists._by_list,
    op.SET_ITEM: BraceLists._by_item,
    op.SET_ATTR: BraceLists._by_member,
    op.SET_NAME: BraceLists._by_name,
    op.STORE: BraceLists._by_variable,
    op.INIT: BraceLists._by_initialiser,
    op.CAST: BraceLists._by_cast,
    op.BIND: BraceLists._by_binding,
}
"""By opcode of a use: the type that it wants."""
_TYPES: dict[int, Callable[[BraceLists, Function, Instruction, int], Typed | None]] = {
    op.PARAM: BraceLists._of_parameter,
    op.LOAD: BraceLists._of_variable,
    op.NAME: BraceLists._of_name,
    op.ATTR: BraceLists._of_member,
    op.ITEM: BraceLists._of_element,
    op.NEXT: BraceLists._of_element,
    op.INVOKE: BraceLists._of_element,
    op.DEREF: BraceLists._of_pointee,
}
"""By opcode of what defines a register: its declared type."""
