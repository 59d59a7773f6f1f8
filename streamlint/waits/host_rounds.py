"""Rounds that run on the host: the modules that they train are made in view, and nobody moves them.

A module is made on the host, and computes with what is there too. So a round has nothing to wait for if a module that it calls was made by
the program and is never moved, and if the files whose functions it runs choose no device for the objects that are meant. Unknown
callers may pass a module that is elsewhere, unless the file makes one for its own function, the program makes some and nowhere
chooses a device, or it is an application, and shows all who pass one: then it is a program, and no library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import behind
from streamlint.facts.code.objects import (
    BoundMethod,
    ClassObject,
    Constant,
    Container,
    External,
    FunctionObject,
    Instance,
    LibraryObject,
    Memory,
    Object,
    Site,
    Unknown,
)
from streamlint.facts.files.program import Unit
from streamlint.facts.graph.aliases import path_of
from streamlint.facts.graph.unused import Unused
from streamlint.facts.repetition.hot import HotRegions, Region
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Loop
from streamlint.models import StepRow
from streamlint.waits.constants import constants_of
from streamlint.waits.elsewhere import Elsewhere
from streamlint.waits.entered import Context, Held
from streamlint.waits.host_rounds_cpp import CppHostRounds
from streamlint.waits.moved import Part
from streamlint.waits.operands import argument_registers
from streamlint.waits.origins import is_reason
from streamlint.waits.placing import Placing
from streamlint.waits.put_on_host import PutOnHost
from streamlint.waits.read_as_host import ReadAsHost
from streamlint.waits.together import is_beside_host, makes_elsewhere

_MOST = 200
"""Registers that are looked at for one."""
_COMPUTING = (op.BINARY, op.INPLACE, op.COMPARE)
_Called = tuple[Function, Instruction, list[Object]]
"""A call, and what it is known to call."""


class HostRounds:
    """Answers for the loops of a program."""

    def __init__(self, hot: HotRegions) -> None:
        self.hot = hot
        self.facts = hot.facts
        self._applications = hot.facts.shared.one_of(Unused, hot.facts.program, hot.facts.hierarchy).applications
        self._placings: dict[frozenset[Unit] | None, Placing] = {}
        self._given = constants_of(hot.facts).given
        self._elsewhere = Elsewhere(hot.graph)
        self._put = PutOnHost(self._given, self._elsewhere)
        self._reads = ReadAsHost(hot.graph, self._given, lambda: (held for *_, held in self._moves))
        self._cpp = CppHostRounds(hot)
        self._known: dict[tuple[Function, Loop | None, str], bool] = {}

    def holds(self, region: Region) -> bool:
        """Whether what the loop behind a region trains is on the host, or what the step is called for."""
        first = region.chain()[0]
        if makes_elsewhere(self.hot.graph):
            return False
        if first.loop is None and first.row is None:
            return False
        key = (first.function, first.loop, first.does)
        if key not in self._known:
            regions = [each for held in self.hot.regions.values() for each in held if each.chain()[0] is first]
            if first.row is not None:
                self._known[key] = self._is_stepped_on_host(first) or self._is_fed_from_host(first, regions)
            else:
                self._known[key] = self._cpp.trains(regions) if first.function.is_cpp else self._stays_off_cuda(regions)
        return self._known[key]

    def _is_fed_from_host(self, first: Region, regions: list[Region]) -> bool:
        """Whether a step computes with what its caller gives it, and with tensors of the host: the caller trains there."""
        for region in regions if not first.function.is_cpp else ():
            home = self.hot.body(region.function).home
            for one in (each for opcode in _COMPUTING for each in region.function.by_opcode[opcode] if home[each] in region.blocks):
                if is_beside_host(self.hot.graph, region.function, one[2]):
                    beside = self._reads.beside(Part(region.function, one[2], ()))
                    if any(each.function is first.function and _is_given(*each[:2]) for each, _ in beside):
                        return True
        return False

    def _stays_off_cuda(self, regions: list[Region]) -> bool:
        if self._elsewhere.drives(dict.fromkeys(each.function for each in regions)) or self._trains_on_host(regions):
            return True
        losses = {each: found for each in regions if (found := self._losses(each))}
        return bool(losses) and all(
            self._are_of_host(each.function, found)
            or self._put.gives(each.function, found)
            or all(self._reads.gives(each.function, loss) for loss in found)
            for each, found in losses.items()
        )

    def _is_stepped_on_host(self, first: Region) -> bool:
        """Whether a step of an optimizer belongs to a program that makes it itself, and nowhere chooses a device."""
        owner, row = first.function.owner, first.row
        if owner is None or not isinstance(row, StepRow) or row.loop != "optimizer":
            return False
        return bool(self.facts.construction_places(owner)) and self._placing(first).is_nowhere()

    def _placing(self, first: Region) -> Placing:
        """Who answers where the files that are run with a loop's, or the whole program, put something."""
        run = self.hot.scripts.run_with(first.function.unit)
        if run not in self._placings:
            self._placings[run] = Placing(self.facts, run)
        return self._placings[run]

    def _trains_on_host(self, regions: list[Region]) -> bool:
        calls = [each for region in regions for each in self._called(region)]
        called, placing = self._modules(calls), self._placing(regions[0].chain()[0])
        if not self._are_own(calls, called, placing):
            return False
        makers = self._made_for(calls, [region.function for region in regions if region.caller is None])
        if self._is_device_chosen(regions, called, makers, placing):
            return False
        if called:
            parts = {each for value in called for each in self._with_held([value]) if each != value}
            return any(map(self._is_trained, called)) and not any(
                self._is_moved(value, makers, value in parts, placing) for value in called
            )
        return placing.is_nowhere() and any(map(self._is_fed, regions))

    def _modules(self, calls: list[_Called]) -> dict[Object, None]:
        """The modules among what calls call; where there are none, what else is plain: a layer or criterion has nothing to be moved."""
        found = dict.fromkeys(value for _, _, values in calls for value in values if self._is_module(value))
        return found or dict.fromkeys(value for _, _, values in calls for value in values if all(map(_is_plain, values)))

    def _are_own(self, calls: list[_Called], called: dict[Object, None], placing: Placing) -> bool:
        """Whether the program makes what calls call, as far as that is known."""
        for function, call, values in calls:
            modules = [value for value in values if value in called]
            if not modules or all(map(self._is_known, values)) or self._is_own(function.unit, modules, placing):
                continue
            if not self._applications.is_closed(function.unit) or self._makers(function, call) is None:
                return False
        return placing.is_nowhere() or not any(self._may_be_given(*each) for each in calls)

    def _is_device_chosen(self, regions: list[Region], called: dict[Object, None], makers: Context, placing: Placing) -> bool:
        """Whether a device is chosen in the files of loops, or by methods of the modules that they call."""
        classes = {each for value in called if isinstance(value, Instance) for each in self.facts.hierarchy.order(value.definition)}
        others = dict.fromkeys(region.function.unit for region in regions if region.function.owner not in classes)
        methods = (each for one in classes for held in one.methods.values() for method in held for each in method.below)
        chooses = any(placing.chooses(unit, makers) for unit in others)
        chooses = chooses or any(placing.takes_from_placing(site.function.unit) for _, site in makers)
        return chooses or any(placing.chooses_in(each, makers) for each in methods)

    def _may_be_given(self, function: Function, call: Instruction, values: list[Object]) -> bool:
        """Whether a module calls what unknown callers may have passed to it, and no code in view tells where that was made."""
        if call[0] != op.INVOKE or function.owner is None or not function.is_parameter(call[3], 0):
            return False
        is_kept = any(function.text(call[4]) in each.own_stores for each in self.facts.hierarchy.order(function.owner))
        return is_kept and not all(map(self._is_known, values)) and self._makers(function, call) is None

    def _made_for(self, calls: Iterable[_Called], methods: Iterable[Function]) -> Context:
        """By constructor: the calls that make the modules of a loop, and the objects whose methods it stands in, where all of them lead to
        it: no other tells where these are."""
        found: dict[Function, list[Site]] = {}
        lost: set[Function] = set()
        for function, call, values in calls:
            if not function.is_parameter(call[3], 0):
                classes = [value.definition for value in values if isinstance(value, Instance)]
                self._add(classes, self._makers(function, call) or [], found, lost)
        for owner, made in self._owners(methods):
            self._add([owner], made, found, lost)
        return tuple((method, site) for method, sites in found.items() for site in dict.fromkeys(sites) if method not in lost)

    def _add(self, classes: Iterable[ClassInfo], made: list[Site], found: dict[Function, list[Site]], lost: set[Function]) -> None:
        for site in made:
            named = (each for each in self.facts.callees(*site) if isinstance(each, ClassObject))
            for method in (method for each in named for method in self._constructors(each.definition)):
                found.setdefault(method, []).append(site)
        if not made:
            lost.update(method for each in classes for method in self._constructors(each))

    def _constructors(self, definition: ClassInfo) -> list[Function]:
        method = self.facts.hierarchy.lookup(definition, "__init__")
        return method[1] if method is not None else []

    def _owners(self, methods: Iterable[Function]) -> Iterator[tuple[ClassInfo, list[Site]]]:
        """The classes of the objects whose methods some functions are, each with the calls that make what they are called for."""
        for method in dict.fromkeys(methods):
            if method.owner is None or not method.has_receiver:
                continue
            calls = [each for each in self.facts.call_places(method) if method in self.facts.enters(*each) and each[1][0] == op.INVOKE]
            made = [self._made_by(function, call[3]) for function, call in calls]
            yield method.owner, [site for each in made for site in each or ()] if all(made) else []

    def _makers(self, function: Function, call: Instruction) -> list[Site] | None:
        """The calls that make what a call calls; functions need not be made. None where that is not known."""
        if call[0] != op.INVOKE or any(isinstance(each, BoundMethod) for each in self.facts.callees(function, call)):
            return self._made_by(function, call[3])
        kept = self._given.members.of(Held(function, call[3]), call[3], function.text(call[4]))
        return self._made_of(kept) if kept is not None else None

    def _made_by(self, function: Function, register: int) -> list[Site] | None:
        return self._made_of([Held(function, register)])

    def _made_of(self, held: Iterable[Held]) -> list[Site] | None:
        """The calls that make what registers hold, but for None and functions; None where that is not known."""
        waiting, found = list(held), list[Site]()
        seen = set(waiting)
        while waiting:
            here = waiting.pop()
            one = here.instruction
            if one is not None and one[0] in (op.CALL, op.INVOKE) and (maker := self._makes(here.function, one)) is not None:
                found += [Site(here.function, one)] if maker else []
                continue
            behind = [each for each in self._given.before(here) or [here] if each != here]
            if None in behind or len(seen) > _MOST or (not behind and not self._is_unmade(here)):
                return None
            waiting += [each for each in behind if each is not None and each not in seen]
            seen.update(each for each in behind if each is not None)
        return found

    def _is_unmade(self, held: Held) -> bool:
        """Whether a register holds nothing, or a function or a class as they are named."""
        values = list(self.facts.values(held.function, held.register).values)
        return bool(values) and all(
            isinstance(value, (External, FunctionObject, ClassObject)) or (isinstance(value, Constant) and value.value is None)
            for value in values
        )

    def _makes(self, function: Function, one: Instruction) -> bool | None:
        """Whether a call makes an object of a class of the program (True), or a layer of a library's (False); None for anything else."""
        if any(isinstance(each, ClassObject) for each in self.facts.callees(function, one)):
            return True
        values = self.facts.values(function, one[2]).values
        is_layer = bool(values) and all(_is_plain(value) or self._is_module(value) for value in values)
        return False if is_layer else None

    def _is_fed(self, region: Region) -> bool:
        """Whether a region calls what it asks for parameters with tensors of the host alone."""
        function, home = region.function, self.hot.body(region.function).home
        asked = (one[3] for one in function.by_opcode[op.INVOKE] if function.text(one[4]) in self.facts.models.known("parameters"))
        paths = {path_of(function, register) for register in asked} - {""}
        for one in function.by_opcode[op.CALL]:
            if home[one] in region.blocks and path_of(function, one[3]) in paths:
                given = argument_registers(function, one)
                if given and all(self._is_of_host(function, register) for _, register in given):
                    return True
        return False

    def _losses(self, region: Region) -> list[int]:
        """What a region goes backward from."""
        function, home = region.function, self.hot.body(region.function).home
        passes = (one.instruction for one in self.hot.rounds.of(function) if one.row.does == "backward")
        return [one[3] for one in passes if one[0] == op.INVOKE and home[one] in region.blocks]

    def _are_of_host(self, function: Function, registers: list[int]) -> bool:
        """Whether a function computes values of tensors alone that are made on the host, without any module."""
        computed = (one[2] for one in behind(function, registers, op.reads) if op.DEFINES[one[0]])
        values = [value for register in computed for value in list(self.facts.values(function, register).values)]
        spaces = {value.space for value in values if isinstance(value, Memory) and not is_reason(value.evidence)}
        is_open = any(isinstance(value, Unknown) or _is_plain(value) or self._is_module(value) for value in values)
        return spaces == {"host"} and not is_open

    def _is_of_host(self, function: Function, register: int) -> bool:
        values = list(self.facts.values(function, register).values)
        return bool(values) and all(isinstance(value, Memory) and value.space == "host" for value in values)

    def _called(self, region: Region) -> Iterator[_Called]:
        """What the calls of a region call: for a method, its receiver."""
        function, home = region.function, self.hot.body(region.function).home
        for one in (each for opcode in (op.CALL, op.INVOKE) for each in function.by_opcode[opcode]):
            if home[one] in region.blocks:
                values = self.facts.callees(function, one)
                yield function, one, [value.receiver if isinstance(value, BoundMethod) else value for value in values]

    def _is_known(self, value: Object) -> bool:
        """Whether a value comes from the program: of what unknown code gives it, callers of the program have passed nothing in."""
        return not isinstance(value, Unknown) or value.reason == "external"

    def _is_own(self, unit: Unit, modules: list[Object], placing: Placing) -> bool:
        """Whether a file makes one of the modules that it trains, or the program makes them and nowhere chooses a device."""
        return any(self._is_made_in(unit, one) for one in modules) or placing.is_nowhere()

    def _is_made_in(self, unit: Unit, value: Object) -> bool:
        """Whether a file makes a module."""
        if isinstance(value, Instance):
            return any(function.unit is unit for function, _ in self.facts.construction_places(value.definition))
        return isinstance(value, Container) and value.frame.function.unit is unit

    def _is_module(self, value: Object) -> bool:
        """Whether an object is a module that the program makes; those of a library are one for all."""
        if isinstance(value, Instance):
            is_module = any(map(self.facts.forwarded, self.facts.hierarchy.libraries(value.definition)))
            return is_module and (value.exact or bool(self.facts.construction_places(value.definition)))
        return isinstance(value, Container) and value.kind == "modules"

    # --- modules

    def _is_trained(self, value: Object) -> bool:
        """Whether the parameters of a module are asked for: it has some, as losses have none."""
        return _is_among(self.facts.hierarchy.order, value, self._trained)

    def _is_moved(self, value: Object, makers: Context, is_part: bool, placing: Placing) -> bool:
        """Whether a module may be moved, or a part of another one by itself; objects that other calls than those of the loop make are
        others."""
        constructors = self._constructors(value.definition) if isinstance(value, Instance) else []
        own = {site for method, site in makers if method in constructors}
        for function, one, modules, held in self._moves:
            moved = modules if is_part else held
            if not _is_among(self.facts.hierarchy.order, value, moved) or not placing.moves(function, one, makers):
                continue
            is_itself = own and _is_among(self.facts.hierarchy.order, value, modules)
            if not (is_itself and self._is_of_others(function, one, own)):
                return True
        return False

    def _is_of_others(self, function: Function, one: Instruction, own: set[Site]) -> bool:
        """Whether all modules that a use moves are made by other calls than some."""
        for register in _moved_by(one):
            if any(map(self._is_module, self.facts.values(function, register).values)):
                made = self._made_by(function, register)
                if not made or not own.isdisjoint(made):
                    return False
        return True

    @cached_property
    def _trained(self) -> list[Object]:
        uses = self._receivers(self.facts.models.known("parameters"))
        return list(dict.fromkeys(value for _, _, modules in uses for value in modules))

    @cached_property
    def _moves(self) -> list[tuple[Function, Instruction, list[Object], list[Object]]]:
        """The uses of what moves modules, or may do so, each with the modules that it is given, and with those and what they hold."""
        return [(*use, self._with_held(use[2])) for use in self._receivers(self.facts.models.known("places"))]

    def _with_held(self, modules: list[Object]) -> list[Object]:
        """Modules, and those that they hold."""
        found = dict.fromkeys(modules)
        for value in (waiting := list(found)):
            held = [each for each in (*self._held(value), *filter(self._is_module, self._elements(value))) if each not in found]
            found.update(dict.fromkeys(held))
            waiting += held
        return list(found)

    def _receivers(self, names: frozenset[str]) -> list[_Called]:
        """The uses of methods of these names, each with the modules of which they are called, or that they are given."""
        found: list[_Called] = []
        for unit in dict.fromkeys(unit for name in sorted(names) for unit in self.facts.program.mentioning(name)):
            for name in names & unit.attribute_uses.keys() if not unit.is_cpp else ():
                for function, one in unit.attribute_uses[name]:
                    values = (value for each in _moved_by(one) for value in self.facts.values(function, each).values)
                    every = dict.fromkeys(each for value in values for each in (value, *self._elements(value)))
                    if modules := [value for value in every if self._is_module(value) or _is_plain(value)]:
                        found.append((function, one, modules))
        return found

    def _elements(self, value: Object) -> list[Object]:
        return self.facts.elements(value) if isinstance(value, Container) else []

    def _held(self, value: Object) -> Iterator[Object]:
        """The modules in the attributes of an object."""
        classes = self.facts.hierarchy.order(value.definition) if isinstance(value, Instance) else ()
        for store in (store for one in classes for stores in one.own_stores.values() for store in stores if store.value >= 0):
            values = list(self.facts.values(store.function, store.value).values)
            yield from (each for held in values for each in (held, *self._elements(held)) if self._is_module(each))


def _is_given(function: Function, register: int) -> bool:
    """Whether a register holds what callers give a method beside its object."""
    one = function.definitions[register] if register >= 0 else None
    return one is not None and one[0] == op.PARAM and one[3] >= function.has_receiver


def _moved_by(one: Instruction) -> list[int]:
    """The registers of what a method is called of, and is given."""
    return [each for each in (one[3], *(one[6:] if one[0] == op.INVOKE else ())) if each >= 0]


def _is_plain(value: Object) -> bool:
    """Whether an object is a module of a library's class; all of them are one."""
    return isinstance(value, LibraryObject) and value.kind == "module"


def _is_among(order: Callable[[ClassInfo], list[ClassInfo]], value: Object, others: Iterable[Object]) -> bool:
    """Whether an object is one of others, or of a class of theirs, or of one above or below."""
    if not isinstance(value, Instance):
        return any(other is value for other in others)
    own = order(value.definition)
    classes = [other.definition for other in others if isinstance(other, Instance)]
    return any(one in own or value.definition in order(one) for one in classes)
