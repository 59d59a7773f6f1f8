"""Where memory comes from by the program facts: through attributes, containers and globals, one way for each kind of memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Container, Instance, LibraryObject, Memory, Object, Site, Unknown
from streamlint.facts.values.nodes import Node
from streamlint.facts.values.selectors import space_of
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.support.memo import memoized
from streamlint.transfer.contexts import Known, add
from streamlint.transfer.cpp_declared import declared_type, is_plain_container
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.origin import CHOSEN, Base, Origin, Way, chosen
from streamlint.transfer.origin_objects import Makers
from streamlint.transfer.transfer import Transfer
from streamlint.waits.entered import Context

_MAKING = frozenset({"factory", "module_to", "transfer", "compute", "pin", "same"})
_PUTTING = frozenset({op.APPEND, op.BUILD, op.DICT, op.PUT})
_ASKED, _FOLLOWED = "asked", "followed"


class _Arrival(NamedTuple):
    """Memory of a kind that arrives at a register: the last place on its way back, and the calls that hand it on.

    ``elsewhere``: memory of the host that the last place makes on a device as well, where it is asked to, or where its operands are.
    """

    kind: tuple[str, str, str, str]
    last: Site | None
    passed: tuple[Site, ...]
    is_moved: bool
    may_be_pinned: bool
    elsewhere: str


class Kept(Base):
    """Steps back over values that are kept somewhere."""

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self._ended: dict[Known, list[tuple[_Arrival, Origin | None]]] = {}

    def kept(self, way: Way) -> Iterator[Origin]:
        """What the program facts know: for each kind of memory the place that it came from, each once.

        Kinds that came one way have the same places; said again for each kind, they would multiply with every object on the way.
        """
        yield from dict.fromkeys(self._kept(way))

    def _kept(self, way: Way) -> Iterator[Origin]:
        known = way.known
        one = self.contexts.definition(known)
        arrivals = self._ending(known, one)
        if not arrivals:
            node = self.facts.values(known.function, known.register)
            if not any(isinstance(value, Memory) for value in node.values):
                yield from self._by_puts(way, node)
        attribute = one if one is not None and one[0] == op.ATTR else None
        set_here: set[int] = set()
        walked: dict[Way, list[Origin]] = {}  # a way is gone once for all kinds of memory that came by it
        for memory, end in arrivals:
            if end is not None:
                yield end._replace(passed=way.passed, views=way.views)
                continue
            here = Origin(known, *memory.kind, way.passed, way.views, "kept")
            assert memory.last is not None
            if attribute is not None and self._makers.excludes(known, attribute[3], memory.last):
                continue
            own = self._set_before(known.function, attribute) if attribute is not None else None
            if own is None or memory.last.function is known.function:
                yield from self._behind(here, memory, walked)
            elif own[0] == op.SET_ATTR and own[4] not in set_here:
                set_here.add(own[4])
                yield from self.walk(way.at(own[4]))

    def _ending(self, known: Known, one: Instruction | None) -> list[tuple[_Arrival, Origin | None]]:
        """The kinds of memory that a register may hold, each with the origin at which its way ends, whatever led here; each origin once."""
        found = self._ended.get(known)
        if found is None:
            found, visited = [], set[Origin]()
            for memory in self._arrivals(known.function, known.register):
                end = self._end(Origin(known, *memory.kind, (), frozenset(), "kept"), one, memory)
                if end is None or end not in visited:
                    found.append((memory, end))
                    visited.update((end,) if end is not None else ())
            self._ended[known] = found
        return found

    @memoized
    def _arrivals(self, function: Function, register: int) -> Iterable[_Arrival]:
        """The kinds of memory that a register may hold, each with each way that it came, whatever the calls on a walk are."""
        node = self.facts.values(function, register)
        memory = [value for value in node.values if isinstance(value, Memory)]
        arriving = (self._arrival(function, node, value) for value in memory)
        return dict.fromkeys(each for each in arriving if each is not None)

    def _arrival(self, function: Function, node: Node, value: Memory) -> _Arrival | None:
        sites = list(node.trace(value))
        if self._is_excluded(value, sites):
            return None
        passed = tuple(reversed([site for site in sites if self._enters(site, function)]))
        may_pin = any(map(self.may_pin, sites)) or (value.pinning == "pageable" and any(map(self.pinnings.may_pin, sites)))
        last = sites[-1] if sites else None
        elsewhere = self._elsewhere(node, last) if value.space == "host" and last is not None else ""
        kind = value.space, value.pinning, value.type, value.evidence
        return _Arrival(kind, last, passed, self._is_moved_elsewhere(sites), may_pin, elsewhere)

    def _end(self, here: Origin, one: Instruction | None, memory: _Arrival) -> Origin | None:
        """The origin of memory where the way back to it ends; None where a step leads to the place that made it."""
        known, last = here.known, memory.last
        if memory.is_moved:
            return here._replace(space="device", pinning="unknown")
        if memory.may_be_pinned or (one is not None and one[0] == op.ATTR and self._is_other_memory(known, one)):
            return here._replace(pinning="unknown")
        if last is None or not op.DEFINES[last.instruction[0]] or last.instruction is one:
            end = here._replace(how="declared") if self._is_declared(known, one) else self._of_loader(here, one)
            return chosen(end) if memory.elsewhere and end == here else end
        return chosen(here) if memory.elsewhere == _ASKED else None

    def _behind(self, here: Origin, memory: _Arrival, walked: dict[Way, list[Origin]]) -> list[Origin]:
        """The origins of memory by the last place on its way; that place itself where none found there is of its kind."""
        last = memory.last
        assert last is not None
        behind = Way(Known(last.function, last.instruction[2], here.known.context), (*memory.passed, *here.passed), here.views)
        if behind not in walked:
            walked[behind] = list(self.walk(behind))
        found = walked[behind]
        if found and here.space == "unknown" and last.instruction[0] == op.PARAM and not last.function.is_cpp:
            return found  # of a type alone, who gives the value says more
        alike = [origin for origin in found if (origin.space, origin.pinning) == (here.space, here.pinning)]
        alike = alike or [origin for origin in found if here.space == "host" and origin.how == CHOSEN]
        rest = here._replace(known=behind.known, passed=behind.passed)
        is_open = bool(found) or memory.elsewhere == _FOLLOWED  # no step tells what one caller of several has given
        return alike or [chosen(rest) if is_open and here.space == "host" else rest]

    def _is_excluded(self, value: Memory, sites: list[Site]) -> bool:
        """Whether branches have asked for another kind of memory than that of the host where a value is put."""
        if value.space != "host":
            return False
        said = {each for site in sites if op.DEFINES[site.instruction[0]] for each in self.said_of(site.function, site.instruction[2])}
        return "device" in said or ("pinned" in said and value.pinning == "pageable")

    def said_of(self, function: Function, register: int) -> frozenset[str]:
        """What branches have asked of a value wherever it is put into a container or an object."""
        found = self.said.get((function, register))
        if found is None:
            puts = (use for use in function.uses[register] if _puts(function, use, register))
            said = [self.guards.at(function, use, register) for use in puts]
            found = self.said[function, register] = frozenset.intersection(*said) if said else frozenset()
        return found

    @cached_property
    def _makers(self) -> Makers:
        return Makers(self.contexts)

    def _set_before(self, function: Function, one: Instruction) -> Instruction | None:
        """C++: where a function has set a member itself on all ways to where it reads it, by the same name or through its address; the
        last place."""
        base, member = function.dotted(one[3]), function.text(one[4])
        if not function.is_cpp or not base:
            return None
        graph, home = function.control, function.blocks[one]
        code = function.code.blocks[home]
        last: Instruction | None = None
        for each in (*function.by_opcode[op.SET_ATTR], *function.by_opcode[op.ADDRESS_ATTR]):
            object_, name = (each[2], each[3]) if each[0] == op.SET_ATTR else (each[3], each[4])
            if function.text(name) != member or function.dotted(object_) != base:
                continue
            at = function.blocks[each]
            is_before = code.index(each) < code.index(one) if at == home else graph.dominates(at, home)
            if is_before and (each[0] == op.SET_ATTR or any(use[0] == op.CALL for use in function.uses[each[2]])):
                last = each
        return last

    def _is_moved_elsewhere(self, sites: list[Site]) -> bool:
        """Whether a framework, or a module that keeps it, moves a value on its way."""
        for site in sites:
            made: Instruction | None = site.instruction
            if made is not None and made[0] == op.UNPACK:
                made = site.function.definitions[made[3]]
            for call in self.transfer.modelled(site.function, made) if made is not None else ():
                if call.row.effect == "prepare" or (call.row.get("moves") and self.is_kept_by_module(site.function, site.instruction)):
                    return True
        return False

    def _is_declared(self, known: Known, one: Instruction | None) -> bool:
        """Whether the user declares what a member is that is read."""
        if one is None or one[0] not in (op.ATTR, op.NAME) or not self.facts.program.declares:
            return False
        name = known.function.text(one[4] if one[0] == op.ATTR else one[3])
        if one[0] == op.ATTR:
            owners = [value.definition for value in self.held(known, one[3]) if isinstance(value, Instance)]
        else:
            owner = self.facts.member_of(known.function, name) if known.function.is_cpp else None
            owners = [owner] if owner is not None else []
        return any(self.facts.declarations.of_field(owner, name) is not None for owner in owners)

    def may_pin(self, site: Site) -> bool:
        """Whether a call runs one of several functions, and one of them pins: the one for CUDA does, whatever the others give back."""
        one = site.instruction
        if one[0] not in (op.CALL, op.INVOKE):
            return False
        callees = {edge.callee for edge in self.transfer.edges(site.function, one) if edge.is_followed}
        held = self.facts.values(site.function, one[2]).values if len(callees) > 1 else ()
        return any(isinstance(value, Memory) and value.pinning == "pinned" for value in held)

    def _is_other_memory(self, known: Known, one: Instruction) -> bool:
        """Whether an attribute of a tensor is memory of its own, which whoever sets it has made (``x.grad``)."""
        kinds = {value.type for value in self.held(known, one[3]) if isinstance(value, Memory)}
        rows = [self.facts.models.member(kind, known.function.text(one[4])) for kind in kinds]
        return any(row is not None and row.effect == "factory" for row in rows)

    def _by_unknown(self, way: Way, node: Node) -> Iterator[Origin]:
        """Of what the facts do not know: a plain container; else the call on its way that the row of a method by its name models."""
        known = way.known
        if known.function.is_cpp and is_plain_container(self.facts, known.function, declared_type(self.contexts, known)):
            yield Origin(known, "host", "pageable", "std::vector", "none", way.passed, way.views, "kept")
            return
        for value in list(node.values):
            for site in node.trace(value) if _is_open(value, way.is_viewed) else ():
                one = site.instruction
                if one[0] == op.PARAM and site.function is not known.function and not site.function.is_cpp:
                    found = self.walk(way._replace(known=Known(site.function, one[2], ())))
                    yield from (origin for origin in found if not self._is_known(origin.known))
                    return
                if one[0] not in (op.CALL, op.INVOKE) or (site.function is known.function and one[2] == known.register):
                    continue
                if any(call.row.effect in _MAKING for call in self.transfer.modelled(site.function, one)):
                    yield from self.walk(way._replace(known=Known(site.function, one[2], ())))
                    return

    def _by_puts(self, way: Way, node: Node) -> Iterator[Origin]:
        """What is taken out of a queue has the origins of what is put there; of all else, nothing but its way is known."""
        found = [origin for put in self._put_where_taken(way.known) for origin in self.walk(way._replace(known=put))]
        return iter(found) if found else self._by_unknown(way, node)

    def _put_where_taken(self, known: Known) -> Iterator[Known]:
        """Python: what is put into the queue that a value is taken out of, by other functions; of a tuple, one of its parts."""
        one = self.contexts.definition(known)
        taken = self.contexts.definition(known._replace(register=one[3])) if one is not None and one[0] == op.UNPACK else one
        function = known.function
        if taken is None or taken[0] != op.INVOKE or function.is_cpp or function.text(taken[4]) not in function.known("queue-get"):
            return
        queues = self._queues(function, taken[3])
        for other, call in self._puts if queues else ():
            if queues.isdisjoint(self._queues(other, call[3])):
                continue
            made = other.definitions[call[6]] if call[6] >= 0 else None
            if one is taken or one is None:
                yield Known(other, call[6], ())
            elif made is not None and made[0] == op.BUILD and len(made) - 4 == one[5]:
                yield Known(other, made[4 + one[4]], ())

    @cached_property
    def _puts(self) -> list[tuple[Function, Instruction]]:
        units = [unit for unit in self.facts.program.mentioning("put") if not unit.is_cpp]
        calls = [(function, one) for unit in units for function in unit.functions for one in function.by_opcode[op.INVOKE] if len(one) > 6]
        return [(function, one) for function, one in calls if function.text(one[4]) in function.known("queue-put")]

    def _queues(self, function: Function, register: int) -> set[tuple[Function, Instruction]]:
        """Where the containers were made that a register may hold."""
        values = self.facts.values(function, register).values if register >= 0 else ()
        return {(value.frame.function, value.instruction) for value in values if isinstance(value, Container)}

    def is_host_given(self, call: ModelledCall, context: Context) -> bool:
        """Whether a call of the function says that a device, which may be one or the host, is the host: it names that, or leaves it out."""
        known = self.contexts.traced(Known(call.function, call.all("device")[0], context)) if call.all("device") else None
        one = self.contexts.definition(known) if known is not None else None
        if known is None or one is None or one[0] != op.PARAM:
            return known is None
        for caller, passing in self.transfer.callers(known.function):
            given = self.contexts.given(known.function, one, Site(caller, passing))
            spaces: dict[str, str] = {}
            for value in self.held(Known(*given, ()), given[1]) if given is not None else ():
                space_of(value, partial(add, spaces))
            if set(spaces) == {"host"}:
                return True
        return False

    def _elsewhere(self, node: Node, made: Site) -> str:
        """How a call that has made memory of the host makes it on a device as well, if nobody in view chooses the host there."""
        others = (value for value in node.values if isinstance(value, Memory) and value.space not in ("host", "managed"))
        if not any(next(iter(list(node.trace(value))[-1:]), None) == made for value in others):
            return ""
        calls = [call for call in self.transfer.modelled(made.function, made.instruction) if call.all("device")]
        return "" if any(self.is_host_given(call, ()) for call in calls) else _ASKED if calls else _FOLLOWED

    def _is_known(self, known: Known) -> bool:
        """Whether the facts know what a register holds as memory: it would have come as memory, too."""
        return any(isinstance(value, Memory) and value.space != "unknown" for value in self.held(known, known.register))

    def _enters(self, site: Site, function: Function) -> bool:
        if site.instruction[0] not in (op.CALL, op.INVOKE):
            return False
        return self.transfer.enters(site.function, site.instruction, function)

    def _of_loader(self, origin: Origin, one: Instruction | None) -> Origin:
        """The batches of a loader: where the loader was made."""
        function = origin.known.function
        for _ in range(4):
            if one is None or one[0] not in (op.NEXT, op.UNPACK, op.ITEM, op.ITER, op.INVOKE, op.CALL):
                break
            if self._is_prepared(function, one):
                return origin._replace(space="device", pinning="unknown")
            register = one[-1] if one[0] == op.CALL else one[3]
            if (found := self._by_loader(origin, register)) is not None:
                return found
            one = function.definitions[register] if register >= 0 else None
        return origin

    def _by_loader(self, origin: Origin, register: int) -> Origin | None:
        """The batches of the loader that a register holds; None where it holds none that is made in the program."""
        known = origin.known
        node = self.facts.values(known.function, register)
        loaders = [value for value in node.values if isinstance(value, LibraryObject) and value.kind == "loader"]
        # one that is only declared to be a loader tells nothing of its pinning
        matching = [value for value in loaders if value.detail == f"{origin.space}/{origin.pinning}"] or loaders
        made = ([site for site in node.trace(value) if op.DEFINES[site.instruction[0]]] for value in matching)
        sites = next(filter(None, made), None)
        if sites is None:
            return None
        last = sites[-1]
        if any(self._is_prepared(*site) for site in sites) or self._is_on_device(last):
            return origin._replace(space="device", pinning="unknown")
        return origin._replace(known=Known(last.function, last.instruction[2], known.context), how="loader")

    def _is_on_device(self, made: Site) -> bool:
        """Whether all that a loader's own function puts into its batches is on a device already."""
        held = [origin.space for known in self.batches.collated(made) for origin in self.of(*known)]
        return bool(held) and set(held) == {"device"}

    def _is_prepared(self, function: Function, one: Instruction) -> bool:
        """Whether a framework moves what a call gives."""
        return any(call.row.effect == "prepare" for call in self.transfer.modelled(function, one))

    def is_kept_by_module(self, function: Function, one: Instruction) -> bool:
        """Whether a module keeps what a call gives: it goes where the module goes."""
        owner = function.owner
        if owner is None or "torch.nn.Module" not in self.facts.hierarchy.libraries(owner):
            return False
        return any(use[0] == op.SET_ATTR and use[4] == one[2] for use in function.uses[one[2]])


def _is_open(value: Object, is_viewed: bool) -> bool:
    """Whether a value tells nothing of the memory that is asked for: one that is not known, or a module of which a part is taken."""
    return isinstance(value, Unknown) or (is_viewed and isinstance(value, LibraryObject) and value.kind == "module")


def _puts(function: Function, use: Instruction, register: int) -> bool:
    """Whether an instruction puts a value into a container or an object."""
    is_added = use[0] == op.INVOKE and function.text(use[4]) == "append"
    return is_added or use[0] in _PUTTING or (use[0] in (op.SET_ITEM, op.SET_ATTR) and use[4] == register)
