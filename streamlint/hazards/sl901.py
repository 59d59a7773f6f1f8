"""SL901: the program shows another kind of memory, or another stream, than the user declares."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.rules import ContradictedDeclaration
from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.objects import Instance, LibraryObject, Memory, Site
from streamlint.facts.files.declarations import Declaration
from streamlint.findings import Finding, Step
from streamlint.hazards.context import Context, span_of
from streamlint.hazards.streams import Streams
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.support.declared_words import Said
from streamlint.transfer.origin import CHOSEN, Origin
from streamlint.transfer.origins import Origins

RULE = ContradictedDeclaration


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    if not context.program.declares:
        return
    search = _Search(context)
    reported: set[tuple[object, ...]] = set()
    for finding in search.all():
        if (key := (finding.span, finding.message)) not in reported:
            reported.add(key)
            yield finding


class _Search:
    """Holds the declarations of a program against what it does."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.transfer = context.transfer
        self.facts = context.facts
        self.declarations = context.facts.declarations
        self.origins = context.transfer.one_of(Origins, context.transfer)
        self.streams = Streams(context)

    def all(self) -> Iterator[Finding]:
        """All contradictions."""
        for unit in list(self.context.program.units.values()):
            for function in unit.functions:
                yield from self._in_function(function)
            for owner in unit.classes:
                yield from self._of_members(owner)

    def _in_function(self, function: Function) -> Iterator[Finding]:
        for register, said in self.declarations.in_function(function).items():
            one = function.definitions[register]
            if one is not None and one[0] == op.PARAM:
                yield from self._of_parameter(function, one, said)
            elif one is not None:
                found = self.origins.without_declaration(function, register)
                yield from self._findings(Site(function, one), function, register, said, "assigned value", found)
        result = self.declarations.of_result(function)
        for end in function.by_opcode[op.RETURN] if result is not None else ():
            if result is not None and end[2] >= 0:
                yield from self._findings(
                    Site(function, end), function, end[2], result, "returned value", self.origins.of(function, end[2])
                )

    def _of_parameter(self, function: Function, one: Instruction, said: Declaration) -> Iterator[Finding]:
        declared = Step("declared here", span_of(Site(function, one)))
        for caller, call in self.transfer.callers(function):
            given = self.origins.contexts.given(function, one, Site(caller, call))
            if given is not None and given[0] is caller:
                what = f"argument for '{function.code.parameters[one[3]].name}'"
                yield from self._findings(Site(caller, call), *given, said, what, self.origins.of(*given), (declared,))

    def _of_members(self, owner: ClassInfo) -> Iterator[Finding]:
        stores = owner.own_stores
        for member in dict.fromkeys([*(one.name for one in owner.ir.fields), *stores]):
            said = self.declarations.of_field(owner, member)
            for store in stores.get(member, ()) if said is not None else ():
                if said is not None and store.value >= 0 and self.declarations.of_register(store.function, store.value) is None:
                    site, found = Site(store.function, store.instruction), self.origins.of(store.function, store.value)
                    yield from self._findings(site, store.function, store.value, said, f"value of '{member}'", found)
            if said is not None and member not in stores and not owner.unit.is_cpp:
                yield from self._of_construction(owner, member, said)

    def _of_construction(self, owner: ClassInfo, member: str, said: Declaration) -> Iterator[Finding]:
        """What the objects of a class without a constructor are made of."""
        node = self.facts.held_by(self.facts.objects(Instance, owner, True), member)
        for value in list(node.values):
            known = _contradicting(said.said, value.space, value.pinning) if isinstance(value, Memory) else ""
            site = next((each for each in node.trace(value) if each.instruction[0] in (op.CALL, op.INVOKE)), None) if known else None
            if site is not None:
                yield RULE().report(span_of(site), f"value of '{member}'", known, said.said.words, (), site.function.name)

    # --- one value

    def _findings(
        self,
        site: Site,
        function: Function,
        register: int,
        said: Declaration,
        what: str,
        origins: list[Origin],
        trail: tuple[Step, ...] = (),
    ) -> Iterator[Finding]:
        for origin in origins:
            known = _contradicting(said.said, origin.space, origin.pinning) if origin.how not in (CHOSEN, "declared") else ""
            if known and origin.evidence != "asked":
                made = (Step("allocated here", span_of(origin.site)),) if origin.site is not None else ()
                yield RULE().report(span_of(site), what, known, said.said.words, (*made, *trail), site.function.name)
        known = self._stream_of(function, register, said.said) if said.said.stream else ""
        if known:
            yield RULE().report(span_of(site), what, known, said.said.words, trail, site.function.name)

    def _stream_of(self, function: Function, register: int, said: Said) -> str:
        """The stream that a register is known to hold, in words, if it is another one than is declared; "" if not."""
        values = list(self.facts.values(function, register).values)
        streams = [value for value in values if isinstance(value, LibraryObject) and value.kind == "stream"]
        if not streams or len(streams) < len(values):
            return ""
        kinds = {self._kind(stream) for stream in streams}
        kind = kinds.pop() if len(kinds) == 1 else ""
        return "" if kind in ("", said.stream) else Said(stream=kind).words

    def _kind(self, stream: LibraryObject) -> str:
        if stream.detail in ("default", "null"):
            return "default"
        is_blocking = self.streams.is_blocking(stream)
        return {True: "blocking", False: "non-blocking"}.get(is_blocking, "") if is_blocking is not None else ""


def _contradicting(said: Said, space: str, pinning: str) -> str:
    """What memory is known to be, in words, if it is something else than is declared; "" if not."""
    if said.space in ("host", "device") and space in ("host", "device") and said.space != space:
        return Said(space).words
    if space == "host" and said.pinning and pinning in ("pinned", "pageable") and pinning != said.pinning:
        return Said("host", pinning).words
    return ""
