"""Where memory comes from that calls of libraries give, by their rows."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.call_graph import LibraryCall
from streamlint.facts.functions import Function
from streamlint.facts.objects import Constant, Container, External, LibraryObject, Memory, is_unknown
from streamlint.facts.selectors import UNMOVED
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.contexts import Context, Known
from streamlint.transfer.cpp_options import option
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.origin import CHOSEN, Origin, Way, chosen
from streamlint.transfer.origin_facts import Kept


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
        row, one = call.row, call.instruction
        effect = row.effect
        kind = str(row.get("type", ""))
        if effect in ("view", "same", "move") and (of := call.one("of", call.receiver)) is not None and kind != "element":
            if kind == "numpy.ndarray" and any(isinstance(value, (LibraryObject, Container)) for value in self.held(way.known, of)):
                yield Origin(way.known, "host", "pageable", kind, "none", way.passed, way.views, "computed")
            else:
                if not (row.get("moves") and self.is_kept_by_module(way.known.function, one)):
                    yield from self.walk((way.seen_as(one) if effect == "view" else way).at(of))
        elif effect == "module_to" and way.views and row.get("to") == "device":
            yield Origin(way.known, "device", "unknown", "torch.Tensor", "literal", way.passed, way.views, "moved")
        elif effect == "pin":
            yield Origin(way.known, "host", "pinned", kind, "none", way.passed, way.views, "pinned")
        elif effect == "transfer":
            yield from self._transferred(way, call)
        elif effect == "factory":
            yield from self._made(way, call)
        elif effect == "compute":
            yield from self._by_compute(way, call)
        elif effect == "alloc" and row.get("into") is None:
            memory = str(row.get("memory", "device"))
            space = memory if memory in ("device", "managed") else "host"
            yield Origin(way.known, space, memory, "pointer", "literal", way.passed, way.views, "alloc")
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
        """New memory where the operands are: those of one operation are on one device, but for numbers."""
        known = way.known
        parts = [origins for register in operands for origins in self._operands(known, register)]
        found = [origin for origins in parts for origin in origins]
        if any({origin.space for origin in origins} == {"device"} for origins in parts):
            found = [origin for origin in found if origin.space != "host"]
        spaces = {origin.space: origin.type for origin in reversed(found)}
        hosts = {origin.how == CHOSEN for origin in found if origin.space == "host"}  # whether what is on the host is so by choice
        types = [value for value in self.held(known, known.register) if isinstance(value, Memory)]
        if not spaces or set(spaces) == {"unknown"}:
            spaces = {value.space: value.type for value in types} or spaces
        for space, kind in spaces.items():
            pinning = "pageable" if space == "host" else "unknown"
            made = Origin(known, space, pinning, kind, "none", way.passed, way.views, "computed")
            yield chosen(made) if space == "host" and hosts == {True} else made
        if not spaces:
            yield Origin(known, "unknown", "unknown", "", "none", way.passed, way.views, "computed")

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
            found = list(self.walk(way.seen_as(call.instruction).at(data)))
            yield from found or self.kept(way)
            return
        kind = str(row.get("type", "torch.Tensor"))
        spaces = self._of_asked(call) or self.contexts.spaces(call, way.known.context)
        if row.get("space") == "like" and spaces in (None, {UNMOVED: "none"}):
            like = call.one("like", call.receiver)
            held = self.held(way.known, like) if like is not None else []
            spaces = {value.space: value.evidence for value in held if isinstance(value, Memory)} or {"unknown": "none"}
        elif spaces is None:
            space = str(row.get("space", "host"))
            spaces = {"host" if space == "argument" else space: "none"}
            if space == "argument" and data is not None:
                held = self.held(way.known, data)
                of_data = {value.space: value.evidence for value in held if isinstance(value, Memory)}
                spaces = of_data or ({"unknown": "none"} if is_unknown(held) else spaces)
        is_chosen = "host" in spaces and self._is_chosen(way, call, len(spaces) > 1)
        pinned = self.contexts.truth(call, "pin", way.known.context)
        if call.function.is_cpp:
            found_options = [option(self.contexts, way.known._replace(register=each)) for each in call.all("device")]
            options = [each for each in found_options if each is not None]
            named = next((each.space for each in options if each.space), "")
            pinned = next((each.pinned for each in options if each.pinned is not False), pinned)
            if row.get("space") == "argument" or named:
                spaces = {named or "host": "literal"}
        for space, evidence in spaces.items():
            memory = "pinned" if pinned else "unknown" if pinned is None else str(row.get("memory", "pageable"))
            if space == "host" and is_chosen:
                yield chosen(Origin(way.known, space, memory, kind, evidence, way.passed, way.views))
            elif space != UNMOVED:
                yield Origin(way.known, space, memory, kind, evidence, way.passed, way.views)

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
                flag = self.contexts.truth(call, "asynchronous", way.known.context)
                to_pinned = row.get("host_memory") == "pinned-if-asynchronous"
                pinning = "pageable" if not to_pinned or flag is False else "pinned" if flag else "unknown"
                sources = self.of(way.known.function, source, way.known.context)
                if any(origin.space == "host" for origin in sources):
                    yield from (origin for origin in self.walk(way.at(source)) if origin.space != "device")
                if not sources or any(origin.space != "host" for origin in sources):
                    yield Origin(way.known, "host", pinning, kind, "none", way.passed, way.views, "fetched")
            elif space != UNMOVED:
                yield Origin(way.known, space, "unknown", kind, evidence, way.passed, way.views, "moved")
