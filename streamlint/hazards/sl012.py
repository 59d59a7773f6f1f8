"""SL012: a tensor on a device is sent to another process in a way that CUDA IPC does not support."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl012_mp_cuda_tensor import MpCudaTensor
from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.findings import Finding
from streamlint.findings.operations import Operation
from streamlint.hazards.context import Context, span_of
from streamlint.ir import Instruction
from streamlint.ordering.races.unordered_puts import UnorderedPuts
from streamlint.ordering.streams.streams import Currents
from streamlint.ordering.threads.channel_uses import ChannelUses
from streamlint.ordering.threads.forks import Forks
from streamlint.ordering.threads.sent_tensors import LaterWrites, sent
from streamlint.transfer.channels import Channels, End
from streamlint.transfer.uses import Uses

RULE = MpCudaTensor


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule, by kind: see the rule's page."""
    yield from _Processes(context).find()


class _Processes:
    """The processes of a program, and what they send one another."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.rule = RULE()
        self.channels = Channels(context.transfer)
        self.currents = context.transfer.one_of(Currents, context.transfer)
        self.uses = Uses(context.transfer, self._is_scoped)
        self.misused = ChannelUses(context.transfer, self.channels, self.uses)
        self.writes = LaterWrites(context.transfer, self.channels, self.uses)

    def _is_scoped(self, function: Function, one: Instruction) -> bool:
        return self.currents.at(function, one) is not None

    def find(self) -> Iterator[Finding]:
        for put in self.channels.puts:
            yield from self._of_put(put)
        for missed in UnorderedPuts(self.context.transfer, self.uses, self.channels.puts).missed():
            made = span_of(missed.stream) if missed.stream is not None else None
            feeds = bool(missed.put.call.row.get("feeder"))
            yield self.rule.report_unordered(self._at(missed.put.site), span_of(missed.written), made, feeds)
        for fork in Forks(self.context.transfer).find():
            yield self.rule.report_fork(self._at(fork.start), span_of(fork.before), span_of(fork.inside), fork.method)

    def _of_put(self, put: End) -> Iterator[Finding]:
        for relayed in self.misused.forwarded(put):
            started = span_of(relayed.started) if relayed.started is not None else None
            yield self.rule.report_relayed(self._at(put.site), span_of(relayed.source), started)
        registers = sent(put.site.function, put, self.uses)
        if not registers:
            return
        for write in self.writes.find(put, registers):
            yield self.rule.report_written(self._at(write.write, write.calls), span_of(put.site), write.again)
        spawn = self.misused.outlived(put)
        if spawn is not None:
            yield self.rule.report_outlived(self._at(put.site), span_of(spawn.start))
        taken = self.misused.taken_back(put)
        if taken is not None:
            yield self.rule.report_own(self._at(taken), span_of(put.site))

    def _at(self, site: Site, calls: tuple[Site, ...] = ()) -> Operation:
        return Operation(span_of(site), "torch", context=self.context.surroundings(site.function, calls))
