"""SL029: a stream that each round of a loop makes and uses up."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl029_stream_churn import StreamChurn
from streamlint.facts.functions import Function
from streamlint.facts.objects import Site
from streamlint.findings import Finding
from streamlint.findings.operations import LoopFrame, Operation
from streamlint.hazards.churn import Churn, Churning
from streamlint.hazards.context import Context, span_of
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.lifetimes import Held, made_by
from streamlint.transfer.modelled import ModelledCall

RULE = StreamChurn
_POOL = 32
"""PyTorch's streams for each priority and device: loops of fewer rounds make none anew."""


class Streams(Churning):
    """Finds the streams that are made repeatedly."""

    def __init__(self, context: Context) -> None:
        super().__init__(context.transfer, self._destroyed, _POOL)
        self._names = context.transfer.names({"destroy"})

    def find(self) -> Iterator[tuple[ModelledCall, Churn, Site]]:
        """The creations, the loops, and where the stream is used in the same round."""
        for call in self.transfer.sites({"stream"}):
            held = Held(call.function, call.instruction, made_by(self.places, call), not call.function.is_cpp)
            for churn in self.follow(held):
                use = self._use(churn)
                if use is not None and not any(site.function.code.name == "__init__" for site in churn.made):
                    yield call, churn, use
                    break

    def _destroyed(self, function: Function, one: Instruction) -> Iterator[int]:
        if one[0] not in (op.CALL, op.INVOKE):
            return
        name = function.text(one[4]) if one[0] == op.INVOKE else function.dotted(one[3]).replace("::", ".").rpartition(".")[2]
        for call in self.transfer.modelled(function, one) if name in self._names else ():
            of = call.one("of", call.receiver) if call.row.effect == "destroy" else None
            if of is not None:
                yield of

    def _use(self, churn: Churn) -> Site | None:
        """The first work on the stream, or behind it."""
        held, made = churn.held, churn.held.instruction
        for one in held.function.code.instructions():
            if one == made or one[0] not in (op.CALL, op.INVOKE, op.LAUNCH, op.ENTER):
                continue
            if one in (site.instruction for site in churn.ended):
                continue
            if any(self.lifetimes.holds(held, register) for register in op.reads(one)):
                return Site(held.function, one)
        return None


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    rule = RULE()
    for call, churn, use in Streams(context).find():
        made = churn.made[-1]
        around = context.surroundings(made.function, churn.made[:-1])
        created = Operation(span_of(made), call.row.library, call.name, context=around)
        yield rule.report(created, LoopFrame(span_of(churn.head)), Operation(span_of(use)))
