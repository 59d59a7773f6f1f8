"""What attributes and global names may hold: all that code of the program sets them to, where it shows whose they are."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import DICT, LIST, last_name, pairs_of
from streamlint.facts.code.objects import ClassObject, Constant, Instance, Memory, ModuleObject, Object
from streamlint.facts.code.stores import Store
from streamlint.facts.files.program import Unit
from streamlint.facts.graph.facts import Facts
from streamlint.facts.values.flags import is_own
from streamlint.facts.values.language import MAKING_DICTS
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import last_part
from streamlint.waits.entered import Held, entered_by
from streamlint.waits.operands import argument_registers
from streamlint.waits.origins import UNSURE
from streamlint.waits.record_fields import RecordFields


class Members:
    """Answers for the attributes of a program's objects, and for the global names of its files."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.records = RecordFields(facts)
        self._known: dict[tuple[ClassInfo, str], list[Held] | None] = {}
        self._globals: dict[tuple[Unit, str], list[Held]] = {}
        self._fixed: dict[str, bool] = {}

    def of(self, held: Held, register: int, name: str) -> list[Held] | None:
        """What is set as an attribute of what a register of the same function holds: the receiver, a file, or an object whose classes are
        known, but for what unknown callers give; None where something else may be."""
        function = held.function
        if function.owner is not None and is_own(function, register):
            return self.of_class(self._receiver(function.owner, held), name)
        every = self.facts.values(function, register).values
        values = [value for value in every if not (isinstance(value, Constant) and value.value is None)]
        units = [value.unit for value in values if isinstance(value, ModuleObject)]
        if units and len(units) == len(values):
            return [each for unit in units for each in self.of_file(unit, name)] or None
        return self._of_objects(values, name)

    def _of_objects(self, values: list[Object], name: str) -> list[Held] | None:
        """The same of objects whose classes are known."""
        classes = [value.definition for value in values if isinstance(value, Instance)]
        if not classes or not all(isinstance(value, Instance) or _is_of_callers(value) for value in values):
            return None
        every = [self.of_class(each, name) for each in dict.fromkeys(classes)]
        return [each for found in every for each in found or ()] if None not in every else None

    def of_file(self, unit: Unit, name: str) -> list[Held]:
        """What a file gives a global name; nothing where other files set it, too."""
        key = (unit, name)
        if key not in self._globals:
            places = unit.globals.get(name, ())
            is_known = places and all(register >= 0 for _, register in places) and not any(self._set_of(unit, name))
            self._globals[key] = [Held(*place) for place in places] if is_known else []
        return self._globals[key]

    def _set_of(self, unit: Unit, name: str) -> Iterator[Store]:
        """Where an attribute is set that may be the global name of a file."""
        for store in self._outside(name):
            if any(isinstance(value, ModuleObject) and value.unit is unit for value in self._receivers(store)):
                yield store

    def _receiver(self, owner: ClassInfo, held: Held) -> ClassInfo:
        """The class of the receiver of a method, as far as methods tell that have called one another for it, and who called the first."""
        function = held.function
        while (entered := entered_by(held.context, function)) is not None and entered.function is not function:
            function, call = entered
            if call[0] == op.INVOKE and is_own(function, call[3]) and function.owner is not None:
                owner = function.owner if owner in self.facts.hierarchy.order(function.owner) else owner
                continue
            called = self._called_for(function, call)
            return called if called is not None and owner in self.facts.hierarchy.order(called) else owner
        return owner

    def _called_for(self, function: Function, call: Instruction) -> ClassInfo | None:
        """The class of the object for which a call calls a method, but for what unknown callers give; None where it may be another."""
        values = list(self.facts.values(function, call[3]).values) if call[0] == op.INVOKE else []
        known = [value for value in values if getattr(value, "reason", "") != "caller"]
        classes = {value.definition for value in known if isinstance(value, Instance) and value.exact}
        return classes.pop() if len(classes) == 1 and len(known) == 1 else None

    def of_class(self, definition: ClassInfo, name: str) -> list[Held] | None:
        """What is set as an attribute of a class's objects; None where something else may be."""
        key = (definition, name)
        if key not in self._known:
            self._known[key] = None
            self._known[key] = self._find(definition, name)
        return self._known[key]

    def _find(self, definition: ClassInfo, name: str) -> list[Held] | None:
        cone = self.facts.hierarchy.cone(definition) or ()
        classes, line = frozenset({definition, *cone}), dict.fromkeys((*self.facts.hierarchy.order(definition), *cone))
        stores = [store for each in line for store in each.own_stores.get(name, ())]
        stores += [store for store in self._outside(name) if self._may_be_of(store, line)]
        if any(name in each.methods for each in line) or any(store.value < 0 for store in stores):
            return None
        found = [Held(store.function, store.value, (), classes) for store in stores]
        for each in line:
            fields = self._of_field(each, name) if name in self.facts.fields(each) else []
            if fields is None:
                return None
            found += [*fields, *self._defaults(each, name, fields)]
        return found or None

    def _defaults(self, definition: ClassInfo, name: str, given: list[Held]) -> list[Held]:
        """What a class's body says of an attribute: nothing of a field that all calls give which make records of the class."""
        is_left_out = not given or not self._is_always_given(definition, name)
        return [Held(definition.body, register) for register in definition.assigned.get(name, ())] if is_left_out else []

    def _is_always_given(self, definition: ClassInfo, name: str) -> bool:
        """Whether all calls that make records of a class give a field, so that none has the default."""
        places = [place for place in self.facts.construction_places(definition) if not self._decorates(*place, definition)]
        return all(self.records.of(*place) and name in {field for field, _ in self.records.given(*place)} for place in places)

    def _decorates(self, function: Function, call: Instruction, definition: ClassInfo) -> bool:
        """Whether a call is given a class itself: it is a decorator of that, which gives it back."""
        held = [value for _, register in argument_registers(function, call) for value in self.facts.values(function, register).values]
        return any(isinstance(value, ClassObject) and value.definition is definition for value in held)

    def _outside(self, name: str) -> Iterator[Store]:
        """Where an attribute of an object that is no receiver of a method is set."""
        for unit in self.facts.program.mentioning(name) if name else ():
            yield from unit.attribute_stores.get(name, ()) if not unit.is_cpp else ()

    def _receivers(self, store: Store) -> list[object]:
        return list(self.facts.values(store.function, store.receiver).values)

    def _may_be_of(self, store: Store, line: Collection[ClassInfo]) -> bool:
        """Whether an attribute that is set may be one of an object of some classes."""
        held = self._receivers(store)
        return not held or not all(isinstance(value, Instance) and value.definition not in line for value in held)

    def _of_field(self, definition: ClassInfo, name: str) -> list[Held] | None:
        """What the calls that make records of a class give for a field; those that leave it out mean what the class's body says."""
        if self._is_argument(definition):
            return None
        made = (place for place in self.facts.construction_places(definition) if self.records.of(*place))
        places = [place for place in made if definition in self.records.classes(*place)]
        found = [Held(place[0], register) for place in places for field, register in self.records.given(*place) if field == name]
        copies = list(self._copying(definition))
        found += [
            Held(function, register) for function, call in copies for kind, register in argument_registers(function, call) if kind == name
        ]
        for function, call in (*places, *copies):
            for kind, register in argument_registers(function, call):
                spread = self._of_spread(definition, function, register, name) if kind == DICT else None if kind == LIST else []
                if spread is None:
                    return None
                found += spread
        return found

    def _copying(self, definition: ClassInfo) -> Iterator[tuple[Function, Instruction]]:
        """The calls that copy records of a class, and change fields of the copies."""
        cone = (definition, *(self.facts.hierarchy.cone(definition) or ()))
        for function, call in self._changed_copies:
            values = self.facts.values(function, argument_registers(function, call)[0][1]).values
            if any(isinstance(value, Instance) and value.definition in cone for value in values):
                yield function, call

    @cached_property
    def _changed_copies(self) -> list[tuple[Function, Instruction]]:
        """The calls that copy an object with other values of some attributes: ``dataclasses.replace(options, seed=seed)``."""
        models = self.facts.models
        names = {last_part(name) for name in models.marked("copies-object") & models.marked("sets-attributes")}
        units = dict.fromkeys(unit for name in sorted(names) for unit in self.facts.program.mentioning(name) if not unit.is_cpp)
        calls = ((each, one) for unit in units for each in unit.functions for code in (op.CALL, op.INVOKE) for one in each.by_opcode[code])
        return [
            (function, one)
            for function, one in calls
            if last_name(function, one) in names
            and (given := argument_registers(function, one))
            and given[0][0] is None
            and any(isinstance(kind, str) or kind == DICT for kind, _ in given)
        ]

    def _of_spread(self, definition: ClassInfo, function: Function, register: int, name: str) -> list[Held] | None:
        """What a dictionary that a call spreads gives for a field of a record: what is written out, beside the fields of other records of
        the class, `{**vars(options), "seed": seed}`."""
        made = function.definitions[register] if register >= 0 else None
        pairs = list(pairs_of(function, made)) if made is not None else []
        found = [Held(function, value) for key, value in pairs if key == name]
        others = [value for key, value in pairs if key == DICT] if pairs else [register]
        is_known = all(isinstance(key, str) or key == DICT for key, _ in pairs) and len(function.uses[register]) == 1
        return found if is_known and all(self._is_of_record(definition, function, each) for each in others) else None

    def _is_of_record(self, definition: ClassInfo, function: Function, register: int) -> bool:
        """Whether a dictionary has the fields of records of a class: `vars(options)`."""
        made = function.definitions[register] if register >= 0 else None
        if made is None or made[0] not in (op.CALL, op.INVOKE) or last_name(function, made) not in MAKING_DICTS:
            return False
        given = argument_registers(function, made)
        values = [
            value for _, each in given for value in self.facts.values(function, each).values if getattr(value, "reason", "") != "caller"
        ]
        cone = (definition, *(self.facts.hierarchy.cone(definition) or ()))
        return len(given) == 1 and bool(values) and all(isinstance(value, Instance) and value.definition in cone for value in values)

    def _is_argument(self, definition: ClassInfo) -> bool:
        """Whether a class is an argument of a call, which may make objects of it: a parser of a command line."""
        name = definition.ir.name
        for unit in self.facts.program.mentioning(name):
            for function in unit.functions:
                for one in function.by_opcode[op.NAME]:
                    uses = function.uses[one[2]] if function.text(one[3]) == name else ()
                    if any(use[0] in (op.CALL, op.INVOKE) and one[2] in use[5:] and _makes(function, use) for use in uses):
                        return True
        return False

    def is_fixed(self, name: str) -> bool:
        """Whether constructors alone set the attributes of a name."""
        found = self._fixed.get(name)
        if found is None:
            units = [unit for unit in self.facts.program.mentioning(name) if not unit.is_cpp]
            inner = (store for unit in units for each in unit.classes for store in each.own_stores.get(name, ()))
            found = not any(True for _ in self._outside(name)) and all(store.function.code.name == "__init__" for store in inner)
            self._fixed[name] = found
        return found


def _is_of_callers(value: Object) -> bool:
    """Whether a value is what unknown callers may give, or a tensor that it is taken for, since training may compute with it."""
    return getattr(value, "reason", "") == "caller" or (isinstance(value, Memory) and value.evidence.startswith(UNSURE))


def _makes(function: Function, call: Instruction) -> bool:
    """Whether a call does more with a class than to ask whether an object is of it."""
    return call[0] == op.INVOKE or function.dotted(call[3]) not in ("isinstance", "issubclass", "super")
