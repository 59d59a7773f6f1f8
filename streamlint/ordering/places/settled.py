"""Streams of objects whose methods unknown callers run: whether these can get hold of one, or have a way to wait for it."""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.ir import opcodes as op
from streamlint.ordering.places.places import Place, Places
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.waiting import Waited


class Settled:
    """What a class lets its callers do with a stream."""

    def __init__(self, transfer: Transfer, places: Places) -> None:
        self.transfer = transfer
        self.places = places

    def is_settled(self, function: Function, lane: Place) -> bool:
        """Whether another method of the class waits for a stream, for unknown callers."""
        for method in (each for methods in function.owner.methods.values() for each in methods) if function.owner is not None else ():
            if method is function or any(True for _ in self.transfer.facts.call_places(method)):
                continue
            for opcode in (op.CALL, op.INVOKE):
                for one in method.by_opcode[opcode]:
                    for action in self.transfer.of(method, one):
                        if isinstance(action, Waited) and not action.is_event and self.places.of(method, action.of) == lane:
                            return True
        return False

    def leaves(self, function: Function, lane: Place) -> bool:
        """Whether a method hands a stream to its caller."""
        for register, one in enumerate(function.definitions):
            is_lane = one is not None and one[0] == op.ATTR and self.places.of(function, register) == lane
            if is_lane and any(use[0] in (op.RETURN, op.BUILD, op.YIELD) for use in function.uses[register]):
                return True
        return False
