"""The execution policies of algorithms that run on a device or on the host, as Thrust has them."""

from __future__ import annotations

from streamlint.facts.code.objects import CppName
from streamlint.ir import opcodes as op
from streamlint.transfer.actions import UNKNOWN, Stream
from streamlint.transfer.modelled import ModelledCall


class Policies:
    """The execution policy of an algorithm: whether it runs on a device, and whether the host waits for it."""

    def __init__(self, call: ModelledCall) -> None:
        self.call = call
        self.models = call.facts.cpp_models

    @property
    def waits(self) -> bool:
        """Whether the host waits: not for what runs on the host, nor where the policy asks for no wait and the host is given no value."""
        call = self.call
        policy = self._named(call.operands[0]) if call.operands else ""
        if self.models.constants.get(policy) == "host-policy":
            return False
        if any(value.space == "host" for register in call.operands for value in call.memory(register)):
            return False
        rows = [self.models.calls.get(f"{policy}{separator}on") for separator in (".", "::")]
        is_quiet = any(row is not None and row.get("no_wait") for row in rows)
        return not (is_quiet and call.row.get("writes") is None)

    @property
    def is_known(self) -> bool:
        """Whether the policy is one that the models know, for which a stream or an allocator may have been chosen."""
        return bool(self.call.operands) and self._named(self.call.operands[0]) in self.models.constants

    @property
    def stream(self) -> Stream:
        """The stream that is chosen for the policy where it is given."""
        function, register = self.call.function, self.call.operands[0] if self.call.operands else op.NONE
        while (one := function.definitions[register] if register >= 0 else None) is not None and one[0] in (op.CALL, op.INVOKE):
            if one[0] == op.INVOKE and function.text(one[4]) == "on" and len(one) > 6:
                return self.call.stream_in(one[6])
            register = one[3]
        return Stream(UNKNOWN, library=self.call.row.library) if self.call.word(register) == "host-policy" else self.call.stream()

    def _named(self, register: int) -> str:
        """The policy by its name, before a stream or an allocator was chosen for it."""
        function = self.call.function
        one = function.definitions[register] if register >= 0 else None
        while one is not None and one[0] in (op.INVOKE, op.CALL, op.COPY):
            one = function.definitions[one[3]]
        if one is None or one[0] != op.NAME:
            return ""
        values = self.call.values(one[2])
        return next((value.name for value in values if isinstance(value, CppName)), function.text(one[3]))
