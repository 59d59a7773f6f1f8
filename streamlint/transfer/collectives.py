"""Collectives of several processes: their handles are events behind the work, and waiting for one is a wait of the current stream."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.ir import opcodes as op
from streamlint.transfer.actions import CURRENT, Action, Recorded, Stream
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.waiting import Waited


def collective(call: ModelledCall) -> Iterator[Action]:
    """``work = dist.all_reduce(…, async_op=True)`` and ``work.wait()``."""
    stream = Stream(CURRENT, library=call.row.library)
    if call.text("part") == "wait":
        if call.receiver is not None:
            yield Waited(stream, call.receiver, call.name, is_event=True)
    elif call.switch("asynchronous")[1] is not False and op.DEFINES[call.instruction[0]]:
        yield Recorded(call.result, stream, inside=call.row.get("result") == "sequence")


EFFECTS = {"collective": collective}
