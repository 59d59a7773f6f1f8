"""Where memory comes from that calls of libraries give, by their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Constant, Container, External, LibraryObject, Memory, Object, Site, is_unknown
from streamlint.facts.graph.call_graph import LibraryCall
from streamlint.facts.values.selectors import UNMOVED
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.contexts import Known
from streamlint.transfer.cpp_options import option
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.origin import CHOSEN, Origin, Way, chosen
from streamlint.transfer.origin_facts import Kept
from streamlint.waits.entered import Context


class Made(Kept):
    """Steps back over calls of libraries and operators."""

    def elements(self, function: Function, register: int, context: Context) -> list[Known]:
        """The elements of a container."""
        raise NotImplementedError

    def calls(self, known: Known, one: Instruction) -> list[ModelledCall]:
        """The calls of libraries that an instruction makes; of a method whose receiver only a walk tells, by what that says."""
        function = known.function
        held = self.held(known, one[3]) if one[0] == op.INVOKE else []
        if one[0] == op.INVOKE and not any(isinstance(value, (Memory, LibraryObject, External)) for value in held):
            models = self.facts.cpp_models if function.is_cpp else self.facts.models
            for origin in self.of(function, one[3], known.context):
                separator = "::" if function.is_cpp else "."
                row = models.method(origin.type or "torch.Tensor", function.text(one[4]), separator) if function.is_cpp else None
                row = row or (models.method(origin.type or "torch.Tensor", function.text(one[4])) if not function.is_cpp else None)
                if row is not None:
                    return [ModelledCall(self.facts, function, LibraryCall(one, row, row.names[0], None), row)]
        return list(self.transfer.modelled(function, one))

    def modelled_by_row(self, way: Way, call: ModelledCall) -> Iterator[Origin]:
        """The memory that a call gives, by the effect of its row."""
        step = _EFFECTS.get(call.row.effect)
        return step(self, way, call) if step is not None else self.kept(way)

    def _viewed(self, way: Way, call: ModelledCall) -> Iterator[Origin]:
        row, one = call.row, call.instruction
        kind, of = str(row.get("type", "")), call.one("of", call.receiver)
        if of is None or kind == "element":
            yield from self.kept(way)
        elif kind == "numpy.ndarray" and any(isinstance(value, (LibraryObject, Container)) for value in self.held(way.known, of)):
            yield Origin(way.known, "host", "pageable", kind, "none", way.passed, way.views, "computed")
        elif not (row.get("moves") and self.is_kept_by_module(way.known.function, one)):
            yield from self.walk((self.viewed(way, one) if row.effect == "view" else way).at(of))

    def _with_module(self, way: Way, call: ModelledCall) -> Iterator[Origin]:
        """Memory of a module that is moved."""
        if way.is_viewed and self._is_to_device(call):
            yield Origin(way.known, "device", "unknown", "torch.Tensor", "literal", way.passed, way.views, "moved")
        else:
            yield from self.kept(way)

    def moved_in_place(self, way: Way) -> Origin | None:
        """Memory of a module that its function moves to a device, and goes on with: what the call gives is dropped."""
        function, register = way.known.function, way.known.register
        if not way.is_viewed or function.is_cpp or register < 0:
            return None
        uses = (use for use in function.uses[register] if use[0] == op.INVOKE and use[3] == register and not function.uses[use[2]])
        moves = [use for use in uses if function.text(use[4]) in self._moving]
        calls = [call for use in moves for call in self.calls(way.known, use)]
        if not calls or not all(self._is_to_device(call) for call in calls):
            return None
        return Origin(way.known, "device", "unknown", "torch.Tensor", "literal", way.passed, way.views, "moved")

    @cached_property
    def _moving(self) -> frozenset[str]:
        return self.transfer.names({"module_to"})

    def _is_to_device(self, call: ModelledCall) -> bool:
        """Whether a call moves memory to a device that it says."""
        to = call.row.get("to")
        return to == "device" or (to == "argument" and set(call.device_spaces()) == {"device"})

    def _pinned(self, way: Way, call: ModelledCall) -> Iterator[Origin]:
        yield Origin(way.known, "host", "pinned", str(call.row.get("type", "")), "none", way.passed, way.views, "pinned")

    def _allocated(self, way: Way, call: ModelledCall) -> Iterator[Origin]:
        if call.row.get("into") is not None:
            yield from self.kept(way)
            return
        memory = str(call.row.get("memory", "device"))
        space = memory if memory in ("device", "managed") else "host"
        yield Origin(way.known, space, memory, "pointer", "literal", way.passed, way.views, "alloc")

    def _loaded(self, way: Way, call: ModelledCall) -> Iterator[Origin]:
        """What is read from a file: into pageable memory, where the host is named for it."""
        if call.device_spaces() == {"host"}:
            yield Origin(way.known, "host", "pageable", "torch.Tensor", "none", way.passed, way.views, "loaded")
        else:
            yield from self.kept(way)

    def _by_compute(self, way: Way, call: ModelledCall) -> Iterator[Origin]:
        row = call.row
        given = call.all("out")
        if given:
            yield from self.walk(way.at(given[0]))
        elif row.get("result") == "self" and call.receiver is not None:
            yield from self.walk(way.at(call.receiver))
        elif row.get("host"):
            yield Origin(way.known, "host", "pageable", str(row.get("type", "")), "none", way.passed, way.views, "computed")
        else:
            yield from self.computed(way, list(call.operands))

    def computed(self, way: Way, operands: list[int]) -> Iterator[Origin]:
        """New memory where the operands are."""
        known = way.known
        found = self._of_operands(known, operands)
        spaces = {origin.space: origin.type for origin in reversed(found)}
        hosts = {origin.how == CHOSEN for origin in found if origin.space == "host"}  # whether what is on the host is so by choice
        types = {value.space: value.type for value in self.held(known, known.register) if isinstance(value, Memory)}
        if not spaces and self.is_asked(known, operands):
            return
        if not spaces or set(spaces) == {"unknown"}:
            hosts = {"device" in types}  # callers have given both, and no step tells which of them did here
            spaces = types or spaces or {"unknown": ""}
        for space, kind in spaces.items():
            pinning = "pageable" if space == "host" else "unknown"
            made = Origin(known, space, pinning, kind, "none", way.passed, way.views, "computed")
            yield chosen(made) if space == "host" and hosts == {True} else made

    def _of_operands(self, known: Known, operands: list[int]) -> list[Origin]:
        """The origins of the operands of one operation: they are on one device, but for numbers."""
        parts = [origins for register in operands for origins in self._operands(known, register)]
        found = [origin for origins in parts for origin in origins]
        if any({origin.space for origin in origins} == {"device"} for origins in parts):
            found = [origin for origin in found if origin.space != "host"]
        return found

    def _operands(self, known: Known, register: int) -> Iterator[list[Origin]]:
        """The origins of an operand, and of each element where it is a list."""
        held = self.held(known, register)
        if not any(isinstance(value, Constant) for value in held) or len(held) > 1:
            ways = [known._replace(register=register), *self.elements(known.function, register, known.context)]
            yield from (self.of(*each) for each in ways)

    def _made(self, way: Way, call: ModelledCall) -> Iterator[Origin]:
        row = call.row
        data = call.one("data")
        if row.get("alias") and data is not None and not call.all("device"):
            found = list(self.walk(self.viewed(way, call.instruction).at(data)))
            yield from found or self.kept(way)
            return
        spaces = self._spaces(way.known, call)
        is_chosen = "host" in spaces and self._is_chosen(way, call, len(spaces) > 1)
        pinned = self.contexts.truth(call, "pin", way.known.context)
        if call.function.is_cpp:
            named, pinned = self._optioned(way.known, call, pinned)
            if row.get("space") == "argument" or named:
                spaces = {named or "host": "literal"}
        memory = "pinned" if pinned else "unknown" if pinned is None else str(row.get("memory", "pageable"))
        for space, evidence in spaces.items():
            made = Origin(way.known, space, memory, str(row.get("type", "torch.Tensor")), evidence, way.passed, way.views)
            if space == "host" and is_chosen:
                yield chosen(made)
            elif space != UNMOVED:
                yield made

    def _optioned(self, known: Known, call: ModelledCall, pinned: bool | None) -> tuple[str, bool | None]:
        """C++: where the options of a factory put its memory, and whether they pin it."""
        found = [option(self.contexts, known._replace(register=each)) for each in call.all("device")]
        options = [each for each in found if each is not None]
        named = next((each.space for each in options if each.space), "")
        return named, next((each.pinned for each in options if each.pinned is not False), pinned)

    def _spaces(self, known: Known, call: ModelledCall) -> dict[str, str]:
        """Where a call makes memory, and by what evidence: where it is told to, or where its model or its data are."""
        row, data = call.row, call.one("data")
        spaces = self._of_asked(call) or self.contexts.spaces(call, known.context)
        if row.get("space") == "like" and spaces in (None, {UNMOVED: "none"}):
            like = call.one("like", call.receiver)
            return _spaces_of(self.held(known, like) if like is not None else []) or {"unknown": "none"}
        if spaces is not None:
            return spaces
        space = str(row.get("space", "host"))
        if space != "argument":
            return {space: "none"}
        default = self.facts.program.default_devices.at(Site(call.function, call.instruction)) if row.library == "torch" else "host"
        if default != "host":
            return {default: "literal"}
        held = self.held(known, data) if data is not None else []
        return _spaces_of(held) or {"unknown" if data is not None and is_unknown(held) else "host": "none"}

    def _is_chosen(self, way: Way, call: ModelledCall, is_open: bool) -> bool:
        """Whether a call that may make memory on the host does so by choice: by a device that may be another, or beside such memory."""
        model = call.one("like", call.receiver) if call.row.get("space") == "like" else None
        for register in call.all("device")[:1]:
            one = call.function.definitions[register] if register >= 0 else None
            if one is None or one[0] != op.ATTR or call.function.text(one[4]) != "device":
                return is_open and not self.is_host_given(call, way.known.context)
            model = one[3]
        if model is None:
            return False
        origins = self.of(call.function, model, way.known.context)
        hosts = {origin.how == CHOSEN for origin in origins if origin.space == "host"}
        return hosts == {True} or (not hosts and bool(way.known.context) and bool(origins))

    def _of_asked(self, call: ModelledCall) -> dict[str, str] | None:
        """``device=x.device`` behind a branch that has asked where ``x`` is."""
        for register in call.all("device")[:1]:
            one = call.function.definitions[register] if register >= 0 else None
            if one is not None and one[0] == op.ATTR and call.function.text(one[4]) == "device":
                said = self.guards.at(call.function, call.instruction, one[3]) & {"host", "device"}
                if said:
                    return dict.fromkeys(said, "literal")
        return None

    def _transferred(self, way: Way, call: ModelledCall) -> Iterator[Origin]:
        row = call.row
        source, out, to = call.one("of", call.receiver), call.one("out"), row.get("to")
        if out is not None:
            yield from self.walk(way.at(out))
            return
        spaces = {str(to): "literal"} if to in ("host", "device") else self.contexts.spaces(call, way.known.context)
        if spaces is None or source is None or set(spaces) <= {UNMOVED}:
            yield from self.walk(way.at(source if source is not None else call.result))
            return
        kind = str(row.get("type", "torch.Tensor"))
        for space, evidence in spaces.items():
            if space == "host":
                yield from self._fetched(way, call, source)
            elif space != UNMOVED:
                yield Origin(way.known, space, "unknown", kind, evidence, way.passed, way.views, "moved")

    def _fetched(self, way: Way, call: ModelledCall, source: int) -> Iterator[Origin]:
        """What a copy to the host gives: new memory, unless its source is there."""
        flag = self.contexts.truth(call, "asynchronous", way.known.context)
        to_pinned = call.row.get("host_memory") == "pinned-if-asynchronous"
        pinning = "pageable" if not to_pinned or flag is False else "pinned" if flag else "unknown"
        sources = self.of(way.known.function, source, way.known.context)
        if any(origin.space == "host" for origin in sources):
            yield from (origin for origin in self.walk(way.at(source)) if origin.space != "device")
        if not sources or any(origin.space != "host" for origin in sources):
            kind = str(call.row.get("type", "torch.Tensor"))
            yield Origin(way.known, "host", pinning, kind, "none", way.passed, way.views, "fetched")


def _spaces_of(values: list[Object]) -> dict[str, str]:
    """Where memory is, and by what evidence."""
    return {value.space: value.evidence for value in values if isinstance(value, Memory)}


_EFFECTS: dict[str, Callable[[Made, Way, ModelledCall], Iterator[Origin]]] = {
    **dict.fromkeys(("view", "same", "move"), Made._viewed),
    "module_to": Made._with_module,
    "pin": Made._pinned,
    "transfer": Made._transferred,
    "factory": Made._made,
    "compute": Made._by_compute,
    "alloc": Made._allocated,
    "load": Made._loaded,
}
